"""
After a restore: does the database lack an erasure that is on the list? Until it is applied again, nothing is served.

Where the restored log still has the erasure's event, what it took out is taken out again by its authority. Where
the log ends before it, the erasure is appended anew: the streams that it names are on the list.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import ErasureMissing, TenantUnknown
from grandbo.events.erasures import EntryErased
from grandbo.events.log import LOCK_HEAD, CommandContext, Event, head_of, seal_events, stream_versions
from grandbo.events.subjects import SubjectErased
from grandbo.memory.erasure_list import Listed, read_list
from grandbo.memory.forgetting import take_out
from grandbo.memory.subjects import SUBJECT
from grandbo.memory.traces import remove_traces
from grandbo.projections.runner import append
from grandbo.storage.database import Database, Role, Row, Transaction
from grandbo.storage.tables import events, subject_keys
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now, utc_text

RESTORER = Principal("system", derived_id("system", "restore-check"), "restore-check")

State = Literal["applied", "readable_again", "missing"]

_is_erasure = sa.or_(events.c.event_type == EntryErased.EVENT_TYPE, events.c.event_type == SubjectErased.EVENT_TYPE)
_ERASED = sa.select(events.c.position, events.c.hash, events.c.command_id).where(of_tenant(events), _is_erasure)
_KEYED = sa.select(subject_keys.c.subject_id).where(
    of_tenant(subject_keys), subject_keys.c.subject_id == sa.any_(sa.bindparam("subjects", type_=pg.ARRAY(sa.Uuid)))
)
# From where on each stream can be read. What was written into it after its erasure, such as what an entry keeps, is not
# what was to go.
_READABLE = (
    sa.select(events.c.stream_id, sa.func.min(events.c.position).label("position"))
    .where(
        of_tenant(events),
        events.c.stream_id == sa.any_(sa.bindparam("streams", type_=pg.ARRAY(sa.Uuid))),
        sa.not_(_is_erasure),
        events.c.body.is_not(None),
    )
    .group_by(events.c.stream_id)
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
    by_tenant: defaultdict[UUID, list[Listed]] = defaultdict(list)
    for listed in read_list(home, public):
        by_tenant[listed.tenant_id].append(listed)
    return [item for tenant_id, listed in by_tenant.items() for item in _checked(database, tenant_id, listed)]


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


@dataclass(frozen=True, slots=True)
class _Found:
    """What of the list a database has: erasures; from where on streams can be read; subjects that have a key."""

    erased: list[Row]
    readable: dict[UUID, int]
    keyed: frozenset[UUID]


def _checked(database: Database, tenant_id: UUID, listed: list[Listed]) -> list[Checked]:
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        found = _find(transaction, tenant_id, listed, back="auditor")
    return [Checked(item, _state(item, found)) for item in listed]


def _find(transaction: Transaction, tenant_id: UUID, listed: list[Listed], *, back: Role) -> _Found:
    key = {"tenant_id": tenant_id}
    streams = [stream for item in listed for stream in item.streams]
    erased, readable = transaction.batch([(_ERASED, key), (_READABLE, {**key, "streams": streams})])
    subjects = [item.subject_id for item in listed if item.subject_id is not None]
    keyed: list[Row] = []
    if subjects:
        keyed = transaction.execute_as("keyholder", _KEYED, {**key, "subjects": subjects}, back=back)
    positions = {row["stream_id"]: row["position"] for row in readable}
    return _Found(erased, positions, frozenset(row["subject_id"] for row in keyed))


def _state(listed: Listed, found: _Found) -> State:
    position = _position(listed, found.erased)
    held = [found.readable[stream] for stream in listed.streams if stream in found.readable]
    has_key = listed.subject_id in found.keyed
    if position is None:
        return "missing" if held or has_key else "applied"
    return "readable_again" if has_key or any(at < position for at in held) else "applied"


def _position(listed: Listed, erased: list[Row]) -> int | None:
    """Where the log has the erasure: at its place, or where it was appended anew."""
    again = _command_id(listed)
    for row in erased:
        if row["position"] == listed.position and bytes(row["hash"]).hex() == listed.hash:
            return listed.position
        if row["command_id"] == again:
            return int(row["position"])
    return None


def _apply(database: Database, listed: Listed, clock: Clock) -> None:
    tenant_id = listed.tenant_id
    with database.transaction("writer", tenant_id) as transaction:
        head_rows = transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id})
        if not head_rows:
            raise TenantUnknown
        position = _position(listed, _find(transaction, tenant_id, [], back="writer").erased)
        if position is None:
            stream, body = _body(transaction, listed, clock)
            context = CommandContext(tenant_id, RESTORER, _command_id(listed), digest_of([str(listed.erasure_id)]))
            versions = stream_versions(transaction, tenant_id, [stream])
            sealed = seal_events(context, head_of(head_rows), [Event(stream, body)], versions, clock())
            append(transaction, sealed)
            position = sealed[0].position
        if listed.subject_id is not None:
            take_out(transaction, tenant_id, listed.subject_id, listed.streams, position, clock())
            database.keys.forget(tenant_id, listed.subject_id)
        else:
            remove_traces(transaction, tenant_id, listed.streams, position, clock())


def _body(transaction: Transaction, listed: Listed, clock: Clock) -> tuple[UUID, EntryErased | SubjectErased]:
    """The erasure, to be appended anew where the log ends before it, and the stream that it goes into."""
    said: dict[str, Any] = {
        "reason": "request",
        "requested_by": RESTORER.ref,
        "requested_at": utc_text(clock()),
        "streams": tuple(str(stream) for stream in listed.streams),
    }
    if listed.subject_id is None:
        return listed.streams[0], EntryErased(**said)
    rows = transaction.execute(SUBJECT, {"tenant_id": listed.tenant_id, "subject": listed.subject_id})
    return listed.subject_id, SubjectErased(kind=rows[0]["kind"] if rows else "person", **said)


def _command_id(listed: Listed) -> UUID:
    return derived_id("erasure_again", str(listed.tenant_id), str(listed.erasure_id))
