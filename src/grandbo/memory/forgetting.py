"""
Forgetting a subject: its key destroyed, every row about it gone, and the bodies out of the log, in one transaction.

What is left is the event that says so, the opaque id, and a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import CommandContext, Event, Head, RecordedEvent, seal_events, stream_versions
from grandbo.events.subjects import SubjectErased
from grandbo.memory.subjects import Subject
from grandbo.memory.traces import count_rows, quoting_streams, remove_traces
from grandbo.projections.runner import append
from grandbo.storage.database import Transaction
from grandbo.storage.subject_keys import DESTROY_KEY
from grandbo.storage.tables import candidates, confirmations, entries, erasures, events, incidents
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock

_subject = sa.bindparam("subject", type_=sa.Uuid)
_ABOUT = sa.select(events.c.stream_id).where(of_tenant(events), events.c.subject_id == _subject).distinct()
_ENTRIES = sa.select(entries.c.entry_id).where(
    of_tenant(entries), entries.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
)
# What was proposed of an incident in the clear, before a person said that it is about the subject.
_OF_ITS_INCIDENTS = (
    sa.select(candidates.c.candidate_id)
    .join(
        incidents,
        sa.and_(
            incidents.c.tenant_id == candidates.c.tenant_id,
            incidents.c.source == candidates.c.incident_source,
            incidents.c.incident_id == candidates.c.incident_id,
        ),
    )
    .where(
        of_tenant(candidates), of_tenant(incidents), incidents.c.subject_id == _subject, candidates.c.entry_id.is_(None)
    )
)
# A request to erase an entry that is gone has nothing left to erase.
_CANCEL_REQUESTS = (
    sa.delete(erasures)
    .where(
        of_tenant(erasures),
        erasures.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))),
        erasures.c.position.is_(None),
    )
    .returning(erasures.c.erasure_id)
)
_CANCEL_CONFIRMATIONS = (
    sa.delete(confirmations)
    .where(of_tenant(confirmations), confirmations.c.subject_id == _subject)
    .returning(confirmations.c.confirmation_id)
)


def streams_about(transaction: Transaction, tenant_id: UUID, subject_id: UUID) -> list[UUID]:
    """Every stream about the subject, its own first; and those that quote one of its entries."""
    rows = transaction.execute(_ABOUT, {"tenant_id": tenant_id, "subject": subject_id})
    about = {row["stream_id"] for row in rows} - {subject_id}
    found = transaction.execute(_ENTRIES, {"tenant_id": tenant_id, "ids": list(about)})
    quoting = quoting_streams(transaction, tenant_id, [row["entry_id"] for row in found])
    before = transaction.execute(_OF_ITS_INCIDENTS, {"tenant_id": tenant_id, "subject": subject_id})
    return [subject_id, *sorted(about | set(quoting) | {row["candidate_id"] for row in before})]


def erase_subject(
    transaction: Transaction, context: CommandContext, head: Head, subject: Subject, body: dict[str, Any], clock: Clock
) -> tuple[RecordedEvent, dict[str, Any]]:
    """
    Erase it within a transaction that holds the head lock.

    Args:
        body: the event's reason, and who asked when.

    Gives the event, and what went: by store, and at which positions.
    """
    tenant_id, subject_id = context.tenant_id, subject.subject_id
    streams = streams_about(transaction, tenant_id, subject_id)
    said = SubjectErased(kind=subject.kind, streams=tuple(map(str, streams)), **body)
    versions = stream_versions(transaction, tenant_id, [subject_id])
    sealed = seal_events(context, head, [Event(subject_id, said)], versions, clock())
    erased = sealed[0]
    outcome = count_rows(transaction, tenant_id, streams, about=subject_id)
    append(transaction, sealed)
    at = erased.header.recorded_at
    told, outcome["bodies_removed"] = take_out(transaction, tenant_id, subject_id, streams, erased.position, at)
    outcome["rows_removed"] |= told
    return erased, outcome


def take_out(
    transaction: Transaction,
    tenant_id: UUID,
    subject_id: UUID,
    streams: Sequence[UUID],
    position: int,
    at: datetime,
) -> tuple[dict[str, int], int]:
    """Destroy the key, cancel what waits, and remove the traces; the event at the position is the authority."""
    destroyed = transaction.execute(DESTROY_KEY, {"position": position})[0]["destroyed"]
    # Only now: whoever was about to let something wait for this subject held its row, and has committed.
    waited = transaction.execute(_CANCEL_CONFIRMATIONS, {"tenant_id": tenant_id, "subject": subject_id})
    requests = transaction.execute(_CANCEL_REQUESTS, {"tenant_id": tenant_id, "ids": list(streams)})
    told, removed = remove_traces(transaction, tenant_id, streams, position, at, about=subject_id)
    return {
        "keys": int(bool(destroyed)),
        "confirmations": len(waited),
        "erasure_requests": len(requests),
        **told,
    }, removed
