"""pghybrid: one statement over a table of one's own, both signals fused by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from pghybrid import Config
from pghybrid.adapters import for_psycopg
from pgvector.psycopg import register_vector
from psycopg_pool import ConnectionPool
from scripts.peers.protocol import Known, Text, Vectors, Where

TABLE = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE chunks (
  id text PRIMARY KEY,
  tenant text NOT NULL,
  content text NOT NULL,
  embedding vector({dimensions}) NOT NULL,
  fts tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED);
CREATE INDEX ON chunks USING gin (fts);
"""
# Where there are several tenants: a column to filter on, indexed as its own migration would.
APART = "CREATE INDEX chunks_tenant_btree ON chunks (tenant)"
INSERT = "INSERT INTO chunks (id, tenant, content, embedding) VALUES (%s, %s, %s, %s)"


class PgHybridSearch:
    """The table that its documents ask for; it brings the statement, and the caller the rest."""

    def __init__(self, where: Where, known: Known) -> None:
        self._conn = psycopg.connect(where.conninfo, autocommit=True)
        self._conn.execute(TABLE.format(dimensions=where.dimensions).encode())
        self._apart = where.apart
        if self._apart:
            self._conn.execute(APART)
        self._writers = ConnectionPool(
            where.conninfo, min_size=1, max_size=4, open=True, configure=register_vector, kwargs={"autocommit": True}
        )
        self._search = for_psycopg(
            self._conn,
            Config(
                table="chunks",
                text_column="content",
                vector_column="embedding",
                tsvector_column="fts",
                candidate_limit=where.listed,
                filter_columns=["tenant"],
                paramstyle="pyformat",
            ),
        )

    def fill(self, entries: Sequence[Text]) -> None:
        """Many rows in one transaction."""
        with self._writers.connection() as conn, conn.transaction(), conn.cursor() as cursor:
            cursor.executemany(INSERT, [_row(entry) for entry in entries])

    def write(self, entry: Text) -> None:
        """A row, and a commit: it has no way of its own to write."""
        with self._writers.connection() as conn:
            conn.execute(INSERT, _row(entry))

    def recall(self, topic: Text, k: int) -> list[str]:
        """`search`."""
        return self._ids(topic, k, topic.text)

    def nearest(self, topic: Text, k: int) -> list[str]:
        """The same without a text."""
        return self._ids(topic, k, None)

    def close(self) -> None:
        """Close its connections."""
        self._writers.close()
        self._conn.close()

    def _ids(self, topic: Text, k: int, words: str | None) -> list[str]:
        filters = {"tenant": topic.tenant} if self._apart else None
        found = self._search.search(words, embedding=topic.vector.tolist(), limit=k, filters=filters)
        return [each.id for each in found]


def _row(entry: Text) -> tuple[str, str, str, Vectors]:
    return entry.id, entry.tenant, entry.text, entry.vector
