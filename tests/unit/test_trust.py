"""Trust and restatement: pure rules, stated in numbers and words."""

from __future__ import annotations

import pytest

from grandbo.memory.restating import body_adds_nothing, says_the_same
from grandbo.memory.trust import Record, trust_of


class TestTrust:
    @pytest.mark.parametrize(
        ("record", "expected"),
        [
            (Record(), 5_000),
            (Record(supported=1), 5_400),
            (Record(supported=9), 6_200),
            (Record(disputed=True), 2_500),
            (Record(disputed=True, resolved=1), 2_500),
            (Record(resolved=1), 5_300),
            (Record(resolved=7), 5_300),
            (Record(helped=2), 5_400),
            (Record(helped=50), 6_000),
            (Record(wrong=1), 4_500),
            (Record(wrong=50), 2_500),
            (Record(supported=3, helped=5, resolved=1), 7_500),
        ],
    )
    def test_what_moves_it_and_how_far(self, record: Record, expected: int) -> None:
        """Each counts so much, and no more than so often."""
        assert expected == trust_of(5_000, record)

    def test_it_stays_within_its_bounds(self) -> None:
        """Never below nothing, never above all."""
        assert 0 == trust_of(1_000, Record(disputed=True, wrong=5))
        assert 10_000 == trust_of(9_900, Record(supported=3, helped=5))


class TestRestating:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The broker lost its lease.", "the broker  LOST its lease"),
            ("Broker lost `lease`", "The broker lost a lease!"),
            ("\uff22roker down", "broker down"),
        ],
    )
    def test_the_same_words_say_the_same(self, one: str, other: str) -> None:
        """Case, width, white space, articles and punctuation tell nothing apart."""
        assert says_the_same(one, "", other, "")

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("The broker is safe to restart", "The broker is not safe to restart"),
            ("The timeout is 30 seconds", "The timeout is 60 seconds"),
            ("The gateway calls the ledger", "The ledger calls the gateway"),
            ("Restart before the deploy", "Restart after the deploy"),
            ("The offset is -5", "The offset is 5"),
            ("The queue is full", "The queue is full?"),
            ("The queue is full", "The queue is full on Mondays"),
        ],
    )
    def test_one_word_more_or_other_says_something_else(self, one: str, other: str) -> None:
        """A likeness of nine words in ten is not enough: the tenth may be `not`."""
        assert not says_the_same(one, "", other, "")

    def test_a_body_that_says_more_is_not_folded(self) -> None:
        """An empty body adds nothing, the same adds nothing, any other does."""
        assert body_adds_nothing(" ", "whatever")
        assert body_adds_nothing("The  cause.", "the cause")
        assert not body_adds_nothing("another cause", "")
