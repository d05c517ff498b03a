"""What is tried: each a way to order the entries of a corpus for a topic."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scripts.ablate_corpus import Asked, Vectors
from scripts.ablate_reckoning import Lists, Measured, Reckoner, in_use, weighted
from scripts.ablate_third import Order, third_orders
from scripts.ablate_tokens import LateInteraction
from scripts.ablate_words import word_orders

from grandbo.embedding import Embedder
from grandbo.text import terms

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
# What a plain BM25 takes where nobody has tuned it.
_K1, _B = 1.5, 0.75


def orders(
    reckoner: Reckoner, embedder: Embedder, tokens: LateInteraction | None = None
) -> Iterator[tuple[str, Order]]:
    """Every variant by its name, the first is what is in use; those of token vectors where they are given."""
    lists = reckoner.lists
    yield "in use: k = 60, emphasis 2, titles", lambda name: in_use(lists(name).words, lists(name).meaning)
    yield "words alone", lambda name: [entry for entry, _ in lists(name).words]
    yield "meaning alone", lambda name: [entry for entry, _ in lists(name).meaning]
    yield "plain BM25", (plain := PlainWords(reckoner)).order
    untitled = Reckoner(reckoner.corpus, titled=False)
    yield "RRF of plain BM25 and meaning", lambda name: _by_rank(plain.listed(name), untitled.lists(name).meaning)
    for k, emphasis in ((60, 0), (20, 0), (10, 0), (5, 0), (60, 1), (60, 3), (60, 4), (30, 2), (20, 2), (10, 2)):
        yield f"k = {k}, emphasis {emphasis}", partial(_fused, reckoner, k, emphasis)
    for candidates in (10, 50):
        yield f"{candidates} + {candidates} candidates", partial(_with_candidates, reckoner, candidates)
    for ratio in (0.8, 1.25, 1.5):
        yield f"words weigh {ratio}", partial(_with_ratio, lists, ratio)
    yield "over the best of the list, not its mean", lambda name: _relative(lists(name), _over_best)
    yield (
        "below the cutoff, not the cosine",
        lambda name: _relative(lists(name), _over_mean, cutoff=reckoner.corpus.cutoff),
    )
    yield "ranks alone, words weigh as they cover", lambda name: _by_coverage(lists(name))
    for count in (1, 2, 4):
        of_each = "first window" if count == 1 else f"first {count} windows"
        yield f"the {of_each} of each", partial(_fused, _first_windows(reckoner, count), 60, 2)
    yield "the topic's sentences apart, the nearest counts", partial(_sentences, reckoner, embedder)
    yield "the topic's first sentence alone", partial(_sentences, reckoner, embedder, first=True)
    yield "the topic moved to the 3 best", partial(_with_feedback, reckoner)
    yield from word_orders(reckoner, embedder)
    yield from third_orders(reckoner, tokens)


def _fused(reckoner: Reckoner, k: int, emphasis: int, name: str) -> list[int]:
    found = reckoner.lists(name)
    return in_use(found.words, found.meaning, k, emphasis)


def _with_candidates(reckoner: Reckoner, candidates: int, name: str) -> list[int]:
    found = reckoner.lists(name, candidates)
    return in_use(found.words, found.meaning)


def _by_rank(*lists: Measured) -> list[int]:
    return weighted([(listed, [1.0] * len(listed)) for listed in lists])


def _near(meaning: Measured, farthest: float = 1.0) -> list[float]:
    return [farthest - distance for _, distance in meaning]


def _over_mean(measures: list[float]) -> list[float]:
    mean = math.fsum(measures) / max(1, len(measures))
    return [(measure / mean) ** 2 for measure in measures]


def _over_best(measures: list[float]) -> list[float]:
    return [(measure / measures[0]) ** 2 for measure in measures]


def _relative(found: Lists, weigh: Callable[[list[float]], list[float]], cutoff: float = 1.0) -> list[int]:
    by_words = weigh([score for _, score in found.words])
    return weighted([(found.words, by_words), (found.meaning, weigh(_near(found.meaning, cutoff)))])


def _with_ratio(lists: Callable[[str], Lists], ratio: float, name: str) -> list[int]:
    found = lists(name)
    by_words = [ratio * weight for weight in _over_mean([score for _, score in found.words])]
    return weighted([(found.words, by_words), (found.meaning, _over_mean(_near(found.meaning)))])


def _by_coverage(found: Lists) -> list[int]:
    even = [1.0] * len(found.meaning)
    return weighted([(found.words, [2 * found.covered] * len(found.words)), (found.meaning, even)])


def _first_windows(reckoner: Reckoner, count: int) -> Reckoner:
    owner = reckoner.corpus.owner
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    number = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
    return Reckoner(reckoner.corpus, number < count)


def _sentences(reckoner: Reckoner, embedder: Embedder, name: str, *, first: bool = False) -> list[int]:
    asked = reckoner.corpus.topics[name]
    said = [part for part in _SENTENCE.split(asked.text) if len(part.split()) > 2] or [asked.text]
    length = len(asked.vector)
    vectors = [embedder.embed_topic(part)[:length] for part in said[: 1 if first else None]]
    if not first:
        vectors.append(asked.vector)
    nearest = np.minimum.reduce([reckoner.distances(vector) for vector in vectors])
    return _of_distances(reckoner, asked, nearest)


def _with_feedback(reckoner: Reckoner, name: str, count: int = 3, share: float = 0.3) -> list[int]:
    asked, corpus = reckoner.corpus.topics[name], reckoner.corpus
    best = _fused(reckoner, 60, 2, name)[:count]
    if not best:
        return best
    similar = corpus.windows @ asked.vector
    nearest = [max(np.flatnonzero(corpus.owner == entry), key=lambda at: similar[at], default=None) for entry in best]
    moved = asked.vector + share * np.mean([corpus.windows[at] for at in nearest if at is not None], axis=0)
    return _of_distances(reckoner, asked, reckoner.distances((moved / np.linalg.norm(moved)).astype(np.float32)))


def _of_distances(reckoner: Reckoner, asked: Asked, distance: Vectors) -> list[int]:
    found = reckoner.lists_of(asked, distance)
    return in_use(found.words, found.meaning)


class PlainWords:
    """BM25 as a textbook has it over title and text: no fields, no tags, no gate, the corpus' own mean length."""

    def __init__(self, reckoner: Reckoner) -> None:
        corpus = reckoner.corpus
        counts = [Counter(terms(f"{row['title']}\n{row['summary']}\n{row['body']}")) for row in corpus.texts]
        self._topics = corpus.topics
        self._length = np.array([count.total() for count in counts], float)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for entry, count in enumerate(counts):
            for term, times in count.items():
                self._postings.setdefault(term, []).append((entry, times))

    def listed(self, name: str, candidates: int = 25) -> Measured:
        """The first by BM25."""
        whole = len(self._length)
        score = np.zeros(whole)
        damping = _K1 * (1 - _B + _B * self._length / self._length.mean())
        for term in self._topics[name].terms:
            if pairs := self._postings.get(term):
                entries, times = np.array(pairs).T
                rarity = math.log(1 + (whole - len(pairs) + 0.5) / (len(pairs) + 0.5))
                score[entries] += rarity * times * (_K1 + 1) / (times + damping[entries])
        best = np.lexsort((np.arange(whole), -score))[:candidates]
        return [(int(entry), float(score[entry])) for entry in best if score[entry] > 0]

    def order(self, name: str) -> list[int]:
        """The same without the scores."""
        return [entry for entry, _ in self.listed(name)]
