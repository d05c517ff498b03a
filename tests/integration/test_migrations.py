"""Migrations: from nothing, twice, by several at once; and what is refused because code and database do not fit."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import sql
from psycopg.conninfo import make_conninfo

from grandbo.errors import DatabaseBehind, DatabaseNewer, DatabaseUnsafe
from grandbo.library import Grandbo
from grandbo.storage import migrate
from grandbo.storage.migrate import head_revision, migrations_folder
from tests.support import gate
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.released import REVISIONS, restore_released
from tests.support.warm import FORKED

PROCESSES = 4
REPOSITORY = Path(__file__).parents[2]


def _migrate(database: TestDatabase) -> tuple[str | None, str]:
    return migrate.migrate(database.admin, service_conninfo=database.service)


def _open(database: TestDatabase) -> Grandbo:
    return Grandbo.open(settings=database.settings(), embedder=words_embedder())


def _set_revision(database: TestDatabase, revision: str) -> None:
    with database.as_admin() as conn:
        conn.execute("UPDATE grandbo.alembic_version SET version_num = %s", (revision,))


class TestMigrate:
    def test_from_nothing_to_a_first_finding(self, server: TestServer) -> None:
        """An empty database is migrated, passes the gate, and takes a finding."""
        with server.empty() as database:
            assert (None, head_revision()) == _migrate(database)

            with psycopg.connect(database.admin) as conn:
                assert [] == gate.blockers(conn)
            with _open(database) as grandbo:
                grandbo.create_tenant("first")
                memory = grandbo.tenant("first")
                assert 2 == memory.record_finding(make_finding()).acknowledgement.position

    def test_twice_is_once(self, server: TestServer) -> None:
        """Migrating what is migrated changes nothing and says so."""
        with server.empty() as database:
            _migrate(database)
            before = _catalogue(database)

            assert (head_revision(), head_revision()) == _migrate(database)
            assert before == _catalogue(database)

    def test_four_at_once(self, server: TestServer) -> None:
        """Of several processes that migrate at the same moment one does it, and the others find it done."""
        with server.empty() as database:
            with ProcessPoolExecutor(PROCESSES, mp_context=FORKED) as processes:
                started = [
                    processes.submit(migrate.migrate, database.admin, service_conninfo=database.service)
                    for _ in range(PROCESSES)
                ]
                outcomes = [process.result(timeout=120) for process in started]

            with psycopg.connect(database.admin) as conn:
                assert [] == gate.blockers(conn)
        assert [head_revision()] * PROCESSES == [after for _, after in outcomes]
        assert [None] + [head_revision()] * (PROCESSES - 1) == sorted(
            (before for before, _ in outcomes), key=lambda before: before or ""
        )

    def test_what_is_stored_survives(self, server: TestServer) -> None:
        """Migrating again, as every start does, leaves log and projections as they are."""
        with server.clone() as database:
            with _open(database) as grandbo:
                grandbo.create_tenant("kept")
                grandbo.tenant("kept").record_finding(make_finding())
            _migrate(database)
            with _open(database) as grandbo:
                memory = grandbo.tenant("kept")

                assert (2, None) == (memory.verify().events, memory.verify().first_bad)
                assert memory.check_rebuild().ok


class TestReleased:
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_what_an_earlier_release_stored_is_served(self, server: TestServer, revision: str) -> None:
        """Its log verifies, its projections are what today's projectors give, and it is recalled and written to."""
        with server.empty() as database:
            restore_released(database, revision)
            assert (revision, head_revision()) == _migrate(database)

            with psycopg.connect(database.admin) as conn:
                assert [] == gate.blockers(conn)
            with _open(database) as grandbo:
                memory = grandbo.tenant("released")
                versions = [(event["event_type"], event["schema_version"]) for event in memory.events()]
                assert None is memory.verify().first_bad
                assert memory.check_rebuild().ok
                # What was answered before there was an emphasis, or a choice of how to scan, must be answered so again.
                policy = memory.policy().policy
                assert (0, 10_000, 1) == (policy.rrf_emphasis, policy.exact_up_to, policy.scan)
                found = memory.query_topic("checkout queue stalled after the lease renewal failed").matches
                changed = memory.reclassify(
                    found[0].entry_id, applicability=["broker <3"], owner="platform", reason="it was fixed in 3"
                )
                memory.record_finding(make_finding(applicability=["broker >=3"], namespace="payments"))
                assert changed.appended
                assert memory.check_rebuild().ok
                for receipt in memory.receipts():
                    # Receipts of before the index of what they served are found by it.
                    served = UUID(receipt["matches"][0]["entry_id"])
                    listed = [found["receipt_id"] for found in memory.receipts(entry_id=served)]
                    assert receipt["receipt_id"] in listed

        assert {("tenant_created", 1), ("entry_recorded", 1), ("entry_reclassified", 1)} <= set(versions)


class TestRevisions:
    def test_there_is_one_line_of_them(self) -> None:
        """One head, one root, no branch: two people's migrations cannot both be the next one."""
        config = Config()
        config.set_main_option("script_location", str(migrations_folder()))
        scripts = ScriptDirectory.from_config(config)
        revisions = list(scripts.walk_revisions())

        assert (1, 1) == (len(scripts.get_heads()), len(scripts.get_bases()))
        assert not [script for script in revisions if script.is_branch_point or script.is_merge_point]
        # From the head down. Several people take numbers at once, so one may be left out; none goes back.
        numbers = [int(script.revision) for script in revisions]
        assert sorted(set(numbers), reverse=True) == numbers
        assert all(f"{number:04}" == script.revision for number, script in zip(numbers, revisions, strict=True))

    def test_a_newer_database_is_refused(self, server: TestServer) -> None:
        """A revision that this code does not know is neither migrated nor served: nobody guesses what it holds."""
        with server.clone() as database:
            _set_revision(database, "9999")

            for attempt in (_migrate, _open):
                with pytest.raises(DatabaseNewer) as refused:
                    attempt(database)
                assert {"found": "9999", "known": head_revision()} == refused.value.details

    def test_an_older_database_is_refused_until_it_is_migrated(self, server: TestServer) -> None:
        """Serving waits for `grandbo migrate`."""
        with server.clone() as database:
            _set_revision(database, "0001")

            with pytest.raises(DatabaseBehind) as refused:
                _open(database)
            assert {"found": "0001", "wanted": head_revision()} == refused.value.details

    def test_a_database_without_grandbo_is_refused(self, server: TestServer) -> None:
        """Opening does not migrate somebody's own server; it says what does."""
        with server.empty() as database, pytest.raises(DatabaseBehind, match="grandbo migrate"):
            _open(database)


class TestLogins:
    def test_a_superuser_is_refused(self, database: TestDatabase) -> None:
        """No wall binds a superuser, so none may serve."""
        with pytest.raises(DatabaseUnsafe, match="superuser"):
            _open(TestDatabase(database.admin, database.admin))

    @pytest.mark.parametrize(
        ("attributes", "reason"),
        [
            pytest.param("BYPASSRLS IN ROLE grandbo_reader", "BYPASSRLS", id="BYPASSRLS"),
            pytest.param("IN ROLE grandbo_owner", "owner", id="owner"),
            pytest.param("NOINHERIT IN ROLE grandbo_owner, grandbo_reader", "owner", id="may become the owner"),
        ],
    )
    def test_a_login_that_could_step_around_is_refused(self, server: TestServer, attributes: str, reason: str) -> None:
        """A login that row-level security does not bind, or not for long, may not serve; the way out is named."""
        with server.clone() as database, _login(database, attributes) as unsafe:
            with pytest.raises(DatabaseUnsafe, match=reason) as refused:
                _open(unsafe)

            assert "grandbo migrate" in refused.value.message

    def test_the_login_of_the_service_is_served(self, database: TestDatabase) -> None:
        """What is refused to the others is open to the login that `grandbo migrate` sets up."""
        with _open(database) as grandbo:
            assert isinstance(grandbo.tenants(), list)


class TestWheel:
    def test_migrations_travel_with_the_package(self) -> None:
        """The wheel holds the migrations where the code looks for them first."""
        project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
        included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

        assert "grandbo/migrations" == included["migrations"]
        assert (REPOSITORY / "migrations" / "env.py").is_file()
        assert REPOSITORY / "migrations" == migrations_folder()


@contextmanager
def _login(database: TestDatabase, attributes: str) -> Iterator[TestDatabase]:
    """The same database through a login made for the test."""
    role = sql.Identifier("unsafe_login")
    with database.as_admin() as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret' {}").format(role, sql.SQL(attributes)))
        conn.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(sql.Identifier(conn.info.dbname), role))
        try:
            service = make_conninfo(database.service, user="unsafe_login", password="secret")
            yield TestDatabase(database.admin, service)
        finally:
            conn.execute(sql.SQL("DROP OWNED BY {}").format(role))
            conn.execute(sql.SQL("DROP ROLE {}").format(role))


def _catalogue(database: TestDatabase) -> list[tuple[object, ...]]:
    """Every relation, function and grant, with the ids that a second run would change if it made anything anew."""
    with psycopg.connect(database.admin) as conn:
        return conn.execute(
            "SELECT c.oid::text, c.relname, c.relacl::text FROM pg_class c"
            " WHERE c.relnamespace IN ('grandbo'::regnamespace, 'grandbo_scratch'::regnamespace)"
            " UNION ALL SELECT p.oid::text, p.proname, p.proacl::text || p.proowner::regrole FROM pg_proc p"
            " WHERE p.pronamespace = 'grandbo'::regnamespace ORDER BY 1"
        ).fetchall()
