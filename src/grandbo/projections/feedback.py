"""What became of answers: for each receipt, entry and principal the verdict in force, and those before it."""

from __future__ import annotations

import sqlalchemy as sa

from grandbo.events.feedback import FeedbackGiven
from grandbo.events.log import RecordedEvent
from grandbo.storage.database import Step
from grandbo.storage.tables import feedback
from grandbo.storage.tenancy import of_tenant

_OPEN = sa.insert(feedback).values({column.name: sa.bindparam(column.name) for column in feedback.c})
_CLOSE = (
    sa.update(feedback)
    .where(
        of_tenant(feedback),
        feedback.c.feedback_id == sa.bindparam("stream", type_=sa.Uuid),
        feedback.c.to_position.is_(None),
    )
    .values(to_position=sa.bindparam("at_position", type_=sa.BigInteger))
)


def project(event: RecordedEvent) -> list[Step]:
    """Close the verdict before, open this one."""
    given, header = event.data, event.header
    if not isinstance(given, FeedbackGiven):
        return []
    key = {"tenant_id": header.tenant_id, "stream": header.stream_id, "at_position": event.position}
    row = {
        "tenant_id": header.tenant_id,
        "feedback_id": header.stream_id,
        "from_position": event.position,
        "to_position": None,
        "receipt_id": given.receipt_id,
        "entry_id": given.entry_id,
        "revision": given.revision,
        "principal": header.principal,
        "verdict": given.verdict,
        "note": given.note,
        "given_at": header.recorded_at,
    }
    return [(_CLOSE, key), (_OPEN, row)]
