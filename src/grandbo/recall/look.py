"""A look through both whole lists of a topic, gates open: where an entry stands that no answer showed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.tenants import HEAD_AND_POLICY, standing_of
from grandbo.recall.meaning import Meaning
from grandbo.recall.query import AS_OF_TIMEOUT_MS, Setting, in_force, parameters, scope_of, signals_of
from grandbo.recall.question import Question
from grandbo.recall.scan import EXACT
from grandbo.recall.scope import Scope
from grandbo.recall.statement import recall_query
from grandbo.recall.view import View
from grandbo.storage.database import Database, Row
from grandbo.types import Clock, Principal, utc_now

_FARTHEST = 2.5


@dataclass(frozen=True, slots=True)
class Standing:
    """
    Where an entry stands in each list if nothing is gated; None where it shares no term, or has no vector.

    `listed`: whether a list holds it with the gates in force, so that only its rank decides.
    """

    lexical_rank: int | None
    semantic_rank: int | None
    distance: float | None
    listed: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Every entry in scope that is in either list, and the gates that an answer would have had."""

    standings: dict[UUID, Standing]
    cutoff: float | None
    candidates: int


def look_through(
    database: Database,
    meaning: Meaning,
    tenant_id: UUID,
    principal: Principal,
    question: Question,
    *,
    depth: int,
    clock: Clock = utc_now,
) -> Look:
    """
    Rank the first `depth` of either list with the statement of recall, its gates open, within the caller's own scope.

    The mode of the question says which gated lists `listed` speaks of. For who tunes the gates: needs the act recall,
    and shows no text. No receipt, because nobody is told anything.
    """
    require(principal, "recall")
    vector = meaning.of(question.topic.text)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        head, policy = standing_of(transaction.execute(HEAD_AND_POLICY, {"tenant_id": tenant_id}))
        scope = scope_of(question, tenant_id, visible_tiers(policy, principal), max(clock(), head.recorded_at))
        # Titles order what the gates let through, and are no part of them.
        gated = replace(in_force(vector, policy), titles=None)
        shown = signals_of(question.mode, gated)
        transaction.read_as(scope.tiers, scope.read_statuses, scope.instant)
        # Whole lists take longer than an answer may.
        transaction.limit(AS_OF_TIMEOUT_MS)
        setting = Setting(View.LIVE, head.position, scope, policy, head.position, scope.tiers, EXACT)
        listed = _listed(transaction.execute(_statement(scope, shown), parameters(question, setting, gated)))
        ungated = policy.model_copy(update={"candidates": depth, "lexical_floor_bp": 0, "lexical_alone_floor_bp": 0})
        opened = replace(gated, cutoff=_FARTHEST)
        rows = transaction.execute(
            _statement(scope, signals_of("hybrid", gated)),
            parameters(question, replace(setting, policy=ungated), opened),
        )
    standings = {
        row["entry_id"]: Standing(
            row["lexical_rank"], row["semantic_rank"], row["distance"], listed=row["entry_id"] in listed
        )
        for row in rows
        if row["entry_id"] is not None
    }
    return Look(standings, gated.cutoff, policy.candidates)


def _statement(scope: Scope, signals: tuple[str, ...]) -> sa.Select[Any]:
    return recall_query(scope.shape, View.LIVE, lexical="lexical" in signals, semantic="semantic" in signals)


def _listed(rows: list[Row]) -> set[UUID]:
    return {row["entry_id"] for row in rows if row["entry_id"] is not None}
