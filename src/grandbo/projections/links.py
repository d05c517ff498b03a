"""Typed links between entries, over time."""

from __future__ import annotations

import sqlalchemy as sa

from grandbo.events import models
from grandbo.events.log import RecordedEvent
from grandbo.storage.database import Step
from grandbo.storage.tables import links
from grandbo.storage.tenancy import of_tenant

_OPEN = sa.insert(links).values({column.name: sa.bindparam(column.name) for column in links.c})
_CLOSE = (
    sa.update(links)
    .where(
        of_tenant(links),
        links.c.from_entry == sa.bindparam("entry_id", type_=sa.Uuid),
        links.c.link_type == sa.bindparam("of_type", type_=sa.Text),
        links.c.to_entry == sa.bindparam("other_id", type_=sa.Uuid),
        links.c.to_position.is_(None),
    )
    .values(to_position=sa.bindparam("at_position", type_=sa.BigInteger))
)


def project(event: RecordedEvent) -> list[Step]:
    """Open or close a link."""
    header = event.header
    match event.data:
        case models.EntryLinked() as linked:
            row = {
                "tenant_id": header.tenant_id,
                "from_entry": header.stream_id,
                "link_type": linked.link_type,
                "to_entry": linked.to_entry_id,
                "from_position": event.position,
                "to_position": None,
                "principal": header.principal,
                "reason": linked.reason,
                "linked_at": header.recorded_at,
            }
            return [(_OPEN, row)]
        case models.EntryUnlinked() as unlinked:
            key = {
                "tenant_id": header.tenant_id,
                "entry_id": header.stream_id,
                "of_type": unlinked.link_type,
                "other_id": unlinked.to_entry_id,
                "at_position": event.position,
            }
            return [(_CLOSE, key)]
        case _:
            return []
