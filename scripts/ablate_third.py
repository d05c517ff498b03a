"""What is tried beside the two lists: titles' own vectors otherwise, and token vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scripts.ablate_corpus import Vectors
from scripts.ablate_reckoning import Measured, Reckoner, fused_scores, in_use
from scripts.ablate_tokens import LateInteraction

from grandbo.fusion import fuse, nearness

Order = Callable[[str], list[int]]
_POWERS = (1, 2)


def third_orders(reckoner: Reckoner, tokens: LateInteraction | None) -> Iterator[tuple[str, Order]]:
    """Every variant by its name; those of token vectors where they are given."""
    untitled = Reckoner(reckoner.corpus, titled=False)
    yield "titles have no vectors", partial(_of_lists, untitled)
    yield "the title is a window like the others", partial(_title_a_window, untitled)
    for weight in (0.25, 0.5):
        yield f"the nearest titles as a third list, weight {weight}", partial(_titles_a_list, untitled, weight)
    if tokens is None:
        return
    yield "late interaction as a third list, by ranks", partial(_late, reckoner, tokens, "", 0, 1.0)
    for power in _POWERS:
        for weight in (0.5, 1.0):
            name = f"late interaction as a third list, power {power}, weight {weight}"
            yield name, partial(_late, reckoner, tokens, "", power, weight)
    for form in ("mean of 2", "mean of 4", "mean of 8", "1 bit"):
        name = f"late interaction as a third list, {form}, power 2, weight 0.5"
        yield name, partial(_late, reckoner, tokens, form, 2, 0.5)
    name = "late interaction as a third list, titles have no vectors, power 2, weight 0.5"
    yield name, partial(_late, untitled, tokens, "", 2, 0.5)


def _title_distance(reckoner: Reckoner, name: str) -> Vectors:
    distance: Vectors = 1 - reckoner.corpus.titles @ reckoner.corpus.topics[name].vector
    return distance


def _of_lists(reckoner: Reckoner, name: str) -> list[int]:
    found = reckoner.lists(name)
    return in_use(found.words, found.meaning)


def _title_a_window(reckoner: Reckoner, name: str) -> list[int]:
    asked = reckoner.corpus.topics[name]
    nearest = np.minimum(reckoner.distances(asked.vector), _title_distance(reckoner, name))
    found = reckoner.lists_of(asked, nearest)
    return in_use(found.words, found.meaning)


def _titles_a_list(reckoner: Reckoner, weight: float, name: str) -> list[int]:
    asked = reckoner.corpus.topics[name]
    titles = reckoner.lists_of(asked, _title_distance(reckoner, name)).meaning
    return _with_third(reckoner, name, [(entry, nearness(distance)) for entry, distance in titles], 2, weight)


def _late(reckoner: Reckoner, tokens: LateInteraction, form: str, power: int, weight: float, name: str) -> list[int]:
    near = tokens.of(name)[form]
    ordered = sorted(near, key=lambda entry: (-near[entry], entry))
    third = [(entry, max(near[entry], 0.001) ** max(1, power)) for entry in ordered]
    return _with_third(reckoner, name, third, 2 if power else 0, weight)


def _with_third(reckoner: Reckoner, name: str, third: Measured, emphasis: int, weight: float) -> list[int]:
    found = reckoner.lists(name)
    scores = fused_scores(found)
    for item in fuse([third], k=60, emphasis=emphasis, limit=1_000):
        scores[item.item] = scores.get(item.item, 0.0) + weight * item.score
    return sorted(scores, key=lambda entry: (-scores[entry], entry))
