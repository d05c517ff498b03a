"""The tenant's policy over time."""

from __future__ import annotations

import sqlalchemy as sa

from grandbo.events.log import RecordedEvent
from grandbo.events.models import PolicyChanged, TenantCreated
from grandbo.storage.database import Step
from grandbo.storage.tables import policies
from grandbo.storage.tenancy import of_tenant

_INSERT = sa.insert(policies).values({column.name: sa.bindparam(column.name) for column in policies.c})
_CLOSE = (
    sa.update(policies)
    .where(of_tenant(policies), policies.c.to_position.is_(None))
    .values(to_position=sa.bindparam("at_position", type_=sa.BigInteger))
)


def project(event: RecordedEvent) -> list[Step]:
    """Open the policy that the event states, and close the one before it."""
    if not isinstance(event.data, TenantCreated | PolicyChanged):
        return []
    tenant_id = event.header.tenant_id
    row = {
        "tenant_id": tenant_id,
        "from_position": event.position,
        "to_position": None,
        "name": event.data.name,
        "policy": event.data.policy.model_dump(mode="json"),
        "changed_at": event.header.recorded_at,
    }
    opened = (_INSERT, row)
    if isinstance(event.data, TenantCreated):
        return [opened]
    return [(_CLOSE, {"tenant_id": tenant_id, "at_position": event.position}), opened]
