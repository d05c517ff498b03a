"""Reciprocal rank fusion: ranks of several lists become one order. Pure, and the only place that knows the formula."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)

# What lies at a right angle to the topic, or beyond, is next to not near; not nothing, so that its rank still counts.
_LEAST_NEARNESS = 0.001


@dataclass(frozen=True, slots=True)
class Fused(Generic[Item]):
    """An item, its score, and the part of it that each list gave; None for a list that does not hold the item."""

    item: Item
    score: float
    parts: tuple[float | None, ...]


def fuse(rankings: Sequence[Sequence[tuple[Item, float]]], *, k: int, emphasis: int, limit: int) -> list[Fused[Item]]:
    """
    Fuse rankings of items and their measures, best first, into at most `limit` items.

    A list that holds an item gives it 1 / (k + rank), ranks from 1, times as much as the item stands out of that list:
    its measure over the mean of the list's, to the power `emphasis`. With 0 the ranks decide alone. Ties break by the
    item itself, so the same lists always give the same order.

    Args:
        rankings: a measure is above 0, and larger is better.
    """
    parts: dict[Item, list[float | None]] = {}
    for place, ranking in enumerate(rankings):
        weights = _standing_out([measure for _, measure in ranking], emphasis)
        for rank, ((item, _), weight) in enumerate(zip(ranking, weights, strict=True), start=1):
            parts.setdefault(item, [None] * len(rankings))[place] = weight / (k + rank)
    fused = [Fused(item, sum(part for part in given if part), tuple(given)) for item, given in parts.items()]
    return sorted(fused, key=lambda found: (-found.score, found.item))[:limit]


def nearness(distance: float) -> float:
    """A cosine distance as a measure: the cosine, never below a thousandth."""
    return max(1.0 - distance, _LEAST_NEARNESS)


def _standing_out(measures: Sequence[float], emphasis: int) -> Iterable[float]:
    if not measures:
        return []
    # Exact sums and plain products: the same on every machine, which a power need not be.
    mean = math.fsum(measures) / len(measures)
    return [math.prod([measure / mean] * emphasis) for measure in measures]
