"""What still lacks a vector: the statements over entries, embeddings and attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.database import Database, Row
from grandbo.storage.tables import embedding_attempts, embeddings, entries
from grandbo.storage.tenancy import of_tenant

MAX_ATTEMPTS = 8
LONGEST_PAUSE = timedelta(minutes=5)

_STAMP = sa.bindparam("stamp", type_=sa.Text)
_has_vector = sa.exists(
    sa.select(sa.literal_column("1")).where(
        of_tenant(embeddings),
        embeddings.c.stamp == _STAMP,
        embeddings.c.entry_id == entries.c.entry_id,
        embeddings.c.text_digest == entries.c.text_digest,
        embeddings.c.to_position.is_(None),
    )
)
_attempt = sa.and_(
    of_tenant(embedding_attempts),
    embedding_attempts.c.stamp == _STAMP,
    embedding_attempts.c.entry_id == entries.c.entry_id,
    embedding_attempts.c.text_digest == entries.c.text_digest,
)
_is_dead = sa.exists(sa.select(sa.literal_column("1")).where(_attempt, embedding_attempts.c.dead))
_must_wait = sa.exists(
    sa.select(sa.literal_column("1")).where(
        _attempt,
        sa.or_(embedding_attempts.c.dead, embedding_attempts.c.next_attempt_at > sa.bindparam("now")),
    )
)

# What is put away goes to no provider; released, it lacks a vector like any other.
_may_be_embedded = entries.c.status != "quarantined"

PENDING = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.title,
        entries.c.summary,
        entries.c.body,
        entries.c.text_digest,
    )
    .where(of_tenant(entries), _may_be_embedded, sa.not_(_has_vector), sa.not_(_must_wait))
    .order_by(entries.c.position)
    .limit(sa.bindparam("at_most", type_=sa.Integer))
)
_COUNTS = sa.select(
    sa.func.count().label("entries"),
    sa.func.count().filter(sa.not_(_has_vector), sa.not_(_is_dead)).label("pending"),
    sa.func.count().filter(sa.not_(_has_vector), _is_dead).label("dead"),
).where(of_tenant(entries), _may_be_embedded)
TEXT_NOW = sa.select(entries.c.text_digest).where(
    of_tenant(entries), _may_be_embedded, entries.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid)
)
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
    embedding_attempts.c.stamp == _STAMP,
    embedding_attempts.c.entry_id == sa.bindparam("entry_id", type_=sa.Uuid),
    embedding_attempts.c.text_digest == sa.bindparam("text_digest", type_=sa.LargeBinary),
)
_REVIVE = sa.delete(embedding_attempts).where(of_tenant(embedding_attempts), embedding_attempts.c.stamp == _STAMP)


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


def pending_embeddings(database: Database, tenant_id: UUID, stamp: str, now: datetime, at_most: int) -> list[Row]:
    """Entries that are due, oldest first."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return transaction.execute(PENDING, {"tenant_id": tenant_id, "stamp": stamp, "now": now, "at_most": at_most})


def count_backlog(database: Database, tenant_id: UUID, stamp: str) -> BacklogCounts:
    """Count what lacks a vector of the stamp."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        row = transaction.execute(_COUNTS, {"tenant_id": tenant_id, "stamp": stamp})[0]
    return BacklogCounts(pending=row["pending"], dead=row["dead"], entries=row["entries"])


def note_attempts(
    database: Database, tenant_id: UUID, stamp: str, failed: Sequence[tuple[Row, str]], now: datetime
) -> None:
    """Count one more failed attempt for each entry; give it a pause that grows, and an end after MAX_ATTEMPTS."""
    with database.transaction("writer", tenant_id) as transaction:
        for row, code in failed:
            key: dict[str, Any] = {
                "tenant_id": tenant_id,
                "stamp": stamp,
                "entry_id": row["entry_id"],
                "text_digest": row["text_digest"],
            }
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


def revive(database: Database, tenant_id: UUID, stamp: str) -> None:
    """Forget all failed attempts, so that dead entries are tried again."""
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_REVIVE, {"tenant_id": tenant_id, "stamp": stamp})
