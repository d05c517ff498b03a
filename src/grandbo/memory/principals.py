"""Principals and their API keys. Operational, not in the log: a key must be revocable and a name erasable."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, NotFound, Unauthenticated
from grandbo.memory.policy import ROLES, check_grant, check_roles
from grandbo.memory.tenants import POLICY_IN_FORCE, Tenant, read_tenant, tenant_of
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import api_keys, principals
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import PRINCIPAL_TYPES, Clock, Principal, PrincipalType, new_id, utc_now

# gbk_<tenant and key, hex>_<256 random bits, base64url>. The id says under which tenant to look the key up; it proves
# nothing, the secret does.
_TOKEN = re.compile(r"gbk_([0-9a-f]{48})_([A-Za-z0-9_-]{43})")
_KEY_ID = re.compile(r"[0-9a-f]{48}")
_NO_SUCH_KEY = "This tenant has no such key; `grandbo key list` names those it has."
_LIFE = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
LONGEST_LIFE = timedelta(days=3_650)
MAX_PAGE = 500
# Names of principals whom an issuer's token names: nobody gives himself such a name, nor gets a key for one.
ISSUED_PREFIX = "oidc:"

_last = api_keys.alias("last")

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
        api_keys.c.expires_at,
        api_keys.c.read_only,
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
_AFTER = sa.bindparam("after", type_=sa.Text)
_PAGE_OF_KEYS = (
    _KEYS.where(
        sa.or_(
            _AFTER.is_(None),
            sa.tuple_(api_keys.c.created_at, api_keys.c.key_id)
            > sa.select(_last.c.created_at, _last.c.key_id)
            .where(of_tenant(_last), _last.c.key_id == _AFTER)
            .scalar_subquery(),
        )
    )
    .order_by(api_keys.c.created_at, api_keys.c.key_id)
    .limit(sa.bindparam("page", type_=sa.Integer))
)
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
    expires_at: datetime | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "key_id": self.key_id,
            "principal": self.principal.name,
            "type": self.principal.type,
            "roles": sorted(self.principal.roles),
            "read_only": self.principal.read_only,
            "created_at": self.created_at.isoformat(),
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
            "expires_at": self.expires_at.isoformat() if self.expires_at else None,
        }


def parse_principal(text: str) -> tuple[PrincipalType, str]:
    """Read `[type:]name`; the type is `human` where none is given."""
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = "human", text
    if kind not in PRINCIPAL_TYPES:
        raise InvalidInput(f"principal: the type must be one of {', '.join(PRINCIPAL_TYPES)}.", field="principal")
    return kind, _checked_name(name)


def parse_life(text: str) -> timedelta:
    """Read how long a key shall work: `12h`, `90d`, `4w`; ten years at most."""
    match = _LIFE.fullmatch(text)
    life = timedelta(hours=int(match[1]) * _HOURS[match[2]]) if match else LONGEST_LIFE * 2
    if life > LONGEST_LIFE:
        raise InvalidInput(
            "expires_in: write hours, days or weeks, as 12h, 90d or 4w; at most 3650d.", field="expires_in"
        )
    return life


def local_principal(database: Database, tenant_id: UUID, text: str, *, clock: Clock = utc_now) -> Principal:
    """The principal of someone who works on the machine itself, and so may do anything: all roles."""
    kind, name = parse_principal(text)
    with database.transaction("writer", tenant_id) as transaction:
        principal_id = ensure_principal(transaction, tenant_id, kind, name, clock)
    return Principal(kind, principal_id, name, frozenset(ROLES))


def principal_refs(
    database: Database, tenant_id: UUID, named: Sequence[tuple[PrincipalType, str]], *, clock: Clock = utc_now
) -> tuple[str, ...]:
    """`type:uuid` of principals by type and name, made where there are none, each once and in order."""
    with database.transaction("writer", tenant_id) as transaction:
        refs = [f"{kind}:{ensure_principal(transaction, tenant_id, kind, name, clock)}" for kind, name in named]
    return tuple(sorted(set(refs)))


def create_key(
    database: Database,
    tenant_id: UUID,
    granter: Principal,
    name: str,
    kind: PrincipalType,
    roles: tuple[str, ...],
    *,
    expires_in: timedelta | None = None,
    read_only: bool = False,
    clock: Clock = utc_now,
) -> tuple[ApiKey, str]:
    """
    Make a key; the token is given this once and only its digest is kept.

    Args:
        granter: who makes it; grants no role that may do or see what he may not.
        expires_in: after this long it opens nothing; without it, it works until it is revoked.
        read_only: no act that writes, whatever the roles allow.

    Raises:
        Forbidden, InvalidInput.
    """
    granted = check_roles(roles)
    _checked_name(name)
    key_id = tenant_id.hex + secrets.token_hex(8)
    secret = secrets.token_urlsafe(32)
    now = clock()
    expires_at = None if expires_in is None else now + expires_in
    with database.transaction("writer", tenant_id) as transaction:
        check_grant(read_tenant(transaction, tenant_id).policy, granter, granted)
        principal_id = ensure_principal(transaction, tenant_id, kind, name, clock)
        row = {
            "tenant_id": tenant_id,
            "key_id": key_id,
            "secret_digest": _digest(secret),
            "principal_id": principal_id,
            "roles": sorted(granted),
            "created_at": now,
            "revoked_at": None,
            "expires_at": expires_at,
            "read_only": read_only,
        }
        transaction.execute(_ADD_KEY, row)
    holder = Principal(kind, principal_id, name, granted, read_only)
    return ApiKey(key_id, holder, now, None, expires_at), f"gbk_{key_id}_{secret}"


def list_keys(
    database: Database, tenant_id: UUID, *, limit: int | None = None, after: str | None = None
) -> list[ApiKey]:
    """
    A page of the tenant's keys, oldest first, those that open nothing any more included; all where no limit is given.

    Args:
        after: the id of the last key of the page before.
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE):
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    if after is not None and _KEY_ID.fullmatch(after) is None:
        raise InvalidInput("after: it must be the `next` of the page before.", field="after")
    params = {"tenant_id": tenant_id, "after": after, "page": limit}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return [_api_key(row) for row in transaction.execute(_PAGE_OF_KEYS, params)]


def revoke_key(database: Database, tenant_id: UUID, key_id: str, *, clock: Clock = utc_now) -> None:
    """Revoke a key, at once and for good; revoking it again changes nothing. Raises `NotFound`."""
    if _KEY_ID.fullmatch(key_id) is None:
        raise NotFound(_NO_SUCH_KEY)
    with database.transaction("writer", tenant_id) as transaction:
        revoked = transaction.execute(_REVOKE, {"tenant_id": tenant_id, "which": key_id, "at": clock()})
        if not revoked and not transaction.execute(_ONE_KEY, {"tenant_id": tenant_id, "key_id": key_id}):
            raise NotFound(_NO_SUCH_KEY)


def looks_like_key(token: str) -> bool:
    """Whether a bearer token is an API key by its form."""
    return token.startswith("gbk_")


def authenticate(database: Database, token: str, *, clock: Clock = utc_now) -> tuple[Tenant, Principal]:
    """
    The tenant and the principal that an API key stands for, read in one round trip.

    Raises:
        Unauthenticated: malformed, unknown, revoked, expired or of a tenant that is not there; the caller cannot tell
            which.
    """
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise Unauthenticated
    key_id, secret = match.groups()
    tenant_id = UUID(hex=key_id[:32])
    key = {"tenant_id": tenant_id}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows, policy = transaction.batch([(_ONE_KEY, {**key, "key_id": key_id}), (POLICY_IN_FORCE, key)], commit=True)
    # An unknown key costs the same comparison as a known one.
    stored = bytes(rows[0]["secret_digest"]) if rows else bytes(32)
    if not hmac.compare_digest(stored, _digest(secret)) or not rows or not policy or _is_over(rows[0], clock()):
        raise Unauthenticated
    return tenant_of(tenant_id, policy[0]), _api_key(rows[0]).principal


def _is_over(row: Row, now: datetime) -> bool:
    return row["revoked_at"] is not None or (row["expires_at"] is not None and row["expires_at"] <= now)


def ensure_principal(transaction: Transaction, tenant_id: UUID, kind: PrincipalType, name: str, clock: Clock) -> UUID:
    """The id of the principal of this type and name; made where there is none."""
    key = {"tenant_id": tenant_id, "type": kind, "name": name}
    found = transaction.execute(_FIND_PRINCIPAL, key)
    if not found:
        transaction.execute(_ADD_PRINCIPAL, {**key, "principal_id": new_id(), "created_at": clock()})
        found = transaction.execute(_FIND_PRINCIPAL, key)
    return UUID(str(found[0]["principal_id"]))


def _api_key(row: Row) -> ApiKey:
    principal = Principal(row["type"], row["principal_id"], row["name"], frozenset(row["roles"]), row["read_only"])
    return ApiKey(row["key_id"], principal, row["created_at"], row["revoked_at"], row["expires_at"])


def _checked_name(name: str) -> str:
    if not name.strip():
        raise InvalidInput("principal: the name must not be blank.", field="principal")
    if name.startswith(ISSUED_PREFIX):
        raise InvalidInput(
            f"principal: names that begin with {ISSUED_PREFIX} are those of an issuer's tokens; take another.",
            field="principal",
        )
    return check_text(name, "principal", limit=100, single_line=True)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
