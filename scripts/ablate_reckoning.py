"""The two lists and their fusion, reckoned from what is stored by the rules of recall: a rule can be changed there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scripts.ablate_corpus import Asked, Corpus, Numbers, Vectors

FLOOR_BP = 200
ALONE_FLOOR_BP = 5_000


class Listed(NamedTuple):
    """
    One list, best first.

    `measure` is a score of words, or a distance; `shared` is the covered part of the topic's weight, 0 to 1.
    """

    entries: list[int]
    measure: list[float]
    shared: list[float]


@dataclass(frozen=True, slots=True)
class Lists:
    """Both lists of a topic with their gates in force."""

    words: Listed
    meaning: Listed


def lists_of(corpus: Corpus, asked: Asked, candidates: int = 25) -> Lists:
    """Both lists, as recall makes them."""
    meaning = meaning_list(corpus, asked.vector, candidates)
    is_alone = corpus.is_embedded and not meaning.entries
    floor = ALONE_FLOOR_BP if is_alone else FLOOR_BP
    return Lists(words_list(corpus, dict.fromkeys(asked.terms, 1.0), floor, candidates), meaning)


def words_list(corpus: Corpus, topic: dict[str, float], floor_bp: int, candidates: int) -> Listed:
    """BM25 over the postings; each term of the topic counts as often as it is given to."""
    count = len(corpus.documents)
    score, shared = np.zeros(count), np.zeros(count)
    mass = 0.0
    for term, times in topic.items():
        entries, weights = corpus.postings.get(term, _NONE)
        rarity = times * _rarity(len(entries), count)
        mass += rarity
        score[entries] += rarity * weights
        shared[entries] += rarity
    passed = np.flatnonzero((shared > 0) & (shared * 10_000 >= mass * floor_bp))
    best = passed[np.lexsort((passed, -score[passed]))][:candidates]
    return Listed(best.tolist(), score[best].tolist(), (shared[best] / max(mass, 1)).tolist())


def distances(corpus: Corpus, vector: Vectors) -> Vectors:
    """Of each entry its nearest window's cosine distance; 2 where it has none."""
    found = np.full(len(corpus.documents), 2, np.float32)
    np.minimum.at(found, corpus.owner, 1 - corpus.windows @ vector)
    return found


def meaning_list(corpus: Corpus, vector: Vectors, candidates: int) -> Listed:
    """The nearest within the cutoff."""
    return nearest(distances(corpus, vector), corpus.cutoff, candidates)


def nearest(distance: Vectors, cutoff: float, candidates: int) -> Listed:
    """The nearest within a cutoff, of distances that are given."""
    near = np.flatnonzero(distance < cutoff)
    best = near[np.lexsort((near, distance[near]))][:candidates]
    return Listed(best.tolist(), distance[best].tolist(), [0.0] * len(best))


def fused(lists: list[tuple[Listed, list[float]]], k: float) -> list[int]:
    """Reciprocal rank fusion; each entry of a list with its weight."""
    scores: dict[int, float] = {}
    for listed, weights in lists:
        for rank, (entry, weight) in enumerate(zip(listed.entries, weights, strict=True), start=1):
            scores[entry] = scores.get(entry, 0.0) + weight / (k + rank)
    return sorted(scores, key=lambda entry: (-scores[entry], entry))


def even(listed: Listed, weight: float = 1.0) -> list[float]:
    """The same weight for all of a list."""
    return [weight] * len(listed.entries)


def _rarity(n: int, whole: int) -> int:
    return max(1, round(1000 * math.log(1 + (whole - n + 0.5) / (n + 0.5))))


_NONE: tuple[Numbers, Numbers] = (np.array([], np.int64), np.array([], np.int64))
