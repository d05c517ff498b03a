"""The tenant's predicate, and the plain list of tenants. No key and no WHERE without `tenant_id`."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa

from grandbo.storage.database import Database
from grandbo.storage.tables import tenants
from grandbo.types import derived_id

TENANT = sa.bindparam("tenant_id", type_=sa.Uuid)

_ALL_TENANTS = sa.select(tenants.c.tenant_id).order_by(tenants.c.tenant_id)


def of_tenant(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The explicit predicate: the second wall, for the day on which a policy is wrong."""
    return table.c.tenant_id == TENANT


def tenant_id_for(name: str) -> UUID:
    """
    The id of the tenant that has, or will have, this name.

    Derived, so that a name is unique by the table's key and is found without a table of names that no wall protects.
    """
    return derived_id("tenant", name)


def all_tenants(database: Database) -> list[UUID]:
    """Ids of all tenants. Workers and checks walk them and bind one at a time; no role sees two at once."""
    with database.transaction("writer", None, read_only=True) as transaction:
        return [row["tenant_id"] for row in transaction.execute(_ALL_TENANTS)]
