"""Candidates as they stand: the queue that reviewers work through. Never a part of recall."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events import candidates as events
from grandbo.events.candidates import CandidateContent
from grandbo.events.log import RecordedEvent
from grandbo.storage.database import Step
from grandbo.storage.tables import candidates
from grandbo.storage.tenancy import of_tenant

_CONTENT = ("kind", "title", "visibility", "claim_digest", "incident_source", "incident_id", "content")
_DECISION = ("decided_by", "decision_reason", "outcome", "entry_id", "entry_revision", "other_revision")

_INSERT = sa.insert(candidates).values({column.name: sa.bindparam(column.name) for column in candidates.c})


def _change(*names: str, **fixed: Any) -> sa.Update:
    given = {name: sa.bindparam(f"new_{name}", type_=candidates.c[name].type) for name in names}
    return (
        sa.update(candidates)
        .where(of_tenant(candidates), candidates.c.candidate_id == sa.bindparam("candidate", type_=sa.Uuid))
        .values(
            version=sa.bindparam("to_version", type_=sa.Integer),
            position=sa.bindparam("at_position", type_=sa.BigInteger),
            changed_at=sa.bindparam("at", type_=sa.DateTime(timezone=True)),
            **given,
            **fixed,
        )
    )


_AMEND = _change(*_CONTENT, "flags", "risk", "into_entry", "approved_by")
_SECOND = _change(
    *_CONTENT,
    approved_by=candidates.c.approved_by.op("||")(sa.bindparam("approver", type_=pg.ARRAY(sa.Text))),
)
_APPROVE = _change(*_CONTENT, "status", *_DECISION)
_DECIDE = _change("status", *_DECISION, "approved_by")


def project(event: RecordedEvent) -> list[Step]:
    """Open a candidate, change it, or say what was decided."""
    header, data = event.header, event.data
    if isinstance(data, events.CandidateProposed):
        return [(_INSERT, _proposed_row(event, data))]
    if not isinstance(data, events.CandidateChanged):
        return []
    key = {
        "tenant_id": header.tenant_id,
        "candidate": header.stream_id,
        "to_version": data.version,
        "at_position": event.position,
        "at": header.recorded_at,
    }
    statement, values = _changed(data, header.principal)
    return [(statement, key | values)]


def _changed(data: events.CandidateChanged, principal: str) -> tuple[sa.Update, dict[str, Any]]:
    match data:
        case events.CandidateAmended():
            amended = {"flags": list(data.flags), "risk": data.risk, "into_entry": data.into, "approved_by": []}
            return _AMEND, _new(_content(data.content) | amended)
        case events.CandidateApproved(outcome="awaits_second"):
            return _SECOND, _new(_content(data.content)) | {"approver": [principal]}
        case events.CandidateApproved():
            came = (data.outcome, data.entry_id, data.entry_revision, data.other_revision)
            decision = _decision(principal, data.reason, *came)
            return _APPROVE, _new(_content(data.content) | {"status": "approved"} | decision)
        case events.CandidateReopened():
            return _DECIDE, _new({"status": "pending", "approved_by": []} | dict.fromkeys(_DECISION))
    status = "rejected" if isinstance(data, events.CandidateRejected) else "withdrawn"
    decided = {"status": status, "approved_by": []} | _decision(principal, data.reason)
    return _DECIDE, _new(decided)


def _decision(
    principal: str,
    reason: str,
    outcome: str | None = None,
    entry_id: str | None = None,
    revision: int | None = None,
    other_revision: int | None = None,
) -> dict[str, Any]:
    return dict(zip(_DECISION, (principal, reason, outcome, entry_id, revision, other_revision), strict=True))


def _content(content: CandidateContent) -> dict[str, Any]:
    incident = content.incident
    return {
        "kind": content.kind,
        "title": content.title,
        "visibility": content.visibility,
        "claim_digest": bytes.fromhex(content.claim_digest),
        "incident_source": incident.source if incident else None,
        "incident_id": incident.id if incident else None,
        "content": content.model_dump(mode="json"),
    }


def _new(values: dict[str, Any]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in values.items()}


def _proposed_row(event: RecordedEvent, data: events.CandidateProposed) -> dict[str, Any]:
    header = event.header
    return {
        "tenant_id": header.tenant_id,
        "candidate_id": header.stream_id,
        "version": data.version,
        "position": event.position,
        "status": "pending",
        **_content(data.content),
        "flags": list(data.flags),
        "risk": data.risk,
        "into_entry": data.into,
        "disputes": data.disputes,
        "author_type": data.author_type,
        "proposed_by": header.principal,
        "proposal_reason": data.reason,
        "approved_by": [],
        **dict.fromkeys(_DECISION),
        "proposed_at": header.recorded_at,
        "changed_at": header.recorded_at,
    }
