"""From the close of an incident to the memory: a candidate or a finding, and one of them however often it is told."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from grandbo.library import Grandbo, TenantMemory
from tests.support.hooks import CAUSE, Tool, make_tool
from tests.support.postgres import TestDatabase

SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


@pytest.fixture
def tool(grandbo: Grandbo, memory: TenantMemory) -> Tool:
    """A tool of which everything waits for a person."""
    return make_tool(grandbo, memory)


@pytest.fixture
def trusted(grandbo: Grandbo, memory: TenantMemory) -> Tool:
    """A tool that may record."""
    return make_tool(grandbo, memory, direct=True)


def approve(memory: TenantMemory, candidate_id: str) -> UUID:
    """Someone lets it in; gives the entry."""
    entry_id = memory.approve_candidate(UUID(candidate_id), reason="checked").entry_id
    assert entry_id is not None
    return entry_id


def body_of(memory: TenantMemory, entry_id: UUID) -> str:
    """The text of an entry."""
    text: str = memory.show_entry(entry_id)["body"]
    return text


class TestCandidate:
    def test_before_its_close_nothing_is_remembered(self, tool: Tool) -> None:
        """What comes before is collected, and stands in what the close makes."""
        for event in ("opened", "alert", "updated"):
            link = {"type": "alert", "uri": f"https://alerts.example.com/{event}", "label": event}
            assert "collected" == tool.told(event, evidence=[link])["outcome"]
        assert [] == tool.memory.candidates()

        closed = tool.told("resolved")

        shown = tool.memory.candidate(UUID(closed["candidate_id"]))
        assert 4 == len(shown["content"]["evidence"])
        assert ("no_cause" in shown["flags"], "hook") == (True, shown["author_type"])
        assert "write down what caused it" in shown["proposal_reason"]
        assert {"source": "grandbo", "id": "INC-1"} == shown["content"]["incident"]

    def test_more_about_it_amends_the_one_that_waits(self, tool: Tool) -> None:
        """Reopened, closed again, a post-mortem: one candidate, which tells all of it."""
        first = tool.told("resolved")
        told = [tool.told("reopened"), tool.told("resolved"), tool.told("postmortem", body="It was the renewal job.")]

        assert {first["candidate_id"]} == {item["candidate_id"] for item in told}
        assert ["amended"] * 3 == [item["outcome"] for item in told]
        (waiting,) = tool.memory.candidates()
        assert ([], 4) == (waiting["flags"], waiting["version"])
        content = tool.memory.candidate(UUID(first["candidate_id"]))["content"]
        assert "It was the renewal job." in content["body"]
        assert "Post-mortem published" in content["body"]

    def test_what_says_nothing_new_changes_nothing(self, tool: Tool) -> None:
        """The same facts in another delivery."""
        tool.told("resolved", ended_at="2026-01-02T03:44:05Z")
        before = tool.memory.verify().events

        assert "unchanged" == tool.told("resolved", ended_at="2026-01-02T03:44:05Z")["outcome"]
        assert before == tool.memory.verify().events

    @pytest.mark.parametrize("direct", [False, True])
    def test_broken_off_after_it_was_taken_in_it_came_to_the_same(
        self, grandbo: Grandbo, memory: TenantMemory, database: TestDatabase, direct: bool
    ) -> None:
        """A worker that dies between the incident's record and the delivery's: the next one tells what it came to."""
        tool = make_tool(grandbo, memory, direct=direct)
        delivery = tool.tell("resolved", cause=CAUSE)
        tool.memory.map_deliveries()
        first, before = tool.state(delivery), memory.verify().events
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_inbox SET state = 'received', outcomes = '[]', done_at = NULL,"
                " next_attempt_at = received_at WHERE delivery_id = %s",
                (delivery.delivery_id,),
            )

        tool.memory.map_deliveries()

        assert ("recorded" if direct else "proposed") == first["outcome"]
        assert first["outcomes"] == tool.state(delivery)["outcomes"]
        assert before == memory.verify().events

    def test_a_reviewers_wording_stays(self, tool: Tool) -> None:
        """What somebody has written in the candidate is not overwritten by the tool."""
        closed = tool.told("resolved")
        candidate = UUID(closed["candidate_id"])
        tool.memory.amend_candidate(candidate, {"title": "Ours"}, reason="clearer")

        assert "amended" == tool.told("updated", title="Theirs", summary="More")["outcome"]
        content = tool.memory.candidate(candidate)["content"]
        assert ("Ours", "More") == (content["title"], content["summary"])
        assert "review_kept" == tool.told("updated", title="Theirs again", summary="More")["outcome"]

    def test_a_decision_against_it_stands(self, tool: Tool) -> None:
        """Rejected is rejected, until the source tells a cause, which is another matter."""
        closed = tool.told("resolved")
        tool.memory.reject_candidate(UUID(closed["candidate_id"]), reason="nothing to learn")

        assert "decided_before" == tool.told("updated", title="Another title")["outcome"]
        assert [] == tool.memory.candidates()
        assert "proposed" == tool.told("postmortem", body="Why", cause=CAUSE)["outcome"]
        assert "amended" == tool.told("updated", summary="More")["outcome"]
        assert 1 == len(tool.memory.candidates())

    def test_after_approval_a_correction_waits(self, tool: Tool) -> None:
        """What the tool says later is proposed for the same entry, once, and merged into it."""
        closed = tool.told("resolved", cause=CAUSE)
        entry = approve(tool.memory, closed["candidate_id"])

        reopened, again = tool.told("reopened"), tool.told("resolved")

        assert ["correction_proposed"] * 2 == [reopened["outcome"], again["outcome"]]
        assert str(entry) == again["entry_id"]
        (waiting,) = tool.memory.candidates()
        assert str(entry) == waiting["into"]
        tool.memory.merge_candidate(UUID(waiting["candidate_id"]), reason="so it was")
        assert "Reopened" in body_of(tool.memory, entry)
        assert 1 == len(tool.memory.list_entries().as_dict()["entries"])
        assert tool.memory.check_rebuild().ok


class TestFinding:
    def test_a_cause_of_a_trusted_hook_is_recorded(self, trusted: Tool) -> None:
        """A finding at once, by the hook, with the cause in it."""
        told = trusted.told("resolved", cause=CAUSE)

        entry = trusted.memory.show_entry(UUID(told["entry_id"]))
        assert ("recorded", "hook", "published") == (told["outcome"], entry["author_type"], entry["status"])
        assert CAUSE in entry["body"]
        assert [] == trusted.memory.candidates()

    def test_without_a_cause_it_waits_all_the_same(self, trusted: Tool) -> None:
        """Once the cause is told, the finding is recorded, and the candidate is taken back."""
        waiting = trusted.told("resolved")
        assert "proposed" == waiting["outcome"]

        told = trusted.told("postmortem", body="The job had lost its permission.")

        assert "recorded" == told["outcome"]
        assert "withdrawn" == trusted.memory.candidate(UUID(waiting["candidate_id"]))["status"]

    def test_later_word_corrects_the_same_entry(self, trusted: Tool) -> None:
        """Reopened, edited, a post-mortem: revisions of one entry, which rebuilds and verifies."""
        first = trusted.told("resolved", cause=CAUSE)
        entry = UUID(first["entry_id"])
        reopened = trusted.told("reopened")
        assert "it is open again" in body_of(trusted.memory, entry)
        told = [
            reopened,
            trusted.told("resolved"),
            trusted.told("updated", title="Logins failed for an hour", tags=["tls"]),
            trusted.told("postmortem", title="Logins failed for an hour", body="All of it."),
        ]

        assert [(str(entry), "corrected")] * 4 == [(item["entry_id"], item["outcome"]) for item in told]
        shown = trusted.memory.show_entry(entry)
        assert (5, "Logins failed for an hour", ["tls"]) == (shown["revision"], shown["title"], shown["tags"])
        assert "it is open again" not in shown["body"]
        assert 1 == len(trusted.memory.list_entries().as_dict()["entries"])
        assert trusted.memory.check_rebuild().ok
        assert None is trusted.memory.verify().first_bad

    def test_what_a_person_wrote_is_not_overwritten(self, trusted: Tool) -> None:
        """Where both changed the same field, the tool's word waits as a candidate; elsewhere it corrects."""
        entry = UUID(trusted.told("resolved", cause=CAUSE)["entry_id"])
        trusted.memory.correct(entry, {"title": "Ours"}, reason="clearer")

        assert "corrected" == trusted.told("updated", summary="More")["outcome"]
        assert "correction_proposed" == trusted.told("updated", title="Theirs", summary="More")["outcome"]
        assert "Ours" == trusted.memory.show_entry(entry)["title"]
        (waiting,) = trusted.memory.candidates()
        assert (str(entry), "Theirs") == (waiting["into"], waiting["title"])

    def test_evidence_of_others_stays(self, trusted: Tool) -> None:
        """A correction adds what the tool has; it takes away nothing."""
        entry = UUID(trusted.told("resolved", cause=CAUSE)["entry_id"])
        other = {"type": "log", "uri": "https://logs.example.com/other", "label": "theirs"}
        trusted.memory.corroborate(entry, incident={"source": "pager", "id": "P1"}, evidence=[other])

        trusted.told("postmortem", evidence=[{"type": "postmortem", "uri": "https://docs.example.com/pm"}])

        uris = {item["uri"] for item in trusted.memory.show_entry(entry)["evidence"]}
        assert {other["uri"], "https://docs.example.com/pm", "https://tickets.example.com/INC-1"} == uris

    def test_what_was_put_away_is_left_alone(self, trusted: Tool) -> None:
        """An archived entry is not brought back by its tool."""
        entry = UUID(trusted.told("resolved", cause=CAUSE)["entry_id"])
        trusted.memory.archive(entry, reason="not ours")

        assert "entry_put_away" == trusted.told("reopened")["outcome"]
        assert 2 == trusted.memory.show_entry(entry)["revision"]

    def test_a_less_trusted_hook_only_proposes(self, trusted: Tool, tool: Tool) -> None:
        """Two hooks of one tool know the same incident; each does what it may."""
        entry = trusted.told("resolved", cause=CAUSE)["entry_id"]

        told = tool.told("updated", title="Another title")

        assert ("correction_proposed", entry) == (told["outcome"], told["entry_id"])

    def test_it_passes_the_screen(self, trusted: Tool) -> None:
        """A secret in what the tool sends is in no entry and no event."""
        entry = UUID(trusted.told("resolved", cause=f"The key {SECRET} had leaked.")["entry_id"])

        body = body_of(trusted.memory, entry)
        assert (False, True) == (SECRET in body, "[REDACTED:" in body)
        assert SECRET not in str(trusted.memory.history(entry))


class TestPrivate:
    @pytest.mark.parametrize("direct", [False, True])
    def test_it_is_refused_unless_the_hook_takes_it(self, grandbo: Grandbo, memory: TenantMemory, direct: bool) -> None:
        """Nothing of it is kept, also of what does not say again that it is private."""
        tool = make_tool(grandbo, memory, direct=direct)
        told = tool.told("opened", is_private=True)
        later = tool.told("resolved", cause=CAUSE)

        assert [("ignored", "private_refused", None)] * 2 == [
            (item["state"], item["outcome"], item["body"]) for item in (told, later)
        ]
        assert ([], []) == (memory.candidates(), memory.list_entries().as_dict()["entries"])

    def test_one_that_takes_it_puts_it_at_the_top(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """In the highest tier, as a candidate and as an entry."""
        tool = make_tool(grandbo, memory, takes_private=True)
        trusted = make_tool(grandbo, memory, takes_private=True, direct=True)

        waiting = tool.told("resolved", is_private=True)
        entry = trusted.told("resolved", "INC-2", cause=CAUSE, is_private=True)["entry_id"]

        assert "admin" == memory.candidate(UUID(waiting["candidate_id"]))["content"]["visibility"]
        assert "admin" == memory.show_entry(UUID(entry))["visibility"]

    @pytest.mark.parametrize("takes_private", [False, True])
    def test_what_becomes_private_rises(self, grandbo: Grandbo, memory: TenantMemory, takes_private: bool) -> None:
        """An entry goes up; a candidate goes up, or back where the hook does not take it."""
        tool = make_tool(grandbo, memory, takes_private=takes_private)
        trusted = make_tool(grandbo, memory, takes_private=takes_private, direct=True)
        waiting = UUID(tool.told("resolved")["candidate_id"])
        entry = UUID(trusted.told("resolved", "INC-2", cause=CAUSE)["entry_id"])

        tool.told("updated", is_private=True)
        trusted.told("updated", "INC-2", is_private=True)

        assert "admin" == memory.show_entry(entry)["visibility"]
        shown = memory.candidate(waiting)
        expected = ("pending", "admin") if takes_private else ("withdrawn", "team")
        assert expected == (shown["status"], shown["content"]["visibility"])


class TestIgnored:
    def test_a_drill_is_nothing(self, trusted: Tool) -> None:
        """Neither an entry nor a candidate nor a record."""
        told = trusted.told("resolved", cause=CAUSE, is_drill=True)

        assert ("ignored", "drill") == (told["state"], told["outcome"])
        assert "recorded" == trusted.told("resolved", cause=CAUSE)["outcome"], "the real one is the first of it"

    def test_tenants_do_not_share_incidents(self, trusted: Tool, grandbo: Grandbo, other_memory: TenantMemory) -> None:
        """The same incident of the same tool, in two tenants, is two."""
        other = make_tool(grandbo, other_memory, direct=True)
        entries: list[Any] = [item.told("resolved", cause=CAUSE)["entry_id"] for item in (trusted, other)]

        assert 2 == len(set(entries))
        assert "corrected" == other.told("reopened")["outcome"]
        assert 1 == trusted.memory.show_entry(UUID(entries[0]))["revision"]
