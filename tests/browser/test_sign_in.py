"""From the first start to signed in, as somebody does it who has read nothing."""

import pytest

from tests.browser.conftest import NAME, PASSWORD, Visitor, sign_in_link
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.browser]


@pytest.mark.parametrize("has_script", [True, False])
def test_the_printed_link_leads_to_a_page_that_works(visitor: Visitor, server: RunningServer, has_script: bool) -> None:
    page = visitor(java_script_enabled=has_script).new_page()
    link = sign_in_link(server)
    page.goto(link)
    if has_script:
        assert "#" not in page.url
    else:
        page.get_by_label("Sign-in code").fill(link.partition("#")[2])
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert page.get_by_role("link", name="Handoffs").is_visible()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in").wait_for()
    assert page.get_by_label("Sign-in code").count() == 0
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
