"""The page of leases in a real browser: counting down, names that stay here, the break."""

import hashlib
import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visitor, sign_in
from tests.real.api import Api, Crowd
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]

WIDTH = "bar => bar.getBoundingClientRect().width"


@pytest.fixture
def page(visitor: Visitor, house: RunningServer):
    opened = visitor().new_page()
    sign_in(opened, house)
    return opened


@pytest.fixture
def api(house: RunningServer):
    with Api(house.port) as caller:
        yield caller


def test_a_lease_appears_counts_down_and_ends_without_a_reload(page, house, api) -> None:
    page.goto(house.url + "/leases")
    ns = api.lease("namespace")["namespace"]
    api.lease("acquire", key="job", namespace=ns, ttl_seconds=6, holder="<b>worker</b>")
    row = page.locator("tbody tr", has_text="<b>worker</b>")
    new = page.get_by_role("button", name=re.compile("new"))
    row.or_(new).first.wait_for()
    if new.is_visible():
        new.click()
    assert "<b>worker</b>" in row.inner_text()
    bar = row.locator(".bar-left")
    before = float(bar.evaluate(WIDTH))
    time.sleep(1)
    assert float(bar.evaluate(WIDTH)) < before
    page.locator("tbody tr.gone", has_text="<b>worker</b>").or_(
        page.get_by_text("Nobody holds a key now.")
    ).first.wait_for()
    page.goto(house.url + "/leases?show=ended")
    assert "lapsed" in page.locator("tbody tr", has_text="<b>worker</b>").inner_text()


def test_names_are_matched_in_the_browser_and_appear_in_no_request(page, house, api) -> None:
    ns = api.lease("namespace")["namespace"]
    api.lease("acquire", key="invoice:2026", namespace=ns, ttl_seconds=600)
    sent: list[str] = []
    framed: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: framed.append(str(frame))))
    page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''} {request.headers}"))
    page.goto(house.url + "/leases")
    page.get_by_text("Name the keys in this browser").click()
    page.get_by_label("Names").fill(f"{ns} invoice:2026\n{ns} another")
    page.locator("tbody .named", has_text="invoice:2026").wait_for()
    assert "1 of 2 names" in page.locator("#names-said").inner_text()
    api.lease("acquire", key="somebody-else", namespace=ns, ttl_seconds=600)
    page.get_by_role("button", name="1 new").click()
    page.locator("tbody .named", has_text="invoice:2026").wait_for()
    page.get_by_role("button", name="Filter").click()
    page.wait_for_load_state()
    page.reload()
    page.goto(house.url + "/handoffs")
    assert len(sent) > 4
    assert not [one for one in [*sent, *framed] if ns in one or "invoice" in one or "another" in one]


def test_a_break_needs_the_fence_that_was_seen_and_is_told_to_everyone(page, house, api) -> None:
    ns = api.lease("namespace")["namespace"]
    granted = api.lease("acquire", key="stuck", namespace=ns, ttl_seconds=600, holder="the one that hangs")
    fence = granted["fencing_token"]
    with Crowd(house.port, 1) as crowd:
        waiting = crowd.lease("acquire", key="stuck", namespace=ns, wait_seconds=25)
        page.goto(house.url + "/leases")
        page.locator("tbody tr", has_text="the one that hangs").get_by_role("link").click()
        page.get_by_label("Fencing token").fill(str(fence + 1_000))
        page.get_by_label("Reason").fill("it hangs")
        page.get_by_role("button", name="Break").click()
        page.get_by_text("Nothing was broken").wait_for()
        assert api.lease("renew", key="stuck", namespace=ns, owner_token=granted["owner_token"]).status == 200
        page.go_back()
        page.wait_for_load_state()
        page.get_by_label("Fencing token").fill(str(fence))
        page.get_by_label("Reason").fill("it <i>hangs</i>")
        page.get_by_role("button", name="Break").click()
        answer = waiting.result()
    assert (answer.status, answer["fencing_token"] > fence) == (201, True)
    lost = api.lease("renew", key="stuck", namespace=ns, owner_token=granted["owner_token"])
    assert (lost.status, lost["code"], lost["status"]) == (409, "lease_lost", "lost")
    page.goto(house.url + "/audit")
    line = page.locator("tbody tr").first.inner_text()
    for word in ("ann", "lease.break", f"fence {fence}", "it <i>hangs</i>"):
        assert word in line


def test_health_and_settings_tell_figures_and_no_secret(page, house) -> None:
    page.goto(house.url + "/health")
    page.get_by_text("reports no problem").wait_for()
    process, limits = (page.get_by_role("region", name=name) for name in ("This process", "Limits"))
    for line in ("deciding clock", "waiting calls", "sockets", "last sweep", "version"):
        expect(process).to_contain_text(line)
    expect(process).to_contain_text("as this machine's")
    expect(limits).to_contain_text("0 of 4,096")
    store = page.get_by_role("region", name="Store").inner_text()
    assert "synchronous=FULL" in store
    assert not re.search(r"\d\.\d{6}", store), "figures are for people"
    page.goto(house.url + "/settings")
    secret = (house.data_dir / "secret.key").read_text().strip()
    text = page.content()
    assert "FENCEPOST_SECRET_KEY" in text
    assert secret not in text
    assert page.locator("tbody tr", has_text="FENCEPOST_DATA_DIR").get_by_text("environment").is_visible()


ENDS = """() => {
  window.ends = {};
  new MutationObserver(() => {
    for (const row of document.querySelectorAll("#rows tr")) {
      const left = row.querySelector(".left");
      if (left && left.textContent === "lapsed" && !(row.dataset.key in window.ends)) {
        window.ends[row.dataset.key] = performance.timeOrigin + performance.now();
      }
    }
  }).observe(document.querySelector("#rows"), { subtree: true, childList: true, characterData: true });
  window.frames_seen = 0;
  const count = () => { window.frames_seen += 1; requestAnimationFrame(count); };
  requestAnimationFrame(count);
}"""


def test_two_thousand_leases_count_down_and_end_at_the_right_moment_and_a_restart_needs_no_reload(
    visitor: Visitor, server: RunningServer
) -> None:
    page = visitor().new_page()
    sign_in(page, server)
    with Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        for number in range(1_980):
            assert api.lease("acquire", key=f"long-{number}", namespace=ns, ttl_seconds=3_000).status == 201
        ends: dict[str, float] = {}
        for number in range(20):
            before = time.time()
            api.lease("acquire", key=f"short-{number}", namespace=ns, ttl_seconds=25)
            ends[key_digest(ns, f"short-{number}")] = (before + time.time()) / 2 + 25
        page.goto(server.url + "/leases?rows=2000")
        assert page.locator("#rows tr").count() == 2_000
        page.evaluate(ENDS)
        until(page, "window.frames_seen > 60")
        bar = page.locator(".bar-left").first
        widths: list[float] = []
        for _ in range(3):
            widths.append(float(bar.evaluate(WIDTH)))
            time.sleep(0.7)
        assert widths == sorted(widths, reverse=True)
        assert widths[0] > widths[-1]
        until(page, "Object.keys(window.ends).length >= 20")
        seen: dict[str, float] = page.evaluate("window.ends")
        late = sorted(seen[digest] / 1000 - at for digest, at in ends.items())
        assert abs(late[len(late) // 2]) < 0.3, late
        assert late[0] > -0.3, late
        page.evaluate("window.sameDocument = true")
        server.terminate()
        page.locator("#connection", has_text="offline since").wait_for(timeout=60_000)
        server.start()
        page.locator("#connection", has_text="live").wait_for(timeout=60_000)
    with Api(server.port) as api:
        api.lease("acquire", key="after", namespace=ns, ttl_seconds=600, holder="came after the restart")
        page.get_by_role("button", name="new").click(timeout=60_000)
        page.locator("tbody tr", has_text="came after the restart").wait_for()
    assert page.evaluate("window.sameDocument") is True


def until(page: Page, said: str) -> None:
    """Wait until the page says so."""
    deadline = time.monotonic() + 120
    while not page.evaluate(said):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)


def key_digest(namespace: str, key: str) -> str:
    """What the page knows a key by."""
    texts = [text.encode() for text in (namespace, key)]
    return hashlib.sha256(b"fencepost:lease-key" + b"".join(len(t).to_bytes(8) + t for t in texts)).hexdigest()
