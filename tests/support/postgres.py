"""The server that the tests run on: one, real, started by Grandbo's own launcher, for the whole run."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from grandbo.settings import Settings
from grandbo.storage import migrate
from grandbo.storage.bootstrap import SERVICE_ROLE
from grandbo.storage.embedded import EmbeddedServer

TEMPLATE = "grandbo"


@cache
def run_home() -> Path:
    """The home of this run: no test makes keys in the home of whoever runs it."""
    home = tempfile.mkdtemp(prefix="grandbo-tests-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return Path(home)


@dataclass(frozen=True, slots=True)
class TestDatabase:
    """One migrated database: how an administrator and how the service connect to it."""

    __test__ = False

    admin: str
    service: str

    def settings(self, **overrides: object) -> Settings:
        """Settings of a service on this database."""
        return Settings.load(**{"database_url": self.service, "embedder": "none", "home": run_home(), **overrides})

    def as_admin(self) -> psycopg.Connection[tuple[object, ...]]:
        """A superuser's connection, for what no role of Grandbo may do."""
        return psycopg.connect(self.admin, autocommit=True)


@dataclass(slots=True)
class TestServer:
    """A server with a migrated template database, cloned for tests that change the schema."""

    __test__ = False

    server: EmbeddedServer
    password: str

    def at(self, name: str) -> TestDatabase:
        """A database of this server by name."""
        return TestDatabase(
            self.server.conninfo(name), self.server.conninfo(name, user=SERVICE_ROLE, password=self.password)
        )

    @contextmanager
    def clone(self, template: str = "template_grandbo") -> Iterator[TestDatabase]:
        """A database of its own, migrated already; dropped afterwards."""
        name = f"clone_{secrets.token_hex(6)}"
        with psycopg.connect(self.server.conninfo(), autocommit=True) as conn:
            conn.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
            )
            # Database-level settings and grants are not copied with a template.
            migrate.migrate(self.server.conninfo(name), service_conninfo=self.at(name).service)
        try:
            yield self.at(name)
        finally:
            with psycopg.connect(self.server.conninfo(), autocommit=True) as conn:
                conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def empty(self) -> Iterator[TestDatabase]:
        """A database without Grandbo in it."""
        with self._plain() as name:
            yield self.at(name)

    @contextmanager
    def _plain(self) -> Iterator[str]:
        name = f"empty_{secrets.token_hex(6)}"
        with psycopg.connect(self.server.conninfo(), autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield name
        finally:
            with psycopg.connect(self.server.conninfo(), autocommit=True) as conn:
                conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def running_server() -> Iterator[TestServer]:
    """Start a server in a folder of its own; a server that cannot start fails the tests, it never skips them."""
    with tempfile.TemporaryDirectory(prefix="grandbo-tests-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)
        with EmbeddedServer(home / "home", durable=False) as server:
            test_server = TestServer(server, secrets.token_urlsafe(16))
            with psycopg.connect(server.conninfo(), autocommit=True) as conn:
                conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
                database = test_server.at(TEMPLATE)
                migrate.migrate(database.admin, service_conninfo=database.service)
                conn.execute(sql.SQL("CREATE DATABASE template_grandbo TEMPLATE {}").format(sql.Identifier(TEMPLATE)))
            yield test_server
            server.close(wait=True)
