"""Documents over HTTP, as PDFs and from folders: previewed, taken in, changed, gone."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from grandbo.documents.files import DOCUMENT_LIMIT_BYTES
from grandbo.http.document_routes import UPLOAD_LIMIT_BYTES
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.http import client_of, make_token
from tests.support.pdf import encrypted, make_pdf
from tests.support.postgres import TestDatabase

PLACE = "https://postmortems.example.com/17"
TEXT = "# Uploads stood still\n\n## Summary\n\nA disk was full.\n\n## Root cause\n\nLogs were not rotated.\n"
PDF = make_pdf(["Uploads stood still", "Summary", "A disk was full.", "Root cause", "Logs were not rotated."])
OLD = "---\ntitle: The ship sank\nstart_time: 1628-08-10\n---\n\n## Summary\n\nShe heeled over.\n"


def counts(report: dict[str, Any]) -> dict[str, int]:
    """What became of how many."""
    return {name: value for name, value in report.items() if isinstance(value, int) and value and name != "read"}


class TestPostMortems:
    def test_previewed_then_taken_in_once(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The preview shows what would be stored and stores nothing; the same document again changes nothing."""
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))
        document = {"name": "outage.md", "text": TEXT, "uri": PLACE}

        def upload(**more: Any) -> dict[str, Any]:
            answer = client.post("/v1/documents/postmortems", json={**document, **more})
            assert 200 == answer.status_code, answer.text
            return dict(answer.json())

        preview = upload(preview=True)
        assert ("Uploads stood still", []) == (preview["preview"][0]["title"], memory.candidates())
        assert {"proposed": 1} == counts(preview) == counts(upload())
        assert {"unchanged": 1} == counts(upload())
        assert {"amended": 1} == counts(upload(text=TEXT.replace("not rotated", "never removed")))
        assert {"recorded": 1} == counts(upload(record=True, uri=f"{PLACE}1"))

    def test_a_pdf(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """As base64; refused with its reason where it is encrypted."""
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))

        def upload(raw: bytes) -> Any:
            body = {"name": "outage.pdf", "base64": base64.b64encode(raw).decode(), "uri": PLACE, "record": True}
            return client.post("/v1/documents/postmortems", json=body)

        assert {"recorded": 1} == counts(upload(PDF).json())
        assert "Cause: Logs were not rotated." in memory.list_entries().as_dict()["entries"][0]["summary"]
        refused = upload(encrypted(PDF))
        assert (422, "pdf_refused", "encrypted") == (
            refused.status_code,
            refused.json()["code"],
            refused.json()["reason"],
        )

    def test_front_matter_of_1628(self, memory: TenantMemory) -> None:
        """A year before the epoch is a year like any other."""
        memory.import_postmortem(OLD.encode(), "ship.md", uri=PLACE, record=True)

        assert memory.list_entries().as_dict()["entries"][0]["occurred_at"].startswith("1628-08-10")

    @pytest.mark.parametrize(
        ("body", "status", "code"),
        [
            ({"name": "a.md"}, 422, "invalid_input"),
            ({"name": "a.md", "text": TEXT, "base64": "eA=="}, 422, "invalid_input"),
            ({"name": "a.pdf", "base64": "not base64"}, 422, "invalid_input"),
            ({"name": "a.pdf", "text": TEXT}, 422, "invalid_input"),
            ({"name": "a.md", "base64": base64.b64encode(PDF).decode()}, 422, "invalid_input"),
            ({"name": "a.md", "base64": base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()}, 422, "invalid_input"),
            ({"name": "a.md", "base64": base64.b64encode(b"PK\x03\x04").decode()}, 422, "invalid_input"),
            ({"name": "a.yaml", "text": "a: !!python/object/apply:os.system ['true']"}, 422, "invalid_input"),
            (
                {"name": "a.md", "text": "---\na: !!python/object/apply:os.system ['true']\n---\n# T\n\nx"},
                422,
                "invalid_input",
            ),
            ({"name": "a.md", "text": TEXT, "record": True}, 422, "evidence_missing"),
            ({"name": "a.md", "text": TEXT, "record": "yes"}, 422, "invalid_input"),
            ({"name": "a.md", "text": TEXT, "more": 1}, 422, "invalid_input"),
            ({"name": "a.md", "text": "# T\n\n" + "x" * DOCUMENT_LIMIT_BYTES}, 413, "limit_exceeded"),
            ({"name": "a.md", "text": "# T\n\n" + "x" * 5 * 1024 * 1024}, 413, "limit_exceeded"),
            ({"name": "a.md", "text": "x" * UPLOAD_LIMIT_BYTES}, 413, "limit_exceeded"),
        ],
        ids=range(15),
    )
    def test_bad_input_is_told(
        self, grandbo: Grandbo, memory: TenantMemory, body: dict[str, Any], status: int, code: str
    ) -> None:
        """With a code, never a fault of ours; nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))

        answer = client.post("/v1/documents/postmortems", json=body)

        assert (status, code) == (answer.status_code, answer.json()["code"])
        assert ([], []) == (memory.candidates(), memory.list_entries().as_dict()["entries"])

    def test_scripts_stay_out(self, memory: TenantMemory) -> None:
        """Of HTML the text is kept, and nothing that runs."""
        page = (
            b"<h1>Down</h1><h2>Summary</h2><p onclick='x()'>It fell.</p>"
            b"<script>alert(1)</script><a href='javascript:x'>y</a>"
        )
        memory.import_postmortem(page, "a.html", uri=PLACE, record=True)

        said = str(memory.list_entries().as_dict()["entries"][0])
        assert "It fell." in said
        assert not [word for word in ("alert(1)", "onclick", "javascript:") if word in said]


class TestRunbooks:
    def test_previewed_then_taken_in_once(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """By path and collection; one that cannot be read is refused by its name and the rest goes in."""
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))
        files = [
            {"name": "queue/stalled.md", "text": "# The queue stalls\n\n## Meaning\n\nNothing is consumed.\n"},
            {"name": "empty.md", "text": " "},
        ]

        def upload(**more: Any) -> dict[str, Any]:
            return dict(
                client.post("/v1/documents/runbooks", json={"files": files, "collection": "ops", **more}).json()
            )

        assert {"recorded": 1, "refused": 1} == counts(upload(preview=True))
        assert {"recorded": 1, "refused": 1} == counts(upload())
        files[0]["text"] += "\nRestart it.\n"
        assert {"corrected": 1, "refused": 1} == counts(upload())
        assert 1 == len(memory.list_entries().as_dict()["entries"])

    @pytest.mark.parametrize(
        "body",
        [
            {"files": [], "collection": "ops"},
            {"files": {}, "collection": "ops"},
            {"files": ["x"], "collection": "ops"},
            {"files": [{"name": "a.md"}], "collection": "ops"},
            {"files": [{"name": "../a.md", "text": "# T\n\nx"}], "collection": "ops"},
            {"files": [{"name": "/a.md", "text": "# T\n\nx"}], "collection": "ops"},
            {"files": [{"name": "a\n.md", "text": "# T\n\nx"}], "collection": "ops"},
            {"files": [{"name": "a.md", "text": "# T\n\nx"}], "collection": " "},
            {"files": [{"name": "a.md", "text": "# T\n\nx"}]},
        ],
        ids=range(9),
    )
    def test_bad_input_is_told(self, grandbo: Grandbo, memory: TenantMemory, body: dict[str, Any]) -> None:
        """422, and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))

        assert 422 == client.post("/v1/documents/runbooks", json=body).status_code
        assert [] == memory.list_entries().as_dict()["entries"]

    def test_who_may_not(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """An auditor is told so before the body is read; nobody is let in without a credential."""
        client = client_of(grandbo, token=make_token(memory, "auditor"))
        body = {"files": [{"name": "a.md", "text": "# T\n\nx"}], "collection": "ops"}

        assert 403 == client.post("/v1/documents/runbooks", json=body).status_code
        assert 401 == client_of(grandbo).post("/v1/documents/postmortems", json={}).status_code


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Post-mortems, one of them a PDF, beside what is none."""
        root = tmp_path / "pm"
        root.mkdir()
        (root / "one.md").write_text(TEXT)
        (root / "two.pdf").write_bytes(make_pdf(["Logins failed", "Summary", "A certificate had run out."]))
        (root / "rules.yaml").write_text("a: 1\n")
        return root

    def test_what_vanished_is_listed_and_put_away_only_when_asked(self, memory: TenantMemory, folder: Path) -> None:
        """Of this folder alone; a file that cannot be read has not vanished."""
        options: dict[str, Any] = {"postmortems": True, "record": True, "base_uri": PLACE}
        assert {"recorded": 2} == memory.sync(folder, **options).counts
        assert {"corroborated": 2} == memory.sync(folder, **{**options, "collection": "another"}).counts
        (folder / "one.md").unlink()
        (folder / "two.pdf").write_bytes(b"no PDF")

        listed = memory.sync(folder, **options)
        tried = memory.sync(folder, archive_vanished=True, dry_run=True, **options)
        done = memory.sync(folder, archive_vanished=True, **options)
        again = memory.sync(folder, archive_vanished=True, **options)

        assert [{"vanished": 1}, {"archived": 1}, {"archived": 1}, {}] == [
            report.counts for report in (listed, tried, done, again)
        ]
        states = sorted(entry["status"] for entry in memory.list_entries().as_dict()["entries"])
        assert ["archived", "published"] == states

    def test_candidates_that_lost_their_document_are_listed(self, memory: TenantMemory, folder: Path) -> None:
        """They wait for a person, who is told."""
        memory.sync(folder, postmortems=True)
        (folder / "one.md").unlink()

        assert {"unchanged": 1, "vanished": 1} == memory.sync(folder, postmortems=True, archive_vanished=True).counts
        assert 2 == len(memory.candidates())

    def test_a_folder_at_the_command_line(self, memory: TenantMemory, database: TestDatabase, folder: Path) -> None:
        """`import-postmortem DIR` is `sync DIR --postmortems`."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        assert {"proposed": 2} == counts(cli("import-postmortem", folder, "--json").document)
        assert 0 == cli("import-postmortem", folder / "two.pdf", "--dry-run").code
