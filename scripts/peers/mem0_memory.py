"""mem0 on pgvector, without a language model: `add(infer=False)` and `search`."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from scripts.peers.given import Given
from scripts.peers.protocol import Known, Text, Where

BATCH = 500


class Mem0Memory:
    """Memories of a user each; every vector is measured."""

    def __init__(self, where: Where, known: Known) -> None:
        where.folder.mkdir(parents=True, exist_ok=True)
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(where.folder))
        from mem0 import Memory  # reads its environment when it is imported

        self._known = known
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {
                    "provider": "pgvector",
                    "config": {
                        "connection_string": where.conninfo,
                        "embedding_model_dims": where.dimensions,
                        "collection_name": "bench",
                        "hnsw": False,
                        "diskann": False,
                    },
                },
                "embedder": {"provider": "langchain", "config": {"model": Given(known)}},
                "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                "history_db_path": str(where.folder / "history.db"),
            }
        )

    def fill(self, entries: Sequence[Text]) -> None:
        """Through its store, with what `add` would put there: one by one takes an hour for a hundred thousand."""
        for start in range(0, len(entries), BATCH):
            some = entries[start : start + BATCH]
            self._memory.vector_store.insert(
                vectors=[entry.vector.tolist() for entry in some],
                ids=[str(uuid.uuid4()) for _ in some],
                payloads=[_payload(entry) for entry in some],
            )

    def write(self, entry: Text) -> None:
        """`add` without inference."""
        self._memory.add(
            [{"role": "user", "content": entry.text}], user_id=entry.tenant, infer=False, metadata={"key": entry.id}
        )

    def recall(self, topic: Text, k: int) -> list[str]:
        """`search`."""
        found = self._memory.search(topic.text, filters={"user_id": topic.tenant}, top_k=k)
        return [item["metadata"]["key"] for item in found["results"]]

    def nearest(self, topic: Text, k: int) -> list[str]:
        """Its store's own search."""
        found = self._memory.vector_store.search(
            query=topic.text, vectors=topic.vector.tolist(), top_k=k, filters={"user_id": topic.tenant}
        )
        return [item.payload["key"] for item in found]

    def close(self) -> None:
        """Close its pool."""
        self._memory.vector_store.connection_pool.close()


def _payload(entry: Text) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat()
    return {
        "key": entry.id,
        "user_id": entry.tenant,
        "role": "user",
        "data": entry.text,
        "hash": hashlib.md5(entry.text.encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        # Without spaCy, which it does not bring, this is the text itself.
        "text_lemmatized": entry.text,
    }
