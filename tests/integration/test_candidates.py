"""Candidates: nothing that was only proposed is recalled before a person has let it in."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grandbo.errors import (
    CandidateDecided,
    CandidateStale,
    CommandReused,
    EvidenceMissing,
    Forbidden,
    GrandboError,
    IllegalTransition,
    InvalidInput,
    NotFound,
    OriginMissing,
    QuotaExceeded,
    RevisionStale,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.candidacy import CANDIDATE_ALLOWED, CANDIDATE_STATUSES, Decided
from grandbo.memory.candidate_content import content_of, document_of, finding_of
from grandbo.memory.proposal import parse_proposal
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.postgres import TestDatabase

TOPIC = "checkout queue stalled after the lease renewal failed"


@pytest.fixture
def agent(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    """An investigator agent: it may recall and propose."""
    return grandbo.authenticate(make_token(memory, "investigator"))


@pytest.fixture
def reviewer(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    """A person who reviews."""
    return grandbo.authenticate(make_token(memory, "reviewer", kind="human"))


@pytest.fixture
def second(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    """Another person who reviews."""
    return grandbo.tenant(memory.tenant.name, principal="human:second")


def _propose(who: TenantMemory, **fields: Any) -> UUID:
    return who.propose(make_finding(**fields)).candidate_id


def _found(memory: TenantMemory, **asked: Any) -> list[UUID]:
    return [match.entry_id for match in memory.query_topic(TOPIC, **asked).matches]


class TestPropose:
    def test_it_is_not_recalled(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """Whatever is asked, by whom, in whatever status, a candidate is in no answer and in no count."""
        _propose(agent)
        memory.embed()

        for mode in ("hybrid", "words", "meaning"):
            answer = memory.query_topic(
                TOPIC, mode=mode, statuses=["published", "archived", "superseded", "quarantined"]
            )
            assert ([], 0) == (list(answer.matches), answer.searched.eligible)

    @pytest.mark.parametrize(
        "origin", [None, {}, {"type": "rumour", "ref": "x"}, {"type": "person"}, {"type": "conversation", "ref": " "}]
    )
    def test_an_unknown_origin_is_refused(self, agent: TenantMemory, origin: dict[str, str] | None) -> None:
        """Without evidence a candidate must name the conversation or the person it comes from."""
        with pytest.raises(OriginMissing):
            agent.propose(make_finding(evidence=...), origin=origin)

    def test_an_origin_becomes_its_evidence(self, agent: TenantMemory) -> None:
        """A candidate without sources gets one that names where it was said; it is flagged as hearsay."""
        made = agent.propose(make_finding(evidence=[]), origin={"type": "conversation", "ref": "#ops/1:2"}).candidate_id

        shown = agent.candidate(made)

        evidence = {
            "type": "conversation",
            "uri": "urn:grandbo:conversation:%23ops%2F1%3A2",
            "label": "said in a conversation",
        }
        assert [evidence] == shown["content"]["evidence"]
        assert {"hearsay", "inference"} <= set(shown["flags"])

    def test_memory_alone_is_no_evidence(self, agent: TenantMemory) -> None:
        """What was itself served from memory cannot be what a proposal rests on."""
        served = [{"type": "memory", "uri": f"grandbo://entries/{new_id()}", "label": ""}]

        with pytest.raises(EvidenceMissing):
            agent.propose(make_finding(evidence=served))

    def test_however_alike_each_is_its_own(self, agent: TenantMemory) -> None:
        """Two proposals of the same title never collide."""
        first, again = (_propose(agent, title="The same title", incident=...) for _ in range(2))

        assert first != again
        assert 2 == len(agent.candidates(mine=True))

    def test_the_same_command_is_one_proposal(self, agent: TenantMemory) -> None:
        """A retry is the first answer again; the same id with other content is a conflict."""
        document, command = make_finding(), new_id()
        first = agent.propose(document, command_id=command)

        again = agent.propose(document, command_id=command)

        assert (first.candidate_id, first.position, True) == (again.candidate_id, again.position, again.replayed)
        with pytest.raises(CommandReused):
            agent.propose(make_finding(), command_id=command)

    def test_a_hook_that_tells_it_again_proposes_once(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What a hook says of an incident is one proposal, however often it is delivered."""
        hook = grandbo.authenticate(make_token(memory, "hook", kind="hook"))
        document = make_finding()

        assert hook.propose(document).candidate_id == hook.propose(document).candidate_id

    def test_too_many_are_refused(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """Past the policy's quota of one principal the next is refused until some are decided; others may go on."""
        memory.change_policy({"pending_candidates": 2}, reason="r")
        first, _ = _propose(agent), _propose(agent)

        with pytest.raises(QuotaExceeded):
            _propose(agent)
        _propose(memory)
        agent.withdraw_candidate(first, reason="r")
        _propose(agent)

    def test_not_above_ones_own_tier(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """A proposal may not stand in a tier that its author does not see."""
        with pytest.raises(Forbidden):
            _propose(agent, visibility="admin")

    def test_a_correction_of_what_one_does_not_see_is_refused(self, memory: TenantMemory, agent: TenantMemory) -> None:
        """An entry above one's tier, and one that is not there, look the same."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        for target in (hidden, new_id()):
            with pytest.raises(NotFound):
                agent.propose(make_finding(), into=target)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(
        st.fixed_dictionaries(
            {},
            optional={
                "occurred_at": st.sampled_from(["2026", "2026-01", "2026-01-02", "2026-01-02T03:04:05Z"]),
                "tags": st.lists(st.sampled_from("abc"), max_size=3),
                "applicability": st.lists(st.sampled_from(["worker >=4,<7", "broker"]), max_size=2),
                "kind": st.sampled_from(["finding", "runbook", "decision"]),
                "owner": st.sampled_from(["ops", None]),
                "namespace": st.sampled_from(["", "payments"]),
                "expires_at": st.just("2099-01-01T00:00:00Z"),
                "confidence_bp": st.integers(0, 10_000),
            },
        )
    )
    def test_what_is_kept_is_what_was_said(self, fields: dict[str, Any]) -> None:
        """A proposal turned into content and back is the same finding, every field of it."""
        finding = parse_proposal(make_finding(**fields))

        assert finding == finding_of(content_of(finding, "team")).model_copy(update={"visibility": None})
        assert "text_digest" not in document_of(content_of(finding, "team"))


class TestApprove:
    def test_then_it_is_recalled(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """Approved it is an entry of its author's type, with the reviewer's choices, in one command."""
        made = _propose(agent)

        decided = reviewer.approve_candidate(
            made,
            reason="checked",
            changes={"kind": "ruled_out", "owner": "ops", "visibility": "operations", "applicability": ["worker <7"]},
        )

        assert decided.entry_id is not None
        shown = memory.show_entry(decided.entry_id)
        expected = ("approved", "recorded", "ruled_out", "agent", "ops", "operations", ["worker <7"])
        assert expected == (
            decided.status,
            decided.outcome,
            *(shown[name] for name in ("kind", "author_type", "owner", "visibility", "applicability")),
        )
        assert [decided.entry_id] == _found(memory)
        events = list(memory.events(after=decided.position - 1))
        assert ["candidate_approved", "entry_recorded"] == [event["event_type"] for event in events]
        assert 1 == len({event["command_id"] for event in events})
        assert memory.check_rebuild().ok

    def test_nobody_approves_their_own(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Not with another key of the same principal either."""
        one = grandbo.authenticate(make_token(memory, "reviewer", kind="human"))
        made = _propose(one)
        other_key, token = memory.create_key(one.principal.name, "human", ("admin",))
        assert one.principal.ref == other_key.principal.ref

        for who in (one, grandbo.authenticate(token)):
            for decide in (who.approve_candidate, who.reject_candidate):
                with pytest.raises(Forbidden):
                    decide(made, reason="mine")

    def test_only_a_person_approves(self, grandbo: Grandbo, memory: TenantMemory, agent: TenantMemory) -> None:
        """An agent does not, whatever roles its key has."""
        made = _propose(agent)
        powerful = grandbo.authenticate(memory.create_key("powerful", "agent", ("admin",))[1])

        with pytest.raises(Forbidden):
            powerful.approve_candidate(made, reason="r")
        with pytest.raises(Forbidden):
            agent.approve_candidate(made, reason="r")

    def test_the_first_decision_stands(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """Of several people who decide at the same moment one does; the others are told by whom."""
        made = _propose(agent)
        people = [
            reviewer,
            memory,
            *(memory._grandbo.tenant(memory.tenant.name, principal=f"human:p{n}") for n in range(4)),
        ]
        outcomes: list[object] = []
        barrier = threading.Barrier(len(people))

        def decide(who: TenantMemory, approves: bool) -> None:
            barrier.wait()
            try:
                outcomes.append((who.approve_candidate if approves else who.reject_candidate)(made, reason="r"))
            except GrandboError as error:
                outcomes.append(error)

        threads = [threading.Thread(target=decide, args=(who, n % 2 == 0)) for n, who in enumerate(people)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        conflicts = [outcome for outcome in outcomes if isinstance(outcome, CandidateDecided)]
        assert len(people) - 1 == len(conflicts)
        assert {memory.candidate(made)["decided_by"]} == {conflict.details["decided_by"] for conflict in conflicts}
        assert memory.check_rebuild().ok

    def test_the_same_text_corroborates(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """A proposal that says word for word what an entry says supports that entry; it makes no second one."""
        text = {"title": "Pods get no address", "summary": "The subnet was used up.", "body": ""}
        entry = memory.record_finding(make_finding(**text)).acknowledgement.entry_id
        made = _propose(agent, **text)

        assert [True] == [item["same_text"] for item in reviewer.candidate(made)["related"]]
        decided = reviewer.approve_candidate(made, reason="again")

        assert ("corroborated", entry, 2) == (decided.outcome, decided.entry_id, decided.entry_revision)

    def test_two_must_approve_where_the_policy_says_so(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory, second: TenantMemory
    ) -> None:
        """The first approval lets nothing in; the same person's second is refused; an amendment voids the first."""
        memory.change_policy({"second_approval_kinds": ["runbook"], "second_approval_tiers": ["tech"]}, reason="r")
        made = _propose(agent, kind="runbook", incident=...)

        first = reviewer.approve_candidate(made, reason="looks right")
        assert ("pending", None) == (first.status, first.entry_id)
        with pytest.raises(IllegalTransition):
            reviewer.approve_candidate(made, reason="again")
        with pytest.raises(IllegalTransition):
            second.approve_candidate(made, reason="but", changes={"title": "Another title than the first saw"})
        agent.amend_candidate(made, {"summary": "Something else."}, reason="r")
        assert [] == second.candidate(made)["approved_by"]
        second.approve_candidate(made, reason="r")
        decided = reviewer.approve_candidate(made, reason="r")

        assert ("approved", "recorded") == (decided.status, decided.outcome)
        assert 2 == len({second.principal.ref, reviewer.principal.ref})
        assert memory.check_rebuild().ok

    def test_a_stale_approval_is_refused(self, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """What was amended since is looked at again."""
        made = _propose(agent)
        agent.amend_candidate(made, {"title": "Something else entirely"}, reason="r")

        with pytest.raises(CandidateStale) as stale:
            reviewer.approve_candidate(made, reason="r", expected_version=1)
        assert {"expected": 1, "current": 2} == stale.value.details

    def test_beyond_the_reviewers_tier_it_is_not_there(
        self, memory: TenantMemory, reviewer: TenantMemory, second: TenantMemory
    ) -> None:
        """A reviewer sees, lists and decides only within his tiers."""
        made = _propose(memory, visibility="admin")

        assert [] == reviewer.candidates()
        assert [made] == [UUID(item["candidate_id"]) for item in second.candidates()]
        for read in (reviewer.candidate, lambda it: reviewer.approve_candidate(it, reason="r")):
            with pytest.raises(NotFound):
                read(made)

    def test_a_reviewer_cannot_raise_it_above_his_tier(self, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """Nor does an approval lower what it may not see."""
        made = _propose(agent)

        with pytest.raises(Forbidden):
            reviewer.approve_candidate(made, reason="r", changes={"visibility": "admin"})
        with pytest.raises(InvalidInput):
            reviewer.approve_candidate(made, reason="r", changes={"imagined": 1})


class TestMerge:
    def test_it_corrects_the_entry(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """The text becomes the entry's, tags and evidence those of both; tier, kind and status stay."""
        entry = memory.record_finding(make_finding(visibility="tech", tags=["a"])).acknowledgement.entry_id
        before = memory.show_entry(entry)
        made = agent.propose(
            make_finding(title="A better title for it", tags=["b"], kind="runbook"), into=entry
        ).candidate_id

        decided = reviewer.merge_candidate(made, reason="better")

        after = memory.show_entry(entry)
        assert ("merged", entry, 2) == (decided.outcome, decided.entry_id, decided.entry_revision)
        assert ("A better title for it", ["a", "b"], 2) == (after["title"], after["tags"], len(after["evidence"]))
        assert {name: before[name] for name in ("visibility", "kind", "status", "service")} == {
            name: after[name] for name in ("visibility", "kind", "status", "service")
        }

    def test_into_what_cannot_be_corrected(
        self, memory: TenantMemory, other_memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """An archived entry refuses with what it accepts; a foreign one, and none, are not there; nothing happens."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.archive(entry, reason="r")
        made = _propose(agent)
        for target, error in (
            (entry, IllegalTransition),
            (foreign, NotFound),
            (new_id(), NotFound),
            (None, InvalidInput),
        ):
            with pytest.raises(error):
                reviewer.merge_candidate(made, into=target, reason="r")
        assert "pending" == reviewer.candidate(made)["status"]

    def test_into_an_entry_that_moved_on(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """A merge that was decided on another revision is refused with both."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.verify_entry(entry, reason="r")

        with pytest.raises(RevisionStale):
            reviewer.merge_candidate(_propose(agent), into=entry, reason="r", expected_revision=1)


class TestUndo:
    def test_of_an_approval(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """The entry is archived, the candidate waits again, and can be approved again."""
        made = _propose(agent)
        entry = reviewer.approve_candidate(made, reason="r").entry_id
        assert entry is not None

        undone = reviewer.reopen_candidate(made, reason="too soon")

        assert ("pending", [], "archived") == (undone.status, _found(memory), memory.show_entry(entry)["status"])
        again = reviewer.approve_candidate(made, reason="now")
        assert [again.entry_id] == _found(memory)
        assert memory.check_rebuild().ok

    def test_of_a_merge(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """The text that was replaced is the text again."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        before = memory.show_entry(entry)
        made = _propose(agent, title="Something else entirely")
        reviewer.merge_candidate(made, into=entry, reason="r")

        reviewer.reopen_candidate(made, reason="no")

        after = memory.show_entry(entry)
        assert (before["title"], before["evidence"], 3) == (after["title"], after["evidence"], after["revision"])

    def test_not_over_what_came_since(self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """Where the entry has changed since, undoing would lose that: it is refused."""
        made = _propose(agent)
        entry = reviewer.approve_candidate(made, reason="r").entry_id
        assert entry is not None
        memory.correct(entry, {"title": "Corrected since then"}, reason="r")

        with pytest.raises(IllegalTransition):
            reviewer.reopen_candidate(made, reason="r")

    def test_of_a_rejection_and_a_withdrawal(self, agent: TenantMemory, reviewer: TenantMemory) -> None:
        """A rejected one is reopened by who may govern, a withdrawn one by its author."""
        rejected, withdrawn = _propose(agent), _propose(agent)
        reviewer.reject_candidate(rejected, reason="r")
        agent.withdraw_candidate(withdrawn, reason="r")

        with pytest.raises(Forbidden):
            agent.reopen_candidate(rejected, reason="r")
        assert "pending" == reviewer.reopen_candidate(rejected, reason="r").status
        assert "pending" == agent.reopen_candidate(withdrawn, reason="r").status


class TestTransitions:
    @pytest.mark.parametrize("status", CANDIDATE_STATUSES)
    @pytest.mark.parametrize("verb", sorted(CANDIDATE_ALLOWED))
    @pytest.mark.parametrize("who", ["agent", "reviewer", "second"])
    def test_every_state_verb_and_principal(
        self,
        request: pytest.FixtureRequest,
        memory: TenantMemory,
        agent: TenantMemory,
        status: str,
        verb: str,
        who: str,
    ) -> None:
        """What the table allows to whom it is allowed happens; all else is a typed refusal that changes nothing."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        made = _propose(agent)
        arrange: dict[str, Callable[[], object]] = {
            "pending": lambda: None,
            "approved": lambda: memory.approve_candidate(made, reason="r"),
            "rejected": lambda: memory.reject_candidate(made, reason="r"),
            "withdrawn": lambda: agent.withdraw_candidate(made, reason="r"),
        }
        arrange[status]()
        actor: TenantMemory = request.getfixturevalue(who)
        acts: dict[str, Callable[[], Decided]] = {
            "amend": lambda: actor.amend_candidate(made, {"title": "Another title of it"}, reason="r"),
            "approve": lambda: actor.approve_candidate(made, reason="r"),
            "merge": lambda: actor.merge_candidate(made, into=entry, reason="r"),
            "reject": lambda: actor.reject_candidate(made, reason="r"),
            "withdraw": lambda: actor.withdraw_candidate(made, reason="r"),
            "reopen": lambda: actor.reopen_candidate(made, reason="r"),
        }
        act = acts[verb]
        is_own = who == "agent"
        may_do = {"amend": True, "withdraw": is_own, "reopen": not is_own or status == "withdrawn"}.get(
            verb, not is_own
        )
        before = memory.candidate(made)["version"]

        if status in CANDIDATE_ALLOWED[verb] and may_do:
            assert act().appended
        else:
            with pytest.raises((Forbidden, IllegalTransition, CandidateDecided)):
                act()
            assert before == memory.candidate(made)["version"]


class TestQueue:
    def test_the_riskiest_first_then_the_oldest_in_pages(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """Pages follow one another without a gap, and hold what the reviewer may see."""
        plain = [_propose(memory) for _ in range(3)]
        guidance = [_propose(agent, kind="runbook") for _ in range(2)]

        pages, after = [], None
        while page := reviewer.candidates(limit=2, after=after):
            pages += page
            after = (page[-1]["risk"], page[-1]["position"])

        assert [*guidance, *plain] == [UUID(item["candidate_id"]) for item in pages]
        assert guidance == [UUID(item["candidate_id"]) for item in agent.candidates()]

    def test_the_command_line_says_that_there_is_more(self, memory: TenantMemory, database: TestDatabase) -> None:
        """A page never passes for the whole queue, for people and for programs; followed, all come once."""
        proposed = [_propose(memory) for _ in range(5)]
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        first = cli("review", "list", "--limit", "2", "--json")
        after = json.loads(first.err)["next"]
        second = cli("review", "list", "--limit", "2", "--after", after, "--json")
        last = cli("review", "list", "--limit", "2", "--after", json.loads(second.err)["next"], "--json")

        listed = [item for page in (first, second, last) for item in page.documents]
        assert proposed == [UUID(item["candidate_id"]) for item in listed]
        assert "" == last.err
        assert f"There is more: --after {after}\n" == cli("review", "list", "--limit", "2").err
        assert (2, "invalid_input") == (
            (bad := cli("review", "list", "--after", "x", "--json")).code,
            bad.error["code"],
        )

    def test_the_nearest_are_shown_with_differences(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """A reviewer sees what the memory says already, and word for word what would be other."""
        entry = memory.record_finding(
            make_finding(title="Checkout queue stalled after the lease failed")
        ).acknowledgement
        memory.embed()
        made = _propose(agent, title="Checkout queue stalled after the broker failed")

        nearest = reviewer.candidate(made)["nearest"]

        assert str(entry.entry_id) == nearest[0]["entry_id"]
        words = {item["field"]: item["words"] for item in nearest[0]["changes"]}["title"]
        assert {"operation": "added", "text": "broker"} in words

    def test_tenants_do_not_meet(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """A candidate of one tenant is not there for another."""
        made = _propose(memory)

        assert [] == other_memory.candidates()
        for verb in (other_memory.candidate, lambda it: other_memory.reject_candidate(it, reason="r")):
            with pytest.raises(NotFound):
                verb(made)


class TestHistories:
    @settings(
        max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        st.lists(st.tuples(st.sampled_from(sorted(CANDIDATE_ALLOWED)), st.integers(0, 2), st.booleans()), max_size=10)
    )
    def test_rebuild_equals_live_after_any_history(
        self, memory: TenantMemory, agent: TenantMemory, reviewer: TenantMemory, steps: list[tuple[str, int, bool]]
    ) -> None:
        """Whatever was proposed, decided and undone in whatever order, the log gives the same projections."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        made = [_propose(agent) for _ in range(3)]
        for verb, which, by_author in steps:
            who = agent if by_author else reviewer
            options: dict[str, Any] = {"reason": "r"} | ({"into": entry} if verb == "merge" else {})
            arguments = [{"title": f"Title {new_id()}"}] if verb == "amend" else []
            try:
                getattr(who, f"{verb}_candidate")(made[which], *arguments, **options)
            except (Forbidden, IllegalTransition, CandidateDecided):
                continue

        assert memory.check_rebuild().ok
        assert None is memory.verify().first_bad
