"""The two lists and their fusion, reckoned from what is stored by the rules of recall: a rule can be changed there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scripts.ablate_corpus import Asked, Corpus, Numbers, Vectors

from grandbo.fusion import fuse, nearness
from grandbo.memory.policy import DEFAULT_POLICY

Measured = list[tuple[int, float]]
Fusing = Callable[[Measured, Measured], list[int]]


@dataclass(frozen=True, slots=True)
class Lists:
    """Both lists of a topic, best first, gates in force: by words with scores, by meaning with distances; and how much
    of the topic's weight the first by words has, 0 to 1."""

    words: Measured
    meaning: Measured
    covered: float


@dataclass(slots=True)
class Reckoner:
    """
    Lists of a corpus' topics, kept once made.

    Attributes:
        windows: which windows count; all unless given.
        titled: whether an entry that meaning lists counts with its title where that is nearer.
    """

    corpus: Corpus
    windows: npt.NDArray[np.bool_] | None = None
    titled: bool = True
    _made: dict[tuple[str, int], Lists] = field(default_factory=dict)

    def lists(self, name: str, candidates: int = DEFAULT_POLICY.candidates) -> Lists:
        """Both lists of a topic, as recall makes them."""
        if (name, candidates) not in self._made:
            asked = self.corpus.topics[name]
            self._made[name, candidates] = self.lists_of(asked, self.distances(asked.vector), candidates)
        return self._made[name, candidates]

    def candidates(self, name: str) -> list[int]:
        """The entries of either list, in order."""
        found = self.lists(name)
        return sorted({entry for entry, _ in (*found.words, *found.meaning)})

    def lists_of(self, asked: Asked, distance: Vectors, candidates: int = DEFAULT_POLICY.candidates) -> Lists:
        """Both lists of a topic whose distances are given."""
        meaning = _first(distance, np.flatnonzero(distance < self.corpus.cutoff), candidates)
        if self.titled:
            title = 1 - self.corpus.titles @ asked.vector
            nearer = [(entry, min(apart, float(title[entry]))) for entry, apart in meaning]
            meaning = sorted(nearer, key=lambda pair: (pair[1], pair[0]))
        is_alone = self.corpus.is_embedded and not meaning
        floor = DEFAULT_POLICY.lexical_alone_floor_bp if is_alone else DEFAULT_POLICY.lexical_floor_bp
        words, covered = self._words(asked, floor, candidates)
        return Lists(words, meaning, covered)

    def distances(self, vector: Vectors) -> Vectors:
        """Of each entry its nearest window's cosine distance; 2 where it has none."""
        found = np.full(len(self.corpus.documents), 2, np.float32)
        distance = 1 - self.corpus.windows @ vector
        counts = slice(None) if self.windows is None else self.windows
        np.minimum.at(found, self.corpus.owner[counts], distance[counts])
        return found

    def rarity(self, term: str) -> int:
        """How rare a term is, in thousandths."""
        return _rarity(len(self.corpus.postings.get(term, _NONE)[0]), len(self.corpus.documents))

    def _words(self, asked: Asked, floor_bp: int, candidates: int) -> tuple[Measured, float]:
        """BM25 over the postings, and the covered share of the best."""
        whole = len(self.corpus.documents)
        score, shared = np.zeros(whole, np.int64), np.zeros(whole, np.int64)
        mass = 0
        for term in asked.terms:
            entries, weights = self.corpus.postings.get(term, _NONE)
            rarity = _rarity(len(entries), whole)
            mass += rarity
            score[entries] += rarity * weights
            shared[entries] += rarity
        passed = np.flatnonzero((shared > 0) & (shared * 10_000 >= mass * floor_bp))
        found = [(entry, -low) for entry, low in _first(-score, passed, candidates)]
        return found, float(shared[found[0][0]] / mass) if found else 0.0


def in_use(words: Measured, meaning: Measured, k: int = 60, emphasis: int = 2) -> list[int]:
    """The product's own fusion."""
    return list(_fused(words, meaning, k, emphasis))


def fused_scores(found: Lists) -> dict[int, float]:
    """The score of each entry as the product fuses, best first."""
    return _fused(found.words, found.meaning, 60, 2)


def _fused(words: Measured, meaning: Measured, k: int, emphasis: int) -> dict[int, float]:
    near = [(entry, nearness(distance)) for entry, distance in meaning]
    return {found.item: found.score for found in fuse([words, near], k=k, emphasis=emphasis, limit=1_000)}


def weighted(lists: list[tuple[Measured, list[float]]], k: int = 60) -> list[int]:
    """Reciprocal rank fusion with a weight for each place of each list."""
    scores: dict[int, float] = {}
    for listed, weights in lists:
        for rank, ((entry, _), weight) in enumerate(zip(listed, weights, strict=True), start=1):
            scores[entry] = scores.get(entry, 0.0) + weight / (k + rank)
    return sorted(scores, key=lambda entry: (-scores[entry], entry))


def _first(measure: npt.NDArray[np.generic], among: Numbers, count: int) -> Measured:
    """The lowest by a measure, then by entry."""
    best = among[np.lexsort((among, measure[among]))][:count]
    return [(int(entry), float(measure[entry])) for entry in best]


def _rarity(n: int, whole: int) -> int:
    return max(1, round(1000 * math.log(1 + (whole - n + 0.5) / (n + 0.5))))


_NONE: tuple[Numbers, Numbers] = (np.array([], np.int64), np.array([], np.int64))
