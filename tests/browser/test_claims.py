"""The page of claims in a real browser."""

from typing import Any

import pytest

from tests.browser.conftest import Visitor, sign_in
from tests.real.api import Api
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]
NST = "nst_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


def test_an_abandoned_claim_is_released_with_a_reason_and_the_next_caller_may_act(
    visitor: Visitor, house: RunningServer
) -> None:
    page = visitor().new_page()
    sign_in(page, house)
    names: dict[str, Any] = {"namespace": "billing", "namespace_token": NST, "action_key": "charge <b>1042</b>"}
    with Api(house.port) as api:
        claimed = api.post("/once-key", **names, lease_ttl=600)
        assert claimed["status"] == "claimed"
        page.goto(house.url + "/claims")
        row = page.locator("tbody tr", has_text="charge <b>1042</b>")
        assert "in_progress" in row.inner_text()
        row.get_by_role("link").click()
        page.get_by_label("Fencing token").fill(str(claimed["fencing_token"] + 1))
        page.get_by_label("Reason").fill("gone")
        page.get_by_role("button", name="Release").click()
        page.get_by_text("Nothing was released").wait_for()
        assert api.post("/once-key", **names)["status"] == "in_progress"
        page.goto(house.url + "/claims")
        row.get_by_role("link").click()
        page.get_by_label("Reason").fill("its worker is gone")
        page.get_by_role("button", name="Release").click()
        page.get_by_text("No action is claimed and unfinished.").wait_for()
        again = api.post("/once-key", **names)
        assert again["status"] == "claimed"
        assert again["fencing_token"] > claimed["fencing_token"]
        api.post("/once-key/complete", **names, result=1)
        page.goto(house.url + "/claims?show=completed")
        assert "completed" in row.inner_text()
        page.goto(house.url + "/audit")
        assert "claim.release" in page.locator("tbody tr").first.inner_text()
