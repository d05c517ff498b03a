"""Import of JSON Lines: real files, bad lines, twice, cut off half-way."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import grandbo
from grandbo.library import TenantMemory
from grandbo.memory.importing import ImportKind, parse_line
from grandbo.memory.record import finding_command_id
from tests.support.factories import make_finding

SAMPLE = Path(grandbo.__file__).parent / "data" / "sample-incidents.jsonl"
# The judged sets are not part of the repository; where they lie beside a checkout, they are read whole.
BESIDE = Path(__file__).parents[3] / "shared" / "data"
FILES: list[tuple[Path, ImportKind]] = [(SAMPLE, "finding")]
FILES += [(BESIDE / "incidents.jsonl", "finding")] if (BESIDE / "incidents.jsonl").exists() else []
FILES += [(BESIDE / "runbooks.jsonl", "runbook")] if (BESIDE / "runbooks.jsonl").exists() else []


def _line(**fields: Any) -> bytes:
    row = {
        "id": "1",
        "title": "A queue stalled",
        "summary": "Its consumers lost their leases",
        "body": "The broker restarted.",
        "source": "made up",
        "source_url": "https://example.com/1",
    }
    return json.dumps({**row, **fields}).encode() + b"\n"


class TestRealFiles:
    @pytest.mark.parametrize(("path", "kind"), FILES, ids=lambda value: getattr(value, "name", value))
    def test_every_line_is_recorded_or_refused_with_a_reason(
        self, memory: TenantMemory, path: Path, kind: ImportKind
    ) -> None:
        """Each line of a real file ends in exactly one count, and a second import changes nothing."""
        lines = path.read_bytes().splitlines(keepends=True)

        first = memory.import_lines(lines, kind)
        again = memory.import_lines(lines, kind)

        assert len(lines) == first.read == first.recorded + first.corroborated + first.refused
        assert all(error["message"] for error in first.errors)
        assert first.refused <= 2
        assert (0, 0, first.recorded, first.refused) == (
            again.recorded,
            again.corroborated,
            again.unchanged,
            again.refused,
        )
        assert memory.verify().first_bad is None

    @pytest.mark.parametrize(("path", "kind"), FILES, ids=lambda value: getattr(value, "name", value))
    def test_what_was_imported_is_found_by_its_own_title(
        self, memory: TenantMemory, path: Path, kind: ImportKind
    ) -> None:
        """The text that went in comes back, unchanged, under the source's id."""
        lines = path.read_bytes().splitlines(keepends=True)[:40]
        memory.import_lines(lines, kind)
        rows = {row["id"]: row for row in map(json.loads, lines)}
        asked = [row for row in rows.values() if len(row["title"].split()) > 3][:10]

        for row in asked:
            found = memory.query_topic(row["title"], mode="words", limit=20).matches
            by_id = {match.external_id: match for match in found}

            assert row["id"] in by_id
            assert row["title"] == by_id[row["id"]].title

    def test_an_import_that_was_cut_off_goes_on_where_it_stopped(self, memory: TenantMemory) -> None:
        """What was recorded before the cut is left alone, the rest is recorded."""
        lines = SAMPLE.read_bytes().splitlines(keepends=True)

        cut = memory.import_lines(islice(lines, 40), "finding")
        rest = memory.import_lines(lines, "finding")

        assert (40, 40, len(lines) - 40) == (cut.recorded, rest.unchanged, rest.recorded)


class TestBadLines:
    def test_bad_lines_are_reported_by_number_and_do_not_stop_the_rest(self, memory: TenantMemory) -> None:
        """Each bad line has its number, code and reason; the good ones around it are recorded."""
        lines = [
            b"\xef\xbb\xbf" + _line(id="1"),
            b"not json\n",
            b"\n",
            _line(id="2", title="x" * 201),
            _line(id="3", started_at="2018-02-29"),
            _line(id="4", title="nul \x00"),
            _line(id="5", source_url=None),
            b"[1, 2]\n",
            _line(id="6", title="half \ud800"),
            _line(id="7", visibility="nowhere"),
            _line(id="8", title="Another queue stalled", tags=["a", 2147483647]),
        ]
        from grandbo.memory.importing import read_lines

        report = memory.import_lines(read_lines(lines), "finding")

        assert (10, 2, 8) == (report.read, report.recorded, report.refused)
        assert [
            (2, "not_json"),
            (4, "limit_exceeded"),
            (5, "invalid_input"),
            (6, "invalid_input"),
            (7, "evidence_missing"),
            (8, "invalid_input"),
            (9, "invalid_input"),
            (10, "invalid_input"),
        ] == [(error["line"], error["code"]) for error in report.as_dict()["errors"]]

    def test_a_row_that_changed_under_its_id_is_refused_by_name(self, memory: TenantMemory) -> None:
        """An id that comes back with another text is a conflict, not a silent overwrite."""
        memory.import_lines([_line()], "finding")

        report = memory.import_lines([_line(title="A queue stalled for another reason")], "finding")

        assert ["command_reused"] == [error["code"] for error in report.errors]

    def test_the_command_id_derives_from_the_source_s_id(self) -> None:
        """Two readings of one line are one command; another id is another command."""
        one, same, other = (finding_command_id(parse_line(_line(id=n), "finding"), "team") for n in ("1", "1", "2"))

        assert one == same
        assert one != other

    def test_the_same_text_under_two_ids_is_one_entry(self, memory: TenantMemory) -> None:
        """A second incident with the very same claim corroborates the first."""
        report = memory.import_lines([_line(id="1"), _line(id="2")], "finding")

        assert (1, 1) == (report.recorded, report.corroborated)

    def test_a_batch_with_every_line_refused_leaves_the_log_alone(self, memory: TenantMemory) -> None:
        """Nothing is appended for lines that were refused."""
        before = memory.record_finding(make_finding()).acknowledgement.position

        memory.import_lines([b"x"] * 20, "finding")

        assert before == memory.verify().head
