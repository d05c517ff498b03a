"""
The keys of subjects: one of 256 bits for each (tenant, subject), wrapped, in a table that the keyholder alone reads.

A key is opened by the provider and remembered for minutes under the bytes that it was wrapped as: those are read from
the table at every use, so a key that was destroyed is used nowhere any more, whichever process still remembers it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.database import Database, Role, Row, Transaction
from grandbo.storage.keyring import KEY_BYTES, KeyContext, OpenedKeys
from grandbo.storage.tables import subject_keys, subject_peppers
from grandbo.storage.tenancy import TENANT, of_tenant

_KEYS = sa.select(subject_keys.c.subject_id, subject_keys.c.kek_epoch, subject_keys.c.wrapped_dek).where(
    of_tenant(subject_keys)
)
_SOME = _KEYS.where(subject_keys.c.subject_id == sa.any_(sa.bindparam("subjects", type_=pg.ARRAY(sa.Uuid))))
_HIGHEST = sa.select(sa.func.coalesce(sa.func.max(subject_keys.c.kek_epoch), 0).label("highest")).where(
    of_tenant(subject_keys)
)
_PEPPER = sa.select(subject_peppers.c.kek_epoch, subject_peppers.c.wrapped).where(of_tenant(subject_peppers))
_KEEP_PEPPER = (
    pg.insert(subject_peppers)
    .values(tenant_id=TENANT, kek_epoch=sa.bindparam("kek_epoch"), wrapped=sa.bindparam("wrapped"))
    .on_conflict_do_nothing()
)
_WRAP_PEPPER = (
    sa.update(subject_peppers)
    .where(of_tenant(subject_peppers), subject_peppers.c.wrapped == sa.bindparam("before", type_=sa.LargeBinary))
    .values(kek_epoch=sa.bindparam("new_epoch", type_=sa.Integer), wrapped=sa.bindparam("new_wrapped"))
)
KEEP_KEY = sa.insert(subject_keys).values({column.name: sa.bindparam(column.name) for column in subject_keys.c})
FIND_REFERENCE = _KEYS.where(
    subject_keys.c.subject_ref == sa.any_(sa.bindparam("references", type_=pg.ARRAY(sa.LargeBinary)))
)
# Only as long as it is what was read: a key that was destroyed meanwhile does not come back.
_WRAP = (
    sa.update(subject_keys)
    .where(
        of_tenant(subject_keys),
        subject_keys.c.subject_id == sa.bindparam("subject", type_=sa.Uuid),
        subject_keys.c.wrapped_dek == sa.bindparam("before", type_=sa.LargeBinary),
    )
    .values(kek_epoch=sa.bindparam("new_epoch", type_=sa.Integer), wrapped_dek=sa.bindparam("new_wrapped"))
)
DESTROY_KEY = sa.select(
    sa.func.grandbo.destroy_key(sa.bindparam("position", type_=sa.BigInteger), type_=sa.Boolean).label("destroyed")
)
ANY_KEY = sa.select(sa.exists(sa.select(sa.literal_column("1")).where(of_tenant(subject_keys))).label("found"))


def open_keys(
    transaction: Transaction,
    keys: OpenedKeys,
    tenant_id: UUID,
    subjects: Collection[UUID] | None,
    *,
    back: Role,
) -> dict[UUID, bytes]:
    """
    The keys of these subjects, or of all; one that was destroyed is missing from the result.

    Args:
        back: the role that the transaction goes on in.

    Raises:
        KeyUnavailable: a key is there and cannot be opened.
    """
    params: dict[str, Any] = {"tenant_id": tenant_id}
    if subjects is not None:
        params["subjects"] = list(subjects)
    rows = transaction.execute_as("keyholder", _KEYS if subjects is None else _SOME, params, back=back)
    return {row["subject_id"]: keys.opened(_context(tenant_id, row), bytes(row["wrapped_dek"])) for row in rows}


def fetch_keys(database: Database, tenant_id: UUID, subjects: Collection[UUID]) -> dict[UUID, bytes]:
    """The same in a transaction of its own: opened before a lock is taken, they need no provider under it."""
    params = {"tenant_id": tenant_id, "subjects": list(subjects)}
    with database.transaction("keyholder", tenant_id, read_only=True) as transaction:
        rows = transaction.batch([(_SOME, params)], commit=True)[0]
    return _opened(database, tenant_id, rows)


def reference_digest(database: Database, tenant_id: UUID, kind: str, reference: str) -> bytes:
    """
    The keyed digest under which an external reference is known: HMAC-SHA256 under the tenant's pepper.

    The same reference has another digest in every tenant; the pepper is wrapped as the keys are, so a copy of the
    database alone does not let a reference be guessed.
    """
    return hmac.new(_pepper(database, tenant_id), f"{kind}\x00{reference}".encode(), hashlib.sha256).digest()


def find_keys(database: Database, tenant_id: UUID, digests: Collection[bytes]) -> dict[UUID, bytes]:
    """The keys of the subjects that these digests belong to, in one look."""
    params = {"tenant_id": tenant_id, "references": list(digests)}
    with database.transaction("keyholder", tenant_id, read_only=True) as transaction:
        rows = transaction.batch([(FIND_REFERENCE, params)], commit=True)[0]
    return _opened(database, tenant_id, rows)


def find_references(database: Database, tenant_id: UUID, digests: Collection[bytes]) -> list[UUID]:
    """The subjects that these digests belong to."""
    params = {"tenant_id": tenant_id, "references": list(digests)}
    with database.transaction("keyholder", tenant_id, read_only=True) as transaction:
        rows = transaction.batch([(FIND_REFERENCE, params)], commit=True)[0]
    return [row["subject_id"] for row in rows]


def new_key_row(
    database: Database, highest: int, tenant_id: UUID, subject_id: UUID, reference: bytes
) -> dict[str, Any]:
    """A new key, wrapped, as its row; `highest` is the highest epoch that the tenant's keys are in."""
    provider = database.keys.provider
    context = KeyContext(tenant_id, subject_id, provider.epoch(highest))
    key = secrets.token_bytes(KEY_BYTES)
    wrapped = provider.wrap(context, key)
    database.keys.remember(context, wrapped, key)
    return {
        "tenant_id": tenant_id,
        "subject_id": subject_id,
        "subject_ref": reference,
        "kek_epoch": context.epoch,
        "wrapped_dek": wrapped,
    }


def highest_epoch(database: Database, tenant_id: UUID) -> int:
    """The highest epoch that a key of the tenant is wrapped in; 0 where there is none."""
    with database.transaction("keyholder", tenant_id, read_only=True) as transaction:
        return int(transaction.execute(_HIGHEST, {"tenant_id": tenant_id})[0]["highest"])


def has_keys(database: Database, tenants: Iterable[UUID]) -> bool:
    """Whether any of these tenants has a key of a subject."""
    for tenant_id in tenants:
        with database.transaction("keyholder", tenant_id, read_only=True) as transaction:
            if transaction.execute(ANY_KEY, {"tenant_id": tenant_id})[0]["found"]:
                return True
    return False


def wrapped_rows(transaction: Transaction, tenant_id: UUID) -> tuple[list[Row], list[Row]]:
    """The wrapped keys of the tenant's subjects, and its wrapped pepper; for the keyholder."""
    key = {"tenant_id": tenant_id}
    rows, pepper = transaction.batch([(_KEYS, key), (_PEPPER, key)])
    return rows, pepper


def wrap_anew(database: Database, tenant_id: UUID, rows: tuple[list[Row], list[Row]], epoch: int) -> int:
    """
    Wrap these keys in this epoch; gives how many. Broken off and run again it goes on where it was.

    Raises:
        KeyUnavailable: one cannot be opened; those before it are done.
    """
    done = 0
    named = [(row["subject_id"], row["kek_epoch"], bytes(row["wrapped_dek"]), _WRAP) for row in rows[0]]
    # The context of the pepper is the tenant itself.
    named += [(tenant_id, row["kek_epoch"], bytes(row["wrapped"]), _WRAP_PEPPER) for row in rows[1]]
    for subject_id, known_epoch, before, statement in named:
        if known_epoch == epoch:
            continue
        key = database.keys.opened(KeyContext(tenant_id, subject_id, known_epoch), before)
        wrapped = database.keys.provider.wrap(KeyContext(tenant_id, subject_id, epoch), key)
        change = {"subject": subject_id, "before": before, "new_epoch": epoch, "new_wrapped": wrapped}
        with database.transaction("keyholder", tenant_id) as transaction:
            transaction.execute(statement, {"tenant_id": tenant_id, **change})
        done += 1
    return done


def _pepper(database: Database, tenant_id: UUID) -> bytes:
    """The tenant's pepper, made at first use; its context is the tenant itself. It never changes, only its wrapping."""
    known = database.keys.recall(tenant_id)
    if known is None:
        known = _read_pepper(database, tenant_id)
        database.keys.keep(tenant_id, known)
    return known


def _read_pepper(database: Database, tenant_id: UUID) -> bytes:
    key = {"tenant_id": tenant_id}
    with database.transaction("keyholder", tenant_id) as transaction:
        rows = transaction.execute(_PEPPER, key)
    if not rows:
        provider = database.keys.provider
        context = KeyContext(tenant_id, tenant_id, provider.epoch(highest_epoch(database, tenant_id)))
        pepper = secrets.token_bytes(KEY_BYTES)
        wrapped = provider.wrap(context, pepper)
        database.keys.remember(context, wrapped, pepper)
        with database.transaction("keyholder", tenant_id) as transaction:
            transaction.execute(_KEEP_PEPPER, {**key, "kek_epoch": context.epoch, "wrapped": wrapped})
            # Two at once: the first one's stays.
            rows = transaction.execute(_PEPPER, key)
    row = rows[0]
    return database.keys.opened(KeyContext(tenant_id, tenant_id, row["kek_epoch"]), bytes(row["wrapped"]))


def _opened(database: Database, tenant_id: UUID, rows: Iterable[Row]) -> dict[UUID, bytes]:
    keys = database.keys
    return {row["subject_id"]: keys.opened(_context(tenant_id, row), bytes(row["wrapped_dek"])) for row in rows}


def _context(tenant_id: UUID, row: Row | Mapping[str, Any]) -> KeyContext:
    return KeyContext(tenant_id, row["subject_id"], row["kek_epoch"])
