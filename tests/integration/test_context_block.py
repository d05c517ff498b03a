"""The context block over a real memory: read under the caller's own tiers, the same at every door."""

from __future__ import annotations

import re
from typing import Any

import pytest

from grandbo.errors import InvalidInput
from grandbo.http.rendered_schemas import RenderedAnswerDocument
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.citations import stored_text
from grandbo.types import Principal
from tests.support.blocks import read_block
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, post_raw
from tests.support.postgres import TestDatabase

TOPIC = "consumers lost their leases after the broker restarted"
LONG = "Renewals timed out one after another and nobody looked. " * 150


def _unmarked(text: str) -> str:
    """The block without what is random in it."""
    return re.sub(r"\d{32}", "…", text)


class TestContextBlock:
    def test_it_quotes_the_stored_text_of_the_revision(self, memory: TenantMemory) -> None:
        """Each citation, sliced out of the revision it names, is what stands behind the bars."""
        finding = make_finding(body=LONG)
        made = memory.record_finding(finding).acknowledgement
        answer = memory.query_topic(TOPIC)
        memory.correct(made.entry_id, {"title": "Another title"}, reason="test", expected_revision=1)

        block = memory.context_block(answer, TOPIC, budget=600)

        text = stored_text(finding["title"], finding["summary"], finding["body"])
        quotes = read_block(block.text).quotes
        assert quotes
        for entry, revision, start, end, lines in quotes:
            assert (made.entry_id, 1) == (entry, revision)
            assert lines == [line for line in text[start:end].split("\n") if line.strip()]

    def test_an_entry_that_was_raised_above_the_caller_since_is_not_shown(
        self, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """Nor is it counted as left out."""
        made = memory.record_finding(make_finding()).acknowledgement
        lesser = TenantMemory(
            grandbo, memory.tenant, Principal("agent", memory.principal.principal_id, roles=frozenset({"investigator"}))
        )
        answer = lesser.query_topic(TOPIC)
        memory.reclassify(made.entry_id, visibility="admin", reason="test", expected_revision=1)

        shown = lesser.context_block(answer, TOPIC).as_dict()

        assert (0, 0, False) == (shown["shown"], shown["left_out"], shown["has_more"])
        assert "Checkout queue" not in shown["text"]

    def test_another_tenant_s_answer_shows_nothing(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """Ids alone open nothing."""
        memory.record_finding(make_finding())
        answer = memory.query_topic(TOPIC)

        assert () == other_memory.context_block(answer, TOPIC).items
        assert 1 == len(memory.context_block(answer, TOPIC).items)

    def test_as_of_quotes_what_was_then(self, memory: TenantMemory) -> None:
        """The block of a past answer has the past text."""
        made = memory.record_finding(make_finding(title="The first title of the queue")).acknowledgement
        memory.correct(made.entry_id, {"title": "The second title"}, reason="test", expected_revision=1)
        answer = memory.query_topic(TOPIC, as_of_position=made.position)

        text = memory.context_block(answer, TOPIC).text

        assert "| The first title of the queue" in text
        assert "second" not in text

    def test_the_budget_holds_over_many_entries(self, memory: TenantMemory) -> None:
        """For every budget and limit over entries of all lengths."""
        for number in range(40):
            memory.record_finding(make_finding(body=LONG[: number * 200]))
        for limit in (1, 5, 20):
            answer = memory.query_topic(TOPIC, limit=limit)
            for budget in (200, 700, 2_000, 8_000):
                block = memory.context_block(answer, TOPIC, budget=budget)
                assert block.tokens <= budget
                assert len(answer.matches) == len(block.items) + block.left_out

    def test_an_empty_answer_says_why(self, memory: TenantMemory) -> None:
        """Nothing stored, and nothing that matched, are told apart."""
        first = memory.context_block(memory.query_topic(TOPIC), TOPIC).text
        memory.record_finding(make_finding())
        other = "giraffes wander through savannas eating acacias"
        second = memory.context_block(memory.query_topic(other), other).text

        assert "Nothing is in scope:" in first
        assert re.search("\nNothing (matched|is near enough|was found by words)", second)


class TestDoors:
    def test_http_renders_when_asked(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The same block as the library's, in the declared shape; without the wish the answer is as it was."""
        memory.record_finding(make_finding(body=LONG))
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        plain = client.post("/v1/recall", json={"topic": TOPIC, "render": False}).json()
        rendered = client.post("/v1/recall", json={"topic": TOPIC, "render": True, "budget": 500}).json()

        expected = memory.context_block(memory.query_topic(TOPIC), TOPIC, budget=500).as_dict()
        assert "rendered" not in plain
        assert plain["matches"] == rendered["matches"]
        assert rendered == RenderedAnswerDocument.model_validate(rendered).model_dump()
        assert _unmarked(expected.pop("text")) == _unmarked(rendered["rendered"].pop("text"))
        assert expected == rendered["rendered"]

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"render": "yes"}, "render"),
            ({"render": True, "diff": True, "as_of_position": 1}, "render"),
            ({"budget": 500}, "budget"),
            ({"render": True, "budget": 199}, "budget"),
            ({"render": True, "budget": 8_001}, "budget"),
            ({"render": True, "budget": 500.0}, "budget"),
            ({"render": True, "budget": True}, "budget"),
        ],
    )
    def test_http_refuses_what_does_not_fit(
        self, grandbo: Grandbo, memory: TenantMemory, given: dict[str, Any], field: str
    ) -> None:
        """With the field."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = post_raw(client, "/v1/recall", {"topic": TOPIC, **given})

        assert (422, "invalid_input", field) == (answer.status_code, answer.json()["code"], answer.json()["field"])

    def test_the_library_refuses_a_budget_that_does_not_fit(self, memory: TenantMemory) -> None:
        """Below what a block needs, above what a client takes."""
        with pytest.raises(InvalidInput, match="budget"):
            memory.context_block(memory.query_topic(TOPIC), TOPIC, budget=9_000)

    def test_the_command_line_prints_it(self, database: TestDatabase, memory: TenantMemory) -> None:
        """As text, or in the JSON answer."""
        memory.record_finding(make_finding(body=LONG))
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        text = cli("recall", TOPIC, "--render", "--budget", "400")
        document = cli("recall", TOPIC, "--render", "--budget", "400", "--json").document

        assert text.out.startswith("<<<grandbo evidence ")
        assert _unmarked(text.out) == _unmarked(document["rendered"]["text"] + "\n")
        assert document["rendered"]["tokens"] <= 400

    @pytest.mark.parametrize("options", [["--budget", "400"], ["--render", "--budget", "100"]])
    def test_the_command_line_refuses_what_does_not_fit(
        self, database: TestDatabase, memory: TenantMemory, options: list[str]
    ) -> None:
        """A usage error, before anything is asked."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        assert (2, "budget") == ((ended := cli("recall", TOPIC, *options, "--json")).code, ended.error["field"])
