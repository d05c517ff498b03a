"""The closure of what rests on what: over every kind of edge, in any order, with an end."""

from __future__ import annotations

import itertools
import random
from uuid import UUID

import pytest

from grandbo.errors import ImpactTooLarge
from grandbo.memory.closure import MEMBER_LIMIT, Closure, Edge

A, B, C, D, E = (UUID(int=number) for number in range(1, 6))


def edge(rests: UUID, on: UUID) -> Edge:
    """One entry cites another."""
    return Edge(rests, on, "evidence")


class TestClosure:
    def test_it_follows_edges_to_their_ends(self) -> None:
        """What rests on what rests on the seed is in; what the seed itself rests on is not."""
        closure = Closure()

        assert [A] == closure.start([A])
        assert [B, C] == closure.learn([edge(B, A), edge(C, B), edge(A, D), edge(E, D)])
        assert [A, B, C] == list(closure)

    @pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
    def test_the_order_in_which_edges_turn_up_does_not_matter(self, order: tuple[int, ...]) -> None:
        """Each edge by itself, in every order, before the seed or after it: the same members, the same reasons."""
        edges = [edge(B, A), edge(C, B), edge(D, C), edge(A, D)]
        before, after = Closure(), Closure()
        after.start([A])
        for place in order:
            before.learn([edges[place]])
            after.learn([edges[place]])
        before.start([A])

        assert {A, B, C, D} == set(before) == set(after)
        assert [edges[3]] == before.reasons(A) == after.reasons(A)

    def test_cycles_end(self) -> None:
        """Entries that rest on each other, and one that cites itself."""
        closure = Closure()
        closure.start([A])

        assert [B] == closure.learn([edge(B, A), edge(A, B), edge(B, B)])
        assert [edge(B, A)] == closure.reasons(B)

    def test_a_reason_is_told_once_and_only_of_members(self) -> None:
        """The same edge twice is one; an edge to something else is none."""
        closure = Closure()
        closure.start([A])
        closure.learn([edge(B, A), edge(B, A), edge(B, C)])

        assert [edge(B, A)] == closure.reasons(B)
        assert [] == closure.reasons(E)

    def test_it_is_what_a_search_finds(self) -> None:
        """On random graphs, learned in random pieces, the members are those from which a path leads to a seed."""
        chance = random.Random(11)
        nodes = [UUID(int=number) for number in range(1, 31)]
        for _ in range(50):
            edges = [edge(*chance.sample(nodes, 2)) for _ in range(chance.randrange(60))]
            seeds = set(chance.sample(nodes, 2))
            closure = Closure()
            closure.start(sorted(seeds))
            for one in edges:
                closure.learn([one])
            expected = set(seeds)
            while more := {one.entry_id for one in edges if one.on in expected} - expected:
                expected |= more

            assert expected == set(closure)

    def test_a_limit_is_an_error_and_not_a_cut(self) -> None:
        """Exactly as many as allowed are; one more is refused, and the error says how many are allowed."""
        chain = [edge(UUID(int=number + 1), UUID(int=number)) for number in range(1, 10)]
        whole = Closure(limit=10)
        whole.start([A])
        short = Closure(limit=9)
        short.start([A])

        assert 9 == len(whole.learn(chain))
        with pytest.raises(ImpactTooLarge) as refused:
            short.learn(chain)
        assert {"limit": 9} == refused.value.details
        with pytest.raises(ImpactTooLarge):
            Closure().start(UUID(int=number) for number in range(MEMBER_LIMIT + 1))
