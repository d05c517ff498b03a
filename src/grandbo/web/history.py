"""The history of an entry: who did what, when and why, and the words between any two revisions."""

from __future__ import annotations

from typing import Any

from grandbo.memory.differences import compare_revisions
from grandbo.memory.lifecycle import ALLOWED
from grandbo.web.call import Call, Page, View, number


def show_history(call: Call) -> View:
    """The timeline, newest first, and the difference of two revisions: the last two unless others are named."""
    entry_id = call.entry_id
    revisions = call.memory.history(entry_id)
    numbers = [item["revision"] for item in revisions]
    later = number(call.query, "to") or numbers[-1]
    earlier = number(call.query, "from") or max((n for n in numbers if n < later), default=later)
    compared = compare_revisions(revisions, earlier, later).as_dict()
    data: dict[str, Any] = {"entry_id": str(entry_id), "revisions": revisions, "compared": compared}
    status = revisions[-1]["state"]["status"]
    shown = {
        "title": revisions[-1]["state"]["title"],
        "current": numbers[-1],
        "numbers": numbers,
        "may_restore": call.may("govern") and status in ALLOWED["restore"],
    }
    return View("history.html", data, shown)


PAGES = (Page("/entries/{entry_id}/history", show_history),)
