"""Every page as hostile text meets it, as axe judges it, and as it fits: in both themes and three widths."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Dialog, Page, expect

from tests.browser.conftest import Visitor, sign_in
from tests.browser.hostile import STRINGS
from tests.real.api import V1, Api
from tests.real.handoffs import bearer
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]
AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture
def api(house: RunningServer) -> Iterator[Api]:
    with Api(house.port) as api:
        yield api


def watched(context: BrowserContext, complaints: list[str]) -> Page:
    """A page that writes down each script that runs, policy broken, request that leaves and fault thrown."""
    page = context.new_page()

    def asked(dialog: Dialog) -> None:
        complaints.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("dialog", asked)
    page.on("pageerror", lambda fault: complaints.append(f"fault {fault}"))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    page.on("request", lambda sent: complaints.append(sent.url) if "127.0.0.1" not in sent.url else None)
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (event) => console.log('Content Security ' + event.blockedURI));"
    )
    return page


def test_hostile_text_is_inert_on_every_page(visitor: Visitor, house: RunningServer, api: Api) -> None:
    complaints: list[str] = []
    context = visitor(viewport={"width": 800, "height": 900})
    page = watched(context, complaints)
    sign_in(page, house)
    assert len(STRINGS) >= 200
    for start in range(0, len(STRINGS), 40):
        some = STRINGS[start : start + 40]
        made = api.post(
            f"{V1}/handoff",
            payload={"strings": some, "members": {text: text for text in some[:20]}},
            title=some[0][:120],
            note="".join(some)[:500],
            audience="person",
        )
        assert made.status == 201, made.raw
        path = f"{V1}/handoff/{made['handoff_id']}/accepted"
        note = some[-1][:500]
        assert api.post(path, headers=bearer(made["owner_token"]), **{"from": "offered", "note": note}).status == 200
        for target in (f"{house.url}/handoffs/{made['handoff_id']}", made["review_url"]):
            page.goto("about:blank")
            page.goto(target)
            expect(page.get_by_role("button", name="working", exact=True)).to_be_visible()
            page.get_by_text("Raw,").click()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            page.get_by_label("Note").fill(some[1][:500])
            page.get_by_role("button", name="done", exact=True).click()
            expect(page.get_by_role("button", name="Confirm")).to_be_visible()
    page.goto(house.url + "/handoffs?show=all")
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert complaints == []


def test_titles_on_the_list_are_text(visitor: Visitor, house: RunningServer, api: Api) -> None:
    complaints: list[str] = []
    page = watched(visitor(), complaints)
    sign_in(page, house)
    for text in STRINGS[::4]:
        if text.strip():
            assert api.post(f"{V1}/handoff", payload=1, title=text[:120], ttl_seconds=60).status in (201, 400)
    page.goto(house.url + "/handoffs")
    page.wait_for_timeout(500)
    assert complaints == []


def test_what_nobody_would_see_is_marked(house: RunningServer, ann: Page, api: Api) -> None:
    made = api.post(f"{V1}/handoff", payload={"to": "p\u0430ypal\u200b\u202e"}, title="a\u2066b")
    ann.goto(f"{house.url}/handoffs/{made['handoff_id']}")
    for mark in ("U+200B", "U+202E", "a U+0430".replace("a", "\u0430", 1), "U+2066"):
        expect(ann.locator(".mark", has_text=mark).first).to_be_visible()
    expect(ann.get_by_text("3 characters here would not show")).to_be_visible()


def test_numbers_are_shown_digit_for_digit(house: RunningServer, ann: Page, api: Api) -> None:
    numbers = '{"id":3544790567247868102,"far":1e400,"minus":-0,"price":0.10,"long":' + "9" * 400 + "}"
    made = api.text(f"{V1}/handoff", '{"payload":' + numbers + "}")
    ann.goto(f"{house.url}/handoffs/{made['handoff_id']}")
    for shown in ("3544790567247868102", "1e400", "-0", "0.10", "9" * 400):
        expect(ann.locator(".tree").get_by_text(shown).first).to_be_visible()


@pytest.mark.parametrize(
    "payload",
    ['"' + "w" * 16_000 + '"', "[" + ",".join("1" * 8_000) + "]", "[" * 60 + "]" * 60],
    ids=["one word", "many elements", "deep"],
)
def test_a_big_payload_keeps_the_page_whole(house: RunningServer, visitor: Visitor, api: Api, payload: str) -> None:
    page = visitor(viewport={"width": 360, "height": 740}).new_page()
    sign_in(page, house)
    made = api.text(f"{V1}/handoff", '{"payload":' + payload + "}")
    page.goto(f"{house.url}/handoffs/{made['handoff_id']}")
    expect(page.get_by_role("button", name="accepted", exact=True)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(visitor: Visitor, house: RunningServer, api: Api, theme: str) -> None:
    found: list[str] = []
    context = visitor(color_scheme=theme, bypass_csp=True, viewport={"width": 800, "height": 900})
    page = context.new_page()
    script = AXE.read_text(encoding="utf-8")

    def judge(name: str) -> None:
        page.evaluate(script)
        seen = page.evaluate("(tags) => axe.run({ runOnly: { type: 'tag', values: tags } })", TAGS)
        found.extend(
            f"{theme} {name}: {one['id']} {one['impact']} {one['nodes'][0]['html'][:200]}" for one in seen["violations"]
        )

    page.goto(house.url + "/sign-in")
    judge("sign-in")
    sign_in(page, house)
    made = api.post(f"{V1}/handoff", payload={"a": [1, None, "x\u202e"]}, title="Judge me", note="a note")
    ended = api.post(f"{V1}/handoff", payload=1)
    done = f"{V1}/handoff/{ended['handoff_id']}/done"
    api.post(done, headers=bearer(ended["owner_token"]), **{"from": "offered"})
    page.goto(house.url + "/handoffs")
    judge("list")
    page.goto(house.url + "/handoffs?state=nowhere")
    judge("empty list")
    page.goto(f"{house.url}/handoffs/{ended['handoff_id']}")
    judge("ended")
    page.goto(f"{house.url}/handoffs/{'0' * 32}")
    judge("gone")
    page.goto(house.url + "/review")
    judge("door")
    page.goto("about:blank")
    page.goto(made["review_url"])
    page.wait_for_url("**/review/*")
    judge("review")
    page.goto(f"{house.url}/handoffs/{made['handoff_id']}")
    expect(page.locator("#connection")).to_have_text("live")
    judge("handoff")
    page.keyboard.press("?")
    judge("keys")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="done", exact=True).click()
    judge("confirm")
    page.get_by_role("button", name="Confirm").click()
    judge("receipt")
    assert found == []


def test_the_first_page_is_small_and_asks_nobody_else(visitor: Visitor, house: RunningServer) -> None:
    page = visitor().new_page()
    sizes: dict[str, int] = {}
    page.on("response", lambda answer: sizes.update({answer.url: len(answer.body())}))
    page.goto(house.url + "/sign-in", wait_until="load")
    assert sum(sizes.values()) < 100_000
    assert all(url.startswith(house.url) for url in sizes)


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_no_page_scrolls_sideways(visitor: Visitor, house: RunningServer, api: Api, width: int) -> None:
    page = visitor(viewport={"width": width, "height": 800}).new_page()
    sign_in(page, house)
    made = api.post(
        f"{V1}/handoff", payload={"a": 1}, title="W" * 120, states=[f"{'s' * 30}_{n}"[-32:] for n in range(9)]
    )
    for path in ("/handoffs", f"/handoffs/{made['handoff_id']}"):
        page.goto(house.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
