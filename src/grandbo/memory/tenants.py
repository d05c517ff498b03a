"""Tenants: making one, finding one, and the policy in force."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, TenantExists, TenantUnknown
from grandbo.events.chain import genesis
from grandbo.events.log import OPEN_HEAD, CommandContext, Event, Head, append_steps, seal_events
from grandbo.events.models import Policy, TenantCreated
from grandbo.memory.policy import DEFAULT_POLICY
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import heads, policies, receipt_keys, tenants
from grandbo.storage.tenancy import TENANT, all_tenants, of_tenant, tenant_id_for
from grandbo.types import Acknowledgement, Clock, Principal, derived_id, digest_of, from_utc_text, utc_now

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}")
_EPOCH = from_utc_text("1970-01-01T00:00:00.000000Z")

_INSERT_TENANT = sa.insert(tenants).values(tenant_id=TENANT)
_INSERT_RECEIPT_KEY = sa.insert(receipt_keys).values(
    tenant_id=TENANT, epoch=1, key=sa.bindparam("key"), created_at=sa.bindparam("created_at")
)
POLICY_IN_FORCE = sa.select(policies.c.name, policies.c.policy, policies.c.from_position, policies.c.changed_at).where(
    of_tenant(policies), policies.c.to_position.is_(None)
)
# One statement, because every recall begins with it.
HEAD_AND_POLICY = (
    sa.select(heads.c.position, heads.c.hash, heads.c.recorded_at, policies.c.name, policies.c.policy)
    .select_from(heads)
    .join(policies, sa.and_(of_tenant(policies), policies.c.to_position.is_(None)))
    .where(of_tenant(heads))
)


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant and the policy in force."""

    tenant_id: UUID
    name: str
    policy: Policy

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"tenant_id": str(self.tenant_id), "name": self.name}


def check_tenant_name(name: str) -> str:
    """Refuse what is no tenant name; a name that reads as an id would be ambiguous wherever either is taken."""
    if not _NAME.fullmatch(name) or as_tenant_id(name) is not None:
        raise InvalidInput(
            "A tenant's name has 1 to 64 letters, digits, spaces, dots, dashes or underscores, starts with a letter or "
            "digit, and is not a UUID.",
            field="name",
        )
    return name


def as_tenant_id(text: str) -> UUID | None:
    """The UUID that the text spells in its usual form, if it does."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text.lower() else None


def create_tenant(
    database: Database, name: str, principal: Principal, *, policy: Policy = DEFAULT_POLICY, clock: Clock = utc_now
) -> tuple[Tenant, Acknowledgement]:
    """
    Make a tenant: its head, its first event, its policy, its key for receipts, in one transaction.

    Raises:
        TenantExists: the name is taken; at once by two, exactly one succeeds.
    """
    tenant_id = tenant_id_for(check_tenant_name(name))
    body = TenantCreated(name=name, policy=policy)
    now = clock()
    context = CommandContext(tenant_id, principal, derived_id("tenant_created", str(tenant_id)), digest_of(name))
    start = Head(0, genesis(tenant_id), _EPOCH)
    sealed = seal_events(context, start, [Event(tenant_id, body, starts_stream=True)], {}, now)
    key = {"tenant_id": tenant_id}
    try:
        with database.transaction("writer", tenant_id) as transaction:
            transaction.batch(
                [
                    (_INSERT_TENANT, key),
                    (OPEN_HEAD, {**key, "hash": start.hash}),
                    (_INSERT_RECEIPT_KEY, {**key, "key": secrets.token_bytes(32), "created_at": now}),
                    *append_steps(sealed),
                    *steps_for(sealed),
                ]
            )
    except TenantExists:
        raise TenantExists(f"A tenant named {name} exists already.", tenant_id=str(tenant_id)) from None
    last = sealed[-1]
    ack = Acknowledgement(tenant_id, 1, last.position, last.hash.hex(), created=True)
    return Tenant(tenant_id, name, policy), ack


def find_tenant(database: Database, name_or_id: str) -> Tenant:
    """Find a tenant by name or id; raises `TenantUnknown`."""
    tenant_id = as_tenant_id(name_or_id) or tenant_id_for(name_or_id)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return read_tenant(transaction, tenant_id)


def read_tenant(transaction: Transaction, tenant_id: UUID) -> Tenant:
    """The tenant that the transaction is bound to, with the policy in force; raises `TenantUnknown`."""
    rows = transaction.execute(POLICY_IN_FORCE, {"tenant_id": tenant_id})
    if not rows:
        raise TenantUnknown
    return tenant_of(tenant_id, rows[0])


def tenant_of(tenant_id: UUID, row: Row) -> Tenant:
    """The tenant that a row of `POLICY_IN_FORCE` tells of."""
    return Tenant(tenant_id, row["name"], Policy.model_validate(row["policy"]))


def standing_of(rows: Sequence[Row]) -> tuple[Head, Policy]:
    """The head and the policy in force that a row of `HEAD_AND_POLICY` tells of; raises `TenantUnknown`."""
    if not rows:
        raise TenantUnknown
    row = rows[0]
    return Head(row["position"], row["hash"], row["recorded_at"]), Policy.model_validate(row["policy"])


def list_tenants(database: Database) -> list[Tenant]:
    """All tenants, by name; each is read under its own binding."""
    found = [find_tenant(database, str(tenant_id)) for tenant_id in all_tenants(database)]
    return sorted(found, key=lambda tenant: tenant.name)
