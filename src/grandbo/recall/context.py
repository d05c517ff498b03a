"""The context block of an answer: the stored text behind each match, read under the caller's tiers, and rendered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.tenants import HEAD_AND_POLICY, standing_of
from grandbo.recall.answer import Answer, Match
from grandbo.recall.block import ContextBlock, Texts, render_block
from grandbo.recall.query import refuse_behind
from grandbo.recall.scope import visible
from grandbo.recall.view import ONE_BY_ONE
from grandbo.storage.database import Database, Row
from grandbo.storage.readers import Readers
from grandbo.storage.tables import revisions
from grandbo.storage.vectors import stands_by_key
from grandbo.types import Principal

_now = revisions.alias("now")
_cited = (
    sa.func.unnest(
        sa.bindparam("entry_ids", type_=pg.ARRAY(sa.Uuid)), sa.bindparam("numbers", type_=pg.ARRAY(sa.Integer))
    )
    .table_valued(sa.column("entry_id", sa.Uuid), sa.column("revision", sa.Integer), name="cited")
    .render_derived()
)
# Each is looked up by its key: else the server may read the tenant's whole present for them, hidden entries too.
_cited_state = (
    sa.select(revisions.c.entry_id, revisions.c.revision, revisions.c.title, revisions.c.summary, revisions.c.body)
    .where(visible(revisions), revisions.c.entry_id == _cited.c.entry_id, revisions.c.revision == _cited.c.revision)
    .offset(ONE_BY_ONE)
    .lateral("state")
)
# A revision is shown while its entry stands in the caller's tiers, as it did itself.
_stands = (
    sa.select(sa.literal_column("1").label("stands"))
    .where(visible(_now), stands_by_key(_now), _now.c.entry_id == _cited.c.entry_id)
    .offset(ONE_BY_ONE)
    .lateral("stands")
)
_TEXTS: sa.Select[Any] = sa.select(_cited_state).select_from(
    _cited.join(_cited_state, sa.true()).join(_stands, sa.true())
)


def context_block(
    readers: Readers, tenant_id: UUID, principal: Principal, answer: Answer, terms: Sequence[str], *, budget: int
) -> ContextBlock:
    """The block of an answer, within so many tokens; what the principal may not see by now is passed over."""
    require(principal, "recall")
    texts = readers.read(
        tenant_id,
        answer.position,
        lambda database, not_below: _texts(database, tenant_id, principal, answer, not_below),
    )
    return render_block(answer, texts, terms, budget=budget)


def _texts(database: Database, tenant_id: UUID, principal: Principal, answer: Answer, not_below: int | None) -> Texts:
    given = answer.matches or answer.floor
    if not given:
        return {}
    statuses = tuple(dict.fromkeys(match.status for match in given))
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        found = transaction.execute(HEAD_AND_POLICY, {"tenant_id": tenant_id})
        refuse_behind(found, not_below)
        tiers = visible_tiers(standing_of(found)[1], principal)
        transaction.read_as(tiers, statuses, answer.instant)
        params = {"tenant_id": tenant_id, "tiers": list(tiers), **_ids(given)}
        rows: list[Row] = transaction.batch([(_TEXTS, params)], commit=True)[0]
    return {(row["entry_id"], row["revision"]): (row["title"], row["summary"], row["body"]) for row in rows}


def _ids(matches: Sequence[Match]) -> dict[str, list[Any]]:
    return {
        "entry_ids": [match.entry_id for match in matches],
        "numbers": [match.revision for match in matches],
    }
