"""What must not get slower: when a ratio counts as beyond its limit."""

from __future__ import annotations

from collections.abc import Callable

from scripts.bench_quick import LIMITS, Quick, judged


def measuring(**ratios: list[float]) -> Callable[[str], float]:
    """A measure that gives one ratio after another."""
    return lambda name: ratios[name].pop(0)


class TestLimits:
    def test_within_the_limits_nothing_is_measured_twice(self) -> None:
        """A ratio at its limit is within it."""
        found = judged(measuring(recall=[3.0], write=[16.0]), {"recall": 12.0, "write": 16.0})

        assert ({"recall": 3.0, "write": 16.0}, []) == (found["ratios"], found["beyond"])

    def test_what_is_beyond_twice_counts(self) -> None:
        """And is told with the smaller of the two."""
        found = judged(measuring(recall=[3.0], write=[40.0, 16.1]), {"recall": 12.0, "write": 16.0})

        assert ["write"] == found["beyond"]
        assert 16.1 == found["ratios"]["write"]

    def test_what_is_beyond_once_does_not(self) -> None:
        """Something else had the machine in that moment."""
        found = judged(measuring(recall=[99.0, 3.0]), {"recall": 12.0})

        assert [] == found["beyond"]

    def test_every_limit_has_its_measure(self) -> None:
        """None is checked that is not measured."""
        assert all(hasattr(Quick, f"_{name}") for name in LIMITS)
