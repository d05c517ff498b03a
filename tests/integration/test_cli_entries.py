"""`grandbo entry`: what it shows, what each verb prints, and what it exits with."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from grandbo.library import TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase

NOBODY = "00000000-0000-7000-8000-000000000007"
# What each verb needs besides a reason, and what has to be done first.
VERBS: dict[str, tuple[list[str], str | None]] = {
    "correct": (["--service", "billing"], None),
    "restore": (["--revision", "1"], None),
    "archive": ([], None),
    "unarchive": ([], "archive"),
    "dispute": (["--other", "OTHER"], None),
    "resolve": ([], "dispute"),
    "supersede": (["--by", "OTHER"], None),
    "verify": (["--days", "30"], None),
    "expire": (["--at", "2100-01-01"], None),
    "reclassify": (["--kind", "decision", "--visibility", "tech"], None),
    "quarantine": ([], None),
    "release": ([], "quarantine"),
}


@pytest.fixture
def cli(database: TestDatabase, memory: TenantMemory) -> Cli:
    """The command line on the tests' database, in the test's own tenant, by words alone."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)


@pytest.fixture
def entry(memory: TenantMemory) -> str:
    """One entry at revision 2, so that there is one to go back to."""
    entry_id = memory.record_finding(make_finding(title="The first title")).acknowledgement.entry_id
    memory.correct(entry_id, {"title": "The second title"}, reason="it was wrong")
    return str(entry_id)


class TestShow:
    def test_with_json_it_is_what_the_library_shows(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """One object with every field."""
        assert memory.show_entry(uuid.UUID(entry)) == cli("entry", "show", entry, "--json").document

    def test_for_people_it_has_state_citation_sources_and_text(
        self, cli: Cli, memory: TenantMemory, entry: str
    ) -> None:
        """Disputed is said, and by what; a control character in stored text is spelled out."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.change_policy({"screening": {"hidden": "flag"}}, reason="r")
        memory.correct(uuid.UUID(entry), {"body": "One line.\nTurned \u202e around."}, reason="r")
        memory.dispute(uuid.UUID(entry), reason="r", other=other)

        shown = cli("entry", "show", entry).out

        assert "The second title" == shown.splitlines()[0]
        assert f"cite     {entry}/4@" in shown
        assert "finding · checkout · published · DISPUTED" in shown
        assert f"against  {other}" in shown
        assert "source   https://logs.example.com/" in shown
        assert "One line.\nTurned \\u{202e} around.\n" in shown

    @pytest.mark.parametrize("named", [NOBODY, "x", ""])
    def test_what_is_not_there_is_not_found(self, cli: Cli, named: str) -> None:
        """5, whether it never was or is no id."""
        refused = cli("entry", "show", named, "--json")

        assert (5, "", "not_found") == (refused.code, refused.out, refused.error["code"])


class TestHistory:
    def test_it_lists_who_what_when_and_why(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """JSON Lines are the library's; into a pipe go bare values."""
        lines = cli("entry", "history", entry, "--json")
        table = cli("entry", "history", entry).out.splitlines()

        assert memory.history(uuid.UUID(entry)) == lines.documents
        assert 2 == len(table)
        assert ["2", "entry_corrected", "it was wrong"] == [table[1].split("\t")[place] for place in (0, 2, 4)]

    def test_two_revisions_are_compared_word_by_word(self, cli: Cli, entry: str) -> None:
        """In the order in which they are named; two that are alike say so."""
        shown = cli("entry", "history", entry, "--diff", 1, 2)
        back = cli("entry", "history", entry, "--diff", 2, 1, "--json").document
        same = cli("entry", "history", entry, "--diff", 2, 2)

        assert (0, "title: The [-first-]{+second+} title\n") == (shown.code, shown.out)
        assert ((2, 1), ["title"]) == ((back["from"], back["to"]), [change["field"] for change in back["changes"]])
        assert {"operation": "removed", "text": "second"} in back["changes"][0]["words"]
        assert "say the same" in same.out

    def test_long_texts_are_shown_around_the_difference(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """Other values as they were and are."""
        around = "lease " * 200
        memory.correct(uuid.UUID(entry), {"body": f"{around}old {around}", "tags": ["a"]}, reason="r")
        memory.correct(uuid.UUID(entry), {"body": f"{around}new {around}", "tags": ["a", "b"]}, reason="r")

        shown = cli("entry", "history", entry, "--diff", 3, 4).out

        assert "tags: [-a-] {+a, b+}" in shown
        assert "lease [-old-]{+new+} lease" in shown
        assert len(shown) < 400

    @pytest.mark.parametrize(("pair", "code"), [((1, 9), 5), ((0, 1), 5), (("x", 1), 2), ((1,), 2)])
    def test_a_revision_that_never_was_is_not_found(
        self, cli: Cli, entry: str, pair: tuple[object, ...], code: int
    ) -> None:
        """And what is no pair of numbers is a mistake in the call."""
        assert code == cli("entry", "history", entry, "--diff", *pair).code


class TestChange:
    @pytest.mark.parametrize("verb", VERBS)
    def test_it_is_done_and_acknowledged(self, cli: Cli, memory: TenantMemory, entry: str, verb: str) -> None:
        """The acknowledgement with `appended`; its position and reason stand in the history."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        needed, first = VERBS[verb]
        if first:
            getattr(memory, first)(uuid.UUID(entry), reason="r")
        options = [other if word == "OTHER" else word for word in needed]
        revision = memory.show_entry(uuid.UUID(entry))["revision"]

        done = cli("entry", verb, entry, *options, "--reason", "because", "--expected-revision", revision, "--json")

        assert 0 == done.code, done.err
        assert {"entry_id", "revision", "position", "hash", "created", "appended"} == done.document.keys()
        assert (entry, revision + 1, False, True) == tuple(
            done.document[name] for name in ("entry_id", "revision", "created", "appended")
        )
        last = memory.history(uuid.UUID(entry))[-1]
        assert ("because", done.document["position"]) == (last["reason"], last["position"])

    @pytest.mark.parametrize("verb", VERBS)
    def test_a_stale_one_is_6_and_one_without_a_reason_is_2(
        self, cli: Cli, memory: TenantMemory, entry: str, verb: str
    ) -> None:
        """Neither writes anything; the stale one names both revisions."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        options = [other if word == "OTHER" else word for word in VERBS[verb][0]]
        head = memory.verify().head

        stale = cli("entry", verb, entry, *options, "--reason", "r", "--expected-revision", 1, "--json")
        unsaid = cli("entry", verb, entry, *options)

        assert (6, "revision_stale", 1, 2) == (
            stale.code,
            *(stale.error[name] for name in ("code", "expected", "current")),
        )
        assert 2 == unsaid.code
        assert head == memory.verify().head

    def test_for_people_it_is_a_citation_and_a_hash(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """Or it says that there was nothing to change."""
        done = cli("entry", "correct", entry, "--service", "billing", "--reason", "r").out
        again = cli("entry", "correct", entry, "--service", "billing", "--reason", "r").out

        assert done.startswith(f"Done: {entry}/3@{memory.verify().head}\nhash ")
        assert f"Nothing to change: {entry}/3@" in again

    @pytest.mark.parametrize(
        ("arguments", "code", "error"),
        [
            (["archive", NOBODY], 5, "not_found"),
            (["archive", "x"], 5, "not_found"),
            (["unarchive", "ENTRY"], 6, "illegal_transition"),
            (["correct", "ENTRY"], 2, "invalid_input"),
            (["correct", "ENTRY", "--confidence-bp", "20000"], 2, "invalid_input"),
            (["correct", "ENTRY", "--occurred-at", "2026-01-01T00:00:00"], 2, "invalid_input"),
            (["correct", "ENTRY", "--title", "x" * 300], 2, "limit_exceeded"),
            (["restore", "ENTRY", "--revision", "2"], 2, "invalid_input"),
            (["restore", "ENTRY", "--revision", "9"], 5, "not_found"),
            (["restore", "ENTRY", "--revision", "9" * 20], 2, "invalid_input"),
            (["dispute", "ENTRY", "--other", NOBODY], 5, "not_found"),
            (["supersede", "ENTRY", "--by", "x"], 5, "not_found"),
            (["verify", "ENTRY", "--days", "0"], 2, "invalid_input"),
            (["expire", "ENTRY", "--at", "soon"], 2, "invalid_input"),
            (["reclassify", "ENTRY"], 2, "invalid_input"),
            (["reclassify", "ENTRY", "--kind", "gossip"], 2, "invalid_input"),
        ],
    )
    def test_what_cannot_be_done_is_refused_under_its_code(
        self, cli: Cli, memory: TenantMemory, entry: str, arguments: list[str], code: int, error: str
    ) -> None:
        """And writes nothing."""
        head = memory.verify().head

        refused = cli("entry", *(entry if word == "ENTRY" else word for word in arguments), "--reason", "r", "--json")

        assert (code, "", error) == (refused.code, refused.out, refused.error["code"])
        assert head == memory.verify().head


class TestCorrect:
    def test_options_replace_what_they_name(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """Every option of a field, the empty text included; all else is what it was."""
        before = memory.show_entry(uuid.UUID(entry))
        options = [
            *("--title", "T", "--summary", "S", "--body", "", "--service", "s", "--tag", "a", "--tag", "b"),
            *("--confidence-bp", "0", "--occurred-at", "2025-01-02", "--ended-at", "2025-01-03T00:00:00Z"),
        ]

        assert 0 == cli("entry", "correct", entry, *options, "--reason", "r").code

        after = memory.show_entry(uuid.UUID(entry))
        changed = {name: value for name, value in after.items() if before[name] != value}
        assert ("T", "S", "", "s", ["a", "b"], 0, "day") == tuple(
            changed[name]
            for name in ("title", "summary", "body", "service", "tags", "confidence_bp", "occurred_precision")
        )
        assert {"occurred_at", "ended_at", "revision", "position", "changed_at"} < changed.keys()
        assert before["evidence"] == after["evidence"]

    def test_a_file_or_standard_input_may_hold_the_fields(
        self, cli: Cli, memory: TenantMemory, entry: str, tmp_path: Path
    ) -> None:
        """Tags can be emptied and evidence replaced that way."""
        path = tmp_path / "changes.json"
        evidence = [{"type": "ticket", "uri": "https://tickets.example.com/9", "label": ""}]
        path.write_text(json.dumps({"tags": [], "evidence": evidence}))

        one = cli("entry", "correct", entry, "--from", path, "--reason", "r")
        two = cli("entry", "correct", entry, "--from", "-", "--reason", "r", stdin='{"title": "From a pipe"}')

        after = memory.show_entry(uuid.UUID(entry))
        assert (0, 0) == (one.code, two.code)
        assert ([], evidence, "From a pipe") == (after["tags"], after["evidence"], after["title"])

    @pytest.mark.parametrize(
        ("stdin", "options", "code"),
        [
            ("[]", [], "invalid_input"),
            ("{", [], "not_json"),
            ("{}", [], "invalid_input"),
            ('{"status": "archived"}', [], "invalid_input"),
            ('{"title": "T"}', ["--title", "T"], "invalid_input"),
        ],
    )
    def test_what_holds_no_fields_is_refused(
        self, cli: Cli, entry: str, stdin: str, options: list[str], code: str
    ) -> None:
        """Neither both ways at once."""
        refused = cli("entry", "correct", entry, "--from", "-", "--reason", "r", "--json", *options, stdin=stdin)

        assert (2, code) == (refused.code, refused.error["code"])

    def test_a_file_that_is_not_there_is_a_mistake_in_the_call(self, cli: Cli, entry: str, tmp_path: Path) -> None:
        """2, with its name."""
        refused = cli("entry", "correct", entry, "--from", tmp_path / "none.json", "--reason", "r")

        assert 2 == refused.code
        assert "none.json cannot be read" in refused.err


class TestRestore:
    def test_a_dry_run_shows_the_words_and_writes_nothing(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """It needs no reason; what it showed is what the restore then does."""
        memory.archive(uuid.UUID(entry), reason="r")
        head = memory.verify().head

        shown = cli("entry", "restore", entry, "--revision", 1, "--dry-run")
        document = cli("entry", "restore", entry, "--revision", 1, "--dry-run", "--json").document

        assert 0 == shown.code
        assert "title: The [-second-]{+first+} title" in shown.out
        assert "the entry would stay archived" in shown.out
        assert (3, 1, 4, ["title"]) == (
            document["revision"],
            document["restored_revision"],
            document["next_revision"],
            [change["field"] for change in document["changes"]],
        )
        assert head == memory.verify().head
        done = cli("entry", "restore", entry, "--revision", 1, "--reason", "r", "--expected-revision", 3, "--json")
        after = memory.show_entry(uuid.UUID(entry))
        assert (4, "The first title", "archived") == (done.document["revision"], after["title"], after["status"])

    def test_a_dry_run_of_the_same_text_says_so(self, cli: Cli, memory: TenantMemory, entry: str) -> None:
        """There is nothing to show."""
        memory.archive(uuid.UUID(entry), reason="r")

        assert "The text is the same already." in cli("entry", "restore", entry, "--revision", 2, "--dry-run").out

    def test_a_stale_dry_run_is_a_conflict(self, cli: Cli, entry: str) -> None:
        """As the restore itself would be."""
        refused = cli("entry", "restore", entry, "--revision", 1, "--dry-run", "--expected-revision", 1)

        assert 6 == refused.code
