"""Proposals about one person: sealed, seen by whose they are, decided by a person, never wider than that person."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import (
    CandidateDecided,
    EvidenceMissing,
    Forbidden,
    GrandboError,
    IllegalTransition,
    InvalidInput,
    KindNotRecorded,
    LimitExceeded,
    NotFound,
    OriginMissing,
    QuotaExceeded,
    RevisionStale,
    SubjectErased,
    SubjectMissing,
    SubjectOnHold,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.held_report import render_held
from grandbo.types import from_utc_text, new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.mcp import call, text_of
from tests.support.people import ABOUT_HER, ZOE, told
from tests.support.postgres import TestDatabase

KIM = "kim@example.com"
SAID = "Likes to be told about a failing deployment by phone"
ORIGIN = {"type": "conversation", "ref": "ops-42"}


def personal(**fields: Any) -> dict[str, Any]:
    """A proposal about Zoë."""
    told = {"kind": "personal", "subject": ZOE, "memory_key": "alerts", "title": SAID, "text": "At any hour."}
    return {key: value for key, value in {**told, **fields}.items() if value is not ...}


def episode(**fields: Any) -> dict[str, Any]:
    """What came of a session of hers."""
    told = {"kind": "episode", "subject": ZOE, "session_id": "s-1", "title": "Looked for the leak in the checkout"}
    return {key: value for key, value in {**told, **fields}.items() if value is not ...}


@pytest.fixture
def scout(grandbo: Grandbo, tenant_name: str, memory: TenantMemory) -> TenantMemory:
    """An agent that investigates, and has nothing to do with her."""
    return grandbo.tenant(tenant_name, principal="agent:scout", roles=("investigator",))


@pytest.fixture
def reviewer(grandbo: Grandbo, tenant_name: str, memory: TenantMemory) -> TenantMemory:
    """A person who reviews what is the organisation's."""
    return grandbo.tenant(tenant_name, principal="human:rita", roles=("reviewer",))


def proposed(who: TenantMemory, **fields: Any) -> UUID:
    """A proposal about her."""
    return who.propose(personal(**fields), origin=ORIGIN).candidate_id


def embedded(memory: TenantMemory, **how: Any) -> list[str]:
    """Titles of what is personal to the asker, once all of it has its vectors."""
    memory.embed()
    return told(memory, **how)


class TestProposing:
    @pytest.mark.parametrize("document", [personal(subject=...), personal(subject=None), episode(subject=...)])
    def test_without_a_subject_it_is_refused(
        self, memory: TenantMemory, scout: TenantMemory, document: dict[str, Any]
    ) -> None:
        """With that reason, before anything else that may be wrong with it."""
        memory.change_policy({"people": {"episodes": True}}, reason="we want them")

        with pytest.raises(SubjectMissing) as refused:
            scout.propose(document)
        assert "subject_missing" == refused.value.code

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"subject": "nobody@example.com"}, NotFound),
            ({"memory_key": ...}, InvalidInput),
            ({"memory_key": " "}, InvalidInput),
            ({"memory_key": "a", "external_id": "b"}, InvalidInput),
            ({"title": "x" * 201}, LimitExceeded),
            ({"text": "x" * 4_001}, LimitExceeded),
            ({"text": "a", "summary": "b"}, InvalidInput),
            ({"service": "checkout"}, InvalidInput),
            ({"body": "more"}, InvalidInput),
            ({"visibility": "admin"}, InvalidInput),
            ({"owner": "ops"}, InvalidInput),
            ({"tags": ["x"]}, InvalidInput),
            ({"surprise": 1}, InvalidInput),
            ({"kind": "note"}, InvalidInput),
            ({"evidence": [{"type": "memory", "uri": "grandbo://entries/1"}]}, EvidenceMissing),
        ],
    )
    def test_what_does_not_fit_is_refused(
        self, zoe: TenantMemory, scout: TenantMemory, fields: dict[str, Any], error: type[GrandboError]
    ) -> None:
        """Each with what is wrong, and nothing waits."""
        with pytest.raises(error):
            scout.propose(personal(**fields), origin=ORIGIN)
        assert [] == scout.candidates()

    def test_an_unknown_origin_is_refused(self, zoe: TenantMemory, scout: TenantMemory) -> None:
        """What is about a person says where it comes from as much as all else; a note is of no proposal."""
        with pytest.raises(OriginMissing):
            scout.propose(personal())
        with pytest.raises(KindNotRecorded):
            scout.propose(make_finding(kind="note"))

    def test_its_text_is_sealed(self, zoe: TenantMemory, scout: TenantMemory, database: TestDatabase) -> None:
        """No word of it stands in the log, nor a digest that could be guessed; nobody recalls it, in any status."""
        proposed(scout)
        with database.as_admin() as conn:
            rows = conn.execute(
                "SELECT envelope, body FROM grandbo.org_memory_events WHERE tenant_id = %s", [zoe.tenant_id]
            ).fetchall()

        assert not any(word in repr(rows).lower() for word in ("deployment", "phone", "alerts", "any hour"))
        assert [] == embedded(zoe)
        answer = scout.query_topic(ABOUT_HER, statuses=["published", "archived", "superseded"])
        assert ((), 0) == (answer.matches, answer.searched.eligible)

    def test_a_hook_that_tells_it_again_proposes_once(
        self, grandbo: Grandbo, memory: TenantMemory, zoe: TenantMemory, database: TestDatabase
    ) -> None:
        """Of the same incident and subject; the id that makes it so is made with the subject's key."""
        hook = grandbo.authenticate(make_token(memory, "hook", kind="hook"))
        document = make_finding(subject=ZOE)

        first, again = hook.propose(document), hook.propose(document)

        assert [first.candidate_id, True] == [again.candidate_id, again.replayed]
        assert [1, None] == [len(memory.candidates()), memory.verify().first_bad]

    def test_too_many_are_refused(self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """They count as all else that one principal has waiting."""
        memory.change_policy({"pending_candidates": 1}, reason="r")
        proposed(scout)

        with pytest.raises(QuotaExceeded):
            proposed(scout, memory_key="other")


class TestQueue:
    def test_it_is_seen_by_whose_it_is_and_by_who_proposed_it(
        self,
        memory: TenantMemory,
        zoe: TenantMemory,
        helper: TenantMemory,
        scout: TenantMemory,
        reviewer: TenantMemory,
        grandbo: Grandbo,
        tenant_name: str,
    ) -> None:
        """To all others it is absent: same lists, same counts, same errors, whatever they may do."""
        auditor = grandbo.tenant(tenant_name, principal="human:aud", roles=("auditor",))
        other = grandbo.tenant(tenant_name, principal="agent:other", roles=("companion", "investigator"))
        before = memory.usage()["candidates"]
        found = proposed(scout)

        for who in (zoe, helper, scout):
            assert [str(found)] == [item["candidate_id"] for item in who.candidates()]
            shown = who.candidate(found)
            assert ["alerts", SAID, "At any hour."] == [
                shown["content"][name] for name in ("memory_key", "title", "text")
            ]
            assert [who is zoe, True] == [shown["may_decide"], shown["subject_id"] is not None]
        for who in (memory, reviewer, other):
            assert [[], []] == [who.candidates(), who.candidates(kind="personal")]
            absent, foreign = self._refusal(who, found), self._refusal(who, new_id())
            assert absent == foreign == ("not_found", "There is no such candidate in this tenant.")
        assert before == memory.usage()["candidates"] == auditor.usage()["candidates"]
        assert not any(event["stream_id"] == str(found) for event in reviewer.events())

    def _refusal(self, who: TenantMemory, candidate: UUID) -> tuple[str, str]:
        with pytest.raises(GrandboError) as refused:
            who.candidate(candidate)
        return refused.value.code, refused.value.message

    def test_shared_by_policy_a_role_sees_it(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """And decides on it where it reviews; taken back, it is absent again."""
        found = proposed(scout)
        memory.change_policy({"people": {"shared_with": ["reviewer"]}}, reason="they care for her")
        assert reviewer.candidate(found)["may_decide"]
        memory.change_policy({"people": {"shared_with": []}}, reason="no more")

        with pytest.raises(NotFound):
            reviewer.approve_candidate(found, reason="seen")

    def test_with_nobody_of_its_own_it_is_left_to_who_administers(
        self, memory: TenantMemory, scout: TenantMemory, reviewer: TenantMemory, grandbo: Grandbo, tenant_name: str
    ) -> None:
        """Whoever must approve has to be able to read it: a subject with agents alone, or with nobody."""
        memory.register_subject("person", KIM, "Kim", principals=["agent:kims"])
        found = proposed(scout, subject=KIM)
        robot = grandbo.tenant(tenant_name, principal="agent:admin", roles=("admin",))

        assert [str(found)] == [item["candidate_id"] for item in memory.candidates()]
        assert [[], []] == [reviewer.candidates(), robot.candidates()]
        approved = memory.approve_candidate(found, reason="she said so")
        assert ("approved", "recorded") == (approved.status, approved.outcome)
        assert approved.entry_id is not None
        with pytest.raises(NotFound):
            memory.show_entry(approved.entry_id)

    def test_proposed_by_the_one_person_it_is_left_to_who_administers_too(
        self, memory: TenantMemory, zoe: TenantMemory, grandbo: Grandbo, tenant_name: str
    ) -> None:
        """Nobody approves their own, and nothing waits for nobody."""
        found = proposed(zoe)
        with pytest.raises(Forbidden, match="their own"):
            zoe.approve_candidate(found, reason="mine")

        assert memory.approve_candidate(found, reason="she asked for it").entry_id is not None
        assert [SAID] == embedded(zoe)

    def test_two_tenants_do_not_meet(
        self, zoe: TenantMemory, scout: TenantMemory, other_memory: TenantMemory, grandbo: Grandbo
    ) -> None:
        """The same reference and the same name of a principal, in another tenant."""
        found = proposed(scout)
        other_memory.register_subject("person", ZOE, "Zoë Nakamura", principals=["human:zoe"])
        there = grandbo.tenant(other_memory.tenant_id, principal="human:zoe")

        assert [] == there.candidates()
        for verb in (there.candidate, lambda one: there.reject_candidate(one, reason="r")):
            with pytest.raises(NotFound):
                verb(found)


class TestApproving:
    def test_it_becomes_what_is_remembered_about_her(
        self, zoe: TenantMemory, helper: TenantMemory, memory: TenantMemory, scout: TenantMemory
    ) -> None:
        """Under its key, in her own tier, for ninety days, as the inference that it is; in no other recall."""
        done = zoe.approve_candidate(proposed(scout), reason="so it is")
        assert done.entry_id is not None
        entry = zoe.show_entry(done.entry_id)

        assert ["personal", "alerts", "agent", "At any hour.", ["inference", "conversation"]] == [
            *(entry[name] for name in ("kind", "external_id", "author_type", "summary")),
            [item["type"] for item in entry["evidence"]],
        ]
        assert timedelta(days=89) < from_utc_text(entry["expires_at"]) - datetime.now(UTC) <= timedelta(days=90)
        assert [SAID] == embedded(zoe) == embedded(helper)
        for other in (memory, scout):
            assert [] == embedded(other)
            assert () == other.query_topic(ABOUT_HER, mode="words").matches
        assert () == zoe.query_topic(ABOUT_HER, mode="words").matches
        with pytest.raises(NotFound):
            memory.show_entry(done.entry_id)
        assert [] == memory.check_rebuild().differences
        assert memory.verify().first_bad is None

    def test_who_may_not_decide_does_not(
        self,
        zoe: TenantMemory,
        helper: TenantMemory,
        memory: TenantMemory,
        scout: TenantMemory,
        reviewer: TenantMemory,
        grandbo: Grandbo,
        tenant_name: str,
    ) -> None:
        """Neither an agent of hers, nor who proposed it, nor anybody else, by any decision; to others it is absent."""
        found = proposed(scout)
        reading = grandbo.authenticate(memory.create_key("zoe", "human", ("companion",), read_only=True)[1])
        verbs: list[Callable[[TenantMemory], object]] = [
            lambda who: who.approve_candidate(found, reason="r"),
            lambda who: who.merge_candidate(found, into=new_id(), reason="r"),
            lambda who: who.reject_candidate(found, reason="r"),
        ]
        for verb in verbs:
            for who, error in (
                (helper, Forbidden),
                (scout, Forbidden),
                (memory, NotFound),
                (reviewer, NotFound),
                (reading, Forbidden),
            ):
                with pytest.raises(error):
                    verb(who)
        assert "pending" == zoe.candidate(found)["status"]

    def test_the_first_decision_wins(self, zoe: TenantMemory, scout: TenantMemory) -> None:
        """The second is told what the first was; a withdrawn one is approved by nobody."""
        found, gone = proposed(scout), proposed(scout, memory_key="b")
        seen = zoe.candidate(found)["version"]
        zoe.reject_candidate(found, reason="no")
        scout.withdraw_candidate(gone, reason="mistaken")

        for one in (found, gone):
            with pytest.raises(CandidateDecided):
                zoe.approve_candidate(one, reason="yes", expected_version=seen)
        assert [] == embedded(zoe)

    def test_its_key_known_it_is_the_next_revision(
        self, zoe: TenantMemory, helper: TenantMemory, scout: TenantMemory
    ) -> None:
        """One fact a key, whichever door it came in by; the same again adds nothing."""
        first = zoe.confirm_memory(helper.remember(personal(kind=...)).token).acknowledgement
        other = zoe.approve_candidate(proposed(scout, title="Likes to be told about a deployment by mail"), reason="r")
        same = zoe.approve_candidate(proposed(scout, title="Likes to be told about a deployment by mail"), reason="r")

        assert [(first.entry_id, "merged"), (first.entry_id, "known")] == [
            (done.entry_id, done.outcome) for done in (other, same)
        ]
        assert ["Likes to be told about a deployment by mail"] == embedded(zoe)

    def test_an_inference_never_becomes_a_persons_statement(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory
    ) -> None:
        """What an agent proposes takes the place of what she said as an entry of its own; undone, hers stands again."""
        said = zoe.confirm_memory(zoe.remember(personal(kind=...)).token).acknowledgement.entry_id
        found = proposed(scout, title="Wants no calls about a failing deployment")
        done = zoe.approve_candidate(found, reason="true since May")
        assert done.entry_id is not None

        assert [("human", "superseded"), ("agent", "published")] == [
            (entry["author_type"], entry["status"]) for entry in map(zoe.show_entry, (said, done.entry_id))
        ]
        before = zoe.show_entry(said)
        zoe.reopen_candidate(found, reason="it was not")
        assert ["published", "archived"] == [zoe.show_entry(one)["status"] for one in (said, done.entry_id)]
        assert [str(done.entry_id), None] == [entry["superseded_by"] for entry in (before, zoe.show_entry(said))]
        assert [SAID] == embedded(zoe)
        assert [] == memory.check_rebuild().differences

    def test_it_is_merged_into_what_is_hers_alone(
        self, memory: TenantMemory, zoe: TenantMemory, helper: TenantMemory, scout: TenantMemory
    ) -> None:
        """Under that entry's key. Into the organisation's, into another's, into what is not there it does not go."""
        known = zoe.confirm_memory(helper.remember(personal(kind=..., memory_key="calls")).token).acknowledgement
        memory.register_subject("person", KIM, "Kim", principals=["human:zoe"])
        kims = zoe.confirm_memory(helper.remember(personal(kind=..., subject=KIM)).token).acknowledgement
        finding = memory.record_finding(make_finding(subject=ZOE)).acknowledgement
        found = proposed(scout, memory_key="other", title="Likes to be told about a deployment by mail")

        for into, error in ((finding.entry_id, InvalidInput), (kims.entry_id, InvalidInput), (new_id(), NotFound)):
            with pytest.raises(error):
                zoe.merge_candidate(found, into=into, reason="r")
        with pytest.raises(RevisionStale):
            zoe.merge_candidate(found, into=known.entry_id, expected_revision=7, reason="r")
        done = zoe.merge_candidate(found, into=known.entry_id, expected_revision=1, reason="r")

        assert (known.entry_id, "merged") == (done.entry_id, done.outcome)
        assert "calls" == zoe.show_entry(known.entry_id)["external_id"]
        assert 2 == len([title for title in embedded(zoe) if "told" in title])

    def test_nothing_of_the_organisations_goes_into_what_is_hers(
        self, grandbo: Grandbo, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory, tenant_name: str
    ) -> None:
        """Not even by her, who sees both; nor is it proposed as a correction of it."""
        both = grandbo.tenant(tenant_name, principal="human:zoe")
        hers = zoe.confirm_memory(zoe.remember(personal(kind=...)).token).acknowledgement.entry_id
        finding = scout.propose(make_finding()).candidate_id

        with pytest.raises(InvalidInput):
            both.merge_candidate(finding, into=hers, reason="r")
        with pytest.raises(NotFound):
            scout.propose(personal(), origin=ORIGIN, into=hers)
        with pytest.raises(NotFound):
            memory.merge_candidate(finding, into=hers, reason="r")

    @pytest.mark.parametrize(
        "changes",
        [
            {"kind": "finding"},
            {"kind": "episode"},
            {"visibility": "team"},
            {"subject": KIM},
            {"service": "checkout"},
            {"body": "more"},
            {"nonsense": 1},
        ],
    )
    def test_no_decision_widens_it(self, zoe: TenantMemory, scout: TenantMemory, changes: dict[str, Any]) -> None:
        """Neither amended nor approved does it become the organisation's, or another's."""
        found = proposed(scout)

        with pytest.raises(InvalidInput):
            zoe.approve_candidate(found, changes=changes, reason="r")
        with pytest.raises(InvalidInput):
            scout.amend_candidate(found, changes, reason="r")
        assert "pending" == zoe.candidate(found)["status"]

    def test_a_finding_does_not_become_personal(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory
    ) -> None:
        """Nor is its subject named once it is in the log unsealed: it is proposed anew."""
        found = scout.propose(make_finding()).candidate_id

        for changes in ({"kind": "personal"}, {"kind": "episode"}, {"subject": ZOE}):
            with pytest.raises(InvalidInput, match="anew"):
                memory.approve_candidate(found, changes=changes, reason="r")

    def test_the_same_text_about_two_is_two_entries(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory
    ) -> None:
        """Findings that name their subjects corroborate each other only where it is the same subject."""
        memory.register_subject("person", KIM, "Kim")
        hers, kims, nobodys = (
            memory.approve_candidate(
                scout.propose(make_finding(title="She left the door open", summary="", body="", **about)).candidate_id,
                reason="r",
            )
            for about in ({"subject": ZOE}, {"subject": KIM}, {})
        )

        assert ["recorded"] * 3 == [done.outcome for done in (hers, kims, nobodys)]

    def test_the_reviewer_sets_words_and_expiry(self, zoe: TenantMemory, scout: TenantMemory) -> None:
        """Under the names that a fact has; a time that has passed is refused."""
        found = proposed(scout)
        with pytest.raises(InvalidInput, match="expires_at"):
            zoe.approve_candidate(found, changes={"expires_at": "2020-01-01"}, reason="r")
        changes = {"text": "Before ten.", "memory_key": "calls", "expires_at": "2100-01-01"}
        done = zoe.approve_candidate(found, changes=changes, reason="r")
        assert done.entry_id is not None
        entry = zoe.show_entry(done.entry_id)

        assert ["Before ten.", "calls", "2100-01-01T00:00:00.000000Z"] == [
            entry[name] for name in ("summary", "external_id", "expires_at")
        ]

    def test_a_tenant_may_want_two(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory, grandbo: Grandbo, tenant_name: str
    ) -> None:
        """Then the second is another of hers, or where there is none, of those who administer."""
        memory.change_policy({"second_approval_kinds": ["personal"]}, reason="two look")
        found = proposed(scout)
        first = zoe.approve_candidate(found, reason="so it is")
        with pytest.raises(IllegalTransition, match="second person"):
            zoe.approve_candidate(found, reason="so it is")
        second = memory.approve_candidate(found, reason="so it is")

        assert ["pending", "approved"] == [first.status, second.status]
        assert [SAID] == embedded(zoe)

    def test_the_quota_holds_here_too(self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """The next fact is refused with the number and what to do; the candidate still waits."""
        memory.change_policy({"people": {"quota": 1}}, reason="one is enough")
        zoe.approve_candidate(proposed(scout), reason="r")
        found = proposed(scout, memory_key="b")

        with pytest.raises(QuotaExceeded) as refused:
            zoe.approve_candidate(found, reason="r")
        assert [1, "pending"] == [refused.value.details["limit"], zoe.candidate(found)["status"]]

    def test_what_is_held_stays_as_it_is(self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """A correction waits until the hold is lifted."""
        zoe.approve_candidate(proposed(scout), reason="r")
        memory.hold_subject(ZOE, "Litigation 17")
        found = proposed(scout, title="Something else")
        with pytest.raises(SubjectOnHold, match="Litigation 17"):
            zoe.approve_candidate(found, reason="r")
        memory.lift_hold(ZOE, "Settled")

        assert "merged" == zoe.approve_candidate(found, reason="r").outcome

    def test_undone_it_is_as_it_was(self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """A new one is archived; a corrected one says and lasts what it did; changed since, it is refused."""
        new = proposed(scout)
        zoe.approve_candidate(new, reason="r")
        zoe.reopen_candidate(new, reason="too soon")
        assert [] == embedded(zoe)
        first = zoe.approve_candidate(new, reason="r")
        assert first.entry_id is not None
        before = zoe.show_entry(first.entry_id)
        changed = proposed(scout, title="Something else", expires_at="2100-01-01")
        zoe.approve_candidate(changed, reason="r")
        zoe.reopen_candidate(changed, reason="wrong")
        after = zoe.show_entry(first.entry_id)

        assert [before[name] for name in ("title", "summary", "expires_at")] == [
            after[name] for name in ("title", "summary", "expires_at")
        ]
        with pytest.raises(IllegalTransition, match="changed since"):
            zoe.reopen_candidate(new, reason="r")
        assert [] == memory.check_rebuild().differences


class TestEpisodes:
    def test_they_are_proposed_where_the_tenant_takes_them_in(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory, reviewer: TenantMemory
    ) -> None:
        """One a session and subject, told again a correction, found like everything else; off, refused as ever."""
        with pytest.raises(Forbidden, match="episodes"):
            scout.propose(episode())
        memory.change_policy({"people": {"episodes": True}}, reason="we want them")
        with pytest.raises(InvalidInput, match="session_id"):
            scout.propose(episode(session_id=...))
        first = reviewer.approve_candidate(scout.propose(episode()).candidate_id, reason="r")
        again = reviewer.approve_candidate(
            scout.propose(episode(summary="The pool was never closed.")).candidate_id, reason="r"
        )
        same = reviewer.approve_candidate(
            scout.propose(episode(summary="The pool was never closed.")).candidate_id, reason="r"
        )
        other = reviewer.approve_candidate(scout.propose(episode(session_id="s-2")).candidate_id, reason="r")
        memory.embed()
        found = scout.query_topic("somebody looked for a leak in the checkout", kinds=["episode"])

        assert ["recorded", "merged", "known", "recorded"] == [one.outcome for one in (first, again, same, other)]
        assert first.entry_id == again.entry_id == same.entry_id != other.entry_id
        assert {first.entry_id, other.entry_id} == {match.entry_id for match in found.matches}
        assert [] == memory.check_rebuild().differences

    def test_one_above_the_tellers_tiers_is_not_touched(
        self, memory: TenantMemory, zoe: TenantMemory, grandbo: Grandbo, tenant_name: str
    ) -> None:
        """What another told of the session where he does not see it stays, and he learns nothing of it."""
        memory.change_policy({"people": {"episodes": True}}, reason="we want them")
        kept = memory.record_episode({**episode(kind=...), "visibility": "admin"}).acknowledgement
        low = grandbo.tenant(tenant_name, principal="human:low", roles=("companion",))
        told_low = low.record_episode(episode(kind=..., title="Another view")).acknowledgement

        assert kept.entry_id != told_low.entry_id
        assert "Looked for the leak in the checkout" == memory.show_entry(kept.entry_id)["title"]


class TestPeoplesRights:
    def test_what_waits_is_held_and_forgotten(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory, database: TestDatabase
    ) -> None:
        """The report has it; forgetting takes it, with the text, out of everything; the history holds."""
        memory.change_policy({"people": {"episodes": True}}, reason="we want them")
        waiting, done = proposed(scout), proposed(scout, memory_key="done")
        told_of = scout.propose(episode()).candidate_id
        zoe.approve_candidate(done, reason="r")
        report = zoe.held(ZOE)
        page = render_held(report)

        assert {str(one) for one in (waiting, done, told_of)} == {item["candidate_id"] for item in report["candidates"]}
        shown = next(item for item in report["candidates"] if item["candidate_id"] == str(waiting))
        assert ["personal", "alerts", SAID] == [shown[name] for name in ("kind", "memory_key", "title")]
        assert "Proposed: Likes to be told" in page
        before = memory.verify().events
        memory.forget_subject(ZOE, "request")
        for one in (waiting, done, told_of):
            for who in (scout, memory):
                with pytest.raises(NotFound):
                    who.candidate(one)
        with pytest.raises(NotFound):
            proposed(scout)
        with database.as_admin() as conn:
            rows = conn.execute(
                "SELECT count(*) FROM grandbo.org_memory_candidates WHERE tenant_id = %s", [memory.tenant_id]
            ).fetchone()
        assert (0,) == rows
        assert [True, before + 1, []] == [
            memory.verify().first_bad is None,
            memory.verify().events,
            memory.check_rebuild().differences,
        ]

    def test_what_was_read_before_it_was_forgotten_is_not_approved(
        self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory
    ) -> None:
        """By the id of a subject that is no more nothing is proposed either."""
        subject = memory.subject(ZOE).subject_id
        found = proposed(scout)
        memory.forget_subject(ZOE, "request")

        with pytest.raises(NotFound):
            memory.approve_candidate(found, reason="r")
        with pytest.raises(Forbidden):
            zoe.approve_candidate(found, reason="r")
        with pytest.raises(SubjectErased):
            proposed(scout, subject=str(subject))


class TestDoors:
    def test_over_http(self, grandbo: Grandbo, memory: TenantMemory, zoe: TenantMemory) -> None:
        """Proposed, listed, shown, approved by her; refused without a subject; absent for who administers."""
        agent = client_of(grandbo, token=make_token(memory, "investigator"))
        person = client_of(grandbo, token=memory.create_key("zoe", "human", ("companion",))[1])
        admin = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        body = {"candidate": personal(), "origin": ORIGIN}
        missing = agent.post(
            "/v1/candidates",
            json={**body, "candidate": personal(subject=...)},
            headers={"Idempotency-Key": str(new_id())},
        )
        made = agent.post("/v1/candidates", json=body, headers={"Idempotency-Key": str(new_id())})
        found = made.json()["candidate_id"]

        assert [(422, "subject_missing"), 201] == [(missing.status_code, missing.json()["code"]), made.status_code]
        assert [[found], []] == [
            [item["candidate_id"] for item in who.get("/v1/candidates").json()["candidates"]] for who in (person, admin)
        ]
        shown = person.get(f"/v1/candidates/{found}")
        assert ["alerts", True] == [shown.json()["content"]["memory_key"], shown.json()["may_decide"]]
        path, why = f"/v1/candidates/{found}/approve", {"reason": "so it is"}
        assert 404 == admin.post(path, json=why, headers={"If-Match": '"1"'}).status_code
        done = person.post(path, json=why, headers={"If-Match": shown.headers["ETag"]})
        assert [200, "recorded"] == [done.status_code, done.json()["outcome"]]

    def test_on_the_pages(self, grandbo: Grandbo, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """She is offered what she may decide, without the fields that a fact has none of; to others it is a 404."""
        found, agent = proposed(scout), proposed(scout, memory_key="b")
        person = client_of(grandbo, token=memory.create_key("zoe", "human", ("companion",))[1])
        admin = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        page, queue = person.get(f"/review/{found}"), person.get("/review")

        assert [200, 200, 404] == [page.status_code, queue.status_code, admin.get(f"/review/{found}").status_code]
        assert 2 == queue.text.count(SAID)
        assert "whose it is alone" in page.text
        assert f'action="/review/{found}/approve"' in page.text
        assert 'name="visibility"' not in page.text
        form = {"reason": "so it is", "expected_version": "1", "expires_at": "2100-01-01"}
        own = {"Origin": "http://127.0.0.1"}
        done = person.post(f"/review/{found}/approve", data=form, headers=own, follow_redirects=False)
        no = person.post(f"/review/{agent}/reject", data={**form, "reason": "no"}, headers=own, follow_redirects=False)
        assert [303, 303] == [done.status_code, no.status_code]
        assert ["approved", "rejected"] == [zoe.candidate(one)["status"] for one in (found, agent)]

    def test_over_mcp(self, memory: TenantMemory, zoe: TenantMemory, scout: TenantMemory) -> None:
        """The tool that proposes takes a subject and a key; without a subject it says what to do."""
        given = {"title": SAID, "kind": "personal", "conversation": "ops-42", "memory_key": "alerts"}
        refused = call(scout, "propose_memory", given)
        made = call(scout, "propose_memory", {**given, "subject": ZOE})

        assert refused.is_error
        assert "subject" in text_of(refused)
        found = made.structured_content["candidate_id"]
        assert ["personal", "alerts"] == [
            zoe.candidate(UUID(found))["content"][name] for name in ("kind", "memory_key")
        ]

    def test_at_the_command_line(
        self, database: TestDatabase, grandbo: Grandbo, memory: TenantMemory, zoe: TenantMemory, tmp_path: Path
    ) -> None:
        """Proposed by an agent, shown to her, approved by her; exit codes as everywhere."""
        cli = Cli(
            GRANDBO_DATABASE_URL=database.service,
            GRANDBO_EMBEDDER="none",
            GRANDBO_TENANT=memory.tenant.name,
            GRANDBO_HOME=str(grandbo.settings.home),
        )
        file, nobody = tmp_path / "noticed.json", tmp_path / "nobody.json"
        file.write_text(json.dumps(personal()))
        nobody.write_text(json.dumps(personal(subject=...)))
        origin = ["--origin", "conversation:ops-42", "--as", "agent:scout", "--json"]
        refused = cli("review", "propose", nobody, *origin)
        made = cli("review", "propose", file, *origin).document
        listed = cli("review", "list", "--as", "human:zoe", "--json").documents
        page = cli("review", "show", made["candidate_id"], "--as", "human:zoe").out
        approve = ["review", "approve", made["candidate_id"], "--reason", "so it is", "--json"]

        assert (2, "subject_missing") == (refused.code, refused.error["code"])
        assert [made["candidate_id"]] == [item["candidate_id"] for item in listed]
        assert "key      alerts" in page
        assert 5 == cli(*approve, "--as", "human:rita").code
        assert "recorded" == cli(*approve, "--as", "human:zoe").document["outcome"]
