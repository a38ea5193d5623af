"""Who is there, and what a form must prove before anything is done.

A person is known by a cookie that only the server reads, that no other site's page can make the browser send, and that
ends on the server. A form must come from a page of this server (`Origin`, or, because our pages send no referrer and
Chromium then says `null`, the browser's own word `Sec-Fetch-Site: same-origin`) and carry a token that only such a page
has seen. Everything is checked before a form is looked at; GET and HEAD never come here.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote

from flask import Blueprint, Response, g, request

from app import __version__, tokens
from app.clock import Clock
from app.core.instants import SECOND
from app.core.person import SESSION_SECONDS, Session
from app.dashboard import show
from app.services.people import People
from app.settings import Settings
from app.wire.origins import Origins
from app.wire.reply import Reply

_log = logging.getLogger("fencepost.dashboard")
FORM_CAP = 64 * 1024
_MOST_FIELDS = 1000
FORM = "application/x-www-form-urlencoded"
Made = TypeVar("Made")

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "X-Robots-Tag": "noindex, nofollow",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
PAGES: list[tuple[str, str]] = [
    ("Now", "/"),
    ("Handoffs", "/handoffs"),
    ("Leases", "/leases"),
    ("Claims", "/claims"),
    ("Deliveries", "/deliveries"),
    ("Audit", "/audit"),
    ("Health", "/health"),
    ("Settings", "/settings"),
]
"""The navigation: the pages there are, in their order."""


class Edge(Protocol):
    """What this surface needs of the edge that all surfaces share."""

    def attempt(self, make: Callable[[], Made]) -> Made | Reply: ...

    def body(self, cap: int, media: str) -> bytes: ...

    def address(self) -> str: ...

    def request_id(self) -> str: ...

    def told(self, outcome: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Page:
    """What a view shows: a template and its words."""

    template: str
    words: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_same_for_all: bool = False
    """Without a nonce, so that the bytes do not differ from one visitor to the next."""


@dataclass(frozen=True, slots=True)
class Goto:
    """Where the browser goes on with a GET; a path of this server."""

    path: str
    cookies: tuple["Cookie", ...] = ()


@dataclass(frozen=True, slots=True)
class Cookie:
    """A cookie to set, or with an empty value to take away."""

    name: str
    value: str
    seconds: int
    path: str = "/"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request as a view sees it."""

    session: Session | None
    csrf: str
    """What this visitor's forms carry."""
    token: str = ""
    """The session's own secret."""
    form: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Who is signed in."""
        return "" if self.session is None else self.session.person.name

    @property
    def may_act(self) -> bool:
        """Whether this person may change anything."""
        return self.session is not None and self.session.person.may_act

    def first(self, name: str) -> str:
        """The first value of a field, empty where there is none."""
        return self.form.get(name, ("",))[0]


View = Callable[..., Page | Goto | Response]


class Turned(Exception):
    """The visitor is shown another page instead."""

    def __init__(self, page: Page | Goto) -> None:
        super().__init__()
        self.page = page


class Gate:
    """Binds views to rules and stands before them."""

    def __init__(self, settings: Settings, edge: Edge, people: People, origins: Origins, clock: Clock) -> None:
        self.settings = settings
        self.edge = edge
        self.people = people
        self.clock = clock
        self._origins = origins
        self._key = settings.secret_key.encode()
        self.is_secure = settings.public_url.startswith("https:")
        self._socket_origin = "ws" + settings.public_url.removeprefix("http")

    # ------------------------------------------------------------------------------------------- binding

    def page(self, routes: Blueprint, rule: str, view: View) -> None:
        """Serve `view(visit, **path)` to who is signed in; others are sent to the sign-in and come back."""
        self.open(routes, rule, view, visit=self.signed_in)

    def form(self, routes: Blueprint, rule: str, view: View, *, cap: int = FORM_CAP) -> None:
        """Take a form at the rule from an operator, and serve what `view(visit, **path)` makes of it."""
        self.open(routes, rule, view, visit=lambda: self.operator(cap), method="POST")

    def open(
        self, routes: Blueprint, rule: str, view: View, *, visit: Callable[[], Visit], method: str = "GET"
    ) -> None:
        """The same for a visit of another kind: `visit` admits, or raises Turned or Refused."""

        def serve(**path: str) -> Response:
            made = self.edge.attempt(lambda: self._serve(visit, view, path))
            return self.refused(made) if isinstance(made, Reply) else made

        name = f"{method}{rule.replace('.', '-')}"
        routes.add_url_rule(rule, name, serve, methods=[method], provide_automatic_options=False)

    def _serve(self, admit: Callable[[], Visit], view: View, path: Mapping[str, str]) -> Response:
        try:
            visit = admit()
            g.visit = visit
            made = view(visit, **path)
        except Turned as turned:
            made = turned.page
        return self.respond(made)

    # ------------------------------------------------------------------------------------------- admitting

    def signed_in(self) -> Visit:
        """The visit of a signed-in person. Raises Turned."""
        token = request.cookies.get(self.cookie_name("fencepost_session"), "")
        session = self.people.session(token) if token else None
        if session is None:
            raise Turned(self._sign_in_first())
        return Visit(session, self.sealed(token), token, query=request.args.to_dict())

    def operator(self, cap: int) -> Visit:
        """The visit of an operator with a form that is theirs. Raises Turned."""
        visit = self.proven(self.signed_in(), cap)
        if not visit.may_act:
            raise Turned(self.problem(403, "You may look, not act", "Your role here is viewer. Nothing was changed."))
        return visit

    def proven(self, visit: Visit, cap: int = FORM_CAP) -> Visit:
        """The visit with its form, which came from a page of ours. Raises Turned, Refused."""
        self.check_origin()
        form = self.read_form(cap)
        sent = form.get("csrf", ("",))[0]
        if not tokens.same_text(sent, visit.csrf):
            sentence = "The form does not belong to your session. Nothing was changed: load the page and try again."
            raise Turned(self.problem(403, "This form is out of date", sentence))
        return Visit(visit.session, visit.csrf, visit.token, form, visit.query)

    def check_origin(self) -> None:
        """See that a form came from a page of this server. Raises Turned."""
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        is_ours = self._origins.allow(origin) if origin != "null" else site == "same-origin"
        if not is_ours or site not in (None, "same-origin"):
            sentence = (
                "The form came from another address than this server's. Nothing was changed. If this is your own "
                f"server, open it as {self.settings.public_url}, or set FENCEPOST_PUBLIC_URL."
            )
            raise Turned(self.problem(403, "Not from this page", sentence))

    def read_form(self, cap: int = FORM_CAP) -> Mapping[str, tuple[str, ...]]:
        """The fields of a form. Raises Turned, Refused."""
        body = self.edge.body(cap, FORM)
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
            )
        except (UnicodeDecodeError, ValueError):
            raise Turned(self.problem(400, "The form cannot be read", "Nothing was changed.")) from None
        found: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            found[name] = (*found.get(name, ()), value.replace("\r\n", "\n"))
        return found

    def sealed(self, text: str) -> str:
        """What forms carry to prove that they were made for this cookie."""
        return tokens.sealed(self._key, "csrf", text)

    def cookie_name(self, name: str) -> str:
        """With the prefix that lets only this host set it, where there is https."""
        return "__Host-" + name if self.is_secure else name

    def session_cookie(self, token: str) -> Cookie:
        """The cookie of a sign-in; without a token, its end."""
        return Cookie(self.cookie_name("fencepost_session"), token, SESSION_SECONDS)

    def _sign_in_first(self) -> Page | Goto:
        if request.method != "GET" or request.headers.get("X-Fencepost-Live"):
            sentence = "Your session is over. Sign in again; nothing was changed."
            return self.problem(401, "Signed out", sentence)
        here = request.path + ("?" + request.query_string.decode("latin-1") if request.query_string else "")
        return Goto("/sign-in" + ("" if here == "/" else "?next=" + quote(here, safe="")))

    # ------------------------------------------------------------------------------------------- answering

    def problem(
        self,
        status: int,
        heading: str,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        onward: str = "/",
    ) -> Page:
        """A page that says what did not happen, and why; `onward` is where to look again."""
        return Page("problem.html", {"title": heading, "sentence": sentence, "onward": onward}, status, headers or {})

    def refused(self, reply: Reply) -> Response:
        """A refusal that all surfaces know, as a page."""
        body = reply.body
        sentence = " ".join(str(body[name]) for name in ("error", "fix") if body.get(name))
        heading = "Out of reach for a moment" if reply.status == 503 else "That did not work"
        return self.respond(self.problem(reply.status, heading, sentence + ".", headers=reply.headers))

    def nowhere(self, reply: Reply) -> Response:
        """What no route answers, as a page."""
        if reply.status == 404:
            page = self.problem(404, "No such page", "Nothing is at this address.", headers=reply.headers)
        else:
            page = self.problem(
                reply.status,
                "Not a page",
                "This address takes a form from a page, and shows nothing itself.",
                headers=reply.headers,
            )
        return self.respond(page)

    def respond(self, made: Page | Goto | Response) -> Response:
        """The response with the headers that every page carries."""
        if isinstance(made, Goto):
            response = Response(status=303, headers={"Location": made.path})
            for cookie in made.cookies:
                self.set_cookie(response, cookie)
        elif isinstance(made, Page):
            response = self._render(made)
        else:
            response = made
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Content-Security-Policy", self.policy(None))
        response.headers["X-Request-Id"] = self.edge.request_id()
        self.edge.told("ok" if response.status_code < 400 else "refused")
        return response

    def set_cookie(self, response: Response, cookie: Cookie) -> None:
        """Set it, for this host only, out of reach of scripts and other sites."""
        response.set_cookie(
            cookie.name,
            cookie.value,
            max_age=cookie.seconds if cookie.value else 0,
            path=cookie.path,
            secure=self.is_secure,
            httponly=True,
            samesite="Strict",
        )

    def policy(self, nonce: str | None) -> str:
        """What the browser may load for a page of ours: our own script and style, no other."""
        own = "'self'" if nonce is None else f"'nonce-{nonce}'"
        return (
            f"default-src 'none'; script-src {own}; style-src {own}; img-src 'self'; "
            f"connect-src 'self' {self._socket_origin}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )

    def _render(self, page: Page) -> Response:
        nonce = None if page.is_same_for_all else tokens.mint_identifier()
        visit: Visit | None = g.get("visit")
        looked_at = page.words.get("now", self.clock.now())
        words = {
            "visit": visit or Visit(None, ""),
            "pages": PAGES,
            "path": request.path,
            "nonce": nonce,
            "now": looked_at,
            "lag": lambda: max(0, self.clock.now() - looked_at) // (SECOND // 1000),
            "here": request.path.rpartition("/")[0] or "/" if request.method == "POST" else "",
            "test_mode": self.settings.test_mode,
            "weak_durability": self.settings.allow_weak_durability,
            "version": __version__,
            "public_url": self.settings.public_url,
            "refresh": 0,
            "feed": "",
            **page.words,
        }
        response = Response(show.render(page.template, words), page.status, mimetype="text/html")
        response.headers["Content-Security-Policy"] = self.policy(nonce)
        for name, value in page.headers.items():
            response.headers[name] = value
        return response
