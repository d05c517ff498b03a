"""The one reader of times: every form that a tool is known to write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from grandbo.documents.postmortem import read_date
from grandbo.documents.times import read_time
from grandbo.types import Moment

AT = datetime(2026, 3, 2, 14, 43, 5, tzinfo=UTC)


class TestReadTime:
    @pytest.mark.parametrize(
        "written",
        [
            "2026-03-02T14:43:05Z",
            "2026-03-02T16:43:05+02:00",
            "2026-03-02T06:43:05.000-08:00",
            "2026-03-02 14:43:05 UTC",
            "2026-03-02 14:43:05 +0000",
            "2026-03-02 15:43:05 +01:00",
            "2026-03-02T14:43:05",
            "2026-03-02 14:43:05",
            "2026-03-02T14:43:05.000000000Z",
            1772462585,
            1772462585000,
            1772462585000000,
            1772462585000000000,
            "1772462585000",
            "1772462585000000000",
        ],
    )
    def test_every_form_is_the_same_instant(self, written: Any) -> None:
        """Offsets, zone names, no zone, and epochs of four units."""
        assert Moment(AT, "time") == read_time(written)

    def test_a_date_is_a_day(self) -> None:
        """What is not said is not made up."""
        assert Moment(datetime(2026, 3, 2, tzinfo=UTC), "day") == read_time("2026-03-02")

    @pytest.mark.parametrize(
        "written",
        [
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00+05:00",
            "9999-12-31T23:59:59-05:00",
            "",
            "soon",
            "2026-02-30T00:00:00Z",
            "1" * 400,
            0,
            -1,
            True,
            None,
            [],
            float("nan"),
            float("inf"),
            10**30,
        ],
    )
    def test_what_is_no_time_is_none(self, written: Any) -> None:
        """The year 1 says `not yet`; the rest says nothing."""
        assert read_time(written) is None


class TestReadDate:
    @pytest.mark.parametrize(
        ("written", "day"),
        [
            ("2015-10-21", (2015, 10, 21)),
            ("on 21 October 2015, in the evening", (2015, 10, 21)),
            ("Oct 21st, 2015", (2015, 10, 21)),
            ("2015-10-21 14:30 local time", (2015, 10, 21)),
            ("1628-08-10", (1628, 8, 10)),
        ],
    )
    def test_a_date_in_prose_is_a_day(self, written: str, day: tuple[int, int, int]) -> None:
        """A time of an unknown zone is left out."""
        assert Moment(datetime(*day, tzinfo=UTC), "day") == read_date(written)

    def test_a_time_with_a_zone_is_an_instant(self) -> None:
        """`UTC` behind it is a zone."""
        assert Moment(datetime(2015, 10, 21, 14, 30, tzinfo=UTC), "time") == read_date("at 2015-10-21 14:30 UTC")

    @pytest.mark.parametrize("written", ["", "yesterday", "32 October 2015", "2015-13-01", "Foo 12, 2015"])
    def test_what_is_no_date_is_none(self, written: str) -> None:
        """A date that no calendar has is none."""
        assert read_date(written) is None
