"""People on a real server, by raw requests: what a browser would send, and nothing that it would do by itself."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlencode

from tests.real.api import Answer, Api
from tests.real.server import RunningServer

FORM = "application/x-www-form-urlencoded"
Fields = Mapping[str, str | Sequence[str]] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Person:
    """Somebody who is signed in: the cookie, how it was set, and what forms carry."""

    cookie: str
    set_cookie: str
    csrf: str


def operator(server: RunningServer, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`fencepost-server operator …` with the settings of this server."""
    return subprocess.run(
        [sys.executable, "-m", "app.cli.main", "operator", *words],
        cwd=server.folder,
        env=server.environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def add_person(server: RunningServer, name: str, password: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Let somebody sign in."""
    return operator(server, "add", name, *words, stdin=password + "\n")


def sign_in(api: Api, name: str, password: str, *, cookie: str = "", origin: str | None = None) -> Person:
    """Sign in by the form."""
    page = api.get("/sign-in", {"Cookie": cookie})
    visiting = page.headers["set-cookie"].split(";")[0]
    headers = {"Cookie": "; ".join(filter(None, (cookie, visiting))), "Content-Type": FORM}
    if origin is not None:
        headers["Origin"] = origin
    form = hidden(page, "") | {"name": name, "password": password}
    answer = api.send("POST", "/sign-in", urlencode(form).encode(), headers)
    assert answer.status == 303, answer.raw
    set_cookie = answer.headers["set-cookie"]  # the last of two: the other one ends the visit before
    signed_in = set_cookie.split(";")[0]
    token = re.search(rb'name="csrf" value="([^"]+)"', api.get("/handoffs", {"Cookie": signed_in}).raw)
    assert token is not None
    return Person(signed_in, set_cookie, token.group(1).decode())


def visit(api: Api, person: Person, path: str) -> Answer:
    """A page."""
    return api.get(path, {"Cookie": person.cookie})


def post(api: Api, person: Person, path: str, form: Fields, headers: Mapping[str, str] | None = None) -> Answer:
    """A form."""
    more = {"Cookie": person.cookie, "Content-Type": FORM, **(headers or {})}
    return api.send("POST", path, urlencode(form, doseq=True).encode(), more)


def fields(page: Answer, form_id: str) -> list[tuple[str, str]]:
    """The hidden fields of a form, in their order; of the whole page where no id is given."""
    text = page.raw.decode()
    if form_id:
        found = re.search(rf'<form[^>]*id="{form_id}".*?</form>', text, re.DOTALL)
        assert found is not None, text
        text = found.group()
    hidden_field = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')
    return [(name, unescape(value)) for name, value in hidden_field.findall(text)]


def hidden(page: Answer, form_id: str) -> dict[str, str]:
    """The same by name."""
    return dict(fields(page, form_id))
