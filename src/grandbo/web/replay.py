"""Replay: the memory as it was at any position: entries, one of them or a search, and what came since."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from grandbo.errors import GrandboError, NotFound
from grandbo.recall.answer import MODES
from grandbo.recall.moment import check_as_of
from grandbo.types import from_utc_text
from grandbo.web.call import Call, Page, View, id_field, moment, number, text

LISTED = 25
SINCE = 25


def show_replay(call: Call) -> View:
    """
    What stood there then.

    The position is named, or is the last one by the time that was named; without either it is the head.
    """
    memory = call.memory
    head = memory.head()
    asked = {
        "entry": id_field(call.query, "entry"),
        "topic": text(call.query, "topic"),
        "mode": text(call.query, "mode"),
        "valid_at": moment(call.query, "valid_at"),
    }
    shown: dict[str, Any] = {"head": head, "asked": call.query, "modes": MODES, "error": None}
    try:
        position = _position(call, head["position"])
        then = _then(call, position, asked)
    except GrandboError as error:
        if error.http_status >= 500 or isinstance(error, NotFound):
            raise
        data = {"head": head, "position": head["position"], "then": None, **error.as_dict()}
        extra = {"error": error, "event": None, "since": [], "position": head["position"], "then": None}
        return View("replay.html", data, shown | extra, error.http_status)
    events = list(memory.events(after=position - 1, limit=1))
    since = list(memory.events(after=position, limit=SINCE, entry_id=asked["entry"]))
    data = {
        "head": head,
        "position": position,
        "event": events[0] if events else None,
        "since": since,
        "since_limit": SINCE,
        "then": then,
    }
    return View("replay.html", data, shown)


def _position(call: Call, head: int) -> int:
    named = number(call.query, "position")
    at = moment(call.query, "as_of")
    if named is not None:
        return named
    if at is None:
        return head
    page = call.memory.list_entries(as_of=at, limit=1)
    assert page.as_of is not None
    position: int = page.as_of["position"]
    return position


def _then(call: Call, position: int, asked: dict[str, Any]) -> dict[str, Any]:
    memory = call.memory
    if asked["topic"] is not None:
        answer = memory.query_topic(
            asked["topic"], as_of_position=position, valid_at=asked["valid_at"], mode=asked["mode"], limit=10
        )
        return {"answer": answer.as_dict()}
    named = check_as_of(valid_at=asked["valid_at"])
    valid_at = named.valid_at if named else None
    if asked["entry"] is not None:
        entry = _entry_then(call, asked["entry"], position)
        return {"entry": entry, "valid": _valid([entry] if entry else [], valid_at, entry and entry["as_of"])}
    page = memory.list_entries(as_of_position=position, limit=LISTED, after=text(call.query, "after"))
    return page.as_dict() | {"valid": _valid(page.entries, valid_at, page.as_of)}


def _entry_then(call: Call, entry_id: UUID, position: int) -> dict[str, Any] | None:
    """The entry as it stood; None where it was not there yet. Raises `NotFound` for one that never was."""
    try:
        return call.memory.show_entry(entry_id, as_of_position=position)
    except NotFound:
        call.memory.show_entry(entry_id)
        return None


def _valid(
    entries: list[dict[str, Any]], valid_at: datetime | None, as_of: Mapping[str, Any] | None
) -> dict[str, bool]:
    """By id, whether each was in date: at the instant that was named, or else at that of the position."""
    if not entries:
        return {}
    assert as_of is not None
    at = valid_at or from_utc_text(as_of["instant"])
    return {
        entry["entry_id"]: from_utc_text(entry["valid_from"]) <= at < from_utc_text(entry["expires_at"])
        for entry in entries
    }


PAGES = (Page("/replay", show_replay),)
