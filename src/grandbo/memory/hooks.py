"""
Hooks: where a tool delivers to, with the secret that proves it. Operational, not in the log.

A signature is checked with the secret itself, so it is kept, walled in like the keys of receipts; it is shown once,
when it is made or changed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound, Unauthenticated
from grandbo.hooks import signatures
from grandbo.hooks.source import Source
from grandbo.hooks.sources import SOURCES
from grandbo.memory.principals import ensure_principal
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import hooks
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, utc_now, utc_text

# The tenant's id and 16 random digits, hex: it says under which tenant to look, and proves nothing.
_HOOK_ID = re.compile(r"[0-9a-f]{48}")
NAME_LIMIT = 100
_NO_SUCH_HOOK = "This tenant has no such hook; `grandbo hook list` names those it has."

_hook_id = sa.bindparam("hook_id", type_=sa.Text)
_is_it = sa.and_(of_tenant(hooks), hooks.c.hook_id == _hook_id)
_ADD = sa.insert(hooks).values(
    {column.name: sa.bindparam(column.name) for column in hooks.c if column.name != "tenant_id"} | {"tenant_id": TENANT}
)
_ALL = sa.select(hooks).where(of_tenant(hooks)).order_by(hooks.c.created_at, hooks.c.hook_id)
_ONE = sa.select(hooks).where(_is_it)
_ROTATE = (
    sa.update(hooks)
    .where(of_tenant(hooks), hooks.c.hook_id == sa.bindparam("which", type_=sa.Text))
    .values(
        previous_secret=sa.case((sa.bindparam("keep", type_=sa.Boolean), hooks.c.secret), else_=None),
        secret=sa.bindparam("new_secret", type_=sa.LargeBinary),
        rotated_at=sa.bindparam("at", type_=sa.DateTime(timezone=True)),
    )
    .returning(hooks)
)
_REMOVE = sa.delete(hooks).where(_is_it).returning(hooks.c.hook_id)


@dataclass(frozen=True, slots=True)
class Hook:
    """
    A hook without its secrets.

    Attributes:
        direct: what it tells with a cause is recorded at once; else everything waits for a person.
        takes_private: what is restricted at the source is remembered, in the highest tier; else it is refused.
    """

    tenant_id: UUID
    hook_id: str
    source: str
    name: str
    principal_id: UUID
    direct: bool
    takes_private: bool
    created_at: datetime
    rotated_at: datetime | None
    has_previous_secret: bool

    @property
    def path(self) -> str:
        """Where its tool delivers to."""
        return f"/v1/hooks/{self.source}/{self.hook_id}"

    @property
    def scheme(self) -> str | None:
        """The signature scheme of its source; None for a source that this version does not know."""
        source = SOURCES.get(self.source)
        return source.signature if source else None

    @property
    def is_signed(self) -> bool:
        """Whether a delivery proves its body, or only that its sender knows the secret."""
        return self.scheme is not None and signatures.SCHEMES[self.scheme].is_signed

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "hook_id": self.hook_id,
            "source": self.source,
            "name": self.name,
            "path": self.path,
            "signature": self.scheme,
            "signed": self.is_signed,
            "direct": self.direct,
            "takes_private": self.takes_private,
            "created_at": utc_text(self.created_at),
            "rotated_at": utc_text(self.rotated_at) if self.rotated_at else None,
            "has_previous_secret": self.has_previous_secret,
        }


def source_named(name: str) -> Source:
    """The source of this name; raises `InvalidInput` with those that there are."""
    found = SOURCES.get(name)
    if found is None:
        raise InvalidInput(f"source: it must be one of {', '.join(sorted(SOURCES))}.", field="source")
    return found


def create_hook(
    database: Database,
    tenant_id: UUID,
    source: str,
    name: str,
    *,
    direct: bool = False,
    takes_private: bool = False,
    secret: str | None = None,
    clock: Clock = utc_now,
) -> tuple[Hook, str]:
    """
    Make a hook; its secret is given this once.

    Args:
        secret: where the tool makes it; else one is made.

    Raises:
        InvalidInput: a source that is not known, a name that is none, a secret that the scheme cannot have.
    """
    scheme = source_named(source).signature
    if not name.strip():
        raise InvalidInput("name: it must not be blank.", field="name")
    check_text(name, "name", limit=NAME_LIMIT, single_line=True)
    given = _secret(scheme, secret)
    row: dict[str, Any] = {
        "hook_id": tenant_id.hex + secrets.token_hex(8),
        "source": source,
        "name": name,
        "direct": direct,
        "takes_private": takes_private,
        "secret": given.encode(),
        "previous_secret": None,
        "rotated_at": None,
        "created_at": clock(),
    }
    with database.transaction("writer", tenant_id) as transaction:
        principal_id = ensure_principal(transaction, tenant_id, "hook", f"{source}: {name}"[:NAME_LIMIT], clock)
        row |= {"tenant_id": tenant_id, "principal_id": principal_id}
        transaction.execute(_ADD, row)
    return _hook(row), given


def list_hooks(database: Database, tenant_id: UUID) -> list[Hook]:
    """The tenant's hooks, oldest first."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return [_hook(row) for row in transaction.execute(_ALL, {"tenant_id": tenant_id})]


def read_hook(database: Database, tenant_id: UUID, hook_id: str) -> tuple[Hook, list[str]]:
    """A hook, and the secrets that prove a delivery to it now; raises `NotFound`."""
    key = {"tenant_id": tenant_id, "hook_id": _checked(hook_id)}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_ONE, key)
    if not rows:
        raise NotFound(_NO_SUCH_HOOK)
    return _hook(rows[0]), _held(rows[0])


def rotate_hook(
    database: Database,
    tenant_id: UUID,
    hook_id: str,
    *,
    secret: str | None = None,
    keep_previous: bool = True,
    clock: Clock = utc_now,
) -> tuple[Hook, str]:
    """
    Give a hook a new secret; the one before works on, until the next rotation or one that does not keep it.

    Raises:
        NotFound, InvalidInput.
    """
    hook, _ = read_hook(database, tenant_id, hook_id)
    given = _secret(source_named(hook.source).signature, secret)
    params = {"tenant_id": tenant_id, "which": hook_id, "new_secret": given.encode(), "keep": keep_previous}
    with database.transaction("writer", tenant_id) as transaction:
        rows = transaction.execute(_ROTATE, {**params, "at": clock()})
    if not rows:
        raise NotFound(_NO_SUCH_HOOK)
    return _hook(rows[0]), given


def remove_hook(database: Database, tenant_id: UUID, hook_id: str) -> None:
    """Take a hook away with its secrets; what it delivered stays. Raises `NotFound`."""
    with database.transaction("writer", tenant_id) as transaction:
        if not transaction.execute(_REMOVE, {"tenant_id": tenant_id, "hook_id": _checked(hook_id)}):
            raise NotFound(_NO_SUCH_HOOK)


def authenticate_delivery(
    database: Database, source: str, hook_id: str, headers: Mapping[str, str], body: bytes, *, clock: Clock = utc_now
) -> Hook:
    """
    The hook that a delivery was made to, by whoever has its secret.

    Raises:
        Unauthenticated: a source or a hook that is not there, or a signature that does not hold; the caller cannot
            tell which.
    """
    known = SOURCES.get(source)
    if known is None or _HOOK_ID.fullmatch(hook_id) is None:
        raise Unauthenticated
    tenant_id = UUID(hex=hook_id[:32])
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_ONE, {"tenant_id": tenant_id, "hook_id": hook_id})
    # A hook that is not there costs the same work as one that is.
    held = _held(rows[0]) if rows else [signatures.new_secret(known.signature)]
    is_genuine = signatures.verify(known.signature, body, headers, held, clock())
    if not is_genuine or not rows or rows[0]["source"] != source:
        raise Unauthenticated
    return _hook(rows[0])


def _checked(hook_id: str) -> str:
    if _HOOK_ID.fullmatch(hook_id) is None:
        raise NotFound(_NO_SUCH_HOOK)
    return hook_id


def _secret(scheme: str, given: str | None) -> str:
    if given is None:
        return signatures.new_secret(scheme)
    if not signatures.is_secret(scheme, given):
        form = "`whsec_` and base64 of 16 to 64 bytes" if signatures.SCHEMES[scheme].is_standard else "16 to 256 signs"
        raise InvalidInput(f"secret: it must be {form}, as the tool shows it.", field="secret")
    return given


def _held(row: Row) -> list[str]:
    return [bytes(row[name]).decode() for name in ("secret", "previous_secret") if row[name] is not None]


def _hook(row: Mapping[str, Any]) -> Hook:
    same = (name for name in Hook.__slots__ if name != "has_previous_secret")
    return Hook(**{name: row[name] for name in same}, has_previous_secret=row["previous_secret"] is not None)
