"""What still lacks a vector: which entries those are, how many, and what was tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.database import Database, Row
from grandbo.storage.tables import embedding_attempts, embeddings, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import stands_by_key

MAX_ATTEMPTS = 8
LONGEST_PAUSE = timedelta(minutes=5)

STAMP = sa.bindparam("stamp", type_=sa.Text)
NOW = sa.bindparam("now", type_=sa.DateTime(timezone=True))
_one: sa.ColumnElement[int] = sa.literal_column("1")
_vector = sa.select(_one).where(
    of_tenant(embeddings),
    embeddings.c.stamp == STAMP,
    embeddings.c.entry_id == entries.c.entry_id,
    embeddings.c.text_digest == entries.c.text_digest,
    stands_by_key(embeddings),
)
HAS_VECTOR = sa.exists(_vector)
_attempt = sa.and_(
    of_tenant(embedding_attempts),
    embedding_attempts.c.stamp == STAMP,
    embedding_attempts.c.entry_id == entries.c.entry_id,
    embedding_attempts.c.text_digest == entries.c.text_digest,
)
_is_dead = sa.exists(sa.select(_one).where(_attempt, embedding_attempts.c.dead))
_must_wait = sa.or_(embedding_attempts.c.dead, embedding_attempts.c.next_attempt_at > NOW)


def _is_none(found: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """
    Whether there is none, looked up for each entry by itself.

    Not an EXISTS: that the server may turn into a join, and with statistics of when there was little it compares each
    entry with each vector, which takes longer than a statement may.
    """
    return found.limit(1).scalar_subquery().is_(None)


LACKS_VECTOR = _is_none(_vector)
IS_UNTRIED = _is_none(sa.select(_one).where(_attempt))
MAY_BE_TRIED = _is_none(sa.select(_one).where(_attempt, _must_wait))

# What is put away goes to no provider; released, it lacks a vector like any other.
MAY_BE_EMBEDDED = entries.c.status != "quarantined"

_COUNTS = sa.select(
    sa.func.count().label("entries"),
    sa.func.count().filter(sa.not_(HAS_VECTOR), sa.not_(_is_dead)).label("pending"),
    sa.func.count().filter(sa.not_(HAS_VECTOR), _is_dead).label("dead"),
).where(of_tenant(entries), MAY_BE_EMBEDDED)
TEXT_NOW = sa.select(entries.c.text_digest).where(
    of_tenant(entries), MAY_BE_EMBEDDED, entries.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid)
)
# Held until what is noted is there: an erasure that takes the text away finds it. One that a writer holds is skipped:
# he may wait for another of these, and each would wait for the other.
_TEXT_HELD = TEXT_NOW.with_for_update(read=True, skip_locked=True)
_attempt_row = pg.insert(embedding_attempts).values(
    {column.name: sa.bindparam(column.name) for column in embedding_attempts.c}
)
_NOTE_ATTEMPT = _attempt_row.on_conflict_do_update(
    index_elements=["tenant_id", "stamp", "entry_id"],
    set_={
        name: _attempt_row.excluded[name]
        for name in ("text_digest", "attempts", "next_attempt_at", "dead", "last_error")
    },
)
_ATTEMPTS = sa.select(embedding_attempts.c.attempts).where(
    of_tenant(embedding_attempts),
    embedding_attempts.c.stamp == STAMP,
    embedding_attempts.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid),
    embedding_attempts.c.text_digest == sa.bindparam("text_digest", type_=sa.LargeBinary),
)
# Kept, and due: a worker that has passed them by looks for them here.
_REVIVE = (
    sa.update(embedding_attempts)
    .where(of_tenant(embedding_attempts), embedding_attempts.c.stamp == STAMP)
    .values(attempts=0, dead=False, next_attempt_at=NOW)
)


@dataclass(frozen=True, slots=True)
class BacklogCounts:
    """How many entries lack a vector of a stamp: still to do, and given up."""

    pending: int
    dead: int
    entries: int

    @property
    def embedded(self) -> int:
        """How many have one; read back from the rows, not counted while writing them."""
        return self.entries - self.pending - self.dead

    def after(self, done: int) -> BacklogCounts:
        """As it is once so many more have their vectors."""
        return replace(self, pending=max(self.pending - done, 0))


class RunningCounts:
    """
    Counts that go along with the work: reckoned, and counted anew where that costs little beside the work.

    To count is to look the whole memory over. Once for each batch that takes longer than the batch.
    """

    SHARE = 20

    def __init__(self, count: Callable[[], BacklogCounts], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._clock = clock
        self.counts = self.counted()

    def counted(self) -> BacklogCounts:
        """Count."""
        began = self._clock()
        self.counts = self._count()
        ended = self._clock()
        self._again_at = ended + self.SHARE * (ended - began)
        return self.counts

    def after(self, done: int) -> BacklogCounts:
        """As it is after a batch of so many; never nothing pending without having been counted."""
        self.counts = self.counts.after(done)
        return self.counts if self.counts.pending and self._clock() < self._again_at else self.counted()


def count_backlog(database: Database, tenant_id: UUID, stamp: str) -> BacklogCounts:
    """Count what lacks a vector of the stamp."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        row = transaction.execute(_COUNTS, {"tenant_id": tenant_id, "stamp": stamp})[0]
    return BacklogCounts(pending=row["pending"], dead=row["dead"], entries=row["entries"])


def note_attempts(
    database: Database, tenant_id: UUID, stamp: str, failed: Sequence[tuple[Row, str]], now: datetime
) -> None:
    """
    Count one more failed attempt for each entry; give it a pause that grows, and an end after MAX_ATTEMPTS.

    Of a text that was replaced meanwhile, or is being replaced, nothing is noted: what stands then is tried again.
    """
    with database.transaction("writer", tenant_id) as transaction:
        for row, code in failed:
            key: dict[str, Any] = {
                "tenant_id": tenant_id,
                "stamp": stamp,
                "entry_id": row["entry_id"],
                "text_digest": row["text_digest"],
            }
            held = transaction.execute(_TEXT_HELD, key)
            if not any(now_row["text_digest"] == row["text_digest"] for now_row in held):
                continue
            before = transaction.execute(_ATTEMPTS, key)
            attempts = (before[0]["attempts"] if before else 0) + 1
            pause = min(timedelta(seconds=2**attempts), LONGEST_PAUSE)
            change = {
                "attempts": attempts,
                "next_attempt_at": now + pause,
                "dead": attempts >= MAX_ATTEMPTS,
                "last_error": code,
            }
            transaction.execute(_NOTE_ATTEMPT, {**key, **change})


def revive(database: Database, tenant_id: UUID, stamp: str, now: datetime) -> None:
    """Count no failed attempt any more, so that dead entries are tried again, now."""
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_REVIVE, {"tenant_id": tenant_id, "stamp": stamp, "now": now})
