"""
The log: lock the head, look a command up, append, read.

One lock per tenant. A write holds the tenant's head row from before it decides until it commits, so positions are
gapless and in commit order, the chain cannot fork, and idempotency cannot race. Other tenants are not touched.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import rfc8785
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import TenantUnknown
from grandbo.events import chain
from grandbo.events.parts import EventBody
from grandbo.events.registry import parse_body
from grandbo.events.sealing import NO_KEYS, Keys, open_body, seal_body
from grandbo.storage.database import Row, Step, Transaction
from grandbo.storage.tables import events, heads
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.types import Principal, new_id


@dataclass(frozen=True, slots=True)
class Head:
    """A tenant's last position, its hash, and when it was recorded."""

    position: int
    hash: bytes
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """A decided event, before it has a position. `starts_stream`: its stream id was made for it just now."""

    stream_id: UUID
    body: EventBody
    occurred_at: datetime | None = None
    subject_id: UUID | None = None
    starts_stream: bool = False


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of the log. `data` is None once its body was removed by an erasure, or its subject's key is gone."""

    header: chain.EventHeader
    envelope: str
    body: bytes | None
    salt: bytes | None
    prev_hash: bytes
    hash: bytes
    data: EventBody | None

    @property
    def position(self) -> int:
        return self.header.position


@dataclass(frozen=True, slots=True)
class CommandContext:
    """
    Who commands, under which id, and what it was caused by.

    `bare_digest`: the command's digest as it was before digests of what was screened were keyed; a retry may meet it.
    """

    tenant_id: UUID
    principal: Principal
    command_id: UUID
    command_digest: str
    correlation_id: UUID | None = None
    causation_id: UUID | None = None
    bare_digest: str | None = None


LOCK_HEAD = sa.select(heads.c.position, heads.c.hash, heads.c.recorded_at).where(of_tenant(heads)).with_for_update()
READ_HEAD = sa.select(heads.c.position, heads.c.hash, heads.c.recorded_at).where(of_tenant(heads))
FIND_COMMAND = (
    sa.select(events)
    .where(of_tenant(events), events.c.command_id == sa.bindparam("command_id"))
    .order_by(events.c.command_index)
)
# `recorded_at` has its default: the epoch, before any event.
OPEN_HEAD = sa.insert(heads).values(tenant_id=TENANT, position=0, hash=sa.bindparam("hash"))
_GENERATED = {"prev_position"}
_INSERT_EVENT = sa.insert(events).values(
    {column.name: sa.bindparam(column.name) for column in events.c if column.name not in _GENERATED}
)
_MOVE_HEAD = (
    sa.update(heads)
    .where(of_tenant(heads))
    .values(
        position=sa.bindparam("new_position"),
        hash=sa.bindparam("new_hash"),
        recorded_at=sa.bindparam("new_recorded_at"),
    )
)
_STREAMS = (
    sa.select(
        events.c.stream_id,
        sa.func.max(events.c.stream_version).label("version"),
        # There is no max of ids; all of a stream are the same, or none.
        sa.func.max(sa.cast(events.c.subject_id, sa.Text)).label("subject"),
    )
    .where(of_tenant(events), events.c.stream_id == sa.any_(sa.bindparam("streams", type_=pg.ARRAY(sa.Uuid))))
    .group_by(events.c.stream_id)
)
_READ = (
    sa.select(events)
    .where(
        of_tenant(events),
        events.c.position > sa.bindparam("after", type_=sa.BigInteger),
        events.c.position <= sa.bindparam("until", type_=sa.BigInteger),
    )
    .order_by(events.c.position)
)
LAST_POSITION = 2**62


def head_of(rows: Sequence[Row]) -> Head:
    """The head from the row that `LOCK_HEAD` or `READ_HEAD` gave."""
    if not rows:
        raise TenantUnknown
    return Head(**rows[0])


def stream_versions(transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID]) -> dict[UUID, int]:
    """Last version of each stream that has any event."""
    return streams_of(transaction, tenant_id, streams)[0]


def streams_of(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID]
) -> tuple[dict[UUID, int], dict[UUID, UUID]]:
    """Of each stream that has any event its last version, and the subject that it is about if it is about one."""
    rows = transaction.execute(_STREAMS, {"tenant_id": tenant_id, "streams": list(streams)})
    versions = {row["stream_id"]: row["version"] for row in rows}
    return versions, {row["stream_id"]: UUID(row["subject"]) for row in rows if row["subject"]}


def seal_events(
    context: CommandContext,
    head: Head,
    decided: Sequence[Event],
    versions: dict[UUID, int],
    now: datetime,
    keys: Keys = NO_KEYS,
) -> list[RecordedEvent]:
    """
    Give the decided events their positions, versions, times and hashes, in order.

    An event about a subject is sealed under its key, which `keys` must have.

    `recorded_at` never runs backwards within a tenant, whatever the clocks of several writers say.
    """
    recorded_at = max(now, head.recorded_at)
    sealed: list[RecordedEvent] = []
    prev_hash = head.hash
    versions = dict(versions)
    for index, event in enumerate(decided):
        versions[event.stream_id] = versions.get(event.stream_id, 0) + 1
        body_model = event.body.model_copy(update={"command_digest": context.command_digest})
        header = chain.EventHeader(
            tenant_id=context.tenant_id,
            position=head.position + index + 1,
            event_id=new_id(),
            stream_id=event.stream_id,
            stream_version=versions[event.stream_id],
            event_type=event.body.EVENT_TYPE,
            schema_version=event.body.SCHEMA_VERSION,
            principal=context.principal.ref,
            subject_id=event.subject_id,
            command_id=context.command_id,
            command_index=index,
            correlation_id=context.correlation_id,
            causation_id=context.causation_id,
            occurred_at=event.occurred_at or recorded_at,
            recorded_at=recorded_at,
        )
        body = rfc8785.dumps(body_model.document())
        if header.subject_id is not None:
            body = seal_body(header, body, keys[header.subject_id])
        salt = secrets.token_bytes(chain.SALT_BYTES)
        seal = chain.seal(header, salt=salt, body=body, prev_hash=prev_hash)
        sealed.append(RecordedEvent(header, seal.envelope, body, salt, prev_hash, seal.hash, body_model))
        prev_hash = seal.hash
    return sealed


def append_steps(sealed: Sequence[RecordedEvent]) -> list[Step]:
    """Statements that append the sealed events and move the head onto the last of them."""
    steps: list[Step] = [(_INSERT_EVENT, _row(event)) for event in sealed]
    last = sealed[-1]
    steps.append(
        (
            _MOVE_HEAD,
            {
                "tenant_id": last.header.tenant_id,
                "new_position": last.position,
                "new_hash": last.hash,
                "new_recorded_at": last.header.recorded_at,
            },
        )
    )
    return steps


def read_rows(
    transaction: Transaction, tenant_id: UUID, *, after: int = 0, until: int = LAST_POSITION
) -> Iterator[Row]:
    """Rows of the log with after < position <= until, in order, streamed."""
    return transaction.stream(_READ, {"tenant_id": tenant_id, "after": after, "until": until})


def recorded_event(row: Row, keys: Keys = NO_KEYS) -> RecordedEvent:
    """Read one row of the log; raises `EventUnreadable` where this version cannot. Without its key a body is none."""
    header = chain.EventHeader(**{name: row[name] for name in chain.EventHeader.__slots__})
    body: bytes | None = row["body"]
    data = None
    plain = body
    if body is not None and header.subject_id is not None:
        key = keys.get(header.subject_id)
        plain = None if key is None else open_body(header, body, key)
    if plain is not None:
        data = parse_body(header.event_type, header.schema_version, plain, position=header.position)
    return RecordedEvent(header, row["envelope"], body, row["salt"], row["prev_hash"], row["hash"], data)


def read_events(
    transaction: Transaction, tenant_id: UUID, *, after: int = 0, until: int = LAST_POSITION, keys: Keys = NO_KEYS
) -> Iterator[RecordedEvent]:
    """Events of the log with after < position <= until, in order, streamed."""
    return (recorded_event(row, keys) for row in read_rows(transaction, tenant_id, after=after, until=until))


def _row(event: RecordedEvent) -> dict[str, Any]:
    header = {name: getattr(event.header, name) for name in chain.EventHeader.__slots__}
    return {
        **header,
        "envelope": event.envelope,
        "body": event.body,
        "salt": event.salt,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
    }
