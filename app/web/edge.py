"""What every JSON route shares, in one place and one order.

Transport (413, 415, a body that is cut short or late), query string, daily limit, then the route: its JSON, members,
authorization and decision. Every answer gets its request id, is never cached and never sniffed. A fault tells the
caller a request id and nothing else.

Flask's contexts, matching and response cost as much as the rest of a lease's way through this process. So a JSON route
whose path is fixed is looked up by method and path before Flask is asked, and answered by the very function that its
Flask view calls.
"""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from flask import Blueprint, Flask, Response, request
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from app.clock import monotonic
from app.core.limits import Counted, Exhausted
from app.push.seats import Full
from app.services.limits import DailyLimit
from app.services.ports import HungUp, Unavailable
from app.web import address, body
from app.web.connection import Connection
from app.web.exchange import Exchange, here
from app.web.log import RequestLog
from app.web.tally import RequestTally
from app.web.traces import Traces
from app.wire import errors
from app.wire.codes import Code
from app.wire.reply import Refused, Reply, Sent, refusal

_log = logging.getLogger("fencepost.web")
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*) *", re.ASCII)


class AddressPolicy(NamedTuple):
    """Who is counted: `mode` is "on", "off" or "auto" (everybody but local peers that no proxy stands before)."""

    mode: str
    trusted_proxies: int


@dataclass(frozen=True, slots=True)
class Call:
    """One request as a route sees it: the body's bytes, who is on the other end."""

    body: bytes
    environ: Mapping[str, Any]
    connection: Connection
    address: str | None
    """The address under which it is counted, None for one that is not."""

    def bearer(self) -> str:
        """The token of the Authorization header. Raises Refused with 401."""
        found = _BEARER.fullmatch(self.environ.get("HTTP_AUTHORIZATION") or "")
        if found is None:
            raise Refused(errors.token_required())
        return found.group(1)


_SERVER_METHODS = ("GET", "HEAD", "OPTIONS", "POST")
_DIRECT = "fencepost.direct"
_FOR_PROGRAMS = ("/services/", "/once-key", "/credits/", "/receipts", "/mcp", "/.well-known/")
_AS_PAGE = "fencepost.as_page"
AsPage = Callable[[Reply], Response]
Route = Callable[..., Reply]
Direct = Callable[[], Sent]
Made = TypeVar("Made")


class Edge:
    """Binds routes to blueprints and answers for them."""

    def __init__(self, requests: DailyLimit, policy: AddressPolicy, *, body_deadline_seconds: float) -> None:
        self._requests = requests
        self._policy = policy
        self._body_deadline = body_deadline_seconds
        self._warned_of_proxy = False

    def route(
        self, blueprint: Blueprint, rule: str, route: Route, *, method: str = "POST", cap: int = 0, query: bool = False
    ) -> None:
        """Serve `route(call, **path)` at the rule. `cap` bytes of body at most; `query` allows a query string."""

        def serve(**path: str) -> Sent:
            return here().answer(self.attempt(lambda: route(self._call(cap, query), **path)))

        def bind(state: BlueprintSetupState) -> None:
            self.answer_directly(state, method, rule, serve)

        view = self.view(serve)
        blueprint.add_url_rule(rule, endpoint=f"{method}{rule.replace('.', '-')}", view_func=view, methods=[method])
        if method == "POST" and "<" not in rule:
            blueprint.record(bind)

    def answer_directly(self, state: BlueprintSetupState, method: str, rule: str, make: Direct) -> None:
        """Answer this method at exactly this rule of the blueprint by what is made, without asking Flask."""
        state.app.extensions[_DIRECT][method, f"{state.url_prefix or ''}{rule}"] = make

    def view(self, make: Callable[..., Sent]) -> Callable[..., Response]:
        """A Flask view that answers what is made."""
        return lambda **path: _response(make(**path))

    def answer(self, make: Callable[[], Reply]) -> Response:
        """Run it and make a response of what comes, a refusal or a fault included."""
        return respond(self.attempt(make))

    def attempt(self, make: Callable[[], Made]) -> Made | Reply:
        """What it makes, or the reply for the refusal or the fault that it ends in."""
        try:
            return make()
        except Refused as refused:
            return refused.reply
        except Unavailable as away:
            return errors.unavailable(committed=away.committed, retry_after_seconds=away.retry_after_seconds)
        except Full as full:
            return errors.too_many_waiters(full.retry_after_seconds)
        except HungUp:
            return errors.hung_up()
        except Exception:  # noqa: BLE001 - the last resort: told in the log, a bare 500 outside
            _log.exception("request %s failed", here().request_id)
            return errors.internal(here().request_id)

    def body(self, cap: int, media: str = "application/json") -> bytes:
        """The body of the request at hand. Raises Refused with 400, 408, 413 or 415."""
        return body.read(here().environ, cap, self._body_deadline, media)

    def address(self) -> str:
        """Where the request at hand comes from, as far as it can be believed; IPv6 by /64."""
        return address.counted_as(address.of_client(here().environ, self._policy.trusted_proxies))

    def request_id(self) -> str:
        """The request's name in the log."""
        return here().request_id

    def told(self, outcome: str) -> None:
        """The word for the log of the request at hand."""
        here().outcome = outcome

    def counted(self) -> str | None:
        """Count the request at hand: the address that it was counted under. Raises Refused with 429."""
        counted_as = self.client(here().environ)
        self.count(counted_as)
        return counted_as

    def caller(self) -> Connection:
        """The connection of the request at hand."""
        return Connection(here().environ)

    def environ(self) -> Mapping[str, Any]:
        """The WSGI environment of the request at hand."""
        return here().environ

    def send(self, status: int, content: bytes, headers: Mapping[str, str], outcome: str) -> Sent:
        """An answer with the headers of every answer; `outcome` is the word for the log."""
        return here().send(status, content, headers, outcome)

    def client(self, environ: Mapping[str, Any]) -> str | None:
        """The address to count a request under, or None where it is not counted."""
        mode, trusted = self._policy
        if mode == "off":
            return None
        found = address.of_client(environ, trusted)
        if mode == "auto":
            peer = environ.get("REMOTE_ADDR") or ""
            if not address.is_forwarded(environ):
                return None if address.is_local(peer) else address.counted_as(found)
            if trusted == 0:
                self._warn_of_proxy()
        return address.counted_as(found)

    def count(self, counted_as: str | None) -> None:
        """Count one request of an address. Raises Refused with 429."""
        if counted_as is None:
            return
        taken = self._requests.take(counted_as)
        here().rate_headers = rate_headers(taken)
        if isinstance(taken, Exhausted):
            raise Refused(errors.rate_limited(taken.reset_seconds, limit=taken.limit))

    def _call(self, cap: int, query: bool) -> Call:
        environ = here().environ
        read = self.body(cap)
        if environ.get("QUERY_STRING") and not query:
            raise Refused(errors.query_not_allowed())
        counted_as = self.counted()
        return Call(read, environ, Connection(environ), counted_as)

    def _warn_of_proxy(self) -> None:
        if not self._warned_of_proxy:
            self._warned_of_proxy = True
            _log.warning(
                "a request carries forwarding headers but no proxy is trusted: everybody behind it is counted as "
                "one address; set FENCEPOST_TRUSTED_PROXIES to the number of proxies in front of this server"
            )


def rate_headers(taken: Counted | Exhausted) -> dict[str, str]:
    """What is left of the day's allowance, as headers."""
    remaining = taken.remaining if isinstance(taken, Counted) else 0
    return {
        "RateLimit-Limit": str(taken.limit),
        "RateLimit-Remaining": str(remaining),
        "RateLimit-Reset": str(taken.reset_seconds),
    }


def respond(reply: Reply) -> Response:
    """A response with the headers that every answer carries."""
    return _response(here().answer(reply))


def _response(sent: Sent) -> Response:
    return Response(sent.content, sent.status, sent.headers)


def refuse_browsers_with(app: Flask, as_page: AsPage) -> None:
    """What no route answers is answered with a page where a browser asks outside the interfaces for programs."""
    app.extensions[_AS_PAGE] = as_page


def _asks_for_page() -> bool:
    is_browser = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("Accept", "")
    return is_browser and not request.path.startswith(_FOR_PROGRAMS)


def install(app: Flask, log: RequestLog, tally: RequestTally | None = None, traces: Traces | None = None) -> None:
    """Answer what no route answers: unknown paths, wrong methods, what the framework refuses. Log every request.

    Each is also counted in `tally`, and told to `traces`.
    """
    counted = RequestTally() if tally is None else tally
    direct: dict[tuple[str, str], Direct] = app.extensions.setdefault(_DIRECT, {})
    through_flask = app.wsgi_app

    def serve(environ: dict[str, Any], start_response: Any) -> Any:
        exchange = Exchange(environ)
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        known = direct.get((method, path))
        if known is None or "HTTP_UPGRADE" in environ:
            return through_flask(environ, start_response)
        sent = known()
        note(exchange, method, path, sent.status)
        start_response(sent.line(), [*sent.headers, ("Content-Length", str(len(sent.content)))])
        return [sent.content]

    def note(exchange: Exchange, method: str, route: str, status: int) -> None:
        seconds = monotonic() - exchange.began
        counted.note(method, route, status, exchange.outcome, seconds)
        log.request(
            request_id=exchange.request_id,
            method=method,
            route=route,
            status=status,
            outcome=exchange.outcome,
            seconds=seconds,
        )
        if traces is not None:
            traces.note(exchange.environ, exchange.request_id, route, status, exchange.outcome, seconds)

    def finish(response: Response) -> Response:
        exchange = here()
        if "X-Request-Id" not in response.headers:  # a page or a document that did not come through `send`
            response.headers["X-Request-Id"] = exchange.request_id
            response.headers["X-Content-Type-Options"] = "nosniff"
        if "Allow" in response.headers:  # Flask lists a set, in an order of its own in each process
            response.headers["Allow"] = ", ".join(sorted(response.allow))
        route = request.url_rule.rule if request.url_rule is not None else "unknown"
        note(exchange, request.method, route, response.status_code)
        return response

    app.wsgi_app = serve  # type: ignore[method-assign]
    app.after_request(finish)

    def answer(reply: Reply) -> Response:
        as_page: AsPage | None = app.extensions.get(_AS_PAGE)
        return as_page(reply) if as_page is not None and _asks_for_page() else respond(reply)

    def refuse(fault: HTTPException) -> Response:
        if isinstance(fault, MethodNotAllowed):
            return answer(errors.method_not_allowed(fault.valid_methods or ()))
        if fault.code == 404:
            is_about_server = request.method == "OPTIONS" and request.environ["PATH_INFO"] == "*"
            return answer(errors.options(_SERVER_METHODS) if is_about_server else errors.unknown_route())
        _log.warning("request %s refused by the framework: %s", here().request_id, fault.code)
        return respond(refusal(Code.INVALID_REQUEST, error="The request cannot be read as HTTP asks"))

    app.register_error_handler(HTTPException, refuse)
