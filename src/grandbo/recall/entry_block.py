"""One entry as a context block: the same layout as an answer's, from the plain values that `show_entry` gives."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from grandbo.recall.answer import Answer, Match, Searched
from grandbo.recall.block import ContextBlock, render_block
from grandbo.recall.budget import MAX_BUDGET
from grandbo.types import from_utc_text

_SEARCHED = Searched((), None, None, None, 1, None, 0, None, None)


def entry_block(found: dict[str, Any], *, budget: int = MAX_BUDGET) -> ContextBlock:
    """
    The block of one state of an entry.

    Args:
        found: `entry_id`, `revision`, `position` and the state, as plain values.
    """
    match = _match(found)
    answer = Answer((match,), _SEARCHED, match.position, match.expires_at, match.entry_id)
    texts = {(match.entry_id, match.revision): (found["title"], found["summary"], found["body"])}
    return render_block(answer, texts, (), budget=budget)


def _match(found: dict[str, Any]) -> Match:
    same = ("kind", "title", "summary", "service", "status", "disputed", "confidence_bp", "author_type", "external_id")
    return Match(
        entry_id=UUID(found["entry_id"]),
        revision=found["revision"],
        position=found["position"],
        disputed_with=UUID(found["disputed_with"]) if found["disputed_with"] else None,
        occurred_at=_time(found["occurred_at"]),
        verified_at=_time(found["verified_at"]),
        expires_at=from_utc_text(found["expires_at"]),
        evidence=tuple(found["evidence"]),
        visibility=found["visibility"],
        namespace=found["namespace"],
        owner=found["owner"],
        applies_to=tuple(found["applicability"]),
        score=0.0,
        lexical=None,
        semantic=None,
        **{name: found[name] for name in same},
    )


def _time(text: str | None) -> datetime | None:
    return from_utc_text(text) if text else None
