"""
Looking for contradictions: each live entry is compared with its nearest, and a finding waits as a dispute candidate.

Level-triggered, and never on the write path: an entry whose present revision has not been compared under the present
rules *is* the to-do list. So a crash loses nothing, and a new version of the rules looks at everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import Policy
from grandbo.memory.contradiction import CONTRADICTION_VERSION, Claim, judge
from grandbo.memory.disputing import propose_dispute
from grandbo.memory.tenants import POLICY_IN_FORCE
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import contradiction_checks, entries, events, terms
from grandbo.storage.tenancy import of_tenant
from grandbo.text import terms as terms_of
from grandbo.types import Clock, utc_now

# How many of the nearest an entry is compared with, and by how many of its terms they are found.
NEIGHBOURS = 8
TERMS_ASKED = 48
BATCH = 16

_instant = sa.bindparam("instant", type_=sa.DateTime(timezone=True))
# What is about a subject is compared with nothing: a dispute quotes both sides to reviewers, outside the subject's key.
_is_about_somebody = entries.c.entry_id.in_(
    sa.select(events.c.stream_id).where(of_tenant(events), events.c.subject_id.is_not(None))
)
_is_live = sa.and_(
    entries.c.status == "published",
    entries.c.valid_from <= _instant,
    entries.c.expires_at > _instant,
    sa.not_(_is_about_somebody),
)
_was_compared = sa.exists(
    sa.select(sa.literal_column("1")).where(
        of_tenant(contradiction_checks),
        contradiction_checks.c.entry_id == entries.c.entry_id,
        contradiction_checks.c.revision == entries.c.revision,
        contradiction_checks.c.version == sa.bindparam("version", type_=sa.Integer),
    )
)
_to_compare = sa.and_(of_tenant(entries), _is_live, sa.not_(_was_compared))
_PENDING = (
    sa.select(entries).where(_to_compare).order_by(entries.c.position).limit(sa.bindparam("at_most", type_=sa.Integer))
)
_COUNT = sa.select(sa.func.count().label("pending")).where(_to_compare)

# By shared terms of title, summary and service, the rarer the more; what is in one entry only finds none.
_posting = (
    sa.select(terms.c.term, terms.c.entry_id)
    .where(
        of_tenant(terms),
        terms.c.to_position.is_(None),
        terms.c.term == sa.any_(sa.bindparam("asked", type_=pg.ARRAY(sa.Text))),
    )
    .cte("posting")
    .prefix_with("MATERIALIZED", dialect="postgresql")
)
_frequency = sa.select(_posting.c.term, sa.func.count().label("n")).group_by(_posting.c.term).cte("frequency")
_shared = (
    sa.select(_posting.c.entry_id, sa.func.sum(1_000_000 / _frequency.c.n).label("score"))
    .join(_frequency, _frequency.c.term == _posting.c.term)
    .where(_posting.c.entry_id != sa.bindparam("entry_id", type_=sa.Uuid))
    .group_by(_posting.c.entry_id)
    .cte("shared")
)
_NEIGHBOURS = (
    sa.select(entries)
    .join(_shared, _shared.c.entry_id == entries.c.entry_id)
    .where(of_tenant(entries), _is_live)
    .order_by(_shared.c.score.desc(), entries.c.entry_id)
    .limit(NEIGHBOURS)
)
_row = pg.insert(contradiction_checks).values(
    {column.name: sa.bindparam(column.name) for column in contradiction_checks.c}
)
_NOTE = _row.on_conflict_do_update(
    index_elements=["tenant_id", "entry_id"],
    set_={"version": _row.excluded.version, "revision": _row.excluded.revision},
)


@dataclass(frozen=True, slots=True)
class Detected:
    """What a pass did: how many entries it compared, how many disputes it proposed, how many entries are left."""

    compared: int
    proposed: int
    pending: int

    def as_dict(self) -> dict[str, int]:
        """Plain values."""
        return {"compared": self.compared, "proposed": self.proposed, "pending": self.pending}


def detect_contradictions(
    database: Database, tenant_id: UUID, *, at_most: int = BATCH, clock: Clock = utc_now
) -> Detected:
    """
    Compare up to `at_most` entries that have not been compared as they are now.

    An entry whose dispute has no room in the queue is left for a later pass.
    """
    compared = proposed = 0
    for entry, neighbours, policy in _work(database, tenant_id, at_most, clock):
        made, is_done = _compare(database, tenant_id, policy, entry, neighbours, clock)
        proposed += made
        if not is_done:
            break
        _note(database, tenant_id, entry)
        compared += 1
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        pending = transaction.execute(_COUNT, _asked(tenant_id, clock))[0]["pending"]
    return Detected(compared, proposed, pending)


def _work(database: Database, tenant_id: UUID, at_most: int, clock: Clock) -> list[tuple[Row, list[Row], Policy]]:
    asked = _asked(tenant_id, clock)
    with database.transaction("writer", tenant_id, read_only=True, snapshot=True) as transaction:
        rows = transaction.execute(_PENDING, {**asked, "at_most": at_most})
        if not rows:
            return []
        found = transaction.execute(POLICY_IN_FORCE, {"tenant_id": tenant_id})
        policy = Policy.model_validate(found[0]["policy"])
        return [(row, _neighbours(transaction, asked, row), policy) for row in rows]


def _neighbours(transaction: Transaction, asked: dict[str, Any], row: Row) -> list[Row]:
    named = dict.fromkeys(terms_of(f"{row['service']} {row['title']} {row['summary']}"))
    params = {**asked, "asked": list(named)[:TERMS_ASKED], "entry_id": row["entry_id"]}
    return transaction.execute(_NEIGHBOURS, params)


def _compare(
    database: Database, tenant_id: UUID, policy: Policy, entry: Row, neighbours: Sequence[Row], clock: Clock
) -> tuple[int, bool]:
    """How many disputes were proposed, and whether the entry is done with."""
    made = 0
    for other in neighbours:
        if other["entry_id"] == entry["disputed_with"] or other["disputed_with"] == entry["entry_id"]:
            continue
        judgement = judge(Claim.of(entry), Claim.of(other))
        if judgement.findings:
            proposed = propose_dispute(database, tenant_id, policy, (entry, other), judgement, clock)
            if proposed.is_held_back:
                return made, False
            made += proposed.is_new
    return made, True


def _note(database: Database, tenant_id: UUID, entry: Row) -> None:
    key = {"tenant_id": tenant_id, "entry_id": entry["entry_id"]}
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_NOTE, {**key, "version": CONTRADICTION_VERSION, "revision": entry["revision"]})


def _asked(tenant_id: UUID, clock: Clock) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "instant": clock(), "version": CONTRADICTION_VERSION}
