"""The floor: one statement by hand, over a copy of Grandbo's own vectors and postings."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import psycopg
from pgvector.psycopg import register_vector
from psycopg_pool import ConnectionPool
from scripts.bench_floor import FLOOR_QUERY, NEAREST_QUERY, make_floor
from scripts.peers.grandbo_memory import tenant_of
from scripts.peers.protocol import Known, Text, Vectors, Where

from grandbo.embedding import pad
from grandbo.library import Grandbo
from grandbo.settings import Settings
from grandbo.storage.vectors import stored_length
from grandbo.text import terms

IDS = "SELECT entry_id, external_id FROM grandbo.org_memory_entries WHERE tenant_id = %s"
MAKE = """
CREATE TABLE IF NOT EXISTS public.bare (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), text text NOT NULL, vector extensions.vector NOT NULL)
"""
INSERT = "INSERT INTO public.bare (text, vector) VALUES (%(text)s, %(vector)s)"


class FloorSQL:
    """Reads the database of Grandbo, into a schema of its own. What is filled in is whatever is there."""

    def __init__(self, where: Where, known: Known) -> None:
        self._conn = psycopg.connect(where.conninfo, autocommit=True)
        self._conn.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        self._conn.execute(MAKE)
        register_vector(self._conn)
        self._writers = ConnectionPool(
            where.conninfo, min_size=1, max_size=4, open=True, configure=register_vector, kwargs={"autocommit": True}
        )
        with Grandbo.open(settings=Settings.load(home=where.folder, embedder="none"), embedder=None) as grandbo:
            self._tenant_id = grandbo.tenant(tenant_of(where), principal="human:bench").tenant_id
        self._ids: dict[UUID, str] = {}

    def fill(self, entries: Sequence[Text]) -> None:
        """Copy what the tenant has by now."""
        self._conn.execute("DROP SCHEMA IF EXISTS floor CASCADE")
        make_floor(self._conn, self._tenant_id)
        self._ids = dict(self._conn.execute(IDS, (self._tenant_id,)).fetchall())

    def write(self, entry: Text) -> None:
        """One row of text and vector, and a commit."""
        with self._writers.connection() as conn:
            conn.execute(INSERT, {"text": entry.text, "vector": entry.vector})

    def recall(self, topic: Text, k: int) -> list[str]:
        """Words and vectors, fused."""
        params = {"terms": list(dict.fromkeys(terms(topic.text))), "vector": stored(topic.vector), "k": k}
        return [self._ids[row[0]] for row in self._conn.execute(FLOOR_QUERY, params, prepare=True)]

    def nearest(self, topic: Text, k: int) -> list[str]:
        """Vectors alone."""
        rows = self._conn.execute(NEAREST_QUERY, {"vector": stored(topic.vector), "k": k}, prepare=True)
        return [self._ids[row[0]] for row in rows]

    def close(self) -> None:
        """Close its connections."""
        self._writers.close()
        self._conn.close()


def stored(vector: Vectors) -> Vectors:
    """As long as the rows are."""
    return pad(vector[None, :])[0, : stored_length(len(vector))]
