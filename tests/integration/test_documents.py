"""Documents in the memory: new ones go in, changed ones correct, the same ones change nothing, gone ones are listed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import EvidenceMissing, Forbidden, InvalidInput
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import following, sourced
from grandbo.memory.following import FollowReport
from tests.support.cli import Cli
from tests.support.postgres import TestDatabase

PLACE = "https://postmortems.example.com/17"
TEXT = """# Uploads stood still

## Summary

A disk was full and nobody was told.

## Root cause

Logs were not rotated.

## Action items

- [ ] Alert at 80 %
"""
CHANGED = TEXT.replace("Logs were not rotated.", "Logs were rotated, and never removed.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runbooks and an alerting rule."""
    root = tmp_path / "ops"
    (root / "queue").mkdir(parents=True)
    (root / "queue" / "stalled.md").write_text("# The queue stalls\n\n## Meaning\n\nNothing is consumed.\n")
    (root / "disk.md").write_text("---\nservice: storage\n---\n# A disk is full\n\nRemove old logs.\n")
    rule = "alert: DiskFull, expr: free < 1, annotations: {summary: It fills up}"
    (root / "disk.rules").write_text(f"groups:\n- name: g\n  rules:\n  - {{{rule}}}\n")
    (root / "image.png").write_bytes(b"\x89PNG")
    (root / ".git").mkdir()
    (root / ".git" / "config.md").write_text("# not a runbook\n")
    return root


def _counts(report: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in report.items() if isinstance(value, int) and value and name != "read"}


class TestPostMortem:
    def test_it_becomes_a_candidate_and_a_second_time_nothing(self, memory: TenantMemory) -> None:
        """A person decides; importing again does not ask them twice."""
        first = memory.import_postmortem(TEXT.encode(), "uploads.md", uri=PLACE)
        again = memory.import_postmortem(TEXT.encode(), "uploads.md", uri=PLACE)

        (candidate,) = memory.candidates()
        assert ({"proposed": 1}, {"unchanged": 1}) == (first.counts, again.counts)
        assert candidate["candidate_id"] == first.documents[0]["id"] == again.documents[0]["id"]
        assert "Uploads stood still" == candidate["title"]

    def test_a_changed_document_amends_the_candidate_that_waits(self, memory: TenantMemory) -> None:
        """There is one candidate, and it says what the document says now; also when that is what it said before."""
        texts = (TEXT, CHANGED, TEXT)
        reports = [memory.import_postmortem(text.encode(), "uploads.md", uri=PLACE) for text in texts]

        (candidate,) = memory.candidates()
        assert [{"proposed": 1}, {"amended": 1}, {"amended": 1}] == [report.counts for report in reports]
        content = memory.candidate(candidate["candidate_id"])["content"]
        assert "Cause: Logs were not rotated." in content["summary"]

    def test_a_changed_document_of_an_entry_is_proposed_as_its_correction(
        self, memory: TenantMemory, grandbo: Grandbo
    ) -> None:
        """Once it is approved, a change becomes a proposal into the same entry, and merged it is that entry's text."""
        reviewer = grandbo.tenant(memory.tenant.name, principal="human:reviewer")
        (first,) = memory.import_postmortem(TEXT.encode(), uri=PLACE).documents
        entry_id = reviewer.approve_candidate(_uuid(first["id"]), reason="checked").entry_id
        (second,) = memory.import_postmortem(CHANGED.encode(), uri=PLACE).documents
        reviewer.merge_candidate(_uuid(second["id"]), reason="checked")
        again = memory.import_postmortem(CHANGED.encode(), uri=PLACE)

        assert entry_id is not None
        assert {"unchanged": 1} == again.counts
        assert str(entry_id) == again.documents[0]["id"]
        assert "never removed" in memory.history(entry_id)[-1]["state"]["summary"]

    def test_a_rejected_document_is_not_proposed_again(self, memory: TenantMemory, grandbo: Grandbo) -> None:
        """What a person decided stands until the document says something else."""
        (first,) = memory.import_postmortem(TEXT.encode(), uri=PLACE).documents
        reviewer = grandbo.tenant(memory.tenant.name, principal="human:reviewer")
        reviewer.reject_candidate(_uuid(first["id"]), reason="not ours")

        assert {"unchanged": 1} == memory.import_postmortem(TEXT.encode(), uri=PLACE).counts
        assert [] == memory.candidates()

    def test_recorded_it_is_found_by_its_cause(self, memory: TenantMemory) -> None:
        """A finding of its own, with its place as evidence and what is still to be done counted."""
        report = memory.import_postmortem(TEXT.encode(), "uploads.md", uri=PLACE, record=True)
        (match,) = memory.query_topic("uploads fail because logs were not rotated", mode="words").matches

        assert {"recorded": 1} == report.counts
        assert (PLACE, 1) == (match.evidence[0]["uri"], match.open_follow_ups)

    def test_a_changed_document_corrects_the_finding(self, memory: TenantMemory) -> None:
        """The same entry, another revision; never a second entry."""
        (first,) = memory.import_postmortem(TEXT.encode(), uri=PLACE, record=True).documents
        report = memory.import_postmortem(CHANGED.encode(), uri=PLACE, record=True)

        assert ({"corrected": 1}, first["id"]) == (report.counts, report.documents[0]["id"])
        assert [1, 2] == [state["revision"] for state in memory.history(_uuid(first["id"]))]

    def test_a_finding_needs_its_place(self, memory: TenantMemory) -> None:
        """Given, or in the front matter; without one nothing is recorded."""
        with pytest.raises(EvidenceMissing):
            memory.import_postmortem(TEXT.encode(), "uploads.md", record=True)

        recorded = memory.import_postmortem(f"---\nurl: {PLACE}\n---\n{TEXT}".encode(), record=True)
        assert {"recorded": 1} == recorded.counts

    def test_a_preview_changes_nothing(self, memory: TenantMemory) -> None:
        """It says what would be stored, and how each heading was understood."""
        report = memory.import_postmortem(TEXT.encode(), "uploads.md", uri=PLACE, dry_run=True)

        assert {"proposed": 1} == report.counts
        assert "Uploads stood still" == report.preview[0]["title"]
        assert {"heading": "Root cause", "part": "cause"} in report.headings
        assert [] == memory.candidates()

    @pytest.mark.parametrize("raw", [b"%PDF-1.7", b"\xff\xff", b"", b"---\na: [\n---\nx"])
    def test_what_cannot_be_read_is_refused(self, memory: TenantMemory, raw: bytes) -> None:
        """A binary with a name in `.md` is a binary."""
        with pytest.raises(InvalidInput):
            memory.import_postmortem(raw, "a.md")

    def test_an_auditor_imports_nothing(self, memory: TenantMemory, grandbo: Grandbo) -> None:
        """The roles are those of proposing and recording."""
        auditor = grandbo.tenant(memory.tenant.name, principal="human:auditor", roles=("auditor",))
        for record in (False, True):
            with pytest.raises(Forbidden):
                auditor.import_postmortem(TEXT.encode(), uri=PLACE, record=record)


class TestRunbooks:
    def test_a_folder_goes_in_once(self, memory: TenantMemory, folder: Path) -> None:
        """Each document by its path; what is hidden or no document is passed over."""
        first = memory.import_runbooks([folder])
        again = memory.import_runbooks([folder])

        assert ({"recorded": 3}, {"unchanged": 3}) == (first.counts, again.counts)
        assert ["disk.md", "disk.rules#DiskFull", "queue/stalled.md"] == [item["document"] for item in first.documents]

    def test_a_changed_file_corrects_its_entry_and_the_past_stays(self, memory: TenantMemory, folder: Path) -> None:
        """A recall as of before gives the old text; so does going back and forth between two texts."""
        memory.import_runbooks([folder])
        before = memory.query_topic("the disk is full", mode="words").position
        file = folder / "disk.md"
        old = file.read_text()
        for text in (old.replace("old logs", "old images"), old, old.replace("old logs", "old images")):
            file.write_text(text)
            assert {"corrected": 1, "unchanged": 2} == memory.import_runbooks([folder]).counts

        now = memory.query_topic("how to remove old images", mode="words").matches[0]
        then = memory.query_topic("the disk is full", mode="words", as_of_position=before).matches
        assert ("Remove old images.", 4) == (now.summary, now.revision)
        assert "Remove old logs." in [match.summary for match in then]

    def test_of_two_at_once_one_has_corrected_it(
        self, memory: TenantMemory, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both have seen the entry as it stood; the other one finds it done."""
        memory.import_runbooks([folder])
        (folder / "disk.md").write_text("---\nservice: storage\n---\n# A disk is full\n\nRotate the logs.\n")
        barrier = threading.Barrier(2)
        look = sourced.known_entries

        def at_once(*asked: Any) -> Any:
            found = look(*asked)
            barrier.wait(30)
            return found

        monkeypatch.setattr(following, "known_entries", at_once)
        reports: list[FollowReport] = []
        threads = [
            threading.Thread(
                target=lambda: reports.append(memory.import_runbooks([folder / "disk.md"], collection="ops"))
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

        assert [{"corrected": 1}, {"unchanged": 1}] == sorted((one.counts for one in reports), key=list)

    def test_what_a_person_corrected_stays_until_the_file_changes(self, memory: TenantMemory, folder: Path) -> None:
        """An import of the same file does not undo it."""
        (made, *_) = memory.import_runbooks([folder]).documents
        memory.correct(_uuid(made["id"]), {"summary": "Remove old logs, with care."}, reason="learned")

        assert {"unchanged": 3} == memory.import_runbooks([folder]).counts
        assert "Remove old logs, with care." == memory.history(_uuid(made["id"]))[-1]["state"]["summary"]

    def test_what_vanished_is_listed_and_put_away_only_when_asked(self, memory: TenantMemory, folder: Path) -> None:
        """Nothing is retired by itself, and a file that cannot be read has not vanished."""
        memory.import_runbooks([folder])
        (folder / "disk.md").unlink()
        (folder / "queue" / "stalled.md").write_bytes(b"\xff\xff")

        listed = memory.sync(folder)
        previewed = memory.sync(folder, archive_vanished=True, dry_run=True)
        archived = memory.sync(folder, archive_vanished=True)
        done = memory.sync(folder)

        assert {"unchanged": 1, "vanished": 1} == listed.counts
        assert {"unchanged": 1, "archived": 1} == previewed.counts == archived.counts
        assert {"unchanged": 1} == done.counts
        assert ["queue/stalled.md"] == [item["document"] for item in done.errors]
        found = memory.query_topic("a disk is full of old logs", mode="words").matches
        assert "A disk is full" not in [match.title for match in found]

    def test_two_collections_do_not_meet(self, memory: TenantMemory, folder: Path) -> None:
        """The same path in another folder is another document."""
        memory.import_runbooks([folder], collection="one")
        (folder / "disk.md").write_text("# Another disk\n\nBuy one.\n")
        other = memory.import_runbooks([folder / "disk.md"], collection="two", base_uri="https://git.example.com/two/")

        assert {"recorded": 1} == other.counts
        (match, *_) = memory.query_topic("another disk to buy", mode="words").matches
        assert "https://git.example.com/two/disk.md" == match.evidence[0]["uri"]

    def test_a_link_out_of_the_folder_is_not_followed(self, memory: TenantMemory, folder: Path, tmp_path: Path) -> None:
        """A checkout from elsewhere cannot have other files of this machine read."""
        (tmp_path / "secret.md").write_text("# Secret\n\nWords.\n")
        (folder / "link.md").symlink_to(tmp_path / "secret.md")

        assert {"recorded": 3} == memory.import_runbooks([folder]).counts

    def test_applicability_follows_the_file(self, memory: TenantMemory, folder: Path) -> None:
        """Versions in `applies_to` are what the runbook applies to, after a change too."""
        file = folder / "disk.md"
        file.write_text("---\napplies_to: ['worker >=4']\n---\n# A disk is full\n\nRemove old logs.\n")
        (made,) = memory.import_runbooks([file]).documents
        file.write_text("---\napplies_to: ['worker >=5']\n---\n# A disk is full\n\nRemove old logs.\n")
        memory.import_runbooks([file])

        assert ["worker >=5"] == memory.history(_uuid(made["id"]))[-1]["state"]["applicability"]

    def test_another_tenant_is_untouched(self, memory: TenantMemory, other_memory: TenantMemory, folder: Path) -> None:
        """The same folder is new to whoever has not imported it."""
        memory.import_runbooks([folder])

        assert {"recorded": 3} == other_memory.import_runbooks([folder]).counts


class TestSync:
    def test_a_folder_of_post_mortems(self, memory: TenantMemory, tmp_path: Path) -> None:
        """Each becomes a candidate; a bad one is refused by its path and the rest goes on."""
        (tmp_path / "one.md").write_text(TEXT)
        (tmp_path / "two.md").write_text(CHANGED)
        (tmp_path / "bad.md").write_bytes(b"%PDF-1.7")

        first = memory.sync(tmp_path, postmortems=True, collection="pm")
        again = memory.sync(tmp_path, postmortems=True, collection="pm")

        assert ({"proposed": 2}, {"unchanged": 2}) == (first.counts, again.counts)
        assert ["bad.md"] == [item["document"] for item in first.errors]

    def test_a_folder_that_is_none(self, memory: TenantMemory, tmp_path: Path) -> None:
        """It is refused, and nothing counts as vanished."""
        with pytest.raises(InvalidInput):
            memory.sync(tmp_path / "none")


class TestCommandLine:
    @pytest.fixture
    def cli(self, database: TestDatabase, memory: TenantMemory) -> Cli:
        """The command line with the test's own tenant."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

    def test_a_post_mortem_from_standard_input(self, cli: Cli) -> None:
        """`-` reads stdin; --json gives the outcome with its preview."""
        proposed = cli("import-postmortem", "-", "--uri", PLACE, "--json", stdin=TEXT)

        assert 0 == proposed.code
        assert {"proposed": 1} == _counts(proposed.document)

    def test_a_preview_is_readable(self, cli: Cli, tmp_path: Path) -> None:
        """Headings with their parts, title, evidence."""
        file = tmp_path / "outage.md"
        file.write_text(TEXT)
        shown = cli("import-postmortem", file, "--dry-run")

        assert 0 == shown.code
        assert "Root cause → cause" in shown.out
        assert "Would be: 1 proposed" in shown.out

    def test_runbooks_and_sync(self, cli: Cli, folder: Path) -> None:
        """Both count what became of each document."""
        made = cli("import-runbooks", folder, "--json")
        (folder / "disk.md").unlink()
        synced = cli("sync", folder, "--archive-vanished", "--json")

        assert (0, {"recorded": 3}) == (made.code, _counts(made.document))
        assert (0, {"unchanged": 2, "archived": 1}) == (synced.code, _counts(synced.document))

    def test_an_import_of_which_all_was_refused_exits_with_1(self, cli: Cli, tmp_path: Path) -> None:
        """As for JSON Lines."""
        (tmp_path / "bad.md").write_bytes(b"\xff\xff")
        refused = cli("import-runbooks", tmp_path)

        assert 1 == refused.code
        assert "bad.md [invalid_input]" in refused.err

    def test_a_path_that_is_not_there_is_a_mistake_in_the_call(self, cli: Cli, tmp_path: Path) -> None:
        """Exit code 2."""
        assert 2 == cli("import-runbooks", tmp_path / "none").code


def _uuid(text: str) -> UUID:
    return UUID(text)
