"""`audit`, `rebuild`, `migrate`, `doctor`: on databases that are sound, and on databases that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from grandbo.library import Grandbo
from tests.support.cli import Cli, Finished
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase, TestServer

TENANT = "acme"


@pytest.fixture(scope="module")
def clone(server: TestServer) -> Iterator[TestDatabase]:
    """A database to damage, with one tenant and two findings; each test mends what it broke."""
    with server.clone() as made:
        with Grandbo.open(settings=made.settings()) as grandbo:
            grandbo.create_tenant(TENANT)
            grandbo.create_tenant("other")
            with grandbo.tenant(TENANT) as memory:
                memory.record_finding(make_finding())
                memory.record_finding(make_finding())
        yield made


@pytest.fixture
def cli(clone: TestDatabase) -> Cli:
    """The command line on it."""
    return _cli(clone.service)


def _cli(url: str, **variables: str) -> Cli:
    return Cli(GRANDBO_DATABASE_URL=url, GRANDBO_EMBEDDER="none", **variables)


def _admin(database: TestDatabase, *statements: str) -> None:
    with database.as_admin() as conn:
        for statement in statements:
            conn.execute(statement.encode())


def _failed(doctor: Finished) -> list[str]:
    return [check["check"].split()[0] for check in doctor.document["checks"] if check["state"] == "fail"]


class TestAuditVerify:
    def test_a_sound_log_verifies_for_one_tenant_and_for_all(self, cli: Cli) -> None:
        """Events, head, and no fault."""
        one, everyone = cli("audit", "verify", "--tenant", TENANT, "--json"), cli("audit", "verify", "--json")

        assert (0, True) == (one.code, one.document["ok"])
        assert [(3, 3, None)] == [(item["events"], item["head"], item["first_bad"]) for item in one.document["tenants"]]
        assert 2 == len(everyone.document["tenants"])

    def test_a_changed_event_is_found_at_its_position(self, server: TestServer) -> None:
        """Someone who may do anything on the server edits a body; verification and the doctor say where."""
        with server.clone() as damaged:
            with Grandbo.open(settings=damaged.settings()) as grandbo:
                grandbo.create_tenant(TENANT)
                grandbo.tenant(TENANT).record_finding(make_finding())
            _admin(
                damaged,
                "ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER USER",
                "ALTER TABLE grandbo.org_memory_events DROP CONSTRAINT org_memory_events_commitment",
                "UPDATE grandbo.org_memory_events SET body = body || ' '::bytea WHERE position = 2",
            )
            cli = _cli(damaged.service)

            verified, doctor = cli("audit", "verify", "--json"), cli("doctor", "--json")
            told = cli("audit", "verify", "--tenant", TENANT)

        assert (1, False) == (verified.code, verified.document["ok"])
        assert [2] == [item["first_bad"]["position"] for item in verified.document["tenants"]]
        assert "FAULT at position 2" in told.out
        assert (1, ["log"]) == (doctor.code, _failed(doctor))


class TestRebuild:
    def test_a_changed_row_is_found_and_mended(self, cli: Cli, clone: TestDatabase) -> None:
        """--check finds it and changes nothing; rebuild replays the log over it; then rebuild equals live."""
        _admin(clone, "UPDATE grandbo.org_memory_entries SET title = 'forged'")

        differs = cli("rebuild", "--check", "--tenant", TENANT, "--json")
        told = cli("rebuild", "--check", "--tenant", TENANT)
        rebuilt = cli("rebuild", "--tenant", TENANT, "--json")
        equal = cli("rebuild", "--check", "--json")

        assert (1, False) == (differs.code, differs.document["ok"])
        assert {"org_memory_entries"} == {item["table"] for item in differs.document["differences"]}
        assert "DIFFERENCES" in told.out
        assert (0, 3) == (rebuilt.code, rebuilt.document["events"])
        assert (0, True) == (equal.code, equal.document["ok"])
        assert 2 == len(equal.document["tenants"])

    def test_people_see_events_and_rate(self, cli: Cli) -> None:
        """How much was replayed and how fast."""
        assert "3 events replayed in" in cli("rebuild", "--tenant", TENANT).out


class TestMigrate:
    def test_an_empty_database_is_migrated_once(self, server: TestServer) -> None:
        """The revision before and after; the second time both are the same."""
        with server.empty() as empty:
            cli = _cli(empty.service, GRANDBO_ADMIN_DATABASE_URL=empty.admin)
            behind = _cli(empty.service)("tenant", "list", "--json")
            first, second = cli("migrate", "--json").document, cli("migrate", "--json").document
            works = cli("tenant", "create", TENANT)

        assert 3 == behind.code
        assert first["before"] is None
        assert (first["after"], first["after"]) == (second["before"], second["after"])
        assert 0 == works.code

    def test_a_database_that_is_not_there_is_unavailable(self) -> None:
        """Exit code 7, and no password in what is said."""
        down = _cli("postgresql://someone:hunter2@127.0.0.1:9/none")("migrate", "--json")

        assert (7, "database_unavailable") == (down.code, down.error["code"])
        assert "hunter2" not in down.err


class TestDoctor:
    def test_a_sound_installation_passes(self, cli: Cli) -> None:
        """Every part is looked at, and nothing fails."""
        doctor = cli("doctor", "--tenant", TENANT, "--json")

        assert (0, True, []) == (doctor.code, doctor.document["ok"], _failed(doctor))
        names = {check["check"].split()[0] for check in doctor.document["checks"]}
        assert {"settings", "server", "pgvector", "vacuum", "login", "walls", "schema", "clock", "log"} <= names
        assert "embedder" in names

    def test_the_local_model_is_tried(self, cli: Cli) -> None:
        """It loads, and its vectors have the length that its stamp says; the backlog is counted."""
        checks = {
            check["check"].split()[0]: check
            for check in cli("doctor", "--json", GRANDBO_EMBEDDER="local").document["checks"]
        }

        assert "ok" == checks["embedder"]["state"]
        assert "384 dimensions" in checks["embedder"]["found"]
        assert "backlog" in checks

    def test_a_superuser_is_no_login_to_serve_with(self, clone: TestDatabase) -> None:
        """Row-level security would not bind it; the mend is named."""
        doctor = _cli(clone.admin)("doctor", "--json")

        assert 1 == doctor.code
        assert "login" in _failed(doctor)
        assert all(check["mend"] for check in doctor.document["checks"] if check["check"] == "login")

    def test_a_table_without_forced_walls_fails(self, cli: Cli, clone: TestDatabase) -> None:
        """One careless ALTER TABLE is enough to be told."""
        table = "grandbo.org_memory_receipts"
        _admin(clone, f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        doctor = cli("doctor", "--json")
        _admin(clone, f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")

        found: list[dict[str, Any]] = [check for check in doctor.document["checks"] if check["check"] == "walls"]
        assert (1, ["walls"]) == (doctor.code, _failed(doctor))
        assert table in found[0]["found"]

    def test_a_server_that_vacuums_nothing_is_told_of(self, cli: Cli, clone: TestDatabase) -> None:
        """Without counts of what was written no table is ever vacuumed; that warns, and fails nothing."""
        name = conninfo_to_dict(clone.admin)["dbname"]
        _admin(clone, f'ALTER DATABASE "{name}" SET track_counts = off')
        doctor = cli("doctor", "--json")
        _admin(clone, f'ALTER DATABASE "{name}" RESET track_counts')

        found = {check["check"]: check for check in doctor.document["checks"]}
        assert (0, "warn") == (doctor.code, found["vacuum"]["state"])
        assert "track_counts" in found["vacuum"]["mend"]

    def test_a_database_without_the_schema_says_to_migrate(self, server: TestServer) -> None:
        """The doctor answers where nothing else would open."""
        with server.empty() as empty:
            doctor = _cli(empty.admin)("doctor")

        assert 1 == doctor.code
        assert "grandbo migrate" in doctor.out

    def test_a_server_that_is_down_is_a_finding(self) -> None:
        """Exit code 1, not 7: the check failed, the doctor did not."""
        doctor = _cli("postgresql://someone@127.0.0.1:9/none")("doctor", "--json")

        assert (1, ["open"]) == (doctor.code, _failed(doctor))

    def test_a_variable_that_nobody_reads_is_a_warning(self, cli: Cli) -> None:
        """A mistyped name would silently leave the default in force."""
        doctor = cli("doctor", "--json", GRANDBO_DATABSE_URL="x")

        settings = doctor.document["checks"][0]
        assert (0, "warn") == (doctor.code, settings["state"])
        assert "GRANDBO_DATABSE_URL" in settings["found"]
