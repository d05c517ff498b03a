"""Which pages there are."""

from __future__ import annotations

from grandbo.web import (
    acting,
    admin,
    audit,
    due,
    entry,
    erasures,
    help,
    history,
    impact,
    incidents,
    numbers,
    people,
    policy,
    receipts,
    replay,
    review,
    search,
    stamps,
    start,
    tenant,
    work,
)
from grandbo.web.call import Page

# What is longer stands first: an id in an address takes in all that is one part long.
PAGES: tuple[Page, ...] = (
    *start.PAGES,
    *help.PAGES,
    *search.PAGES,
    *history.PAGES,
    *acting.PAGES,
    *impact.PAGES,
    *entry.PAGES,
    *review.PAGES,
    *due.PAGES,
    *replay.PAGES,
    *audit.PAGES,
    *receipts.PAGES,
    *people.PAGES,
    *erasures.PAGES,
    *incidents.PAGES,
    *numbers.PAGES,
    *policy.PAGES,
    *stamps.PAGES,
    *tenant.PAGES,
    *work.PAGES,
    *admin.PAGES,
)
