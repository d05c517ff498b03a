"""
Grandbo, its peers and the floor, measured against each other: recall, acknowledged writes, and the log alone.

All are on one server and hold the same texts with the same vectors. They are measured in turn, three times, and each
time another one begins, so that a machine that grows slower grows slower for all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scripts.bench_timing import progress
from scripts.peers.protocol import Text, Vectors, save_texts
from scripts.peers.running import Child, Ground

from grandbo.embedding import windows
from grandbo.embedding.local import CUTOFF_BP

RUNS = 3
K = 10
WARM = 5
WRITERS = (1, 4)
MEMORIES = ("grandbo", "floor", "langgraph", "langchain", "llamaindex", "pghybrid", "mem0", "memgres")
LOGS = ("grandbo", "eventsourcing")
# Two distances that differ by less are one: the server and we add up in another order.
_SAME = 1e-5

Figures = dict[str, Any]
Draw = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured; without writes neither they nor the log."""

    sizes: tuple[int, ...]
    topics: int
    writes: int
    appends: int

    @classmethod
    def of(cls, sizes: Sequence[int], share: int = 1, *, writing: bool = True) -> Plan:
        """The usual plan, or a share of it."""
        writes = 60 // share if writing else 0
        return cls(tuple(sorted(size // share for size in sizes)), 40 // share, writes, 4_000 // share)

    def writes_of(self, writers: int) -> int:
        """How many are written by so many writers together, in one run."""
        return self.writes * writers


class Comparison:
    """One server with everybody on it, and the files that they are all filled from."""

    def __init__(
        self, folder: Path, plan: Plan, finding: Callable[[int], Figures], sentence: Callable[[int], str], draw: Draw
    ) -> None:
        self.folder, self.plan, self._draw = folder, plan, draw
        self._finding = finding
        self.topics = self.drawn([Text(f"t{number}", sentence(9), _NOTHING) for number in range(plan.topics + WARM)])
        save_texts(folder / "topics", self.topics)
        self.versions: dict[str, dict[str, str]] = {}

    # -- recall and writes ---------------------------------------------------------------------------------------------

    def memories(self, ground: Ground, names: Sequence[str] = MEMORIES) -> Figures:
        """Recall at every size, then, where they are wanted, writes into what is the largest by then."""
        plan = self.plan
        written = RUNS * (sum(map(plan.writes_of, WRITERS)) + plan.writes_of(1))
        entries = self._saved("entries", plan.sizes[-1] + written)
        vectors = np.stack([entry.vector for entry in entries[: plan.sizes[-1]]])
        children = {name: self.started(ground, name, vectors.shape[1]) for name in names}
        recalls: Figures = {}
        for start, stop in pairwise((0, *plan.sizes)):
            self._fill(children, start, stop)
            ground.settle()
            recalls[str(stop)] = self._recalls(children, vectors[:stop])
        return {"recall": recalls} | ({"write": self._writes(children, plan.sizes[-1])} if plan.writes else {})

    def started(
        self, ground: Ground, name: str, dimensions: int, place: str = "speed", *, apart: bool = False
    ) -> Child:
        """One of them, on a database of its own."""
        child, self.versions[name] = ground.start(name, dimensions, place=place, apart=apart)
        return child

    def _fill(self, children: dict[str, Child], start: int, stop: int) -> None:
        """Two at a time: nobody is timed here. What reads the rows of another comes after it."""
        path = str(self.folder / "entries")

        def fill(name: str) -> None:
            children[name]("fill", path=path, start=start, stop=stop)
            progress(f"{stop:,} entries: {name} is filled")

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(fill, (name for name in children if name != "floor")))
        if "floor" in children:
            fill("floor")

    def _recalls(self, children: dict[str, Child], vectors: Vectors) -> Figures:
        path, topics = self.folder / "topics", self.topics[: self.plan.topics]
        figures = asked_in_turn(children, path, len(topics), WARM, f"{len(vectors):,} entries")
        for name, found in how_exact(children, path, topics, vectors).items():
            figures[name] |= found
        return figures

    def _writes(self, children: dict[str, Child], first: int) -> Figures:
        path, plan = str(self.folder / "entries"), self.plan
        taken: dict[str, dict[str, list[Figures]]] = {name: {} for name in children}
        for run in range(RUNS):
            at = first
            ways = [(str(writers), writers, "write") for writers in WRITERS]
            for way, writers, verb in [*ways, ("with_vector", 1, "write_with_vector")]:
                span = plan.writes_of(writers)
                start = at + run * span
                at += RUNS * span
                for name in turned(children, run):
                    if verb == "write_with_vector" and name != "grandbo":
                        continue
                    if verb == "write_with_vector":
                        # What was written before it has no vectors yet, and is not what is measured.
                        children[name]("fill", path=path, start=0, stop=0)
                    found = children[name](
                        "write", path=path, start=start, stop=start + span, writers=writers, way=verb
                    )
                    taken[name].setdefault(way, []).append(found)
                    progress(f"{name} was written to by {writers}, run {run + 1} of {RUNS}")
        return {name: {way: _written(runs) for way, runs in ways.items()} for name, ways in taken.items()}

    # -- the log alone -------------------------------------------------------------------------------------------------

    def logs(self, ground: Ground, names: Sequence[str] = LOGS) -> Figures:
        """Appends one by one and in batches, and reading it all; for Grandbo also verifying and rebuilding."""
        plan = self.plan
        spans = [plan.writes_of(writers) for writers in WRITERS]
        entries = self._saved("events", RUNS * (sum(spans) + plan.appends), first=10_000_000)
        path = str(self.folder / "events")
        children = {name: self.started(ground, name, len(entries[0].vector), "log") for name in names}
        taken: dict[str, dict[str, list[Figures]]] = {name: {} for name in names}
        at = 0
        for run in range(RUNS):
            for writers, span in zip(WRITERS, spans, strict=True):
                for name in turned(children, run):
                    found = children[name]("write", path=path, start=at, stop=at + span, writers=writers, way="append")
                    taken[name].setdefault(str(writers), []).append(found)
                at += span
            for name in turned(children, run):
                found = children[name]("batch", path=path, start=at, stop=at + plan.appends)
                taken[name].setdefault("batch", []).append(found)
                progress(f"{name} was appended to, run {run + 1} of {RUNS}")
            at += plan.appends
        figures: Figures = {
            name: {way: _written(runs) if way != "batch" else _rate(runs) for way, runs in ways.items()}
            for name, ways in taken.items()
        }
        for name in names:
            for way in ("read", "verify", "rebuild") if name == "grandbo" else ("read",):
                figures[name][way] = _rate([children[name]("time_of", way=way) for _ in range(RUNS)])
                progress(f"{name}: {way}")
        return figures

    def _saved(self, name: str, count: int, *, first: int = 0) -> list[Text]:
        made = self.made(name, count, first=first)
        save_texts(self.folder / name, made)
        return made

    def made(self, name: str, count: int, *, first: int = 0) -> list[Text]:
        """Entries of one window each, so that each has one vector for everybody."""
        entries: list[Text] = []
        while len(entries) < count:
            fields = self._finding(first + len(entries))
            fields = {key: fields[key] for key in ("title", "summary", "body", "service", "source_url")}
            cut = windows(fields["title"], f"{fields['summary']}\n\n{fields['body']}")
            if len(cut) == 1:
                entries.append(Text(f"{name}-{first + len(entries)}", cut[0].text, _NOTHING, fields))
        return self.drawn(entries)

    def drawn(self, texts: Sequence[Text]) -> list[Text]:
        """Each with the vector of its text."""
        vectors = self._draw([each.text for each in texts])
        return [replace(each, vector=vector) for each, vector in zip(texts, vectors, strict=True)]


_NOTHING: Vectors = np.zeros(0, np.float32)


def asked_in_turn(children: dict[str, Child], path: Path, count: int, warm: int, told: str) -> Figures:
    """Times of everybody, each asked the first topics of a file, and before that those behind them, untimed."""
    taken: dict[str, list[list[float]]] = {name: [] for name in children}
    for run in range(RUNS):
        for name in turned(children, run):
            ask = children[name]
            ask("recall", path=str(path), start=count, stop=count + warm, k=K)
            taken[name].append(ask("recall", path=str(path), start=0, stop=count, k=K)["seconds"])
            progress(f"{told}: {name} was asked, run {run + 1} of {RUNS}")
    return {name: over_runs(each) for name, each in taken.items()}


def how_exact(children: dict[str, Child], path: Path, topics: Sequence[Text], vectors: Vectors) -> dict[str, Figures]:
    """How much of the exact lists each finds, of the topics at the start of a file; the vectors are their tenant's."""

    def found(name: str, way: str) -> list[list[str]]:
        answers: list[list[str]] = children[name]("recall", path=str(path), start=0, stop=len(topics), k=K, way=way)[
            "ids"
        ]
        return answers

    figures: dict[str, Figures] = {}
    for name in children:
        cutoff = CUTOFF_BP / 10_000 if name == "grandbo" else None
        figures[name] = {"exact": exactness(vectors, topics, found(name, "nearest"), cutoff)}
    if "grandbo" in children:
        figures["grandbo"]["of_exact"] = shared(found("grandbo", "exact"), found("grandbo", "recall"))
    return figures


def turned(names: dict[str, Child], run: int) -> list[str]:
    """Everybody, each run begun by another."""
    order = list(names)
    start = run * max(1, len(order) // RUNS) % len(order)
    return order[start:] + order[:start]


def over_runs(runs: Sequence[Sequence[float]]) -> Figures:
    """Of each run the median and the 95th of a hundred, in ms: the median over the runs, with the least and most."""
    return {
        "p50": _spread([statistics.median(run) * 1000 for run in runs]),
        "p95": _spread([float(np.percentile(run, 95)) * 1000 for run in runs]),
    }


def exactness(
    vectors: Vectors, topics: Sequence[Text], found: Sequence[Sequence[str]], cutoff: float | None = None
) -> float:
    """
    The share of the first k by exact cosine that is in what was found, over all topics.

    Args:
        vectors: of the entries, in the order of the numbers that end their ids.
        cutoff: a distance from which on nothing is wanted.
    """
    wanted = hits = 0
    for topic, ids in zip(topics, found, strict=True):
        distances = 1 - vectors @ topic.vector
        nearest = np.sort(distances)[:K]
        if cutoff is not None:
            nearest = nearest[nearest < cutoff]
        wanted += len(nearest)
        if len(nearest):
            numbers = [int(name.rpartition("-")[2]) for name in dict.fromkeys(ids)]
            hits += sum(float(distances[number]) <= nearest[-1] + _SAME for number in numbers)
    return round(hits / wanted, 4) if wanted else 1.0


def shared(wanted: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    """The share of what is wanted that was found, over all topics."""
    hits = sum(len(set(want) & set(have)) for want, have in zip(wanted, found, strict=True))
    return round(hits / max(1, sum(map(len, wanted))), 4)


def _written(runs: Sequence[Figures]) -> Figures:
    rates = [len(run["seconds"]) / run["together"] for run in runs]
    return {**over_runs([run["seconds"] for run in runs]), "per_second": _spread(rates)}


def _rate(runs: Sequence[Figures]) -> Figures:
    return {"events": runs[-1]["events"], "per_second": _spread([run["events"] / run["seconds"] for run in runs])}


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        "median": round(statistics.median(values), 2),
        "low": round(min(values), 2),
        "high": round(max(values), 2),
    }
