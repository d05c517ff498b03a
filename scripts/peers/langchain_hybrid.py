"""LangChain's PGVectorStore with hybrid search and reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psycopg
from langchain_postgres import Column, PGEngine, PGVectorStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
from scripts.peers.given import Given
from scripts.peers.protocol import Known, Text, Where

TABLE = "bench"
# Its documents make a column for what is filtered on, and leave the index to whoever wants one.
APART = f"CREATE INDEX ON {TABLE} (tenant)"
BATCH = 500


class LangChainHybrid:
    """One table, with its index over words."""

    def __init__(self, where: Where, known: Known) -> None:
        self._hybrid = HybridSearchConfig(
            tsv_column="content_tsv",
            fusion_function=reciprocal_rank_fusion,
            fusion_function_parameters={"rrf_k": 60, "fetch_top_k": where.listed},
            primary_top_k=where.listed,
            secondary_top_k=where.listed,
        )
        self._engine = PGEngine.from_connection_string(where.url("postgresql+asyncpg"))
        self._engine.init_vectorstore_table(
            TABLE,
            where.dimensions,
            id_column=Column("langchain_id", "TEXT"),
            metadata_columns=[Column("tenant", "TEXT")] if where.apart else None,
            hybrid_search_config=self._hybrid,
        )
        self._apart = where.apart
        self._store = PGVectorStore.create_sync(
            self._engine,
            Given(known),
            TABLE,
            hybrid_search_config=self._hybrid,
            metadata_columns=["tenant"] if where.apart else None,
        )
        self._store.apply_hybrid_search_index()
        if where.apart:
            with psycopg.connect(where.conninfo, autocommit=True) as conn:
                conn.execute(APART)

    def fill(self, entries: Sequence[Text]) -> None:
        """In batches of its own."""
        for start in range(0, len(entries), BATCH):
            self._add(entries[start : start + BATCH])

    def write(self, entry: Text) -> None:
        """`add_texts` of one."""
        self._add([entry])

    def recall(self, topic: Text, k: int) -> list[str]:
        """
        `similarity_search_with_score`.

        A configuration keeps the words of the first topic that it was used for, so each topic gets its own copy.
        """
        return self._ids(topic, k, replace(self._hybrid, fts_query=topic.text))

    def nearest(self, topic: Text, k: int) -> list[str]:
        """The same without the words."""
        return self._ids(topic, k, None)

    def _add(self, entries: Sequence[Text]) -> None:
        metadatas = [{"tenant": entry.tenant} for entry in entries] if self._apart else None
        self._store.add_texts([entry.text for entry in entries], metadatas, ids=[entry.id for entry in entries])

    def _ids(self, topic: Text, k: int, hybrid: HybridSearchConfig | None) -> list[str]:
        filters = {"tenant": topic.tenant} if self._apart else None
        found = self._store.similarity_search_with_score(topic.text, k=k, filter=filters, hybrid_search_config=hybrid)
        return [str(document.id) for document, _ in found]

    def close(self) -> None:
        """Close its engine."""
        self._engine._run_as_sync(self._engine.close())
