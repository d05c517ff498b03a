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


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said of entries, and how many disputes of each were resolved, from the rows of the two queries."""

    said: Mapping[tuple[UUID, str], int]
    resolved: Mapping[UUID, int]

    @classmethod
    def of_rows(cls, voices: Iterable[Row], resolved: Iterable[Row]) -> Heard:
        """Raises `KeyError` for rows of another query."""
        return cls(
            {(row["entry_id"], row["verdict"]): row["number"] for row in voices},
            {row["entry_id"]: row["number"] for row in resolved},
        )

    def record_of(self, entry_id: UUID, *, supported: int, disputed: bool) -> Record:
        """The record of an entry: `supported` by so many further incidents, `disputed` or not."""
        return Record(
            supported=supported,
            disputed=disputed,
            resolved=self.resolved.get(entry_id, 0),
            helped=self.said.get((entry_id, "helped"), 0),
            wrong=self.said.get((entry_id, "wrong"), 0),
        )


def trust_in(row: Row, voices: Iterable[Row], resolved: Iterable[Row]) -> int:
    """The trust in the state of an entry that a row is, in basis points, from the rows of the two queries."""
    heard = Heard.of_rows(voices, resolved)
    record = heard.record_of(row["entry_id"], supported=len(row["supported_by"]), disputed=row["disputed"])
    return trust_of(row["confidence_bp"], record)


def _held(is_past: bool) -> sa.ColumnElement[bool]:
    until = feedback.c.to_position
    if not is_past:
        return until.is_(None)
    position = sa.bindparam("position", type_=sa.BigInteger)
    return sa.and_(feedback.c.from_position <= position, sa.or_(until.is_(None), until > position))
