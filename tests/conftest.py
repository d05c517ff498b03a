"""Fixtures: one server for the run, one memory on it, a tenant of its own for each test."""

from __future__ import annotations

import gc
import os
import signal
import uuid
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from grandbo.library import Grandbo, TenantMemory
from tests.support.people import ZOE
from tests.support.pool import assert_pool_is_idle
from tests.support.postgres import TestDatabase, TestServer, running_server
from tests.support.providers import words_embedder

# What a campaign is told stays: how many kills, where the documents are.
for _name in [name for name in os.environ if name.startswith("GRANDBO_") and not name.startswith("GRANDBO_CAMPAIGN_")]:
    del os.environ[_name]


def _drop(_logger: object, _method: str, _event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Drop every line; a test that looks at the log puts its own processors in this one's place."""
    raise structlog.DropEvent


structlog.configure(processors=[_drop])
# The same cases in every run: what fails once fails again, however slow the machine. Campaigns draw seeds of their own.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.load_profile("fixed")
# A shell that starts the tests in the background has taken Ctrl-C from them, and from all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Files stay whole, and go to whoever is free. Those that take longest begin first: the last of them would be waited for
# while the other processes have nothing left to do.
LONGEST = (
    "tests/integration/test_http_schema.py",
    "tests/integration/test_embedded_server.py",
    "tests/integration/test_redaction.py",
    "tests/web/test_tasks.py",
    "tests/web/test_everywhere.py",
    "tests/integration/test_forgetting.py",
    "tests/integration/test_cli_processes.py",
    "tests/integration/test_mcp_transports.py",
    "tests/integration/test_brute_force.py",
    "tests/integration/test_regression.py",
    "tests/integration/test_crash.py",
    "tests/web/test_reading.py",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """
    What is imported and collected stays to the end, so the garbage collector never looks at it again.

    It would do so hundreds of times, for a tenth of the whole run; and what tests leave, it looks for less often.
    """
    gc.disable()
    gc.set_threshold(10_000)
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, all else in its order."""
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(LONGEST)))


@pytest.fixture(scope="session")
def server() -> Iterator[TestServer]:
    """The PostgreSQL server of this run."""
    with running_server() as started:
        yield started


@pytest.fixture(scope="session")
def database(server: TestServer) -> TestDatabase:
    """The database that most tests share; each has a tenant of its own in it."""
    return server.at("grandbo")


@pytest.fixture(scope="session")
def grandbo(database: TestDatabase) -> Iterator[Grandbo]:
    """
    An open memory that embeds hashed words, as the service would run it: bound by row-level security.

    Its credentials may be wrong as often as tests like: those of all of them come from one address.
    """
    with Grandbo.open(settings=database.settings(auth_failure_limit="off"), embedder=words_embedder()) as opened:
        yield opened


@pytest.fixture
def tenant_name() -> str:
    """A name that no other test uses."""
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def memory(grandbo: Grandbo, tenant_name: str) -> TenantMemory:
    """A fresh tenant, seen by someone who may do everything."""
    grandbo.create_tenant(tenant_name)
    return grandbo.tenant(tenant_name, principal="human:tester")


@pytest.fixture
def other_memory(grandbo: Grandbo, tenant_name: str) -> TenantMemory:
    """A second tenant beside it."""
    grandbo.create_tenant(f"{tenant_name}-other")
    return grandbo.tenant(f"{tenant_name}-other", principal="human:tester")


@pytest.fixture
def clone(server: TestServer) -> Iterator[TestDatabase]:
    """A database of its own: what is damaged, or looked for in its dump, is of this test."""
    with server.clone() as made:
        yield made


@pytest.fixture
def opened(clone: TestDatabase, tmp_path: Path) -> Iterator[Grandbo]:
    """An open memory on that, with a home of its own, and the tenant `acme`."""
    with Grandbo.open(settings=clone.settings(home=tmp_path / "home"), embedder=words_embedder()) as made:
        made.create_tenant("acme")
        yield made


@pytest.fixture
def first(opened: Grandbo) -> TenantMemory:
    """The person who asks for an erasure."""
    return opened.tenant("acme", principal="human:first")


@pytest.fixture
def second(opened: Grandbo) -> TenantMemory:
    """The person who confirms it."""
    return opened.tenant("acme", principal="human:second")


@pytest.fixture
def zoe(grandbo: Grandbo, memory: TenantMemory, tenant_name: str) -> TenantMemory:
    """The person herself, with the roles of a companion; registered as the owner of what is remembered about her."""
    memory.register_subject("person", ZOE, "Zoë Nakamura", principals=["human:zoe", "agent:zoes-helper"])
    return grandbo.tenant(tenant_name, principal="human:zoe", roles=("companion",))


@pytest.fixture
def helper(grandbo: Grandbo, zoe: TenantMemory, tenant_name: str) -> TenantMemory:
    """Her agent."""
    return grandbo.tenant(tenant_name, principal="agent:zoes-helper", roles=("companion",))


@pytest.fixture(autouse=True)
def _pool_is_returned(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test, whatever its outcome, no connection is out."""
    yield
    if "grandbo" in request.fixturenames:
        opened: Grandbo = request.getfixturevalue("grandbo")
        opened.receipts.flush()
        assert_pool_is_idle(opened)
