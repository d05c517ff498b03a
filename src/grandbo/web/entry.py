"""Entries: the list of them, and one with all that is known of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from grandbo.errors import NotFound
from grandbo.memory.lifecycle import accepted
from grandbo.types import KINDS, STATUSES, Status
from grandbo.web.call import Call, Page, View, chosen, number, text
from grandbo.web.verbs import VERBS

DRAWN = 8
TOLD = 20
_WIDTH, _HEIGHT, _REACH_X, _REACH_Y = 640, 300, 210, 105
_LABEL = 26


def show_entries(call: Call) -> View:
    """A page of entries, of every status, as they stand or as they stood."""
    page = call.memory.list_entries(
        kinds=chosen(call.query, "kind"),
        statuses=chosen(call.query, "status"),
        service=text(call.query, "service"),
        as_of=text(call.query, "as_of"),
        as_of_position=number(call.query, "as_of_position"),
        limit=number(call.query, "limit"),
        after=text(call.query, "after"),
    )
    shown = {"asked": call.query, "kinds": KINDS, "statuses": STATUSES}
    return View("entries.html", page.as_dict(), shown)


def show_entry(call: Call) -> View:
    """One entry: what it says, what it is worth, what it hangs together with, who was told."""
    memory, entry_id = call.memory, call.entry_id
    as_of, as_of_position = text(call.query, "as_of"), number(call.query, "as_of_position")
    entry = memory.show_entry(entry_id, as_of=as_of, as_of_position=as_of_position)
    is_past = "as_of" in entry
    linked = _linked(call, entry["links"], as_of, as_of_position)
    told = memory.receipts(entry_id=entry_id, limit=TOLD) if call.may("audit") and not is_past else []
    data = {"entry": entry, "linked": linked, "told": told}
    shown = {
        "verbs": [] if is_past or not call.may("govern") else _possible(entry["status"], entry["disputed"]),
        "drawing": _drawing(linked) if linked else None,
        "told_limit": TOLD,
    }
    return View("entry.html", data, shown)


def _possible(status: Status, disputed: bool) -> list[dict[str, Any]]:
    """What this state accepts, but for what would change nothing."""
    possible = accepted(status, disputed=disputed)
    return [
        {"name": verb.name, "label": verb.label, "explains": verb.explains}
        for verb in VERBS.values()
        if verb.name in possible and verb.name not in ("restore", "unlink")
    ]


def _linked(
    call: Call, links: Sequence[dict[str, Any]], as_of: str | None, as_of_position: int | None
) -> list[dict[str, Any]]:
    """The links, each with the title of its far end as it stands, or stood then."""
    found = []
    for link in links:
        try:
            far = call.memory.show_entry(UUID(link["entry_id"]), as_of=as_of, as_of_position=as_of_position)
        except NotFound:
            continue  # raised above the caller's tiers in between
        found.append(link | {"title": far["title"], "status": far["status"], "kind": far["kind"]})
    return found


def _drawing(linked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Where the nodes of the neighbourhood stand: the entry in the middle, what it is linked to around it."""
    shown = linked[:DRAWN]
    nodes = []
    for place, link in enumerate(shown):
        angle = 2 * math.pi * place / len(shown) - math.pi / 2
        title = link["title"]
        nodes.append(
            {
                "x": round(_WIDTH / 2 + _REACH_X * math.cos(angle)),
                "y": round(_HEIGHT / 2 + _REACH_Y * math.sin(angle)),
                "label": title if len(title) <= _LABEL else title[: _LABEL - 1] + "…",
                **link,
            }
        )
    return {"width": _WIDTH, "height": _HEIGHT, "nodes": nodes, "left_out": len(linked) - len(shown)}


PAGES = (Page("/entries", show_entries), Page("/entries/{entry_id}", show_entry))
