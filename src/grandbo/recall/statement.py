"""
The one statement of recall: scope, two gated rankings, and the rows behind them, in one snapshot, for either view.

Lexical: BM25 over the postings. Rarity is counted within the scope, in thousandths, so that the sum of a score is a
sum of integers and comes out the same in whatever order the server adds it.
Semantic: exact cosine distance over all vectors of the stamp in scope; an entry counts with its nearest window. Among
those that this lists, the vector of the title alone counts where it is nearer.

Where the scope is large, a scan is given. Then the distance is that of the vectors that are nearest by signature, and
the scope is asked of the best by words alone. What is counted elsewhere comes in as parameters: `eligible`, `embedded`,
`standing`, `depth`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from grandbo.recall.scan import Scan
from grandbo.recall.scope import Shape
from grandbo.recall.view import (
    ONE_BY_ONE,
    View,
    entries_in_scope,
    held,
    held_by_key,
    materialized,
    ranked_first,
    rows_behind,
    standing_then,
    vectors_in_scope,
    vectors_of,
)
from grandbo.recall.words import no_words, words_list, words_list_of_large
from grandbo.storage.tables import embeddings, entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import Vector, apart, signature_of

# How far beyond the cutoff still counts as a near miss, in cosine distance.
NEAR_MARGIN = 0.05
CORE_TAG = "core"

_ROW_COLUMNS = (
    "revision",
    "kind",
    "title",
    "summary",
    "service",
    "status",
    "disputed",
    "disputed_with",
    "confidence_bp",
    "author_type",
    "occurred_at",
    "verified_at",
    "expires_at",
    "evidence",
    "external_id",
    "visibility",
    "namespace",
    "owner",
    "applicability",
    "supported",
    "claim_digest",
)

# Among so many times as many vectors as survive the survivors are found first: who is farther is not sorted.
_FIRST_AMONG = 5

_Double: sa.Double[float] = sa.Double()
_Topic = sa.bindparam("vector", type_=Vector())
_Stamp = sa.bindparam("stamp", type_=sa.Text)


@lru_cache(maxsize=64)
def recall_query(
    shape: Shape, view: View, *, lexical: bool, semantic: bool, scan: Scan | None = None
) -> sa.Select[Any]:
    """
    The statement for one shape of scope, one view, the signals that run, and for a large scope how it is scanned.

    Gives one row without an `entry_id`, of the counts (`eligible`, `inapplicable`, `embedded`, `near_misses`,
    `nearest_beyond`) and the topic's terms `rarest_first`; and one of each candidate with its rank in either list, the
    score and terms of words, and the distance.
    """
    standing = None
    if scan is None:
        eligible, size = _eligible(view, shape)
    else:
        standing = materialized(standing_then(shape), "standing") if view is View.AS_OF else None
        eligible, size = _counted(shape, standing)
    semantic_list, near = _semantic_list(shape, view, eligible, scan) if semantic else _no_semantic_list()
    floor = _lexical_floor(size, semantic_list, near)
    if not lexical:
        lexical_list, rarities = no_words()
    elif scan is None:
        lexical_list, rarities = words_list(view, eligible, size, floor)
    else:
        lexical_list, rarities = words_list_of_large(shape, view, eligible, standing, floor, scan)

    both = lexical_list.outerjoin(semantic_list, lexical_list.c.entry_id == semantic_list.c.entry_id, full=True)
    # Materialized: the server takes an index for the rows behind the candidates only when their ids are plain columns,
    # not an expression that row-level security has to distrust.
    candidate = materialized(
        sa.select(
            sa.func.coalesce(lexical_list.c.entry_id, semantic_list.c.entry_id).label("entry_id"),
            lexical_list.c.lexical_rank,
            lexical_list.c.score.label("lexical_score"),
            lexical_list.c.matched_terms,
            semantic_list.c.semantic_rank,
            semantic_list.c.distance,
        ).select_from(both),
        "candidate",
    )
    found = rows_behind(view, candidate, _ROW_COLUMNS).cte("found")
    once = size.join(near, sa.true()).join(rarities, sa.true())
    counts = (size.c.eligible, size.c.inapplicable)
    # A row of its own: beside each candidate the counts would be sent, and read, fifty times.
    return sa.select(*counts, near, rarities, found).select_from(once.outerjoin(found, sa.false(), full=True))


@lru_cache(maxsize=64)
def floor_query(shape: Shape, view: View) -> sa.Select[Any]:
    """
    The core references in scope, the last verified first: what a tenant may have given where nothing matched.

    A reference is core by its tag `core`. Columns are those of a candidate that is in neither list.
    """
    eligible, _ = _eligible(view, shape)
    state = entries if view is View.LIVE else revisions
    core = (
        sa.select(
            state.c.entry_id,
            sa.cast(sa.null(), sa.BigInteger).label("lexical_rank"),
            sa.cast(sa.null(), sa.BigInteger).label("semantic_rank"),
        )
        .join(eligible, eligible.c.entry_id == state.c.entry_id)
        .where(of_tenant(state), state.c.kind == "reference", sa.literal(CORE_TAG, sa.Text) == sa.any_(state.c.tags))
        .order_by(state.c.verified_at.desc().nulls_last(), state.c.entry_id)
        .limit(sa.bindparam("floor", type_=sa.Integer))
    )
    if view is View.AS_OF:
        core = core.where(held(view, state))
    return rows_behind(view, materialized(core, "core"), _ROW_COLUMNS)


def _eligible(view: View, shape: Shape) -> tuple[sa.CTE, sa.CTE]:
    """The entries that may be ranked, and how many they are; with the asker's systems, how many do not apply."""
    if not shape.by_context:
        eligible = materialized(entries_in_scope(view, shape), "eligible")
        none: sa.ColumnElement[int] = sa.literal(0, sa.BigInteger)
        size = sa.select(sa.func.count().label("eligible"), none.label("inapplicable")).select_from(eligible)
        return eligible, size.cte("size")
    scoped = materialized(entries_in_scope(view, shape), "scoped")
    eligible = materialized(sa.select(scoped.c.entry_id).where(scoped.c.applies), "eligible")
    size = sa.select(
        sa.func.count().filter(scoped.c.applies).label("eligible"),
        sa.func.count().filter(sa.not_(scoped.c.applies)).label("inapplicable"),
    )
    return eligible, size.select_from(scoped).cte("size")


def _counted(shape: Shape, standing: sa.CTE | None) -> tuple[sa.CTE, sa.CTE]:
    """The same where the scope was counted before: live, nothing asks for the ids, so they are not read."""
    found = entries_in_scope(View.LIVE, shape)
    if standing is not None:
        found = sa.select(standing.c.entry_id).where(standing.c.in_scope)
    none: sa.ColumnElement[int] = sa.literal(0, sa.BigInteger)
    counted = sa.bindparam("eligible", type_=sa.BigInteger)
    return materialized(found, "eligible"), sa.select(counted.label("eligible"), none.label("inapplicable")).cte("size")


def _lexical_floor(size: sa.CTE, semantic_list: sa.CTE, near: sa.CTE) -> sa.ColumnElement[int]:
    """
    Least share of the topic's weight that an entry must have, in basis points.

    Higher where meaning was asked of every entry in scope and found nothing: words alone must then carry the whole
    claim that the topic is known here, and a topic from another world shares some words with any large memory.
    """
    found = sa.exists(sa.select(sa.literal_column("1")).select_from(semantic_list))
    all_measured = sa.select(near.c.embedded == size.c.eligible).select_from(near.join(size, sa.true()))
    return sa.case(
        (sa.and_(all_measured.scalar_subquery(), sa.not_(found)), sa.bindparam("alone_floor_bp", type_=sa.Integer)),
        else_=sa.bindparam("floor_bp", type_=sa.Integer),
    )


def _semantic_list(shape: Shape, view: View, eligible: sa.CTE, scan: Scan | None) -> tuple[sa.CTE, sa.CTE]:
    cutoff = sa.bindparam("cutoff", type_=_Double)
    if scan is None:
        vectors = vectors_of(view)
        found = sa.select(vectors.c.entry_id, vectors.c.window_no, _to_topic(vectors).label("distance")).where(
            vectors_in_scope(vectors, view, shape, eligible), vectors.c.stamp == _Stamp
        )
    else:
        found = _each_measured(view, _survivors(shape, view, eligible, scan))
    # Materialized before it is grouped: otherwise the server sorts whole rows, vectors and all, on disk.
    measured = materialized(found, "measured")
    # Only what is near is grouped: of a large memory that is a small part, and grouping costs as much as measuring.
    nearest = materialized(
        sa.select(measured.c.entry_id, sa.func.min(measured.c.distance).label("distance"))
        .where(measured.c.distance < cutoff + NEAR_MARGIN)
        .group_by(measured.c.entry_id),
        "nearest",
    )
    best = sa.select(nearest).where(nearest.c.distance < cutoff)
    ranked = _with_titles(view, ranked_first(best, "nearest_texts", "distance", "text_rank", highest=False))
    if scan is None:
        # Every entry with vectors has a first window.
        first = sa.select(sa.func.count()).select_from(measured).where(measured.c.window_no == 0)
        return ranked, _near(measured, nearest, cutoff, first.scalar_subquery())
    return ranked, _near(measured, nearest, cutoff, sa.bindparam("embedded", type_=sa.BigInteger))


def _with_titles(view: View, texts: sa.CTE) -> sa.CTE:
    """The same entries, each with the distance of its title alone where that is nearer, in the order of that."""
    title = sa.select(_to_topic(embeddings)).where(
        of_tenant(embeddings),
        held_by_key(view, embeddings),
        embeddings.c.stamp == sa.bindparam("titles", type_=sa.Text),
        embeddings.c.entry_id == texts.c.entry_id,
        embeddings.c.window_no == 0,
    )
    # least: of an entry whose title has no vector, what there is.
    nearer = sa.func.least(texts.c.distance, title.correlate(texts).scalar_subquery(), type_=_Double).label("distance")
    found = materialized(sa.select(texts.c.entry_id, nearer), "with_titles")
    rank = sa.func.row_number().over(order_by=(found.c.distance, found.c.entry_id)).label("semantic_rank")
    return materialized(sa.select(found, rank), "semantic_list")


def _survivors(shape: Shape, view: View, eligible: sa.CTE, scan: Scan) -> sa.CTE:
    """The vectors in scope whose signatures are nearest to the topic's."""
    # A sub-select, so that the topic's signature is made once.
    vectors = vectors_of(view)
    bits = apart(vectors.c.signature, sa.select(signature_of(_Topic)).scalar_subquery())
    in_scope = sa.and_(vectors_in_scope(vectors, view, shape, eligible), vectors.c.stamp == _Stamp)
    survivors: sa.ColumnElement[int] = sa.literal_column(str(scan.survivors))
    found = sa.select(vectors.c.entry_id, vectors.c.window_no).where(in_scope)
    if view is View.LIVE:
        # As many are as near as the last of the nearest among some, whichever these are: nothing is lost.
        among: sa.ColumnElement[int] = sa.literal_column(str(scan.survivors * _FIRST_AMONG))
        some = sa.select(bits.label("apart")).where(in_scope).limit(among).subquery("some")
        last = sa.select(some.c.apart).order_by(some.c.apart).offset(survivors - 1).limit(1).scalar_subquery()
        found = found.where(bits <= sa.func.coalesce(last, sa.literal_column("'Infinity'::float8")))
    return materialized(
        # Printed: the server then knows that they are few.
        found.order_by(bits, vectors.c.entry_id, vectors.c.window_no).limit(survivors),
        "survivor",
    )


def _to_topic(vectors: sa.FromClause) -> sa.ColumnElement[float]:
    """How far each vector is from the topic's."""
    return vectors.c.vector.op("<=>", return_type=_Double)(_Topic)


def _each_measured(view: View, survivor: sa.CTE) -> sa.Select[Any]:
    """The survivors, each looked up by its key and measured."""
    one = (
        sa.select(_to_topic(embeddings).label("distance"))
        .where(
            of_tenant(embeddings),
            held_by_key(view, embeddings),
            embeddings.c.stamp == _Stamp,
            embeddings.c.entry_id == survivor.c.entry_id,
            embeddings.c.window_no == survivor.c.window_no,
        )
        .offset(ONE_BY_ONE)
        .lateral("one")
    )
    return sa.select(survivor.c.entry_id, survivor.c.window_no, one.c.distance).join(one, sa.true())


def _near(
    measured: sa.CTE, nearest: sa.CTE, cutoff: sa.BindParameter[float], embedded: sa.ColumnElement[int]
) -> sa.CTE:
    """How many entries have a vector, how many lie just beyond the cutoff, and how far the nearest beyond it is."""
    is_nearer = sa.exists(sa.select(sa.literal_column("1")).where(nearest.c.entry_id == measured.c.entry_id))
    # Reckoned only where nothing lies just beyond: coalesce does not ask for what it does not need.
    farther = sa.select(sa.func.min(measured.c.distance)).where(
        measured.c.distance >= cutoff + NEAR_MARGIN, sa.not_(is_nearer.correlate(measured))
    )
    is_beyond = nearest.c.distance >= cutoff
    return sa.select(
        embedded.label("embedded"),
        sa.func.count().filter(is_beyond).label("near_misses"),
        sa.func.coalesce(sa.func.min(nearest.c.distance).filter(is_beyond), farther.scalar_subquery()).label(
            "nearest_beyond"
        ),
    ).cte("near")


def _no_semantic_list() -> tuple[sa.CTE, sa.CTE]:
    ranked = (
        sa.select(
            sa.cast(sa.null(), sa.Uuid).label("entry_id"),
            sa.cast(sa.null(), sa.BigInteger).label("semantic_rank"),
            sa.cast(sa.null(), _Double).label("distance"),
        )
        .where(sa.false())
        .cte("semantic_list")
    )
    near = sa.select(
        sa.cast(sa.null(), sa.BigInteger).label("embedded"),
        sa.literal(0, sa.BigInteger).label("near_misses"),
        sa.cast(sa.null(), _Double).label("nearest_beyond"),
    ).cte("near")
    return ranked, near
