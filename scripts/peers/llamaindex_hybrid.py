"""LlamaIndex's PGVectorStore: hybrid as it is, one list after the other, or fused by LlamaIndex's own retriever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import QueryBundle, TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.postgres import PGVectorStore
from scripts.peers.protocol import Known, Text, Where

BATCH = 500


class LlamaIndexHybrid:
    """One table with its index over words."""

    def __init__(self, where: Where, known: Known) -> None:
        self._apart = where.apart
        self._store = PGVectorStore(
            connection_string=where.url("postgresql+psycopg2"),
            async_connection_string=where.url("postgresql+asyncpg"),
            table_name="bench",
            embed_dim=where.dimensions,
            hybrid_search=True,
            text_search_config="english",
            cache_ok=True,
            initialization_fail_on_error=True,
            indexed_metadata_keys={("tenant", "text")} if where.apart else None,
        )

    def fill(self, entries: Sequence[Text]) -> None:
        """In batches of its own."""
        for start in range(0, len(entries), BATCH):
            self._store.add([self._node(entry) for entry in entries[start : start + BATCH]])

    def write(self, entry: Text) -> None:
        """`add` of one."""
        self._store.add([self._node(entry)])

    def recall(self, topic: Text, k: int) -> list[str]:
        """Up to k by meaning, and behind them what words found besides: so the first k are those by meaning."""
        return self._ids(
            topic, mode=VectorStoreQueryMode.HYBRID, similarity_top_k=k, sparse_top_k=k, query_str=topic.text
        )

    def nearest(self, topic: Text, k: int) -> list[str]:
        """By meaning alone."""
        return self._ids(topic, mode=VectorStoreQueryMode.DEFAULT, similarity_top_k=k)

    def close(self) -> None:
        """Close its connections."""
        if self._store.client is not None:
            self._store.client.dispose()

    def _ids(self, topic: Text, **how: Any) -> list[str]:
        filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=topic.tenant)]) if self._apart else None
        found = self._store.query(VectorStoreQuery(query_embedding=topic.vector.tolist(), filters=filters, **how))
        return list(found.ids or [])

    def _node(self, entry: Text) -> TextNode:
        metadata = {"tenant": entry.tenant} if self._apart else {}
        return TextNode(id_=entry.id, text=entry.text, embedding=entry.vector.tolist(), metadata=metadata)


class LlamaIndexFused(LlamaIndexHybrid):
    """The same store, its two lists fused by rank in `QueryFusionRetriever`; no model makes up further queries."""

    def __init__(self, where: Where, known: Known) -> None:
        super().__init__(where, known)
        # The vector of a topic comes with it; the embedder is never asked.
        index = VectorStoreIndex.from_vector_store(self._store, embed_model=MockEmbedding(where.dimensions))
        lists = [
            index.as_retriever(vector_store_query_mode=mode, similarity_top_k=where.listed, sparse_top_k=where.listed)
            for mode in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.SPARSE)
        ]
        self._fused = QueryFusionRetriever(
            lists,
            llm=MockLLM(),
            mode="reciprocal_rerank",
            num_queries=1,
            use_async=False,
            similarity_top_k=where.listed,
        )

    def recall(self, topic: Text, k: int) -> list[str]:
        """Both lists, fused."""
        bundle = QueryBundle(topic.text, embedding=topic.vector.tolist())
        return [found.node.node_id for found in self._fused.retrieve(bundle)][:k]
