"""
One entry as it stood: its state from the revisions, its links as they were open then.

Of the past one sees what stands within one's tiers of now and stood within those of then: what was raised above the
asker since is not shown as it was before either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import NotFound
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.reading import named_entries, plain_link, plain_state, without_unseen
from grandbo.memory.redacting import ERASED_TITLE
from grandbo.memory.tenants import HEAD_AND_POLICY, standing_of
from grandbo.memory.trust import resolved_query, trust_in, voices_query
from grandbo.recall.moment import AsOf, Moment, resolve
from grandbo.recall.query import AS_OF_TIMEOUT_MS, policy_at
from grandbo.recall.view import held_at
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import entries, links, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, utc_now, utc_text

_Texts = pg.ARRAY(sa.Text)


def _stood(*columns: Any) -> sa.Select[Any]:
    """The revisions of then of the entries that the asker saw then and sees now."""
    now = entries.alias("now")
    return (
        sa.select(*columns)
        .join_from(
            revisions,
            now,
            sa.and_(now.c.tenant_id == revisions.c.tenant_id, now.c.entry_id == revisions.c.entry_id),
        )
        .where(
            of_tenant(revisions),
            of_tenant(now),
            held_at(revisions, "position"),
            revisions.c.visibility == sa.any_(sa.bindparam("tiers", type_=_Texts)),
            now.c.visibility == sa.any_(sa.bindparam("own_tiers", type_=_Texts)),
        )
    )


STOOD = _stood(revisions)
_entry = sa.bindparam("entry_id", type_=sa.Uuid)
_ENTRY_THEN = STOOD.where(revisions.c.entry_id == _entry)
_ids = sa.any_(sa.bindparam("named", type_=pg.ARRAY(sa.Uuid)))
_SEEN_THEN = _stood(revisions.c.entry_id).where(revisions.c.entry_id == _ids)
_LINKS_THEN = (
    sa.select(links)
    .where(
        of_tenant(links),
        held_at(links, "position"),
        sa.or_(links.c.from_entry == _entry, links.c.to_entry == _entry),
    )
    .order_by(links.c.from_position)
)


@dataclass(frozen=True, slots=True)
class Past:
    """A moment, the asker's tiers of now, and those of them that he would have had then."""

    moment: Moment
    own: tuple[str, ...]
    tiers: tuple[str, ...]

    def params(self, tenant_id: UUID) -> dict[str, Any]:
        """Values for the placeholders of `STOOD`."""
        return {
            "tenant_id": tenant_id,
            "position": self.moment.position,
            "tiers": list(self.tiers),
            "own_tiers": list(self.own),
        }

    def as_dict(self) -> dict[str, Any]:
        """What every answer of the past says of its moment."""
        return {"position": self.moment.position, "instant": utc_text(self.moment.instant)}


def past_of(
    transaction: Transaction, tenant_id: UUID, principal: Principal, asked: AsOf, *, clock: Clock = utc_now
) -> Past:
    """
    Find the moment that is meant, and what the principal may see of it.

    Raises:
        MomentUnknown
    """
    head, policy = standing_of(transaction.execute(HEAD_AND_POLICY, {"tenant_id": tenant_id}))
    moment = resolve(transaction, tenant_id, asked, head, max(clock(), head.recorded_at))
    own = visible_tiers(policy, principal)
    then = visible_tiers(policy_at(transaction, tenant_id, moment.position), principal)
    transaction.limit(AS_OF_TIMEOUT_MS)
    return Past(moment, own, tuple(tier for tier in then if tier in own))


def entry_then(
    database: Database, tenant_id: UUID, principal: Principal, entry_id: UUID, asked: AsOf, *, clock: Clock = utc_now
) -> dict[str, Any]:
    """
    The entry as it stood, as plain values, with the moment under `as_of`.

    Raises:
        NotFound: it was not there yet, or it stands or stood above the caller's tiers.
        MomentUnknown: the log does not reach there.
    """
    require(principal, "audit")
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        past = past_of(transaction, tenant_id, principal, asked, clock=clock)
        params = {**past.params(tenant_id), "entry_id": entry_id}
        one = {**params, "ids": [entry_id]}
        rows, linked, voices, resolved = transaction.batch(
            [
                (_ENTRY_THEN, params),
                (_LINKS_THEN, params),
                (voices_query(is_past=True), one),
                (resolved_query(is_past=True), one),
            ]
        )
        far = {link["to_entry"] if link["from_entry"] == entry_id else link["from_entry"] for link in linked}
        seen = seen_then(transaction, tenant_id, past, named_entries(rows) | far)
    if not rows:
        raise NotFound
    row = rows[0]
    shown = [link for link in (plain_link(found, entry_id) for found in linked) if link["entry_id"] in seen]
    return (
        head_then(row)
        | without_unseen(plain_state(row), seen)
        | {
            "links": shown,
            "trust_bp": trust_in(row, voices, resolved),
            "erased": row["title"] == ERASED_TITLE,
            "as_of": past.as_dict(),
        }
    )


def head_then(row: Row) -> dict[str, Any]:
    """Which revision it is, and the position that made it."""
    return {"entry_id": str(row["entry_id"]), "revision": row["revision"], "position": row["from_position"]}


def seen_then(transaction: Transaction, tenant_id: UUID, past: Past, named: set[UUID]) -> set[str]:
    """Of these entries, those that the asker saw then and sees now."""
    if not named:
        return set()
    rows = transaction.execute(_SEEN_THEN, {**past.params(tenant_id), "named": sorted(named)})
    return {str(row["entry_id"]) for row in rows}
