"""
The state of the memory, page by page: every entry as it stands, or as it stood.

In the order of entry ids, which never change: whatever is written while someone pages through, each entry that was
there comes once. A page is found by its key, so the last of many costs what the first does.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.reading import named_entries, plain_state, seen_of, without_unseen
from grandbo.memory.tenants import POLICY_IN_FORCE
from grandbo.recall.moment import AsOf, Moment
from grandbo.recall.past import STOOD, head_then, past_of, seen_then
from grandbo.recall.question import check_name, names_of
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import KINDS, STATUSES, Clock, Principal, digest_of, utc_now

DEFAULT_PAGE = 50
MAX_PAGE = 200

_Texts = pg.ARRAY(sa.Text)
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which entries are wanted, and of which moment; what is empty does not narrow."""

    kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    service: str | None = None
    as_of: AsOf | None = None

    def digest(self) -> str:
        """Tells the cursor of one listing from that of another."""
        asked = self.as_of.as_dict() if self.as_of else None
        return digest_of([list(self.kinds), list(self.statuses), self.service, asked])[:16]


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some entries as plain values, and where to go on; `next` is None at the end.

    `as_of` has the position and the instant of a page of the past; it is None for the present.
    """

    entries: list[dict[str, Any]]
    next: str | None
    as_of: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """The shape that every door gives."""
        return {"entries": self.entries, "next": self.next, "as_of": self.as_of}


@dataclass(frozen=True, slots=True)
class _Cursor:
    """The last entry of a page; of the past also the position that its first page was of."""

    after: UUID = _FIRST
    position: int | None = None

    def text(self, digest: str) -> str:
        stated = json.dumps([str(self.after), self.position, digest], separators=(",", ":"))
        return base64.urlsafe_b64encode(stated.encode()).decode().rstrip("=")


def check_filter(
    *, kinds: object = None, statuses: object = None, service: object = None, as_of: AsOf | None
) -> Filter:
    """Check what was asked; raises `InvalidInput` with the field and what is allowed there."""
    return Filter(
        names_of(kinds, "kind", KINDS), names_of(statuses, "status", STATUSES), check_name(service, "service"), as_of
    )


def list_entries(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    wanted: Filter,
    *,
    limit: object = None,
    after: object = None,
    clock: Clock = utc_now,
) -> Page:
    """
    A page of entries in the order of their ids, within the caller's tiers.

    Args:
        after: the `next` of the page before.

    Raises:
        InvalidInput: a limit out of range, or a cursor that is none or belongs to another listing.
        MomentUnknown: the log does not reach there.
    """
    require(principal, "recall" if wanted.as_of is None else "audit")
    size = _checked_limit(limit)
    cursor = _read_cursor(after, wanted)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        # One more than a page tells whether there is another.
        if wanted.as_of is None:
            found, moment = _live(transaction, tenant_id, principal, wanted, cursor, size + 1), None
        else:
            found, moment = _then(transaction, tenant_id, principal, wanted, cursor, size + 1, clock)
    page, more = found[:size], len(found) > size
    position = moment["position"] if moment else None
    last = _Cursor(UUID(page[-1]["entry_id"]), position).text(wanted.digest()) if more else None
    return Page(page, last, moment)


def _live(
    transaction: Transaction, tenant_id: UUID, principal: Principal, wanted: Filter, cursor: _Cursor, size: int
) -> list[dict[str, Any]]:
    policy = Policy.model_validate(transaction.execute(POLICY_IN_FORCE, {"tenant_id": tenant_id})[0]["policy"])
    tiers = visible_tiers(policy, principal)
    params = {**_params(tenant_id, wanted, cursor, size), "tiers": list(tiers)}
    rows = transaction.execute(page_query(wanted, is_past=False), params)
    seen = seen_of(transaction, tenant_id, rows, tiers)
    return [_head(row) | without_unseen(plain_state(row), seen) for row in rows]


def _then(
    transaction: Transaction,
    tenant_id: UUID,
    principal: Principal,
    wanted: Filter,
    cursor: _Cursor,
    size: int,
    clock: Clock,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    assert wanted.as_of is not None
    past = past_of(transaction, tenant_id, principal, wanted.as_of, clock=clock)
    if cursor.position is not None:
        # Every page is of the first one's position: a time that is not over yet would mean another by now.
        again = past_of(transaction, tenant_id, principal, AsOf(position=cursor.position), clock=clock)
        past = replace(again, moment=Moment(cursor.position, past.moment.instant))
    params = {**_params(tenant_id, wanted, cursor, size), **past.params(tenant_id)}
    rows = transaction.execute(page_query(wanted, is_past=True), params)
    seen = seen_then(transaction, tenant_id, past, named_entries(rows))
    return [head_then(row) | without_unseen(plain_state(row), seen) for row in rows], past.as_dict()


def page_query(wanted: Filter, *, is_past: bool) -> sa.Select[Any]:
    """The statement of a page; each set of filters in use is a statement of its own, planned for what it has."""
    return _page_query(bool(wanted.kinds), bool(wanted.statuses), wanted.service is not None, is_past)


@lru_cache
def _page_query(by_kind: bool, by_status: bool, by_service: bool, is_past: bool) -> sa.Select[Any]:
    table = revisions if is_past else entries
    conditions = [table.c.entry_id > sa.bindparam("after", type_=sa.Uuid)]
    if by_kind:
        conditions.append(table.c.kind == sa.any_(sa.bindparam("kinds", type_=_Texts)))
    if by_status:
        conditions.append(table.c.status == sa.any_(sa.bindparam("statuses", type_=_Texts)))
    if by_service:
        conditions.append(table.c.service == sa.bindparam("service", type_=sa.Text))
    if is_past:
        return _first(STOOD.where(*conditions), table.c.entry_id)
    # A page of each tier, of which the first are the page: of no other tier is anything read.
    tier = sa.func.unnest(sa.bindparam("tiers", type_=_Texts)).table_valued(sa.column("name", sa.Text), name="tier")
    tier = tier.render_derived()
    of_tier = sa.select(entries).where(of_tenant(entries), entries.c.visibility == tier.c.name, *conditions)
    found = _first(of_tier, entries.c.entry_id).lateral("found")
    return _first(sa.select(found).select_from(tier.join(found, sa.true())), found.c.entry_id)


def _first(found: sa.Select[Any], order: sa.ColumnElement[UUID]) -> sa.Select[Any]:
    return found.order_by(order).limit(sa.bindparam("page", type_=sa.Integer))


def _params(tenant_id: UUID, wanted: Filter, cursor: _Cursor, size: int) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "kinds": list(wanted.kinds),
        "statuses": list(wanted.statuses),
        "service": wanted.service,
        "after": cursor.after,
        "page": size,
    }


def _head(row: Row) -> dict[str, Any]:
    return {"entry_id": str(row["entry_id"]), "revision": row["revision"], "position": row["position"]}


def _checked_limit(limit: object) -> int:
    if limit is None:
        return DEFAULT_PAGE
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    return limit


def _read_cursor(after: object, wanted: Filter) -> _Cursor:
    if after is None:
        return _Cursor()
    try:
        if not isinstance(after, str) or len(after) > 200:
            raise ValueError
        stated = json.loads(base64.b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True))
        last, position, digest = stated
        cursor = _Cursor(UUID(last), position)
        if not (position is None if wanted.as_of is None else type(position) is int):
            digest = None
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput("after: this is no cursor; give the `next` of the page before.", field="after") from None
    if digest != wanted.digest():
        raise InvalidInput("after: this cursor is of a listing with other filters; start anew.", field="after")
    return cursor
