"""What lacks a vector is found without looking the memory over, and nothing is missed by it."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pytest
import sqlalchemy as sa

from grandbo.embedding import Embedder, Kind
from grandbo.errors import EmbedderRefused, EmbedderTransient
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage.compiling import compile_statement
from grandbo.storage.database import Database, Row, Transaction
from grandbo.types import utc_now
from grandbo.workers import embedding, pending
from grandbo.workers.backlog import MAX_ATTEMPTS, BacklogCounts, RunningCounts, count_backlog, note_attempts
from grandbo.workers.embedding import EmbeddingWorker
from grandbo.workers.pending import Pending
from tests.support.erasing import SECRET, secret_finding
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase
from tests.support.providers import HashedWords, Switchable, words_embedder

# What stands in the place of a text that has to go.
CLEAN: dict[str, Any] = {
    "title": "Whoever is on call forgot the renewal",
    "summary": "Nobody was told.",
    "body": "",
    "tags": ["lease"],
    "evidence": [{"type": "log", "uri": "https://logs.example.com/1", "label": "log"}],
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So few are looked at with one statement that every seam is passed."""
    monkeypatch.setattr(pending, "LOOK", 3)
    return 3


def record(memory: TenantMemory, count: int = 1) -> list[UUID]:
    """So many entries."""
    return [memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(count)]


def stamp_of(memory: TenantMemory) -> str:
    """The space of the memory's embedder."""
    embedder = memory._grandbo.embedder
    assert embedder is not None
    return embedder.stamp.id


def pending_of(memory: TenantMemory) -> Pending:
    """What is pending, as a worker that has just started would find it."""
    return Pending(memory._grandbo.database, memory.tenant_id, stamp_of(memory))


def worker_of(memory: TenantMemory, *, ahead: timedelta = timedelta()) -> EmbeddingWorker:
    """A worker, with a clock that is ahead."""
    embedder = memory._grandbo.embedder
    assert embedder is not None
    return EmbeddingWorker(memory._grandbo.database, embedder, clock=lambda: utc_now() + ahead)


def ids_of(rows: list[dict[str, Any]]) -> set[UUID]:
    """The entries of rows."""
    return {row["entry_id"] for row in rows}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """Every entry that was asked after for a vector, as often as it was."""
    seen: list[UUID] = []
    execute = Transaction.execute

    def noting(self: Transaction, statement: Any, params: Any = None) -> Any:
        if statement is pending._UNTRIED:
            seen.extend(params["ids"])
        return execute(self, statement, params)

    monkeypatch.setattr(Transaction, "execute", noting)
    return seen


class TestLinear:
    def test_a_drain_looks_at_each_entry_twice_at_most(
        self, own: TenantMemory, few: int, looked_at: list[UUID], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once on the walk, and once more in the log where it came while the walk went on; counted twice in all."""
        ids = record(own, 30)
        counted: list[BacklogCounts] = []

        def counting(*asked: Any) -> BacklogCounts:
            counted.append(count_backlog(*asked))
            return counted[-1]

        monkeypatch.setattr(embedding, "count_backlog", counting)
        # So that no count costs little enough to be made in between.
        monkeypatch.setattr(RunningCounts, "SHARE", 1_000_000)

        told: list[BacklogCounts] = []
        own.embed(progress=told.append)

        assert sorted(ids) == sorted(looked_at)
        assert [(30, 0), (0, 30)] == [(counts.pending, counts.embedded) for counts in counted]
        assert [30, 22, 14, 6, 0] == [counts.pending for counts in told]

    def test_what_is_new_is_found_by_itself(self, own: TenantMemory, looked_at: list[UUID]) -> None:
        """A worker that is done looks at the entry that came, and at no other."""
        record(own, 5)
        worker = worker_of(own)
        while worker.embed_batch(own.tenant_id):
            pass
        looked_at.clear()

        (new,) = record(own)

        assert 1 == worker.embed_batch(own.tenant_id)
        assert 0 == worker.embed_batch(own.tenant_id)
        assert [new] == looked_at

    def test_a_tenant_without_anything_to_do_is_asked_once(
        self, own: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pass over thousands of them is as many transactions."""
        record(own, 3)
        worker = worker_of(own)
        while worker.embed_batch(own.tenant_id):
            pass
        begun: list[str] = []
        begin = Database._begin

        def noting(self: Database, role: Any, *how: Any) -> str:
            begun.append(role)
            return begin(self, role, *how)

        monkeypatch.setattr(Database, "_begin", noting)
        worker.embed_batch(own.tenant_id)

        assert ["writer"] == begun

    def test_what_is_new_does_not_wait_behind_a_whole_memory(self, own: TenantMemory, few: int) -> None:
        """An entry that comes while a memory is embedded anew is found with the next look, not after the last."""
        record(own, 30)
        found = pending_of(own)
        found.settled(found.due(utc_now(), few))
        new = set(record(own, 2))
        turns = 0
        while not new <= ids_of(rows := found.due(utc_now(), few)):
            found.settled(rows)
            turns += 1

        assert turns <= 2


@pytest.mark.parametrize("statement", [pending._UNTRIED, pending.TEXTS], ids=("untried", "texts"))
def test_before_the_server_has_statistics_each_entry_is_looked_up_by_itself(
    database: TestDatabase, statement: sa.Select[Any]
) -> None:
    """Joined, each entry would be compared with each vector: in a memory that grows, longer than it may take."""
    compiled = compile_statement(statement)
    with database.as_admin() as conn, conn.transaction(force_rollback=True):
        for table in ("embeddings", "embedding_attempts", "entries"):
            conn.execute(f"DELETE FROM pg_statistic WHERE starelid = 'grandbo.org_memory_{table}'::regclass".encode())
            conn.execute(
                f"UPDATE pg_class SET reltuples = -1 WHERE oid = 'grandbo.org_memory_{table}'::regclass".encode()
            )
        plan = "\n".join(str(row[0]) for row in conn.execute(f"EXPLAIN (GENERIC_PLAN) {compiled.sql}".encode()))

    assert "using org_memory_embeddings_key on org_memory_embeddings" in plan, plan
    assert "Join" not in plan, plan


class TestFound:
    def test_all_that_leaves_an_entry_without_a_vector(self, own: TenantMemory, few: int) -> None:
        """Recorded, corrected, restored and released entries are found by a worker that was done; others are not."""
        corrected, restored, released, archived, _left_alone = record(own, 5)
        worker = worker_of(own)
        while worker.embed_batch(own.tenant_id):
            pass
        found = worker._pending_of(worker._texts, own.tenant_id)
        assert [] == found.due(utc_now(), 8)

        own.correct(corrected, {"summary": "It was the renewal job."}, reason="looked again")
        own.correct(restored, {"summary": "It was the broker."}, reason="looked again")
        worker.embed_batch(own.tenant_id)
        own.correct(corrected, {"summary": "It was the clock."}, reason="looked again")
        own.restore(restored, 1, reason="it was as it stood")
        own.archive(archived, reason="old")
        own.quarantine(released, reason="look at it")
        (fresh,) = record(own)

        assert {corrected, restored, fresh} == ids_of(found.due(utc_now(), 8))
        assert {corrected, restored, fresh} == ids_of(pending_of(own).due(utc_now(), 8))
        own.correct(released, {"summary": "It was the disk."}, reason="looked again")
        own.release(released, reason="sound")
        assert {corrected, restored, fresh, released} == ids_of(found.due(utc_now(), 8))

    @pytest.mark.parametrize("seed", range(4))
    def test_a_worker_that_goes_along_misses_nothing(self, own: TenantMemory, few: int, seed: int) -> None:
        """Whatever happens between its batches, in the end every entry has the vector of its text."""
        draws = random.Random(seed)
        ids = record(own, 4)
        worker = worker_of(own)
        for _ in range(25):
            self._happen(own, worker, ids, draws)
        while worker.embed_batch(own.tenant_id):
            pass

        assert (0, 0, len(ids)) == (own.backlog().pending, own.backlog().dead, own.backlog().embedded)
        assert own.check_rebuild().ok

    def _happen(self, own: TenantMemory, worker: EmbeddingWorker, ids: list[UUID], draws: random.Random) -> None:
        one = draws.choice(ids)
        match draws.choice(["record", "correct", "restore", "reclassify", "embed", "embed"]):
            case "record":
                ids += record(own)
            case "correct":
                own.correct(one, {"body": f"It was {draws.random()}."}, reason="looked again")
            case "restore" if (revision := own.show_entry(one)["revision"]) > 1:
                own.restore(one, draws.randrange(1, revision), reason="as it was")
            case "reclassify":
                own.reclassify(one, visibility=draws.choice(["team", "tech"]), reason="it belongs there")
            case _:
                worker.embed_batch(own.tenant_id, at_most=draws.randint(1, 5))

    def test_a_second_space_is_filled_from_the_first_entry_on(
        self, own: TenantMemory, database: TestDatabase, few: int
    ) -> None:
        """Another model finds every entry to embed, while the one in force goes on finding none."""
        ids = record(own, 7)
        own.embed()
        with Grandbo.open(settings=database.settings(), embedder=words_embedder("2")) as opened:
            other = opened.tenant(own.tenant.name, principal="human:tester")
            assert set(ids) == ids_of(pending_of(other).due(utc_now(), 8))
            other.embed()
            assert 7 == other.backlog().embedded

        assert [] == pending_of(own).due(utc_now(), 8)

    def test_an_erased_entry_is_no_more_to_do(self, own: TenantMemory) -> None:
        """It was found, and is gone when its text is read."""
        kept, gone = record(own, 2)
        found = pending_of(own)
        assert {kept, gone} == ids_of(found.due(utc_now(), 8))
        asked = own.request_erasure(gone, "personal_data")
        own._grandbo.tenant(own.tenant.name, principal="human:second").confirm_erasure(asked.erasure_id)

        assert {kept} == ids_of(found.due(utc_now(), 8))

    def test_rows_that_somebody_deleted_are_found_again(self, own: TenantMemory, database: TestDatabase) -> None:
        """No event tells of it: now and then the entries are walked through anew."""
        ids = record(own, 3)
        own.embed()
        found = pending_of(own)
        now = utc_now()
        assert [] == found.due(now, 8)
        with database.as_admin() as conn:
            conn.execute("DELETE FROM grandbo.org_memory_embeddings WHERE tenant_id = %s", (own.tenant_id,))

        assert [] == found.due(now + pending.WALK_AGAIN / 2, 8)
        assert set(ids) == ids_of(found.due(now + pending.WALK_AGAIN, 8))


class TestTriedBefore:
    def test_it_comes_back_when_its_time_has_come(self, own: TenantMemory, provider: Switchable) -> None:
        """Not before, and with what is new in front of it; once it has its vector its attempts are forgotten."""
        (first,) = record(own)
        provider.failure = EmbedderRefused()
        worker = worker_of(own)
        assert 0 == worker.embed_batch(own.tenant_id)
        provider.failure = None
        (new,) = record(own)
        found = worker._pending_of(worker._texts, own.tenant_id)

        assert [new] == [row["entry_id"] for row in found.due(utc_now(), 8)]
        late = utc_now() + timedelta(minutes=1)
        assert [new, first] == [row["entry_id"] for row in found.due(late, 8)]
        assert [new] == [row["entry_id"] for row in found.due(late, 1)]
        assert 2 == worker_of(own, ahead=timedelta(minutes=1)).embed_batch(own.tenant_id)
        assert [] == found.due(late, 8)
        assert not self._attempts(own)

    def test_one_that_was_given_up_is_tried_again_by_a_worker_that_passed_it_by(
        self, own: TenantMemory, provider: Switchable
    ) -> None:
        """`--retry-dead` may be cut off before it has done anything; whoever watches the backlog goes on with it."""
        record(own)
        provider.failure = EmbedderRefused()
        watching = worker_of(own, ahead=timedelta(hours=1))
        for attempt in range(MAX_ATTEMPTS):
            worker_of(own, ahead=timedelta(hours=attempt)).embed_batch(own.tenant_id)
        assert (0, 0, 1) == (watching.embed_batch(own.tenant_id), own.backlog().pending, own.backlog().dead)
        assert 1 == own.embed(retry_dead=True, deadline=0.0).pending

        provider.failure = None

        assert 1 == watching.embed_batch(own.tenant_id)

    def test_an_outage_passes_nothing_by(self, own: TenantMemory, provider: Switchable, few: int) -> None:
        """What could not be embedded is given again, by the same worker, when the provider is back."""
        ids = record(own, 7)
        worker = worker_of(own)
        for _ in range(3):
            provider.failure = EmbedderTransient()
            with pytest.raises(EmbedderTransient):
                worker.embed_batch(own.tenant_id, at_most=2)
            provider.failure = None
            assert 2 == worker.embed_batch(own.tenant_id, at_most=2)

        assert 1 == worker.embed_batch(own.tenant_id, at_most=2)
        assert len(ids) == own.backlog().embedded

    def _attempts(self, memory: TenantMemory) -> list[Any]:
        with memory._grandbo.database.transaction("writer", memory.tenant_id, read_only=True) as transaction:
            return transaction.execute(
                pending._DUE_AGAIN,
                {
                    "tenant_id": memory.tenant_id,
                    "stamp": stamp_of(memory),
                    "now": utc_now() + timedelta(days=1),
                },
            )


class Meanwhile(HashedWords):
    """A provider that keeps what it was sent; meanwhile something happens, once, and its first calls are refused."""

    def __init__(self, happen: Callable[[], object] | None = None, *, refusals: int = 0) -> None:
        super().__init__()
        self.happen = happen
        self.refusals = refusals
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], kind: Kind) -> npt.NDArray[np.float32]:
        self.texts += texts
        happen, self.happen = self.happen, None
        if happen:
            happen()
        if self.refusals:
            self.refusals -= 1
            raise EmbedderRefused
        return super().embed(texts, kind)


class TestRedacted:
    """A single revision is erased while its entry waits: corrected since, as only such a one can be."""

    def test_a_text_that_was_sent_already_gets_no_vector(self, own: TenantMemory, database: TestDatabase) -> None:
        """What the provider gives for it lands nowhere; the others of its batch get theirs, and then the new text."""
        entry_id = self._record_secret(own)
        ids = {entry_id, *record(own, 2)}
        heard = Meanwhile(lambda: self._redact(own, entry_id))
        worker = EmbeddingWorker(own._grandbo.database, Embedder(heard))
        worker.embed_batch(own.tenant_id)

        assert any(SECRET in text for text in heard.texts)
        heard.texts.clear()
        self._drain(worker, own)
        self._assert_only_the_rest(own, database, ids, heard.texts)
        assert own.query_topic("whoever is on call forgot the renewal", mode="meaning").matches

    @pytest.mark.parametrize("looked", [True, False], ids=("found before", "found since"))
    def test_a_text_that_was_only_found_is_not_sent(
        self, own: TenantMemory, database: TestDatabase, looked: bool
    ) -> None:
        """The worker that knew the entry before, and one that comes later, read what it says now."""
        entry_id = self._record_secret(own)
        ids = {entry_id, *record(own, 2)}
        heard = Meanwhile()
        worker = EmbeddingWorker(own._grandbo.database, Embedder(heard))
        if looked:
            assert ids == ids_of(worker._pending_of(worker._texts, own.tenant_id).due(utc_now(), 8))
        self._redact(own, entry_id)

        self._drain(worker, own)
        assert any(CLEAN["title"] in text for text in heard.texts)
        self._assert_only_the_rest(own, database, ids, heard.texts)

    @pytest.mark.parametrize("attempts", [1, MAX_ATTEMPTS], ids=("waits", "given up"))
    def test_one_that_was_tried_before_is_not_forgotten(
        self, own: TenantMemory, provider: Switchable, database: TestDatabase, attempts: int
    ) -> None:
        """What was noted of its attempts goes with the words; the worker finds it again by the erasure itself."""
        entry_id = self._record_secret(own)
        own.correct(entry_id, CLEAN, reason="no names")
        provider.failure = EmbedderRefused()
        for attempt in range(attempts):
            worker_of(own, ahead=timedelta(hours=attempt)).embed_batch(own.tenant_id)
        heard = Meanwhile()
        worker = EmbeddingWorker(own._grandbo.database, Embedder(heard))
        ids = {entry_id, *record(own, 2)}
        self._drain(worker, own)
        assert 2 == own.backlog().embedded
        self._erase(own, entry_id, 1)

        self._drain(worker, own)
        assert any(CLEAN["title"] in text for text in heard.texts)
        self._assert_only_the_rest(own, database, ids, heard.texts)

    def test_of_a_text_that_was_refused_no_digest_is_left(
        self, own: TenantMemory, provider: Switchable, database: TestDatabase
    ) -> None:
        """By it the text could be guessed: also where it was no first revision, and was given up."""
        (entry_id,) = record(own)
        own.correct(entry_id, {"summary": f"{SECRET} was on call."}, reason="looked again")
        provider.failure = EmbedderRefused()
        for attempt in range(MAX_ATTEMPTS):
            worker_of(own, ahead=timedelta(hours=attempt)).embed_batch(own.tenant_id)
        assert 1 == self._attempts(own, database)
        own.correct(entry_id, CLEAN, reason="no names")
        self._erase(own, entry_id, 2)

        assert 0 == self._attempts(own, database)
        provider.failure = None
        own.embed()
        self._assert_only_the_rest(own, database, {entry_id}, [])

    def test_nor_of_one_that_is_refused_after_it_is_gone(self, own: TenantMemory, database: TestDatabase) -> None:
        """What the worker notes then is of a text that is no more."""
        entry_id = self._record_secret(own)
        # Once with its batch, and once by itself.
        heard = Meanwhile(lambda: self._redact(own, entry_id), refusals=2)
        worker = EmbeddingWorker(own._grandbo.database, Embedder(heard))
        worker.embed_batch(own.tenant_id)

        assert 0 == self._attempts(own, database)
        self._drain(worker, own)
        self._assert_only_the_rest(own, database, {entry_id}, [])

    def _record_secret(self, memory: TenantMemory) -> UUID:
        return memory.record_finding(secret_finding()).acknowledgement.entry_id

    def _redact(self, memory: TenantMemory, entry_id: UUID) -> None:
        memory.correct(entry_id, CLEAN, reason="no names")
        self._erase(memory, entry_id, 1)

    def _erase(self, memory: TenantMemory, entry_id: UUID, revision: int) -> None:
        asked = memory.request_erasure(entry_id, "personal_data", revisions=[revision])
        memory._grandbo.tenant(memory.tenant.name, principal="human:second").confirm_erasure(asked.erasure_id)

    def _drain(self, worker: EmbeddingWorker, memory: TenantMemory) -> None:
        while worker.embed_batch(memory.tenant_id):
            pass

    def _attempts(self, memory: TenantMemory, database: TestDatabase) -> int:
        with database.as_admin() as conn:
            return len(
                conn.execute(
                    "SELECT 1 FROM grandbo.org_memory_embedding_attempts WHERE tenant_id = %s", (memory.tenant_id,)
                ).fetchall()
            )

    def _assert_only_the_rest(
        self, memory: TenantMemory, database: TestDatabase, ids: set[UUID], heard: list[str]
    ) -> None:
        """Every entry has the vector of what it says now, no event holds another, and no word of it was sent."""
        assert [] == [text for text in heard if SECRET in text]
        assert (0, 0, len(ids)) == (memory.backlog().pending, memory.backlog().dead, memory.backlog().embedded)
        with database.as_admin() as conn:
            now = conn.execute(
                "SELECT entry_id, encode(text_digest, 'hex') FROM grandbo.org_memory_entries"
                " WHERE tenant_id = %s ORDER BY 1",
                (memory.tenant_id,),
            ).fetchall()
            made = conn.execute(
                "SELECT stream_id, convert_from(body, 'UTF8')::json ->> 'text_digest' FROM grandbo.org_memory_events"
                " WHERE tenant_id = %s AND event_type = 'entry_embedded' ORDER BY 1",
                (memory.tenant_id,),
            ).fetchall()
        assert now == made
        assert memory.check_rebuild().ok


class TestAtOnce:
    def test_two_drains_embed_each_entry_once_between_them(self, own: TenantMemory, few: int) -> None:
        """Both end with nothing pending, and the log has one vector for each entry."""
        ids = record(own, 20)
        barrier = threading.Barrier(2)
        ends: list[BacklogCounts] = []

        def work() -> None:
            barrier.wait(30)
            ends.append(worker_of(own).drain(own.tenant_id))

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        record(own, 5)
        for thread in threads:
            thread.join(60)

        assert 2 == len(ends)
        own.embed()
        assert len(ids) + 5 == len(list(own.events(event_type="entry_embedded"))) == own.backlog().embedded

    def test_a_refusal_is_noted_without_waiting_for_a_writer(self, own: TenantMemory, database: TestDatabase) -> None:
        """Of an entry that is being changed nothing is noted, and of the other it is; to wait could be for ever."""
        held, free = record(own, 2)
        embedder = own._grandbo.embedder
        assert embedder is not None
        with database.as_admin() as conn, conn.transaction(force_rollback=True):
            rows = conn.execute(
                "SELECT entry_id, text_digest FROM grandbo.org_memory_entries WHERE tenant_id = %s", (own.tenant_id,)
            ).fetchall()
            conn.execute("SELECT 1 FROM grandbo.org_memory_entries WHERE entry_id = %s FOR UPDATE", (held,))
            failed: list[tuple[Row, str]] = [
                ({"entry_id": entry_id, "text_digest": digest}, "embedder_refused") for entry_id, digest in rows
            ]
            note_attempts(own._database, own.tenant_id, embedder.stamp.id, failed, utc_now())
            noted = conn.execute(
                "SELECT entry_id FROM grandbo.org_memory_embedding_attempts WHERE tenant_id = %s", (own.tenant_id,)
            ).fetchall()

        assert 2 == len(rows)
        assert [(free,)] == noted


class TestRunningCounts:
    def test_they_are_counted_anew_where_that_costs_little(self) -> None:
        """A count that took a second is good for twenty; what is reckoned to nothing is counted in any case."""
        now = [0.0]
        told = iter([10, 7, 0])

        def count() -> BacklogCounts:
            now[0] += 1
            return BacklogCounts(pending=next(told), dead=1, entries=20)

        running = RunningCounts(count, clock=lambda: now[0])
        assert 8 == running.after(2).pending
        now[0] += RunningCounts.SHARE
        assert 7 == running.after(2).pending
        assert (3, 16) == (running.after(4).pending, running.counts.embedded)
        assert 0 == running.after(3).pending
