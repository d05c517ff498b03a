"""Who is behind a reference: names are read from the log's listing, for those who may read the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from grandbo.web.call import Call


def names_on(call: Call, stream_id: UUID) -> dict[str, str]:
    """Names by reference of those who acted on an entry or a candidate; empty for who may not read the log."""
    if not call.may("audit"):
        return {}
    return names_in(call.memory.events(entry_id=stream_id))


def names_in(events: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names by reference of those who made these events."""
    return {event["principal"]: event["actor"] for event in events if event["actor"]}
