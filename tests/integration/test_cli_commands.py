"""The commands: what they print, for people and for programs, and what they exit with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from grandbo.errors import Unauthenticated
from grandbo.library import Grandbo, TenantMemory
from grandbo.sample import sample_lines
from grandbo.settings import default_home
from tests.support.cli import Cli, write_lines
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase

TOPIC = "the checkout queue stalled because a lease renewal failed"


@pytest.fixture
def cli(database: TestDatabase) -> Cli:
    """The command line on the tests' database, by words alone."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none")


@pytest.fixture
def mine(cli: Cli, memory: TenantMemory) -> Cli:
    """The same, with the test's own tenant in the environment."""
    return Cli(**cli.variables, GRANDBO_TENANT=memory.tenant.name)


@pytest.fixture
def finding_file(tmp_path: Path) -> Path:
    """A finding in a file."""
    path = tmp_path / "finding.json"
    path.write_text(json.dumps(make_finding()))
    return path


class TestTenant:
    def test_a_tenant_that_is_made_is_listed(self, cli: Cli, tenant_name: str) -> None:
        """`create` gives id and name; `list` gives one object a line and has it."""
        made = cli("tenant", "create", tenant_name, "--json")
        listed = cli("tenant", "list", "--json")

        assert 0 == made.code
        assert {"tenant_id", "name"} == made.document.keys()
        assert made.document in listed.documents

    def test_a_taken_name_is_a_conflict_and_leaves_stdout_empty(self, cli: Cli, memory: TenantMemory) -> None:
        """With --json the error is an object on stderr, so that stdout holds answers alone."""
        again = cli("tenant", "create", memory.tenant.name, "--json")

        assert (6, "", "tenant_exists") == (again.code, again.out, again.error["code"])

    def test_without_json_an_error_is_one_line_with_its_code(self, cli: Cli) -> None:
        """A person reads what went wrong and under which code to look it up."""
        refused = cli("tenant", "create", "/ not a name /")

        assert 2 == refused.code
        assert refused.err.startswith("error [invalid_input] ")
        assert 1 == len(refused.err.splitlines())

    def test_a_list_in_a_pipe_is_bare_values(self, cli: Cli, memory: TenantMemory) -> None:
        """Without a terminal there is no table to cut values short: tabs, no header."""
        listed = cli("tenant", "list")

        assert f"{memory.tenant.name}\t{memory.tenant_id}" in listed.out.splitlines()


class TestKey:
    def test_a_new_key_opens_the_tenant_until_it_is_revoked(self, mine: Cli, grandbo: Grandbo) -> None:
        """The secret that is shown is the whole token; the list never shows it; revoking ends it."""
        made = mine("key", "create", "--principal", "pager", "--type", "hook", "--role", "hook", "--json")
        secret, key_id = made.document["secret"], made.document["key_id"]

        fields = {"key_id", "secret", "principal", "type", "roles", "read_only", "expires_at"}
        assert fields == made.document.keys()
        assert "pager" == grandbo.authenticate(secret).principal.name
        assert "once" in made.err
        listed = mine("key", "list", "--json")
        assert [key_id] == [item["key_id"] for item in listed.documents]
        assert secret not in listed.out

        assert 0 == mine("key", "revoke", key_id).code
        with pytest.raises(Unauthenticated):
            grandbo.authenticate(secret)

    def test_a_key_that_does_not_exist_cannot_be_revoked(self, mine: Cli) -> None:
        """Exit code 5, as for anything that is not there."""
        assert 5 == mine("key", "revoke", "none").code

    def test_a_mistyped_role_is_refused(self, mine: Cli) -> None:
        """A key with an unknown role would silently see nothing."""
        refused = mine("key", "create", "--principal", "x", "--type", "agent", "--role", "investigater", "--json")

        assert (2, "invalid_input") == (refused.code, refused.error["code"])


class TestRecord:
    def test_a_finding_is_acknowledged_and_a_retry_is_the_same_acknowledgement(
        self, mine: Cli, finding_file: Path
    ) -> None:
        """Entry, revision, position, hash; the second time they are what they were."""
        first, again = mine("record", finding_file, "--json"), mine("record", finding_file, "--json")

        assert 0 == first.code
        assert {"entry_id", "revision", "position", "hash", "created"} == first.document.keys()
        assert first.document == again.document

    def test_a_finding_comes_from_standard_input(self, mine: Cli, finding_file: Path) -> None:
        """`-` reads stdin."""
        recorded = mine("record", "-", "--json", stdin=finding_file.read_bytes())

        assert (0, True) == (recorded.code, recorded.document["created"])

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("{", "not_json"),
            ("[]", "invalid_input"),
            (json.dumps({"title": "x", "evidence": []}), "evidence_missing"),
            (json.dumps(make_finding(title="x" * 201)), "limit_exceeded"),
            ('{"title": NaN}', "not_json"),
        ],
    )
    def test_a_bad_finding_exits_with_2_and_its_reason(self, mine: Cli, text: str, code: str) -> None:
        """Nothing of it is stored."""
        refused = mine("record", "-", "--json", stdin=text)

        assert (2, "", code) == (refused.code, refused.out, refused.error["code"])

    def test_a_file_that_is_not_there_is_a_mistake_in_the_call(self, mine: Cli, tmp_path: Path) -> None:
        """Exit code 2, with the file's name."""
        refused = mine("record", tmp_path / "none.json")

        assert 2 == refused.code
        assert "none.json cannot be read" in refused.err

    def test_without_a_tenant_it_says_how_to_name_one(self, cli: Cli, finding_file: Path) -> None:
        """No tenant is guessed."""
        refused = cli("record", finding_file)

        assert 2 == refused.code
        assert "--tenant" in refused.err

    def test_an_unknown_tenant_is_not_found(self, cli: Cli, finding_file: Path) -> None:
        """Exit code 5."""
        refused = cli("record", finding_file, "--tenant", "nobody-of-that-name", "--json")

        assert (5, "tenant_unknown") == (refused.code, refused.error["code"])


class TestImport:
    def test_bad_lines_are_reported_and_do_not_stop_the_rest(self, mine: Cli, tmp_path: Path) -> None:
        """Each with its line number and reason; what went in makes it a success."""
        good = {"id": "a", "title": "Disk full", "source": "s", "source_url": "https://example.com/a"}
        file = write_lines(tmp_path / "rows.jsonl", [good, {"id": "b", "title": "No evidence"}])
        with file.open("a") as more:
            more.write("nonsense\n")

        report = mine("import", file, "--json")

        assert 0 == report.code
        shown: dict[str, Any] = report.document
        assert (3, 1, 0, 0, 2) == tuple(
            shown[name] for name in ("read", "recorded", "corroborated", "unchanged", "refused")
        )
        assert [(2, "evidence_missing"), (3, "not_json")] == [(item["line"], item["code"]) for item in shown["errors"]]

    def test_an_import_that_refused_every_line_fails(self, mine: Cli) -> None:
        """Exit code 1: nothing of the file is in the memory."""
        report = mine("import", "-", stdin="{}\n[]\n")

        assert 1 == report.code
        assert "line 1 [" in report.err

    def test_an_empty_input_is_no_failure(self, mine: Cli) -> None:
        """There was nothing to refuse."""
        assert 0 == mine("import", "-", stdin="\n").code

    def test_runbooks_are_imported_as_runbooks(self, mine: Cli, tmp_path: Path) -> None:
        """`--kind runbook` takes the fields of runbooks."""
        row = {"id": "r", "title": "Restart the ingest workers", "applies_to": ["IngestLag"], "source": "s"}
        file = write_lines(tmp_path / "runbooks.jsonl", [{**row, "source_url": "https://example.com/r"}])

        assert 1 == mine("import", file, "--kind", "runbook", "--json").document["recorded"]
        found = mine("recall", "ingest workers lag behind", "--kind", "runbook", "--json").document
        assert ["r"] == [match["external_id"] for match in found["matches"]]

    def test_the_whole_sample_goes_in_and_a_second_time_nothing_changes(self, mine: Cli) -> None:
        """151 incidents, none refused; run again, all are unchanged."""
        lines = b"".join(sample_lines())

        first = mine("import", "-", "--json", stdin=lines).document
        second = mine("import", "-", "--json", stdin=lines).document

        assert (151, 151, 0) == (first["read"], first["recorded"] + first["corroborated"], first["refused"])
        assert (151, 151, 0) == (second["read"], second["unchanged"], second["refused"])


class TestEmbed:
    def test_the_local_model_gives_everything_a_vector(self, mine: Cli, finding_file: Path) -> None:
        """One look shows what is pending; --wait drains it; recall then finds by meaning."""
        assert 0 == mine("record", finding_file).code
        assert {"pending": 1, "embedded": 0, "dead": 0} == mine("embed", "--json", GRANDBO_EMBEDDER="local").document

        drained = mine("embed", "--wait", "--timeout", "60", "--json", GRANDBO_EMBEDDER="local")

        assert (0, {"pending": 0, "embedded": 1, "dead": 0}) == (drained.code, drained.document)
        found = mine("recall", TOPIC, "--mode", "meaning", "--json", GRANDBO_EMBEDDER="local").document
        assert [1] == [match["semantic"]["rank"] for match in found["matches"]]

    def test_a_timeout_leaves_the_rest_pending_and_fails(self, mine: Cli, finding_file: Path) -> None:
        """Exit code 1: the backlog is not drained."""
        assert 0 == mine("record", finding_file).code

        ended = mine("embed", "--wait", "--timeout", "0", "--json", GRANDBO_EMBEDDER="local")

        assert (1, {"pending": 1, "embedded": 0, "dead": 0}) == (ended.code, ended.document)

    def test_a_provider_that_cannot_be_reached_is_unavailable(self, mine: Cli) -> None:
        """Its space is not known before it has answered once: exit code 7."""
        nowhere = {"GRANDBO_EMBEDDER_URL": "http://127.0.0.1:9/v1", "GRANDBO_EMBEDDER_MODEL": "none"}

        refused = mine("embed", "--json", GRANDBO_EMBEDDER="openai", **nowhere)

        assert (7, "embedder_transient") == (refused.code, refused.error["code"])

    def test_without_an_embedder_there_is_nothing_to_wait_for(self, mine: Cli) -> None:
        """Exit code 3 and the name of the setting."""
        refused = mine("embed", "--wait")

        assert 3 == refused.code
        assert "GRANDBO_EMBEDDER" in refused.err

    def test_options_of_waiting_need_the_wait(self, mine: Cli) -> None:
        """A timeout without --wait would silently mean nothing."""
        assert 2 == mine("embed", "--retry-dead").code


class TestRecall:
    def test_json_is_the_answer_of_the_library(self, mine: Cli, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Same matches, same counts; only receipt and moment are each call's own."""
        memory.record_finding(make_finding())
        own = ("receipt_id", "instant")

        asked = mine("recall", TOPIC, "--mode", "words", "--limit", "3", "--json").document
        expected = memory.query_topic(TOPIC, mode="words", limit=3).as_dict()

        assert {**expected, **dict.fromkeys(own)} == {**asked, **dict.fromkeys(own)}

    def test_people_see_title_citation_reason_and_source(self, mine: Cli, memory: TenantMemory) -> None:
        """All that is needed to look the evidence up and to judge why it came."""
        finding = make_finding()
        ack = memory.record_finding(finding).acknowledgement

        shown = mine("recall", TOPIC, "--explain")

        assert f"1. {finding['title']}" in shown.out
        assert f"cite   {ack.entry_id}/{ack.revision}@{ack.position}" in shown.out
        assert "words: rank 1 (" in shown.out
        assert finding["evidence"][0]["uri"] in shown.out
        assert "By words alone" in shown.out
        assert "receipt" in shown.out
        moment = re.search(r"^at +position (\d+), (\S+)$", shown.out, re.MULTILINE)
        assert moment is not None
        assert (ack.position, "Z") == (int(moment[1]), moment[2][-1])

    def test_render_gives_the_fenced_block(self, mine: Cli, memory: TenantMemory) -> None:
        """The block that a model is given, and nothing around it."""
        memory.record_finding(make_finding())

        lines = mine("recall", TOPIC, "--render").out.splitlines()

        assert lines[0].startswith("<<<grandbo evidence ")
        assert lines[-1].startswith("<<<end of grandbo evidence ")

    def test_empty_answers_are_told_apart(self, mine: Cli, memory: TenantMemory) -> None:
        """Nothing stored, nothing by words with meaning asleep, and nothing at all are different sentences."""
        empty = mine("recall", TOPIC).out
        memory.record_finding(make_finding())
        asleep = mine("recall", "zebra yoghurt xylophones").out
        nothing = mine("recall", "zebra yoghurt xylophones", "--mode", "words").out

        assert "Nothing is in scope" in empty
        assert "no proof that nothing is known" in asleep
        assert "none of the 1 entries" in nothing

    def test_one_word_is_no_topic(self, mine: Cli) -> None:
        """Exit code 2 and what to write instead."""
        refused = mine("recall", "outage", "--json")

        assert (2, "topic_too_short") == (refused.code, refused.error["code"])

    def test_what_was_stored_cannot_steer_a_terminal(self, mine: Cli, memory: TenantMemory) -> None:
        """A direction override in a title is spelled out, and markup stays what it is."""
        memory.change_policy({"screening": {"hidden": "flag"}}, reason="so that one is stored")
        memory.record_finding(make_finding(title="Checkout [bold]queue\u202e stalled lease renewal"))

        shown = mine("recall", TOPIC).out

        assert "Checkout [bold]queue\\u{202e} stalled lease renewal" in shown

    def test_shared_options_work_after_the_topic(self, cli: Cli, memory: TenantMemory) -> None:
        """`--tenant`, by id too, and `--as` stand behind the command's own arguments."""
        answer = cli("recall", TOPIC, "--tenant", memory.tenant_id, "--as", "agent:investigator", "--json")

        assert (0, "nothing_in_scope") == (answer.code, answer.document["searched"]["empty_reason"])

    def test_a_principal_that_is_none_is_refused(self, mine: Cli) -> None:
        """`--as` takes `[type:]name` with one of the four types."""
        assert 2 == mine("recall", TOPIC, "--as", "robot:x").code


class TestConfigShow:
    def test_secrets_are_hidden(self, cli: Cli) -> None:
        """Every setting is there; of a secret only that it is set."""
        shown = cli("config", "show", "--json", GRANDBO_EMBEDDER_API_KEY="hunter2-token")

        assert "none" == shown.document["GRANDBO_EMBEDDER"]
        assert "(set, hidden)" == shown.document["GRANDBO_DATABASE_URL"]
        assert "hunter2-token" not in shown.out

    def test_a_wrong_setting_is_named_and_exits_with_3(self, cli: Cli) -> None:
        """The variable, never its value."""
        refused = cli("config", "show", GRANDBO_POOL_SIZE="lots-and-lots")

        assert 3 == refused.code
        assert "GRANDBO_POOL_SIZE" in refused.err
        assert "lots-and-lots" not in refused.err

    def test_an_empty_variable_is_an_unset_one(self, cli: Cli) -> None:
        """A home of "" would be whatever folder the process happens to stand in."""
        shown = cli("config", "show", "--json", GRANDBO_HOME="", GRANDBO_TENANT="").document

        assert shown["GRANDBO_TENANT"] is None
        assert str(default_home()) == shown["GRANDBO_HOME"]
