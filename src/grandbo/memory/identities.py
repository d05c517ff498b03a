"""Principals of an issuer's tokens: the tenant that is claimed, the roles that exist, a name kept at first sight."""

from __future__ import annotations

from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import Unauthenticated
from grandbo.memory.policy import ROLES
from grandbo.memory.principals import ISSUED_PREFIX
from grandbo.memory.tenants import POLICY_IN_FORCE, Tenant, as_tenant_id, tenant_of
from grandbo.memory.tokens import Claims
from grandbo.storage.database import Database
from grandbo.storage.tables import principals
from grandbo.storage.tenancy import of_tenant, tenant_id_for
from grandbo.types import Clock, Principal, PrincipalType, derived_id, utc_now

_NAME_KEPT = 60

_KNOWN = sa.select(principals.c.name).where(
    of_tenant(principals), principals.c.principal_id == sa.bindparam("principal_id")
)
_KEEP = (
    pg.insert(principals)
    .values({column.name: sa.bindparam(column.name) for column in principals.c})
    .on_conflict_do_nothing()
)


def identify(database: Database, claims: Claims, *, clock: Clock = utc_now) -> tuple[Tenant, Principal]:
    """
    The tenant and the principal that a genuine token stands for.

    The principal's id is derived from issuer and subject, so that it stays the same whatever else a token says. A role
    that does not exist grants nothing; without any, nothing may be done.

    Raises:
        Unauthenticated: there is no such tenant.
    """
    tenant_id = as_tenant_id(claims.tenant) or tenant_id_for(claims.tenant)
    principal_id = principal_id_of(claims.issuer, claims.subject)
    key = {"tenant_id": tenant_id}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        steps = [(POLICY_IN_FORCE, key), (_KNOWN, {**key, "principal_id": principal_id})]
        policy, known = transaction.batch(steps, commit=True)
    if not policy:
        raise Unauthenticated
    kind: PrincipalType = "agent" if claims.type == "agent" else "human"
    name = known[0]["name"] if known else _name(claims, principal_id)
    roles = claims.roles & frozenset(ROLES)
    if not known and roles:
        row = {**key, "principal_id": principal_id, "type": kind, "name": name, "created_at": clock()}
        with database.transaction("writer", tenant_id) as transaction:
            transaction.execute(_KEEP, row)
    return tenant_of(tenant_id, policy[0]), Principal(kind, principal_id, name, roles)


def principal_id_of(issuer: str, subject: str) -> UUID:
    """The id of whom this issuer calls so."""
    return derived_id("oidc", issuer, subject)


def _name(claims: Claims, principal_id: UUID) -> str:
    """Readable, and nobody else's: people choose their own names at an issuer, and must not take another's."""
    readable = "".join(character for character in claims.name if character.isprintable())[:_NAME_KEPT].strip()
    return f"{ISSUED_PREFIX}{readable}#{principal_id.hex[:16]}"
