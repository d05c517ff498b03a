"""
How far an entry has held up: its author's confidence, moved by what has happened to it since. Pure, and versioned.

Computed when it is read, from the state of the moment that is asked about; what the author said is never rewritten, and
no ranking goes by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import EntryDisputeResolved
from grandbo.storage.database import Row
from grandbo.storage.tables import feedback, revisions
from grandbo.storage.tenancy import of_tenant

TRUST_VERSION = 1
# Basis points, and how many of each count at most.
CORROBORATED, MOST_INCIDENTS = 400, 3
HELPED, WRONG, MOST_VOICES = 200, -500, 5
DISPUTED = -2_500
STOOD = 300

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))


@dataclass(frozen=True, slots=True)
class Record:
    """
    What has happened to an entry.

    Attributes:
        supported: how many further incidents support it.
        resolved: how many disputes of it were resolved.
        helped, wrong: how many principals say so, each by the last verdict that is in force.
    """

    supported: int = 0
    disputed: bool = False
    resolved: int = 0
    helped: int = 0
    wrong: int = 0


def trust_of(confidence_bp: int, record: Record) -> int:
    """
    The trust in an entry, in basis points, 0 to 10,000.

    Up by each of three incidents that support it, by a dispute that it survived, and by each of five who say that it
    helped; down while it is disputed, and by each of five who say that it is wrong.
    """
    moved = (
        CORROBORATED * min(record.supported, MOST_INCIDENTS)
        + HELPED * min(record.helped, MOST_VOICES)
        + WRONG * min(record.wrong, MOST_VOICES)
    )
    if record.disputed:
        moved += DISPUTED
    elif record.resolved:
        moved += STOOD
    return max(0, min(10_000, confidence_bp + moved))


@lru_cache(maxsize=8)
def voices_query(*, is_past: bool) -> sa.Select[Any]:
    """One voice for each principal on each of `ids`: the last verdict in force, at `position` where it is the past."""
    voice = (
        sa.select(feedback.c.entry_id, feedback.c.verdict)
        .where(of_tenant(feedback), feedback.c.entry_id == _ids, _held(is_past))
        .ext(pg.distinct_on(feedback.c.entry_id, feedback.c.principal))
        .order_by(feedback.c.entry_id, feedback.c.principal, feedback.c.from_position.desc())
        .cte("voice")
    )
    return sa.select(voice.c.entry_id, voice.c.verdict, sa.func.count().label("number")).group_by(
        voice.c.entry_id, voice.c.verdict
    )


@lru_cache(maxsize=8)
def resolved_query(*, is_past: bool) -> sa.Select[Any]:
    """How many disputes of each of `ids` were resolved, by `position` where it is the past."""
    found = sa.select(revisions.c.entry_id, sa.func.count().label("number")).where(
        of_tenant(revisions),
        revisions.c.entry_id == _ids,
        revisions.c.event_type == EntryDisputeResolved.EVENT_TYPE,
    )
    if is_past:
        found = found.where(revisions.c.from_position <= sa.bindparam("position", type_=sa.BigInteger))
    return found.group_by(revisions.c.entry_id)


def records_of(
    voices: Iterable[Row], resolved: Iterable[Row], states: Iterable[Mapping[str, Any]]
) -> dict[UUID, Record]:
    """The record of each state, from the rows of the two queries."""
    said = {(row["entry_id"], row["verdict"]): row["number"] for row in voices}
    stood = {row["entry_id"]: row["number"] for row in resolved}
    return {
        state["entry_id"]: Record(
            supported=len(state["supported_by"]),
            disputed=state["disputed"],
            resolved=stood.get(state["entry_id"], 0),
            helped=said.get((state["entry_id"], "helped"), 0),
            wrong=said.get((state["entry_id"], "wrong"), 0),
        )
        for state in states
    }


def _held(is_past: bool) -> sa.ColumnElement[bool]:
    until = feedback.c.to_position
    if not is_past:
        return until.is_(None)
    position = sa.bindparam("position", type_=sa.BigInteger)
    return sa.and_(feedback.c.from_position <= position, sa.or_(until.is_(None), until > position))
