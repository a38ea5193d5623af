"""Every page as hostile text meets it, as axe judges it, and as it fits: in both themes and three widths."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Dialog, Page, expect

from tests.browser.conftest import Visitor, sign_in
from tests.browser.hostile import STRINGS
from tests.real.api import V1, Api
from tests.real.handoffs import bearer
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]
AXE = Path(__file__).parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
NST = "nst_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
LISTS = ("/", "/handoffs", "/leases", "/claims", "/deliveries", "/audit", "/health", "/settings")
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


def test_every_other_field_that_a_stranger_fills_is_inert_on_every_page(
    visitor: Visitor, house: RunningServer, api: Api
) -> None:
    """Holders, action keys, namespaces, notify URLs, reasons, filters of addresses, and names of the sign-in."""
    complaints: list[str] = []
    page = watched(visitor(viewport={"width": 800, "height": 900}), complaints)
    sign_in(page, house)
    ns = api.lease("namespace")["namespace"]
    digests: list[str] = []
    taken = 0
    for number, text in enumerate(STRINGS):
        if api.lease("acquire", key=f"k{number}", namespace=ns, ttl_seconds=600, holder=text[:100]).status == 201:
            taken += 1
        claim = api.post("/once-key", namespace="hostile", namespace_token=NST, action_key=text[:100] or "x")
        taken += claim.status in (200, 201)
        url = "http://93.184.216.34:8080/" + quote(text[:200], safe="<>'\"(){}")
        made = api.post(f"{V1}/handoff", payload=1, title=text[:120] or "x", audience="person", notify_url=url)
        if made.status == 201 and number < 40:
            path = f"{V1}/handoff/{made['handoff_id']}/accepted"
            api.post(path, headers=bearer(made["owner_token"]), **{"from": "offered"})
    assert taken > 300
    for place in ("/", "/leases?rows=500", "/claims", "/deliveries?show=waiting", "/deliveries", "/handoffs?show=all"):
        page.goto(house.url + place)
        expect(page.locator("#rows, #troubles").first).to_be_visible()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
    page.goto(house.url + "/leases?rows=500")
    digests = page.locator("#rows tr").evaluate_all("rows => rows.map((row) => row.dataset.key)")
    for digest, text in zip(digests, STRINGS[::20], strict=False):
        page.goto(f"{house.url}/leases/{digest}")
        page.get_by_label("Reason").fill(text[:100].strip() or "x")
        page.get_by_role("button", name="Break").click()
        page.wait_for_load_state()
    for text in STRINGS[::10]:
        for place in (
            "/handoffs?state=",
            "/leases?after=",
            "/claims?show=",
            "/deliveries?show=",
            "/audit?before=",
            "/",
        ):
            page.goto(house.url + place + quote(text.replace("/", "")))
    page.goto(house.url + "/audit")
    expect(page.get_by_text("lease.break").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Sign out").click()
    for text in STRINGS[::100]:  # few: failures slow down the next tries from this address
        page.get_by_label("Name").fill(text[:60].strip() or "x")
        page.get_by_label("Password").fill("wrong password")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
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


def fill(api: Api) -> None:
    """Something of everything that the pages show."""
    ns = api.lease("namespace")["namespace"]
    for number in range(3):
        api.lease("acquire", key=f"job{number}", namespace=ns, ttl_seconds=600, holder=f"worker-{number}")
    api.post("/once-key", namespace="billing", namespace_token=NST, action_key="charge-1", lease_ttl=60)
    api.post("/once-key", namespace="billing", namespace_token=NST, action_key="charge-2")
    api.post("/once-key/complete", namespace="billing", namespace_token=NST, action_key="charge-2", result=1)
    made = api.post(
        f"{V1}/handoff", payload=1, title="With a webhook", audience="person", notify_url="http://93.184.216.34/hook"
    )
    mine = bearer(made["owner_token"])
    path = f"{V1}/handoff/{made['handoff_id']}"
    assert api.post(f"{path}/accepted", headers=mine, **{"from": "offered"}).status == 200
    for _ in range(3):
        assert api.post(f"{path}/done", headers=mine, **{"from": "offered"}).status == 409


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
    for path in LISTS:
        page.goto(house.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        judge("empty " + path)
    fill(api)
    for path in (*LISTS, "/leases?show=ended", "/claims?show=completed", "/deliveries?show=waiting", "/nowhere"):
        page.goto(house.url + path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        judge(path)
    for path in ("/leases", "/claims"):
        page.goto(house.url + path)
        expect(page.locator("#rows a").first, path).to_be_visible()
        page.locator("#rows a").first.click()
        page.wait_for_load_state()
        judge("one of " + path)
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


WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, one) => sum + one.encodedBodySize, 0)"""


def test_every_page_is_small_and_asks_nobody_else(visitor: Visitor, server: RunningServer) -> None:
    page = visitor().new_page()
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(server.url + "/sign-in", wait_until="load")
    assert 10_000 < page.evaluate(WEIGHT) < 100_000
    sign_in(page, server)
    for path in ("/sign-in", "/review", *LISTS):
        page.goto(server.url + path, wait_until="load")
        assert 0 < page.evaluate(WEIGHT) < 100_000, path
    assert all(url.startswith(server.url) for url in asked)


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_no_page_scrolls_sideways(visitor: Visitor, house: RunningServer, api: Api, width: int) -> None:
    page = visitor(viewport={"width": width, "height": 800}).new_page()
    sign_in(page, house)
    made = api.post(
        f"{V1}/handoff", payload={"a": 1}, title="W" * 120, states=[f"{'s' * 30}_{n}"[-32:] for n in range(9)]
    )
    fill(api)
    others = ("/leases?show=ended", "/claims?show=completed", "/deliveries?show=waiting", "/nowhere")
    for path in (*LISTS, *others, f"/handoffs/{made['handoff_id']}"):
        page.goto(house.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
