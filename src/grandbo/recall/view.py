"""
The two ways to look at the memory: as it stands, and as it stood at a position.

One statement serves both. What differs is here: where an entry's state is read, and which postings and vectors held.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.recall.scope import Shape, applicable, in_scope, of_namespace, visible
from grandbo.storage.tables import embeddings, entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import stands_by_key

_Position = sa.BigInteger
_Candidates = sa.bindparam("candidates", type_=sa.Integer)
# As an offset it changes nothing, and keeps it one look for each term or entry. Else the server would, before it has
# statistics of the tables or where few are looked for, rather read all postings, all vectors or the whole scope once.
ONE_BY_ONE: sa.ColumnElement[int] = sa.literal_column("0")

# What a scope asks of a revision, and a scan of a vector: what the indexes over the past have.
_SCOPE = ("tenant_id", "entry_id", "status", "visibility", "kind", "service", "valid_from", "expires_at")
_VECTOR = ("tenant_id", "stamp", "entry_id", "window_no", "signature", "vector")


class View(Enum):
    """Which rows a recall reads."""

    LIVE = auto()
    AS_OF = auto()


def held_at(table: sa.FromClause, parameter: str) -> sa.ColumnElement[bool]:
    """The rows of a temporal table that were valid at the position in this parameter."""
    position = sa.bindparam(parameter, type_=_Position)
    until = table.c.to_position
    return sa.and_(table.c.from_position <= position, sa.or_(until.is_(None), until > position))


def held(view: View, table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The rows of a temporal table that this view reads."""
    return table.c.to_position.is_(None) if view is View.LIVE else held_at(table, "position")


def held_by_key(view: View, table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The same where a vector, or a revision, is looked up by its key."""
    return stands_by_key(table) if view is View.LIVE else held(view, table)


def held_then(table: sa.FromClause, names: tuple[str, ...], *, parameter: str = "position") -> sa.Subquery:
    """
    These columns of the rows of a temporal table that were valid at the position in this parameter.

    What stands still and what was closed since lie in an index each, and are read apart: rows that were closed before
    the position, of which there are the more the longer the history is, are not read at all.
    """
    return sa.union_all(
        *(sa.select(*_named(table, names)).where(half) for half in _halves(table, parameter))
    ).subquery()


def _halves(table: sa.FromClause, parameter: str) -> tuple[sa.ColumnElement[bool], sa.ColumnElement[bool]]:
    """What was valid at the position and still is, and what was and is no more."""
    position = sa.bindparam(parameter, type_=_Position)
    began = sa.and_(of_tenant(table), table.c.from_position <= position)
    return sa.and_(began, table.c.to_position.is_(None)), sa.and_(began, table.c.to_position > position)


def entries_in_scope(view: View, shape: Shape) -> sa.Select[Any]:
    """Ids of the entries in scope; where the asker names his systems, each with whether it applies to them."""
    state = entries if view is View.LIVE else _stood(shape)
    columns: list[sa.ColumnElement[Any]] = [state.c.entry_id]
    if shape.by_context:
        columns.append(applicable(state).label("applies"))
    found = sa.select(*columns).where(in_scope(state, shape))
    return found.where(of_namespace(state)) if shape.by_namespace else found


def standing_then(shape: Shape) -> sa.Select[Any]:
    """
    All entries that stood in the asker's tiers at the position and that he may see now, each with whether it is in
    scope: `entry_id`, `in_scope`. Read once, where both are asked for.
    """
    stood = _stood(shape)
    return sa.select(stood.c.entry_id, in_scope(stood, shape).label("in_scope")).where(visible(stood))


def _stood(shape: Shape) -> sa.Subquery:
    """
    What a scope asks of the revisions of then, but of those whose entry was raised above the asker's tiers since: it is
    not shown as it was either.
    """
    names = (*_SCOPE, *(name for name, is_asked in _asked_besides(shape) if is_asked))
    still, no_more = _halves(revisions, "position")
    tiers = sa.bindparam("seen_tiers", type_=pg.ARRAY(sa.Text))
    seen = held_then(revisions, ("entry_id", "visibility"), parameter="seen_at")
    is_seen = sa.and_(seen.c.entry_id == revisions.c.entry_id, seen.c.visibility == sa.any_(tiers))
    # Nobody asks from before the position: what stands still is what he sees now.
    return sa.union_all(
        sa.select(*_named(revisions, names)).where(still, revisions.c.visibility == sa.any_(tiers)),
        sa.select(*_named(revisions, names)).where(no_more).join(seen, is_seen),
    ).subquery("stood")


def _asked_besides(shape: Shape) -> Iterator[tuple[str, bool]]:
    yield "disputed", shape.by_disputed
    yield "namespace", shape.by_namespace
    yield from ((name, shape.by_context) for name in ("applies_systems", "applies_from", "applies_until"))


def vectors_of(view: View) -> sa.FromClause:
    """The vectors that this view reads, in all spaces."""
    return embeddings if view is View.LIVE else held_then(embeddings, _VECTOR)


def vectors_in_scope(vectors: sa.FromClause, view: View, shape: Shape, eligible: sa.CTE) -> sa.ColumnElement[bool]:
    """
    Which of the vectors of a view may be measured.

    A live one carries its entry's scope, unless more was asked than it carries; all others take it from the entries.
    """
    is_live = vectors.c.to_position.is_(None) if view is View.LIVE else sa.true()
    if view is View.LIVE and shape.is_carried:
        return sa.and_(in_scope(vectors, shape), is_live)
    return sa.and_(of_tenant(vectors), is_live, vectors.c.entry_id.in_(sa.select(eligible.c.entry_id)))


def rows_behind(view: View, candidate: sa.CTE, names: tuple[str, ...]) -> sa.Select[Any]:
    """The candidates with the columns of their entries."""
    if view is View.LIVE:
        return (
            sa.select(candidate, *_columns(view, entries, names), entries.c.position)
            .join(entries, entries.c.entry_id == candidate.c.entry_id)
            .where(of_tenant(entries))
        )
    return (
        sa.select(candidate, *_columns(view, revisions, names), revisions.c.from_position.label("position"))
        .join(revisions, revisions.c.entry_id == candidate.c.entry_id)
        .where(of_tenant(revisions), held(view, revisions))
    )


def _named(table: sa.FromClause, names: tuple[str, ...]) -> list[sa.ColumnElement[Any]]:
    """Columns of a table by their names."""
    return [table.c[name] for name in names]


def _columns(view: View, table: sa.FromClause, names: tuple[str, ...]) -> list[sa.ColumnElement[Any]]:
    return [_column(view, table, name) for name in names]


def _column(view: View, table: sa.FromClause, name: str) -> sa.ColumnElement[Any]:
    if name == "disputed_with":
        return _other_side(view, table)
    if name == "supported":
        return sa.func.jsonb_array_length(table.c.supported_by).label(name)
    if name == "evidence":
        # As text: most candidates are not shown, and of those nobody needs it taken apart.
        return sa.cast(table.c.evidence, sa.Text).label(name)
    column: sa.ColumnElement[Any] = table.c[name]
    return column


def _other_side(view: View, table: sa.FromClause) -> sa.ColumnElement[Any]:
    """The other side of a dispute, where the asker sees its tier: that it is there is not for others to know."""
    other = revisions.alias("other")
    is_seen = sa.exists(
        sa.select(sa.literal_column("1")).where(
            visible(other), held_by_key(view, other), other.c.entry_id == table.c.disputed_with
        )
    )
    # Asked in this order: of what is in no dispute, and that is nearly all, nothing is looked up.
    is_told = sa.and_(table.c.disputed_with.is_not(None), is_seen)
    return sa.case((is_told, table.c.disputed_with), else_=None).label("disputed_with")


def materialized(query: sa.Select[Any], name: str) -> sa.CTE:
    """A part of a statement that the server works out once, by itself."""
    return query.cte(name).prefix_with("MATERIALIZED", dialect="postgresql")


def ranked_first(found: sa.Select[Any], name: str, by: str, rank: str, *, highest: bool) -> sa.CTE:
    """
    The candidates of a list: the lowest or highest `by` a column, then by id, each with its `rank`.

    Cut before they are numbered: to number all of them the server would sort all of them.
    """

    def order(columns: Any) -> tuple[Any, Any]:
        return columns[by].desc() if highest else columns[by], columns["entry_id"]

    first = found.order_by(*order(found.selected_columns)).limit(_Candidates).subquery(f"{name}_first")
    numbered = sa.func.row_number().over(order_by=order(first.c)).label(rank)
    return materialized(sa.select(first, numbered), name)
