"""The page of what needs a person, on both engines: it appears, is decided, and everybody who waits is told."""

import json
import re
import threading
from collections.abc import Iterator
from time import sleep
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from websockets.sync.client import connect

from tests.browser.conftest import NAME, Visitor, sign_in
from tests.real.api import V1, Answer, Api, Crowd
from tests.real.handoffs import Made, bearer, make, wait
from tests.real.ports import free_port
from tests.real.server import ENGINES, RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]
NST = "nst_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


@pytest.fixture(scope="module", params=[pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)])
def house(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    """A server with the operator Ann on each engine; the webhooks of its handoffs may go to this machine."""
    assert request.param in ENGINES
    environment = {"FENCEPOST_NOTIFY_ALLOW": "127.0.0.0/8"}
    with RunningServer(engine=request.param, environment=environment) as running:
        yield running


@pytest.fixture
def api(house: RunningServer) -> Iterator[Api]:
    with Api(house.port) as api:
        yield api


def follow(server: RunningServer, made: Made, frames: list[dict[str, object]], ready: threading.Event) -> None:
    """The agent's socket: every frame until the end."""
    url = f"ws://127.0.0.1:{server.port}/services/v1/handoff/{made.name}/stream"
    with connect(url, additional_headers=bearer(made.owner)) as socket:
        for text in socket:
            frames.append(json.loads(text))
            ready.set()
            if frames[-1]["t"] == "end":
                return


def show_new(page: Page, wanted: str) -> None:
    """Wait for the row, behind the button of new ones if there are rows already."""
    link = page.get_by_role("link", name=wanted)
    fresh = page.locator("#new-rows")
    expect(link.or_(fresh).first).to_be_visible()
    if fresh.is_visible():
        fresh.click()
    expect(link).to_be_visible()


def test_nothing_to_do_says_so(house: RunningServer, ann: Page) -> None:
    assert ann.url == house.url + "/"
    expect(ann.get_by_role("heading", name="Now")).to_be_visible()
    expect(ann.get_by_text("No handoff waits for a person")).to_be_visible()
    expect(ann.get_by_text("Nothing was decided here yet.")).to_be_visible()
    expect(ann.get_by_text("no webhook fails")).to_be_visible()


def test_a_handoff_for_a_person_appears_without_reload_is_decided_and_everybody_is_told(
    house: RunningServer, ann: Page, api: Api
) -> None:
    expect(ann.locator("#connection")).to_have_text("live")
    ann.evaluate("window.sameDocument = true")
    made = make(api, title="Deploy 7 to production", audience="person", payload={"version": 7})
    told: list[Answer] = []
    frames: list[dict[str, object]] = []
    ready = threading.Event()

    def agent() -> None:
        with Api(house.port) as waiting:
            told.append(wait(waiting, made, 25))

    threads = [
        threading.Thread(target=agent),
        threading.Thread(target=follow, args=(house, made, frames, ready)),
    ]
    for thread in threads:
        thread.start()
    assert ready.wait(20)
    show_new(ann, "Deploy 7 to production")
    expect(ann.locator("#rows tr", has_text="Deploy 7")).to_contain_text("owner")
    assert ann.evaluate("window.sameDocument") is True
    ann.get_by_role("link", name="Deploy 7 to production").click()
    ann.get_by_label("Note").fill("Looks good to me")
    ann.get_by_role("button", name="done", exact=True).click()
    ann.get_by_role("button", name="Confirm").click()
    expect(ann.get_by_role("heading", name="Moved to done")).to_be_visible()
    for thread in threads:
        thread.join(30)
    assert told[0]["wait_reason"] == "ended"
    assert [entry["by"] for entry in told[0]["history"]] == ["owner", "operator"]
    last = told[0]["history"][-1]
    assert (last["actor"], last["note"]) == (NAME, "Looks good to me")
    assert frames[-1]["t"] == "end"
    ann.get_by_role("link", name="Now", exact=True).click()
    expect(ann.get_by_text("Last decided:")).to_contain_text(
        "Deploy 7 to production offered → done by the operator ann"
    )


def test_what_expires_soon_is_there_whoever_it_is_for(house: RunningServer, ann: Page, api: Api) -> None:
    expect(ann.locator("#connection")).to_have_text("live")
    make(api, title="In an hour", ttl_seconds=3_600)
    make(api, title="In a minute", ttl_seconds=60)
    show_new(ann, "In a minute")
    expect(ann.locator("#rows tr", has_text="In a minute")).to_contain_text("expires soon")
    expect(ann.get_by_text("In an hour")).to_have_count(0)


def test_moves_that_are_refused_in_a_burst_are_there(house: RunningServer, ann: Page, api: Api) -> None:
    expect(ann.locator("#connection")).to_have_text("live")
    made = make(api, title="Out of step")
    refused = {"from": "working"}
    for _ in range(2):
        assert api.post(f"{made.path}/done", headers=bearer(made.owner), **refused).status == 409
    ann.reload()
    expect(ann.get_by_text("Out of step")).to_have_count(0)
    expect(ann.locator("#connection")).to_have_text("live")
    assert api.post(f"{made.path}/done", headers=bearer(made.owner), **refused).status == 409
    line = ann.get_by_role("region", name="Moves refused")
    expect(line).to_contain_text("Out of step stands in offered; 3 moves were refused")
    assert api.post(f"{made.path}/done", headers=bearer(made.owner), **{"from": "offered"}).status == 200
    expect(line).to_have_count(0)


def test_a_lease_that_its_owner_lost_is_there_until_somebody_takes_it(
    house: RunningServer, ann: Page, api: Api
) -> None:
    ns = api.lease("namespace")["namespace"]
    api.lease("acquire", key="nightly", namespace=ns, ttl_seconds=1, holder="worker <7>")
    while api.lease("status", key="nightly", namespace=ns)["status"] == "held":
        sleep(0.1)
    ann.reload()
    expect(ann.get_by_role("region", name="Leases lost")).to_contain_text("worker <7> lapsed")
    expect(ann.locator("#connection")).to_have_text("live")
    api.lease("acquire", key="nightly", namespace=ns, ttl_seconds=60)
    expect(ann.get_by_text("worker <7>")).to_have_count(0)


def test_a_webhook_that_fails_is_there_and_sent_again_from_the_deliveries(
    house: RunningServer, ann: Page, api: Api
) -> None:
    expect(ann.locator("#connection")).to_have_text("live")
    made = make(api, title="Tell somebody", notify_url=f"http://127.0.0.1:{free_port()}/hook?<b>")
    api.post(f"{made.path}/accepted", headers=bearer(made.owner), **{"from": "offered"})
    expect(ann.get_by_role("region", name="Webhooks failing")).to_contain_text("last no connection")
    ann.get_by_role("link", name="Deliveries", exact=True).click()
    row = ann.locator("#rows tr")
    expect(row).to_contain_text("retrying")
    expect(row).to_contain_text("/hook?<b>")
    expect(row).to_contain_text("1 of 5")
    again = row.get_by_role("button", name="Resend")
    again.dblclick()
    ann.wait_for_url("**/deliveries?show=waiting")
    expect(row).to_contain_text("no connection")
    ann.goto(house.url + "/audit")
    expect(ann.locator("tbody tr", has_text="notice.resend")).to_have_count(1)
    for word in (NAME, made.name, "version 2"):
        expect(ann.locator("tbody tr", has_text="notice.resend")).to_contain_text(word)


def test_a_break_grants_the_first_in_line_and_tells_the_old_owner(house: RunningServer, ann: Page, api: Api) -> None:
    ns = api.lease("namespace")["namespace"]
    held = api.lease("acquire", key="stuck", namespace=ns, ttl_seconds=600, holder="it hangs")
    with Crowd(house.port, 1) as crowd:
        waiting = crowd.lease("acquire", key="stuck", namespace=ns, wait_seconds=25)
        ann.get_by_role("link", name="Leases", exact=True).click()
        row = ann.locator("tbody tr", has_text="it hangs")
        expect(row.get_by_role("cell").nth(4)).to_have_text("1")
        row.get_by_role("link").click()
        ann.get_by_label("Reason").fill("its machine is gone")
        ann.get_by_role("button", name="Break").click()
        granted = waiting.result()
    assert granted["fencing_token"] > held["fencing_token"]
    lost = api.lease("renew", key="stuck", namespace=ns, owner_token=held["owner_token"])
    assert (lost.status, lost["status"], lost["reason"]) == (409, "lost", "broken")


def test_an_abandoned_claim_is_released(house: RunningServer, visitor: Visitor, api: Api) -> None:
    page = visitor().new_page()
    sign_in(page, house)
    names: dict[str, Any] = {"namespace": "billing", "namespace_token": NST, "action_key": "charge 1042"}
    assert api.post("/once-key", **names, lease_ttl=600)["status"] == "claimed"
    page.get_by_role("link", name="Claims", exact=True).click()
    page.get_by_role("link", name="charge 1042").click()
    page.get_by_label("Reason").fill("its worker is gone")
    page.get_by_role("button", name="Release").click()
    page.get_by_text("No action is claimed and unfinished.").wait_for()
    assert api.post("/once-key", **names)["status"] == "claimed"


def test_times_left_end_in_a_word_and_not_in_a_zero(house: RunningServer, ann: Page, api: Api) -> None:
    ns = api.lease("namespace")["namespace"]
    api.lease("acquire", key="short", namespace=ns, ttl_seconds=3, holder="short one")
    ann.goto(house.url + "/leases")
    row = ann.locator("tbody tr", has_text="short one")
    expect(row.locator(".left")).to_have_text(re.compile("lapsed"))
    assert api.get(f"{V1}/handoff/none").status in (401, 404)
