"""Several writers, several processes, the same command at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from grandbo.errors import CommandReused, TenantExists
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.finding import parse_finding
from grandbo.memory.record import finding_command_id
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder
from tests.support.warm import FORKED


def _write_many(settings: Any, tenant: str, worker: int, count: int) -> list[tuple[int, str]]:
    """One of several processes: record `count` findings, give their positions and hashes."""
    with Grandbo.open(settings=settings, embedder=words_embedder()) as opened:
        memory = opened.tenant(tenant, principal=f"hook:writer-{worker}")
        acks = [
            memory.record_finding(
                make_finding(incident={"source": f"p{worker}", "id": str(n)}, title=f"p{worker} n{n}")
            )
            for n in range(count)
        ]
    return [(ack.acknowledgement.position, ack.acknowledgement.hash) for ack in acks]


class TestManyWriters:
    def test_eight_processes_give_gapless_positions_and_one_chain(
        self, memory: TenantMemory, database: TestDatabase
    ) -> None:
        """Eight processes writing to one tenant leave positions 1..N, a chain that verifies, and equal projections."""
        with FORKED.Pool(8) as pool:
            results = pool.starmap(
                _write_many, [(database.settings(pool_size=1), memory.tenant.name, n, 10) for n in range(8)]
            )
        positions = sorted(position for result in results for position, _ in result)
        verification = memory.verify()

        assert list(range(2, 82)) == positions
        assert (None, 81) == (verification.first_bad, verification.events)
        assert memory.check_rebuild().ok

    def test_the_same_command_a_hundred_times_at_once_is_one_event(self, memory: TenantMemory) -> None:
        """A hundred threads with one finding get one acknowledgement, and the log grows by one."""
        finding = make_finding()
        barrier = threading.Barrier(20)

        def send(number: int) -> str:
            if number < 20:
                barrier.wait(30)
            return str(memory.record_finding(finding).acknowledgement)

        with ThreadPoolExecutor(20) as threads:
            acknowledgements = set(threads.map(send, range(100)))

        assert 1 == len(acknowledgements)
        assert 2 == memory.verify().head

    def test_a_tenant_made_twice_at_once_exists_once(self, grandbo: Grandbo, tenant_name: str) -> None:
        """Of eight that make a tenant of one name at once, exactly one succeeds."""
        barrier = threading.Barrier(8)

        def make(_: int) -> bool:
            barrier.wait(30)
            try:
                grandbo.create_tenant(tenant_name)
            except TenantExists:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            assert 1 == sum(threads.map(make, range(8)))
        assert grandbo.tenant(tenant_name).verify().first_bad is None


class TestCommandIds:
    def test_the_same_id_with_other_content_is_refused(self, memory: TenantMemory) -> None:
        """A command id that comes back with another text is a conflict and stores nothing."""
        finding = make_finding()
        memory.record_finding(finding)
        command_id = finding_command_id(parse_finding(finding), "team")

        with pytest.raises(CommandReused):
            memory.record_finding(make_finding(), command_id=command_id)
        assert 2 == memory.verify().head

    def test_what_an_incident_taught_already_is_the_same_entry(self, memory: TenantMemory) -> None:
        """The same claim of the same incident under another command is the entry that is there; nothing is appended."""
        finding = make_finding(external_id="one")
        first = memory.record_finding(finding).acknowledgement

        again = memory.record_finding({**finding, "external_id": "two"}).acknowledgement

        assert (first.entry_id, first.position, first.hash, False) == (
            again.entry_id,
            again.position,
            again.hash,
            again.created,
        )

    def test_another_incident_corroborates_the_entry(self, memory: TenantMemory) -> None:
        """The same claim of another incident makes a revision of the entry, with its evidence added."""
        finding = make_finding()
        first = memory.record_finding(finding).acknowledgement

        other = memory.record_finding(
            {
                **finding,
                "incident": {"source": "pager", "id": "another"},
                "evidence": [{"type": "log", "uri": "https://logs.example.com/another", "label": ""}],
            }
        ).acknowledgement

        match = memory.query_topic("consumers lost their leases", mode="words").matches[0]
        assert (first.entry_id, 2, False) == (other.entry_id, other.revision, other.created)
        assert (2, 2) == (match.revision, len(match.evidence))
        assert memory.check_rebuild().ok

    def test_a_conflict_tells_nothing_about_a_tier_that_the_writer_does_not_see(self, memory: TenantMemory) -> None:
        """A hook that guesses incident and id of a finding in a higher tier records its own, as if there were none."""
        finding = make_finding(external_id="secret-1")
        memory.record_finding({**finding, "visibility": "admin"})
        token = memory.create_key("guesser", "hook", ("hook",))[1]
        hook = memory._grandbo.authenticate(token)

        guessed = hook.record_finding({**finding, "title": "A guess"}).acknowledgement

        assert guessed.created

    def test_the_same_claim_in_another_tier_is_an_entry_of_its_own(self, memory: TenantMemory) -> None:
        """A claim is never joined to one that its writer's readers might not see."""
        finding = make_finding()
        first = memory.record_finding(finding).acknowledgement

        other = memory.record_finding(
            {**finding, "visibility": "admin", "incident": {"source": "pager", "id": "other"}}
        ).acknowledgement

        assert first.entry_id != other.entry_id
