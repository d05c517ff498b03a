"""memgres: memories with a hash-chained history, by words and meaning."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from memgres import identity
from memgres.config import load
from memgres.schema import migrate
from memgres.store import Store
from scripts.peers.protocol import Known, Text, Where

BATCH = 500
WHOLE = str(1_000_000)
# A graph of vectors is made many times faster of all of them than one by one; by the statement that it has for it, and
# by one process: several would want as much shared memory.
UNINDEXED = "DROP INDEX memory_segment_hnsw"
MANY = "SET maintenance_work_mem = '3GB'; SET max_parallel_maintenance_workers = 0"


class Looked:
    """Its embedder, which only looks up what was handed out."""

    def __init__(self, known: Known, dimensions: int) -> None:
        self._known, self.dim = known, dimensions

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One a text."""
        return [self._known.of(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Of a topic."""
        return self.embed_documents([text])[0]


class MemgresMemory:
    """
    One space, or a namespace each. Each entry is one chunk, so that it has the vector that everybody has.

    A tenant is a user with a namespace and a token. The token is asked about once: a server may keep who it was.
    """

    def __init__(self, where: Where, known: Known) -> None:
        os.environ.update(
            MEMGRES_EMBED_PROVIDER="openai-compatible",
            MEMGRES_EMBED_MODEL="handed-out",
            MEMGRES_EMBED_API_BASE="http://127.0.0.1:9",
            MEMGRES_EMBED_DIM=str(where.dimensions),
            MEMGRES_FTS_LANGUAGE="english",
            MEMGRES_CHUNK_CHARS=WHOLE,
            MEMGRES_CHUNK_OVERLAP="0",
            MEMGRES_USAGE_COUNTERS="off",
            MEMGRES_KEY_MODE="managed" if where.apart else "single",
        )
        self._config, self._looked = load(), Looked(known, where.dimensions)
        self._conninfo = where.conninfo
        self._mine = threading.local()
        self._opened: list[psycopg.Connection[Any]] = []
        self._keys: dict[str, str] = {}
        self._apart = where.apart
        self._tenants: dict[str, dict[str, Any]] = {}
        with psycopg.connect(self._conninfo) as conn:
            migrate(conn, self._config)

    @contextmanager
    def filling(self) -> Iterator[None]:
        """Without the index over vectors, which is made when all are there."""
        with psycopg.connect(self._conninfo, autocommit=True) as conn:
            conn.execute(UNINDEXED)
            yield
            conn.execute(MANY)
            migrate(conn, self._config)

    def fill(self, entries: Sequence[Text]) -> None:
        """`write`, many in one transaction."""
        for start in range(0, len(entries), BATCH):
            store = self._store
            with store._conn.transaction():
                for entry in entries[start : start + BATCH]:
                    self.write(entry)

    def write(self, entry: Text) -> None:
        """`write`: the memory, its history, its vector."""
        title = entry.title.encode()[:250].decode(errors="ignore")
        written = self._store.write(**self._of(entry.tenant), body=entry.text, title=title, source=entry.id)
        self._keys[written.id] = entry.id

    def recall(self, topic: Text, k: int) -> list[str]:
        """`recall`."""
        return self._ids(topic, k, "hybrid")

    def nearest(self, topic: Text, k: int) -> list[str]:
        """By meaning alone."""
        return self._ids(topic, k, "semantic")

    def close(self) -> None:
        """Close its connections."""
        for conn in self._opened:
            conn.close()

    def _ids(self, topic: Text, k: int, mode: str) -> list[str]:
        found = self._store.recall(**self._of(topic.tenant), query=topic.text, k=k, mode=mode)
        return [self._keys[hit.id] for hit in found]

    def _of(self, tenant: str) -> dict[str, Any]:
        """Who asks, and in which namespace."""
        if not self._apart:
            return {"token": None}
        if tenant not in self._tenants:
            with psycopg.connect(self._conninfo) as conn:
                user = identity.create_user(conn, tenant)
                space = identity.create_namespace(conn, user, tenant)
                token, _ = identity.issue_token(conn, user)
                self._tenants[tenant] = {"token": identity.resolve(conn, self._config, token), "space_id": space}
        return self._tenants[tenant]

    @property
    def _store(self) -> Any:
        """A store is one connection, so each thread has its own."""
        if not hasattr(self._mine, "store"):
            conn = psycopg.connect(self._conninfo, autocommit=True)
            self._opened.append(conn)
            self._mine.store = Store(self._config, self._looked, conn=conn)
        return self._mine.store
