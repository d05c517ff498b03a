"""Which pages there are."""

from __future__ import annotations

from grandbo.web import acting, entry, help, history, search, start
from grandbo.web.call import Page

PAGES: tuple[Page, ...] = (
    *start.PAGES,
    *help.PAGES,
    *search.PAGES,
    *history.PAGES,
    *acting.PAGES,
    *entry.PAGES,
)
