"""The floor: one statement by hand, over a copy of Grandbo's own vectors and postings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from pgvector.psycopg import register_vector
from psycopg_pool import ConnectionPool
from scripts.bench_floor import FLOOR_QUERY, NEAREST_QUERY, in_schema, make_floor
from scripts.peers.grandbo_memory import tenant_of
from scripts.peers.protocol import ALONE, Known, Text, Vectors, Where

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
        self._where = where
        self._ids: dict[UUID, str] = {}

    def fill(self, entries: Sequence[Text]) -> None:
        """Copy what their tenant has by now."""
        where, tenant = self._where, entries[0].tenant if entries else ALONE
        with Grandbo.open(settings=Settings.load(home=where.folder, embedder="none"), embedder=None) as grandbo:
            tenant_id = grandbo.tenant(tenant_of(where, tenant), principal="human:bench").tenant_id
        self._conn.execute(f"DROP SCHEMA IF EXISTS {schema_of(tenant)} CASCADE")
        make_floor(self._conn, tenant_id, schema_of(tenant))
        self._ids.update(self._conn.execute(IDS, (tenant_id,)).fetchall())

    def write(self, entry: Text) -> None:
        """One row of text and vector, and a commit."""
        with self._writers.connection() as conn:
            conn.execute(INSERT, {"text": entry.text, "vector": entry.vector})

    def recall(self, topic: Text, k: int) -> list[str]:
        """Words and vectors, fused."""
        params = {"terms": list(dict.fromkeys(terms(topic.text))), "vector": stored(topic.vector), "k": k}
        return self._asked(topic, FLOOR_QUERY, params)

    def nearest(self, topic: Text, k: int) -> list[str]:
        """Vectors alone."""
        return self._asked(topic, NEAREST_QUERY, {"vector": stored(topic.vector), "k": k})

    def close(self) -> None:
        """Close its connections."""
        self._writers.close()
        self._conn.close()

    def _asked(self, topic: Text, query: str, params: dict[str, Any]) -> list[str]:
        rows = self._conn.execute(in_schema(query, schema_of(topic.tenant)), params, prepare=True)
        return [self._ids[row[0]] for row in rows]


def schema_of(tenant: str) -> str:
    """Where the copy of a tenant is; a name that needs no quotes."""
    return f"floor_{tenant.replace('-', '_')}"


def stored(vector: Vectors) -> Vectors:
    """As long as the rows are."""
    return pad(vector[None, :])[0, : stored_length(len(vector))]
