"""Signing in and out.

Before there is a session, a form is tied to a cookie of its own (`fencepost_visit`), so that nobody signs somebody
else in unasked. The session's token is minted at the sign-in: one that was planted in the browser before is worth
nothing after. The printed link carries its code in the fragment, which no browser sends; the page's script puts it
into the field, and without the script it is pasted there.
"""

from urllib.parse import parse_qs

from flask import Blueprint, Response, request

from app import tokens
from app.core.person import CodeRefused, NameTaken, PersonMalformed, SignedIn, SignInPaused, SignInRefused
from app.dashboard.gate import Cookie, Gate, Goto, Page, Visit
from app.services.passwords import LineFull
from app.services.people import FirstOutcome, SignInOutcome

_VISIT_SECONDS = 3600
_CAP = 8 * 1024


def add_routes(routes: Blueprint, gate: Gate) -> None:
    """/sign-in and /sign-out."""
    desk = _Desk(gate)
    gate.open(routes, "/sign-in", desk.show, visit=desk.visitor)
    gate.open(routes, "/sign-in", desk.take, visit=desk.proven_visitor, method="POST")
    gate.open(routes, "/sign-out", desk.leave, visit=lambda: gate.proven(gate.signed_in(), _CAP), method="POST")


class _Desk:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._cookie = gate.cookie_name("fencepost_visit")

    def visitor(self) -> Visit:
        token = request.cookies.get(self._cookie, "") or tokens.mint_identifier()
        return Visit(None, self._gate.sealed("visit:" + token), token, query=request.args.to_dict())

    def proven_visitor(self) -> Visit:
        if not request.cookies.get(self._cookie):
            self._gate.check_origin()
        return self._gate.proven(self.visitor(), _CAP)

    def show(self, visit: Visit) -> Response:
        response = self._gate.respond(self._page(visit, next_path=_local(visit.query.get("next", ""))))
        self._gate.set_cookie(response, Cookie(self._cookie, visit.token, _VISIT_SECONDS))
        return response

    def take(self, visit: Visit) -> Page | Goto:
        name, password = visit.first("name").strip(), visit.first("password")
        code = _code(visit.first("code"))
        next_path = _local(visit.first("next"))
        people, address = self._gate.people, self._gate.edge.address()
        outcome: FirstOutcome | SignInOutcome
        try:
            if code:
                outcome = people.sign_in_first(code=code, name=name, password=password, address=address)
            else:
                outcome = people.sign_in(name=name, password=password, address=address)
        except LineFull as full:
            outcome = SignInPaused(full.retry_after_seconds)
        match outcome:
            case SignedIn(token):
                return Goto(next_path, (Cookie(self._cookie, "", 0), self._gate.session_cookie(token)))
            case SignInRefused():
                return self._page(visit, name, "Name or password is wrong.", 403, next_path=next_path)
            case SignInPaused(seconds):
                said = f"Too many tries. Try again in {seconds} s."
                return self._page(visit, name, said, 429, {"Retry-After": str(seconds)}, next_path=next_path)
            case CodeRefused():
                said = (
                    "This sign-in code does not work: it is wrong, a day old, or somebody is operator by now. "
                    "A start without an operator prints a new one; an operator is added with "
                    "`fencepost-server operator add NAME`."
                )
                return self._page(visit, name, said, 403, next_path=next_path)
            case NameTaken():
                return self._page(visit, name, "Somebody has this name already.", 409, next_path=next_path)
            case PersonMalformed(error):
                return self._page(visit, name, error + ".", 400, next_path=next_path, code=code)

    def leave(self, visit: Visit) -> Goto:
        self._gate.people.sign_out(visit.token)
        return Goto("/sign-in", (self._gate.session_cookie(""),))

    def _page(
        self,
        visit: Visit,
        name: str = "",
        error: str = "",
        status: int = 200,
        headers: dict[str, str] | None = None,
        *,
        next_path: str = "/",
        code: str = "",
    ) -> Page:
        words = {
            "name": name,
            "error": error,
            "code": code,
            "next": next_path,
            "is_first": self._gate.people.awaits_the_first(),
            "visit": Visit(None, visit.csrf),
        }
        return Page("sign_in.html", words, status, headers or {})


def _code(text: str) -> str:
    """The code of a pasted link, or of the code alone."""
    text = text.strip()
    return text.rpartition("#")[2] if "#" in text else text


def _local(path: str) -> str:
    """A path of this server to go on to, never another server's."""
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    if not is_local or not path.isascii() or not path.isprintable() or parse_qs(path.partition("?")[2]).get("next"):
        return "/"
    return path
