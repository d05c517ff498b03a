"""
Receipts, read: one, a page of them, and the key that a new epoch brings.

A receipt is shown to who sees every tier that it was made for, and of its matches those that he may see now: it must
not tell of an entry what the entry itself would not. Of an entry that was erased it keeps the place alone.
"""

from __future__ import annotations

import secrets
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.log import LOCK_HEAD
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.tenants import POLICY_IN_FORCE
from grandbo.memory.told import WITHIN_TIERS, tier_params
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import entries, receipt_entries, receipt_keys, receipts
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.types import Clock, Principal, utc_now, utc_text

DEFAULT_PAGE = 50
MAX_PAGE = 500

_ONE = sa.select(receipts).where(
    of_tenant(receipts), WITHIN_TIERS, receipts.c.receipt_id == sa.bindparam("receipt_id", type_=sa.Uuid)
)
_limit = sa.bindparam("page", type_=sa.Integer)
_after = sa.bindparam("after", type_=sa.Uuid)
_page = sa.select(receipts).where(of_tenant(receipts), WITHIN_TIERS).limit(_limit)
_serving = _page.join(receipt_entries, receipt_entries.c.receipt_id == receipts.c.receipt_id).where(
    of_tenant(receipt_entries), receipt_entries.c.entry_id == sa.bindparam("serving", type_=sa.Uuid)
)
# By (after what, serving which entry). Each walks the key of the table that it is ordered by.
_PAGES = {
    (is_after, is_serving): (page.where(key < _after) if is_after else page).order_by(key.desc())
    for is_serving, page, key in ((False, _page, receipts.c.receipt_id), (True, _serving, receipt_entries.c.receipt_id))
    for is_after in (False, True)
}
_SEEN = sa.select(entries.c.entry_id).where(
    of_tenant(entries),
    entries.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))),
    entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
)
_KEY = sa.select(receipt_keys.c.key).where(
    of_tenant(receipt_keys), receipt_keys.c.epoch == sa.bindparam("epoch", type_=sa.Integer)
)
_NEXT_KEY = (
    sa.insert(receipt_keys)
    .from_select(
        ["tenant_id", "epoch", "key", "created_at"],
        sa.select(
            TENANT,
            sa.func.max(receipt_keys.c.epoch) + 1,
            sa.bindparam("key", type_=sa.LargeBinary),
            sa.bindparam("created_at", type_=sa.DateTime(timezone=True)),
        ).where(of_tenant(receipt_keys)),
    )
    .returning(receipt_keys.c.epoch)
)


def show_receipt(database: Database, tenant_id: UUID, principal: Principal, receipt_id: UUID) -> dict[str, Any]:
    """One receipt, as plain values. Raises `NotFound`, for one made for tiers above the caller's too."""
    require(principal, "audit")
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        row, own = read_receipt(transaction, tenant_id, principal, receipt_id)
        return _shown(transaction, tenant_id, [row], own)[0]


def list_receipts(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    *,
    entry_id: UUID | None = None,
    limit: int | None = None,
    after: UUID | None = None,
) -> list[dict[str, Any]]:
    """
    A page of receipts, newest first, as plain values.

    Args:
        entry_id: only those whose answer held this entry; raises `NotFound` for one that the caller does not see.
        after: the last receipt of the page before.
    """
    require(principal, "audit")
    limit = DEFAULT_PAGE if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        policy, own = _tiers_of(transaction, tenant_id, principal)
        if entry_id is not None and not _seen(transaction, tenant_id, [entry_id], own):
            raise NotFound
        params = {
            **tier_params(tenant_id, policy, own),
            "page": limit,
            "after": after,
            "serving": entry_id,
        }
        rows = transaction.execute(_PAGES[after is not None, entry_id is not None], params)
        return _shown(transaction, tenant_id, rows, own)


def read_receipt(
    transaction: Transaction, tenant_id: UUID, principal: Principal, receipt_id: UUID
) -> tuple[Row, tuple[str, ...]]:
    """The row of a receipt, and the caller's own tiers now. Raises `NotFound`."""
    policy, own = _tiers_of(transaction, tenant_id, principal)
    rows = transaction.execute(_ONE, {**tier_params(tenant_id, policy, own), "receipt_id": receipt_id})
    if not rows:
        raise NotFound
    return rows[0], own


def receipt_key(database: Database, tenant_id: UUID, epoch: int) -> bytes:
    """The key of an epoch; keys of ended epochs stay, so that their receipts still verify."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return bytes(transaction.execute(_KEY, {"tenant_id": tenant_id, "epoch": epoch})[0]["key"])


def rotate_receipt_key(database: Database, tenant_id: UUID, principal: Principal, *, clock: Clock = utc_now) -> int:
    """Give receipts made from now on a new key; returns its epoch."""
    require(principal, "administer")
    key = {"tenant_id": tenant_id}
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(LOCK_HEAD, key)
        made = transaction.execute(_NEXT_KEY, {**key, "key": secrets.token_bytes(32), "created_at": clock()})
    epoch: int = made[0]["epoch"]
    return epoch


def _tiers_of(transaction: Transaction, tenant_id: UUID, principal: Principal) -> tuple[Policy, tuple[str, ...]]:
    rows = transaction.execute(POLICY_IN_FORCE, {"tenant_id": tenant_id})
    policy = Policy.model_validate(rows[0]["policy"])
    return policy, visible_tiers(policy, principal)


def _seen(transaction: Transaction, tenant_id: UUID, ids: list[UUID], own: tuple[str, ...]) -> set[UUID]:
    rows = transaction.execute(_SEEN, {"tenant_id": tenant_id, "ids": ids, "tiers": list(own)})
    return {row["entry_id"] for row in rows}


def _shown(transaction: Transaction, tenant_id: UUID, rows: list[Row], own: tuple[str, ...]) -> list[dict[str, Any]]:
    named = {UUID(match["entry_id"]) for row in rows for match in row["matches"] if "entry_id" in match}
    seen = {str(entry_id) for entry_id in _seen(transaction, tenant_id, sorted(named), own)}
    return [
        {
            "receipt_id": str(row["receipt_id"]),
            "made_at": utc_text(row["made_at"]),
            "principal": row["principal"],
            "position": row["position"],
            "instant": utc_text(row["instant"]),
            "key_epoch": row["key_epoch"],
            "parameters": row["parameters"],
            "searched": row["searched"],
            "matches": [match for match in row["matches"] if match.get("erased") or match["entry_id"] in seen],
        }
        for row in rows
    ]
