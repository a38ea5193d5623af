"""The story of a handoff for a person: it appears, the person decides, everybody who waits is told."""

import json
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from websockets.sync.client import connect

from tests.browser.conftest import PASSWORD, Visitor, sign_in
from tests.real.api import Answer, Api
from tests.real.handoffs import Made, bearer, look, make, wait
from tests.real.people import add_person
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]


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


def choose(page: Page, state: str) -> None:
    page.get_by_role("button", name=state, exact=True).click()


def test_a_handoff_for_a_person_appears_is_moved_with_a_note_and_everybody_is_told(
    house: RunningServer, ann: Page, api: Api
) -> None:
    ann.goto(house.url + "/handoffs")
    expect(ann.locator("#connection")).to_have_text("live")
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
    link = ann.get_by_role("link", name="Deploy 7 to production")
    fresh = ann.locator("#new-rows")
    expect(link.or_(fresh)).to_be_visible()
    if fresh.is_visible():
        fresh.click()
    link.click()
    expect(ann.locator("#waiters")).to_contain_text("owner is waiting")
    ann.get_by_label("Note").fill("Looks good to me")
    choose(ann, "done")
    expect(ann.get_by_text("SHA-256")).to_be_visible()
    expect(ann.get_by_text("done is final")).to_be_visible()
    ann.get_by_role("button", name="Confirm").click()
    expect(ann.get_by_role("heading", name="Moved to done")).to_be_visible()
    expect(ann.get_by_text("operator ann")).to_be_visible()
    for thread in threads:
        thread.join(30)
    assert told[0]["wait_reason"] == "ended"
    last = told[0]["history"][-1]
    assert (last["by"], last["actor"], last["note"]) == ("operator", "ann", "Looks good to me")
    assert [frame["t"] for frame in frames][-1] == "end"
    assert any(frame["t"] == "chg" and frame["state"] == "done" for frame in frames)


def test_two_people_at_once_one_wins_the_other_is_told(
    visitor: Visitor, house: RunningServer, ann: Page, api: Api
) -> None:
    assert add_person(house, "bob", PASSWORD).returncode == 0
    bob = visitor().new_page()
    sign_in(bob, house, "bob")
    made = make(api, audience="person")
    for page, state in ((ann, "accepted"), (bob, "returned")):
        page.goto(f"{house.url}/handoffs/{made.name}")
        page.get_by_label("Note").fill(f"{state} it is")
        choose(page, state)
    ann.get_by_role("button", name="Confirm").click()
    expect(ann.get_by_role("heading", name="Moved to accepted")).to_be_visible()
    bob.get_by_role("button", name="Confirm").click()
    expect(bob.get_by_role("alert")).to_contain_text("the operator ann moved it to accepted")
    expect(bob.get_by_text("accepted it is", exact=True)).to_be_visible()
    expect(bob.get_by_text("returned it is", exact=True)).to_be_visible()
    assert look(api, made)["version"] == 2


def test_a_double_click_and_the_back_button_do_nothing_twice(house: RunningServer, ann: Page, api: Api) -> None:
    made = make(api)
    ann.goto(f"{house.url}/handoffs/{made.name}")
    choose(ann, "accepted")
    ann.get_by_role("button", name="Confirm").dblclick()
    expect(ann.get_by_role("heading", name="Moved to accepted")).to_be_visible()
    ann.go_back()
    expect(ann.get_by_role("heading", name="Move")).to_be_visible()
    assert ann.url == f"{house.url}/handoffs/{made.name}"
    expect(ann.locator("#standing")).to_contain_text("version 2")
    ann.go_back()
    ann.go_forward()
    ann.reload()
    expect(ann.get_by_role("heading", name="Move")).to_be_visible()
    seen = look(api, made)
    assert (seen["state"], seen["version"]) == ("accepted", 2)


def test_what_is_being_typed_survives_a_move_by_somebody_else(house: RunningServer, ann: Page, api: Api) -> None:
    made = make(api)
    ann.goto(f"{house.url}/handoffs/{made.name}")
    expect(ann.locator("#connection")).to_have_text("live")
    note = ann.get_by_label("Note")
    note.fill("half a thou")
    api.post(f"{made.path}/working", headers=bearer(made.owner), **{"from": "offered"})
    expect(ann.locator("#news")).to_contain_text("The owner moved it to working")
    expect(ann.get_by_role("button", name="accepted")).to_have_count(0)
    expect(note).to_have_value("half a thou")
    expect(note).to_be_focused()
    choose(ann, "done")
    ann.get_by_role("button", name="Confirm").click()
    expect(ann.get_by_role("heading", name="Moved to done")).to_be_visible()


def test_the_page_tells_when_the_server_is_away_and_comes_back_by_itself(
    visitor: Visitor, server: RunningServer
) -> None:
    page = visitor().new_page()
    sign_in(page, server)
    with Api(server.port) as api:
        made = make(api)
        page.goto(f"{server.url}/handoffs/{made.name}")
        expect(page.locator("#connection")).to_have_text("live")
        server.terminate()
        expect(page.locator("#connection")).to_contain_text("offline since", timeout=30_000)
        expect(page.get_by_role("button", name="accepted", exact=True)).to_be_disabled()
        server.start()
        expect(page.locator("#connection")).to_have_text("live", timeout=60_000)
        expect(page.get_by_role("button", name="accepted", exact=True)).to_be_enabled()


def test_without_a_socket_the_page_polls_and_says_so(house: RunningServer, ann: Page, api: Api) -> None:
    ann.add_init_script("window.WebSocket = class { constructor() { throw new Error('no sockets here'); } };")
    made = make(api)
    ann.goto(f"{house.url}/handoffs/{made.name}")
    expect(ann.locator("#connection")).to_have_text("polling", timeout=30_000)
    api.post(f"{made.path}/working", headers=bearer(made.owner), **{"from": "offered"})
    expect(ann.locator("#standing")).to_contain_text("working", timeout=30_000)


def test_a_session_that_ended_is_one_sentence_with_a_way_back(house: RunningServer, ann: Page) -> None:
    ann.goto(house.url + "/handoffs")
    ann.context.clear_cookies()
    ann.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(ann.get_by_role("link", name="Sign in again")).to_be_visible()


def test_the_whole_review_by_keyboard(house: RunningServer, ann: Page, api: Api) -> None:
    made = make(api, title="By keyboard", ttl_seconds=300)
    ann.goto(house.url + "/handoffs")
    ann.keyboard.press("?")
    expect(ann.get_by_role("dialog")).to_be_visible()
    ann.keyboard.press("Escape")
    ann.keyboard.press("j")
    expect(ann.get_by_role("link", name="By keyboard")).to_be_focused()
    ann.keyboard.press("Enter")
    ann.wait_for_url(f"**/handoffs/{made.name}")
    ann.keyboard.press("3")
    expect(ann.get_by_role("button", name="done")).to_be_focused()
    ann.keyboard.press("Enter")
    expect(ann.get_by_role("button", name="Confirm")).to_be_focused()
    ann.keyboard.press("Control+Enter")
    expect(ann.get_by_role("heading", name="Moved to done")).to_be_visible()
    assert look(api, made)["state"] == "done"


def test_times_left_do_not_ask_the_browsers_clock(visitor: Visitor, house: RunningServer, ann: Page, api: Api) -> None:
    make(api, title="Soon over", ttl_seconds=120)
    ann.add_init_script("const real = Date; Date = class extends real { static now() { return 0; } };")
    ann.goto(house.url + "/handoffs")
    expect(ann.locator("tr", has_text="Soon over").locator(".left")).to_have_text("1 min 57 s", timeout=10_000)
