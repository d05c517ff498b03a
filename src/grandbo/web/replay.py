"""Replay: the memory as it was at any position: entries, one of them or a search, and what came since."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from grandbo.errors import GrandboError, NotFound
from grandbo.recall.answer import MODES
from grandbo.types import from_utc_text
from grandbo.web.call import Call, Page, View, id_field, number, text

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
        "valid_at": text(call.query, "valid_at"),
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
    at = text(call.query, "as_of")
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
    if asked["entry"] is not None:
        return {"entry": _entry_then(call, asked["entry"], position)}
    page = memory.list_entries(as_of_position=position, limit=LISTED, after=text(call.query, "after"))
    assert page.as_of is not None
    instant = asked["valid_at"] or page.as_of["instant"]
    return page.as_dict() | {"valid": {entry["entry_id"]: _is_valid(entry, instant) for entry in page.entries}}


def _entry_then(call: Call, entry_id: UUID, position: int) -> dict[str, Any] | None:
    """The entry as it stood; None where it was not there yet. Raises `NotFound` for one that never was."""
    try:
        return call.memory.show_entry(entry_id, as_of_position=position)
    except NotFound:
        call.memory.show_entry(entry_id)
        return None


def _is_valid(entry: dict[str, Any], instant: str) -> bool:
    at = from_utc_text(instant.replace(" ", "+"))
    return from_utc_text(entry["valid_from"]) <= at < from_utc_text(entry["expires_at"])


PAGES = (Page("/replay", show_replay),)
