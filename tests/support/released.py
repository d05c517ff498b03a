"""Databases as earlier releases left them: every row that there was, in the format of COPY."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from grandbo.storage import bootstrap
from grandbo.storage.migrate import migrations_folder
from tests.support.postgres import TestDatabase

FOLDER = Path(__file__).parent.parent / "golden" / "databases"
REVISIONS = sorted(path.name.partition(".")[0] for path in FOLDER.iterdir())

# Rows refer to each other; within the log the order of positions is the order of references.
_FIRST = ("org_memory_tenants", "org_memory_events", "org_memory_heads", "org_memory_principals", "org_memory_receipts")


def restore_released(database: TestDatabase, revision: str) -> None:
    """Bring an empty database to the schema of a revision, with the rows that were kept of it."""
    with psycopg.connect(database.admin, autocommit=True) as conn:
        bootstrap.prepare(conn, service_login=bootstrap.SERVICE_ROLE, service_password=None)
    _upgrade(database.admin, revision)
    with psycopg.connect(database.admin) as conn:
        for table, columns, rows in sorted(_tables(revision), key=_place):
            with conn.cursor().copy(f"COPY grandbo.{table} ({columns}) FROM STDIN") as copy:
                copy.write(rows)


def _place(kept: tuple[str, str, bytes]) -> tuple[int, str]:
    table = kept[0]
    return (_FIRST.index(table) if table in _FIRST else len(_FIRST), table)


def _tables(revision: str) -> Iterator[tuple[str, str, bytes]]:
    content = gzip.decompress((FOLDER / f"{revision}.copy.gz").read_bytes())
    headings = list(re.finditer(rb"^-- (\w+) \((.*)\)\n", content, re.MULTILINE))
    ends = [heading.start() for heading in headings[1:]] + [len(content)]
    for heading, end in zip(headings, ends, strict=True):
        yield heading.group(1).decode(), heading.group(2).decode(), content[heading.end() : end]


def _upgrade(admin: str, revision: str) -> None:
    engine = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(admin), poolclass=sa.NullPool)
    config = Config()
    config.set_main_option("script_location", str(migrations_folder()))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()
