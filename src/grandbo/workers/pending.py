"""
What one tenant lacks in one space, found without looking its memory over for each batch.

The entries are walked through once, by their key. From then on the log tells: whatever can leave an entry without a
vector of its text is an event of its own, and positions miss nothing. What failed waits among the attempts, which have
a time of their own. All of it is kept in memory and can be lost at any moment: a new walk finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.log import READ_HEAD, head_of
from grandbo.events.models import EntryEmbedded
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import embedding_attempts, entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.workers.backlog import IS_UNTRIED, LACKS_VECTOR, MAY_BE_EMBEDDED, MAY_BE_TRIED, NOW, STAMP

# So many entries, or events, are looked at with one statement.
LOOK = 1_000
# And so many of those that were tried before and are due, each time the log is looked at.
LOOK_AGAIN = 50
# No event says that somebody deleted rows by hand, or brought an older copy of the database back.
WALK_AGAIN = timedelta(minutes=10)

_IDS = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))
_LOOK = sa.bindparam("look", type_=sa.Integer)
_LACKS = sa.and_(of_tenant(entries), MAY_BE_EMBEDDED, LACKS_VECTOR)

_BY_KEY = (
    sa.select(entries.c.entry_id)
    .where(of_tenant(entries), entries.c.entry_id > sa.bindparam("after", type_=sa.Uuid))
    .order_by(entries.c.entry_id)
    .limit(_LOOK)
)
_BY_LOG = (
    sa.select(events.c.position, events.c.stream_id, events.c.event_type)
    .where(of_tenant(events), events.c.position > sa.bindparam("after", type_=sa.BigInteger))
    .order_by(events.c.position)
    .limit(_LOOK)
)
_UNTRIED = (
    sa.select(entries.c.entry_id).where(_LACKS, entries.c.entry_id == _IDS, IS_UNTRIED).order_by(entries.c.position)
)
_DUE_AGAIN = (
    sa.select(embedding_attempts.c.entry_id)
    .where(
        of_tenant(embedding_attempts),
        embedding_attempts.c.stamp == STAMP,
        sa.not_(embedding_attempts.c.dead),
        embedding_attempts.c.next_attempt_at <= NOW,
    )
    .order_by(embedding_attempts.c.next_attempt_at, embedding_attempts.c.entry_id)
    .limit(LOOK_AGAIN)
)
TEXTS = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.title,
        entries.c.summary,
        entries.c.body,
        entries.c.text_digest,
    )
    .where(_LACKS, entries.c.entry_id == _IDS, MAY_BE_TRIED)
    .order_by(entries.c.position)
)
# Of what has its vector, has another text, or is no more.
_FORGET = sa.delete(embedding_attempts).where(
    of_tenant(embedding_attempts),
    embedding_attempts.c.stamp == STAMP,
    embedding_attempts.c.entry_id == _IDS,
    sa.not_(embedding_attempts.c.dead),
    embedding_attempts.c.next_attempt_at <= NOW,
)
_LEFT_OVER = (
    sa.select(entries.c.entry_id)
    .where(
        _LACKS,
        of_tenant(embedding_attempts),
        embedding_attempts.c.stamp == STAMP,
        embedding_attempts.c.entry_id == entries.c.entry_id,
        embedding_attempts.c.text_digest == entries.c.text_digest,
    )
    .limit(1)
)


class Pending:
    """What is pending of one tenant in one space, for one worker."""

    def __init__(self, database: Database, tenant_id: UUID, stamp: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._key = {"tenant_id": tenant_id, "stamp": stamp}
        # In the order in which they were found.
        self._found: dict[UUID, None] = {}
        # Of what was tried before, what was due when the log was looked at.
        self._again: list[UUID] = []
        # How far in the log everything was looked at; None before the first walk.
        self._position: int | None = None
        # The last entry of the walk; None once it has come to its end.
        self._walked: UUID | None = None
        self._walked_at: datetime | None = None

    def due(self, now: datetime, at_most: int) -> list[Row]:
        """
        Some entries that are due, with their texts; none where nothing is.

        The same are given again until they have their vectors, or an attempt is on the record.
        """
        rows: list[Row] = []
        while not rows:
            while len(self._found) < at_most and self._look_on(now):
                pass
            if not self._found:
                break
            named = list(islice(self._found, at_most))
            rows = self._texts(named, now)
            self._drop(set(named).difference(row["entry_id"] for row in rows))
        if len(self._found) < at_most:
            # What was tried before fills up what is new: a steady trickle of that does not keep it waiting.
            rows += self._due_again(now, at_most - len(rows))
        return rows

    def settled(self, rows: Sequence[Row]) -> None:
        """These have their vectors."""
        self._drop({row["entry_id"] for row in rows})

    def is_left_over(self) -> bool:
        """Whether something that was tried before still lacks its vector."""
        return bool(self._read(_LEFT_OVER))

    def _look_on(self, now: datetime) -> bool:
        """Look at what the log has since, then at the next of the walk; give whether there may be more."""
        if self._position is None or (self._walked_at is not None and now - self._walked_at >= WALK_AGAIN):
            return self._begin_walk(now)
        return self._follow(now) or self._walk(now)

    def _begin_walk(self, now: datetime) -> bool:
        first = {**self._key, "after": UUID(int=0), "look": LOOK}
        with self._database.transaction("writer", self._tenant_id, read_only=True) as transaction:
            # The head before the first look at an entry: what happens from here on, the log tells. And at once, because
            # a worker that starts asks this of every tenant.
            head, rows, due = transaction.batch(
                [(READ_HEAD, self._key), (_BY_KEY, first), (_DUE_AGAIN, {**self._key, "now": now})]
            )
            self._again = [row["entry_id"] for row in due]
            ids = [row["entry_id"] for row in rows]
            self._note_untried(transaction, ids)
        self._position = head_of(head).position
        return self._walked_on(ids, now)

    def _follow(self, now: datetime) -> bool:
        steps = [
            (_BY_LOG, {**self._key, "after": self._position, "look": LOOK}),
            (_DUE_AGAIN, {**self._key, "now": now}),
        ]
        with self._database.transaction("writer", self._tenant_id, read_only=True) as transaction:
            # At once: of most tenants, most of the time, this is all that there is to ask.
            rows, due = transaction.batch(steps)
            self._again = [row["entry_id"] for row in due]
            changed = {row["stream_id"] for row in rows if _may_leave_one_without(row["event_type"])}
            self._note_untried(transaction, sorted(changed))
        if rows:
            self._position = rows[-1]["position"]
        return len(rows) == LOOK

    def _walk(self, now: datetime) -> bool:
        if self._walked is None:
            return False
        with self._database.transaction("writer", self._tenant_id, read_only=True) as transaction:
            rows = transaction.execute(_BY_KEY, {**self._key, "after": self._walked, "look": LOOK})
            ids = [row["entry_id"] for row in rows]
            self._note_untried(transaction, ids)
        return self._walked_on(ids, now)

    def _walked_on(self, ids: Sequence[UUID], now: datetime) -> bool:
        """Note how far the walk has come; give whether it goes on."""
        goes_on = len(ids) == LOOK
        self._walked, self._walked_at = (ids[-1], None) if goes_on else (None, now)
        return goes_on

    def _note_untried(self, transaction: Transaction, ids: Sequence[UUID]) -> None:
        if ids:
            rows = transaction.execute(_UNTRIED, {**self._key, "ids": list(ids)})
            self._found |= dict.fromkeys(row["entry_id"] for row in rows)

    def _due_again(self, now: datetime, at_most: int) -> list[Row]:
        rows: list[Row] = []
        while self._again and not rows:
            ids, self._again = self._again[:at_most], self._again[at_most:]
            rows = self._texts(ids, now)
            if stale := set(ids).difference(row["entry_id"] for row in rows):
                with self._database.transaction("writer", self._tenant_id) as transaction:
                    transaction.execute(_FORGET, {**self._key, "ids": sorted(stale), "now": now})
        return rows

    def _texts(self, ids: Sequence[UUID], now: datetime) -> list[Row]:
        return self._read(TEXTS, ids=list(ids), now=now) if ids else []

    def _read(self, statement: sa.Select[Any], **params: object) -> list[Row]:
        with self._database.transaction("writer", self._tenant_id, read_only=True) as transaction:
            return transaction.execute(statement, {**self._key, **params})

    def _drop(self, ids: set[UUID]) -> None:
        for entry_id in ids:
            self._found.pop(entry_id, None)


def _may_leave_one_without(event_type: str) -> bool:
    return event_type.startswith("entry_") and event_type != EntryEmbedded.EVENT_TYPE
