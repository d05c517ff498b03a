"""How things are timed against each other: in turn, in one run."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def in_turn(rounds: int, *works: Callable[[int], Any]) -> list[list[float]]:
    """Time some things alternately, and leave the first rounds out; seconds."""
    times: list[list[float]] = [[] for _ in works]
    for number in range(rounds):
        for work, kept in zip(works, times, strict=True):
            started = time.perf_counter()
            work(number)
            kept.append(time.perf_counter() - started)
    warm = min(10, rounds // 4)
    return [kept[warm:] for kept in times]


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Median, and the tenth and ninetieth percentile, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=10)
    return {
        "p10": round(cuts[0] * 1000, 2),
        "median": round(statistics.median(seconds) * 1000, 2),
        "p90": round(cuts[-1] * 1000, 2),
    }


def ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """Ratio of the medians."""
    return round(statistics.median(a) / statistics.median(b), 2)


def progress(message: str) -> None:
    """One line on stderr."""
    print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)
