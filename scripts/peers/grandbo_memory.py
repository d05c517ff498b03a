"""Grandbo itself, through its library: tenants with row-level security, chain, counts and receipts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from scripts.bench_copies import Copies, send_on
from scripts.peers.protocol import ALONE, Known, Text, Vectors, Where

from grandbo.embedding import RECIPE, Embedder, Kind, Stamp
from grandbo.embedding.local import CUTOFF_BP
from grandbo.errors import EmbedderMisconfigured
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.answer import Answer
from grandbo.recall.query import query_topic
from grandbo.recall.question import check_question
from grandbo.recall.scan import EXACT
from grandbo.settings import Settings
from grandbo.workers.embedding import EmbeddingWorker

BATCH = 200


def tenant_of(where: Where, tenant: str = ALONE) -> str:
    """The tenant that stands for one in a database of its own."""
    return f"peers-{where.place}-{tenant}"


class Handed:
    """A provider that only looks up what was handed out; a text that it does not know fails the run."""

    max_texts = 64

    def __init__(self, known: Known, dimensions: int) -> None:
        self.stamp = Stamp("bench", "handed-out", "1", dimensions, RECIPE, CUTOFF_BP)
        self._known = known

    def embed(self, texts: Sequence[str], kind: Kind) -> list[Any]:
        """One row a text."""
        try:
            return [self._known.of(text) for text in texts]
        except KeyError as error:
            raise EmbedderMisconfigured(f"No vector was handed out for this text: {error}") from None


class Multiplied:
    """Tenants made of the projected rows of one, each with vectors of its own."""

    def __init__(self, conninfo: str, source: UUID) -> None:
        self._conn = psycopg.connect(conninfo, autocommit=True)
        self._conn.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        register_vector(self._conn)
        self._copies = Copies(self._conn, source, lambda _rng, count: self._vectors[:count])
        self._vectors: Vectors = np.zeros(0, np.float32)

    def write(self, target: UUID, number: int, vectors: Vectors) -> None:
        """The copy that has this number."""
        self._vectors = vectors
        self._copies.write(target, len(vectors), number=number)
        send_on(self._conn, target, len(vectors))

    def close(self) -> None:
        """What was laid out goes with the connection."""
        self._conn.close()


class GrandboMemory:
    """Tenants of the server that the bench has started."""

    def __init__(self, where: Where, known: Known) -> None:
        settings = Settings.load(home=where.folder, embedder="none", pool_size=8)
        embedder = Embedder(Handed(known, where.dimensions))
        self._grandbo = Grandbo.open(settings=settings, embedder=embedder)
        self._worker = EmbeddingWorker(self._grandbo.database, embedder)
        self._where = where
        self._memories: dict[str, TenantMemory] = {}
        self._multiplied: Multiplied | None = None
        if not where.apart:
            self._of(ALONE)

    def fill(self, entries: Sequence[Text]) -> None:
        """The import, and the worker, by the hundred: it looks the whole memory over for each batch."""
        memory = self._of(entries[0].tenant if entries else ALONE)
        lines = [json.dumps({**entry.fields, "id": entry.id, "source": "bench"}).encode() for entry in entries]
        report = memory.import_lines(lines, "finding")
        while self._worker.embed_batch(memory.tenant_id, at_most=BATCH):
            pass
        counts = memory.embed()
        if report.refused or counts.dead:
            raise RuntimeError(f"{report.refused} refused, {counts.dead} without a vector: {report.errors[:3]}")

    def multiply(self, entries: Sequence[Text]) -> None:
        """The rows of the tenant that was filled first, under their titles and with their vectors."""
        if self._multiplied is None:
            first = next(iter(self._memories.values()))
            self._multiplied = Multiplied(self._where.conninfo, first.tenant_id)
        number, vectors = len(self._memories), np.stack([entry.vector for entry in entries])
        self._multiplied.write(self._of(entries[0].tenant).tenant_id, number, vectors)

    def write(self, entry: Text) -> None:
        """`record_finding`: event, chain and projections. Its vector comes later."""
        self._of(entry.tenant).record_finding(self._finding(entry))

    def write_with_vector(self, entry: Text) -> None:
        """The same, and the event that brings the vector, as the worker appends it when it is woken."""
        self.write(entry)
        if self._worker.embed_batch(self._of(entry.tenant).tenant_id) != 1:
            raise RuntimeError("The vector did not come.")

    def recall(self, topic: Text, k: int) -> list[str]:
        """`query_topic`."""
        return _ids(self._of(topic.tenant).query_topic(topic.text, limit=k))

    def nearest(self, topic: Text, k: int) -> list[str]:
        """By meaning alone, up to its cutoff."""
        return _ids(self._of(topic.tenant).query_topic(topic.text, limit=k, mode="meaning"))

    def exact(self, topic: Text, k: int) -> list[str]:
        """What `recall` gives where everything is measured, however large the scope."""
        who = (self._grandbo.database, self._grandbo.meaning, self._grandbo.receipts, self._grandbo.counting)
        memory = self._of(topic.tenant)
        asked = (memory.tenant_id, memory.principal, check_question(topic.text, limit=k))
        return _ids(query_topic(*who, *asked, scanning=lambda _policy: EXACT))

    # -- as a log ------------------------------------------------------------------------------------------------------

    append = write

    def append_many(self, entries: Sequence[Text]) -> int:
        """The import."""
        lines = [json.dumps({**entry.fields, "id": entry.id, "source": "bench"}).encode() for entry in entries]
        return self._of(ALONE).import_lines(lines, "finding").recorded

    def read(self) -> int:
        """Every event with its body."""
        return sum(1 for _ in self._of(ALONE).events(bodies=True))

    def verify(self) -> int:
        """The chain, hash by hash."""
        return self._of(ALONE).verify().events

    def rebuild(self) -> int:
        """All projections anew."""
        return self._of(ALONE).rebuild()

    def close(self) -> None:
        """Use the server no longer."""
        if self._multiplied is not None:
            self._multiplied.close()
        self._grandbo.close()

    def _of(self, tenant: str) -> TenantMemory:
        """The memory of a tenant, made when it is first named."""
        if tenant not in self._memories:
            name = tenant_of(self._where, tenant)
            self._grandbo.create_tenant(name)
            self._memories[tenant] = self._grandbo.tenant(name, principal="human:bench")
        return self._memories[tenant]

    @staticmethod
    def _finding(entry: Text) -> dict[str, Any]:
        texts = {name: entry.fields[name] for name in ("title", "summary", "body", "service")}
        evidence = [{"type": "log", "uri": entry.fields["source_url"], "label": ""}]
        return {**texts, "evidence": evidence, "incident": {"source": "bench-write", "id": entry.id}}


def _ids(answer: Answer) -> list[str]:
    if answer.searched.degraded:
        raise RuntimeError(f"Grandbo asked by words alone: {answer.searched.degraded}")
    return [str(match.external_id) for match in answer.matches]
