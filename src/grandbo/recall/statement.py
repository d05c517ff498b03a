"""
The one statement of recall: scope, two gated rankings, and the rows behind them, in one snapshot.

Lexical: BM25 over the postings. Rarity is counted within the scope, in thousandths, so that the sum of a score is a
sum of integers and comes out the same in whatever order the server adds it.
Semantic: exact cosine distance over all vectors of the stamp in scope; an entry counts with its nearest window.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.recall.scope import Shape, in_scope, visible
from grandbo.storage.tables import Vector, embeddings, entries, terms
from grandbo.storage.tenancy import of_tenant

# How far beyond the cutoff still counts as a near miss, in cosine distance.
NEAR_MARGIN = 0.05

_ROW_COLUMNS = (
    "revision",
    "position",
    "kind",
    "title",
    "summary",
    "service",
    "status",
    "disputed",
    "confidence_bp",
    "author_type",
    "occurred_at",
    "verified_at",
    "expires_at",
    "evidence",
    "external_id",
    "visibility",
)

_Candidates = sa.bindparam("candidates", type_=sa.Integer)
_Double = sa.Double()


@lru_cache(maxsize=64)
def recall_query(shape: Shape, *, lexical: bool, semantic: bool) -> sa.Select[Any]:
    """
    The statement for one shape of scope and the signals that run.

    Gives at least one row. Each has the counts (`eligible`, `embedded`, `near_misses`, `nearest_beyond`) and, unless
    nothing matched, one candidate with its rank, terms and distance in either list.
    """
    eligible = sa.select(entries.c.entry_id).where(in_scope(entries, shape)).cte("eligible")
    size = sa.select(sa.func.count().label("eligible")).select_from(eligible).cte("size")
    lexical_list = _lexical_list(eligible, size) if lexical else _no_lexical_list()
    semantic_list, near = _semantic_list(shape) if semantic else _no_semantic_list()

    both = lexical_list.outerjoin(
        semantic_list, lexical_list.c.entry_id == semantic_list.c.entry_id, full=True
    )
    candidate = (
        sa.select(
            sa.func.coalesce(lexical_list.c.entry_id, semantic_list.c.entry_id).label("entry_id"),
            lexical_list.c.lexical_rank,
            lexical_list.c.matched_terms,
            semantic_list.c.semantic_rank,
            semantic_list.c.distance,
        )
        .select_from(both)
        .cte("candidate")
    )
    found = (
        sa.select(candidate, *(entries.c[name] for name in _ROW_COLUMNS))
        .join(entries, entries.c.entry_id == candidate.c.entry_id)
        .where(of_tenant(entries))
        .cte("found")
    )
    return sa.select(size.c.eligible, near, found).select_from(
        size.join(near, sa.true()).outerjoin(found, sa.true())
    )


def _lexical_list(eligible: sa.CTE, size: sa.CTE) -> sa.CTE:
    asked = sa.bindparam("terms", type_=pg.ARRAY(sa.Text))
    posting = (
        sa.select(terms.c.term, terms.c.entry_id, terms.c.weight)
        .join(eligible, eligible.c.entry_id == terms.c.entry_id)
        .where(visible(terms), terms.c.to_position.is_(None), terms.c.term == sa.any_(asked))
        .cte("posting")
    )
    frequency = sa.select(posting.c.term, sa.func.count().label("n")).group_by(posting.c.term).cte("frequency")
    topic = sa.func.unnest(asked).table_valued(sa.column("term", sa.Text), name="topic").render_derived()
    n = sa.func.coalesce(frequency.c.n, 0)
    whole = sa.select(size.c.eligible).scalar_subquery()
    ratio = (whole - n + sa.literal_column("0.5::float8")) / (n + sa.literal_column("0.5::float8"))
    # greatest: a term that stands in nearly every entry says next to nothing, but never counts against one.
    rarity_value = sa.cast(sa.func.greatest(1, sa.func.round(1000 * sa.func.ln(1 + ratio))), sa.BigInteger)
    rarity = (
        sa.select(topic.c.term, rarity_value.label("rarity"))
        .select_from(topic.outerjoin(frequency, frequency.c.term == topic.c.term))
        .cte("rarity")
    )
    mass = sa.select(sa.func.coalesce(sa.func.sum(rarity.c.rarity), 0)).scalar_subquery()
    score = sa.func.sum(rarity.c.rarity * posting.c.weight)
    scored = (
        sa.select(
            posting.c.entry_id,
            score.label("score"),
            pg.array_agg(pg.aggregate_order_by(posting.c.term, sa.desc(rarity.c.rarity), posting.c.term)).label(
                "matched_terms"
            ),
        )
        .join(rarity, rarity.c.term == posting.c.term)
        .group_by(posting.c.entry_id)
        # The gate: what shares only a sliver of the topic's weight is noise, and a rank cannot tell noise from sense.
        .having(sa.func.sum(rarity.c.rarity) * 10_000 >= mass * sa.bindparam("floor_bp", type_=sa.Integer))
        .cte("scored")
    )
    rank = sa.func.row_number().over(order_by=(scored.c.score.desc(), scored.c.entry_id))
    return (
        sa.select(scored.c.entry_id, rank.label("lexical_rank"), scored.c.matched_terms)
        .order_by(scored.c.score.desc(), scored.c.entry_id)
        .limit(_Candidates)
        .cte("lexical_list")
    )


def _semantic_list(shape: Shape) -> tuple[sa.CTE, sa.CTE]:
    cutoff = sa.bindparam("cutoff", type_=_Double)
    distance = embeddings.c.vector.op("<=>", return_type=_Double)(sa.bindparam("vector", type_=Vector()))
    nearest = (
        sa.select(embeddings.c.entry_id, sa.func.min(distance).label("distance"))
        .where(
            in_scope(embeddings, shape),
            embeddings.c.stamp == sa.bindparam("stamp", type_=sa.Text),
            embeddings.c.to_position.is_(None),
        )
        .group_by(embeddings.c.entry_id)
        .cte("nearest")
    )
    rank = sa.func.row_number().over(order_by=(nearest.c.distance, nearest.c.entry_id))
    ranked = (
        sa.select(nearest.c.entry_id, rank.label("semantic_rank"), nearest.c.distance)
        .where(nearest.c.distance < cutoff)
        .order_by(nearest.c.distance, nearest.c.entry_id)
        .limit(_Candidates)
        .cte("semantic_list")
    )
    near = sa.select(
        sa.func.count().label("embedded"),
        sa.func.count()
        .filter(nearest.c.distance >= cutoff, nearest.c.distance < cutoff + NEAR_MARGIN)
        .label("near_misses"),
        sa.func.min(nearest.c.distance).filter(nearest.c.distance >= cutoff).label("nearest_beyond"),
    ).cte("near")
    return ranked, near


def _no_lexical_list() -> sa.CTE:
    return (
        sa.select(
            sa.cast(sa.null(), sa.Uuid).label("entry_id"),
            sa.cast(sa.null(), sa.BigInteger).label("lexical_rank"),
            sa.cast(sa.null(), pg.ARRAY(sa.Text)).label("matched_terms"),
        )
        .where(sa.false())
        .cte("lexical_list")
    )


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
