"""A person with nothing but a link, on a phone, with and without the script; and the machines that open links first."""

import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor
from tests.real.api import V1, Api
from tests.real.handoffs import Made, look
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


@pytest.fixture
def api(house: RunningServer) -> Iterator[Api]:
    with Api(house.port) as api:
        yield api


def offered(api: Api, **members: Any) -> tuple[Made, str]:
    """A handoff for a person, and its link."""
    answer = api.post(f"{V1}/handoff", **({"payload": {"amount": "120.00"}, "audience": "person"} | members))
    return Made(answer["handoff_id"], answer["owner_token"], answer["receiver_token"]), answer["review_url"]


def decide(page: Page, state: str) -> None:
    page.get_by_label("Note").fill("as agreed")
    page.get_by_role("button", name=state, exact=True).click()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name=f"Moved to {state}")).to_be_visible()


def test_a_reviewer_decides_on_a_phone(visitor: Visitor, house: RunningServer, api: Api) -> None:
    made, link = offered(api, title="Refund 120 EUR")
    page = visitor(**PHONE).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(link)
    page.wait_for_url(f"**/review/{made.name}")
    expect(page.get_by_role("heading", name="Refund 120 EUR")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    decide(page, "done")
    seen = look(api, made)
    assert (seen["state"], seen["history"][1]["by"], seen["history"][1]["note"]) == ("done", "receiver", "as agreed")
    assert not any(made.receiver in url for url in asked if "#" not in url)
    assert made.receiver not in page.content()
    page.goto(link)
    expect(page.get_by_text("Ended: done.")).to_be_visible()
    assert page.get_by_role("button", name="done").count() == 0


def test_a_reviewer_decides_without_the_script(visitor: Visitor, house: RunningServer, api: Api) -> None:
    made, link = offered(api)
    page = visitor(java_script_enabled=False, **PHONE).new_page()
    page.goto(link)
    page.get_by_label("Token").fill(link.partition("#")[2])
    page.get_by_role("button", name="Open").click()
    decide(page, "accepted")
    assert look(api, made)["state"] == "accepted"


def test_the_page_behind_the_link_is_the_same_for_everyone(house: RunningServer, api: Api) -> None:
    first = api.get("/review")
    offered(api)
    second = api.get("/review", {"Cookie": "fencepost_review=x", "User-Agent": "other"})
    assert first.raw == second.raw
    assert "nonce" not in first.headers["content-security-policy"]
    assert "set-cookie" not in first.headers


def test_a_cookie_opens_one_handoff_and_no_other(visitor: Visitor, house: RunningServer, api: Api) -> None:
    mine, link = offered(api)
    other, _ = offered(api)
    context = visitor()
    page = context.new_page()
    page.goto(link)
    page.wait_for_url(f"**/review/{mine.name}")
    (cookie,) = context.cookies(f"{house.url}/review/{mine.name}")
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", f"/review/{mine.name}")
    assert mine.receiver not in cookie["value"]
    headers = {"Cookie": f"{cookie['name']}={cookie['value']}"}
    assert api.get(f"/review/{mine.name}", headers).status == 200
    assert api.get(f"/review/{other.name}", headers).status == 401
    assert api.get("/handoffs", headers).status == 303
    changed = {"Cookie": headers["Cookie"].replace("receiver.", "owner.")}
    assert api.get(f"/review/{mine.name}", changed).status == 401


@pytest.mark.parametrize("wrong", ["", "x", "0" * 32, "0" * 32 + ".hrecv_" + "A" * 43])
def test_a_wrong_token_opens_nothing_and_says_so(visitor: Visitor, house: RunningServer, wrong: str) -> None:
    page = visitor().new_page()
    page.goto(f"{house.url}/review#{wrong or '.'}")
    expect(page.get_by_role("alert")).to_contain_text("opens no handoff")
    expect(page.get_by_label("Token")).to_be_visible()
    assert "#" not in page.url


SUBMIT_ALL = """() => {
  for (const form of document.forms) {
    for (const field of form.querySelectorAll("input:not([type=hidden]), textarea")) field.value ||= "x";
    form.submit();
  }
}"""


def test_link_scanners_move_nothing_and_use_nothing_up(visitor: Visitor, house: RunningServer, api: Api) -> None:
    made, link = offered(api)
    for _ in range(3):
        for method in ("GET", "HEAD"):
            urllib.request.urlopen(urllib.request.Request(link, method=method), timeout=20).close()
    for has_script in (True, False):
        page = visitor(java_script_enabled=has_script).new_page()
        page.goto(link)
        if has_script:
            page.wait_for_url(f"**/review/{made.name}")
            for _ in range(3):
                with page.expect_navigation():
                    page.evaluate(SUBMIT_ALL)
                page.goto(f"{house.url}/review/{made.name}")
    seen = look(api, made)
    assert (seen["state"], seen["version"]) == ("offered", 1)
    person = visitor().new_page()
    person.goto(link)
    person.wait_for_url(f"**/review/{made.name}")
    decide(person, "accepted")


def test_two_reviewers_with_the_same_link_one_wins(visitor: Visitor, house: RunningServer, api: Api) -> None:
    made, link = offered(api)
    pages = [visitor().new_page() for _ in range(2)]
    for page, state in zip(pages, ("done", "failed"), strict=True):
        page.goto(link)
        page.wait_for_url(f"**/review/{made.name}")
        page.get_by_role("button", name=state, exact=True).click()
    pages[0].get_by_role("button", name="Confirm").click()
    expect(pages[0].get_by_role("heading", name="Moved to done")).to_be_visible()
    pages[1].get_by_role("button", name="Confirm").click()
    expect(pages[1].get_by_role("alert")).to_contain_text("the receiver moved it to done")


def test_an_expired_handoff_says_that_nobody_decided(visitor: Visitor, server: RunningServer) -> None:
    with Api(server.port) as api:
        made, link = offered(api, ttl_seconds=60)
        page = visitor().new_page()
        page.goto(link)
        page.wait_for_url(f"**/review/{made.name}")
        page.get_by_role("button", name="accepted", exact=True).click()
        server.set_clock(61)
        page.get_by_role("button", name="Confirm").click()
        expect(page.get_by_role("alert")).to_contain_text("Expired, nobody decided.")
        page.get_by_role("link", name="Look again").click()
        expect(page.get_by_text("Expired, nobody decided.")).to_be_visible()
        assert not re.search("reject", page.content(), re.IGNORECASE)


def test_what_the_declaration_leaves_to_the_other_side_has_no_button(
    visitor: Visitor, house: RunningServer, api: Api
) -> None:
    made, link = offered(api, states=["draft", "signed", "void"], permissions={"signed": "owner"})
    page = visitor().new_page()
    page.goto(link)
    page.wait_for_url(f"**/review/{made.name}")
    expect(page.get_by_role("button", name="void", exact=True)).to_be_visible()
    assert page.get_by_role("button", name="signed", exact=True).count() == 0
