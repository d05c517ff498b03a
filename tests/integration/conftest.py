"""What several files of these tests begin from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grandbo.embedding import Embedder
from grandbo.library import Grandbo, TenantMemory
from tests.support.postgres import TestDatabase
from tests.support.providers import Switchable


@pytest.fixture
def provider() -> Switchable:
    """A provider with a switch."""
    return Switchable()


@pytest.fixture
def own(database: TestDatabase, provider: Switchable, tenant_name: str) -> Iterator[TenantMemory]:
    """A memory of its own, embedded by the switchable provider."""
    with Grandbo.open(settings=database.settings(), embedder=Embedder(provider)) as opened:
        opened.create_tenant(tenant_name)
        yield opened.tenant(tenant_name, principal="human:tester")
