"""What an entry applies to decides whether it is ranked at all."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from grandbo.errors import Forbidden, InvalidInput
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.answer import Answer
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase

TOPIC = "checkout queue stalled after the lease renewal failed"
RANGES = (">=4,<7", "<5", "", "!=6.1", "~=6.2", "==4.*", ">7")


def _record(memory: TenantMemory, *applicability: str, **fields: Any) -> UUID:
    return memory.record_finding(make_finding(applicability=list(applicability), **fields)).acknowledgement.entry_id


def _ids(answer: Answer) -> set[UUID]:
    return {match.entry_id for match in answer.matches}


@pytest.fixture
def by_range(memory: TenantMemory) -> dict[str, UUID]:
    """One entry a range of `worker`, all embedded."""
    found = {versions: _record(memory, f"worker {versions}".strip()) for versions in RANGES}
    memory.embed()
    return found


class TestRecall:
    @settings(
        max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(
        version=st.sampled_from(
            ["3.9", "4.0rc1", "4", "4.2", "5", "6.1", "6.1.post1", "6.2.1", "6.9", "7.dev1", "7", "7.0.1", "8"]
        ),
        mode=st.sampled_from(["hybrid", "words", "meaning"]),
    )
    def test_what_does_not_apply_is_not_returned(
        self, memory: TenantMemory, by_range: dict[str, UUID], version: str, mode: str
    ) -> None:
        """Exactly the entries in whose ranges the asker's version lies are returned; the others are counted."""
        answer = memory.query_topic(TOPIC, limit=20, mode=mode, context={"worker": version})

        fits = {
            entry
            for versions, entry in by_range.items()
            if SpecifierSet(versions).contains(Version(version), prereleases=True)
        }
        assert fits == _ids(answer)
        assert (len(fits), len(RANGES) - len(fits)) == (
            answer.searched.eligible,
            answer.searched.excluded.applicability,
        )

    def test_without_a_context_everything_is_returned(self, memory: TenantMemory, by_range: dict[str, UUID]) -> None:
        """Who does not say what he runs is told everything, with what it applies to."""
        answer = memory.query_topic(TOPIC, limit=20)

        assert set(by_range.values()) == _ids(answer)
        assert {"worker", "worker <7,>=4"} <= {text for match in answer.matches for text in match.applies_to}
        assert 0 == answer.searched.excluded.applicability

    def test_other_systems_exclude_nothing(self, memory: TenantMemory, by_range: dict[str, UUID]) -> None:
        """A version of a system that an entry does not name says nothing about the entry."""
        assert set(by_range.values()) == _ids(memory.query_topic(TOPIC, limit=20, context={"kafka": "3"}))

    def test_each_system_that_both_name_must_fit(self, memory: TenantMemory) -> None:
        """Several ranges of one system are alternatives; several systems are all needed."""
        entry = _record(memory, "worker <4", "worker >=6", "broker ==2.*")

        def is_found(**context: str) -> bool:
            return entry in _ids(memory.query_topic(TOPIC, context=context))

        assert is_found(worker="3", broker="2.1")
        assert is_found(worker="6", broker="2.9")
        assert is_found(worker="6")
        assert not is_found(worker="5", broker="2.1")
        assert not is_found(worker="6", broker="3")

    def test_an_unreadable_version_excludes_and_is_named(self, memory: TenantMemory, by_range: dict[str, UUID]) -> None:
        """Where the asker's version is none, what depends on it is left out, and the answer names the system."""
        free = _record(memory)

        answer = memory.query_topic(TOPIC, limit=20, context={"worker": "latest", "kafka": "3"})

        assert {free} == _ids(answer)
        assert (len(by_range), ("worker",)) == (
            answer.searched.excluded.applicability,
            answer.searched.excluded.unreadable,
        )

    def test_nothing_applies(self, memory: TenantMemory) -> None:
        """When all that is in scope does not apply, nothing is in scope, and the count says why."""
        _record(memory, "worker <4")

        answer = memory.query_topic(TOPIC, context={"worker": "5"})

        assert ("nothing_in_scope", 1) == (answer.searched.empty_reason, answer.searched.excluded.applicability)

    def test_it_is_not_counted_beyond_the_callers_tiers(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What stands above the caller's tiers is not among the excluded either."""
        _record(memory, "worker <4", visibility="admin")
        low = grandbo.authenticate(make_token(memory, "investigator"))

        assert 0 == low.query_topic(TOPIC, context={"worker": "5"}).searched.excluded.applicability

    def test_as_of_it_is_what_it_was(self, memory: TenantMemory) -> None:
        """Recall of the past goes by what the entry applied to then; the receipt replays with its context."""
        entry = _record(memory, "worker <4")
        memory.embed()
        before = memory.query_topic(TOPIC, context={"worker": "5"})
        memory.reclassify(entry, applicability=["worker <6"], reason="seen in 5 too")
        after = memory.query_topic(TOPIC, context={"worker": "5"})

        then = memory.query_topic(TOPIC, context={"worker": "5"}, as_of_position=before.position)

        assert (set(), {entry}, set()) == (_ids(before), _ids(after), _ids(then))
        assert before.searched.excluded == then.searched.excluded
        assert memory.replay_receipt(before.receipt_id, TOPIC).equal
        assert memory.replay_receipt(after.receipt_id, TOPIC).equal

    def test_the_namespace_narrows(self, memory: TenantMemory) -> None:
        """Only entries of the namespace are ranked and counted."""
        mine, _other = _record(memory, namespace="payments"), _record(memory, namespace="search")
        memory.embed()

        for mode in ("hybrid", "words", "meaning"):
            answer = memory.query_topic(TOPIC, namespace="payments", mode=mode)
            assert ({mine}, 1) == (_ids(answer), answer.searched.eligible)


class TestReclassify:
    def test_it_changes_what_is_named_and_keeps_the_rest(self, memory: TenantMemory) -> None:
        """Owner, namespace and applicability are set one by one, taken away again, and survive a correction."""
        entry = _record(memory, "worker <4", namespace="payments", owner="payments-oncall")

        def facts() -> tuple[Any, ...]:
            shown = memory.show_entry(entry)
            return shown["namespace"], shown["owner"], shown["applicability"], shown["revision"]

        assert ("payments", "payments-oncall", ["worker <4"], 1) == facts()
        memory.reclassify(entry, owner="platform", reason="moved")
        memory.correct(entry, {"title": "Another title of the same entry"}, reason="clearer")
        assert ("payments", "platform", ["worker <4"], 3) == facts()
        memory.reclassify(entry, owner="", namespace="", applicability=[], reason="everyone's")
        assert ("", None, [], 4) == facts()
        assert not memory.reclassify(entry, applicability=[], reason="again").appended
        assert memory.check_rebuild().ok

    def test_what_cannot_be_is_refused(self, memory: TenantMemory) -> None:
        """Unreadable ranges, and a tier above the writer's, change nothing."""
        entry = _record(memory)
        for changes in ({"applicability": ["worker >=banana"]}, {"owner": "a\nb"}, {"namespace": 5}, {}):
            with pytest.raises(InvalidInput):
                memory.reclassify(entry, reason="r", **changes)
        assert 1 == memory.show_entry(entry)["revision"]

    def test_a_retry_of_before_is_still_a_retry(self, memory: TenantMemory) -> None:
        """A finding that says nothing of the later fields has the digest that it had before there were any."""
        from grandbo.memory.finding import parse_finding, said_by

        plain, fuller = make_finding(), None
        fuller = {**plain, "namespace": "", "owner": None, "applicability": []}

        assert said_by(parse_finding(plain)) == said_by(parse_finding(fuller))
        assert not {"namespace", "owner", "applicability"} & said_by(parse_finding(plain)).keys()


class TestDoors:
    def test_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Context and namespace over HTTP give what the library gives; what is no context is refused by its field."""
        _record(memory, "worker <4", namespace="payments")
        client = client_of(grandbo, token=make_token(memory, "admin"))

        found = client.post(
            "/v1/recall", json={"topic": TOPIC, "context": {"worker": "3"}, "namespace": "payments"}
        ).json()
        none = client.post("/v1/recall", json={"topic": TOPIC, "context": {"worker": "5"}}).json()
        refused = client.post("/v1/recall", json={"topic": TOPIC, "context": {"worker": 5}})

        assert [["worker <4"]] == [match["applies_to"] for match in found["matches"]]
        assert {"applicability": 1, "unreadable": []} == none["searched"]["excluded"]
        assert (422, "invalid_input") == (refused.status_code, refused.json()["code"])

    def test_cli(self, database: TestDatabase, memory: TenantMemory) -> None:
        """`--context SYS=VERSION` and `entry reclassify --applies-to` on the command line."""
        entry = _record(memory)
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        assert 0 == cli("entry", "reclassify", entry, "--applies-to", "worker >=4,<7", "--reason", "r").code
        answer = cli("recall", TOPIC, "--context", "worker=7", "--json").document
        assert ([], 1) == (answer["matches"], answer["searched"]["excluded"]["applicability"])
        assert 1 == len(cli("recall", TOPIC, "--context", "worker=6.5", "--json").document["matches"])
        assert 2 == cli("recall", TOPIC, "--context", "worker").code
        assert "worker <7,>=4" in cli("entry", "show", entry).out


class TestWho:
    def test_an_investigator_reclassifies_nothing(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Who may only recall may not say what an entry applies to."""
        entry = _record(memory)
        low = grandbo.authenticate(make_token(memory, "investigator"))

        with pytest.raises(Forbidden):
            low.reclassify(entry, applicability=["worker <4"], reason="r")
