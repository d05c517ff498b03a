"""Recall on a real streaming replica: given there where it is far enough, and by the primary wherever it is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grandbo.errors import InvalidInput, MomentUnknown
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage import readers
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.replica import Standby, standby

TOPIC = "consumers lost their leases after the broker restarted"


@pytest.fixture(scope="module")
def primary(server: TestServer) -> Iterator[TestDatabase]:
    """A database of its own."""
    with server.clone() as made:
        yield made


@pytest.fixture(scope="module")
def replica(primary: TestDatabase) -> Iterator[Standby]:
    """Its standby."""
    with standby(primary) as made:
        yield made


@pytest.fixture
def served(primary: TestDatabase, replica: Standby) -> Iterator[Grandbo]:
    """A memory that asks the replica first."""
    replica.go_on()
    settings = primary.settings(replica_url=replica.service)
    with Grandbo.open(settings=settings, embedder=words_embedder()) as opened:
        yield opened


@pytest.fixture
def kept(served: Grandbo, tenant_name: str) -> TenantMemory:
    """A fresh tenant on it."""
    served.create_tenant(tenant_name)
    return served.tenant(tenant_name, principal="human:tester")


def _counts(served: Grandbo) -> tuple[int, int, int]:
    counts = served.readers.counts()
    return counts["answered"], counts["behind"], counts["failed"]


def test_the_replica_gives_what_the_primary_gives(
    served: Grandbo, kept: TenantMemory, primary: TestDatabase, replica: Standby
) -> None:
    kept.record_finding(make_finding(title=TOPIC))
    kept.embed()
    replica.wait_for(primary)

    given = kept.query_topic(TOPIC)

    assert _counts(served) == (1, 0, 0)
    with Grandbo.open(settings=primary.settings(), embedder=words_embedder()) as alone:
        same = alone.tenant(kept.tenant.tenant_id, principal="human:tester").query_topic(TOPIC)
    assert given.matches == same.matches
    assert given.position == same.position
    assert TOPIC in kept.context_block(given, TOPIC).text
    assert kept.replay_receipt(given.receipt_id, TOPIC).equal


def test_who_wrote_reads_what_he_wrote_however_late_the_replica_is(
    served: Grandbo, kept: TenantMemory, primary: TestDatabase, replica: Standby
) -> None:
    replica.wait_for(primary)
    replica.pause()
    recorded = kept.record_finding(make_finding(title=TOPIC)).acknowledgement

    assert [match.entry_id for match in kept.query_topic(TOPIC, mode="words").matches] == [recorded.entry_id]
    assert _counts(served) == (0, 1, 0)


def test_another_process_is_told_what_the_position_it_names_has(
    served: Grandbo, kept: TenantMemory, primary: TestDatabase, replica: Standby
) -> None:
    kept.record_finding(make_finding(title=TOPIC))
    replica.wait_for(primary)
    replica.pause()
    with Grandbo.open(settings=primary.settings(), embedder=words_embedder()) as elsewhere:
        writer = elsewhere.tenant(kept.tenant.tenant_id, principal="human:tester")
        late = writer.record_finding(make_finding(title=f"{TOPIC}, again")).acknowledgement

    assert late.entry_id not in {match.entry_id for match in kept.query_topic(TOPIC, mode="words").matches}
    named = kept.query_topic(TOPIC, mode="words", at_least=late.position)
    assert late.entry_id in {match.entry_id for match in named.matches}
    over_http = client_of(served, token=make_token(kept, "investigator")).post(
        "/v1/recall", json={"topic": TOPIC, "mode": "words", "at_least": late.position}
    )
    assert str(late.entry_id) in {match["entry_id"] for match in over_http.json()["matches"]}


def test_a_tenant_that_the_replica_has_not_heard_of_is_answered(
    served: Grandbo, primary: TestDatabase, replica: Standby, tenant_name: str
) -> None:
    replica.wait_for(primary)
    replica.pause()
    served.create_tenant(tenant_name)

    answer = served.tenant(tenant_name, principal="human:tester").query_topic(TOPIC)

    assert answer.position == 1
    assert _counts(served) == (0, 1, 0)


def test_the_past_is_asked_of_the_whole_log(kept: TenantMemory, primary: TestDatabase, replica: Standby) -> None:
    replica.wait_for(primary)
    replica.pause()
    recorded = kept.record_finding(make_finding(title=TOPIC)).acknowledgement

    then = kept.query_topic(TOPIC, mode="words", as_of_position=recorded.position)

    assert [match.entry_id for match in then.matches] == [recorded.entry_id]


def test_a_position_that_nobody_has_reached_is_refused(kept: TenantMemory) -> None:
    with pytest.raises(MomentUnknown, match="ends at position 1"):
        kept.query_topic(TOPIC, at_least=99)
    with pytest.raises(InvalidInput, match="at_least"):
        kept.query_topic(TOPIC, at_least=0)


def test_a_replica_that_is_gone_is_left_alone_and_asked_again_later(
    primary: TestDatabase, replica: Standby, tenant_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = primary.settings(replica_url=replica.service.replace("/server", "/nowhere"))
    with Grandbo.open(settings=gone, embedder=words_embedder()) as opened:
        opened.create_tenant(tenant_name)
        kept = opened.tenant(tenant_name, principal="human:tester")
        kept.record_finding(make_finding(title=TOPIC))
        for _ in range(3):
            assert kept.query_topic(TOPIC, mode="words").matches
        assert _counts(opened) == (0, 0, 1)

        monkeypatch.setattr(readers, "REST_SECONDS", 0.0)
        opened.readers._rests_until = 0.0
        for _ in range(2):
            assert kept.query_topic(TOPIC, mode="words").matches
        assert _counts(opened) == (0, 0, 3)
