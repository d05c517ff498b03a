"""Large scopes: what the signatures leave is measured, the answer says so, and it is given again exactly."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
import sqlalchemy as sa
from pgvector.psycopg import register_vector

from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.tenants import HEAD_AND_POLICY, standing_of
from grandbo.recall.counting import Counting
from grandbo.recall.scan import SCANS, Scan, scan_of
from grandbo.recall.scope import Scope, Shape
from grandbo.recall.statement import recall_query
from grandbo.recall.view import View
from grandbo.storage.compiling import compile_statement
from grandbo.storage.database import Transaction
from grandbo.storage.sampling import is_sampled
from grandbo.storage.tables import terms
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.types import new_id, utc_now
from tests.integration.test_as_of import as_role, check_exact
from tests.support.factories import make_finding
from tests.support.histories import History
from tests.support.postgres import TestDatabase

# Few enough of everything that most of a small memory is left out.
NARROW = Scan(exact_up_to=0, survivors=60, depth=12, postings=20, share_bp=5_000, rarest=2)
NARROWEST = Scan(exact_up_to=0, survivors=2, depth=2, postings=3, share_bp=500, rarest=1, sampled_from=1)
OF_BEFORE: dict[str, Any] = {"sampled_from": None, "margin": None, "in_proportion": False, "survivors_bp": 0}
TOPIC = "consumers lost their leases after the broker restarted"


def scanning(memory: TenantMemory, scan: Scan) -> TenantMemory:
    """The same memory, to which every scope is large, or none."""
    seen = TenantMemory(memory._grandbo, memory.tenant, memory.principal)
    seen._scanning = lambda _policy: scan
    return seen


class TestGivenAgain:
    @pytest.mark.parametrize("seed", range(2))
    def test_a_random_past_is_answered_exactly_as_it_was(self, memory: TenantMemory, seed: int) -> None:
        """Whatever happened since, the policy's own changes too: the same matches, ranks, distances and counts."""
        memory.change_policy({"exact_up_to": 0}, reason="large")
        askers = {role: as_role(memory, role) for role in ("investigator", "admin")}
        for each in (memory, *askers.values()):
            each._scanning = partial(scan_of, sets=dict.fromkeys(SCANS, NARROWEST))
        history = History(memory, askers, seed)
        history.grow(60, 120)
        large = [one for one in history.asked if one.answer.searched.scan == "signatures"]

        assert len(large) > 5
        assert check_exact(memory, history) > 0

    def test_a_receipt_is_replayed_as_it_was_scanned(self, memory: TenantMemory) -> None:
        """By what the receipt states, not by what this process would do; one that states nothing was exact."""
        for number in range(12):
            memory.record_finding(make_finding(title=f"Leases lost {number}"))
        memory.embed()
        large = scanning(memory, NARROWEST).query_topic(TOPIC)
        exact = memory.query_topic(TOPIC)
        memory.record_finding(make_finding())
        memory.embed()

        assert ("signatures", "exact") == (large.searched.scan, exact.searched.scan)
        assert large.matches != exact.matches
        assert memory.replay_receipt(large.receipt_id, TOPIC).equal
        assert scanning(memory, NARROWEST).replay_receipt(exact.receipt_id, TOPIC).equal

    def test_a_receipt_of_before_there_were_signatures_is_replayed_exactly(
        self, memory: TenantMemory, database: TestDatabase
    ) -> None:
        """It names no scan, and its answer had measured everything."""
        for _ in range(3):
            memory.record_finding(make_finding())
        memory.embed()
        receipt = memory.query_topic(TOPIC).receipt_id
        memory._grandbo.receipts.flush()
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_receipts SET parameters = parameters - 'scan', searched = searched - 'scan'"
                " WHERE receipt_id = %s",
                (receipt,),
            )

        assert scanning(memory, NARROWEST).replay_receipt(receipt, TOPIC).equal

    def test_a_receipt_of_before_the_sample_is_replayed_as_it_was_then(
        self, memory: TenantMemory, database: TestDatabase
    ) -> None:
        """It says nothing of the sample, and its depth went by whole multiples: four of five, where three do today."""
        for number in range(5):
            memory.record_finding(make_finding(title=f"Leases lost {number}"))
        memory.archive(memory.record_finding(make_finding()).acknowledgement.entry_id, reason="r")
        today = Scan(exact_up_to=0, depth=3, margin=None)
        then = scanning(memory, replace(today, **OF_BEFORE)).query_topic(TOPIC, mode="words", limit=20)
        now = scanning(memory, today).query_topic(TOPIC, mode="words", limit=20)
        memory._grandbo.receipts.flush()
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_receipts SET parameters ="
                " jsonb_set(parameters, '{scan}', (parameters -> 'scan') - %s) WHERE receipt_id = %s",
                (list(OF_BEFORE), then.receipt_id),
            )

        assert len(then.matches) > len(now.matches)
        assert scanning(memory, today).replay_receipt(then.receipt_id, TOPIC).equal
        assert memory.replay_receipt(now.receipt_id, TOPIC).equal


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One for each time that a scope is counted, and not looked up."""
    counted: list[Any] = []
    count = Counting._counted

    def spied(*asked: Any) -> Any:
        counted.append(asked)
        return count(*asked)

    monkeypatch.setattr(Counting, "_counted", staticmethod(spied))
    return counted


def _scopes(tenant_id: UUID, instant: datetime) -> list[Scope]:
    """What several may ask for."""
    whole = Scope(tenant_id, ("team", "operations", "tech", "admin"), ("published",), instant)
    return [
        whole,
        replace(whole, tiers=("team",)),
        replace(whole, kinds=("finding", "runbook")),
        replace(whole, service="checkout", statuses=("published", "archived")),
    ]


class TestCounts:
    def test_they_follow_every_event_and_the_passing_of_time(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A kept count is the count: after a write, an archiving, an embedding, and when an entry's time has come."""
        now = utc_now()
        clock = [now]
        later = Grandbo(grandbo.settings, grandbo._opened, grandbo.embedder, clock=lambda: clock[0])
        own = scanning(TenantMemory(later, memory.tenant, memory.principal), NARROWEST)

        def counted() -> tuple[int, int | None, str]:
            searched = own.query_topic(TOPIC).searched
            return searched.eligible, searched.without_vector, searched.scan

        first = own.record_finding(make_finding()).acknowledgement.entry_id
        own.record_finding(make_finding())
        assert [(2, 2, "signatures")] * 2 == [counted(), counted()]
        own.embed()
        assert (2, 0, "signatures") == counted()
        own.archive(first, reason="r")
        assert (1, 0, "signatures") == counted()
        clock[0] = now + timedelta(days=91)
        assert 0 == counted()[0]
        later.receipts.close()

    def test_a_scope_that_grows_is_large_from_the_event_on_that_makes_it_so(self, memory: TenantMemory) -> None:
        """For each asker: what a count of before tells holds only while the events since can have changed nothing."""
        memory.change_policy({"exact_up_to": 4}, reason="r")
        investigator = as_role(memory, "investigator")
        written: list[UUID] = []

        def write() -> None:
            tier = "admin" if len(written) % 3 == 2 else "team"
            written.append(memory.record_finding(make_finding(visibility=tier)).acknowledgement.entry_id)

        def raise_or_lower(tier: str) -> None:
            memory.reclassify(written[0], visibility=tier, reason="r")

        steps: list[Callable[[], Any]] = [
            *[write] * 6,
            lambda: memory.archive(written[1], reason="r"),
            *[write] * 3,
            lambda: raise_or_lower("admin"),
            lambda: memory.unarchive(written[1], reason="r"),
            lambda: raise_or_lower("team"),
        ]
        seen = set()
        for step in steps:
            step()
            for asker in (memory, investigator):
                searched = asker.query_topic(TOPIC).searched
                assert (searched.scan == "signatures") == (searched.eligible > 4)
                seen.add((asker is memory, searched.scan))

        assert 4 == len(seen)

    def test_a_small_scope_is_not_counted_after_each_event(
        self, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever writes and asks in turn waits for no count, until so much was written that it matters."""
        counted = _counted(monkeypatch)
        memory.change_policy({"exact_up_to": 8}, reason="r")
        for number in range(12):
            memory.record_finding(make_finding(service=f"service-{number % 2}"))
            assert ("exact", "signatures")[number >= 8] == memory.query_topic(TOPIC).searched.scan
            assert "exact" == memory.query_topic(TOPIC, service="service-1").searched.scan

        # The scope once while it is small and once when it has grown large, and the part that stays small once.
        assert 3 == len(counted)

    @pytest.mark.parametrize("seed", range(3))
    def test_what_was_counted_is_carried_over_whatever_happens(
        self, grandbo: Grandbo, memory: TenantMemory, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After any events, an erasure among them or not, it is what a count of that moment gives, for each asker."""
        draws = random.Random(seed)
        history = History(memory, {}, seed)
        history.grow(12, 0)
        assert grandbo.embedder is not None
        stamp = grandbo.embedder.stamp.id
        kept, fresh = Counting(), 0
        counted = _counted(monkeypatch)
        tomorrow = utc_now() + timedelta(days=1)
        # Time goes on twice: past the day on which some end, then to where others begin.
        instants = [tomorrow - timedelta(days=1)] * 14 + [tomorrow] * 14 + [datetime(2099, 6, 1, tzinfo=UTC)] * 12
        for number, instant in enumerate(instants):
            for _ in range(draws.randint(1, 4)):
                history.act(draws.randrange(1_000), draws)
            if draws.random() < 0.4:
                memory.embed()
            if number % 5 == 4:
                history.erase(draws)
                memory.record_finding(make_finding(expires_at=tomorrow.isoformat()))
            with memory._database.transaction("auditor", memory.tenant_id, read_only=True, snapshot=True) as at:
                position = standing_of(at.execute(HEAD_AND_POLICY, {"tenant_id": memory.tenant_id}))[0].position
                for scope in _scopes(memory.tenant_id, instant):
                    carried = kept.of(at, scope, position, stamp, 3)
                    before = len(counted)
                    assert Counting().of(at, scope, position, stamp, 3) == carried
                    fresh += len(counted) - before
        assert len(counted) - fresh < fresh / 3

    def test_what_stands_above_the_asker_moves_nothing(self, memory: TenantMemory) -> None:
        """Entries of a higher tier change no rank, score or count of who does not see them."""
        for number in range(6):
            memory.record_finding(make_finding(title=f"Leases lost {number}"))
        memory.embed()
        token = memory.create_key("investigator", "agent", ("investigator",))[1]
        asker = scanning(memory._grandbo.authenticate(token), NARROWEST)
        before = asker.query_topic(TOPIC)
        for _ in range(6):
            memory.record_finding(make_finding(visibility="admin"))
        memory.embed()
        after = asker.query_topic(TOPIC)

        assert before.matches == after.matches
        assert before.searched == after.searched


class TestChoice:
    @pytest.mark.parametrize(
        ("most", "scan"), [(4, "signatures"), (5, "exact"), (10_000, "exact")], ids=("above", "at", "below")
    )
    def test_a_scope_is_large_beyond_what_the_policy_says(self, memory: TenantMemory, most: int, scan: str) -> None:
        """Entries in scope decide, not those of the whole tenant."""
        memory.change_policy({"exact_up_to": most}, reason="r")
        for _ in range(5):
            memory.record_finding(make_finding(service="checkout"))
        memory.record_finding(make_finding(service="billing"))
        memory.embed()

        assert scan == memory.query_topic(TOPIC, service="checkout").searched.scan
        assert "exact" == memory.query_topic(TOPIC, service="billing").searched.scan

    @pytest.mark.parametrize(
        "asked",
        [
            {"namespace": "payments"},
            {"context": {"worker": "5"}},
            {"statuses": ["expired"]},
            {"statuses": ["disputed"]},
        ],
        ids=("namespace", "context", "expired", "disputed"),
    )
    def test_what_a_vector_does_not_say_is_measured_whole(self, memory: TenantMemory, asked: dict[str, Any]) -> None:
        """Such a scope is exact at any size."""
        memory.record_finding(make_finding())
        memory.embed()

        assert "exact" == scanning(memory, NARROWEST).query_topic(TOPIC, **asked).searched.scan

    def test_the_answer_says_that_it_knows_a_lower_bound(self, memory: TenantMemory) -> None:
        """Where not all was measured, what lies just beyond the cutoff is at least so much."""
        memory.record_finding(make_finding())
        memory.embed()
        exact, large = memory.query_topic(TOPIC).searched, scanning(memory, NARROWEST).query_topic(TOPIC).searched

        assert ("0", "at least 0") == (exact.beyond, large.beyond)


def test_what_is_of_the_sample_is_found_by_its_index(database: TestDatabase) -> None:
    """The server takes the index where the statement's words are the index's own: what holds for both is said twice."""
    sample = sa.select(sa.func.count()).where(
        of_tenant(terms),
        terms.c.visibility == "team",
        terms.c.term == "lease",
        terms.c.to_position.is_(None),
        is_sampled(terms.c.entry_id),
    )
    compiled = compile_statement(sample)
    with database.as_admin() as conn:
        conn.execute("SET enable_seqscan = off")
        found = psycopg.RawCursor(conn).execute(
            f"EXPLAIN {compiled.sql}".encode(), compiled.bind({TENANT.key: new_id()})
        )
        plan = str(found.fetchall())

    assert "Index Only Scan using org_memory_terms_sampled" in plan, plan
    assert "Filter" not in plan, plan


def test_before_the_server_has_statistics_each_term_is_looked_up_by_itself(database: TestDatabase) -> None:
    """Else all postings of the tenant are read, and each compared with each term: seconds, in a large memory."""
    statement = compile_statement(recall_query(Shape(), View.LIVE, lexical=True, semantic=False, scan=NARROW))
    with database.as_admin() as conn, conn.transaction(force_rollback=True):
        conn.execute("DELETE FROM pg_statistic WHERE starelid = 'grandbo.org_memory_terms'::regclass")
        conn.execute("UPDATE pg_class SET reltuples = -1 WHERE oid = 'grandbo.org_memory_terms'::regclass")
        plan = "\n".join(str(row[0]) for row in conn.execute(f"EXPLAIN (GENERIC_PLAN) {statement.sql}".encode()))

    assert "org_memory_terms_key" in plan, plan
    assert "Join Filter: (rarity" not in plan, plan
    assert "Hash Cond: (rarity" not in plan, plan
    assert "Hash Cond: (org_memory_terms" not in plan, plan


@pytest.mark.parametrize("most", [0, 100], ids=("large", "whole"))
def test_before_the_server_has_statistics_each_vector_is_looked_up_by_its_key(
    memory: TenantMemory, database: TestDatabase, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """That of a survivor and that of a title: else all vectors that stand are read for each of them."""
    memory.change_policy({"exact_up_to": most}, reason="r")
    memory.record_finding(make_finding())
    memory.embed()
    asked: list[tuple[Any, dict[str, Any]]] = []
    execute = Transaction.execute

    def spied(self: Transaction, statement: Any, params: Any = None) -> Any:
        asked.append((statement, params or {}))
        return execute(self, statement, params)

    monkeypatch.setattr(Transaction, "execute", spied)
    memory.query_topic(TOPIC)
    statement, params = next((compile_statement(each), given) for each, given in asked if "cutoff" in given)
    with database.as_admin() as conn, conn.transaction(force_rollback=True):
        register_vector(conn)
        conn.execute("DELETE FROM pg_statistic WHERE starelid = 'grandbo.org_memory_embeddings'::regclass")
        conn.execute("UPDATE pg_class SET reltuples = -1 WHERE oid = 'grandbo.org_memory_embeddings'::regclass")
        conn.execute("SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL ROLE grandbo_reader")
        explain = f"EXPLAIN {statement.sql}".encode()
        rows = psycopg.RawCursor(conn).execute(explain, statement.bind({**params, "titles": "titles"})).fetchall()
    found = re.findall(r"Index (?:Only )?Scan using org_memory_embeddings_(\w+)", str(rows))
    read, looked_up = {0: (2, 2), 100: (1, 1)}[most]

    assert ["key"] * looked_up == found[read:], rows


def test_a_signature_that_is_not_its_vectors_is_found(memory: TenantMemory, database: TestDatabase) -> None:
    """A replay makes each signature again; the digest that checkpoints sign is that of before there were any."""
    memory.record_finding(make_finding())
    memory.embed()
    sound = memory.check_rebuild()
    with database.as_admin() as conn:
        conn.execute(
            "UPDATE grandbo.org_memory_embeddings SET signature = ~signature WHERE tenant_id = %s", (memory.tenant_id,)
        )
    forged = memory.check_rebuild()
    memory.rebuild()

    assert ([], {"org_memory_embeddings"}) == (sound.differences, {item.table for item in forged.differences})
    assert sound.digest == forged.digest
    assert memory.check_rebuild().ok
