"""One entry for an agent: found by the id that a citation has, now or as of a time."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from mcp.server.mcpserver.exceptions import ToolError

from grandbo.errors import NotFound
from grandbo.library import TenantMemory
from grandbo.types import from_utc_text, parse_moment

# Alone, or at the head of a citation: entry/revision#start-end, entry/revision@position.
_ID = re.compile(r"\s*([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:/\d+(?:[#@][\d-]+)?)?\s*")


def entry_id_of(text: str) -> UUID:
    """Read an id; raises `ToolError`."""
    found = _ID.fullmatch(text)
    if found is None:
        raise ToolError("entry_id: it must be the UUID of an entry; query_org_memory gives the ids of what it finds.")
    return UUID(found.group(1))


def entry_as_of(memory: TenantMemory, entry_id: UUID, as_of: str) -> dict[str, Any]:
    """
    The entry as it stands, or as its last revision by that time stood; plain values with id, revision and position.

    Raises:
        NotFound: not there, not yet there, or not the caller's to see.
    """
    if not as_of:
        return memory.show_entry(entry_id)
    moment = parse_moment(as_of, "as_of").at
    by_then = [item for item in memory.history(entry_id) if from_utc_text(item["at"]) <= moment]
    if not by_then:
        raise NotFound("There was no such entry at that time, or it is not yours to see.")
    last = by_then[-1]
    return {"entry_id": str(entry_id), "revision": last["revision"], "position": last["position"], **last["state"]}
