"""
Isolation: nothing of another tenant, and nothing above the caller's tiers, in any answer, count or error.

The same scenario runs four times: as it ships, with the explicit predicates taken out, with row-level security off,
and with the policies in the form of a distributed server. With both walls down it must fail, or it proves nothing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString
from uuid import UUID

import psycopg
import pytest
from psycopg import errors, sql

from grandbo.errors import GrandboError
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage.tables import metadata
from tests.support import walls
from tests.support.chains import Connection, acting_as
from tests.support.factories import make_finding
from tests.support.gate import PREDICATES
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.twins import HOSTILE, Hands, Told, Twins, canary, finding, leaks, questions, said

READERS = ("grandbo_writer", "grandbo_projector", "grandbo_auditor", "grandbo_reader")


@contextmanager
def _twins(database: TestDatabase) -> Iterator[Twins]:
    hands = Hands()
    with Grandbo.open(settings=database.settings(), embedder=words_embedder(), clock=hands) as grandbo:
        yield Twins(grandbo, hands)


def _secrets(twins: Twins) -> dict[str, UUID]:
    return {side: twins.tenant_id(side) for side in twins.memories}


def _play(twins: Twins) -> tuple[Told, dict[str, tuple[str, str]]]:
    """Fill both memories, read and write in both; give what was said, and each one's digest around the other's acts."""
    for side in ("a", "b"):
        twins.settle(side)
    told: Told = []
    digests: dict[str, tuple[str, str]] = {}
    for side, other in (("a", "b"), ("b", "a")):
        before = said(twins.memories[other].check_rebuild)
        told += twins.observe(side) + twins.act(side) + twins.observe(side, brief=True)
        digests[other] = (before, said(twins.memories[other].check_rebuild))
    return told, digests


def _assert_held(twins: Twins, told: Told, digests: dict[str, tuple[str, str]]) -> None:
    assert [] == leaks(told, _secrets(twins))
    for side in ("a", "b"):
        before, after = digests[side]
        assert before == after
        assert twins.memories[side].check_rebuild().ok
        assert None is twins.memories[side].verify().first_bad


class TestScenario:
    def test_as_it_ships(self, server: TestServer) -> None:
        """Over every verb, with hostile names on both sides, neither tenant learns anything of the other."""
        with server.clone() as database, _twins(database) as twins:
            told, digests = _play(twins)

            _assert_held(twins, told, digests)
            _assert_says_what_it_should(told)
            answers = dict(told)
            for side in ("a", "b"):
                # Another tenant's key, and another tenant's token, are as absent as any that never was.
                assert answers[f"{side} admin revoke no key"] == answers[f"{side} admin revoke the other's key"]
                assert answers[f"{side} admin no token"] == answers[f"{side} admin half another's token"]

    def test_row_level_security_alone_holds(self, server: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """With every explicit tenant and scope predicate taken out of every statement, nothing leaks."""
        stripped = walls.without_predicates(monkeypatch)
        with server.clone() as database, _twins(database) as twins:
            told, digests = _play(twins)

            _assert_held(twins, told, digests)
            _assert_says_what_it_should(told)
        # The predicates were there to be taken out: at least one for each table that a statement reads.
        assert set() == stripped.unguarded
        assert stripped.tables_read > 1_000
        assert stripped.scope > 1_000

    def test_explicit_predicates_alone_hold(self, server: TestServer) -> None:
        """With row-level security switched off on every table, nothing leaks."""
        with server.clone() as database, _twins(database) as twins:
            with database.as_admin() as admin:
                walls.without_row_security(admin)
            told, digests = _play(twins)

            _assert_held(twins, told, digests)
            _assert_says_what_it_should(told)

    def test_complete_policies_alone_hold(self, server: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the distributed form, without the walls and without the explicit predicates, nothing leaks."""
        walls.without_predicates(monkeypatch)
        with server.clone() as database, _twins(database) as twins:
            with database.as_admin() as admin:
                walls.as_distributed(admin)
            told, digests = _play(twins)

            _assert_held(twins, told, digests)
            _assert_says_what_it_should(told)

    def test_with_both_walls_down_it_leaks(self, server: TestServer, monkeypatch: pytest.MonkeyPatch) -> None:
        """The scenario sees another tenant, a higher tier and the past as soon as nothing hides them."""
        with server.clone() as database, _twins(database) as twins:
            for side in ("a", "b"):
                twins.settle(side)
            secrets = _secrets(twins)
            walls.without_predicates(monkeypatch)
            with database.as_admin() as admin:
                walls.without_row_security(admin)
            told = [answer for reader in twins.readers("a").items() for answer in _asked(reader)]

        found = {leak.rsplit(" ", 1)[1] for leak in leaks(told, secrets)}
        assert {"canaryb", canary("a", "expired"), canary("a", "admin")} <= found

    @pytest.mark.parametrize(
        ("tables", "scope", "hidden"),
        [
            pytest.param(("entries", "terms", "embeddings"), "tenant", canary("a", "admin"), id="without tiers"),
            pytest.param(("entries", "embeddings"), "tiers", canary("a", "expired"), id="without validity"),
        ],
    )
    def test_a_careless_policy_leaks(
        self, server: TestServer, monkeypatch: pytest.MonkeyPatch, tables: tuple[str, ...], scope: str, hidden: str
    ) -> None:
        """Where the predicates are gone, a reader's policy that forgets tiers or validity is seen by the scenario."""
        with server.clone() as database, _twins(database) as twins:
            twins.settle("a")
            walls.without_predicates(monkeypatch)
            with database.as_admin() as admin:
                for table in tables:
                    admin.execute(_careless(table, PREDICATES[scope]))
            told = _asked(("agent", twins.readers("a")["agent"]))

        assert any(hidden in text for _, text in told)


def _careless(table: str, predicate: LiteralString) -> sql.Composed:
    policy = {"entries": "entry_read", "terms": "term_read", "embeddings": "embedding_read"}[table]
    names = sql.Identifier(policy), sql.Identifier("grandbo", f"org_memory_{table}")
    return sql.SQL("ALTER POLICY {} ON {} USING ({})").format(*names, sql.SQL(predicate))


def _asked(reader: tuple[str, TenantMemory]) -> Told:
    who, memory = reader
    return [(f"a {who} {label}", said(ask)) for label, ask in questions(memory)]


def _assert_says_what_it_should(told: Told) -> None:
    """A memory that says nothing would leak nothing: each reader was told all that is his."""
    for side in ("a", "b"):
        for who, tiers in (
            ("admin", ("team", "operations", "tech", "admin")),
            ("agent", ("team", "operations", "tech")),
        ):
            heard = "".join(text for label, text in told if label.startswith(f"{side} {who} "))
            assert [] == [tier for tier in tiers if canary(side, tier) not in heard]


class TestCounts:
    def test_another_tenants_data_changes_nothing(self, server: TestServer) -> None:
        """Answers, counts, scores, distances, digests and backlogs stay the same, byte for byte."""
        with server.clone() as database, _twins(database) as twins:
            twins.settle("a")
            before = twins.observe("a")
            twins.settle("b")
            for number in range(40):
                twins.memories["b"].record_finding(finding("b", "team", 1_000 + number))
            twins.memories["b"].embed()
            twins.act("b")

            assert before == twins.observe("a")

    def test_higher_tiers_change_nothing(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Entries of a tier that the caller does not see move no id, rank, score, distance or count of his."""
        for number in range(12):
            memory.record_finding(finding("a", "team", number))
        memory.embed()
        agent = _agent(grandbo, memory)
        before = _answers(agent)

        for number in range(30):
            # The same words and more of them, so that rarity and lengths would move if they were counted.
            text = "consumers lost their leases broker restarted certificate expiry mesh " * (1 + number % 3)
            memory.record_finding(make_finding(title=f"Admin queue {number}", summary=text, visibility="admin"))
            if number == 15:
                memory.embed()

        assert before == _answers(agent)
        assert before != _answers(memory)

    def test_a_question_beyond_the_cutoff_counts_its_own_tiers_only(
        self, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """An empty answer says nothing about what lies above: not even that something nearly matched."""
        memory.record_finding(make_finding(visibility="admin"))
        memory.embed()

        searched = _agent(grandbo, memory).query_topic("consumers of the partition lost their leases").searched

        assert (0, 0, None, "nothing_in_scope") == (
            searched.eligible,
            searched.near_misses,
            searched.nearest_beyond,
            searched.empty_reason,
        )

    def test_the_writer_sees_no_other_tenants_command(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """The same command id in two tenants is two commands: no replay, no conflict, no hint."""
        command_id = uuid.uuid4()
        mine = memory.record_finding(make_finding(), command_id=command_id)
        theirs = other_memory.record_finding(make_finding(), command_id=command_id)

        assert (False, False) == (mine.replayed, theirs.replayed)
        assert (2, 2) == (mine.acknowledgement.position, theirs.acknowledgement.position)


def _agent(grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
    _, token = memory.create_key("an agent", "agent", ("investigator",))
    return grandbo.authenticate(token)


def _answers(memory: TenantMemory) -> list[str]:
    """Whole answers, but for the position, which grows with the log."""
    found = []
    for _, ask in questions(memory):
        try:
            document = ask().as_dict()
        except GrandboError as error:
            document = error.as_dict()
        for name in ("position", "instant", "receipt_id"):
            document.pop(name, None)
        found.append(json.dumps(document, sort_keys=True))
    return found


@pytest.fixture(scope="module")
def filled(server: TestServer) -> Iterator[tuple[TestDatabase, dict[str, UUID]]]:
    """Both twins, with all that their verbs leave behind, in a database of their own."""
    with server.clone() as database:
        with _twins(database) as twins:
            _play(twins)
            secrets = _secrets(twins)
        yield database, secrets


class TestSQL:
    """What a statement sees that names no tenant at all."""

    @pytest.mark.parametrize("role", READERS)
    @pytest.mark.parametrize("form", ["plain", "distributed"])
    def test_every_table_shows_one_tenants_rows(
        self, filled: tuple[TestDatabase, dict[str, UUID]], role: str, form: str
    ) -> None:
        """Each role sees rows of the bound tenant, of no other, and of none while no tenant is bound."""
        database, secrets = filled
        with psycopg.connect(database.admin) as admin, admin.transaction(force_rollback=True):
            if form == "distributed":
                walls.as_distributed(admin)
            seen = {side: _rows_seen(admin, role, secrets[side]) for side in ("a", "b")}
            unbound = [_rows_seen(admin, role, None), _rows_seen(admin, role, "")]

        assert [{}, {}] == unbound
        for side, other in (("a", "b"), ("b", "a")):
            text = json.dumps(seen[side])
            assert str(secrets[side]) in text
            assert str(secrets[other]) not in text
            assert f"canary{other}" not in text.lower()
        if role == "grandbo_reader":
            assert canary("a", "admin") not in json.dumps(seen["a"])
            assert {"org_memory_entries", "org_memory_revisions", "org_memory_terms", "org_memory_embeddings"} == set(
                seen["a"]
            )

    @pytest.mark.parametrize("role", ["grandbo_writer", "grandbo_projector"])
    @pytest.mark.parametrize("binding", [None, "", "other"])
    def test_nothing_is_written_for_anyone_else(
        self, filled: tuple[TestDatabase, dict[str, UUID]], role: str, binding: str | None
    ) -> None:
        """Without a tenant, or bound to another one, an insert is an error and an update or delete finds no row."""
        database, secrets = filled
        bound = secrets["b"] if binding == "other" else binding
        terms = sql.SQL("grandbo.org_memory_terms")
        with psycopg.connect(database.service) as conn, conn.transaction(force_rollback=True):
            _bind(conn, role, bound)
            mine = (secrets["a"],)
            updated = conn.execute(
                sql.SQL("UPDATE {} SET weight = 0 WHERE tenant_id = %s").format(terms), mine
            ).rowcount
            deleted = conn.execute(sql.SQL("DELETE FROM {} WHERE tenant_id = %s").format(terms), mine).rowcount
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute(
                    sql.SQL(
                        "INSERT INTO {} (tenant_id, entry_id, term, from_position, weight, visibility)"
                        " VALUES (%s, %s, 'term', 1, 1, 'team')"
                    ).format(terms),
                    (secrets["a"], uuid.uuid4()),
                )

        assert (0, 0) == (updated, deleted)

    def test_a_row_cannot_be_given_away(self, filled: tuple[TestDatabase, dict[str, UUID]]) -> None:
        """An update cannot move a row into another tenant."""
        database, secrets = filled
        with (
            psycopg.connect(database.service) as conn,
            pytest.raises(errors.InsufficientPrivilege),
            acting_as(conn, "grandbo_writer", secrets["a"]),
        ):
            conn.execute("UPDATE grandbo.org_memory_terms SET tenant_id = %s", (secrets["b"],))

    def test_a_malformed_tenant_is_an_error(self, filled: tuple[TestDatabase, dict[str, UUID]]) -> None:
        """A binding that is no id shows nothing and says so."""
        database, _ = filled
        with psycopg.connect(database.service) as conn, conn.transaction(force_rollback=True):
            _bind(conn, "grandbo_reader", HOSTILE[4])
            with pytest.raises(errors.InvalidTextRepresentation):
                conn.execute("SELECT FROM grandbo.org_memory_entries")

    def test_row_security_cannot_be_switched_off(self, filled: tuple[TestDatabase, dict[str, UUID]]) -> None:
        """`row_security = off` is an error for the service, never a way around."""
        database, secrets = filled
        with psycopg.connect(database.service) as conn, conn.transaction(force_rollback=True):
            _bind(conn, "grandbo_auditor", secrets["a"])
            conn.execute("SET LOCAL row_security = off")
            with pytest.raises(errors.InsufficientPrivilege):
                conn.execute("SELECT FROM grandbo.org_memory_entries")

    def test_prepared_reads_of_two_tenants_stay_apart(self, filled: tuple[TestDatabase, dict[str, UUID]]) -> None:
        """A plan that the server keeps for one tenant serves the next one's rows to the next one."""
        database, secrets = filled
        wrong: list[object] = []
        with psycopg.connect(database.service, autocommit=True, prepare_threshold=0) as conn:
            for turn in range(200):
                side = "ab"[turn % 2]
                # Committed: after a rollback the driver would drop its prepared statements, and prove nothing.
                with acting_as(conn, "grandbo_auditor", secrets[side]):
                    rows = conn.execute("SELECT DISTINCT tenant_id FROM grandbo.org_memory_entries").fetchall()
                wrong += [] if [(secrets[side],)] == rows else [rows]
            with acting_as(conn, "grandbo_auditor", secrets["a"]):
                plans = "SELECT coalesce(sum(generic_plans + custom_plans), 0)::int FROM pg_prepared_statements"
                prepared = conn.execute(plans).fetchall()

        assert [] == wrong
        assert int(str(prepared[0][0])) >= 200

    def test_the_reader_sees_nothing_of_the_log(self, filled: tuple[TestDatabase, dict[str, UUID]]) -> None:
        """Recall has no business in the log, with the keys, or with the names of principals."""
        database, secrets = filled
        hidden = ("events", "heads", "checkpoints", "subject_keys", "policies", "principals", "api_keys", "receipts",
                  "receipt_keys", "receipt_entries", "tenants")  # fmt: skip
        with psycopg.connect(database.service) as conn:
            for table in hidden:
                with pytest.raises(errors.InsufficientPrivilege), acting_as(conn, "grandbo_reader", secrets["a"]):
                    conn.execute(sql.SQL("SELECT FROM {}").format(sql.Identifier("grandbo", f"org_memory_{table}")))


def _bind(conn: Connection, role: str, tenant: UUID | str | None) -> None:
    conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
    conn.execute("SET LOCAL grandbo.tiers = '{team,operations,tech}'")
    if tenant is not None:
        conn.execute(sql.SQL("SET LOCAL grandbo.tenant_id = {}").format(sql.Literal(str(tenant))))


def _rows_seen(conn: Connection, role: str, tenant: UUID | str | None) -> dict[str, list[str]]:
    """All rows of all tables that the role may read, as text, bodies decoded; tables without rows left out."""
    seen: dict[str, list[str]] = {}
    with conn.transaction(force_rollback=True):
        _bind(conn, role, tenant)
        conn.execute("SET LOCAL bytea_output = 'escape'")
        for table in metadata.sorted_tables:
            if table.name == "org_memory_tenants":
                continue
            allowed = conn.execute("SELECT has_table_privilege(%s, 'SELECT')", (f"grandbo.{table.name}",)).fetchone()
            if allowed == (True,):
                query = sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier("grandbo", table.name))
                rows = [str(row[0]) for row in conn.execute(query).fetchall()]
                if rows:
                    seen[table.name] = rows
    return seen


class TestPool:
    def test_a_connection_carries_nothing_over(self, server: TestServer) -> None:
        """After a transaction of any outcome the next user of the connection is bound to no tenant, tier or role."""
        with (
            server.clone() as database,
            Grandbo.open(settings=database.settings(pool_size=1), embedder=words_embedder()) as grandbo,
        ):
            grandbo.create_tenant("pooled")
            memory = grandbo.tenant("pooled", principal="human:tester")
            outcomes = (
                lambda: memory.record_finding(make_finding()),
                lambda: memory.query_topic("consumers lost their leases"),
                lambda: memory.record_finding({**make_finding(), "incident": {"source": "s", "id": "1"}, "title": "x"}),
                lambda: memory.record_finding({**make_finding(), "visibility": "nowhere"}),
                lambda: memory.check_rebuild(),
                lambda: grandbo.create_tenant("pooled"),
                lambda: memory.revoke_key("absent"),
            )
            for outcome in outcomes:
                said(outcome)
                grandbo.receipts.flush()
                with grandbo.database.pool.connection() as conn:
                    row = conn.execute(
                        "SELECT current_user AS role, nullif(current_setting('grandbo.tenant_id', true), '') AS tenant,"
                        " nullif(current_setting('grandbo.tiers', true), '') AS tiers,"
                        " nullif(current_setting('grandbo.statuses', true), '') AS statuses,"
                        " nullif(current_setting('grandbo.valid_at', true), '') AS valid_at"
                    ).fetchone()

                assert row == {
                    "role": "grandbo_service",
                    "tenant": None,
                    "tiers": None,
                    "statuses": None,
                    "valid_at": None,
                }
