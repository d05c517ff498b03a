"""From a row of the statement to a match of the answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from grandbo.finding_limits import FOLLOW_UP
from grandbo.fusion import Fused
from grandbo.memory.trust import Record, trust_of
from grandbo.recall.answer import Lexical, Match, Semantic
from grandbo.storage.database import Row


def open_follow_ups(evidence: list[dict[str, str]]) -> int:
    """How many follow-ups an entry still has open: pieces of evidence of that type."""
    return sum(item["type"] == FOLLOW_UP for item in evidence)


def match_of(
    row: Row,
    fused: Fused[int] | None,
    rarest_first: Sequence[str],
    record: Record,
    instant: datetime,
    restated: tuple[UUID, ...] = (),
) -> Match:
    """
    The match that a row of recall is, at an instant; without what the lists gave it, one that was not matched.

    Args:
        rarest_first: the terms of the topic.
    """
    evidence = json.loads(row["evidence"])
    by_words, by_meaning = (None, None) if fused is None else fused.parts
    return Match(
        entry_id=row["entry_id"],
        revision=row["revision"],
        position=row["position"],
        kind=row["kind"],
        title=row["title"],
        summary=row["summary"],
        service=row["service"],
        status=row["status"],
        disputed=row["disputed"],
        disputed_with=row["disputed_with"],
        confidence_bp=row["confidence_bp"],
        trust_bp=trust_of(row["confidence_bp"], record),
        author_type=row["author_type"],
        occurred_at=row["occurred_at"],
        verified_at=row["verified_at"],
        expires_at=row["expires_at"],
        evidence=tuple(evidence),
        open_follow_ups=open_follow_ups(evidence),
        external_id=row["external_id"],
        visibility=row["visibility"],
        namespace=row["namespace"],
        owner=row["owner"],
        applies_to=tuple(row["applicability"]),
        expired=row["expires_at"] <= instant,
        score=0.0 if fused is None else fused.score,
        lexical=None if by_words is None else Lexical(row["lexical_rank"], _matched(row, rarest_first), by_words),
        semantic=None if by_meaning is None else Semantic(row["semantic_rank"], row["distance"], by_meaning),
        restated_ids=restated,
    )


def _matched(row: Row, rarest_first: Sequence[str]) -> tuple[str, ...]:
    matched = set(row["matched_terms"])
    return tuple(term for term in rarest_first if term in matched)
