"""Behind a real PgBouncer in transaction mode: many callers on few server connections, each in its own tenant."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from grandbo.errors import CommandReused
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.pooler import pooled
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

CALLERS = 8
ROUNDS = 25
TOPIC = "consumers lost their leases after the broker restarted"


@pytest.fixture
def behind(database: TestDatabase) -> Iterator[Grandbo]:
    """A memory that reaches its database through two connections of the server."""
    with (
        pooled(database, server_connections=2) as conninfo,
        Grandbo.open(settings=database.settings(database_url=conninfo), embedder=words_embedder()) as opened,
    ):
        yield opened


def test_two_tenants_write_and_recall_at_once_and_see_nothing_of_each_other(
    behind: Grandbo, memory: TenantMemory, other_memory: TenantMemory
) -> None:
    tenants = [behind.tenant(one.tenant_id, principal="human:tester") for one in (memory, other_memory)]
    for number, tenant in enumerate(tenants):
        tenant.record_finding(make_finding(title=f"{TOPIC}: tenant {number}"))

    def use(caller: int) -> set[str]:
        own = tenants[caller % 2]
        seen: set[str] = set()
        for turn in range(ROUNDS):
            own.record_finding(make_finding(title=f"{TOPIC}: tenant {caller % 2}, {caller}.{turn}"))
            seen |= {match.title for match in own.query_topic(TOPIC, limit=20).matches}
        return seen

    with ThreadPoolExecutor(CALLERS) as threads:
        found = list(threads.map(use, range(CALLERS)))

    for caller, titles in enumerate(found):
        assert titles
        assert all(f"tenant {caller % 2}" in title for title in titles)
    for tenant in tenants:
        assert tenant.embed()
        assert tenant.verify().events == tenant.query_topic(TOPIC).position
        assert not tenant.check_rebuild().differences


def test_what_fails_leaves_the_next_transaction_alone(behind: Grandbo, memory: TenantMemory) -> None:
    through = behind.tenant(memory.tenant_id, principal="human:tester")
    for turn in range(12):
        command_id = uuid4()
        recorded = through.record_finding(make_finding(title=f"Turn {turn}"), command_id=command_id)
        with pytest.raises(CommandReused):
            through.record_finding(make_finding(title=f"Other {turn}"), command_id=command_id)
        assert through.query_topic(TOPIC).position == recorded.acknowledgement.position
