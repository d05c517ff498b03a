"""Reciprocal rank fusion: ranks of several lists become one order. Pure, and the only place that knows the formula."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item", bound=Hashable)

# What lies at a right angle to the topic, or beyond, is next to not near; not nothing, so that its rank still counts.
_LEAST_COSINE = 0.001


class Fused(NamedTuple, Generic[Item]):
    """An item, its score, and the part of it that each list gave; None for a list that does not hold the item."""

    item: Item
    score: float
    parts: Sequence[float | None]


def fuse(rankings: Sequence[Sequence[tuple[Item, float]]], *, k: int, emphasis: int, limit: int) -> list[Fused[Item]]:
    """
    Fuse rankings of items and their measures, best first, into at most `limit` items.

    A list that holds an item gives it 1 / (k + rank), ranks from 1, times as much as the item stands out of that list:
    its measure over the mean of the list's, to the power `emphasis`. With 0 the ranks decide alone. Ties break by the
    item itself, so the same lists always give the same order.

    Args:
        rankings: a measure is above 0, and larger is better.
    """
    scores: dict[Item, float] = {}
    parts: dict[Item, list[float | None]] = {}
    for place, ranking in enumerate(rankings):
        weights = _standing_out([measure for _, measure in ranking], emphasis)
        for rank, ((item, _), weight) in enumerate(zip(ranking, weights, strict=True), start=1):
            part = weight / (k + rank)
            scores[item] = scores.get(item, 0.0) + part
            parts.setdefault(item, [None] * len(rankings))[place] = part
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
    return [Fused(item, score, parts[item]) for item, score in best]


def nearness(distance: float) -> float:
    """
    A cosine distance as a measure: the cosine, to the power of one and a half.

    Cosines of a list lie closer together than its scores by words do; the power draws them apart.
    """
    cosine = max(1.0 - distance, _LEAST_COSINE)
    # A root is the same on every machine, which another power need not be.
    return cosine * math.sqrt(cosine)


def _standing_out(measures: Sequence[float], emphasis: int) -> Sequence[float]:
    """How far each stands out of them all, to the power of the emphasis."""
    weights = [1.0] * len(measures)
    if measures and emphasis:
        # An exact sum and plain products: the same on every machine, which a power need not be.
        mean = math.fsum(measures) / len(measures)
        over_mean = [measure / mean for measure in measures]
        for _ in range(emphasis):
            weights = [weight * ratio for weight, ratio in zip(weights, over_mean, strict=True)]
    return weights
