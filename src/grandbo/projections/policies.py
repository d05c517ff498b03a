"""The tenant's policy over time."""

from __future__ import annotations

import sqlalchemy as sa

from grandbo.events.log import RecordedEvent
from grandbo.events.models import TenantCreated
from grandbo.storage.database import Step
from grandbo.storage.tables import policies

_INSERT = sa.insert(policies).values({column.name: sa.bindparam(column.name) for column in policies.c})


def project(event: RecordedEvent) -> list[Step]:
    """Open the policy that `tenant_created` states."""
    if not isinstance(event.data, TenantCreated):
        return []
    row = {
        "tenant_id": event.header.tenant_id,
        "from_position": event.position,
        "to_position": None,
        "name": event.data.name,
        "policy": event.data.policy.model_dump(mode="json"),
        "changed_at": event.header.recorded_at,
    }
    return [(_INSERT, row)]
