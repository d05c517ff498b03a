"""A judged set as recall has it: the postings, weights and vectors that its tenant stores, and its topics' vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from grandbo.evaluation import JudgedSet
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.topic import check_topic
from grandbo.storage.tables import embeddings, entries, terms
from grandbo.storage.tenancy import of_tenant
from grandbo.storage.vectors import stored_length

Vectors = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A topic: its terms, each once, its vector, and the documents that answer it; none where there is no answer."""

    text: str
    terms: tuple[str, ...]
    vector: Vectors
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """
    The published entries of a tenant, by the order of their ids, which is what breaks ties.

    Attributes:
        documents: for each entry the id it was imported under.
        postings: for each term the entries that have it, and its weight in each, in thousandths.
        owner: for each window the entry it is of.
        windows: float32[windows, length], rows of length 1.
        cutoff: cosine distance from which on nothing is near.
        titles: float32[entries, length], of each title alone, rows of length 1; zeros where it has no vector.
    """

    documents: tuple[str, ...]
    texts: tuple[dict[str, Any], ...]
    postings: dict[str, tuple[Numbers, Numbers]]
    owner: Numbers
    windows: Vectors
    cutoff: float
    topics: dict[str, Asked]
    titles: Vectors

    @property
    def is_embedded(self) -> bool:
        """Whether every entry has a vector: then words alone must carry more of the topic."""
        return len(np.unique(self.owner)) == len(self.documents)


_PUBLISHED = sa.and_(of_tenant(entries), entries.c.status == "published")
_ENTRIES = (
    sa.select(
        entries.c.entry_id,
        entries.c.external_id,
        entries.c.title,
        entries.c.service,
        entries.c.summary,
        entries.c.body,
        entries.c.tags,
    )
    .where(_PUBLISHED)
    .order_by(entries.c.entry_id)
)
_POSTINGS = sa.select(terms.c.term, terms.c.entry_id, terms.c.weight).where(
    of_tenant(terms), terms.c.to_position.is_(None)
)
_WINDOWS = (
    sa.select(embeddings.c.entry_id, embeddings.c.vector)
    .where(
        of_tenant(embeddings),
        embeddings.c.to_position.is_(None),
        embeddings.c.stamp == sa.bindparam("stamp", type_=sa.Text),
    )
    .order_by(embeddings.c.entry_id, embeddings.c.window_no)
)


def read_corpus(grandbo: Grandbo, memory: TenantMemory, judged: JudgedSet) -> Corpus:
    """Read what the tenant stores, in one snapshot, and embed the topics as recall would."""
    embedder = grandbo.embedder
    assert embedder is not None
    key = {"tenant_id": memory.tenant_id}
    with grandbo.database.transaction("projector", memory.tenant_id, read_only=True, snapshot=True) as transaction:
        rows = transaction.execute(_ENTRIES, key)
        postings = transaction.execute(_POSTINGS, key)
        windows = transaction.execute(_WINDOWS, {**key, "stamp": embedder.stamp.id})
        titles = transaction.execute(_WINDOWS, {**key, "stamp": embedder.stamp.titles.id})
    place = {row["entry_id"]: number for number, row in enumerate(rows)}
    shown = [row for row in windows if row["entry_id"] in place]
    length = stored_length(embedder.stamp.native_dimensions)
    topics = {
        name: Asked(
            text,
            check_topic(text).terms,
            embedder.embed_topic(text)[:length],
            judged.relevant.get(name, frozenset()),
        )
        for name, text in judged.topics.items()
    }
    return Corpus(
        documents=tuple(row["external_id"] for row in rows),
        texts=tuple(dict(row) for row in rows),
        postings=_by_term(postings, place),
        owner=np.array([place[row["entry_id"]] for row in shown], np.int64),
        windows=np.array([row["vector"].to_numpy() for row in shown], np.float32),
        cutoff=embedder.stamp.cutoff_bp / 10_000,
        topics=topics,
        titles=_titles(titles, place, length),
    )


def _titles(rows: list[dict[str, Any]], place: dict[Any, int], length: int) -> Vectors:
    found = np.zeros((len(place), length), np.float32)
    for row in rows:
        if row["entry_id"] in place:
            found[place[row["entry_id"]]] = row["vector"].to_numpy()
    return found


def _by_term(rows: list[dict[str, Any]], place: dict[Any, int]) -> dict[str, tuple[Numbers, Numbers]]:
    found: dict[str, list[tuple[int, int]]] = {}
    for row in rows:
        if row["entry_id"] in place:
            found.setdefault(row["term"], []).append((place[row["entry_id"]], row["weight"]))
    return {
        term: (np.array([entry for entry, _ in pairs], np.int64), np.array([weight for _, weight in pairs], np.int64))
        for term, pairs in found.items()
    }
