"""The server, which also tells of each handoff whether a wait began to listen before a move of it was committed.

From outside nobody can tell a wait that missed a move from one that began after it. Here both are numbered in the
order in which they happened: `GET /test/order/ID` answers `{"listened": …, "committed": …}`, the first of each.
"""

from gevent import monkey

monkey.patch_all()

from collections.abc import Collection  # noqa: E402
from itertools import count  # noqa: E402
from typing import Self  # noqa: E402

from flask import Response, jsonify  # noqa: E402

from app import factory  # noqa: E402
from app.push.hub import Hub, Ticket  # noqa: E402
from app.serving.prepare import prepared  # noqa: E402
from app.settings import load  # noqa: E402

numbers = count(1)
listened: dict[str, int] = {}
committed: dict[str, int] = {}


class NumberingTicket(Ticket):
    """Notes when it listens."""

    def __enter__(self) -> Self:
        entered = super().__enter__()
        for topic in self._topics:
            listened.setdefault(topic, next(numbers))
        return entered


class NumberingHub(Hub):
    """Notes what is committed, at the moment at which those who listen are told."""

    def listen(self, *topics: str) -> Ticket:
        return NumberingTicket(self, topics)

    def committed(self, topics: Collection[str]) -> None:
        for topic in topics:
            committed.setdefault(topic, next(numbers))
        super().committed(topics)


vars(factory)["Hub"] = NumberingHub
application = factory.create_app(prepared(load()))


def order(handoff_id: str) -> Response:
    topic = f"handoff:{handoff_id}"
    return jsonify(listened=listened[topic], committed=committed[topic])


application.add_url_rule("/test/order/<handoff_id>", "order", order)
