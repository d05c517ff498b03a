"""
Blast radius: all that rests on an entry or on a source, why, and who was told any of it.

An entry rests on another by evidence that is memory, by a link, or because its author had been told the other for the
same incident before. What stands above the caller's tiers is not there: it is no member, and nothing is reached by way
of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.log import READ_HEAD, head_of
from grandbo.events.models import EntryCorroborated, Policy
from grandbo.finding_limits import URI_LIMIT
from grandbo.memory.closure import Because, Closure, Edge
from grandbo.memory.commands import Reads, follow
from grandbo.memory.finding import MEMORY_SCHEME
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.told import (
    COUNT_POSSIBLY_AFFECTED,
    COUNT_RECEIPTS,
    POSSIBLY_AFFECTED,
    RECEIPTS,
    RECORDED_AFTER,
    tier_params,
)
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, links, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.text import check_text
from grandbo.types import Kind, LinkType, Principal, Status, derived_id, utc_text

# How many receipts, and how many entries that may be affected, are shown of those that are counted.
SHOWN = 500

# That entries contradict each other makes neither rest on the other.
BY_LINK: dict[LinkType, Because] = {
    "caused_by": "link:caused_by",
    "mitigated_by": "link:mitigated_by",
    "relates_to": "link:relates_to",
    "supersedes": "link:supersedes",
    "duplicates": "link:duplicates",
}
BOTH_WAYS: tuple[LinkType, ...] = ("duplicates",)

_CITED = re.compile(r"grandbo://entries/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?#@].*)?", re.IGNORECASE)

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))


def _seen(table: sa.FromClause) -> sa.ColumnElement[bool]:
    return sa.and_(of_tenant(table), table.c.visibility == sa.any_(_tiers))


_MEMBERS = sa.select(
    *(entries.c[name] for name in ("entry_id", "revision", "position", "kind", "status", "title", "service"))
).where(_seen(entries), entries.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))))
_WITH_SOURCE = (
    sa.select(entries.c.entry_id)
    .where(_seen(entries), entries.c.evidence.contains(sa.bindparam("source", type_=pg.JSONB)))
    .order_by(entries.c.entry_id)
)
_item = sa.func.jsonb_array_elements(entries.c.evidence).table_valued(sa.column("value", pg.JSONB), name="item")
_uri = _item.c.value["uri"].astext
_first_with_it = (
    sa.select(revisions.c.event_type)
    .where(
        of_tenant(revisions),
        revisions.c.entry_id == entries.c.entry_id,
        revisions.c.evidence.contains(sa.func.jsonb_build_array(sa.func.jsonb_build_object("uri", _uri))),
    )
    .order_by(revisions.c.revision)
    .limit(1)
    .scalar_subquery()
)
# All evidence that is memory, at once: no index leads from a URI to its entry, and one look at each entry is enough.
_MEMORY_EVIDENCE = sa.select(entries.c.entry_id, _uri.label("uri"), _first_with_it.label("brought_by")).where(
    _seen(entries), sa.func.lower(sa.func.left(_uri, len(MEMORY_SCHEME))) == MEMORY_SCHEME
)
_near, _far = entries.alias("near"), entries.alias("far")
_LINKS = sa.select(links.c.from_entry, links.c.link_type, links.c.to_entry).where(
    of_tenant(links),
    links.c.to_position.is_(None),
    links.c.link_type == sa.any_(sa.bindparam("link_types", type_=pg.ARRAY(sa.Text))),
    _near.c.entry_id == links.c.from_entry,
    _seen(_near),
    _far.c.entry_id == links.c.to_entry,
    _seen(_far),
)


@dataclass(frozen=True, slots=True)
class Seed:
    """Where it begins: an entry, or everything whose evidence names exactly this URI."""

    entry_id: UUID | None = None
    uri: str | None = None

    @classmethod
    def source(cls, uri: object) -> Seed:
        """From a caller's URI; raises `InvalidInput`, `LimitExceeded`."""
        if not isinstance(uri, str) or ":" not in uri:
            raise InvalidInput("uri: give the URI that the evidence names, scheme and all.", field="uri")
        return cls(uri=check_text(uri, "uri", limit=URI_LIMIT, single_line=True))

    def correlation_id(self, tenant_id: UUID) -> UUID:
        """What the events of putting this impact away have in common, and release finds them by."""
        what = ("entry", str(self.entry_id)) if self.uri is None else ("source", self.uri)
        return derived_id("impact", str(tenant_id), *what)

    def as_dict(self) -> dict[str, str]:
        """Plain values."""
        return {"entry_id": str(self.entry_id)} if self.uri is None else {"uri": self.uri}


def as_seed(given: Seed | UUID | str) -> Seed:
    """A seed from what a caller names: an entry by its id, a source by its URI."""
    if isinstance(given, Seed):
        return given
    return Seed(given) if isinstance(given, UUID) else Seed.source(given)


@dataclass(frozen=True, slots=True)
class Member:
    """An entry that would have to go too, as it stands."""

    entry_id: UUID
    revision: int
    position: int
    kind: Kind
    status: Status
    title: str
    service: str
    reasons: tuple[dict[str, str | None], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "entry_id": str(self.entry_id), "reasons": list(self.reasons)}


class Impact:
    """The members of one seed for one caller: `reads` finds them, on whichever transaction makes these reads."""

    def __init__(self, tenant_id: UUID, principal: Principal, policy: Policy, seed: Seed) -> None:
        self.seed = seed
        self.members: list[Member] = []
        tiers = visible_tiers(policy, principal)
        self.scope = {**tier_params(tenant_id, policy, tiers), "tiers": list(tiers)}

    def reads(self) -> Reads:
        """Seeds and edges first, then round by round what those who were told of it recorded; the members last."""
        closure = Closure()
        linked = {**self.scope, "link_types": list(BY_LINK)}
        seeds, cited, links_found = yield [self._seeds(), (_MEMORY_EVIDENCE, self.scope), (_LINKS, linked)]
        if self.seed.entry_id is not None and not seeds:
            raise NotFound
        starts = [row["entry_id"] for row in seeds]
        new = closure.start(starts)
        new += closure.learn([*_by_evidence(cited), *_by_link(links_found)])
        while new:
            (later,) = yield [(RECORDED_AFTER, {**self.scope, "served": new})]
            new = closure.learn(
                Edge(row["entry_id"], row["served"], "recorded_after", row["receipt_id"]) for row in later
            )
        (rows,) = yield [(_MEMBERS, {**self.scope, "ids": list(closure)})]
        by_id = {row["entry_id"]: row for row in rows}
        self.members = [self._member(by_id[entry_id], closure, set(starts)) for entry_id in closure]

    def _seeds(self) -> tuple[sa.Executable, dict[str, Any]]:
        if self.seed.uri is None:
            return _MEMBERS, {**self.scope, "ids": [self.seed.entry_id]}
        return _WITH_SOURCE, {**self.scope, "source": [{"uri": self.seed.uri}]}

    def _member(self, row: Row, closure: Closure, starts: set[UUID]) -> Member:
        reasons = [_reason(edge.because, str(edge.on), edge.receipt_id) for edge in closure.reasons(row["entry_id"])]
        if row["entry_id"] in starts:
            reasons.insert(0, _reason("seed", self.seed.uri or str(self.seed.entry_id)))
        return Member(**row, reasons=tuple(reasons))


def look(database: Database, tenant_id: UUID, principal: Principal, policy: Policy, seed: Seed) -> dict[str, Any]:
    """
    The members of an impact and why, who was told any of them, and what may be affected, as plain values.

    Raises:
        Forbidden, NotFound: the latter for an entry above the caller's tiers too.
        ImpactTooLarge: it has more members than one command may touch.
    """
    require(principal, "audit")
    impact = Impact(tenant_id, principal, policy, seed)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        follow(transaction, impact.reads())
        served = {**impact.scope, "served": [member.entry_id for member in impact.members], "page": SHOWN}
        statements = (READ_HEAD, COUNT_RECEIPTS, RECEIPTS, COUNT_POSSIBLY_AFFECTED, POSSIBLY_AFFECTED)
        head, told, receipts, maybe, affected = transaction.batch([(statement, served) for statement in statements])
    return {
        "seed": seed.as_dict(),
        "position": head_of(head).position,
        "correlation_id": str(seed.correlation_id(tenant_id)),
        "members": [member.as_dict() for member in impact.members],
        "receipts": _page(told[0]["total"], [_receipt(row) for row in receipts]),
        "possibly_affected": _page(maybe[0]["total"], [_possibly(row) for row in affected]),
    }


def _by_evidence(rows: Sequence[Row]) -> Iterator[Edge]:
    for row in rows:
        if cited := _CITED.fullmatch(row["uri"]):
            is_support = row["brought_by"] == EntryCorroborated.EVENT_TYPE
            yield Edge(row["entry_id"], UUID(cited[1]), "corroboration" if is_support else "evidence")


def _by_link(rows: Sequence[Row]) -> Iterator[Edge]:
    for row in rows:
        because = BY_LINK[row["link_type"]]
        yield Edge(row["from_entry"], row["to_entry"], because)
        if row["link_type"] in BOTH_WAYS:
            yield Edge(row["to_entry"], row["from_entry"], because)


def _reason(because: Because, of: str, receipt_id: UUID | None = None) -> dict[str, str | None]:
    return {"because": because, "of": of, "receipt_id": None if receipt_id is None else str(receipt_id)}


def _page(total: int, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"total": total, "items": items, "has_more": total > len(items)}


def _receipt(row: Row) -> dict[str, Any]:
    return {
        "receipt_id": str(row["receipt_id"]),
        "principal": row["principal"],
        "made_at": utc_text(row["made_at"]),
        "position": row["position"],
        "incident": row["incident"],
        "entries": [str(entry_id) for entry_id in row["entries"]],
    }


def _possibly(row: Row) -> dict[str, Any]:
    return {
        "entry_id": str(row["entry_id"]),
        "title": row["title"],
        "principal": row["principal"],
        "receipt_id": str(row["receipt_id"]),
    }
