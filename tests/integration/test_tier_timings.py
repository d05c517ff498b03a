"""
What is above somebody's tiers costs him no time that would tell him of it.

Counted is what the server reads for a recall; times are measured in turn, in a campaign.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from grandbo.errors import GrandboError
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.scan import Scan
from grandbo.text import terms
from grandbo.types import new_id
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder

ROUNDS = 400


def _ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """Of the medians, both measured in turn; whoever comes first changes from round to round."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for number in range(ROUNDS):
        for which in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter()
            with suppress(GrandboError):
                (one, other)[which]()
            times[which].append(time.perf_counter() - started)
    return statistics.median(times[0][40:]) / statistics.median(times[1][40:])


@pytest.mark.campaign
def test_a_hidden_id_takes_as_long_as_one_that_never_was(grandbo: Grandbo, memory: TenantMemory) -> None:
    """Of an entry above the asker's tiers, of another tenant's, and of none."""
    hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
    reviewer = grandbo.authenticate(make_token(memory, "reviewer", kind="human"))
    absent = new_id()

    for verb in (reviewer.show_entry, reviewer.history):
        ratio = _ratio(lambda verb=verb: verb(hidden), lambda verb=verb: verb(absent))  # type: ignore[misc]
        print(f"{verb.__name__}: hidden against absent {ratio:.3f}")
        assert 0.9 < ratio < 1.1


WORDS = "connection pool exhausted after the failover of the payments database"
# What the server read of the service's tables, through an index or without one. Not of receipts, which a recall writes:
# how many there are already is of the order of these tests.
_READ = """
SELECT relname, (coalesce(seq_tup_read, 0) + coalesce(through_indexes, 0))::bigint
FROM pg_stat_user_tables AS stored
LEFT JOIN LATERAL (
  SELECT sum(idx_tup_read) AS through_indexes FROM pg_stat_user_indexes WHERE relid = stored.relid
) AS counted ON true
WHERE schemaname = 'grandbo' AND relname NOT LIKE 'org_memory_receipt%'
"""
_OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


# Soon after an import a server has looked at its tables, and later it has vacuumed them. It reads otherwise then.
STATES = {
    "analysed": "ANALYZE",
    "vacuumed": "VACUUM ANALYZE",
}
_BY_ITSELF = """
DO $$ DECLARE stored regclass; BEGIN
  FOR stored IN SELECT oid FROM pg_class WHERE relnamespace = 'grandbo'::regnamespace AND relkind = 'r' LOOP
    EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', stored);
  END LOOP;
END $$
"""


@pytest.fixture(scope="module", params=list(STATES.values()), ids=list(STATES))
def clone(server: TestServer, request: pytest.FixtureRequest) -> Iterator[TestDatabase]:
    """A database of two tenants, one of which hides 500 entries, in a state of its tables that stays as it is."""
    with server.clone() as made:
        with made.as_admin() as conn:
            conn.execute(_BY_ITSELF)
        with Grandbo.open(settings=made.settings(), embedder=words_embedder()) as grandbo:
            for tenant, hidden in (("beside", 500), ("alone", 0)):
                grandbo.create_tenant(tenant)
                memory = _reader(grandbo, tenant)
                told = [make_finding(title=f"The {WORDS}, number {number}", namespace="shop") for number in range(20)]
                one, other = [memory.record_finding(each).acknowledgement.entry_id for each in told][:2]
                above = grandbo.tenant(tenant, principal="human:head")
                above.dispute(one, other=other, reason="They cannot both be so.")
                for number in range(hidden):
                    above.record_finding(make_finding(title=f"Hidden: {WORDS}, {number}", visibility="admin"))
                for number in range(hidden // 4):
                    above.propose(make_finding(title=f"Hidden, to be judged: {number}", visibility="admin"))
                above.embed()
        with made.as_admin() as conn:
            conn.execute(request.param)
        yield made


def _reader(grandbo: Grandbo, tenant: str) -> TenantMemory:
    """Sees every tier but the highest."""
    return grandbo.tenant(tenant, principal="human:lead", roles=("reviewer",))


def _counters(clone: TestDatabase) -> Counter[str]:
    """Rows read so far, by table. Certain once the connections that read them have ended."""
    with clone.as_admin() as conn:
        while conn.execute(_OTHERS).fetchone() != (0,):
            pass
        return Counter({str(name): int(str(read)) for name, read in conn.execute(_READ).fetchall()})


def _read_by(clone: TestDatabase, tenant: str, ask: Callable[[TenantMemory], object]) -> Counter[str]:
    before = _counters(clone)
    with Grandbo.open(settings=clone.settings(), embedder=words_embedder()) as grandbo:
        reader = _reader(grandbo, tenant)
        for _ in range(10):
            assert ask(reader)
    return _counters(clone) - before


ASKS: dict[str, Callable[[TenantMemory], object]] = {
    "plain": lambda memory: memory.query_topic(WORDS).matches,
    "by words": lambda memory: memory.query_topic(WORDS, mode="words").matches,
    "by meaning": lambda memory: memory.query_topic(WORDS, mode="meaning").matches,
    "of a kind": lambda memory: memory.query_topic(WORDS, kinds=["finding"]).matches,
    "of a service": lambda memory: memory.query_topic(WORDS, service="checkout").matches,
    "of a namespace": lambda memory: memory.query_topic(WORDS, namespace="shop").matches,
    "for a context": lambda memory: memory.query_topic(WORDS, context={"worker": "5.1"}).matches,
    "of other statuses too": lambda memory: (
        memory.query_topic(WORDS, statuses=["published", "disputed", "archived", "superseded"]).matches
    ),
    "in layers": lambda memory: memory.recall_layers(WORDS),
    "a list": lambda memory: memory.list_entries(),
    "what is due": lambda memory: memory.due() is not None,
    "candidates": lambda memory: memory.candidates() is not None,
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_a_recall_reads_as_much_beside_hidden_entries_on_its_words_as_beside_none(
    clone: TestDatabase, ask: Callable[[TenantMemory], object]
) -> None:
    """What is not read takes no time."""
    beside, alone = _read_by(clone, "beside", ask), _read_by(clone, "alone", ask)
    assert alone.total() > 0, "what was read is counted"
    # Within a row or two a recall: the server looks at the ends of an index now and then, to plan.
    assert {table for table in alone if abs(beside[table] - alone[table]) > 20} == set()


_OF_SAMPLE = """
SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'grandbo' AND indexrelname = 'org_memory_terms_sampled'
"""
_IN_SAMPLE = """
SELECT count(*) FROM grandbo.org_memory_terms
WHERE tenant_id = %s AND visibility = 'team' AND term = ANY(%s) AND to_position IS NULL
  AND get_byte(uuid_send(entry_id), 15) < 16
"""


def test_of_a_large_scope_the_sample_too_is_read_of_the_askers_tiers_alone(clone: TestDatabase) -> None:
    """Beside 500 hidden entries on its words, a term's postings in the sample are those that the asker sees."""

    def read() -> int:
        _counters(clone)
        with clone.as_admin() as conn:
            return int(str(conn.execute(_OF_SAMPLE).fetchall()[0][0]))

    before = read()
    with Grandbo.open(settings=clone.settings(), embedder=words_embedder()) as grandbo:
        reader = _reader(grandbo, "beside")
        reader._scanning = lambda _policy: Scan(exact_up_to=0, sampled_from=1)
        for _ in range(10):
            assert "signatures" == reader.query_topic(WORDS).searched.scan
    was_read = read() - before
    with clone.as_admin() as conn:
        visible = int(str(conn.execute(_IN_SAMPLE, (reader.tenant_id, list(terms(WORDS)))).fetchall()[0][0]))
    assert 10 * visible == was_read


@pytest.mark.campaign
def test_a_recall_takes_as_long_beside_hidden_entries_on_its_words_as_beside_none(clone: TestDatabase) -> None:
    with Grandbo.open(settings=clone.settings(), embedder=words_embedder()) as grandbo:
        beside, alone = _reader(grandbo, "beside"), _reader(grandbo, "alone")
        ratio = _ratio(lambda: beside.query_topic(WORDS), lambda: alone.query_topic(WORDS))
    print(f"recall beside 500 hidden entries against none {ratio:.3f}")
    assert 0.9 < ratio < 1.1
