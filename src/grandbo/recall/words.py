"""
The ranking by words: BM25 over the postings, gated before it is ranked.

A score is a sum of integers, so it comes out the same in whatever order the server adds it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.projections.terms import MOST_WEIGHT
from grandbo.recall.scan import Scan
from grandbo.recall.scope import Shape, in_scope, visible
from grandbo.recall.view import ONE_BY_ONE, View, held, materialized, ranked_first
from grandbo.storage.sampling import ONE_IN, is_sampled
from grandbo.storage.tables import entries, terms

_Asked = sa.bindparam("terms", type_=pg.ARRAY(sa.Text))


def words_list(view: View, eligible: sa.CTE, size: sa.CTE, floor: sa.ColumnElement[int]) -> tuple[sa.CTE, sa.CTE]:
    """The best entries of a scope that is read whole, each with its rank and terms; and the terms, rarest first."""
    # Not a join: the server takes the postings for few, and would compare each with every entry. This it looks up.
    is_eligible = terms.c.entry_id.in_(sa.select(eligible.c.entry_id)).is_(sa.true())
    posting = materialized(
        sa.select(terms.c.term, terms.c.entry_id, terms.c.weight).where(
            visible(terms), held(view, terms), terms.c.term == sa.any_(_Asked), is_eligible
        ),
        "posting",
    )
    frequency = sa.select(posting.c.term, sa.func.count().label("n")).group_by(posting.c.term).cte("frequency")
    topic = _topic()
    whole = sa.select(size.c.eligible).scalar_subquery()
    rarity = materialized(
        sa.select(topic.c.term, _rarity(sa.func.coalesce(frequency.c.n, 0), whole).label("rarity")).select_from(
            topic.outerjoin(frequency, frequency.c.term == topic.c.term)
        ),
        "rarity",
    )
    score, shared = _sums(rarity.c.rarity, posting.c.weight)
    scored = (
        # Terms are gathered on the way: to look for those of the best again costs a tenth of a recall.
        sa.select(posting.c.entry_id, score, sa.func.array_agg(posting.c.term).label("matched_terms"))
        .join(rarity, rarity.c.term == posting.c.term)
        .group_by(posting.c.entry_id)
        .having(_passes(shared.element, rarity, floor))
        .cte("scored")
    )
    best = ranked_first(sa.select(scored), "lexical_list", "score", "lexical_rank", highest=True)
    return best, _rarest_first(rarity)


def words_list_of_large(
    shape: Shape, view: View, eligible: sa.CTE, standing: sa.CTE | None, floor: sa.ColumnElement[int], scan: Scan
) -> tuple[sa.CTE, sa.CTE]:
    """
    The same of a large scope, of which not all is read.

    Rarity is counted over all entries of the asker's tiers, in scope or not. Entries are found by the rarer terms;
    common ones, whose postings would be too many to read, count for the best of those alone. Then the gate and the
    scope are asked of them.

    Args:
        standing: as of a position, the entries that stood in the asker's tiers; live, the postings' own tier says it.
    """
    rarity = _rarity_over(view, standing, scan)
    common = sa.select(rarity).where(rarity.c.is_common).subquery("common")
    deep = _promising(_best_by_the_rare(view, standing, rarity), common, scan)
    found, tier = _in_scope(shape, view, eligible, deep)
    more = _of_the_common(view, common, deep, tier)
    whole_score = (deep.c.score + sa.func.coalesce(more.c.score, 0)).label("score")
    shared = deep.c.shared + sa.func.coalesce(more.c.shared, 0)
    carried = [] if tier is None else [tier.label("tier")]
    scored = (
        sa.select(deep.c.entry_id, whole_score, *carried)
        .select_from(found.join(more, sa.true()))
        .where(_passes(shared, rarity, floor))
        .cte("scored")
    )
    best = _best(scored)
    its_tier = None if tier is None else best.c.tier
    matched = sa.select(terms.c.term).where(_of_entry(view, best.c.entry_id, its_tier), terms.c.term == sa.any_(_Asked))
    gathered = sa.func.array(matched.correlate(best).scalar_subquery(), type_=pg.ARRAY(sa.Text))
    listed = sa.select(best.c.entry_id, best.c.lexical_rank, best.c.score, gathered.label("matched_terms"))
    return listed.cte("lexical_list"), _rarest_first(rarity)


def _best_by_the_rare(view: View, standing: sa.CTE | None, rarity: sa.CTE) -> sa.CTE:
    """Those that are best by the rarer words alone, with what these add up to."""
    rare = sa.select(rarity).where(sa.not_(rarity.c.is_common)).subquery("rare")
    one = _of_term(view, standing, rare.c.term, [terms.c.entry_id, terms.c.weight])
    posting = one.offset(ONE_BY_ONE).lateral("posting")
    partly = (
        sa.select(posting.c.entry_id, *_sums(rare.c.rarity, posting.c.weight))
        .select_from(rare.join(posting, sa.true()))
        .group_by(posting.c.entry_id)
        .cte("partly")
    )
    depth = sa.bindparam("depth", type_=sa.Integer)
    return materialized(sa.select(partly).order_by(partly.c.score.desc(), partly.c.entry_id).limit(depth), "deep")


def _promising(deep: sa.CTE, common: sa.Subquery, scan: Scan) -> sa.FromClause:
    """
    Those of the best by the rarer words whom the common ones could still lift among the best of all.

    No posting weighs more than so much: who could not reach the one at the end of the list is not looked at.
    """
    if scan.margin is None:
        return deep
    wide = sa.bindparam("candidates", type_=sa.Integer) * scan.margin
    place = wide * sa.bindparam("depth", type_=sa.Integer) // sa.literal_column(str(scan.depth))
    last = sa.select(deep.c.score).order_by(deep.c.score.desc()).offset(place - 1).limit(1).scalar_subquery()
    most = sa.select(sa.func.coalesce(sa.func.sum(common.c.rarity), 0) * MOST_WEIGHT).scalar_subquery()
    return sa.select(deep).where(deep.c.score + most >= sa.func.coalesce(last, 0)).subquery("promising")


def _of_the_common(
    view: View, common: sa.Subquery, deep: sa.FromClause, tier: sa.ColumnElement[str] | None
) -> sa.FromClause:
    """What the postings of the common terms add up to in each of those."""
    is_it = sa.and_(_of_entry(view, deep.c.entry_id, tier), terms.c.term == common.c.term)
    one = sa.select(terms.c.weight).where(is_it).correlate_except(terms)
    posting = one.offset(ONE_BY_ONE).lateral("common_posting")
    sums = sa.select(*_sums(common.c.rarity, posting.c.weight)).select_from(common.join(posting, sa.true()))
    return sums.lateral("more")


def _rarity_over(view: View, standing: sa.CTE | None, scan: Scan) -> sa.CTE:
    """Each term of the topic with its rarity, and whether it is common: the rarest few never are."""
    counted = _counted(view, standing, scan)
    whole = sa.bindparam("standing", type_=sa.BigInteger)
    rarest_first = (counted.c.n, counted.c.term)
    place = sa.func.row_number().over(order_by=rarest_first)
    read = sa.func.sum(counted.c.n).over(order_by=rarest_first, rows=(None, 0))
    most = sa.func.greatest(scan.postings, whole * scan.share_bp / 10_000)
    is_common = sa.and_(read > most, place > scan.rarest)
    found = sa.select(counted.c.term, _rarity(counted.c.n, whole).label("rarity"), is_common.label("is_common"))
    return materialized(found, "rarity")


def _counted(view: View, standing: sa.CTE | None, scan: Scan) -> sa.CTE:
    """
    Each term of the topic with how many entries have it: of a frequent one by the sample, of others counted.

    Of a position it is the same number as then: who is of the sample follows from the entry's id.
    """
    topic = _topic()
    n: sa.ColumnElement[int] = sa.func.count()
    every = _of_term(view, standing, topic.c.term, [n.label("n")])
    if scan.sampled_from is None:
        counted = every.lateral("counted")
        return materialized(sa.select(topic.c.term, counted.c.n).select_from(topic.join(counted, sa.true())), "counted")
    sample = every.where(is_sampled(terms.c.entry_id)).lateral("sample")
    is_frequent = sample.c.n >= scan.sampled_from
    frequency = sa.case((is_frequent, sample.c.n * ONE_IN), else_=every.correlate(topic).scalar_subquery())
    found = sa.select(topic.c.term, frequency.label("n")).select_from(topic.join(sample, sa.true()))
    # Materialized: what is asked of it three times is counted once.
    return materialized(found, "counted")


def _in_scope(
    shape: Shape, view: View, eligible: sa.CTE, deep: sa.FromClause
) -> tuple[sa.Join, sa.ColumnElement[str] | None]:
    """Those that are in scope. Live, each is looked up by its key, and the scope is not read; that gives its tier."""
    if view is View.AS_OF:
        return deep.join(eligible, eligible.c.entry_id == deep.c.entry_id), None
    scope = (
        sa.select(entries.c.visibility)
        .where(entries.c.entry_id == deep.c.entry_id, in_scope(entries, shape))
        .offset(ONE_BY_ONE)
        .lateral("scope")
    )
    return deep.join(scope, sa.true()), scope.c.visibility


def _of_entry(
    view: View, entry_id: sa.ColumnElement[Any], tier: sa.ColumnElement[str] | None
) -> sa.ColumnElement[bool]:
    """The postings of an entry. With its tier known they are looked for once, and not in each of the asker's."""
    of_tier = sa.true() if tier is None else terms.c.visibility == tier
    return sa.and_(visible(terms), held(view, terms), terms.c.entry_id == entry_id, of_tier)


def no_words() -> tuple[sa.CTE, sa.CTE]:
    """The list, and the terms, where words do not count."""
    nothing = (
        sa.select(
            sa.cast(sa.null(), sa.Uuid).label("entry_id"),
            sa.cast(sa.null(), sa.BigInteger).label("lexical_rank"),
            sa.cast(sa.null(), sa.BigInteger).label("score"),
            sa.cast(sa.null(), pg.ARRAY(sa.Text)).label("matched_terms"),
        )
        .where(sa.false())
        .cte("lexical_list")
    )
    return nothing, sa.select(sa.cast(sa.null(), pg.ARRAY(sa.Text)).label("rarest_first")).cte("rarities")


def _topic() -> sa.TableValuedAlias:
    return sa.func.unnest(_Asked).table_valued(sa.column("term", sa.Text), name="topic").render_derived()


def _of_term(view: View, standing: sa.CTE | None, term: sa.ColumnElement[str], columns: list[Any]) -> sa.Select[Any]:
    """The postings of one term in the asker's tiers."""
    found = sa.select(*columns).select_from(terms)
    if standing is not None:
        found = found.join(standing, standing.c.entry_id == terms.c.entry_id)
    return found.where(visible(terms), held(view, terms), terms.c.term == term)


def _rarity(n: sa.ColumnElement[int], whole: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """BM25's inverse document frequency of a term that `n` of `whole` entries have, in thousandths."""
    half: sa.ColumnElement[float] = sa.literal_column("0.5::float8")
    thousandths = sa.func.round(1000 * sa.func.ln(1 + (whole - n + half) / (n + half)))
    # greatest: a term that stands in nearly every entry says next to nothing, but never counts against one.
    # integer: a sum of them is the same in whatever order the server adds, and needs no numeric arithmetic.
    return sa.cast(sa.func.greatest(1, thousandths), sa.Integer)


def _sums(rarity: sa.ColumnElement[int], weight: sa.ColumnElement[int]) -> tuple[sa.Label[int], sa.Label[int]]:
    """What the postings of an entry add up to, and how much of the topic's weight they share."""
    return sa.func.sum(rarity * weight).label("score"), sa.func.sum(rarity).label("shared")


def _passes(shared: sa.ColumnElement[int], rarity: sa.CTE, floor: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """The gate: what shares only a sliver of the topic's weight is noise, and a rank cannot tell noise from sense."""
    mass = sa.select(sa.func.coalesce(sa.func.sum(rarity.c.rarity), 0)).scalar_subquery()
    return shared * 10_000 >= mass * sa.select(floor).scalar_subquery()


def _best(scored: sa.CTE) -> sa.CTE:
    return ranked_first(sa.select(scored), "best", "score", "lexical_rank", highest=True)


def _rarest_first(rarity: sa.CTE) -> sa.CTE:
    in_order = pg.aggregate_order_by(rarity.c.term, rarity.c.rarity.desc(), rarity.c.term)
    return sa.select(sa.func.array_agg(in_order).label("rarest_first")).cte("rarities")
