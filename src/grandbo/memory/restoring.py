"""
After a restore: does the database lack an erasure that is on the list? Until it is applied again, nothing is served.

Where the restored log still has the erasure's event, what it took out is taken out again by its authority. Where
the log ends before it, the erasure is appended anew: the streams that it names are on the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import ErasureMissing, TenantUnknown
from grandbo.events.erasures import EntryErased
from grandbo.events.log import LOCK_HEAD, CommandContext, Event, append_steps, head_of, seal_events, stream_versions
from grandbo.memory.erasing import remove_traces
from grandbo.memory.erasure_list import Listed, read_list
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Database, Transaction
from grandbo.storage.tables import events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now, utc_text

RESTORER = Principal("system", derived_id("system", "restore-check"), "restore-check")

State = Literal["applied", "readable_again", "missing"]

_EVENT = sa.select(events.c.hash).where(
    of_tenant(events),
    events.c.position == sa.bindparam("position", type_=sa.BigInteger),
    events.c.event_type == EntryErased.EVENT_TYPE,
)
# What was written into a stream after its erasure, such as what an entry keeps, is not what was to go.
_READABLE = (
    sa.select(sa.func.count().label("n"))
    .select_from(events)
    .where(
        of_tenant(events),
        events.c.stream_id == sa.any_(sa.bindparam("streams", type_=pg.ARRAY(sa.Uuid))),
        events.c.event_type != EntryErased.EVENT_TYPE,
        events.c.body.is_not(None),
        events.c.position < sa.bindparam("position", type_=sa.BigInteger),
    )
)
_AGAIN = sa.select(events.c.position).where(
    of_tenant(events),
    events.c.command_id == sa.bindparam("command_id", type_=sa.Uuid),
    events.c.event_type == EntryErased.EVENT_TYPE,
)


@dataclass(frozen=True, slots=True)
class Checked:
    """One erasure of the list, and whether the database has it."""

    listed: Listed
    state: State

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "tenant_id": str(self.listed.tenant_id),
            "erasure_id": str(self.listed.erasure_id),
            "position": self.listed.position,
            "state": self.state,
        }


def check_restored(database: Database, home: Path, public: bytes | None) -> list[Checked]:
    """Hold the database against the list. A tenant that is not in the database holds nothing that was erased."""
    return [Checked(listed, _state(database, listed)) for listed in read_list(home, public)]


def refuse_unerased(database: Database, home: Path, public: bytes | None) -> None:
    """Raise `ErasureMissing` where the database has what was erased."""
    missing = [item for item in check_restored(database, home, public) if item.state != "applied"]
    if missing:
        raise ErasureMissing(missing=len(missing))


def apply_erasures(database: Database, home: Path, public: bytes | None, *, clock: Clock = utc_now) -> list[Checked]:
    """Apply again what is missing; gives what was. Again it finds nothing to do."""
    applied = []
    for item in check_restored(database, home, public):
        if item.state != "applied":
            _apply(database, item.listed, clock)
            applied.append(item)
    return applied


def _state(database: Database, listed: Listed) -> State:
    key = {"tenant_id": listed.tenant_id, "position": listed.position, "streams": list(listed.streams)}
    with database.transaction("auditor", listed.tenant_id, read_only=True, snapshot=True) as transaction:
        position = _position(transaction, listed)
        if position is None:
            # What the log holds of these streams at all, wherever it ends.
            held = transaction.execute(_READABLE, {**key, "position": 2**62})[0]["n"]
            return "missing" if held else "applied"
        held = transaction.execute(_READABLE, {**key, "position": position})[0]["n"]
    return "readable_again" if held else "applied"


def _position(transaction: Transaction, listed: Listed) -> int | None:
    """Where the log has the erasure: at its place, or where it was appended anew."""
    key = {"tenant_id": listed.tenant_id}
    found = transaction.execute(_EVENT, {**key, "position": listed.position})
    if found and bytes(found[0]["hash"]).hex() == listed.hash:
        return listed.position
    again = transaction.execute(_AGAIN, {**key, "command_id": _command_id(listed)})
    return int(again[0]["position"]) if again else None


def _apply(database: Database, listed: Listed, clock: Clock) -> None:
    tenant_id = listed.tenant_id
    with database.transaction("writer", tenant_id) as transaction:
        head_rows = transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id})
        if not head_rows:
            raise TenantUnknown
        position = _position(transaction, listed)
        if position is None:
            head = head_of(head_rows)
            body = EntryErased(
                reason="request",
                requested_by=RESTORER.ref,
                requested_at=utc_text(clock()),
                streams=tuple(str(stream) for stream in listed.streams),
            )
            context = CommandContext(tenant_id, RESTORER, _command_id(listed), digest_of([str(listed.erasure_id)]))
            stream = listed.streams[0]
            versions = stream_versions(transaction, tenant_id, [stream])
            sealed = seal_events(context, head, [Event(stream, body)], versions, clock())
            transaction.batch([*append_steps(sealed), *steps_for(sealed)])
            position = sealed[0].position
        remove_traces(transaction, tenant_id, listed.streams, position, clock())


def _command_id(listed: Listed) -> UUID:
    return derived_id("erasure_again", str(listed.tenant_id), str(listed.erasure_id))
