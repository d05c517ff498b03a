"""
After a restore: does the database lack an erasure that is on the list? Until it is applied again, nothing is served.

Where the restored log still has the erasure's event, what it took out is taken out again by its authority. Where
the log ends before it, the erasure is appended anew: the streams that it names are on the list.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import ErasureMissing, IllegalTransition, TenantUnknown
from grandbo.events.erasures import EntryErased
from grandbo.events.log import (
    LOCK_HEAD,
    CommandContext,
    Event,
    Head,
    head_of,
    seal_events,
    stream_versions,
    streams_of,
)
from grandbo.events.sealing import NO_KEYS, Keys
from grandbo.events.subjects import SubjectErased
from grandbo.memory.erasing_revisions import plan_for, redact
from grandbo.memory.erasure_list import Listed, read_list
from grandbo.memory.forgetting import take_out
from grandbo.memory.redacting import made_revision
from grandbo.memory.subjects import SUBJECT
from grandbo.memory.traces import remove_revision_traces, remove_traces
from grandbo.projections.erasures import is_reaching
from grandbo.projections.redactions import entry_stream, remake_entry
from grandbo.projections.runner import append
from grandbo.storage.database import Database, Role, Row, Transaction
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import events, subject_keys
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now, utc_text

RESTORER = Principal("system", derived_id("system", "restore-check"), "restore-check")

State = Literal["applied", "readable_again", "missing"]

_ERASED = sa.select(events.c.position, events.c.hash, events.c.command_id).where(of_tenant(events), is_reaching)
_KEYED = sa.select(subject_keys.c.subject_id).where(
    of_tenant(subject_keys), subject_keys.c.subject_id == sa.any_(sa.bindparam("subjects", type_=pg.ARRAY(sa.Uuid)))
)
# From where on each stream can be read. What was written into it after its erasure, such as what an entry keeps, is not
# what was to go.
_READABLE_EVENTS = sa.select(events.c.event_id, events.c.position).where(
    of_tenant(events),
    events.c.event_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))),
    events.c.body.is_not(None),
)
_READABLE = (
    sa.select(events.c.stream_id, sa.func.min(events.c.position).label("position"))
    .where(
        of_tenant(events),
        events.c.stream_id == sa.any_(sa.bindparam("streams", type_=pg.ARRAY(sa.Uuid))),
        sa.not_(is_reaching),
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
    """
    What of the list a database has: erasures; from where on streams can be read; subjects that have a key; single
    events that can be read, with their positions.
    """

    erased: list[Row]
    readable: dict[UUID, int]
    keyed: frozenset[UUID]
    readable_events: dict[UUID, int]


def _checked(database: Database, tenant_id: UUID, listed: list[Listed]) -> list[Checked]:
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        found = _find(transaction, tenant_id, listed, back="auditor")
    return [Checked(item, _state(item, found)) for item in listed]


def _find(transaction: Transaction, tenant_id: UUID, listed: list[Listed], *, back: Role) -> _Found:
    key = {"tenant_id": tenant_id}
    streams = [stream for item in listed for stream in item.streams]
    single = [event for item in listed for event in item.events]
    erased, readable, bodies = transaction.batch(
        [(_ERASED, key), (_READABLE, {**key, "streams": streams}), (_READABLE_EVENTS, {**key, "ids": single})]
    )
    subjects = [item.subject_id for item in listed if item.subject_id is not None]
    keyed: list[Row] = []
    if subjects:
        keyed = transaction.execute_as("keyholder", _KEYED, {**key, "subjects": subjects}, back=back)
    positions = {row["stream_id"]: row["position"] for row in readable}
    read = {row["event_id"]: row["position"] for row in bodies}
    return _Found(erased, positions, frozenset(row["subject_id"] for row in keyed), read)


def _state(listed: Listed, found: _Found) -> State:
    position = _position(listed, found.erased)
    held = [found.readable[stream] for stream in listed.streams if stream in found.readable]
    held += [found.readable_events[event] for event in listed.events if event in found.readable_events]
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
        head = head_of(head_rows)
        found = _find(transaction, tenant_id, [listed], back="writer")
        position = _position(listed, found.erased)
        if listed.entry_id is not None:
            revised = _Revised(transaction, database, listed, sorted(found.readable_events.values()), clock)
            if position is not None:
                revised.again(position)
                return
            if revised.redact(head):
                return
            # The log ends before the text was corrected: what was to go is what the entry says, so all of it goes.
            listed = replace(listed, streams=(listed.entry_id, *listed.streams))
        if position is None:
            stream, body = _body(transaction, listed, clock)
            context = CommandContext(tenant_id, RESTORER, _command_id(listed), digest_of([str(listed.erasure_id)]))
            versions = stream_versions(transaction, tenant_id, [stream])
            sealed = seal_events(context, head, [Event(stream, body)], versions, clock())
            append(transaction, sealed)
            position = sealed[0].position
        if listed.subject_id is not None:
            take_out(transaction, tenant_id, listed.subject_id, listed.streams, position, clock())
            database.keys.forget(tenant_id, listed.subject_id)
        else:
            remove_traces(transaction, tenant_id, listed.streams, position, clock())


class _Revised:
    """Single revisions of one entry, erased again."""

    def __init__(
        self, transaction: Transaction, database: Database, listed: Listed, readable: list[int], clock: Clock
    ) -> None:
        assert listed.entry_id is not None
        self._transaction = transaction
        self._keys = database.keys
        self._listed = listed
        self._entry_id = listed.entry_id
        self._readable = readable
        self._clock = clock
        about = streams_of(transaction, listed.tenant_id, [listed.entry_id])[1]
        self._about = about.get(listed.entry_id)

    def again(self, position: int) -> None:
        """The log has the erasure, and bodies that it took out: they go by its authority, and the rows of them."""
        entry = (self._transaction, self._listed.tenant_id, self._entry_id)
        remake_entry(*entry, entry_stream(*entry, self._opened()))
        streams = self._listed.streams
        remove_revision_traces(*entry, self._listed.revisions, streams, position, self._clock())

    def redact(self, head: Head) -> bool:
        """Append the erasure anew; False where a revision is what the entry says, or none is there yet."""
        tenant_id = self._listed.tenant_id
        stream = entry_stream(self._transaction, tenant_id, self._entry_id, self._opened())
        made = [made_revision(event.data) for event in stream if event.position in self._readable]
        named = [number for number in made if number is not None]
        if not named:
            return False
        try:
            planned = plan_for(self._transaction, self._keys, tenant_id, self._entry_id, self._about, named)
        except IllegalTransition:
            return False
        again = digest_of([str(self._listed.erasure_id)])
        context = CommandContext(tenant_id, RESTORER, _command_id(self._listed), again)
        said = _said(self._clock)
        redact(self._transaction, self._keys, context, head, self._entry_id, self._about, planned, said, self._clock)
        return True

    def _opened(self) -> Keys:
        if self._about is None:
            return NO_KEYS
        return open_keys(self._transaction, self._keys, self._listed.tenant_id, [self._about], back="writer")


def _said(clock: Clock) -> dict[str, Any]:
    return {"reason": "request", "requested_by": RESTORER.ref, "requested_at": utc_text(clock())}


def _body(transaction: Transaction, listed: Listed, clock: Clock) -> tuple[UUID, EntryErased | SubjectErased]:
    """The erasure, to be appended anew where the log ends before it, and the stream that it goes into."""
    said = _said(clock) | {"streams": tuple(str(stream) for stream in listed.streams)}
    if listed.subject_id is None:
        return listed.streams[0], EntryErased(positions=(), **said)
    rows = transaction.execute(SUBJECT, {"tenant_id": listed.tenant_id, "subject": listed.subject_id})
    return listed.subject_id, SubjectErased(kind=rows[0]["kind"] if rows else "person", **said)


def _command_id(listed: Listed) -> UUID:
    return derived_id("erasure_again", str(listed.tenant_id), str(listed.erasure_id))
