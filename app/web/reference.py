"""What callers read: the OpenAPI document, the same as a page, and a page for agents.

All three are made from the definitions that check and type, once, when first asked for: making schemas would cost
every start some tenths of a second. The page needs nothing from outside and runs no script.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from flask import Blueprint, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app import __version__, shipped
from app.wire import openapi
from app.wire.json import dump
from app.wire.prices import CLAIM, FREE, Prices, told

_CLOSED = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Reference:
    """The three texts for a server at this public address, which asks these prices."""

    def __init__(self, public_url: str, prices: Prices = FREE) -> None:
        self._public_url = public_url
        self._prices = prices
        self._templates = Environment(
            loader=FileSystemLoader(shipped.folder("templates") / "reference"),
            autoescape=lambda name: name is not None and name.endswith(".html"),
            undefined=StrictUndefined,
        )

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """OpenAPI 3.1."""
        examples = json.loads((shipped.folder("templates") / openapi.EXAMPLES).read_bytes())
        return openapi.document(
            public_url=self._public_url, version=__version__, examples=examples, prices=self._prices
        )

    @cached_property
    def style(self) -> str:
        """The page's one style sheet, which stands inside it."""
        return self._render("docs.css")

    @cached_property
    def page(self) -> str:
        """The document for people."""
        return self._render("docs.html", style=self.style, meanings=self._meaning, examples=self._examples)

    @cached_property
    def guide(self) -> str:
        """The document for agents: how to use each surface safely, and every route in a line."""
        return self._render("llms.txt", cost=told(self._prices, CLAIM))

    def policy(self) -> str:
        """What the page may do: show its own style, and nothing else."""
        digest = b64encode(hashlib.sha256(self.style.encode("utf-8")).digest()).decode("ascii")
        return f"{_CLOSED}; style-src 'sha256-{digest}'"

    def _render(self, name: str, **words: object) -> str:
        if name != "docs.css":
            words |= {"operations": openapi.outline(self.document), "version": __version__}
        return self._templates.get_template(name).render(public_url=self._public_url, **words)

    def _meaning(self, answer: Mapping[str, Any]) -> str:
        shared = self.document["components"]["responses"]
        told = shared[answer["$ref"].rsplit("/", 1)[-1]] if "$ref" in answer else answer
        return str(told["description"])

    def _examples(self, operation: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The body, then each answer: what it is of and its JSON."""
        found = [("body", operation["requestBody"])] if "requestBody" in operation else []
        found += [(status, answer) for status, answer in operation["responses"].items() if "$ref" not in answer]
        shown = []
        for what, part in found:
            content = part["content"]["application/json"]
            if "example" in content:
                shown.append((what, content["example"]))
            words = content.get("examples", {}).items()
            shown += [(f"{what} {outcome.replace('_', ' ')}", told["value"]) for outcome, told in words]
        return [(what, json.dumps(example, indent=2, ensure_ascii=False)) for what, example in shown]


def blueprint(public_url: str, prices: Prices = FREE) -> Blueprint:
    """`/openapi.json`, `/docs` and `/llms.txt`; none is counted by a limit."""
    routes = Blueprint("reference", __name__)
    texts = Reference(public_url, prices)
    routes.add_url_rule(
        "/openapi.json", view_func=lambda: _answer(dump(texts.document), "application/json"), endpoint="openapi"
    )
    routes.add_url_rule(
        "/docs", view_func=lambda: _answer(texts.page.encode(), "text/html", texts.policy()), endpoint="docs"
    )
    routes.add_url_rule("/llms.txt", view_func=lambda: _answer(texts.guide.encode(), "text/plain"), endpoint="llms")
    return routes


def _answer(content: bytes, media: str, policy: str = _CLOSED) -> Response:
    headers = {
        "Content-Type": media if media == "application/json" else f"{media}; charset=utf-8",
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": policy,
        "Referrer-Policy": "no-referrer",
    }
    return Response(content, 200, headers)
