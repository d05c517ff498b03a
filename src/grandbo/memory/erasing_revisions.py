"""
Erasing single revisions of an entry that goes on: what was found late in a text that was corrected since.

The bodies of their events go, and every row that was made of their words; a tombstone stands in their place. The
revisions before and after stay what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput
from grandbo.events.erasures import EntryErased
from grandbo.events.log import CommandContext, Event, Head, RecordedEvent, seal_events, stream_versions
from grandbo.events.sealing import NO_KEYS
from grandbo.memory.commands import keys_for
from grandbo.memory.redacting import Plan, plan_redaction, still_said
from grandbo.memory.traces import count_rows, quoting_revisions, remove_revision_traces
from grandbo.projections.redactions import as_left_by, entry_stream, remake_entry
from grandbo.projections.runner import append
from grandbo.storage.database import Transaction
from grandbo.storage.keyring import OpenedKeys
from grandbo.storage.subject_keys import open_keys
from grandbo.storage.tables import revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock

# More at once is an entry that goes as a whole.
REVISIONS_LIMIT = 50

_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_ROWS = sa.select(revisions).where(of_tenant(revisions), revisions.c.entry_id == _entry).order_by(revisions.c.revision)


@dataclass(frozen=True, slots=True)
class Redaction:
    """What would be done: the plan, in which other revisions the words stand, and the stream that it was made on."""

    plan: Plan
    still_in: list[dict[str, Any]]
    stream: list[RecordedEvent]


def checked_revisions(given: object) -> tuple[int, ...]:
    """The numbers as they were given. Raises `InvalidInput`."""
    numbers = given if isinstance(given, list | tuple) else [given]
    if not all(type(number) is int and number > 0 for number in numbers):
        raise InvalidInput("revision: it must be the number of a revision.", field="revision")
    if len(numbers) > REVISIONS_LIMIT:
        raise InvalidInput(f"revision: at most {REVISIONS_LIMIT} at once.", field="revision")
    return tuple(sorted(set(numbers)))


def plan_for(
    transaction: Transaction,
    keys: OpenedKeys,
    tenant_id: UUID,
    entry_id: UUID,
    about: UUID | None,
    named: Sequence[int],
) -> Redaction:
    """
    What these revisions would take with them.

    Raises:
        InvalidInput, IllegalTransition, KeyUnavailable
    """
    opened = NO_KEYS if about is None else open_keys(transaction, keys, tenant_id, [about], back="writer")
    stream = entry_stream(transaction, tenant_id, entry_id, opened)
    plan = plan_redaction(stream, named)
    rows = transaction.execute(_ROWS, {"tenant_id": tenant_id, "entry_id": entry_id})
    return Redaction(plan, still_said(rows, named, plan.revisions), stream)


def redact(
    transaction: Transaction,
    keys: OpenedKeys,
    context: CommandContext,
    head: Head,
    entry_id: UUID,
    about: UUID | None,
    planned: Redaction,
    said: Mapping[str, Any],
    clock: Clock,
) -> tuple[RecordedEvent, dict[str, Any]]:
    """
    Erase them within a transaction that holds the head lock.

    Args:
        said: the event's reason, and who asked when.

    Gives the event, and what went: by store, and at which positions.
    """
    tenant_id, plan = context.tenant_id, planned.plan
    streams = quoting_revisions(transaction, tenant_id, entry_id, plan.revisions, plan.digests)
    erased = EntryErased(streams=tuple(map(str, streams)), positions=plan.positions, **said)
    decided = [Event(entry_id, erased), Event(entry_id, plan.redacted, subject_id=about)]
    versions = stream_versions(transaction, tenant_id, [entry_id])
    opened = keys_for(transaction, keys, tenant_id, decided)
    sealed = seal_events(context, head, decided, versions, clock(), opened)
    outcome = count_rows(transaction, tenant_id, streams)
    append(transaction, sealed)
    # As a replay will find them: of vectors nothing is left.
    named = {item.position for item in plan.redacted.events}
    found = [event for event in planned.stream if event.position not in plan.positions or event.position in named]
    stream = as_left_by(plan.redacted, [*found, *sealed])
    outcome["rows_removed"] |= remake_entry(transaction, tenant_id, entry_id, stream)
    outcome["rows_removed"]["revisions"] = len(plan.revisions)
    outcome["positions"] = sorted([*outcome["positions"], *plan.positions])
    outcome["revisions"] = list(plan.revisions)
    outcome["events"] = [str(event.header.event_id) for event in planned.stream if event.position in plan.positions]
    event = sealed[0]
    told, outcome["bodies_removed"] = take_out(
        transaction, tenant_id, entry_id, planned, streams, event.position, event.header.recorded_at
    )
    outcome["rows_removed"] |= told
    return event, outcome


def take_out(
    transaction: Transaction,
    tenant_id: UUID,
    entry_id: UUID,
    planned: Redaction,
    streams: Sequence[UUID],
    position: int,
    at: datetime,
) -> tuple[dict[str, int], int]:
    """Remove the traces and the bodies; the event at the position is the authority."""
    plan = planned.plan
    first = next(event for event in planned.stream if event.position in plan.positions)
    is_delivered = 1 in plan.revisions or first.header.principal.startswith("hook:")
    delivered = [entry_id, *streams] if is_delivered else list(streams)
    return remove_revision_traces(transaction, tenant_id, entry_id, plan.revisions, delivered, position, at)
