"""Subjects: who they are to the memory, and the holds on them. Of one that was erased a tombstone is left."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import RecordedEvent
from grandbo.events.subjects import SubjectErased, SubjectHeld, SubjectHoldLifted, SubjectRegistered
from grandbo.storage.database import Step
from grandbo.storage.tables import subjects
from grandbo.storage.tenancy import of_tenant

_subject = sa.bindparam("subject", type_=sa.Uuid)
_row = pg.insert(subjects).values({column.name: sa.bindparam(column.name) for column in subjects.c})
_REGISTER = _row.on_conflict_do_update(
    index_elements=["tenant_id", "subject_id"],
    set_={name: _row.excluded[name] for name in ("position", "reference", "principals")},
)
_SET_HOLD = (
    sa.update(subjects)
    .where(of_tenant(subjects), subjects.c.subject_id == _subject)
    .values(
        position=sa.bindparam("at_position", type_=sa.BigInteger),
        held_by=sa.bindparam("by", type_=sa.Text),
        held_at=sa.bindparam("at", type_=sa.DateTime(timezone=True)),
        hold_reason=sa.bindparam("reason", type_=sa.Text),
    )
)
FORGET_SUBJECT = sa.delete(subjects).where(of_tenant(subjects), subjects.c.subject_id == _subject)
_INSERT = sa.insert(subjects).values({column.name: sa.bindparam(column.name) for column in subjects.c})


def project(event: RecordedEvent) -> list[Step]:
    """Register, hold, release; or leave a tombstone."""
    header = event.header
    key: dict[str, Any] = {"tenant_id": header.tenant_id, "subject": header.stream_id}
    match event.data:
        case SubjectRegistered() as registered:
            return [(_REGISTER, _row_of(event, registered))]
        case SubjectHeld() as held:
            hold = {"at_position": event.position, "by": header.principal, "at": header.recorded_at}
            return [(_SET_HOLD, {**key, **hold, "reason": held.reason})]
        case SubjectHoldLifted():
            return [(_SET_HOLD, {**key, "at_position": event.position, "by": None, "at": None, "reason": None})]
        case SubjectErased() as erased:
            return [(FORGET_SUBJECT, key), (_INSERT, _tombstone(event, erased))]
        case _:
            return []


def _row_of(event: RecordedEvent, registered: SubjectRegistered) -> dict[str, Any]:
    return _empty(event) | {
        "kind": registered.kind,
        "state": "active",
        "reference": bytes.fromhex(registered.reference),
        "principals": list(registered.principals),
        "registered_at": event.header.recorded_at,
    }


def _tombstone(event: RecordedEvent, erased: SubjectErased) -> dict[str, Any]:
    return _empty(event) | {"kind": erased.kind, "state": "erased", "erased_at": event.header.recorded_at}


def _empty(event: RecordedEvent) -> dict[str, Any]:
    return {
        "tenant_id": event.header.tenant_id,
        "subject_id": event.header.stream_id,
        "position": event.position,
        "reference": None,
        "principals": [],
        "registered_at": None,
        "held_by": None,
        "held_at": None,
        "hold_reason": None,
        "erased_at": None,
    }
