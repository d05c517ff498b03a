"""What a finding may be, and the defined answer to everything else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grandbo.errors import EvidenceMissing, GrandboError, InvalidInput, LimitExceeded, NotJSON
from grandbo.memory.finding import Finding, parse_finding
from grandbo.memory.importing import parse_json, parse_line
from tests.support.factories import make_finding

_MEMORY = {"type": "memory", "uri": "grandbo://entries/1", "label": ""}
_LINK = {"type": "log", "uri": "https://logs.example.com/1", "label": ""}


class TestLimits:
    @pytest.mark.parametrize(
        ("field", "value", "limit"),
        [
            ("title", "x" * 201, 200),
            ("summary", "x" * 4_001, 4_000),
            ("body", "x" * 65_537, 65_536),
            ("body", "é" * 32_769, 65_536),
            ("tags", [str(n) for n in range(17)], 16),
            ("tags", ["x" * 65], 64),
            ("evidence", [_LINK] * 21, 20),
            ("service", "x" * 201, 200),
        ],
    )
    def test_what_is_over_a_limit_is_refused_by_name_and_never_cut(self, field: str, value: Any, limit: int) -> None:
        """The error names the field and the limit."""
        with pytest.raises(LimitExceeded) as caught:
            parse_finding(make_finding(**{field: value}))

        assert (field, limit) == (caught.value.details["field"].split(".")[0], caught.value.details["limit"])

    @pytest.mark.parametrize(
        ("field", "value"),
        [("title", "x" * 200), ("summary", "é" * 4_000), ("body", "é" * 32_768), ("evidence", [_LINK] * 20)],
    )
    def test_what_fills_a_limit_is_kept_whole(self, field: str, value: Any) -> None:
        """Up to the limit everything comes back as it was."""
        parsed = parse_finding(make_finding(**{field: value}))

        kept = getattr(parsed, field)
        assert (value if isinstance(value, str) else len(value)) == (kept if isinstance(value, str) else len(kept))


class TestRefusals:
    @pytest.mark.parametrize(
        ("overrides", "error", "says"),
        [
            ({"title": ...}, InvalidInput, "title"),
            ({"title": None}, InvalidInput, "title"),
            ({"title": "   "}, InvalidInput, "title"),
            ({"title": "two\nlines"}, InvalidInput, "U+000A"),
            ({"title": "nul \x00"}, InvalidInput, "U+0000"),
            ({"summary": "bell \x07"}, InvalidInput, "U+0007"),
            ({"body": "half \ud83d pair"}, InvalidInput, "U+D83D"),
            ({"title": 7}, InvalidInput, "title"),
            ({"evidence": ...}, InvalidInput, "evidence"),
            ({"evidence": []}, EvidenceMissing, "not itself memory"),
            ({"evidence": [_MEMORY]}, EvidenceMissing, "not itself memory"),
            ({"evidence": [{**_LINK, "uri": "no scheme"}]}, InvalidInput, "scheme"),
            ({"evidence": [{**_LINK, "more": 1}]}, InvalidInput, "more"),
            ({"occurred_at": "2026-01-02T03:04:05"}, InvalidInput, "no zone"),
            ({"occurred_at": "yesterday"}, InvalidInput, "RFC 3339"),
            ({"occurred_at": "2018-02-29"}, InvalidInput, "occurred_at"),
            ({"occurred_at": "2026-05-31T23:59:60Z"}, InvalidInput, "no leap second"),
            ({"occurred_at": 1_700_000_000}, InvalidInput, "occurred_at"),
            ({"occurred_at": "2026-01-02", "ended_at": "2026-01-01"}, InvalidInput, "ended_at"),
            ({"confidence_bp": -0.0}, InvalidInput, "confidence_bp"),
            ({"confidence_bp": 0.8}, InvalidInput, "confidence_bp"),
            ({"confidence_bp": float("nan")}, InvalidInput, "confidence_bp"),
            ({"confidence_bp": True}, InvalidInput, "confidence_bp"),
            ({"confidence_bp": 10_001}, InvalidInput, "confidence_bp"),
            ({"confidence_bp": 2**70}, InvalidInput, "confidence_bp"),
            ({"kind": "incident"}, InvalidInput, "kind"),
            ({"tags": "queue"}, InvalidInput, "tags"),
            ({"tags": [" "]}, InvalidInput, "tags"),
            ({"incident": {"source": "pager"}}, InvalidInput, "incident"),
            ({"tenant_id": "another"}, InvalidInput, "tenant_id"),
            ({"principal": "human:someone"}, InvalidInput, "principal"),
        ],
    )
    def test_what_does_not_fit_has_an_error_that_says_so(
        self, overrides: dict[str, Any], error: type[GrandboError], says: str
    ) -> None:
        """Each wrong field has its typed error, with a word on what is wanted."""
        with pytest.raises(error) as caught:
            parse_finding(make_finding(**overrides))

        assert says in caught.value.message

    @pytest.mark.parametrize("document", [None, [], "text", 7])
    def test_what_is_no_object_is_no_finding(self, document: object) -> None:
        """A finding is an object."""
        with pytest.raises(InvalidInput):
            parse_finding(document)

    @given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
    def test_no_value_of_any_field_gives_anything_but_a_finding_or_our_error(self, value: Any) -> None:
        """Whatever stands in a field, the outcome is defined."""
        for field in ("title", "body", "tags", "evidence", "incident", "occurred_at", "confidence_bp", "kind"):
            try:
                outcome: Finding | GrandboError = parse_finding(make_finding(**{field: value}))
            except GrandboError as error:
                outcome = error
            assert isinstance(outcome, Finding) or outcome.http_status in (413, 422)


class TestTimes:
    @pytest.mark.parametrize(
        ("text", "at", "precision"),
        [
            ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "time"),
            ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC), "time"),
            ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC), "day"),
            ("2020", datetime(2020, 1, 1, tzinfo=UTC), "year"),
            ("2020-05", datetime(2020, 5, 1, tzinfo=UTC), "month"),
            ("1628-08-10T12:00:00Z", datetime(1628, 8, 10, 12, tzinfo=UTC), "time"),
        ],
    )
    def test_an_instant_keeps_its_precision(self, text: str, at: datetime, precision: str) -> None:
        """A zone is applied, and a date stays known as a date."""
        moment = parse_finding(make_finding(occurred_at=text)).occurred_at

        assert moment is not None
        assert (at, precision) == (moment.at, moment.precision)


class TestLines:
    @pytest.mark.parametrize(
        ("raw", "error"),
        [
            (b"{", NotJSON),
            (b"\xff\xfe", NotJSON),
            (b'{"title": NaN}', NotJSON),
            (b'{"title": Infinity}', NotJSON),
            (b"[" * 100_000, NotJSON),
            (b"[]", InvalidInput),
            (b"7", InvalidInput),
            (b"{}", InvalidInput),
            (b'{"id": "1", "title": "t", "tags": "x"}', InvalidInput),
            (b'{"title": "' + b"x" * (1024 * 1024) + b'"}', LimitExceeded),
        ],
    )
    def test_a_bad_line_has_a_typed_error(self, raw: bytes, error: type[GrandboError]) -> None:
        """Whatever stands in a line, the import can say what is wrong with it."""
        with pytest.raises(error):
            parse_line(raw, "finding")

    @given(st.binary(max_size=60))
    def test_any_bytes_are_json_or_not(self, raw: bytes) -> None:
        """No bytes break the reader."""
        try:
            parse_json(raw)
        except NotJSON:
            return
