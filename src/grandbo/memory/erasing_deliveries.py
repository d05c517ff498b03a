"""Erasing what tools delivered: the bodies in the inbox, and what is known of the incident that the entry came from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.database import Transaction
from grandbo.storage.tables import entries, inbox, incidents
from grandbo.storage.tenancy import of_tenant

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
_about = sa.bindparam("about", type_=sa.Uuid)
_it_told = sa.or_(incidents.c.entry_id == _ids, incidents.c.candidate_id == _ids, incidents.c.subject_id == _about)
_NOTHING: dict[str, str] = {}
# The row stays, for it knows the delivery again by a digest: sent once more, it is not taken in as new.
_EMPTY = (
    sa.update(inbox)
    .where(
        of_tenant(inbox),
        inbox.c.body.is_not(None),
        sa.or_(
            inbox.c.subject_id == _about,
            sa.exists().where(
                of_tenant(incidents),
                incidents.c.source == inbox.c.source,
                incidents.c.incident_id == sa.any_(inbox.c.incident_ids),
                _it_told,
            ),
        ),
    )
    .values(
        body=None,
        headers=sa.literal(_NOTHING, pg.JSONB),
        note="",
        state=sa.case((inbox.c.state == "received", "dropped"), else_=inbox.c.state),
        done_at=sa.func.coalesce(inbox.c.done_at, sa.bindparam("at", type_=sa.DateTime(timezone=True))),
    )
    .returning(inbox.c.delivery_id)
)
_stays = sa.exists().where(of_tenant(entries), entries.c.entry_id == incidents.c.entry_id)
# Another version, so that a worker that has read the record before does not write it back.
_FORGET = (
    sa.update(incidents)
    .where(of_tenant(incidents), _it_told)
    .values(
        version=incidents.c.version + 1,
        said=sa.literal(_NOTHING, pg.JSONB),
        applied=sa.null(),
        candidate_id=sa.null(),
        entry_id=sa.case((_stays, incidents.c.entry_id), else_=None),
        outcome=sa.case((_stays, incidents.c.outcome), else_="erased"),
    )
    .returning(incidents.c.incident_id)
)


def forget_deliveries(
    transaction: Transaction, tenant_id: UUID, streams: Sequence[UUID], at: datetime, about: UUID | None = None
) -> dict[str, int]:
    """
    Empty the deliveries that the entry, or its candidates, came from, or that are about a subject, and what they said
    together.

    What the source says of that incident later is not taken in any more, unless the entry was kept. To be called once
    the entry's own rows are gone.

    Returns:
        How many rows of which store.
    """
    key = {"tenant_id": tenant_id, "ids": list(streams), "about": about}
    emptied, forgotten = transaction.batch([(_EMPTY, {**key, "at": at}), (_FORGET, key)])
    return {"deliveries": len(emptied), "incidents": len(forgotten)}
