"""Times as people and tools write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from grandbo.errors import InvalidInput
from grandbo.types import parse_instant


class TestParseInstant:
    @pytest.mark.parametrize(
        ("text", "instant"),
        [
            ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
            ("2026-01-02t03:04:05z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
            ("2026-01-02 03:04:05.25-00:00", datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=UTC)),
            # Where the clocks of the people there skip an hour, and where they repeat one.
            ("2026-03-29T02:30:00+01:00", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
            ("2026-10-25T02:30:00+02:00", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
            ("2026-10-25T02:30:00+01:00", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
            ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
            ("2012-06-30T23:59:60.5Z", datetime(2012, 7, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
            ("2017-01-01T00:59:60+01:00", datetime(2017, 1, 1, tzinfo=UTC)),
        ],
    )
    def test_every_spelling_of_the_rfc_is_an_instant(self, text: str, instant: datetime) -> None:
        """Small letters, offsets and leap seconds too; a leap second is the instant after it."""
        assert instant == parse_instant(text, "at")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("2026-01-02T03:04:05", "no zone"),
            ("2016-12-31T23:59:60", "not a time"),
            ("2016-12-30T23:59:60Z", "no leap second"),
            ("2016-12-31T22:59:60Z", "no leap second"),
            ("2016-12-31T23:59:60+01:00", "no leap second"),
            ("2016-12-31T23:59:61Z", "not a time"),
            ("2016-12-31T23:58:60+25:00", "not a time"),
            ("2026-01-02T24:00:00Z", "not a time"),
            ("2026-01-02T03:04:05Z[Europe/Berlin]", "not a time"),
            ("2026-01-02", "not a time"),
            ("", "not a time"),
            ("9999-12-31T23:59:60Z", "between 1 and 9999"),
            ("9999-12-31T23:59:59-01:00", "between 1 and 9999"),
        ],
    )
    def test_what_names_none_is_refused_with_its_field(self, text: str, says: str) -> None:
        """Naive, or nothing that a calendar has."""
        with pytest.raises(InvalidInput, match=f"at: .*{says}") as caught:
            parse_instant(text, "at")
        assert "at" == caught.value.details["field"]
