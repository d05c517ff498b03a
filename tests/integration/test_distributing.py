"""What `migrate --distribute` would run fits a distributed server, as far as the catalogue can tell without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import LiteralString

import psycopg
import pytest

from grandbo.errors import DatabaseBehind, NotDistributable
from grandbo.storage import distributing
from grandbo.storage.tables import metadata
from grandbo.storage.walls import WALLED
from tests.support.cli import Cli
from tests.support.postgres import TestDatabase, TestServer

# Something that somebody could add to the schema, and what a distributed server would not take about it.
FAULTS: tuple[tuple[LiteralString, str], ...] = (
    ("CREATE UNIQUE INDEX across ON grandbo.org_memory_events (event_id)", "across lacks tenant_id"),
    (
        "CREATE UNIQUE INDEX alone ON grandbo.org_memory_principals (principal_id);"
        " ALTER TABLE grandbo.org_memory_api_keys ADD CONSTRAINT held_by FOREIGN KEY (principal_id)"
        " REFERENCES grandbo.org_memory_principals (principal_id)",
        "foreign key held_by leads out",
    ),
    (
        "ALTER TABLE grandbo.org_memory_entries ADD CONSTRAINT of_tenant FOREIGN KEY (tenant_id)"
        " REFERENCES grandbo.org_memory_tenants (tenant_id)",
        "foreign key of_tenant leads out",
    ),
    ("ALTER TABLE grandbo.org_memory_notes ADD COLUMN number bigserial", "column number draws from a sequence"),
    (
        "CREATE FUNCTION grandbo.look_around() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
        " CREATE TRIGGER looks BEFORE INSERT ON grandbo.org_memory_notes FOR EACH ROW"
        " EXECUTE FUNCTION grandbo.look_around()",
        "trigger looks does more",
    ),
    ("CREATE TABLE grandbo.later (tenant_id uuid PRIMARY KEY)", "grandbo.later: there are no policies"),
)


@pytest.fixture
def admin(database: TestDatabase) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A superuser in a transaction that is rolled back."""
    with psycopg.connect(database.admin) as conn:
        yield conn
        conn.rollback()


def test_the_schema_fits(admin: psycopg.Connection[tuple[object, ...]]) -> None:
    assert distributing.misfits(admin) == []


@pytest.mark.parametrize(("fault", "said"), FAULTS)
def test_what_would_not_fit_is_found(
    admin: psycopg.Connection[tuple[object, ...]], fault: LiteralString, said: str
) -> None:
    admin.execute(fault)

    assert any(said in found for found in distributing.misfits(admin))


def test_every_table_of_a_tenant_is_distributed_after_those_it_refers_to(database: TestDatabase) -> None:
    tables = re.findall(
        r"create_distributed_table\('([a-z_.]+)', 'tenant_id'", "\n".join(distributing.planned(database.admin))
    )

    own = {f"grandbo.{table.name}" for table in metadata.tables.values() if "tenant_id" in table.c}
    assert own - {"grandbo.org_memory_tenants"} <= set(tables)
    assert set(tables) == {f"{schema}.{table}" for schema, policies in WALLED.items() for table in policies}
    assert len(tables) == len(set(tables))
    place = {name: number for number, name in enumerate(tables)}
    assert place["grandbo.org_memory_events"] < place["grandbo.org_memory_heads"]


def test_the_policies_are_all_there_in_the_form_that_is_taken(
    server: TestServer,
) -> None:
    with server.clone() as clone:
        before = _policies(clone)
        policies = next(one for one in distributing.planned(clone.admin) if one.startswith("BEGIN"))
        with psycopg.connect(clone.admin, autocommit=True) as conn:
            for _ in range(2):
                conn.execute(policies.encode())
        after = _policies(clone)

    assert {key for key in before if not key[1].startswith("tenant_wall")} == after.keys()
    assert all("SELECT" not in condition for condition in after.values())


def _policies(database: TestDatabase) -> dict[tuple[str, str], str]:
    query = (
        "SELECT schemaname || '.' || tablename, policyname, coalesce(qual, '') || coalesce(with_check, '')"
        " FROM pg_policies WHERE schemaname IN ('grandbo', 'grandbo_scratch')"
    )
    with database.as_admin() as conn:
        return {(str(row[0]), str(row[1])): str(row[2]) for row in conn.execute(query)}


def test_without_citus_it_refuses_and_changes_nothing(server: TestServer) -> None:
    with server.clone() as clone:
        before = _policies(clone)

        with pytest.raises(NotDistributable, match="CREATE EXTENSION citus"):
            distributing.distribute(clone.admin)

        assert before == _policies(clone)


def test_the_command_line_prints_what_it_would_run(database: TestDatabase) -> None:
    cli = Cli(GRANDBO_DATABASE_URL=database.admin)

    printed = cli("migrate", "--distribute", "--dry-run", "--json")

    assert printed.code == 0
    assert distributing.planned(database.admin) == printed.document["statements"]
    assert cli("migrate", "--distribute", "--json").error["code"] == "not_distributable"
    assert cli("migrate", "--dry-run").code == 2


def test_a_database_that_was_never_migrated_is_refused(server: TestServer) -> None:
    with server.empty() as empty, pytest.raises(DatabaseBehind):
        distributing.planned(empty.admin)
