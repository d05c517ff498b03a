"""LangGraph's PostgresStore: by meaning alone, every vector measured."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.postgres import PostgresStore
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool
from scripts.peers.given import Given
from scripts.peers.protocol import Known, Text, Where

BATCH = 500


class LangGraphStore:
    """A namespace each."""

    def __init__(self, where: Where, known: Known) -> None:
        given: Embeddings = Given(known)
        self._pool = ConnectionPool(
            where.conninfo,
            min_size=1,
            max_size=4,
            open=True,
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        )
        self._store = PostgresStore(
            self._pool,
            index={
                "dims": where.dimensions,
                "embed": given,
                "fields": ["text"],
                "ann_index_config": {"kind": "flat", "vector_type": "vector"},
            },
        )
        self._store.setup()

    def fill(self, entries: Sequence[Text]) -> None:
        """In batches of its own operations."""
        for start in range(0, len(entries), BATCH):
            self._store.batch(
                [PutOp((entry.tenant,), entry.id, {"text": entry.text}) for entry in entries[start : start + BATCH]]
            )

    def write(self, entry: Text) -> None:
        """`put`."""
        self._store.put((entry.tenant,), entry.id, {"text": entry.text})

    def recall(self, topic: Text, k: int) -> list[str]:
        """`search`."""
        return [item.key for item in self._store.search((topic.tenant,), query=topic.text, limit=k)]

    nearest = recall

    def close(self) -> None:
        """Close its pool."""
        self._pool.close()
