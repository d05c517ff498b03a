"""How a large scope is scanned is policy: changed by an event, of its time in every answer of the past."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import grandbo
from grandbo.errors import ConfigurationError
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import PolicyChanged
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.commands import Command, run_command
from grandbo.memory.policy import LAST_SCAN
from grandbo.recall.answer import MODES, Answer
from grandbo.recall.scan import SCANS, Scan, ScanUnknown, scan_of
from grandbo.settings import Settings
from grandbo.types import digest_of, new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.histories import told
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase

SAMPLE = Path(grandbo.__file__).parent / "data" / "sample-incidents.jsonl"
TOPICS = (
    "consumers lost their leases after the broker restarted",
    "the disk of a node was full and pods were evicted",
    "certificates expired and users could not log in",
    "a rollout left the proxy out of memory",
)
ASKED = [(topic, mode) for topic in TOPICS for mode in MODES]
# What newer versions might bring: so little of everything that answers differ, and each another set.
NEWER: Mapping[int, Scan] = {
    **SCANS,
    LAST_SCAN + 1: Scan(None, survivors=4, depth=4, postings=20, share_bp=500, rarest=1, sampled_from=1),
    LAST_SCAN + 2: Scan(None, survivors=9, depth=9, postings=40, share_bp=900, rarest=2, sampled_from=None, margin=1),
}


def set_by_a_newer(memory: TenantMemory, scan: int) -> None:
    """The policy is changed as a version changes it that has more sets than this one."""
    policy = memory.policy().policy.model_copy(update={"scan": scan})
    body = PolicyChanged(name=memory.tenant.name, policy=policy, changed=("scan",), reason="newer")
    context = CommandContext(memory.tenant_id, memory.principal, new_id(), digest_of("newer"))
    run_command(memory._database, Command(context, [], lambda _found, _now: [Event(memory.tenant_id, body)]))


def ask(memory: TenantMemory) -> list[Answer]:
    """Every topic by every mode."""
    return [memory.query_topic(topic, mode=mode, limit=20) for topic, mode in ASKED]


def again(memory: TenantMemory, answer: Answer, topic: str, mode: str = "hybrid") -> dict[str, Any]:
    """What is told as of the moment of an answer."""
    position, instant = answer.position, answer.instant
    return told(memory.query_topic(topic, mode=mode, limit=20, as_of_position=position, valid_at=instant))


def ranked(answers: list[Answer]) -> list[Any]:
    """Ids, order and scores."""
    return [[(match.entry_id, match.score) for match in answer.matches] for answer in answers]


@pytest.fixture
def real(memory: TenantMemory) -> TenantMemory:
    """Fifty real incidents, asked by a version that has more sets."""
    memory._scanning = partial(scan_of, sets=NEWER)
    memory.import_lines(SAMPLE.read_bytes().splitlines(keepends=True)[1::3], "finding")
    memory.embed()
    return memory


class TestAsOf:
    def test_an_answer_is_given_again_exactly_after_the_policy_scans_otherwise(self, real: TenantMemory) -> None:
        """Ids, order, scores and counts, of each set and of each size, whatever is in force by now."""
        given = [ask(real)]
        real.change_policy({"exact_up_to": 20}, reason="large beyond twenty")
        given.append(ask(real))
        for number in (LAST_SCAN + 1, LAST_SCAN + 2):
            set_by_a_newer(real, number)
            given.append(ask(real))
        real.change_policy({"scan": 1, "exact_up_to": 49}, reason="large beyond forty-nine")
        given.append(ask(real))
        real.change_policy({"exact_up_to": 10_000}, reason="none is large")
        real.record_finding(make_finding())
        real.embed()

        assert [50] * 5 == [answers[0].searched.eligible for answers in given]
        assert ["exact", *["signatures"] * 4] == [answers[0].searched.scan for answers in given]
        assert ranked(given[1]) != ranked(given[2]) != ranked(given[3]) != ranked(given[1])
        for answers in given:
            for (topic, mode), answer in zip(ASKED, answers, strict=True):
                assert told(answer) == again(real, answer, topic, mode)
            assert real.replay_receipt(answers[0].receipt_id, TOPICS[0]).equal
        assert real.check_rebuild().ok

    @pytest.mark.parametrize("number", SCANS)
    def test_each_set_can_be_put_into_force(self, memory: TenantMemory, number: int) -> None:
        """The receipt states the numbers; an answer of before it, and one by it, come again as they were."""
        memory.record_finding(make_finding())
        memory.embed()
        before = memory.query_topic(TOPICS[0])
        changed = memory.change_policy({"scan": number, "exact_up_to": 0}, reason="r").policy
        during = memory.query_topic(TOPICS[0])
        memory.change_policy({"exact_up_to": 1}, reason="r")

        assert (number, 0) == (changed.scan, changed.exact_up_to)
        stated = memory.receipt(during.receipt_id)["parameters"]["scan"]
        assert {**SCANS[number].as_dict(), "exact_up_to": 0} == stated
        assert ("exact", "signatures") == (before.searched.scan, during.searched.scan)
        for answer in (before, during):
            assert told(answer) == again(memory, answer, TOPICS[0])
        assert "exact" == memory.query_topic(TOPICS[0]).searched.scan


class TestUnknown:
    def test_a_set_that_only_a_newer_version_has_is_an_error_that_says_so(
        self, grandbo: Grandbo, database: TestDatabase, memory: TenantMemory
    ) -> None:
        """Never an answer by other numbers; the past, and writing, go on, and the policy can be set back."""
        memory.record_finding(make_finding())
        memory.embed()
        before = memory.query_topic(TOPICS[0])
        set_by_a_newer(memory, LAST_SCAN + 1)
        changed = memory.policy().position
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        with pytest.raises(ScanUnknown, match=f"set {LAST_SCAN + 1}.*upgrade"):
            memory.query_topic(TOPICS[0])
        refused = client.post("/v1/recall", json={"topic": TOPICS[0]})
        assert (503, "scan_unknown") == (refused.status_code, refused.json()["code"])
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)
        asked, doctor = cli("recall", TOPICS[0], "--json"), cli("doctor", "--json").document["checks"]
        assert (3, "scan_unknown") == (asked.code, asked.error["code"])
        assert [f"policy {memory.tenant_id}"] == [check["check"] for check in doctor if check["state"] == "fail"]
        assert told(before) == again(memory, before, TOPICS[0])
        assert memory.replay_receipt(before.receipt_id, TOPICS[0]).equal
        memory.record_finding(make_finding())
        assert memory.check_rebuild().ok
        memory.change_policy({"scan": LAST_SCAN}, reason="back")
        assert memory.query_topic(TOPICS[0]).matches
        with pytest.raises(ScanUnknown):
            memory.query_topic(TOPICS[0], as_of_position=changed)


class TestRemovedSetting:
    def test_it_is_named_at_the_start_and_stops_nothing(self, database: TestDatabase, memory: TenantMemory) -> None:
        """A deployment that still sets the variable is served, and told what to do instead."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

        told_so = cli("policy", "show", "--json", GRANDBO_EXACT_UP_TO="5")
        silent = cli("policy", "show", "--json")
        empty = cli("policy", "show", "--json", GRANDBO_EXACT_UP_TO="")
        doctor = cli("doctor", "--json", GRANDBO_EXACT_UP_TO="5").document["checks"]

        assert (0, 0, "", "") == (told_so.code, silent.code, silent.err, empty.err)
        assert told_so.document == silent.document
        for named in ("setting_removed", "GRANDBO_EXACT_UP_TO", "grandbo policy set exact_up_to="):
            assert named in told_so.err
        mend = next(check["mend"] for check in doctor if check["check"] == "settings")
        assert "grandbo policy set exact_up_to=" in mend

    def test_a_program_that_gives_it_is_told_too(self) -> None:
        """As a keyword it would else be dropped without a word."""
        with pytest.raises(ConfigurationError, match="grandbo policy set exact_up_to="):
            Settings.load(exact_up_to=5)
        with pytest.raises(ConfigurationError, match="GRANDBO_IMAGINED is no setting"):
            Settings.load(imagined=1)
