"""Putting an impact away in one command, and letting out exactly that: states, retries, races, replays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import CommandReused, InvalidInput
from grandbo.library import TenantMemory
from grandbo.types import new_id
from tests.support.factories import make_finding
from tests.support.impacts import TOPIC, citing, record, someone, statuses


@pytest.fixture
def chain(memory: TenantMemory) -> list[UUID]:
    """Three entries, each resting on the one before."""
    one = record(memory)
    two = record(memory, evidence=citing(one))
    three = record(memory)
    memory.link(three, "caused_by", two, reason="r")
    return [one, two, three]


class TestQuarantine:
    def test_recall_finds_none_of_them_until_they_are_let_out(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Neither by words nor by meaning; afterwards all again, and a rebuild gives what is live."""
        apart = record(memory)
        memory.embed()
        everything = {*chain, apart}

        put_away = memory.quarantine_impact(chain[0], reason="the log was forged")
        without = {match.entry_id for match in memory.query_topic(TOPIC, limit=20).matches}
        first_check = memory.check_rebuild()
        let_out = memory.release_impact(chain[0], reason="it was not")
        restored = {match.entry_id for match in memory.query_topic(TOPIC, limit=20).matches}

        assert [str(one) for one in chain] == [item["entry_id"] for item in put_away.changed]
        assert ({apart}, everything) == (without, restored)
        assert {str(one) for one in chain} == {item["entry_id"] for item in let_out.changed}
        assert first_check.ok
        assert memory.check_rebuild().ok
        assert memory.verify().first_bad is None

    def test_it_is_one_command_with_one_reason(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Consecutive events, one command, one correlation; each entry's history says why."""
        put_away = memory.quarantine_impact(chain[0], reason="the log was forged")
        events = list(memory.events(event_type="entry_quarantined"))
        positions = [item["position"] for item in put_away.changed]

        assert positions == [event["position"] for event in events]
        assert list(range(positions[0], positions[0] + 3)) == positions
        assert {str(put_away.correlation_id)} == {event["correlation_id"] for event in events}
        assert 1 == len({event["command_id"] for event in events})
        assert memory.entry_impact(chain[0])["correlation_id"] == str(put_away.correlation_id)
        for one, item in zip(chain, put_away.changed, strict=True):
            last = memory.history(one)[-1]
            assert ("the log was forged", item["revision"]) == (last["reason"], last["revision"])

    def test_a_second_time_changes_nothing(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """All are left as they are, and named; so is a release after a release."""
        memory.quarantine_impact(chain[0], reason="r")
        head = memory.verify().head

        again = memory.quarantine_impact(chain[0], reason="r")

        assert (False, (), tuple(chain), head) == (again.appended, again.changed, again.left, memory.verify().head)
        memory.release_impact(chain[0], reason="r")
        head = memory.verify().head
        assert not memory.release_impact(chain[0], reason="r").appended
        assert head == memory.verify().head

    def test_the_same_command_is_the_first_answer_again(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Though there is more to put away by now; the same id for something else is refused."""
        command_id = new_id()
        first = memory.quarantine_impact(chain[0], reason="r", command_id=command_id)
        later = record(memory, evidence=citing(chain[0]))
        again = memory.quarantine_impact(chain[0], reason="r", command_id=command_id)

        assert (first.changed, True, False, None) == (again.changed, again.replayed, again.appended, again.left)
        assert ["published"] == statuses(memory, later)
        with pytest.raises(CommandReused):
            memory.quarantine_impact(chain[0], reason="another", command_id=command_id)
        with pytest.raises(CommandReused):
            memory.quarantine_impact(chain[1], reason="r", command_id=command_id)
        with pytest.raises(CommandReused):
            memory.release_impact(chain[0], reason="r", command_id=command_id)

    def test_it_is_decided_on_what_is_stored_by_then(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """What came after the look is found; what no longer rests on it is left alone."""
        looked = {member["entry_id"] for member in memory.entry_impact(chain[0])["members"]}
        memory.unlink(chain[2], "caused_by", chain[1], reason="r")
        late = record(memory, evidence=citing(chain[1]))

        memory.quarantine_impact(chain[0], reason="r")

        assert {str(one) for one in chain} == looked
        assert ["quarantined", "quarantined", "published", "quarantined"] == statuses(memory, *chain, late)

    def test_several_at_once_put_each_away_once(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Each decides again behind the lock."""
        with ThreadPoolExecutor(4) as threads:
            outcomes = list(threads.map(lambda _: memory.quarantine_impact(chain[0], reason="r"), range(4)))

        assert [3, 0, 0, 0] == sorted((len(outcome.changed) for outcome in outcomes), reverse=True)
        assert 3 == len(list(memory.events(event_type="entry_quarantined")))

    @pytest.mark.parametrize("reason", ["", "  ", None, 5, "x" * 1_001, "a\x00b"])
    def test_a_reason_is_needed(self, memory: TenantMemory, chain: list[UUID], reason: Any) -> None:
        """Refused before anything is written."""
        head = memory.verify().head
        for verb in (memory.quarantine_impact, memory.release_impact):
            with pytest.raises(InvalidInput):
                verb(chain[0], reason=reason)
        assert head == memory.verify().head

    def test_what_was_recorded_after_being_told_goes_too(self, memory: TenantMemory) -> None:
        """With the receipts that were still on their way when the command came."""
        agent = someone(memory, "investigator", "hook")
        told = record(memory)
        agent.query_topic(TOPIC, incident=("pager", "INC-LATE"))
        after = record(agent, incident={"source": "pager", "id": "INC-LATE"})

        memory.quarantine_impact(told, reason="r")

        assert ["quarantined"] * 2 == statuses(memory, told, after)


class TestRelease:
    def test_each_has_its_former_status(self, memory: TenantMemory) -> None:
        """Archived stays archived, superseded superseded, though it was corrected while it was away."""
        one = record(memory)
        two, three, four = (record(memory, evidence=citing(one)) for _ in range(3))
        memory.archive(two, reason="r")
        memory.supersede(three, record(memory), reason="r")
        memory.quarantine_impact(one, reason="r")
        memory.correct(four, {"service": "billing"}, reason="r")
        away = statuses(memory, one, two, three, four)

        released = memory.release_impact(one, reason="r")

        assert ["quarantined"] * 4 == away
        assert ["published", "archived", "superseded", "published"] == statuses(memory, one, two, three, four)
        assert {str(two): "archived", str(three): "superseded"}.items() <= {
            item["entry_id"]: item["status"] for item in released.changed
        }.items()
        assert memory.check_rebuild().ok

    def test_what_was_put_away_by_hand_is_left(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Before the impact was, or again after it had been let out."""
        memory.quarantine(chain[1], reason="by hand")
        put_away = memory.quarantine_impact(chain[0], reason="r")
        memory.release(chain[2], reason="by hand")
        memory.quarantine(chain[2], reason="by hand again")

        released = memory.release_impact(chain[0], reason="r")

        assert (chain[1],) == put_away.left
        assert [str(chain[0])] == [item["entry_id"] for item in released.changed]
        assert ["published", "quarantined", "quarantined"] == statuses(memory, *chain)

    def test_what_another_impact_put_away_is_left(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """Of an entry further on, or of a source: each lets out its own."""
        uri = "https://logs.example.com/forged"
        apart = record(memory, evidence=citing(uri))
        memory.quarantine_impact(chain[1], reason="r")
        memory.quarantine_impact(uri, reason="r")
        memory.quarantine_impact(chain[0], reason="r")

        memory.release_impact(chain[0], reason="r")
        assert ["published", "quarantined", "quarantined", "quarantined"] == statuses(memory, *chain, apart)

        memory.release_impact(chain[1], reason="r")
        memory.release_impact(uri, reason="r")
        assert ["published"] * 4 == statuses(memory, *chain, apart)

    def test_it_lets_out_what_no_longer_rests_on_it(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """What the command put away comes back, whatever became of the links meanwhile."""
        memory.quarantine_impact(chain[0], reason="r")
        memory.unlink(chain[2], "caused_by", chain[1], reason="r")

        memory.release_impact(chain[0], reason="r")

        assert ["published"] * 3 == statuses(memory, *chain)

    def test_it_can_be_put_away_again(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """And let out again, with the status that it had then."""
        memory.quarantine_impact(chain[0], reason="r")
        memory.release_impact(chain[0], reason="r")
        memory.archive(chain[1], reason="r")
        memory.quarantine_impact(chain[0], reason="r")
        memory.release_impact(chain[0], reason="r")

        assert ["published", "archived", "published"] == statuses(memory, *chain)

    def test_what_rose_above_the_caller_is_not_his_to_let_out(self, memory: TenantMemory, chain: list[UUID]) -> None:
        """It stays away, unnamed, until someone who sees it lets it out."""
        reviewer = someone(memory, "reviewer", kind="human")
        reviewer.quarantine_impact(chain[0], reason="r")
        memory.reclassify(chain[1], reason="r", visibility="admin")

        released = reviewer.release_impact(chain[0], reason="r")

        assert str(chain[1]) not in str(released.as_dict())
        assert ["published", "quarantined", "published"] == statuses(memory, *chain)
        memory.release_impact(chain[0], reason="r")
        assert ["published"] * 3 == statuses(memory, *chain)


class TestLargeImpact:
    def test_a_wide_and_deep_impact_goes_and_comes_as_one(self, memory: TenantMemory) -> None:
        """A few hundred entries, some resting on each other: one command each way, and a rebuild gives the same."""
        one = record(memory)
        lines = [make_finding(evidence=citing(one)) for _ in range(300)]
        wide = [memory.record_finding(line).acknowledgement.entry_id for line in lines]
        for before, after in pairwise(wide[:20]):
            memory.link(after, "relates_to", before, reason="r")

        put_away = memory.quarantine_impact(one, reason="r")
        released = memory.release_impact(one, reason="r")

        assert (301, 301) == (len(put_away.changed), len(released.changed))
        assert {"published"} == set(statuses(memory, one, *wide[:25]))
        assert memory.check_rebuild().ok
