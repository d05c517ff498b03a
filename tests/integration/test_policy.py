"""The tenant's policy: changed by an event, in force from there on, and of its time in every answer of the past."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from grandbo.errors import CommandReused, Forbidden, IllegalTransition, InvalidInput, NotFound, PolicyStale
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import LAST_SCAN
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

TOPIC = "checkout queue stalled after the lease renewal failed"


class TestChange:
    def test_it_is_an_event_and_takes_effect(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What is named is replaced, in maps key by key, and the next write goes by it."""
        before = memory.policy()

        after = memory.change_policy({"expiry_days": {"finding": 7}, "rrf_k": 30}, reason="shorter")
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id

        shown = memory.show_entry(entry)
        assert (7, 90, 30) == (
            after.policy.expiry_days["finding"],
            after.policy.expiry_days["decision"],
            after.policy.rrf_k,
        )
        assert before.position + 1 == after.position
        assert "policy_changed" == next(iter(memory.events(after=before.position)))["event_type"]
        expires_at, recorded_at = (datetime.fromisoformat(shown[name]) for name in ("expires_at", "recorded_at"))
        assert timedelta(days=7) == expires_at - recorded_at
        assert memory.check_rebuild().ok
        assert after.policy == grandbo.tenant(memory.tenant.name).tenant.policy

    def test_nothing_new_is_no_event(self, memory: TenantMemory) -> None:
        """A change to what is already so appends nothing."""
        assert memory.policy() == memory.change_policy({"rrf_k": 60}, reason="as it is")

    def test_the_same_command_is_carried_out_once(self, memory: TenantMemory) -> None:
        """A retry gives the first answer; the same id with other content is a conflict."""
        command = new_id()
        first = memory.change_policy({"floor": 1}, reason="r", command_id=command)

        assert first == memory.change_policy({"floor": 1}, reason="r", command_id=command)
        with pytest.raises(CommandReused):
            memory.change_policy({"floor": 2}, reason="r", command_id=command)

    def test_a_preview_shows_what_would_be_and_writes_nothing(self, memory: TenantMemory) -> None:
        """Refused as the change itself would be; None where nothing would be other than it is."""
        head = memory.head()["position"]
        current, would = memory.preview_policy({"floor": 2})
        _, nothing = memory.preview_policy({"floor": 0})

        assert would is not None
        assert (0, 2, None) == (current.policy.floor, would.floor, nothing)
        with pytest.raises(InvalidInput):
            memory.preview_policy({"floor": 9})
        with pytest.raises(PolicyStale):
            memory.preview_policy({"floor": 1}, expected_position=current.position + 1)
        assert (head, 0) == (memory.head()["position"], memory.policy().policy.floor)

    def test_the_policy_of_a_position_is_the_one_of_then(self, memory: TenantMemory) -> None:
        """From the event that states it up to the next."""
        first = memory.policy()
        memory.record_finding(make_finding())
        second = memory.change_policy({"floor": 1}, reason="r")

        assert first == memory.policy(position=second.position - 1)
        assert second == memory.policy(position=second.position) == memory.policy(position=10**9)
        with pytest.raises(NotFound):
            memory.policy(position=0)

    def test_a_stale_one_is_refused(self, memory: TenantMemory) -> None:
        """Who decided on a policy that is no more is told so."""
        seen = memory.policy().position
        memory.change_policy({"floor": 1}, reason="r")

        with pytest.raises(PolicyStale):
            memory.change_policy({"floor": 2}, reason="r", expected_position=seen)

    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"imagined": 1},
            {"tiers": []},
            {"tiers": ["team", "team"]},
            {"tiers": ["Team!"]},
            {"tiers": ["team"]},
            {"roles": {"investigator": ["moon"]}},
            {"roles": {"wizard": ["team"]}},
            {"default_visibility": "moon"},
            {"expiry_days": {"finding": 0}},
            {"expiry_days": {"ruled_out": None}},
            {"expiry_days": {"runbook": -1}},
            {"review_days": {"runbook": 0}},
            {"review_days": {"dream": 5}},
            {"expiry_days": {"dream": 5}},
            {"expiry_days": {"finding": 10**6}},
            {"rrf_k": 0},
            {"rrf_k": 1.5},
            {"rrf_k": float("nan")},
            {"rrf_emphasis": -1},
            {"rrf_emphasis": 5},
            {"rrf_emphasis": 0.5},
            {"exact_up_to": -1},
            {"exact_up_to": 100_001},
            {"exact_up_to": "all"},
            {"scan": 0},
            {"scan": LAST_SCAN + 1},
            {"scan": 1.0},
            {"candidates": 1_000_000},
            {"floor": 4},
            {"lexical_floor_bp": -1},
            {"stamps": [{"stamp": "a", "cutoff_bp": 0}]},
            {"stamps": [{"stamp": "a", "cutoff_bp": 10}, {"stamp": "a", "cutoff_bp": 20}]},
            {"floor": object()},
        ],
    )
    def test_what_no_policy_can_be_is_refused(self, memory: TenantMemory, changes: dict[str, Any]) -> None:
        """The field is named, and nothing is appended."""
        before = memory.policy()

        with pytest.raises(InvalidInput):
            memory.change_policy(changes, reason="r")
        assert before == memory.policy()

    def test_a_tier_in_which_entries_stand_stays(self, memory: TenantMemory) -> None:
        """Nobody would see them any more; once they are elsewhere it may go."""
        entry = memory.record_finding(make_finding(visibility="tech")).acknowledgement.entry_id
        roles = {role: ["team"] for role in ("admin", "auditor", "reviewer", "investigator", "companion", "hook")}
        fewer = {"tiers": ["team"], "roles": roles}

        with pytest.raises(IllegalTransition):
            memory.change_policy(fewer, reason="r")
        memory.reclassify(entry, visibility="team", reason="r")
        assert ("team",) == memory.change_policy(fewer, reason="r").policy.tiers

    def test_who_may(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """An admin changes it, an auditor reads it, an investigator does neither."""
        auditor = grandbo.authenticate(make_token(memory, "auditor", kind="human"))
        investigator = grandbo.authenticate(make_token(memory, "investigator"))

        assert memory.policy() == auditor.policy()
        with pytest.raises(Forbidden):
            auditor.change_policy({"floor": 1}, reason="r")
        with pytest.raises(Forbidden):
            investigator.policy()

    def test_other_tenants_keep_theirs(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """A policy is one tenant's."""
        before = other_memory.policy()

        memory.change_policy({"floor": 3}, reason="r")

        assert before == other_memory.policy()


class TestRecall:
    def test_the_cutoff_is_the_policys(self, memory: TenantMemory) -> None:
        """A tighter cutoff leaves out what lay within the wider one; as of before, the wider one holds."""
        memory.record_finding(make_finding(title="alpha beta gamma delta", summary="", body=""))
        memory.embed()
        wide = memory.query_topic("alpha beta", mode="meaning")
        near = wide.matches[0].semantic
        assert near is not None
        stamp = {"stamp": wide.searched.stamp, "cutoff_bp": int(near.distance * 10_000) - 100}
        memory.change_policy({"stamps": [stamp]}, reason="fewer, nearer")

        tight = memory.query_topic("alpha beta", mode="meaning")
        then = memory.query_topic("alpha beta", mode="meaning", as_of_position=wide.position)

        assert ("beyond_cutoff", 1) == (tight.searched.empty_reason, tight.searched.near_misses)
        assert [match.as_dict() for match in wide.matches] == [match.as_dict() for match in then.matches]
        assert wide.searched == then.searched
        assert memory.replay_receipt(wide.receipt_id, "alpha beta").equal
        assert memory.replay_receipt(tight.receipt_id, "alpha beta").equal

    def test_a_space_that_is_not_in_force_is_not_used(self, memory: TenantMemory) -> None:
        """Where the policy names other spaces than the process has, the answer is by words, and says why."""
        memory.record_finding(make_finding())
        memory.embed()
        memory.change_policy({"stamps": [{"stamp": "other/space@1/3/r", "cutoff_bp": 5_000}]}, reason="r")

        answer = memory.query_topic(TOPIC)

        assert (("lexical",), "stamp_not_in_force") == (answer.searched.signals, answer.searched.degraded)
        assert 1 == len(answer.matches)

    def test_the_worker_puts_a_complete_space_into_force(self, database: TestDatabase, tenant_name: str) -> None:
        """Only when every entry has its vectors in it; the space of before stays until someone takes it away."""
        old, new = words_embedder(), words_embedder("2")
        with Grandbo.open(settings=database.settings(), embedder=old) as grandbo:
            grandbo.create_tenant(tenant_name)
            memory = grandbo.tenant(tenant_name)
            memory.record_finding(make_finding())
            assert () == memory.policy().policy.stamps
            memory.embed()
            assert [old.stamp.id] == [item.stamp for item in memory.policy().policy.stamps]
        with Grandbo.open(settings=database.settings(), embedder=new) as grandbo:
            memory = grandbo.tenant(tenant_name)
            assert "stamp_not_in_force" == memory.query_topic(TOPIC).searched.degraded
            memory.embed()
            memory.embed()
            assert [new.stamp.id, old.stamp.id] == [item.stamp for item in memory.policy().policy.stamps]
            assert None is memory.query_topic(TOPIC).searched.degraded
            assert memory.check_rebuild().ok
        with Grandbo.open(settings=database.settings(), embedder=old) as grandbo:
            assert None is grandbo.tenant(tenant_name).query_topic(TOPIC).searched.degraded

    @pytest.mark.parametrize("changes", [{"rrf_k": 10}, {"rrf_emphasis": 4}])
    def test_ranking_parameters_are_of_their_time(self, memory: TenantMemory, changes: dict[str, int]) -> None:
        """An answer as of before the change has the scores of before it."""
        memory.record_finding(make_finding())
        memory.record_finding(make_finding(title="The mail queue stalled", summary="", body="Nobody was paged."))
        before = memory.query_topic(TOPIC)
        memory.change_policy(changes, reason="r")
        after = memory.query_topic(TOPIC)
        then = memory.query_topic(TOPIC, as_of_position=before.position)

        assert 2 == len(before.matches)
        assert before.matches == then.matches
        assert before.matches[0].score < after.matches[0].score

    def test_without_emphasis_ranks_decide_alone(self, memory: TenantMemory) -> None:
        """Then a score is the sum of 1 / (k + rank), as it was before there was an emphasis."""
        memory.record_finding(make_finding())
        memory.record_finding(make_finding(title="The mail queue stalled", summary="", body="Nobody was paged."))
        memory.change_policy({"rrf_emphasis": 0}, reason="as before")
        memory.embed()

        for match in memory.query_topic(TOPIC).matches:
            ranks = [found.rank for found in (match.lexical, match.semantic) if found is not None]
            assert sum(1 / (60 + rank) for rank in ranks) == match.score


class TestFloor:
    def test_core_references_stand_in_for_nothing(self, memory: TenantMemory) -> None:
        """Where nothing matched they are given, as not matched; the receipt has them."""
        core = {"kind": "reference", "tags": ["core"], "summary": "", "body": "", "incident": ...}
        ids = [
            memory.record_finding(make_finding(title=f"Where the {name} live", **core)).acknowledgement.entry_id
            for name in ("dashboards", "contacts", "escalations", "maps")
        ]
        memory.record_finding(make_finding(title="Not core", **{**core, "tags": ["other"]}))
        memory.verify_entry(ids[2], reason="checked")
        nothing = "volcano marmalade saxophone umbrella"
        assert () == memory.query_topic(nothing).floor
        memory.change_policy({"floor": 3}, reason="r")

        answer = memory.query_topic(nothing)

        rest = sorted(entry for entry in ids if entry != ids[2])[:2]
        assert ([ids[2], *rest], ()) == ([match.entry_id for match in answer.floor], answer.matches)
        assert all(match.lexical is None and match.semantic is None for match in answer.floor)
        assert "nothing_matched" == answer.searched.empty_reason
        assert () == memory.query_topic("where do the dashboards live").floor
        assert () == memory.query_topic(nothing, kinds=["finding"]).floor
        assert 3 == len(memory.receipt(answer.receipt_id)["matches"])
        memory.archive(ids[2], reason="r")
        assert memory.replay_receipt(answer.receipt_id, nothing).equal
        assert ids[2] not in [match.entry_id for match in memory.query_topic(nothing).floor]


class TestDoors:
    def test_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Read with an ETag, changed with If-Match: 428 without, 412 when stale."""
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        shown = client.get("/v1/policy")
        change = {"changes": {"floor": 2}, "reason": "r"}

        def patch(document: Any, **headers: str) -> Any:
            return client.patch("/v1/policy", json=document, headers=headers)

        assert 428 == patch(change).status_code
        changed = patch(change, **{"If-Match": shown.headers["ETag"], "Idempotency-Key": "k1"})
        again = patch(change, **{"If-Match": shown.headers["ETag"], "Idempotency-Key": "k1"})
        stale = patch({"changes": {"floor": 1}, "reason": "r"}, **{"If-Match": shown.headers["ETag"]})
        bad = patch({"changes": {"floor": 9}, "reason": "r"}, **{"If-Match": changed.headers["ETag"]})
        odd = patch({"changes": [], "reason": "r"}, **{"If-Match": changed.headers["ETag"]})

        assert (200, 2) == (changed.status_code, changed.json()["policy"]["floor"])
        assert changed.json() == again.json()
        assert (412, "policy_stale") == (stale.status_code, stale.json()["code"])
        assert (422, 422) == (bad.status_code, odd.status_code)

    def test_cli(self, database: TestDatabase, memory: TenantMemory) -> None:
        """`policy show` and `policy set FIELD=JSON`."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        changed = cli("policy", "set", "floor=2", 'expiry_days={"finding":30}', "--reason", "r", "--json").document

        assert (2, 30) == (changed["policy"]["floor"], changed["policy"]["expiry_days"]["finding"])
        would = cli("policy", "set", "floor=3", "--reason", "r", "--preview", "--json").document
        first = cli("policy", "show", "--position", "1", "--json").document

        assert (3, 0) == (would["policy"]["floor"], first["policy"]["floor"])
        assert changed == cli("policy", "show", "--json").document
        assert "floor" in cli("policy", "show").out
        assert (2, 2, 6) == (
            cli("policy", "set", "floor", "--reason", "r").code,
            cli("policy", "set", "floor={", "--reason", "r").code,
            cli("policy", "set", "floor=1", "--reason", "r", "--expected-position", "1").code,
        )
