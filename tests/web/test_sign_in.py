"""Signing in at an issuer in a real browser, by keyboard alone, and with what was typed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from grandbo.library import Grandbo, TenantMemory
from tests.support.browser import Visitor, visiting
from tests.support.factories import make_finding
from tests.support.http import RunningServer, running_http
from tests.support.issuer import AUDIENCE, CLIENT_ID, Issuer, running_issuer
from tests.support.postgres import TestDatabase


@pytest.fixture
def issuer(memory: TenantMemory) -> Iterator[Issuer]:
    """An issuer that knows Ada of this tenant."""
    with running_issuer() as started:
        started.holder = {"tenant": memory.tenant.name, "roles": ["reviewer"], "preferred_username": "ada"}
        yield started


@pytest.fixture
def site(database: TestDatabase, issuer: Issuer) -> Iterator[RunningServer]:
    """The service, with that issuer."""
    settings = database.settings(oidc_issuer=issuer.url, oidc_audience=AUDIENCE, oidc_client_id=CLIENT_ID)
    with Grandbo.open(settings=settings) as grandbo, running_http(grandbo) as running:
        yield running


@pytest.fixture
def ada(browser: Browser, site: RunningServer, issuer: Issuer) -> Iterator[Visitor]:
    """Someone who is at the issuer, and has no key. Nothing may be complained about, nor anybody else be asked."""
    with visiting(browser, f"http://127.0.0.1:{site.port}") as visitor:
        yield visitor
        assert [] == visitor.complaints
        assert [] == [url for url in visitor.strangers if not url.startswith(issuer.url)]


def test_one_signs_in_at_the_issuer_and_out_of_both_by_keyboard(ada: Visitor, memory: TenantMemory) -> None:
    """From a deep link to the page that it names; no policy of a browser stands in the way."""
    entry_id = memory.record_finding(make_finding(title="Leases lapsed unseen")).acknowledgement.entry_id
    ada.go(f"/entries/{entry_id}/history")
    problems = ada.axe()
    ada.tab_to("Sign in at 127.0.0.1")
    ada.press("Enter")
    ada.page.wait_for_url("**/authorize?**")
    ada.press("Tab", "Enter")
    ada.page.wait_for_url(f"**/entries/{entry_id}/history")
    read = ada.text()
    ada.tab_to("Sign out")
    ada.press("Enter")
    ada.page.wait_for_url("**/sign-in?signed_out=1")
    ada.tab_to("sign out there too")
    ada.press("Enter")
    ada.page.wait_for_url("**/leave?**")

    assert [] == problems
    assert "Leases lapsed unseen" in read


def test_what_was_typed_as_the_session_ended_waits_while_one_signs_in_in_another_tab(
    ada: Visitor, issuer: Issuer, memory: TenantMemory
) -> None:
    """It is shown, and sent by a button; nothing was sent before."""
    entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
    ada.expected = (401,)
    ada.go(f"/entries/{entry_id}/do/archive")
    ada.page.get_by_role("button", name="Sign in at").press("Enter")
    ada.page.get_by_role("button", name="Go on as Ada").press("Enter")
    ada.page.wait_for_url(f"**/entries/{entry_id}/do/archive")
    ada.box("Why").fill("Nobody runs it any more.")
    ada.context.clear_cookies()
    ada.button("Archive").press("Enter")
    with ada.context.expect_page() as opened:
        ada.page.get_by_role("button", name="Sign in at").press("Enter")
    other = opened.value
    other.get_by_role("button", name="Go on as Ada").press("Enter")
    other.wait_for_url("**/sign-in/other-tab")
    other.close()
    ada.button("I have signed in: go on").press("Enter")
    ada.button("Send it").wait_for()
    shown = ada.text()
    before = memory.show_entry(entry_id)["status"]
    ada.button("Send it").press("Enter")
    ada.page.wait_for_url("**done=archive")

    assert "Nobody runs it any more." in shown
    assert ("published", "archived") == (before, memory.show_entry(entry_id)["status"])
