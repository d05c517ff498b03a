"""The tools that write: what they put where, what they refuse, and who is offered them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from grandbo.library import Grandbo, TenantMemory
from grandbo.mcp.tools import TOOLS, tools_for
from grandbo.mcp.writing import WAITS
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.mcp import call, text_of

TOPIC = "checkout queue stalled after the lease renewal failed"


@pytest.fixture
def agent(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    """An investigator agent."""
    return grandbo.authenticate(make_token(memory, "investigator"))


class TestOffer:
    def test_six_of_which_three_write(self, agent: TenantMemory) -> None:
        """Each says whether it only reads; with read-only none that writes is there."""
        offered = tools_for(agent.principal, read_only=False)
        assert (6, 3) == (len(offered), len(tools_for(agent.principal, read_only=True)))
        for tool in TOOLS:
            annotations = tool.described().annotations
            assert annotations is not None
            assert (not tool.writes, False) == (annotations.read_only_hint, annotations.destructive_hint)

    def test_an_auditor_is_not_offered_to_propose(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Tools that the token may not use are hidden."""
        auditor = grandbo.authenticate(make_token(memory, "auditor"))

        assert not {"propose_memory", "note_working_memory"} & {
            t.name for t in tools_for(auditor.principal, read_only=False)
        }


class TestPropose:
    def test_it_is_a_candidate_and_no_entry(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """It waits, is recalled by nobody, and the model is told so."""
        given = {
            "title": "Checkout queue stalled because the lease store was full",
            "summary": TOPIC,
            "evidence_urls": "https://logs.example.com/1\nhttps://graphs.example.com/2",
            "incident_ref": "pager:INC-7",
            "kind": "ruled_out",
        }

        result = call(agent, "propose_memory", given)

        assert WAITS in text_of(result)
        made = memory.candidates()[0]["candidate_id"]
        shown = memory.candidate(UUID(made))
        assert result.structured_content == {"candidate_id": made, "status": "pending"}
        assert ("agent", "ruled_out", 2, {"source": "pager", "id": "INC-7"}) == (
            shown["author_type"],
            shown["kind"],
            len(shown["content"]["evidence"]),
            shown["content"]["incident"],
        )
        assert () == memory.query_topic(TOPIC).matches

    def test_the_same_key_is_the_same_proposal(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """A retry of the model is no second candidate; another content under the key is a conflict that says so."""
        given = {"title": "The lease store was full", "conversation": "c-1", "idempotency_key": "k"}
        first = call(agent, "propose_memory", given)

        again = call(agent, "propose_memory", given)
        other = call(agent, "propose_memory", given | {"title": "Something else entirely"})

        assert first.structured_content["candidate_id"] == again.structured_content["candidate_id"]
        assert other.is_error
        assert text_of(other).startswith("command_reused: ")
        assert 1 == len(memory.candidates())

    @pytest.mark.parametrize(
        "given",
        [
            {"title": "No evidence at all"},
            {"title": "Memory is no evidence", "evidence_urls": "grandbo://entries/1"},
            {"title": "No URL", "evidence_urls": "somewhere in the logs"},
            {"title": "Odd incident", "conversation": "c", "incident_ref": "INC-7"},
            {"title": "x" * 201, "conversation": "c"},
            {"title": "A kind that is none", "conversation": "c", "kind": "dream"},
            {"title": "About a person", "conversation": "c", "kind": "personal"},
            {"summary": "no title", "conversation": "c"},
        ],
    )
    def test_what_cannot_be_proposed_is_told_how_it_could(
        self, memory: TenantMemory, agent: TenantMemory, given: dict[str, Any]
    ) -> None:
        """An error that a model can act on, and nothing waits."""
        result = call(agent, "propose_memory", given)

        assert result.is_error
        assert ":" in text_of(result)
        assert [] == memory.candidates()


class TestOutcome:
    def test_it_is_feedback_on_the_answer(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """By the receipt that stands at the end of the answer's text."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        told = call(agent, "query_org_memory", {"topic": TOPIC})
        receipt = told.structured_content["receipt_id"]
        given = {"receipt_id": receipt, "entry_id": f"{entry}/1#0-5", "outcome": "helped", "note": "It was that."}

        result = call(agent, "report_memory_outcome", given)

        assert f"receipt {receipt}," in text_of(told)
        assert not result.is_error
        assert 1 == memory.show_entry(entry)["feedback"]["helped"]
        assert "Known already" in text_of(call(agent, "report_memory_outcome", given))

    @pytest.mark.parametrize(
        "changed", [{"receipt_id": "r"}, {"entry_id": "e"}, {"outcome": "great"}, {"note": "x" * 1_001}]
    )
    def test_what_does_not_fit_is_told(
        self, memory: TenantMemory, agent: TenantMemory, changed: dict[str, str]
    ) -> None:
        """With what would."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        receipt = str(agent.query_topic(TOPIC).receipt_id)
        given = {"receipt_id": receipt, "entry_id": str(entry), "outcome": "helped"} | changed

        assert call(agent, "report_memory_outcome", given).is_error


class TestNotes:
    def test_it_is_noted_and_read_back(self, agent: TenantMemory) -> None:
        """In its investigation alone; an empty text only reads."""
        noted = call(agent, "note_working_memory", {"investigation_id": "INC-7", "text": "the broker was restarted"})
        read = call(agent, "note_working_memory", {"investigation_id": "INC-7"})
        other = call(agent, "note_working_memory", {"investigation_id": "INC-8"})

        assert "the broker was restarted" in text_of(noted)
        assert (1, 1, 0) == tuple(result.structured_content["shown"] for result in (noted, read, other))


class TestAsking:
    def test_layers_are_kept_apart(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """Each under its own heading, with the receipts of those that found something."""
        memory.record_finding(make_finding())
        memory.record_finding(make_finding(kind="runbook"))

        result = call(agent, "query_org_memory", {"topic": TOPIC, "layers": "findings, guidance,ruled_out"})

        assert ["findings", "guidance", "ruled_out"] == list(result.structured_content["layers"])
        text = text_of(result)
        assert text.index("findings: ") < text.index("guidance: ") < text.index("ruled_out: ")
        assert call(agent, "query_org_memory", {"topic": TOPIC, "layers": "dreams"}).is_error

    def test_versions_leave_out_what_does_not_apply(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """And the text says how much that was."""
        memory.record_finding(make_finding(applicability=["worker <4"]))

        result = call(agent, "query_org_memory", {"topic": TOPIC, "versions": "worker=5, broker=3"})

        assert [] == result.structured_content["matches"]
        assert "1 entry does not apply to the versions that you run and is left out." in text_of(result)
        assert call(agent, "query_org_memory", {"topic": TOPIC, "versions": "worker"}).is_error

    def test_the_floor_is_marked_as_not_matched(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """What the policy has given where nothing matched does not pass for a match."""
        memory.change_policy({"floor": 1}, reason="r")
        memory.record_finding(
            make_finding(kind="reference", tags=["core"], title="Where the dashboards live", incident=...)
        )

        text = text_of(call(agent, "query_org_memory", {"topic": "volcano marmalade saxophone umbrella"}))

        assert (
            text.index("Nothing matched")
            < text.index("Not matched; given by")
            < text.index("Where the dashboards live")
        )
