"""
The current state of each entry, and every state it ever had.

An event changes the entry's row; then the row as it now stands is copied into the revisions by one statement that is
the same for every event. So a revision is a full snapshot without the event having to repeat what it left alone.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.applicability import Applies, ranges_by_system
from grandbo.errors import EventUnreadable
from grandbo.events import models
from grandbo.events.log import RecordedEvent
from grandbo.projections.terms import TERMS, term_weights
from grandbo.storage.database import Step
from grandbo.storage.tables import STATE_COLUMNS, entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import from_utc_text

_ENTRY = sa.bindparam("entry_id", type_=sa.Uuid)
_POSITION = sa.bindparam("at_position", type_=sa.BigInteger)

# What is selected, not VALUES: a replay selects the same from many rows.
INSERT = sa.insert(entries).from_select(
    [column.name for column in entries.c],
    sa.select(
        *(TERMS if column is entries.c.terms else sa.bindparam(column.name, type_=column.type) for column in entries.c)
    ),
)

_Time = sa.DateTime(timezone=True)


def _change(**columns: Any) -> sa.Update:
    """A statement that changes some columns of the entry, and what every change changes."""
    return (
        sa.update(entries)
        .where(of_tenant(entries), entries.c.entry_id == _ENTRY)
        .values(
            revision=sa.bindparam("to_revision", type_=sa.Integer),
            position=_POSITION,
            changed_at=sa.bindparam("at", type_=_Time),
            **columns,
        )
    )


def _given(*names: str) -> dict[str, sa.BindParameter[Any]]:
    return {name: sa.bindparam(f"new_{name}", type_=entries.c[name].type) for name in names}


_TEXT_COLUMNS = (
    "title",
    "summary",
    "body",
    "service",
    "tags",
    "confidence_bp",
    "evidence",
    "occurred_at",
    "occurred_precision",
    "ended_at",
    "claim_digest",
    "text_digest",
)
_CORROBORATE = _change(
    evidence=entries.c.evidence.op("||")(sa.bindparam("more_evidence", type_=pg.JSONB)),
    supported_by=entries.c.supported_by.op("||")(sa.bindparam("more_incidents", type_=pg.JSONB)),
)
_SET_TEXT = _change(terms=TERMS, **_given(*_TEXT_COLUMNS))
_SET_STATUS = _change(**_given("status"))
_SUPERSEDE = _change(**_given("status", "superseded_by"))
_SET_DISPUTE = _change(**_given("disputed", "disputed_with"))
_SET_VERIFIED = _change(**_given("verified_at", "review_at"))
_SET_EXPIRY = _change(**_given("expires_at"))
_NOTE_EXPIRY = (
    sa.update(entries)
    .where(of_tenant(entries), entries.c.entry_id == _ENTRY)
    .values(expiry_noted=sa.bindparam("noted", type_=_Time))
)
_APPLIES = ("applicability", "applies_systems", "applies_from", "applies_until")
_RECLASSIFY = _change(**_given("kind", "visibility", "claim_digest", "namespace", "owner", *_APPLIES))

_CLOSE_REVISION = (
    sa.update(revisions)
    .where(of_tenant(revisions), revisions.c.entry_id == _ENTRY, revisions.c.to_position.is_(None))
    .values(to_position=_POSITION)
)

SNAPSHOT = sa.insert(revisions).from_select(
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
    data = event.data
    if isinstance(data, models.EntryRecorded):
        return [(INSERT, _recorded_row(event, data)), snapshot(event)]
    if isinstance(data, models.EntryCorroborated | models.EntryChanged):
        statement, values = _changed(event, data)
        params = {**_key(event), "to_revision": data.revision, "at": event.header.recorded_at, **values}
        return [(statement, params), (_CLOSE_REVISION, _key(event)), snapshot(event)]
    if isinstance(data, models.EntryExpired):
        # The expiry that was noted, not that one was: a later expiry is noted anew without anything having to be reset.
        return [(_NOTE_EXPIRY, {**_key(event), "noted": from_utc_text(data.expires_at)})]
    return []


def _changed(
    event: RecordedEvent, data: models.EntryCorroborated | models.EntryChanged
) -> tuple[sa.Update, dict[str, Any]]:
    match data:
        case models.EntryCorroborated():
            evidence = [item.model_dump() for item in data.evidence]
            return _CORROBORATE, {"more_evidence": evidence, "more_incidents": [data.incident.model_dump()]}
        case models.TextChanged():
            return _SET_TEXT, _text_values(data)
        case models.EntryArchived():
            return _SET_STATUS, {"new_status": "archived"}
        case models.EntryUnarchived(no_longer_superseded=True):
            return _SUPERSEDE, {"new_status": "published", "new_superseded_by": None}
        case models.EntryUnarchived():
            return _SET_STATUS, {"new_status": "published"}
        case models.EntryQuarantined():
            return _SET_STATUS, {"new_status": "quarantined"}
        case models.EntryReleased():
            return _SET_STATUS, {"new_status": data.status}
        case models.EntrySuperseded():
            return _SUPERSEDE, {"new_status": "superseded", "new_superseded_by": data.superseded_by}
        case models.EntryDisputed():
            return _SET_DISPUTE, {"new_disputed": True, "new_disputed_with": data.other_entry_id}
        case models.EntryDisputeResolved():
            return _SET_DISPUTE, {"new_disputed": False, "new_disputed_with": None}
        case models.EntryVerified():
            review_at = from_utc_text(data.review_at)
            return _SET_VERIFIED, {"new_verified_at": event.header.recorded_at, "new_review_at": review_at}
        case models.EntryExpirySet():
            return _SET_EXPIRY, {"new_expires_at": from_utc_text(data.expires_at)}
        case models.EntryReclassified():
            return _RECLASSIFY, _class_values(data)
    raise EventUnreadable(f"No projection for {event.header.event_type}.", position=event.position)


def _text_values(data: models.TextChanged) -> dict[str, Any]:
    return {
        "terms": " ".join(term_weights(data)),
        "new_title": data.title,
        "new_summary": data.summary,
        "new_body": data.body,
        "new_service": data.service,
        "new_tags": list(data.tags),
        "new_confidence_bp": data.confidence_bp,
        "new_evidence": [item.model_dump() for item in data.evidence],
        "new_occurred_at": from_utc_text(data.occurred_at) if data.occurred_at else None,
        "new_occurred_precision": data.occurred_precision,
        "new_ended_at": from_utc_text(data.ended_at) if data.ended_at else None,
        "new_claim_digest": bytes.fromhex(data.claim_digest),
        "new_text_digest": bytes.fromhex(data.text_digest),
    }


def _class_values(data: models.EntryReclassified) -> dict[str, Any]:
    return {
        "new_kind": data.kind,
        "new_visibility": data.visibility,
        "new_claim_digest": bytes.fromhex(data.claim_digest),
        "new_namespace": data.namespace,
        "new_owner": data.owner,
        **{f"new_{name}": value for name, value in applies_columns(data.applicability).items()},
    }


def applies_columns(applicability: tuple[models.AppliesTo, ...]) -> dict[str, list[Any]]:
    """What it applies to, as people read it, and as ranges of keys that the database compares."""
    items = [Applies(item.system, item.versions) for item in applicability]
    ranges = ranges_by_system(items)
    return {
        "applicability": [str(item) for item in items],
        "applies_systems": [system for system, _, _ in ranges],
        "applies_from": [low for _, low, _ in ranges],
        "applies_until": [high for _, _, high in ranges],
    }


def _key(event: RecordedEvent) -> dict[str, Any]:
    return {"tenant_id": event.header.tenant_id, "entry_id": event.header.stream_id, "at_position": event.position}


def snapshot(event: RecordedEvent) -> Step:
    """Copy the entry as it stands now into its revisions."""
    header = event.header
    params = {
        "tenant_id": header.tenant_id,
        "entry_id": header.stream_id,
        "event_type": header.event_type,
        "principal": header.principal,
    }
    return SNAPSHOT, params


def _recorded_row(event: RecordedEvent, recorded: models.EntryRecorded) -> dict[str, Any]:
    occurred_at, ended_at = recorded.occurred_at, recorded.ended_at
    return {
        "tenant_id": event.header.tenant_id,
        "entry_id": event.header.stream_id,
        "revision": recorded.revision,
        "position": event.position,
        "terms": " ".join(term_weights(recorded)),
        "kind": recorded.kind,
        "status": recorded.status,
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
        "disputed_with": None,
        "superseded_by": None,
        "namespace": recorded.namespace,
        "owner": recorded.owner,
        **applies_columns(recorded.applicability),
        "expiry_noted": None,
    }
