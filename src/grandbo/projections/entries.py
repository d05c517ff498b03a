"""
The current state of each entry, and every state it ever had.

An event changes the entry's row; then the row as it now stands is copied into the revisions by one statement that is
the same for every event. So a revision is a full snapshot without the event having to repeat what it left alone.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import RecordedEvent
from grandbo.events.models import EntryCorroborated, EntryRecorded
from grandbo.projections.terms import TERMS, term_weights
from grandbo.storage.database import Step
from grandbo.storage.tables import STATE_COLUMNS, entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import from_utc_text

_ENTRY = sa.bindparam("entry_id", type_=sa.Uuid)
_POSITION = sa.bindparam("at_position", type_=sa.BigInteger)

_INSERT = sa.insert(entries).values(
    {**{column.name: sa.bindparam(column.name) for column in entries.c}, "terms": TERMS}
)

_CORROBORATE = (
    sa.update(entries)
    .where(of_tenant(entries), entries.c.entry_id == _ENTRY)
    .values(
        revision=sa.bindparam("to_revision", type_=sa.Integer),
        position=_POSITION,
        changed_at=sa.bindparam("at", type_=sa.DateTime(timezone=True)),
        evidence=entries.c.evidence.op("||")(sa.bindparam("more_evidence", type_=pg.JSONB)),
        supported_by=entries.c.supported_by.op("||")(sa.bindparam("more_incidents", type_=pg.JSONB)),
    )
)

_CLOSE_REVISION = (
    sa.update(revisions)
    .where(of_tenant(revisions), revisions.c.entry_id == _ENTRY, revisions.c.to_position.is_(None))
    .values(to_position=_POSITION)
)

_SNAPSHOT = sa.insert(revisions).from_select(
    ["tenant_id", "entry_id", "revision", "from_position", "event_type", "principal", *STATE_COLUMNS],
    sa.select(
        entries.c.tenant_id,
        entries.c.entry_id,
        entries.c.revision,
        entries.c.position,
        sa.bindparam("event_type", type_=sa.Text),
        sa.bindparam("principal", type_=sa.Text),
        *(entries.c[name] for name in STATE_COLUMNS),
    ).where(of_tenant(entries), entries.c.entry_id == _ENTRY),
)


def project(event: RecordedEvent) -> list[Step]:
    """Change the entry and open its next revision."""
    match event.data:
        case EntryRecorded() as recorded:
            return [(_INSERT, _recorded_row(event, recorded)), _snapshot(event)]
        case EntryCorroborated() as corroborated:
            change = {
                **_key(event),
                "to_revision": corroborated.revision,
                "at": event.header.recorded_at,
                "more_evidence": [item.model_dump() for item in corroborated.evidence],
                "more_incidents": [corroborated.incident.model_dump()],
            }
            return [(_CORROBORATE, change), (_CLOSE_REVISION, _key(event)), _snapshot(event)]
        case _:
            return []


def _key(event: RecordedEvent) -> dict[str, Any]:
    return {"tenant_id": event.header.tenant_id, "entry_id": event.header.stream_id, "at_position": event.position}


def _snapshot(event: RecordedEvent) -> Step:
    header = event.header
    params = {
        "tenant_id": header.tenant_id,
        "entry_id": header.stream_id,
        "event_type": header.event_type,
        "principal": header.principal,
    }
    return _SNAPSHOT, params


def _recorded_row(event: RecordedEvent, recorded: EntryRecorded) -> dict[str, Any]:
    occurred_at, ended_at = recorded.occurred_at, recorded.ended_at
    return {
        "tenant_id": event.header.tenant_id,
        "entry_id": event.header.stream_id,
        "revision": recorded.revision,
        "position": event.position,
        "terms": " ".join(term_weights(recorded)),
        "kind": recorded.kind,
        "status": "published",
        "title": recorded.title,
        "summary": recorded.summary,
        "body": recorded.body,
        "service": recorded.service,
        "tags": list(recorded.tags),
        "visibility": recorded.visibility,
        "confidence_bp": recorded.confidence_bp,
        "author_type": recorded.author_type,
        "evidence": [item.model_dump() for item in recorded.evidence],
        "incident_source": recorded.incident.source if recorded.incident else None,
        "incident_id": recorded.incident.id if recorded.incident else None,
        "external_id": recorded.external_id,
        "claim_digest": bytes.fromhex(recorded.claim_digest),
        "text_digest": bytes.fromhex(recorded.text_digest),
        "occurred_at": from_utc_text(occurred_at) if occurred_at else None,
        "occurred_precision": recorded.occurred_precision,
        "ended_at": from_utc_text(ended_at) if ended_at else None,
        "valid_from": from_utc_text(recorded.valid_from),
        "expires_at": from_utc_text(recorded.expires_at),
        "verified_at": None,
        "review_at": from_utc_text(recorded.review_at),
        "disputed": False,
        "supported_by": [],
        "recorded_at": event.header.recorded_at,
        "changed_at": event.header.recorded_at,
    }
