"""What is tried with the words: those of the best answers, phrases, words of the title, and the topic in parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from scripts.ablate_corpus import Asked
from scripts.ablate_reckoning import Measured, Reckoner, fused_scores, in_use

from grandbo.embedding import Embedder
from grandbo.text import terms

Order = Callable[[str], list[int]]

_CLAUSE = re.compile(
    r"[,;:.!?()\[\]\"\u2013\u2014]+\s|\s+-\s+|\n+|\s+(?:when|because|after|while|but|if|and|which|due to|since)\s+",
    re.IGNORECASE,
)


class _Said(NamedTuple):
    """The terms of a title, and the pairs of terms that stand side by side in title or text."""

    title: frozenset[str]
    pairs: frozenset[tuple[str, str]]


class Words:
    """The terms of a corpus by entry, which the postings do not tell."""

    def __init__(self, reckoner: Reckoner) -> None:
        self.reckoner = reckoner
        self.weights: list[dict[str, int]] = [{} for _ in reckoner.corpus.documents]
        for term, (entries, weights) in reckoner.corpus.postings.items():
            for entry, weight in zip(entries.tolist(), weights.tolist(), strict=True):
                self.weights[entry][term] = weight
        self._said: dict[int, _Said] = {}

    def rarity(self, term: str) -> int:
        """As recall counts it."""
        return self.reckoner.rarity(term)

    def said(self, entry: int) -> _Said:
        """What an entry says, in order."""
        if entry not in self._said:
            row = self.reckoner.corpus.texts[entry]
            title, text = terms(row["title"]), terms(f"{row['summary']}\n{row['body']}")
            pairs = frozenset((*pairwise(title), *pairwise(text)))
            self._said[entry] = _Said(frozenset(title), pairs)
        return self._said[entry]


def word_orders(reckoner: Reckoner, embedder: Embedder) -> Iterator[tuple[str, Order]]:
    """Every variant by its name."""
    words = Words(reckoner)
    for share in (0.1, 0.2, 0.4):
        yield f"words of the 3 best count, {share:.0%}", partial(_feedback, words, 3, share)
    yield "words of the 10 best count, 20%", partial(_feedback, words, 10, 0.2)
    for bonus in (0.5, 1.0):
        yield f"pairs of words as in the topic, + {bonus}", partial(_more, words, _phrases, bonus)
        yield f"words of the topic in the title, + {bonus}", partial(_more, words, _in_title, bonus)
    yield "the topic's clauses besides, weight 0.5", partial(_clauses, reckoner, embedder)
    yield "meaning of the rarer words of the topic", partial(_rarer, words, embedder)


def _feedback(words: Words, count: int, share: float, name: str) -> list[int]:
    """Ten terms of the best answers beside the topic's own, as relevance models have it."""
    reckoner = words.reckoner
    corpus, found = reckoner.corpus, reckoner.lists(name)
    asked = corpus.topics[name]
    worth: defaultdict[str, float] = defaultdict(float)
    for entry, score in list(fused_scores(found).items())[:count]:
        whole = sum(words.weights[entry].values()) or 1
        for term, weight in words.weights[entry].items():
            if term not in asked.terms and 2 <= len(corpus.postings[term][0]) <= len(corpus.documents) / 4:
                worth[term] += score * weight / whole
    chosen = sorted(worth, key=lambda term: (-worth[term] * words.rarity(term), term))[:10]
    mass = sum(worth[term] for term in chosen) or 1
    more = {term: len(asked.terms) * worth[term] / mass * words.rarity(term) for term in chosen}
    scored = []
    for entry, score in found.words:
        added = sum(part * words.weights[entry].get(term, 0) for term, part in more.items())
        scored.append((entry, (1 - share) * score + share * added))
    return in_use(_best_first(scored), found.meaning)


def _more(words: Words, count: Callable[[Words, str, int], int], bonus: float, name: str) -> list[int]:
    found = words.reckoner.lists(name)
    scored = [(entry, score + bonus * 1_000 * count(words, name, entry)) for entry, score in found.words]
    return in_use(_best_first(scored), found.meaning)


def _phrases(words: Words, name: str, entry: int) -> int:
    asked = terms(words.reckoner.corpus.topics[name].text)
    pairs = dict.fromkeys(pairwise(asked))
    said = words.said(entry).pairs
    return sum(min(map(words.rarity, pair)) for pair in pairs if pair in said and pair[0] != pair[1])


def _in_title(words: Words, name: str, entry: int) -> int:
    return sum(map(words.rarity, words.said(entry).title.intersection(words.reckoner.corpus.topics[name].terms)))


def _clauses(reckoner: Reckoner, embedder: Embedder, name: str) -> list[int]:
    asked = reckoner.corpus.topics[name]
    said = [part.strip() for part in _CLAUSE.split(asked.text) if len(part.split()) > 2]
    scores = defaultdict(float, fused_scores(reckoner.lists(name)))
    for part in said if len(said) > 1 else []:
        vector = embedder.embed_topic(part)[: len(asked.vector)]
        clause = Asked(part, tuple(dict.fromkeys(terms(part))), vector, frozenset())
        for entry, score in fused_scores(reckoner.lists_of(clause, reckoner.distances(vector))).items():
            scores[entry] += 0.5 / len(said) * score
    return sorted(scores, key=lambda entry: (-scores[entry], entry))


def _rarer(words: Words, embedder: Embedder, name: str) -> list[int]:
    """Without the 40 % of the topic's words that the most entries have."""
    asked = words.reckoner.corpus.topics[name]
    said = asked.text.split()
    rarity = [max(map(words.rarity, terms(word)), default=0) for word in said]
    least = sorted(rarity)[int(len(said) * 0.4)]
    kept = " ".join(word for word, found in zip(said, rarity, strict=True) if found >= least) or asked.text
    vector = embedder.embed_topic(kept)[: len(asked.vector)]
    found = words.reckoner.lists_of(asked, words.reckoner.distances(vector))
    return in_use(words.reckoner.lists(name).words, found.meaning)


def _best_first(scored: Measured) -> Measured:
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))
