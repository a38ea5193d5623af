"""Take the pictures of the README, or every page in each width and theme: a server with a night's work on it.

python -m tests.browser.pictures           three pictures into docs/pictures
python -m tests.browser.pictures FOLDER    every page, at 360, 800 and 1,600 px, light and dark
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import browser_arguments, sign_in
from tests.real.api import Api
from tests.real.handoffs import Made, bearer, make, move
from tests.real.server import RunningServer

HOME = Path(__file__).parents[2] / "docs" / "pictures"
WIDTHS = (360, 800, 1_600)
THEMES = ("light", "dark")
REFUND = {
    "order": "A-20417",
    "customer": "Ines Marković",
    "amount": 184.50,
    "currency": "EUR",
    "reason": "Arrived broken, photo attached",
    "refunds_this_year": 0,
}
REVIEW = {"states": ["proposed", "checked", "approved", "rejected"], "final": ["approved", "rejected"]}


def a_night_s_work(api: Api) -> Made:
    """Handoffs for people, leases of workers, claims of actions; the handoff that the pictures show."""
    refund = make(api, title="Refund order A-20417", audience="person", payload=REFUND, ttl_seconds=3_300, **REVIEW)
    move(api, refund, "checked", "proposed", note="Payment found, amount matches the invoice")
    make(
        api, title="Send the price change to 4,180 customers", audience="person", payload={"n": 4_180}, ttl_seconds=780
    )
    make(api, title="Deploy search 2.14 to production", audience="person", payload={"image": "search:2.14"})
    stuck = make(api, title="Summary of incident 311", payload={"pages": 3}, ttl_seconds=7_000)
    for _ in range(3):
        api.post(f"{stuck.path}/done", headers=bearer(stuck.owner), **{"from": "working"})
    ns = api.lease("namespace")["namespace"]
    for index, (key, holder, seconds) in enumerate(LEASES):
        api.lease("acquire", key=key, namespace=ns, ttl_seconds=seconds, holder=holder)
        if index == 0:
            api.lease("acquire", key="gone", namespace=ns, ttl_seconds=1, holder="mailer-4 (rack 2)")
    first = api.post("/once-key", namespace="billing", action_key="charge-1042", lease_ttl=90)
    token = first["namespace_token"]
    for key in ("charge-1043", "charge-1044", "mail-77"):
        api.post("/once-key", namespace="billing", namespace_token=token, action_key=key)
    return refund


LEASES = [
    ("invoice:2026-09", "worker-1, invoices", 90),
    ("invoice:2026-10", "worker-2, invoices", 240),
    ("import:crm", "importer", 1_200),
    ("index:rebuild", "search-indexer", 3_000),
    ("mail:campaign-7", "mailer-4 (rack 2)", 45),
]


@contextmanager
def signed_in(browser: Browser, server: RunningServer, width: int, theme: str) -> Iterator[Page]:
    """An operator's page of this width."""
    context = browser.new_context(
        viewport={"width": width, "height": 1_800 if width < 500 else 760},
        color_scheme="dark" if theme == "dark" else "light",
        device_scale_factor=1,
    )
    try:
        page = context.new_page()
        sign_in(page, server)
        yield page
    finally:
        context.close()


def take(page: Page, url: str, file: Path, *, whole: bool) -> None:
    """Open and photograph."""
    page.goto(url)
    page.wait_for_load_state("networkidle")
    file.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=file, full_page=whole)


def main(folder: Path | None) -> None:
    """Serve, fill, photograph."""
    with RunningServer(test_mode=False) as server, Api(server.port) as api, sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_arguments())
        with signed_in(browser, server, 1_000, "light"):
            refund = a_night_s_work(api)
        if folder is None:
            with signed_in(browser, server, 1_000, "light") as page:
                take(page, f"{server.url}/", HOME / "now.png", whole=False)
                take(page, f"{server.url}/handoffs/{refund.name}", HOME / "handoff.png", whole=False)
            with signed_in(browser, server, 1_000, "dark") as page:
                take(page, f"{server.url}/leases", HOME / "leases.png", whole=False)
            return
        pages = ["", "handoffs", f"handoffs/{refund.name}", "leases", "leases?show=ended", "claims", "deliveries"]
        for width in WIDTHS:
            for theme in THEMES:
                with signed_in(browser, server, width, theme) as page:
                    for path in [*pages, "audit", "health", "settings"]:
                        name = path.split("/")[-1].replace("?show=", "-") or "now"
                        name = "handoff" if name == refund.name else name
                        take(page, f"{server.url}/{path}", folder / f"{name}-{width}-{theme}.png", whole=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
