"""Reciprocal rank fusion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grandbo.fusion import fuse

_ranking = st.lists(st.integers(0, 50), unique=True, max_size=25)


class TestFuse:
    def test_an_item_of_both_lists_goes_before_one_of_either(self) -> None:
        """Agreement of the signals counts for more than the first place in one of them."""
        assert ["b", "a", "c"] == [item for item, _ in fuse([["a", "b"], ["b", "c"]], k=60, limit=5)]

    def test_ties_break_by_the_item(self) -> None:
        """Equal scores have one order, whatever list came first."""
        assert fuse([["a"], ["b"]], k=60, limit=5) == fuse([["b"], ["a"]], k=60, limit=5)

    @given(st.lists(_ranking, min_size=1, max_size=3), st.integers(1, 20))
    def test_every_item_is_there_once_best_first_within_the_limit(self, lists: list[list[int]], limit: int) -> None:
        """The union of the lists, each item once, by falling score, cut to the limit."""
        fused = fuse(lists, k=60, limit=limit)
        scores = [score for _, score in fused]

        assert min(limit, len({item for ranking in lists for item in ranking})) == len(fused)
        assert sorted(scores, reverse=True) == scores
        assert len({item for item, _ in fused}) == len(fused)
