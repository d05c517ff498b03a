"""Impact: all that rests on an entry or a source, who was told, and putting all of it away at once."""

from __future__ import annotations

from typing import Any

from grandbo.errors import GrandboError, NotFound
from grandbo.memory.impact import Seed
from grandbo.types import new_id
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, id_of, raw_text, text


def show_entry_impact(call: Call) -> View:
    """What rests on an entry."""
    return _view(call, Seed(call.entry_id), f"/entries/{call.entry_id}/impact")


def show_source_impact(call: Call) -> View:
    """What rests on a source, named by its URI."""
    uri = text(call.query, "uri")
    if uri is None:
        return View("impact.html", {"impact": None}, {"action": "/sources/impact", "uri": "", **_EMPTY})
    return _view(call, Seed.source(uri), "/sources/impact", uri=uri)


def contain_entry(call: Call) -> Answer:
    """Quarantine, or release, all that rests on an entry."""
    return _contain(call, Seed(call.entry_id), f"/entries/{call.entry_id}/impact")


def contain_source(call: Call) -> Answer:
    """The same of a source."""
    uri = text(call.form, "uri") or ""
    return _contain(call, Seed.source(uri), "/sources/impact", uri=uri)


_EMPTY: dict[str, Any] = {"error": None, "reason": "", "command_id": "", "may_contain": False}


def _contain(call: Call, seed: Seed, action: str, *, uri: str = "") -> Answer:
    acts = {"quarantine": call.memory.quarantine_impact, "release": call.memory.release_impact}
    act = acts.get(call.form.get("act", ""))
    if act is None:
        raise NotFound
    try:
        act(seed, reason=raw_text(call.form, "reason"), command_id=id_of(call.form.get("command_id")))
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _view(call, seed, action, uri=uri, error=error)
    return Redirect(address(action, uri=uri, done="contained" if call.form["act"] == "quarantine" else "released"))


def _view(call: Call, seed: Seed, action: str, *, uri: str = "", error: GrandboError | None = None) -> View:
    found = call.memory.impact(seed)
    shown = {
        "action": action,
        "uri": uri,
        "error": error,
        "reason": raw_text(call.form, "reason"),
        "command_id": str(new_id()),
        "may_contain": call.may("govern"),
    }
    return View("impact.html", {"impact": found}, shown, error.http_status if error else 200)


PAGES = (
    Page("/entries/{entry_id}/impact", show_entry_impact, contain_entry),
    Page("/sources/impact", show_source_impact, contain_source),
)
