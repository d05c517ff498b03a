"""Principals and their API keys. Operational, not in the log: a key must be revocable and a name erasable."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, NotFound, Unauthenticated
from grandbo.memory.policy import ROLES, check_roles
from grandbo.storage.database import Database, Transaction
from grandbo.storage.tables import api_keys, principals
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import PRINCIPAL_TYPES, Clock, Principal, PrincipalType, new_id, utc_now

# gbk_<tenant and key, hex>_<256 random bits, base64url>. The id says under which tenant to look the key up; it proves
# nothing, the secret does.
_TOKEN = re.compile(r"gbk_([0-9a-f]{48})_([A-Za-z0-9_-]{43})")

_FIND_PRINCIPAL = sa.select(principals.c.principal_id).where(
    of_tenant(principals), principals.c.type == sa.bindparam("type"), principals.c.name == sa.bindparam("name")
)
_ADD_PRINCIPAL = (
    pg.insert(principals)
    .values({column.name: sa.bindparam(column.name) for column in principals.c})
    .on_conflict_do_nothing()
)
_ADD_KEY = sa.insert(api_keys).values({column.name: sa.bindparam(column.name) for column in api_keys.c})
_KEYS = (
    sa.select(
        api_keys.c.key_id,
        api_keys.c.secret_digest,
        api_keys.c.roles,
        api_keys.c.created_at,
        api_keys.c.revoked_at,
        principals.c.principal_id,
        principals.c.type,
        principals.c.name,
    )
    .join(
        principals,
        sa.and_(principals.c.tenant_id == api_keys.c.tenant_id, principals.c.principal_id == api_keys.c.principal_id),
    )
    .where(of_tenant(api_keys), of_tenant(principals))
)
_ALL_KEYS = _KEYS.order_by(api_keys.c.created_at, api_keys.c.key_id)
_ONE_KEY = _KEYS.where(api_keys.c.key_id == sa.bindparam("key_id"))
_REVOKE = (
    sa.update(api_keys)
    .where(of_tenant(api_keys), api_keys.c.key_id == sa.bindparam("which"), api_keys.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("at"))
    .returning(api_keys.c.key_id)
)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret."""

    key_id: str
    principal: Principal
    created_at: datetime
    revoked_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "key_id": self.key_id,
            "principal": self.principal.name,
            "type": self.principal.type,
            "roles": sorted(self.principal.roles),
            "created_at": self.created_at.isoformat(),
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
        }


def parse_principal(text: str) -> tuple[PrincipalType, str]:
    """Read `[type:]name`; the type is `human` where none is given."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = "human", text
    if kind not in PRINCIPAL_TYPES:
        raise InvalidInput(f"principal: the type must be one of {', '.join(PRINCIPAL_TYPES)}.", field="principal")
    return kind, _checked_name(name)


def local_principal(database: Database, tenant_id: UUID, text: str, *, clock: Clock = utc_now) -> Principal:
    """The principal of someone who works on the machine itself, and so may do anything: all roles."""
    kind, name = parse_principal(text)
    with database.transaction("writer", tenant_id) as transaction:
        principal_id = _ensure(transaction, tenant_id, kind, name, clock)
    return Principal(kind, principal_id, name, frozenset(ROLES))


def create_key(
    database: Database,
    tenant_id: UUID,
    name: str,
    kind: PrincipalType,
    roles: tuple[str, ...],
    *,
    clock: Clock = utc_now,
) -> tuple[ApiKey, str]:
    """Make a key; the token is given this once and only its digest is kept."""
    granted = check_roles(roles)
    _checked_name(name)
    key_id = tenant_id.hex + secrets.token_hex(8)
    secret = secrets.token_urlsafe(32)
    now = clock()
    with database.transaction("writer", tenant_id) as transaction:
        principal_id = _ensure(transaction, tenant_id, kind, name, clock)
        row = {
            "tenant_id": tenant_id,
            "key_id": key_id,
            "secret_digest": _digest(secret),
            "principal_id": principal_id,
            "roles": sorted(granted),
            "created_at": now,
            "revoked_at": None,
        }
        transaction.execute(_ADD_KEY, row)
    return ApiKey(key_id, Principal(kind, principal_id, name, granted), now, None), f"gbk_{key_id}_{secret}"


def list_keys(database: Database, tenant_id: UUID) -> list[ApiKey]:
    """All keys of the tenant, oldest first, revoked ones included."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return [_api_key(row) for row in transaction.execute(_ALL_KEYS, {"tenant_id": tenant_id})]


def revoke_key(database: Database, tenant_id: UUID, key_id: str, *, clock: Clock = utc_now) -> None:
    """Revoke a key, at once and for good; revoking it again changes nothing. Raises `NotFound`."""
    with database.transaction("writer", tenant_id) as transaction:
        revoked = transaction.execute(_REVOKE, {"tenant_id": tenant_id, "which": key_id, "at": clock()})
        if not revoked and not transaction.execute(_ONE_KEY, {"tenant_id": tenant_id, "key_id": key_id}):
            raise NotFound("This tenant has no such key; `grandbo key list` names those it has.")


def authenticate(database: Database, token: str) -> tuple[UUID, Principal]:
    """
    The tenant and the principal that a bearer token stands for.

    Raises:
        Unauthenticated: malformed, unknown, revoked or of a tenant that is not there; the caller cannot tell which.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise Unauthenticated
    key_id, secret = match.groups()
    tenant_id = UUID(hex=key_id[:32])
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_ONE_KEY, {"tenant_id": tenant_id, "key_id": key_id})
    # An unknown key costs the same comparison as a known one.
    stored = bytes(rows[0]["secret_digest"]) if rows else bytes(32)
    if not hmac.compare_digest(stored, _digest(secret)) or not rows or rows[0]["revoked_at"] is not None:
        raise Unauthenticated
    return tenant_id, _api_key(rows[0]).principal


def _ensure(transaction: Transaction, tenant_id: UUID, kind: PrincipalType, name: str, clock: Clock) -> UUID:
    key = {"tenant_id": tenant_id, "type": kind, "name": name}
    found = transaction.execute(_FIND_PRINCIPAL, key)
    if not found:
        transaction.execute(_ADD_PRINCIPAL, {**key, "principal_id": new_id(), "created_at": clock()})
        found = transaction.execute(_FIND_PRINCIPAL, key)
    return UUID(str(found[0]["principal_id"]))


def _api_key(row: dict[str, Any]) -> ApiKey:
    principal = Principal(row["type"], row["principal_id"], row["name"], frozenset(row["roles"]))
    return ApiKey(row["key_id"], principal, row["created_at"], row["revoked_at"])


def _checked_name(name: str) -> str:
    if not name.strip():
        raise InvalidInput("principal: the name must not be blank.", field="principal")
    return check_text(name, "principal", limit=100, single_line=True)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
