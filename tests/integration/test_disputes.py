"""Contradictions: found off the write path, waiting for a person, and never acted on by anything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import CandidateDecided, Forbidden, IllegalTransition, InvalidInput, NotFound
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase


@pytest.fixture
def reviewer(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    """A person who reviews, and does not see the tier `admin`."""
    return grandbo.authenticate(make_token(memory, "reviewer", kind="human"))


def reference(memory: TenantMemory, sentence: str, **fields: Any) -> UUID:
    """A reference that says one sentence about the gateway."""
    document = make_finding(
        **{"title": sentence, "summary": "", "body": "", "kind": "reference", "service": "gateway", "tags": []} | fields
    )
    return memory.record_finding(document).acknowledgement.entry_id


def pair(memory: TenantMemory, **fields: Any) -> tuple[UUID, UUID]:
    """Two references that cannot both hold, and the pass that finds that."""
    one = reference(memory, "The idle timeout of the gateway is 30 seconds")
    other = reference(memory, "The idle timeout of the gateway is 75 seconds", **fields)
    assert 1 == memory.detect_contradictions().proposed
    return one, other


def the_dispute(memory: TenantMemory) -> dict[str, Any]:
    """The one dispute that waits."""
    (found,) = [item for item in memory.candidates() if item["disputes"]]
    return memory.candidate(UUID(found["candidate_id"]))


class TestDetect:
    def test_a_pair_waits_with_its_reason(self, memory: TenantMemory) -> None:
        """The candidate names both entries, which rule found what, and shows the sentences; no entry is touched."""
        one, other = pair(memory)
        found = the_dispute(memory)

        assert (str(one), str(other)) == (found["into"], found["disputes"])
        assert (["contradiction"], 60, "system") == (found["flags"], found["risk"], found["author_type"])
        assert "Rules 1: value of gateway idl timeout" == found["proposal_reason"]
        (finding,) = found["dispute"]["contradictions"]["findings"]
        assert "The idle timeout of the gateway is 30 seconds" == finding["a"]
        assert [(False, 1)] * 2 == [
            (state["disputed"], state["revision"]) for state in map(memory.show_entry, (one, other))
        ]

    def test_it_is_found_once(self, memory: TenantMemory) -> None:
        """What was compared is not compared again, and a second pass proposes nothing."""
        pair(memory)

        again = memory.detect_contradictions()

        assert (0, 0, 0) == (again.compared, again.proposed, again.pending)

    def test_a_corrected_entry_is_compared_again(self, memory: TenantMemory) -> None:
        """Level-triggered: a new revision is a new comparison, whoever was asleep when it was made."""
        one = reference(memory, "The idle timeout of the gateway is 30 seconds")
        reference(memory, "The idle timeout of the gateway is 30 seconds in all regions")
        assert 0 == memory.detect_contradictions().proposed

        memory.correct(one, {"title": "The idle timeout of the gateway is 90 seconds in all regions"}, reason="r")

        assert 1 == memory.detect_contradictions().proposed

    def test_a_batch_ends_and_says_what_is_left(self, memory: TenantMemory) -> None:
        """A pass does so much and no more; the next goes on."""
        for number in range(5):
            reference(memory, f"Page {number} of the handbook")

        first = memory.detect_contradictions(at_most=3)

        assert (3, 2) == (first.compared, first.pending)
        assert (2, 0) == ((rest := memory.detect_contradictions()).compared, rest.pending)

    def test_a_full_queue_holds_it_back(self, memory: TenantMemory) -> None:
        """Where as many wait as may, the entry is left for later and not forgotten."""
        memory.change_policy({"pending_candidates": 1}, reason="few hands")
        pair(memory)
        reference(memory, "The owner of the gateway is team red")
        reference(memory, "The owner of the gateway is team blue")

        held_back = memory.detect_contradictions()
        assert 0 == held_back.proposed
        assert held_back.pending
        candidate = UUID(the_dispute(memory)["candidate_id"])
        memory.reject_candidate(candidate, reason="two gateways")

        assert 1 == memory.detect_contradictions().proposed

    def test_who_may(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """It takes a role that governs."""
        agent = grandbo.authenticate(make_token(memory, "investigator"))

        with pytest.raises(Forbidden):
            agent.detect_contradictions()

    def test_findings_of_different_incidents_are_left_alone(self, memory: TenantMemory) -> None:
        """Each tells of its own incident: other measures are no contradiction."""
        for day in (1, 2):
            memory.record_finding(
                make_finding(
                    title="Gateway outage",
                    summary=f"Time to recovery: {day * 30} minutes",
                    service="gateway",
                    occurred_at=f"2026-01-0{day}",
                )
            )

        assert 0 == memory.detect_contradictions().proposed


class TestDecide:
    def test_approving_marks_both_sides(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """Each is disputed with the other, by the person who decided; recall says so of both."""
        one, other = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])

        decided = reviewer.approve_candidate(candidate, reason="they cannot both hold")

        assert ("approved", "disputed", one, 2) == (
            decided.status,
            decided.outcome,
            decided.entry_id,
            decided.entry_revision,
        )
        states = {entry: memory.show_entry(entry) for entry in (one, other)}
        assert [(True, str(other)), (True, str(one))] == [
            (state["disputed"], state["disputed_with"]) for state in states.values()
        ]
        assert reviewer.principal.ref == memory.history(other)[-1]["principal"]
        answer = memory.query_topic("idle timeout of the gateway")
        assert {one, other} == {match.entry_id for match in answer.matches if match.disputed}
        assert memory.check_rebuild().ok
        assert 0 == memory.detect_contradictions().proposed

    def test_rejecting_is_remembered(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """The same two texts are not proposed again, however often they are compared; another text is."""
        one, _ = pair(memory)
        reviewer.reject_candidate(UUID(the_dispute(memory)["candidate_id"]), reason="two gateways")

        memory.verify_entry(one, reason="a new revision of the same text")
        assert 0 == memory.detect_contradictions().proposed
        memory.correct(one, {"title": "The idle timeout of the gateway is 31 seconds"}, reason="r")
        assert 1 == memory.detect_contradictions().proposed
        assert memory.check_rebuild().ok

    def test_reopening_resolves_what_it_disputed(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """The decision is undone on both sides, and the pair waits again."""
        one, other = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        reviewer.approve_candidate(candidate, reason="so")

        reviewer.reopen_candidate(candidate, reason="not so")

        assert [False, False] == [memory.show_entry(entry)["disputed"] for entry in (one, other)]
        assert "pending" == memory.candidate(candidate)["status"]
        assert memory.check_rebuild().ok

    def test_a_side_that_changed_since_is_not_undone(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """What happened after the decision is for a person to sort out."""
        one, _ = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        reviewer.approve_candidate(candidate, reason="so")
        memory.resolve(one, reason="by hand")

        with pytest.raises(IllegalTransition):
            reviewer.reopen_candidate(candidate, reason="not so")

    def test_a_side_that_is_disputed_already_is_left_as_it_is(
        self, memory: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """Only the other is marked; where both are, there is nothing to do."""
        one, other = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        memory.dispute(one, reason="somebody was faster")

        reviewer.approve_candidate(candidate, reason="so")

        assert (None, str(one)) == tuple(memory.show_entry(entry)["disputed_with"] for entry in (one, other))
        reviewer.reopen_candidate(candidate, reason="not so")
        assert [True, False] == [memory.show_entry(entry)["disputed"] for entry in (one, other)]

    def test_there_must_be_something_to_dispute(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """A pair of which one is put away cannot be approved; it can be rejected."""
        _, other = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        memory.archive(other, reason="gone")

        with pytest.raises(IllegalTransition):
            reviewer.approve_candidate(candidate, reason="so")
        assert "rejected" == reviewer.reject_candidate(candidate, reason="gone").status

    @pytest.mark.parametrize(
        ("act", "error"),
        [
            (lambda who, one: who.amend_candidate(one, {"title": "x"}, reason="r"), IllegalTransition),
            (lambda who, one: who.merge_candidate(one, reason="r"), IllegalTransition),
            (lambda who, one: who.approve_candidate(one, reason="r", changes={"title": "x"}), InvalidInput),
        ],
    )
    def test_it_says_nothing_of_its_own(
        self, memory: TenantMemory, act: Callable[[TenantMemory, UUID], Any], error: type[Exception]
    ) -> None:
        """A dispute is approved or rejected; there is no text in it to amend, to merge or to set."""
        pair(memory)

        with pytest.raises(error):
            act(memory, UUID(the_dispute(memory)["candidate_id"]))

    def test_only_a_person_and_only_once(self, grandbo: Grandbo, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """An agent with every role decides nothing, and who decided first decided."""
        pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        agent = grandbo.authenticate(make_token(memory, "admin"))

        with pytest.raises(Forbidden):
            agent.approve_candidate(candidate, reason="so")
        reviewer.approve_candidate(candidate, reason="so")
        with pytest.raises(CandidateDecided):
            memory.reject_candidate(candidate, reason="no", expected_version=1)

    def test_who_does_not_see_both_sees_neither(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """A dispute across tiers is absent for who sees only one: in the queue, by its id, and for every verb."""
        pair(memory, visibility="admin")
        candidate = UUID(the_dispute(memory)["candidate_id"])

        assert [] == reviewer.candidates()
        acts: list[Callable[[], Any]] = [
            lambda: reviewer.candidate(candidate),
            lambda: reviewer.approve_candidate(candidate, reason="r"),
            lambda: reviewer.reject_candidate(candidate, reason="r"),
        ]
        for act in acts:
            with pytest.raises(NotFound):
                act()
        assert 0 == reviewer.usage()["candidates"]["pending"]

    def test_a_side_raised_since_hides_it(self, memory: TenantMemory, reviewer: TenantMemory) -> None:
        """Whose tier leaves the reviewer's sight takes the dispute with it, whichever side it is."""
        one, _ = pair(memory)
        candidate = UUID(the_dispute(memory)["candidate_id"])
        memory.reclassify(one, visibility="admin", reason="r")

        assert [] == reviewer.candidates()
        with pytest.raises(NotFound):
            reviewer.candidate(candidate)


class TestQueue:
    def test_what_is_near_is_compared(self, memory: TenantMemory) -> None:
        """A candidate that contradicts an entry shows the sentences, and what says the same is a near duplicate."""
        entry = reference(memory, "The idle timeout of the gateway is 30 seconds")
        memory.embed()
        fields = {"summary": "", "body": "", "kind": "reference", "service": "gateway", "tags": []}
        against = memory.propose(make_finding(title="The idle timeout of the gateway is 75 seconds", **fields))
        same = memory.propose(make_finding(title="the idle timeout of the gateway is 30 seconds!", **fields))

        (near,) = memory.candidate(against.candidate_id)["nearest"]
        assert (str(entry), False) == (near["entry_id"], near["near_duplicate"])
        assert ["value"] == [item["rule"] for item in near["contradictions"]["findings"]]
        (near,) = memory.candidate(same.candidate_id)["nearest"]
        assert (True, []) == (near["near_duplicate"], near["contradictions"]["findings"])

    def test_a_recurrence_is_flagged(self, memory: TenantMemory) -> None:
        """Near an entry of the same service whose follow-ups are open, it says so; of another service it does not."""
        follow_up = {"type": "follow_up", "uri": "https://tickets.example.com/1", "label": "add an alert"}
        source = {"type": "log", "uri": "https://logs.example.com/1", "label": ""}
        entry = memory.record_finding(make_finding(evidence=[source, follow_up])).acknowledgement.entry_id
        again, elsewhere = (memory.propose(make_finding(service=name)).candidate_id for name in ("checkout", "search"))

        assert [(str(entry), 1)] == [
            (item["entry_id"], item["open_follow_ups"]) for item in memory.candidate(again)["recurrence"]
        ]
        assert [] == memory.candidate(elsewhere)["recurrence"]
        assert [1] == [
            match.open_follow_ups for match in memory.query_topic("checkout queue stalled after lease renewal").matches
        ]


class TestDoors:
    def test_over_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Detect, show and approve say over HTTP what the library says."""
        reference(memory, "The idle timeout of the gateway is 30 seconds")
        reference(memory, "The idle timeout of the gateway is 75 seconds")
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))

        detected = client.post("/v1/contradictions/detect")
        assert (200, {"compared": 2, "proposed": 1, "pending": 0}) == (detected.status_code, detected.json())
        candidate = the_dispute(memory)["candidate_id"]
        shown = client.get(f"/v1/candidates/{candidate}")
        assert memory.candidate(UUID(candidate)) == shown.json()
        approved = client.post(
            f"/v1/candidates/{candidate}/approve",
            json={"reason": "they cannot both hold"},
            headers={"If-Match": shown.headers["ETag"]},
        )
        assert (200, "disputed") == (approved.status_code, approved.json()["outcome"])

    def test_on_the_command_line(self, database: TestDatabase, memory: TenantMemory) -> None:
        """`review detect` finds it, and `review show` prints both sentences."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)
        reference(memory, "The idle timeout of the gateway is 30 seconds")
        reference(memory, "The idle timeout of the gateway is 75 seconds")

        assert {"compared": 2, "proposed": 1, "pending": 0} == cli("review", "detect", "--json").document
        assert "0 entries compared" in cli("review", "detect").out
        shown = cli("review", "show", the_dispute(memory)["candidate_id"]).out
        assert "30 seconds" in shown
        assert "75 seconds" in shown
