"""Reciprocal rank fusion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grandbo.fusion import fuse, nearness

Ranking = list[tuple[int, float]]


def _ranking(pairs: dict[int, float]) -> Ranking:
    return sorted(pairs.items(), key=lambda pair: (-pair[1], pair[0]))


_rankings = st.lists(
    st.dictionaries(st.integers(0, 50), st.floats(0.001, 1e6), max_size=25).map(_ranking), min_size=1, max_size=3
)
_emphasis = st.integers(0, 4)


class TestFuse:
    def test_an_item_of_both_lists_goes_before_one_of_either(self) -> None:
        """Agreement of the signals counts for more than the first place in one of them."""
        words, meaning = [("a", 3.0), ("b", 2.9)], [("b", 0.6), ("c", 0.5)]

        assert ["b", "a", "c"] == [found.item for found in fuse([words, meaning], k=60, emphasis=2, limit=5)]

    def test_ties_break_by_the_item(self) -> None:
        """Equal scores have one order, whatever list came first."""
        fused = [
            fuse(lists, k=60, emphasis=2, limit=5)
            for lists in ([[("a", 1.0)], [("b", 9.0)]], [[("b", 9.0)], [("a", 1.0)]])
        ]

        assert ["a", "b"] == [found.item for found in fused[0]] == [found.item for found in fused[1]]

    def test_what_stands_out_of_its_list_goes_before_the_first_of_an_even_one(self) -> None:
        """With an emphasis the measures count, against the mean of their own list; without one, ranks alone."""
        words, meaning = [("a", 90.0), ("b", 20.0), ("c", 10.0)], [("d", 0.51), ("e", 0.5), ("c", 0.49)]

        assert ["a", "d"] == [found.item for found in fuse([words, meaning], k=60, emphasis=2, limit=2)]
        assert ["c", "a"] == [found.item for found in fuse([words, meaning], k=60, emphasis=0, limit=2)]

    def test_without_emphasis_a_score_is_the_sum_of_the_reciprocal_ranks(self) -> None:
        """As in answers of before there was one, to the last bit."""
        fused = fuse([[("a", 7.0), ("b", 1.0)], [("c", 0.9), ("b", 0.8)]], k=60, emphasis=0, limit=1)

        assert (1 / 62 + 1 / 62, [1 / 62, 1 / 62]) == (fused[0].score, fused[0].parts)

    @given(_rankings, _emphasis, st.integers(1, 20))
    def test_every_item_is_there_once_best_first_within_the_limit(
        self, lists: list[Ranking], emphasis: int, limit: int
    ) -> None:
        """The union of the lists, each item once, by falling score, cut to the limit."""
        fused = fuse(lists, k=60, emphasis=emphasis, limit=limit)
        scores = [found.score for found in fused]

        assert min(limit, len({item for ranking in lists for item, _ in ranking})) == len(fused)
        assert sorted(scores, reverse=True) == scores
        assert len({found.item for found in fused}) == len(fused)

    @given(_rankings, _emphasis)
    def test_the_parts_add_up_to_the_score_and_tell_the_lists(self, lists: list[Ranking], emphasis: int) -> None:
        """A list that holds an item gave it something, one that does not gave it nothing."""
        for found in fuse(lists, k=60, emphasis=emphasis, limit=100):
            holds = [found.item in dict(ranking) for ranking in lists]

            assert holds == [part is not None and part > 0 for part in found.parts]
            assert found.score == sum(part for part in found.parts if part)

    @given(_rankings.map(lambda lists: lists[:1]), _emphasis)
    def test_a_list_alone_keeps_its_order(self, lists: list[Ranking], emphasis: int) -> None:
        """What is better by its measure never comes out behind what is worse."""
        fused = fuse(lists, k=60, emphasis=emphasis, limit=100)

        assert [item for item, _ in lists[0]] == [found.item for found in fused]

    @given(_rankings, _emphasis, st.integers(1, 10))
    def test_the_unit_of_a_measure_changes_nothing(self, lists: list[Ranking], emphasis: int, doublings: int) -> None:
        """A list counts by how its measures compare with each other, whatever they are measured in."""
        other = [[(item, measure * 2**doublings) for item, measure in ranking] for ranking in lists]

        assert fuse(lists, k=60, emphasis=emphasis, limit=100) == fuse(other, k=60, emphasis=emphasis, limit=100)


class TestNearness:
    def test_what_is_nearer_measures_more(self) -> None:
        """From the same to the opposite, as far as a right angle; beyond, all is as little, and never nothing."""
        distances = [0.0, 0.2, 0.5, 0.64, 0.99, 1.0, 2.0]
        measures = [nearness(distance) for distance in distances]

        assert 1.0 == measures[0]
        assert sorted(measures[:6], reverse=True) == measures[:6]
        assert 6 == len(set(measures[:6]))
        assert 0 < measures[5] == measures[6]

    def test_it_is_the_cosine_to_the_power_of_one_and_a_half(self) -> None:
        """Twice as near measures nearly three times as much."""
        assert 0.125 == nearness(0.75)
