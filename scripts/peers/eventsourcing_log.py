"""eventsourcing's recorder on PostgreSQL: a log alone, with nothing derived from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import uuid4

from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from scripts.peers.protocol import Known, Text, Where

BATCH = 100
PAGE = 1_000


class EventSourcingLog:
    """Each entry is the first event of its own aggregate."""

    def __init__(self, where: Where, known: Known) -> None:
        server = where.server
        self._store = PostgresDatastore(
            dbname=server["dbname"],
            host=server["host"],
            port=server["port"],
            user=server["user"],
            password=server["password"],
            pool_size=4,
        )
        self._recorder = PostgresApplicationRecorder(self._store)
        self._recorder.create_table()

    def append(self, entry: Text) -> None:
        """`insert_events` of one."""
        self._recorder.insert_events([_event(entry)])

    def append_many(self, entries: Sequence[Text]) -> int:
        """`insert_events` of a hundred at a time."""
        for start in range(0, len(entries), BATCH):
            self._recorder.insert_events([_event(entry) for entry in entries[start : start + BATCH]])
        return len(entries)

    def read(self) -> int:
        """`select_notifications`, page by page."""
        start, seen = 1, 0
        while page := self._recorder.select_notifications(start=start, limit=PAGE):
            seen += len(page)
            start = page[-1].id + 1
        return seen

    def close(self) -> None:
        """Close its pool."""
        self._store.close()


def _event(entry: Text) -> StoredEvent:
    return StoredEvent(uuid4(), 1, "bench:EntryRecorded", json.dumps(entry.fields).encode())
