"""
One command: look it up, decide, append, project. One transaction: lock the head, run the commands, commit.

Twice: the second finds the first under its id and gives the same acknowledgement. At once: the second waits for the
head lock, then is the case above. Half-way: nothing was committed, nothing happened. Late: it is decided on what is
stored by then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import CommandReused, GrandboError, SubjectErased, SubjectMissing, SubjectOnHold
from grandbo.events.log import (
    FIND_COMMAND,
    LOCK_HEAD,
    CommandContext,
    Event,
    Head,
    RecordedEvent,
    head_of,
    recorded_event,
    seal_events,
    streams_of,
)
from grandbo.events.models import EntryExpired, EntryExpirySet, EntryReclassified, TextChanged
from grandbo.events.sealing import NO_KEYS, Keys
from grandbo.projections.runner import append
from grandbo.storage.database import Database, Row, Step, Transaction
from grandbo.storage.keyring import OpenedKeys
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import subjects
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, utc_now, utc_text

_HELD = sa.select(subjects).where(
    of_tenant(subjects),
    subjects.c.subject_id == sa.any_(sa.bindparam("subjects", type_=pg.ARRAY(sa.Uuid))),
    subjects.c.held_at.is_not(None),
)

# What the head lock holds still: a subject that was erased has no active row, whoever still knows its key.
_ACTIVE = sa.select(subjects.c.subject_id).where(
    of_tenant(subjects),
    subjects.c.subject_id == sa.any_(sa.bindparam("subjects", type_=pg.ARRAY(sa.Uuid))),
    subjects.c.state == "active",
)

Decide = Callable[[list[list[Row]], datetime], Sequence[Event]]
# Reads of which each rests on the rows of the one before: gives steps, is sent their rows.
Reads = Generator[Sequence[Step], list[list[Row]], None]


@dataclass(frozen=True, slots=True)
class Command:
    """
    Something to be done to one tenant's memory.

    Attributes:
        reads: what the decision rests on; read under the head lock.
        decide: from the rows of `reads` and the time to the events, or none; may raise, and then nothing happens.
        explore: further reads before the decision, under the same lock, for what cannot be read at once; they leave
            what they found where `decide` knows to look. Not made for a command that was carried out before.
        keys: of subjects, opened before the lock was taken; one that was erased since is not used.
    """

    context: CommandContext
    reads: Sequence[Step]
    decide: Decide
    explore: Callable[[], Reads] | None = None
    keys: Keys = field(default_factory=dict)

    @property
    def lookups(self) -> list[Step]:
        """The statements that precede the decision."""
        tenant = {"tenant_id": self.context.tenant_id}
        about: list[Step] = [(_ACTIVE, {**tenant, "subjects": list(self.keys)})] if self.keys else []
        return [(FIND_COMMAND, {**tenant, "command_id": self.context.command_id}), *about, *self.reads]


@dataclass(frozen=True, slots=True)
class Appended:
    """What became of a command: its events, new or found again; none where it had nothing to add."""

    events: list[RecordedEvent]
    replayed: bool


def follow(transaction: Transaction, reads: Reads) -> None:
    """Make reads that rest on each other, in one round trip each, to their end."""
    found: list[list[Row]] | None = None
    while True:
        try:
            steps = next(reads) if found is None else reads.send(found)
        except StopIteration:
            return
        found = transaction.batch(steps)


def run_command(database: Database, command: Command, *, clock: Clock = utc_now) -> Appended:
    """
    Run one command in a transaction of its own, in three round trips.

    Raises:
        CommandReused: its id was used before with other content.
    """
    tenant_id = command.context.tenant_id
    with database.transaction("writer", tenant_id) as transaction:
        locked, *found = transaction.batch([(LOCK_HEAD, {"tenant_id": tenant_id}), *command.lookups])
        appended = _carry_out(transaction, database.keys, command, head_of(locked), found, clock())
        if appended.events and not appended.replayed:
            append(transaction, appended.events, commit=True)
        return appended


def run_commands(
    database: Database, tenant_id: UUID, commands: Sequence[Command], *, clock: Clock = utc_now
) -> list[Appended | GrandboError]:
    """
    Run several commands of one tenant in one transaction: one lock, one commit.

    A command that is refused leaves the others alone; its error takes its place in the list.
    """
    outcomes: list[Appended | GrandboError] = []
    with database.transaction("writer", tenant_id) as transaction:
        head = head_of(transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id}))
        for command in commands:
            found = transaction.batch(command.lookups)
            try:
                appended = _carry_out(transaction, database.keys, command, head, found, clock())
            except GrandboError as error:
                outcomes.append(error)
                continue
            if appended.events and not appended.replayed:
                append(transaction, appended.events)
                last = appended.events[-1]
                head = Head(last.position, last.hash, last.header.recorded_at)
            outcomes.append(appended)
    return outcomes


def _carry_out(
    transaction: Transaction,
    keys: OpenedKeys,
    command: Command,
    head: Head,
    found: list[list[Row]],
    now: datetime,
) -> Appended:
    known, *reads = found
    tenant_id = command.context.tenant_id
    if known:
        about = {row["subject_id"] for row in known if row["subject_id"] and row["body"] is not None}
        opened = open_keys(transaction, keys, tenant_id, about, back="writer") if about else NO_KEYS
        return Appended(_same_command(command.context, known, opened), replayed=True)
    usable = command.keys
    if usable:
        active, *reads = reads
        usable = {row["subject_id"]: usable[row["subject_id"]] for row in active}
    # A decision must not see a clock that ran backwards: recorded_at never does.
    now = max(now, head.recorded_at)
    if command.explore is not None:
        follow(transaction, command.explore())
    decided = command.decide(reads, now)
    if not decided:
        return Appended([], replayed=False)
    grown = [event.stream_id for event in decided if not event.starts_stream]
    versions, named = streams_of(transaction, tenant_id, grown) if grown else ({}, {})
    decided = bound(decided, named)
    _refuse_held(transaction, tenant_id, decided)
    opened = keys_for(transaction, keys, tenant_id, decided, usable)
    return Appended(seal_events(command.context, head, decided, versions, now, opened), replayed=False)


def bound(decided: Sequence[Event], subjects: Mapping[UUID, UUID]) -> list[Event]:
    """
    What is written into a stream about a subject is about it too, and so is the stream that the same command begins.

    Raises:
        SubjectMissing: its text would also go into an entry that does not name it.
    """
    named = {**subjects, **{event.stream_id: event.subject_id for event in decided if event.subject_id is not None}}
    if not named:
        return list(decided)
    about = set(named.values())
    begins = next(iter(about)) if len(about) == 1 else None
    sealed = []
    for event in decided:
        subject = named.get(event.stream_id) or (begins if event.starts_stream else None)
        if subject is None and isinstance(event.body, TextChanged):
            raise SubjectMissing("This is about a subject, and would go into an entry that does not name it.")
        sealed.append(replace(event, subject_id=subject if event.body.SEALED else None))
    return sealed


# What is held about a subject stays as it is, and in date, for as long as a hold stands.
_HELD_BACK = (TextChanged, EntryExpirySet, EntryExpired, EntryReclassified)


def _refuse_held(transaction: Transaction, tenant_id: UUID, decided: Sequence[Event]) -> None:
    about = {event.subject_id for event in decided if event.subject_id and isinstance(event.body, _HELD_BACK)}
    if about:
        for row in transaction.execute(_HELD, {"tenant_id": tenant_id, "subjects": list(about)}):
            raise on_hold(row)


def on_hold(subject: Mapping[str, Any]) -> SubjectOnHold:
    """The error that says why, since when and by whom a subject is held."""
    since = utc_text(subject["held_at"])
    return SubjectOnHold(
        f"A legal hold stands on this subject since {since}, set by {subject['held_by']}: {subject['hold_reason']}",
        subject_id=str(subject["subject_id"]),
        held_by=subject["held_by"],
        held_at=since,
    )


def keys_for(
    transaction: Transaction, keys: OpenedKeys, tenant_id: UUID, decided: Sequence[Event], usable: Keys = NO_KEYS
) -> Keys:
    """
    The keys that these events are sealed under; `usable`: those of subjects that are known to be there still.

    Raises:
        SubjectErased: a subject is no more. KeyUnavailable: a key cannot be opened.
    """
    about = {event.subject_id for event in decided if event.subject_id is not None}
    if about <= usable.keys():
        return usable
    opened = open_keys(transaction, keys, tenant_id, about, back="writer")
    if about - opened.keys():
        raise SubjectErased
    return opened


def _same_command(context: CommandContext, rows: Sequence[Row], keys: Keys) -> list[RecordedEvent]:
    events = [recorded_event(row, keys) for row in rows]
    first = events[0].data
    # A body that an erasure removed says nothing any more; the retry is answered and writes nothing.
    if first is not None and first.command_digest not in (context.command_digest, context.bare_digest):
        raise CommandReused
    return events
