"""The sender against a real store and real receivers on the loopback."""

import gc
import resource
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import gevent
import pytest
from standardwebhooks import Webhook as Verifier

from app.clock import ManualClock, monotonic
from app.core.instants import SECOND
from app.core.outbox import Again, Answered, Delivery, Notice, Over, Undelivered
from app.push.hub import Hub
from app.push.names import Names
from app.push.sender import WebhookSender
from app.push.webhook import Webhook
from app.services.outbox import CLAIM_SECONDS, Outbox, announce
from app.storage.engine import Unavailable
from app.storage.sqlite import SqliteEngine
from app.tokens import notify_secret
from tests.push.nameserver import name_server
from tests.push.receivers import KEY, LOOPBACK, Behaviour, drips, floods, receiver, says, says_nothing
from tests.storage.shelf import PATIENT

LIFE = 86_400


class Post:
    """A store, its sender, and the moves that give it work."""

    def __init__(self, path: Path, *, deadline_seconds: float = 5.0, nameserver: int = 53) -> None:
        self.clock = ManualClock()
        self.hub = Hub()
        self.engine = SqliteEngine(
            path,
            clock=self.clock,
            on_commit=self.hub.ring,
            **PATIENT,
        )
        self.outbox = Outbox(self.engine, fraction=lambda: 0.5)
        self.names = Names(server="127.0.0.1", port=nameserver)
        webhook = Webhook(policy=LOOPBACK, lookup=self.names, server_keys=[KEY], deadline_seconds=deadline_seconds)
        self.sender = WebhookSender(self.outbox, webhook.send, self.hub)
        self.count = 0
        self.is_open = True

    def move(self, url: str) -> str:
        self.count += 1
        handoff_id = f"{self.count:032x}"
        self.engine.run(
            lambda tx: announce(
                tx,
                notify_url=url,
                result_url=f"http://fence.example/services/v1/handoff/{handoff_id}",
                handoff_id=handoff_id,
                version=2,
                state="accepted",
                previous="offered",
                by="receiver",
                ended=False,
                changed_at=tx.now(),
                expires_at=tx.now() + LIFE * SECOND,
            )
        )
        return handoff_id

    def kept(self, handoff_id: str) -> Delivery:
        (delivery,) = self.outbox.of_handoff(handoff_id)
        return delivery

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.sender.stop(grace_seconds=0)
            self.names.close()
            self.engine.close()


@pytest.fixture
def posts(tmp_path: Path) -> Iterator[Callable[..., Post]]:
    opened: list[Post] = []

    def open_(**settings: float) -> Post:
        post = Post(tmp_path / "fencepost.db", **settings)  # type: ignore[arg-type]
        opened.append(post)
        return post

    yield open_
    for post in opened:
        post.close()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Let the others run until it is so; an error when it takes too long."""
    with gevent.Timeout(seconds):
        while not condition():
            gevent.sleep(0.01)


def test_a_move_is_told_to_its_receiver_and_written_down(posts: Callable[..., Post]) -> None:
    post = posts()
    post.sender.start()
    with receiver() as seen:
        moved = post.move(seen.url())
        until(lambda: post.kept(moved).ending == "delivered")
    assert seen.connections == 1
    assert Verifier(notify_secret(KEY, moved)).verify(seen.body(), seen.headers())["handoff_id"] == moved
    assert post.kept(moved).result == "200"
    assert post.sender.results == {"200": 1}


def test_a_notice_that_was_committed_before_a_restart_is_sent_after_it(posts: Callable[..., Post]) -> None:
    post = posts()
    with receiver() as seen:
        moved = post.move(seen.url())
        post.close()
        again = posts()
        again.sender.start()
        until(lambda: again.kept(moved).ending == "delivered")
        assert seen.connections == 1


def test_a_retry_comes_by_the_deciding_clock_without_any_ring(posts: Callable[..., Post]) -> None:
    post = posts()
    post.sender.start()
    answers = iter(
        (b"HTTP/1.1 500 No\r\n\r\n", b"HTTP/1.1 503 No\r\nRetry-After: 100\r\n\r\n", b"HTTP/1.1 204 OK\r\n\r\n")
    )
    with receiver(lambda peer: peer.sendall(next(answers))) as seen:
        moved = post.move(seen.url())
        until(lambda: post.kept(moved).result == "500")
        post.clock.advance(15, microseconds=-1)
        gevent.sleep(1.5)
        assert seen.connections == 1
        post.clock.advance(microseconds=1)
        until(lambda: post.kept(moved).result == "503")
        post.clock.advance(100, microseconds=-1)
        gevent.sleep(1.5)
        assert seen.connections == 2
        post.clock.advance(microseconds=1)
        until(lambda: post.kept(moved).ending == "delivered")
    assert {seen.headers(number)["webhook-id"] for number in range(3)} == {f"msg_{moved}_2"}
    assert post.kept(moved).tries == 3


def test_a_try_that_a_kill_cut_short_is_made_again_when_its_claim_lapses(posts: Callable[..., Post]) -> None:
    post = posts()
    with receiver() as seen:
        moved = post.move(seen.url())
        assert len(post.outbox.claim(room=1, per_receiver=1, sending=())) == 1  # and the process dies here
        post.sender.start()
        gevent.sleep(1.2)
        assert seen.connections == 0
        post.clock.advance(CLAIM_SECONDS)
        until(lambda: post.kept(moved).ending == "delivered")
    assert (seen.connections, post.kept(moved).tries) == (1, 2)


def test_one_dead_receiver_takes_a_few_places_and_the_others_go_on(posts: Callable[..., Post]) -> None:
    post = posts()
    with receiver(says_nothing) as dead, receiver() as alive:
        for _ in range(30):
            post.move(dead.url())
        moved = post.move(alive.url())
        post.sender.start()
        until(lambda: post.kept(moved).ending == "delivered", 4)
        assert dead.connections <= 4


MISBEHAVIOURS: list[Behaviour] = [
    says_nothing,
    drips(b"HTTP/1.1 500 No\r\n", b"x"),
    drips(b"", b"H", pause_seconds=0.2),
    floods(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100),
    floods(b"HTTP/1.1 500 No\r\nX: ", b"y" * 100),
]


def test_60_receivers_that_hang_drip_and_flood_and_a_dead_name_server_cost_no_memory_and_no_one_else(
    posts: Callable[..., Post],
) -> None:
    """The good receiver's notices arrive at the pace that they have alone, while all the others misbehave."""
    with ExitStack() as stack:
        stub = stack.enter_context(name_server(lambda name, _kind: None if "dead" in name else ["127.0.0.1"]))
        post = posts(nameserver=stub.port)
        bad = [stack.enter_context(receiver(MISBEHAVIOURS[number % len(MISBEHAVIOURS)])) for number in range(60)]
        good = stack.enter_context(receiver())
        post.sender.start()

        def deliver_ten() -> float:
            began, before = monotonic(), good.connections
            for _ in range(10):
                post.move(good.url(host="good.example"))
            until(lambda: good.connections == before + 10)
            return monotonic() - began

        alone = deliver_ten()
        for peer in bad:
            for _ in range(3):
                post.move(peer.url())
        for number in range(60):
            post.move(f"http://dead{number}.example:8080/")
        gevent.sleep(0.5)
        gc.collect()
        memory = _resident_kib()
        among = [deliver_ten() for _ in range(5)]
        assert sorted(among)[2] < 10 * alone + 2
        gc.collect()
        assert _resident_kib() - memory < 20_000
        until(lambda: sum(post.sender.results.values()) >= 100)


def _resident_kib() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 1024


class Away:
    """An outbox whose store is away for a while."""

    def __init__(self, inner: Outbox, failures: int) -> None:
        self.inner = inner
        self.failures = failures

    def _may_fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable("the disk is stuck", committed="no")

    def claim(self, *, room: int, per_receiver: int, sending: list[Notice]) -> list[Delivery]:
        self._may_fail()
        return self.inner.claim(room=room, per_receiver=per_receiver, sending=sending)

    def record(self, delivery: Delivery, result: Answered | Undelivered) -> Again | Over | None:
        self._may_fail()
        return self.inner.record(delivery, result)


def test_a_store_that_is_away_only_delays(posts: Callable[..., Post]) -> None:
    post = posts()
    away = Away(post.outbox, failures=2)
    webhook = Webhook(policy=LOOPBACK, lookup=post.names, server_keys=[KEY])
    sender = WebhookSender(away, webhook.send, post.hub)  # type: ignore[arg-type]
    with receiver(says(b"HTTP/1.1 200 OK\r\n\r\n")) as seen:
        moved = post.move(seen.url())
        sender.start()
        until(lambda: seen.connections == 0 and away.failures == 0)
        away.failures = 0
        until(lambda: post.kept(moved).ending == "delivered")
        moved = post.move(seen.url())
        until(lambda: seen.connections == 2)
        until(lambda: post.kept(moved).ending == "delivered")
    sender.stop()


def test_a_result_that_could_not_be_written_at_once_is_written_and_the_notice_sent_once(
    posts: Callable[..., Post],
) -> None:
    post = posts()
    away = Away(post.outbox, failures=0)
    webhook = Webhook(policy=LOOPBACK, lookup=post.names, server_keys=[KEY])

    def send(notice: Notice) -> Answered | Undelivered:
        result = webhook.send(notice)
        away.failures = 1
        return result

    sender = WebhookSender(away, send, post.hub)  # type: ignore[arg-type]
    with receiver() as seen:
        moved = post.move(seen.url())
        sender.start()
        until(lambda: post.kept(moved).ending == "delivered")
        assert (seen.connections, post.kept(moved).tries) == (1, 1)
    sender.stop()


def test_stopping_lets_go_of_receivers_that_hang(posts: Callable[..., Post]) -> None:
    post = posts()
    post.sender.start()
    with receiver(says_nothing) as seen:
        post.move(seen.url())
        until(lambda: post.sender.under_way() == 1)
        began = monotonic()
        post.hub.stop()
        post.sender.stop(grace_seconds=0.2)
        assert monotonic() - began < 2
        assert post.sender.under_way() == 0
