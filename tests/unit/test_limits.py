"""The moving window: exact at its edges, one key apart from another, bounded in memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import HTTPConnection

from grandbo.errors import ConfigurationError
from grandbo.http.admission import address_of
from grandbo.http.limits import MovingWindow, Rate, parse_rate
from tests.support.http import Clock


class TestRate:
    @pytest.mark.parametrize(
        ("text", "rate"),
        [
            ("1/second", Rate(1, 1.0)),
            (" 600 / Minute ", Rate(600, 60.0)),
            ("5/hour", Rate(5, 3_600.0)),
            ("off", None),
        ],
    )
    def test_it_is_read(self, text: str, rate: Rate | None) -> None:
        """A count and a unit, or none."""
        assert rate == parse_rate(text, "GRANDBO_RATE_LIMIT")

    @pytest.mark.parametrize("text", ["", "0/minute", "-1/minute", "ten/minute", "10", "10/day", "10/minutes", "on"])
    def test_anything_else_names_the_setting(self, text: str) -> None:
        """So that the start ends with what to write."""
        with pytest.raises(ConfigurationError, match="GRANDBO_RATE_LIMIT must be"):
            parse_rate(text, "GRANDBO_RATE_LIMIT")


class TestMovingWindow:
    def test_it_lets_through_what_the_limit_says_within_any_window(self) -> None:
        """The window moves: each frees its place when it is a minute old, not all at once."""
        clock = Clock()
        window = MovingWindow(Rate(3, 60.0), clock=clock)
        first = []
        for _ in range(3):
            first.append(window.take("a"))
            clock.now += 10

        assert [0.0, 0.0, 0.0] == first
        assert 30.0 == window.take("a")
        clock.now += 30
        assert 0.0 == window.take("a")
        assert 10.0 == window.take("a")

    def test_what_was_turned_away_does_not_count(self) -> None:
        """Whoever tries on and on is let in when his time has come."""
        clock = Clock()
        window = MovingWindow(Rate(1, 60.0), clock=clock)
        window.take("a")
        for _ in range(59):
            clock.now += 1
            assert window.take("a") > 0
        clock.now += 1

        assert 0.0 == window.take("a")

    def test_looking_counts_nothing(self) -> None:
        """`wait` only tells."""
        window = MovingWindow(Rate(1, 60.0), clock=Clock())
        assert [0.0, 0.0, 0.0] == [window.wait("a"), window.wait("a"), window.take("a")]
        assert 60.0 == window.wait("a")

    def test_keys_do_not_share(self) -> None:
        """One who asks too often is nobody else's trouble."""
        window = MovingWindow(Rate(1, 60.0), clock=Clock())

        assert [0.0, 0.0] == [window.take("a"), window.take("b")]

    def test_without_a_limit_nothing_is_kept(self) -> None:
        """And nobody waits."""
        window = MovingWindow(None, clock=Clock())

        assert {0.0} == {window.take("a") for _ in range(1_000)}
        assert 0 == len(window._seen)

    def test_memory_is_bounded_and_the_quietest_goes_first(self) -> None:
        """Whoever comes with a new name each time fills nothing, and does not free those who are limited now."""
        window = MovingWindow(Rate(2, 60.0), keys=10, clock=Clock())
        for number in range(1_000):
            window.take("busy") if number % 3 == 0 and number < 6 else None
            window.take(f"stranger-{number}")
            assert len(window._seen) <= 10

        recent = MovingWindow(Rate(1, 60.0), keys=10, clock=Clock())
        for number in range(9):
            recent.take(f"stranger-{number}")
        recent.take("busy")
        recent.take("one more")
        assert 60.0 == recent.wait("busy")
        assert 0.0 == recent.wait("stranger-0")

    def test_at_once_by_many_exactly_the_limit_gets_through(self) -> None:
        """Counting and deciding are one step."""
        window = MovingWindow(Rate(100, 60.0), clock=Clock())
        together = threading.Barrier(16)

        def ask(_number: int) -> int:
            together.wait(30)
            return sum(window.take("a") == 0.0 for _ in range(50))

        with ThreadPoolExecutor(16) as threads:
            assert 100 == sum(threads.map(ask, range(16)))


class TestAddress:
    @pytest.mark.parametrize(
        ("host", "told_apart_by"),
        [
            ("10.1.2.3", "10.1.2.3"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
            ("testclient", "testclient"),
            (None, ""),
        ],
    )
    def test_a_network_of_one_owner_is_one_client(self, host: str | None, told_apart_by: str) -> None:
        """Whoever has an IPv6 address has 2^64 of them."""
        client = None if host is None else (host, 1)

        assert told_apart_by == address_of(HTTPConnection({"type": "http", "headers": [], "client": client}))
