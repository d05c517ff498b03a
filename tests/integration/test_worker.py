"""The embedding worker against providers that are down, slow, wrong or back again."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import numpy as np
import pytest

from grandbo.embedding import Embedder
from grandbo.errors import EmbedderMisconfigured, EmbedderRefused, EmbedderTransient
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage.vectors import stored_length
from grandbo.types import derived_id, utc_now
from grandbo.workers.backlog import MAX_ATTEMPTS
from grandbo.workers.embedding import EmbeddingWorker
from grandbo.workers.pending import Pending
from tests.support.factories import make_finding
from tests.support.pool import assert_pool_is_idle
from tests.support.postgres import TestDatabase
from tests.support.providers import WORDS_STAMP, HashedWords, Switchable


def _worker(memory: TenantMemory, *, ahead: timedelta = timedelta()) -> EmbeddingWorker:
    embedder = memory._grandbo.embedder
    assert embedder is not None
    return EmbeddingWorker(memory._grandbo.database, embedder, clock=lambda: utc_now() + ahead)


def _until(condition: object, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.02)


class TestOutage:
    @pytest.fixture
    def database(self, clone: TestDatabase) -> TestDatabase:
        """A worker that runs passes over all tenants: here there are no others than those of the test."""
        return clone

    def test_writes_and_recalls_go_on_and_the_backlog_drains_by_itself(
        self, own: TenantMemory, provider: Switchable
    ) -> None:
        """While the provider is down, findings are recorded and found by words; when it is back they get vectors."""
        provider.failure = EmbedderTransient()
        own._grandbo.start_worker()
        acks = [own.record_finding(make_finding()).acknowledgement for _ in range(3)]
        _until(lambda: provider.calls > 0)
        assert 3 == own.backlog().pending
        assert 3 == len(own.query_topic("consumers lost their leases").matches)

        provider.failure = None
        own._grandbo.wake_worker()

        _until(lambda: own.backlog().embedded == len(acks))
        assert (0, 0) == (own.backlog().pending, own.backlog().dead)

    def test_an_outage_uses_up_no_attempts(self, own: TenantMemory, provider: Switchable) -> None:
        """However long the provider is down, no entry is given up for it."""
        own.record_finding(make_finding())
        provider.failure = EmbedderTransient()
        worker = _worker(own)
        for _ in range(MAX_ATTEMPTS + 2):
            with pytest.raises(EmbedderTransient):
                worker.embed_batch(own.tenant_id)

        provider.failure = None

        assert 1 == worker.embed_batch(own.tenant_id)

    def test_a_provider_that_hangs_holds_no_connection(self, own: TenantMemory, provider: Switchable) -> None:
        """While the provider hangs, no transaction is open, and writes go on."""
        own.record_finding(make_finding())
        provider.gate.clear()
        thread = threading.Thread(target=lambda: _worker(own).embed_batch(own.tenant_id))
        thread.start()
        try:
            own.record_finding(make_finding())
            assert_pool_is_idle(own._grandbo)
        finally:
            provider.gate.set()
            thread.join(30)

        assert 1 <= own.backlog().embedded

    def test_a_misconfigured_provider_ends_a_drain_with_its_reason(
        self, own: TenantMemory, provider: Switchable
    ) -> None:
        """Waiting would not help against wrong credentials, so `embed` says so at once."""
        own.record_finding(make_finding())
        provider.failure = EmbedderMisconfigured()

        with pytest.raises(EmbedderMisconfigured):
            own.embed()

    def test_one_tenant_s_trouble_does_not_hold_up_another(
        self, own: TenantMemory, provider: Switchable, tenant_name: str
    ) -> None:
        """A command id of the worker that somebody took leaves that entry aside; other entries and tenants go on."""
        own.record_finding(make_finding())
        own._grandbo.create_tenant(f"{tenant_name}-beside")
        beside = own._grandbo.tenant(f"{tenant_name}-beside", principal="human:tester")
        beside.record_finding(make_finding())
        embedder = own._grandbo.embedder
        assert embedder is not None
        stamp = embedder.stamp.id
        row = Pending(own._grandbo.database, own.tenant_id, stamp).due(utc_now(), 1)[0]
        taken = derived_id("embed", str(row["entry_id"]), stamp, str(row["revision"]))
        own.record_finding(make_finding(), command_id=taken)

        own._grandbo.start_worker()

        _until(lambda: beside.backlog().embedded == 1 and own.backlog().embedded == 1)
        assert own._grandbo.worker_is_alive
        assert 1 == own.backlog().pending


class TestWrongVectors:
    @pytest.mark.parametrize(
        "answer",
        [
            np.zeros((1, WORDS_STAMP.native_dimensions), np.float32),
            np.full((1, WORDS_STAMP.native_dimensions), np.nan, np.float32),
            np.full((1, WORDS_STAMP.native_dimensions), np.inf, np.float32),
            np.ones((1, WORDS_STAMP.native_dimensions + 1), np.float32),
            np.ones((1, WORDS_STAMP.native_dimensions - 1), np.float32),
            np.ones((3, WORDS_STAMP.native_dimensions), np.float32),
        ],
        ids=["zeros", "nan", "infinite", "too long", "too short", "too many"],
    )
    def test_a_vector_that_cannot_be_one_is_never_stored(
        self, own: TenantMemory, provider: Switchable, answer: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    ) -> None:
        """The entry stays without a vector, the attempt is on the record, and after the last one it counts as dead."""
        own.record_finding(make_finding())
        provider.answer = answer
        for attempt in range(MAX_ATTEMPTS):
            assert 0 == _worker(own, ahead=timedelta(hours=attempt)).embed_batch(own.tenant_id)
        counts = own.backlog()
        assert (0, 1, 0) == (counts.pending, counts.dead, counts.embedded)
        assert 2 == own.verify().head

        provider.answer = None

        assert 1 == own.embed(retry_dead=True).embedded

    def test_one_bad_text_does_not_hold_up_the_others(self, database: TestDatabase, tenant_name: str) -> None:
        """A text that the provider refuses is set aside; every other entry gets its vector."""

        class Picky(HashedWords):
            def embed(self, texts: object, kind: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
                assert isinstance(texts, list)
                if any("poison" in text for text in texts):
                    raise EmbedderRefused
                return super().embed(texts, "document")

        with Grandbo.open(settings=database.settings(), embedder=Embedder(Picky())) as opened:
            opened.create_tenant(tenant_name)
            memory = opened.tenant(tenant_name)
            for title in ("first of all", "poison in here", "last of all"):
                memory.record_finding(make_finding(title=title))
            _worker(memory).embed_batch(memory.tenant_id)
            counts = memory.backlog()

        assert (2, 1) == (counts.embedded, counts.pending)


class TestTwice:
    def test_two_workers_at_once_store_each_vector_once(self, own: TenantMemory) -> None:
        """Two workers over one backlog append one `entry_embedded` for each entry."""
        for _ in range(6):
            own.record_finding(make_finding())
        barrier = threading.Barrier(2)

        def work() -> None:
            barrier.wait(30)
            _worker(own).embed_batch(own.tenant_id)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        # The one that finds nothing left to do may note besides that the space is complete.
        assert 6 == len(list(own.events(event_type="entry_embedded")))
        assert own.check_rebuild().ok

    def test_the_stored_vector_is_the_provider_s_bit_for_bit(self, own: TenantMemory, database: TestDatabase) -> None:
        """What recall compares is what the provider gave, with zeros behind it up to a multiple of 64."""
        finding = make_finding(body="")
        own.record_finding(finding)
        own.embed()
        text = f"{finding['title']}\n{finding['summary']}"
        embedder = own._grandbo.embedder
        assert embedder is not None
        wanted = embedder.embed_padded([text], "document")[0][: stored_length(embedder.stamp.native_dimensions)]

        with database.as_admin() as conn:
            row = conn.execute(
                "SELECT vector::text FROM grandbo.org_memory_embeddings WHERE tenant_id = %s", (own.tenant_id,)
            ).fetchone()
        assert row is not None
        stored = np.array([np.float32(number) for number in str(row[0]).strip("[]").split(",")], np.float32)
        assert wanted.tobytes() == stored.tobytes()

    def test_zeros_behind_a_vector_change_no_distance(self, database: TestDatabase) -> None:
        """A distance is the same bits whether a vector is stored at its own length or at 1,024 numbers."""
        rng = np.random.default_rng(20260102)
        with database.as_admin() as conn:
            for native in (8, 100, 384, 512, 768, 1000):
                pair = np.zeros((2, 1024), np.float32)
                pair[:, :native] = rng.standard_normal((2, native))
                whole, short = (
                    conn.execute(
                        "SELECT float8send(%s::text::extensions.vector"
                        " OPERATOR(extensions.<=>) %s::text::extensions.vector)",
                        [str(row[:length].tolist()) for row in pair],
                    ).fetchone()
                    for length in (1024, stored_length(native))
                )
                assert whole == short, native
