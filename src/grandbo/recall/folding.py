"""
Restatements: matches that say nothing that a better-ranked one has not said are folded into it.

Folded over the whole fused list and before it is cut, so that each place of an answer says something of its own. Ranks
and scores are those of the rankings: folding moves nothing and ranks nothing anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.restating import body_adds_nothing, words_of
from grandbo.memory.trust import Heard, Record, resolved_query, voices_query
from grandbo.recall.view import View, held
from grandbo.storage.database import Row, Step, Transaction
from grandbo.storage.tables import entries, links, revisions
from grandbo.storage.tenancy import of_tenant

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
Key = tuple[Any, ...]
_BODIES = {
    View.LIVE: sa.select(entries.c.entry_id, entries.c.body).where(of_tenant(entries), entries.c.entry_id == _ids),
    View.AS_OF: sa.select(revisions.c.entry_id, revisions.c.body).where(
        of_tenant(revisions), revisions.c.entry_id == _ids, held(View.AS_OF, revisions)
    ),
}


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of matches besides their rows: links as duplicates, what has happened to each, some bodies."""

    duplicates: Mapping[UUID, frozenset[UUID]]
    heard: Heard
    bodies: Mapping[UUID, str]

    def duplicates_of(self, entry_id: UUID) -> frozenset[UUID]:
        """Those that a person linked to it as duplicates, in whichever direction."""
        return self.duplicates.get(entry_id, frozenset())

    def record_of(self, row: Row) -> Record:
        """What has happened to the entry of a row of recall."""
        return self.heard.record_of(row["entry_id"], supported=row["supported"], disputed=row["disputed"])


def look_around(
    transaction: Transaction,
    tenant_id: UUID,
    view: View,
    position: int,
    rows: Sequence[Row],
    *,
    meanwhile: Callable[[], Sequence[UUID]] = tuple,
    ends: bool = False,
) -> Around:
    """
    Read it, as it was at the position, in one round trip of the same snapshot.

    Args:
        meanwhile: work for the time in which the server looks; gives the entries whose bodies are wanted too.
        ends: nothing is read after this; the transaction ends with it.
    """
    if not rows:
        return Around({}, Heard({}, {}), {})
    where = {"tenant_id": tenant_id, "position": position}

    def steps() -> Iterator[Step]:
        yield _around_query(view), {**where, "ids": [row["entry_id"] for row in rows]}
        if wanted := meanwhile():
            yield _BODIES[view], {**where, "ids": list(wanted)}

    # The reader of live recall sees entries alone; links and verdicts are read by the role that began.
    found = transaction.batch(steps(), commit=ends, as_role="auditor" if view is View.LIVE else None)
    known: defaultdict[str, list[Row]] = defaultdict(list)
    for row in found[0]:
        known[row["what"]].append(row)
    pairs: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for row in known["duplicates"]:
        pairs[row["entry_id"]].add(row["other"])
        pairs[row["other"]].add(row["entry_id"])
    duplicates = {entry_id: frozenset(others) for entry_id, others in pairs.items()}
    bodies = {row["entry_id"]: row["body"] for texts in found[1:] for row in texts}
    return Around(duplicates, Heard.of_rows(known["voices"], known["resolved"]), bodies)


@lru_cache(maxsize=len(View))
def _around_query(view: View) -> sa.CompoundSelect[Any]:
    is_past = view is View.AS_OF
    voices, resolved = voices_query(is_past=is_past).subquery(), resolved_query(is_past=is_past).subquery()
    nobody, nothing, none = (sa.cast(sa.null(), kind) for kind in (sa.Uuid, sa.Text, sa.BigInteger))
    what = {
        name: sa.literal_column(f"'{name}'", sa.Text).label("what") for name in ("duplicates", "voices", "resolved")
    }
    return sa.union_all(
        sa.select(
            what["duplicates"],
            links.c.from_entry.label("entry_id"),
            links.c.to_entry.label("other"),
            nothing.label("verdict"),
            none.label("number"),
        ).where(
            of_tenant(links),
            links.c.link_type == "duplicates",
            links.c.from_entry == _ids,
            links.c.to_entry == _ids,
            held(view, links),
        ),
        sa.select(what["voices"], voices.c.entry_id, nobody, voices.c.verdict, voices.c.number),
        sa.select(what["resolved"], resolved.c.entry_id, nobody, nothing, resolved.c.number),
    )


def words_keys(rows: Sequence[Row]) -> list[Key]:
    """
    Of each row a key that is equal where two say the same, as far as title and summary tell.

    The same claim has the same words. Summaries are long: they are looked at where everything before them is equal.
    """
    short = [_short_key(row) for row in rows]
    if _all_differ(short):
        return short
    often = Counter(short)
    return [(*key, words_of(row["summary"])) if often[key] > 1 else key for row, key in zip(rows, short, strict=True)]


def may_restate(rows: Sequence[Row], keys: Sequence[Key]) -> list[UUID]:
    """The entries of which only their bodies tell whether one restates another: bodies are long and seldom needed."""
    if _all_differ(keys):
        return []
    groups: defaultdict[Key, list[Row]] = defaultdict(list)
    for row, key in zip(rows, keys, strict=True):
        groups[key].append(row)
    return [
        row["entry_id"]
        for group in groups.values()
        if len({bytes(row["claim_digest"]) for row in group}) > 1
        for row in group
    ]


def fold(rows: Sequence[Row], keys: Sequence[Key], around: Around) -> list[tuple[Row, tuple[UUID, ...]]]:
    """
    The rows that are kept, in their order, each with the ids of those that restate it, in theirs.

    Keys are those of `words_keys`. A row restates a better one that is linked to it, or to what restates that, as its
    duplicate; that makes the same claim; or that has the same words in title and summary, with a body that adds
    nothing. Of several, the best.
    """
    if not around.duplicates and _all_differ(keys):
        return [(row, ()) for row in rows]
    kept: list[tuple[Row, list[UUID]]] = []
    by_key: defaultdict[Key, list[int]] = defaultdict(list)
    place_of: dict[UUID, int] = {}
    for row, key in zip(rows, keys, strict=True):
        same_words = (place for place in by_key[key] if _adds_nothing(row, kept[place][0], around.bodies))
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


def _all_differ(keys: Sequence[Key]) -> bool:
    """As nearly always; then nothing need be grouped."""
    return len(set(keys)) == len(keys)


def _label(row: Row) -> Key:
    """What must not vanish in another's place."""
    return row["status"], row["disputed"]


def _short_key(row: Row) -> Key:
    applies_to = tuple(row["applicability"])
    return (*_label(row), row["kind"], row["service"], row["namespace"], applies_to, words_of(row["title"]))


def _adds_nothing(row: Row, kept: Row, bodies: Mapping[UUID, str]) -> bool:
    if row["claim_digest"] == kept["claim_digest"]:
        return True
    return body_adds_nothing(bodies[row["entry_id"]], bodies[kept["entry_id"]])
