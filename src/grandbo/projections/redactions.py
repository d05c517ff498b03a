"""
Redactions in a replay: an event whose words were erased is read as what is left of it.

Which ones these are is said later in the same log, so it is asked for before the replay begins; the projectors see one
event after another, as ever. Live, the rows of the one entry are made anew from its stream by the same projectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.erasures import EntryErased, EntryRedacted, RedactedEvent
from grandbo.events.log import RecordedEvent, recorded_event
from grandbo.events.parts import EventBody
from grandbo.events.registry import parse_body
from grandbo.events.sealing import Keys
from grandbo.projections.erasures import REACHING, is_reaching
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Transaction
from grandbo.storage.tables import embeddings, entries, events, links, revisions, terms
from grandbo.storage.tenancy import of_tenant

Left = Mapping[int, EventBody]

_REDACTED = (
    sa.select(events)
    .where(of_tenant(events), events.c.event_type == EntryRedacted.EVENT_TYPE)
    .order_by(events.c.position)
)
_OF_STREAM = (
    sa.select(events)
    .where(of_tenant(events), events.c.stream_id == sa.bindparam("stream", type_=sa.Uuid))
    .order_by(events.c.position)
)
_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_COUNTS = sa.select(
    *(
        sa.select(sa.func.count()).where(of_tenant(table), table.c.entry_id == _entry).scalar_subquery().label(name)
        for name, table in (("terms", terms), ("embeddings", embeddings))
    )
)
# What the entry's own stream has made, and nothing that other streams have made of it.
_ITS_ROWS = (
    sa.delete(terms).where(of_tenant(terms), terms.c.entry_id == _entry),
    sa.delete(embeddings).where(of_tenant(embeddings), embeddings.c.entry_id == _entry),
    sa.delete(revisions).where(of_tenant(revisions), revisions.c.entry_id == _entry),
    sa.delete(entries).where(of_tenant(entries), entries.c.entry_id == _entry),
    sa.delete(links).where(of_tenant(links), links.c.from_entry == _entry),
)

_ERASURES = sa.select(events).where(of_tenant(events), is_reaching).order_by(events.c.position)
_gone = sa.func.unnest(
    sa.bindparam("gone", type_=pg.ARRAY(sa.Uuid)), sa.bindparam("since", type_=pg.ARRAY(sa.BigInteger))
)
_gone_since = _gone.table_valued("entry_id", "position").render_derived()
_ITS_LINKS_TO_ERASED = sa.delete(links).where(
    of_tenant(links),
    links.c.from_entry == _entry,
    links.c.to_entry == _gone_since.c.entry_id,
    links.c.from_position < _gone_since.c.position,
)


def what_is_left(transaction: Transaction, tenant_id: UUID, keys: Keys) -> Left:
    """By position, what is left of the events whose words were erased."""
    told = (recorded_event(row, keys) for row in transaction.execute(_REDACTED, {"tenant_id": tenant_id}))
    return _left(told)


def as_left(event: RecordedEvent, left: Left) -> RecordedEvent:
    """The event, or what is left of it."""
    return replace(event, data=left[event.position]) if event.position in left else event


def as_left_by(redacted: EntryRedacted, stream: Iterable[RecordedEvent]) -> Iterator[RecordedEvent]:
    """The events, those that this redaction is of as what is left of them."""
    left = {item.position: _read(item) for item in redacted.events}
    return (as_left(event, left) for event in stream)


def entry_stream(transaction: Transaction, tenant_id: UUID, entry_id: UUID, keys: Keys) -> list[RecordedEvent]:
    """The entry's events since it began, or began anew, in order; redacted ones as what is left of them."""
    rows = transaction.execute(_OF_STREAM, {"tenant_id": tenant_id, "stream": entry_id})
    stream = [recorded_event(row, keys) for row in rows]
    whole = [place for place, event in enumerate(stream) if _erases(event, entry_id)]
    stream = stream[whole[-1] + 1 :] if whole else stream
    left = _left(stream)
    return [as_left(event, left) for event in stream]


def remake_entry(
    transaction: Transaction, tenant_id: UUID, entry_id: UUID, stream: Iterable[RecordedEvent]
) -> dict[str, int]:
    """
    Make the entry's rows anew from its events; gives how many words and vectors there are fewer of.

    Links to what was erased since they were made are in none of its events: they are taken out again.
    """
    key = {"tenant_id": tenant_id, "entry_id": entry_id}
    before = transaction.execute(_COUNTS, key)[0]
    erased = [recorded_event(row) for row in transaction.execute(_ERASURES, {"tenant_id": tenant_id})]
    gone = [(UUID(stream), event.position) for event in erased for stream in _streams(event)]
    since = {"gone": [stream for stream, _ in gone], "since": [position for _, position in gone]}
    again = [*((statement, key) for statement in _ITS_ROWS), *steps_for(stream), (_ITS_LINKS_TO_ERASED, key | since)]
    transaction.batch(again)
    after = transaction.execute(_COUNTS, key)[0]
    return {name: before[name] - after[name] for name in before}


def _streams(event: RecordedEvent) -> tuple[str, ...]:
    return event.data.streams if isinstance(event.data, REACHING) else ()


def _erases(event: RecordedEvent, entry_id: UUID) -> bool:
    return isinstance(event.data, EntryErased) and str(entry_id) in event.data.streams


def _left(told: Iterable[RecordedEvent]) -> dict[int, EventBody]:
    return {
        item.position: _read(item)
        for event in told
        if isinstance(event.data, EntryRedacted)
        for item in event.data.events
    }


def _read(item: RedactedEvent) -> EventBody:
    return parse_body(item.event_type, item.schema_version, item.body.encode(), position=item.position)
