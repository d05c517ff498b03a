"""
Who finds more, on judged sets: everybody holds the same windows with the same vectors, and is asked the same topics.

Grandbo is measured as `grandbo eval` does. The others hold each window as one item, and a document stands where its
first window stands: so nobody loses by the length of a document.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scripts.bench_timing import progress
from scripts.peers.protocol import Text, Vectors, save_texts
from scripts.peers.running import Ground

from grandbo.embedding import Embedder, Kind, Stamp, windows
from grandbo.embedding.local import LocalProvider
from grandbo.evaluation import Asked, JudgedSet, ask_topics, load_corpus, read_judged_set
from grandbo.evaluation.measures import difference, interval, scores_of
from grandbo.library import Grandbo
from grandbo.settings import Settings

# How many items are asked for, and how deep lists are before they are fused: of 25, 50 and 120 that at which those that
# fuse found most on incidents. Ten documents are among so many for each topic of incidents and of alerts.
ITEMS = 50
DOCUMENTS = 10
KEEP_EVERY = 1_000
MEASURED = ("recall@5", "ndcg@10")
FINDERS = ("langgraph", "langchain", "llamaindex", "llamaindex-fused", "pghybrid", "mem0", "memgres")

Figures = dict[str, Any]


class Kept:
    """The local model's vectors, each made once and kept in a file by the digest of its text."""

    max_texts = LocalProvider.max_texts
    titles = LocalProvider.titles

    def __init__(self, path: Path | None) -> None:
        self._model = LocalProvider(threads=2)
        self._path = path
        self._of: dict[str, Vectors] = {}
        self._unkept = 0
        if path is not None and path.exists():
            with np.load(path) as kept:
                self._of = dict(zip(kept["names"].tolist(), kept["vectors"], strict=True))

    @property
    def stamp(self) -> Stamp:
        """Of the model: the vectors are its own."""
        return self._model.stamp

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One row a text."""
        names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        unknown = [(name, text) for name, text in zip(names, texts, strict=True) if name not in self._of]
        for start in range(0, len(unknown), self.max_texts):
            some = unknown[start : start + self.max_texts]
            made = np.asarray(self._model.embed([text for _, text in some], kind), np.float32)
            made /= np.linalg.norm(made, axis=1, keepdims=True)
            self._of.update((name, vector) for (name, _), vector in zip(some, made, strict=True))
            self._unkept += len(some)
            progress(f"{start + len(some):,} of {len(unknown):,} vectors")
            if self._unkept >= KEEP_EVERY:
                self.keep()
        return np.stack([self._of[name] for name in names])

    def keep(self) -> None:
        """Write the file."""
        if self._path is not None and self._unkept:
            new = self._path.with_suffix(".new")
            with new.open("wb") as file:
                np.savez(file, names=np.array(list(self._of)), vectors=np.stack(list(self._of.values())))
            new.replace(self._path)
            self._unkept = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged set and what it is called."""

    name: str
    set: JudgedSet

    @classmethod
    def of(cls, given: Sequence[str]) -> Judged:
        """Of the files of corpus, topics and judgements, and the field that holds a topic, `text` unless named."""
        corpus, topics, qrels, *field = given
        found = read_judged_set(Path(corpus), Path(topics), Path(qrels), topic_field=field[0] if field else "text")
        return cls(Path(topics).stem.removesuffix("_queries"), found)


def finding(folder: Path, given: Sequence[Sequence[str]], vectors: Path | None, names: Sequence[str]) -> Figures:
    """Everybody's Recall@5 and nDCG@10 on each set, and Grandbo's minus theirs, topic by topic."""
    judged = [Judged.of(files) for files in given]
    kept = Kept(vectors)
    figures: Figures = {"items": ITEMS, "sets": {}, "versions": {}}
    with Ground(folder / "home") as ground:
        settings = Settings.load(home=folder / "home", embedder="none", pool_size=8)
        with Grandbo.open(settings=settings, embedder=Embedder(kept)) as grandbo:
            for each in judged:
                figures["sets"][each.name] = _measured(folder, ground, grandbo, kept, each, names, figures["versions"])
                kept.keep()
    return figures


def _measured(
    folder: Path,
    ground: Ground,
    grandbo: Grandbo,
    kept: Kept,
    judged: Judged,
    names: Sequence[str],
    versions: Figures,
) -> Figures:
    answers = {"grandbo": _grandbo(grandbo, judged)}
    items, topics = _items(judged.set, kept), _topics(judged.set, kept)
    kept.keep()
    save_texts(folder / f"{judged.name}-items", items)
    save_texts(folder / f"{judged.name}-topics", topics)
    for name in names:
        progress(f"{judged.name}: {name}")
        child, versions[name] = ground.start(name, len(items[0].vector), place=judged.name, listed=ITEMS)
        child("fill", path=str(folder / f"{judged.name}-items"), start=0, stop=len(items))
        found = child("recall", path=str(folder / f"{judged.name}-topics"), start=0, stop=len(topics), k=ITEMS)
        child("close")
        ids = zip(topics, found["ids"], strict=True)
        answers[name] = {topic.id: Asked(_documents(given), bool(given), None) for topic, given in ids}
    return {
        "documents": len(judged.set.documents),
        "items": len(items),
        "topics": len(judged.set.relevant),
        "systems": compared(answers, judged.set.relevant),
    }


def compared(
    answers: Mapping[str, Mapping[str, Asked]], relevant: Mapping[str, frozenset[str]]
) -> dict[str, dict[str, Figures]]:
    """By system and measure its mean with its interval, and Grandbo's minus it with the interval of the difference."""
    scores = {name: scores_of(of_system, relevant) for name, of_system in answers.items()}
    figures: dict[str, dict[str, Figures]] = {}
    for name, of_system in scores.items():
        figures[name] = {}
        for measure in MEASURED:
            mean = interval(of_system[measure])
            ahead = difference(scores["grandbo"][measure], of_system[measure])
            assert mean is not None
            assert ahead is not None
            figures[name][measure] = {"of": mean.as_dict(), "grandbo_minus": ahead.as_dict()}
    return figures


def _grandbo(grandbo: Grandbo, judged: Judged) -> dict[str, Asked]:
    """As `grandbo eval` does: import, worker, and an investigator who asks."""

    def note(phase: str, done: int, total: int) -> None:
        progress(f"{judged.name}: Grandbo: {phase} {done:,} of {total:,}")

    grandbo.create_tenant(judged.name)
    loaded = load_corpus(grandbo.tenant(judged.name, principal="human:bench"), judged.set, progress=note)
    investigator = grandbo.tenant(judged.name, principal="agent:bench", roles=("investigator",))
    return ask_topics(investigator, judged.set, loaded, ["hybrid"], progress=note)["hybrid"]


def _items(judged: JudgedSet, kept: Kept) -> list[Text]:
    """Every window of every document, as Grandbo's worker cuts them; those that it refuses or hides too."""
    cut = []
    for name, line in judged.documents.items():
        row = json.loads(line)
        summary, body = row.get("summary") or "", row.get("body") or ""
        text = f"{summary}\n\n{body}" if body else summary
        for window in windows(row["title"], text):
            cut.append((f"{name}#{window.index}", window.text, {"title": row["title"]}))
    vectors = kept.embed([text for _, text, _ in cut], "document")
    return [Text(name, text, vector, fields) for (name, text, fields), vector in zip(cut, vectors, strict=True)]


def _topics(judged: JudgedSet, kept: Kept) -> list[Text]:
    vectors = kept.embed(list(judged.topics.values()), "query")
    asked = zip(judged.topics.items(), vectors, strict=True)
    return [Text(name, text, vector) for (name, text), vector in asked]


def _documents(items: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.rpartition("#")[0] for item in items))[:DOCUMENTS]
