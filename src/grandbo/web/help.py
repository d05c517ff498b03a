"""The keys, as a page: it works where no script runs."""

from __future__ import annotations

from grandbo.web.call import Call, Page, View
from grandbo.web.preferences import KEYS, THEMES

SHORTCUTS = (
    ("?", "This list"),
    ("/", "To the search box"),
    ("g then s", "Search"),
    ("g then e", "Entries"),
    ("g then r", "Review queue"),
    ("g then d", "Due"),
    ("g then p", "Replay"),
    ("g then a", "Audit"),
    ("j, k", "Next, previous row of a list"),
    ("o", "Open the row"),
    ("h", "Of an entry: its history"),
    ("a, e, m, r", "In a review: approve, amend, merge, reject"),
    ("←, →", "In the replay: one event back, one on"),
    ("p", "In the replay: play, pause"),
)


def show_keys(_call: Call) -> View:
    """What keys do, and how to turn them off."""
    keys = [{"keys": keys, "does": does} for keys, does in SHORTCUTS]
    return View("keys.html", {"keys": keys}, {"themes": THEMES, "switches": KEYS})


PAGES = (Page("/keys", show_keys),)
