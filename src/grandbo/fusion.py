"""Reciprocal rank fusion: ranks of several lists become one order. Pure, and the only place that knows the formula."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


def fuse(rankings: Iterable[Sequence[Item]], *, k: int, limit: int) -> list[tuple[Item, float]]:
    """
    Fuse rankings, best first, into at most `limit` pairs of item and score.

    An item scores the sum of 1 / (k + rank) over the lists that hold it, ranks from 1. Ties break by the item itself,
    so the same lists always give the same order.
    """
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (k + rank)
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return ordered[:limit]
