"""Import of JSON Lines: real files, bad lines, twice, cut off half-way."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import grandbo
from grandbo.library import TenantMemory
from grandbo.memory import importing
from grandbo.memory.importing import ImportKind, ImportReport, parse_line
from grandbo.memory.record import finding_command_id
from grandbo.memory.reimporting import Runbooks
from grandbo.types import utc_now
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


class TestRunbooksAgain:
    def _texts(self, memory: TenantMemory, **moment: Any) -> dict[str, tuple[str, str]]:
        listed = memory.list_entries(kinds=["runbook"], **moment).as_dict()["entries"]
        assert len(listed) == len({entry["external_id"] for entry in listed})
        return {entry["external_id"]: (entry["title"], entry["body"]) for entry in listed}

    def test_a_line_that_says_something_else_corrects_its_entry(self, memory: TenantMemory) -> None:
        """Forth and back, with no second entry, and the past keeps what was said; the same again changes nothing."""
        now, then = (_line(id="1", title="Drain a queue", body=body) for body in ("Use the new tool.", "Use a shell."))
        other = _line(id="2", title="Restart a broker", source_url="https://example.com/2")
        memory.import_lines([now, other], "runbook")
        position = memory.head_position()

        reports = [memory.import_lines([line, other], "runbook") for line in (then, then, now, now, then)]

        assert [(1, 1), (0, 2), (1, 1), (0, 2), (1, 1)] == [(item.corrected, item.unchanged) for item in reports]
        assert ("Drain a queue", "Use a shell.") == self._texts(memory)["1"]
        assert ("Drain a queue", "Use the new tool.") == self._texts(memory, as_of_position=position)["1"]
        assert memory.check_rebuild().ok

    def test_an_edition_that_names_no_source_goes_by_the_id(self, memory: TenantMemory) -> None:
        """Whichever came first; what it leaves out stays, and a title that is missing is taken from the text."""
        earlier = _line(id="1", title="", source=None, summary=None, body="# Drain a queue\n\nUse a shell.")
        later = _line(id="1", title="Drain queues", service="broker", applies_to=["QueueStalled"], body="Use the tool.")

        reports = [memory.import_lines([line], "runbook") for line in (earlier, later, earlier)]

        assert [(1, 0), (0, 1), (0, 1)] == [(item.recorded, item.corrected) for item in reports]
        (entry,) = memory.list_entries(kinds=["runbook"]).as_dict()["entries"]
        assert ("Drain queues", "broker", ["QueueStalled"]) == (entry["title"], entry["service"], entry["tags"])
        assert "# Drain a queue\n\nUse a shell." == entry["body"]

    def test_of_two_imports_at_once_one_has_corrected_it(self, memory: TenantMemory) -> None:
        """Both have seen the entry as it stood; the second finds the correction made, and counts it as unchanged."""
        for body in ("Older.", "Old."):
            memory.import_lines([_line(body=body)], "runbook")
        who = (memory._grandbo.database, memory.tenant_id, memory.principal, memory.tenant.policy)
        barrier = threading.Barrier(2)

        class AtOnce(Runbooks):
            def look_up(self, ids: Collection[str]) -> None:
                super().look_up(ids)
                barrier.wait(30)

        reports: list[ImportReport] = []

        def run() -> None:
            report = ImportReport()
            reports.append(report)
            line = importing._read_batch([(1, _line(body="New."))], "runbook", report)
            assert [] == importing._settle(line, AtOnce(*who, clock=utc_now), report)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert [(0, 1), (1, 0)] == sorted((report.corrected, report.unchanged) for report in reports)
        assert ("New.", 4) == (self._texts(memory)["1"][1], memory.verify().head)

    def test_twice_in_one_file_is_two_editions(self, memory: TenantMemory) -> None:
        """In the order of the lines."""
        report = memory.import_lines([_line(body="Old."), _line(body="New.")], "runbook")

        assert (1, 1) == (report.recorded, report.corrected)
        assert "New." == self._texts(memory)["1"][1]

    def test_what_a_person_corrected_stays_until_the_line_changes(self, memory: TenantMemory) -> None:
        """The same file again does not undo it."""
        memory.import_lines([_line(body="Old.")], "runbook")
        memory.import_lines([_line(body="New.")], "runbook")
        (entry,) = memory.list_entries(kinds=["runbook"]).as_dict()["entries"]
        memory.correct(UUID(entry["entry_id"]), {"body": "Newer."}, reason="tried it")

        memory.import_lines([_line(body="New.")], "runbook")

        assert "Newer." == self._texts(memory)["1"][1]

    def test_who_may_not_govern_and_what_is_put_away(self, memory: TenantMemory) -> None:
        """Refused by name, each line by itself."""
        memory.import_lines([_line(body="Old.")], "runbook")
        hook = memory._grandbo.authenticate(memory.create_key("h", "hook", ("hook",))[1])
        forbidden = hook.import_lines([_line(body="New.")], "runbook")
        (entry,) = memory.list_entries(kinds=["runbook"]).as_dict()["entries"]
        memory.archive(UUID(entry["entry_id"]), reason="r")
        archived = memory.import_lines([_line(body="New.")], "runbook")

        codes = [[error["code"] for error in report.errors] for report in (forbidden, archived)]
        assert [["command_reused"], ["illegal_transition"]] == codes

    def test_a_finding_under_the_same_id_is_another_thing(self, memory: TenantMemory) -> None:
        """It is not corrected by a runbook."""
        memory.import_lines([_line()], "finding")

        report = memory.import_lines([_line(body="How to mend it.")], "runbook")

        assert (0, ["command_reused"]) == (report.corrected, [error["code"] for error in report.errors])
