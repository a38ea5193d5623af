"""A real Chromium, headless, and a real server with an operator. Nothing is downloaded."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.real.server import RunningServer

NAME, PASSWORD = "ann", "correct horse battery"
_PLACES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Visitor = Callable[..., BrowserContext]
expect.set_options(timeout=20_000)


def browser_arguments() -> dict[str, Any]:
    """Which browser to start, and how."""
    found = next(filter(None, map(shutil.which, _PLACES)), None)
    assert found is not None, "no Chromium here; scripts/need chromium installs it"
    return {"executable_path": found, "args": _FLAGS}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The browser; the tests take contexts of their own.

    For one file only: Playwright keeps an event loop running in its thread, and a later file may want one of its own.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**browser_arguments())
        yield browser
        browser.close()


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[Visitor]:
    """Makes browser contexts (profiles) that watch for scripts that run and policies that are broken."""
    with ExitStack() as stack:

        def make(**arguments: Any) -> BrowserContext:
            context = chromium.new_context(**arguments)
            context.set_default_timeout(20_000)
            stack.callback(context.close)
            return context

        yield make


@pytest.fixture(scope="module")
def house() -> Iterator[RunningServer]:
    """A server with the operator Ann, for the tests of one file."""
    with RunningServer() as running:
        yield running


def sign_in_link(server: RunningServer) -> str:
    """The link that the server printed."""
    deadline = monotonic() + 20
    while monotonic() < deadline:
        links = re.findall(r"http://\S+/sign-in#\S+", server.stdout)
        if links:
            return links[-1]
        sleep(0.05)
    raise AssertionError(f"no sign-in link:\n{server.stdout}")


def sign_in(page: Page, server: RunningServer, name: str = NAME, password: str = PASSWORD) -> None:
    """Sign in by the form, the first time by the printed link."""
    page.goto(server.url + "/sign-in")
    if page.get_by_label("Sign-in code").count():
        page.goto("about:blank")
        page.goto(sign_in_link(server))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()


@pytest.fixture
def ann(visitor: Visitor, house: RunningServer) -> Page:
    """Ann's page, signed in."""
    page = visitor().new_page()
    sign_in(page, house)
    return page


@pytest.fixture
def server() -> Iterator[RunningServer]:
    """A fresh server of the test's own."""
    with RunningServer() as running:
        yield running
