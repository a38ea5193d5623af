"""What the guard promises, judged by the network itself: no packet to an address that is not allowed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.push.forms import REFUSED
from tests.push.namespace import FORBIDDEN, PUBLIC, PUBLIC6

ROOT = Path(__file__).parents[2]
DNS = "udp 127.0.0.1 5353"


@pytest.mark.long
def test_no_packet_leaves_to_an_address_that_is_not_allowed() -> None:
    command = ["unshare", "--net", sys.executable, "-m", "tests.push.namespace"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=600, text=True)
    assert ran.returncode == 0, f"needs root and iproute2 (apt-get install iproute2)\n{ran.stderr}"
    told = json.loads(ran.stdout)
    assert told["control"] == ["tcp 10.0.0.1 80"], "the capture sees what a sender without a guard does"

    assert told["literals sent"] == {"refused": len(REFUSED)}
    assert told["literals"] == []
    assert told["names sent"] == {"refused": 2 * len(FORBIDDEN)}
    assert told["names"] == [DNS]
    assert told["rebinding"] == [DNS, f"tcp {PUBLIC} 80"] or told["rebinding"] == [f"tcp {PUBLIC} 80", DNS]
    assert 100 <= told["rebinding sent"] <= 400, "some tries met the public address, some the other"
    assert told["public sent"] == {"200": 3}
    assert set(told["public"]) <= {DNS, f"tcp {PUBLIC} 80", f"tcp {PUBLIC6} 80"}
    assert f"tcp {PUBLIC6} 80" in told["public"]
