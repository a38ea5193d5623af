"""The receivers of docs/webhooks.md are run as they stand there, on a message as it is sent."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from app.core.outbox import Answered
from app.push.webhook import Webhook
from app.tokens import notify_secret
from tests.house.tree import ROOT
from tests.push.receivers import HANDOFF, KEY, LOOPBACK, notice, receiver

RECEIVERS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/webhooks.md").read_text(encoding="utf-8"), re.DOTALL)
SECRET = notify_secret(KEY, HANDOFF)


def arrived(**settings: Any) -> tuple[dict[str, str], bytes]:
    with receiver() as seen:
        sender = Webhook(policy=LOOPBACK, lookup=lambda _: [], server_keys=[b"old" * 9, KEY], **settings)
        assert sender.send(notice(seen.url())) == Answered(200)
    return seen.headers(), seen.body()


@pytest.mark.parametrize("program", RECEIVERS, ids=["library", "standard library"])
def test_a_documented_receiver_takes_ours_and_refuses_the_rest(program: str) -> None:
    names: dict[str, Any] = {}
    exec(program, names)
    verify: Callable[[str, dict[str, str], bytes], dict[str, object]] = names["verify"]
    headers, body = arrived()
    assert verify(SECRET, headers, body) == {"event": "agent_handoff.changed"}
    old = arrived(wall=lambda: time.time() - 400)
    wrong: list[tuple[str, dict[str, str], bytes]] = [
        (SECRET, headers, body + b" "),
        (SECRET, headers | {"webhook-id": headers["webhook-id"][:-1] + "3"}, body),
        (notify_secret(KEY, HANDOFF[::-1]), headers, body),
        (SECRET, *old),
    ]
    for secret, changed, sent in wrong:
        with pytest.raises(Exception, match=r"[Ss]ign|old"):
            verify(secret, changed, sent)
