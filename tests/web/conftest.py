"""One browser and one server for each module; a tenant of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from grandbo.library import Grandbo, TenantMemory
from tests.support.browser import Visitor, running_chromium, sign_in, visiting
from tests.support.http import RunningServer, running_http

Open = Callable[..., Visitor]


# For a module alone: as long as it is there an event loop runs in this thread, and other tests need one of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium without a window."""
    with running_chromium() as started:
        yield started


@pytest.fixture(scope="module")
def site(grandbo: Grandbo) -> Iterator[RunningServer]:
    """
    The service, as `grandbo up` serves it.

    For a module alone: other tests stop the clock, and a loop that waits meanwhile may never wake.
    """
    with running_http(grandbo) as running:
        yield running


@pytest.fixture
def person(browser: Browser, site: RunningServer, memory: TenantMemory) -> Iterator[Open]:
    """
    Someone with a role, signed in at a browser of their own. In the end nothing may have been complained about, and
    nothing may have been asked of anybody else.
    """
    base = f"http://127.0.0.1:{site.port}"
    opened: list[Visitor] = []
    contexts = []

    def arrive(*roles: str, name: str = "jo", of: TenantMemory = memory) -> Visitor:
        context = visiting(browser, base)
        visitor = context.__enter__()
        contexts.append(context)
        opened.append(visitor)
        sign_in(visitor, of.create_key(name, "human", roles or ("admin",))[1])
        return visitor

    yield arrive
    told = [(visitor.complaints, visitor.strangers) for visitor in opened]
    for context in contexts:
        context.__exit__(None, None, None)
    for complaints, strangers in told:
        assert [] == complaints
        assert [] == strangers
