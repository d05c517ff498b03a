"""
What the events since a position have changed in the counts of a scope: it need not be counted anew after each.

An event changes rows of its own stream alone; so of each stream that went on the entry is looked at, as it stood at the
position and as it stands. Erasures take out the rows of any stream, also those of then: after one it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.erasures import EntryRedacted
from grandbo.projections.erasures import REACHING
from grandbo.recall.scope import Shape, in_scope, visible
from grandbo.recall.view import ONE_BY_ONE, held_at
from grandbo.storage.database import Transaction
from grandbo.storage.tables import embeddings, entries, events, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import stands_by_key

# To look at so many entries takes about as long as to count some ten thousand.
MOST_EVENTS = 500
ERASING = tuple(model.EVENT_TYPE for model in (*REACHING, EntryRedacted))

_SINCE = sa.bindparam("since", type_=sa.BigInteger)
_INSTANT = sa.bindparam("instant", type_=sa.DateTime(timezone=True))


@dataclass(frozen=True, slots=True)
class Change:
    """
    By how many the counts of a scope have grown.

    Attributes:
        eligible, embedded, standing: as in `Counts`; less than 0 where there are fewer.
        until: when the time of one of the changed entries comes or ends; None where none does.
    """

    eligible: int
    embedded: int
    standing: int
    until: datetime | None


def change_since(transaction: Transaction, shape: Shape, params: dict[str, Any], position: int) -> Change | None:
    """
    What has changed since the position, reckoned at one instant, in the transaction's snapshot.

    Args:
        params: those of the scope, and `stamp`.

    Gives None where it is not known: something was erased.
    """
    asked = {**params, "since": position, "erasing": list(ERASING)}
    row = transaction.execute(_change_query(shape), asked)[0]
    if row["erased"]:
        return None
    return Change(row["eligible"], row["embedded"], row["standing"], row["until"])


def upcoming(table: sa.FromClause) -> sa.ColumnElement[Any]:
    """The next time at which one of these rows comes into scope or leaves it without an event."""
    return sa.func.least(
        sa.func.min(table.c.expires_at).filter(table.c.expires_at > _INSTANT),
        sa.func.min(table.c.valid_from).filter(table.c.valid_from > _INSTANT),
    )


@lru_cache(maxsize=64)
def _change_query(shape: Shape) -> sa.Select[Any]:
    # Printed, and bound on both sides: whatever the position, the server then takes them for few.
    few: sa.ColumnElement[int] = sa.literal_column(str(MOST_EVENTS))
    went_on = sa.and_(of_tenant(events), events.c.position > _SINCE, events.c.position <= _SINCE + few)
    changed = sa.select(events.c.stream_id.label("entry_id")).where(went_on).distinct().limit(few).cte("changed")
    erasing = sa.bindparam("erasing", type_=pg.ARRAY(sa.Text))
    erased = sa.exists(sa.select(sa.literal_column("1")).where(went_on, events.c.event_type == sa.any_(erasing)))
    now = _state(entries, stands_by_key(embeddings), sa.true(), shape, changed, "now")
    then = _state(revisions, held_at(embeddings, "since"), held_at(revisions, "since"), shape, changed, "then")

    def grown(is_so: str) -> sa.ColumnElement[int]:
        return sa.func.count().filter(now.c[is_so]) - sa.func.count().filter(then.c[is_so])

    return sa.select(
        sa.select(erased).scalar_subquery().label("erased"),
        grown("in_scope").label("eligible"),
        grown("embedded").label("embedded"),
        grown("stands").label("standing"),
        upcoming(now).label("until"),
    ).select_from(changed.outerjoin(now, sa.true()).outerjoin(then, sa.true()))


def _state(
    state: sa.FromClause,
    vector_held: sa.ColumnElement[bool],
    held: sa.ColumnElement[bool],
    shape: Shape,
    changed: sa.CTE,
    name: str,
) -> sa.FromClause:
    """An entry in the asker's tiers: whether it is in scope, and whether with a vector; nothing where there is none."""
    is_in_scope = in_scope(state, shape)
    has_vector = sa.exists(
        sa.select(sa.literal_column("1")).where(
            of_tenant(embeddings),
            vector_held,
            embeddings.c.stamp == sa.bindparam("stamp", type_=sa.Text),
            embeddings.c.entry_id == state.c.entry_id,
            embeddings.c.window_no == 0,
        )
    )
    return (
        sa.select(
            sa.true().label("stands"),
            is_in_scope.label("in_scope"),
            sa.and_(is_in_scope, has_vector).label("embedded"),
            state.c.valid_from,
            state.c.expires_at,
        )
        .where(visible(state), held, state.c.entry_id == changed.c.entry_id)
        .offset(ONE_BY_ONE)
        .lateral(name)
    )
