"""
Real documents, in full: post-mortems of a dozen organisations, more than a thousand runbooks and what they said before.

They are under licences of their own and not in this repository: `GRANDBO_CAMPAIGN_DATA` names the folder that holds
`incidents.jsonl`, `runbooks.jsonl` and `runbooks_previous.jsonl`, each line with an `id`, a `title` and a `body`.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from grandbo.library import TenantMemory

FOLDER = "GRANDBO_CAMPAIGN_DATA"


@pytest.fixture(scope="module")
def data() -> Path:
    """Where the documents are; a campaign that was asked for without them fails."""
    given = os.environ.get(FOLDER)
    assert given, f"{FOLDER} names the folder of the documents"
    return Path(given)


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _write(folder: Path, rows: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    for row in rows:
        heading = "" if row["body"].lstrip().startswith("# ") else f"# {row['title']}\n\n"
        (folder / f"{row['id']}.md").write_text(heading + row["body"], encoding="utf-8")


@pytest.mark.campaign
class TestRealDocuments:
    def test_post_mortems_of_every_organisation(
        self, data: Path, memory: TenantMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each is taken in or refused with a reason, and a second time nothing changes; headings are understood."""
        memory.change_policy({"pending_candidates": 10_000}, reason="all of them")
        rows = _rows(data / "incidents.jsonl")
        _write(tmp_path / "pm", rows)

        first = memory.sync(tmp_path / "pm", postmortems=True)
        again = memory.sync(tmp_path / "pm", postmortems=True)

        understood = Counter(str(item["part"]) for item in getattr(first, "headings", []))
        with capsys.disabled():
            print(f"\npost-mortems: {len(rows)} files, {first.counts}, refused {first.errors}, headings {understood}")
        assert [] == first.errors
        assert {"unchanged"} == again.counts.keys()
        assert {"summary", "cause", "impact", "resolution", "timeline", "follow_ups"} <= understood.keys()

    def test_runbooks_and_what_they_said_before(
        self, data: Path, memory: TenantMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """All go in; each that has an earlier text is corrected, no entry comes twice, and the past answers."""
        current = {row["id"]: row for row in _rows(data / "runbooks.jsonl")}
        earlier = {row["id"]: row for row in _rows(data / "runbooks_previous.jsonl")}
        both = sorted(earlier.keys() & current.keys())
        folder = tmp_path / "runbooks"
        _write(folder, [{**current[name], **earlier.get(name, {})} for name in current])

        before = memory.import_runbooks([folder], collection="ops")
        position = memory.head_position()
        told = _texts(memory)
        _write(folder, list(current.values()))
        after = memory.import_runbooks([folder], collection="ops")
        again = memory.import_runbooks([folder], collection="ops")

        with capsys.disabled():
            print(f"\nrunbooks: {len(current)}, {before.counts}, then {after.counts}, refused {before.errors}")
        assert ([], [], []) == (before.errors, after.errors, again.errors)
        assert {"unchanged"} == again.counts.keys()
        assert len(both) == len({item["document"].partition("#")[0] for item in _of(after, "corrected", "recorded")})
        then, now = _texts(memory, as_of_position=position), _texts(memory)
        assert told == then
        changed = {name for name in now if now[name] != then[name]}
        assert {f"{name}.md" for name in both} == changed
        for name in both:
            answer = memory.query_topic(_topic(earlier[name]), as_of_position=position, kinds=["runbook"])
            assert answer.position == position
            for match in answer.matches:
                state = memory.show_entry(match.entry_id, as_of_position=position)
                assert (match.title, state["body"]) in then[state["external_id"].partition("#")[0]]


def _of(report: Any, *actions: str) -> list[dict[str, Any]]:
    return [item for item in report.documents if item["action"] in actions]


def _topic(row: dict[str, Any]) -> str:
    return f"what to do about {row['title']} when it fires"[:190]


def _texts(memory: TenantMemory, **moment: Any) -> dict[str, list[tuple[str, str]]]:
    """Title and text of every entry that is in force, by the file that it came from, now or then."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    after = None
    while True:
        page = memory.list_entries(kinds=["runbook"], statuses=["published"], limit=200, after=after, **moment)
        for entry in page.as_dict()["entries"]:
            found[entry["external_id"].partition("#")[0]].append((entry["title"], entry["body"]))
        after = page.as_dict()["next"]
        if after is None:
            return {name: sorted(texts) for name, texts in found.items()}
