"""
Restatements: matches that say nothing that a better-ranked one has not said are folded into it.

Folded over the whole fused list and before it is cut, so that each place of an answer says something of its own. Ranks
and scores are those of the rankings: folding moves nothing and ranks nothing anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.restating import body_adds_nothing, words_of
from grandbo.memory.trust import Record, records_of, resolved_query, voices_query
from grandbo.recall.view import View, held
from grandbo.storage.database import Row, Transaction
from grandbo.storage.tables import entries, links, revisions
from grandbo.storage.tenancy import of_tenant

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
# A dispute or a status is a label that must not vanish in another's place.
_LABEL = ("status", "disputed")
_Key = tuple[Any, ...]
_DUPLICATES = {
    view: sa.select(links.c.from_entry, links.c.to_entry).where(
        of_tenant(links),
        links.c.link_type == "duplicates",
        links.c.from_entry == _ids,
        links.c.to_entry == _ids,
        held(view, links),
    )
    for view in View
}
_BODIES = {
    View.LIVE: sa.select(entries.c.entry_id, entries.c.body).where(of_tenant(entries), entries.c.entry_id == _ids),
    View.AS_OF: sa.select(revisions.c.entry_id, revisions.c.body).where(
        of_tenant(revisions), revisions.c.entry_id == _ids, held(View.AS_OF, revisions)
    ),
}


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of matches besides their rows: which are linked as duplicates, and what has happened to each."""

    duplicates: Mapping[UUID, frozenset[UUID]]
    records: Mapping[UUID, Record]

    def duplicates_of(self, entry_id: UUID) -> frozenset[UUID]:
        """Those that a person linked to it as duplicates, in whichever direction."""
        return self.duplicates.get(entry_id, frozenset())


def look_around(transaction: Transaction, tenant_id: UUID, view: View, position: int, rows: Sequence[Row]) -> Around:
    """Read it, as it was at the position, in one round trip of the same snapshot."""
    if not rows:
        return Around({}, {})
    if view is View.LIVE:
        # The reader of live recall sees entries alone; links and verdicts are read by the role that began.
        transaction.assume("auditor")
    is_past = view is View.AS_OF
    params = {"tenant_id": tenant_id, "ids": [row["entry_id"] for row in rows], "position": position}
    steps = [_DUPLICATES[view], voices_query(is_past=is_past), resolved_query(is_past=is_past)]
    linked, voices, resolved = transaction.batch([(step, params) for step in steps])
    pairs: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for row in linked:
        pairs[row["from_entry"]].add(row["to_entry"])
        pairs[row["to_entry"]].add(row["from_entry"])
    duplicates = {entry_id: frozenset(others) for entry_id, others in pairs.items()}
    return Around(duplicates, records_of(voices, resolved, rows))


def fold(
    transaction: Transaction, tenant_id: UUID, view: View, position: int, rows: Sequence[Row], around: Around
) -> list[tuple[Row, tuple[UUID, ...]]]:
    """
    The rows that are kept, in their order, each with the ids of those that restate it, in theirs.

    A row restates a better one that is linked to it, or to what restates that, as its duplicate; that makes the same
    claim; or that has the same words in title and summary, with a body that adds nothing. Of several, the best.
    """
    keys = [_words_key(row) for row in rows]
    bodies = _bodies_of(transaction, tenant_id, view, position, rows, keys)
    kept: list[tuple[Row, list[UUID]]] = []
    by_key: defaultdict[_Key, list[int]] = defaultdict(list)
    place_of: dict[UUID, int] = {}
    for row, key in zip(rows, keys, strict=True):
        same_words = (place for place in by_key[key] if _adds_nothing(row, kept[place][0], bodies))
        linked = (
            place_of[other]
            for other in around.duplicates_of(row["entry_id"])
            if other in place_of and _label(kept[place_of[other]][0]) == _label(row)
        )
        place = min((*same_words, *linked), default=len(kept))
        if place == len(kept):
            kept.append((row, []))
            by_key[key].append(place)
        else:
            kept[place][1].append(row["entry_id"])
        place_of[row["entry_id"]] = place
    return [(row, tuple(restated)) for row, restated in kept]


def _label(row: Row) -> _Key:
    return tuple(row[name] for name in _LABEL)


def _words_key(row: Row) -> _Key:
    """Equal where two rows say the same, as far as title and summary tell. The same claim has the same words."""
    setting = (row["kind"], row["service"], row["namespace"], tuple(row["applicability"]))
    return (*_label(row), *setting, words_of(row["title"]), words_of(row["summary"]))


def _adds_nothing(row: Row, kept: Row, bodies: Mapping[UUID, str]) -> bool:
    if row["claim_digest"] == kept["claim_digest"]:
        return True
    return body_adds_nothing(bodies[row["entry_id"]], bodies[kept["entry_id"]])


def _bodies_of(
    transaction: Transaction, tenant_id: UUID, view: View, position: int, rows: Sequence[Row], keys: Sequence[_Key]
) -> dict[UUID, str]:
    """Bodies are long and seldom needed: they are read where title and summary leave the question open."""
    alike: defaultdict[_Key, list[Row]] = defaultdict(list)
    for row, key in zip(rows, keys, strict=True):
        alike[key].append(row)
    wanted = [
        row["entry_id"]
        for group in alike.values()
        if len({bytes(row["claim_digest"]) for row in group}) > 1
        for row in group
    ]
    if not wanted:
        return {}
    params: dict[str, Any] = {"tenant_id": tenant_id, "ids": wanted, "position": position}
    return {row["entry_id"]: row["body"] for row in transaction.execute(_BODIES[view], params)}
