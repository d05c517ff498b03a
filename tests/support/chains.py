"""
Rows of a log made by hand, so that a test can have one that is wrong in exactly one way.

Rows are plain dictionaries, by column. What is sealed here is sealed by `grandbo.events.chain`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import rfc8785
from psycopg import sql

from grandbo.events import chain

Connection = psycopg.Connection[tuple[object, ...]]
LogRow = dict[str, Any]

HEADER = tuple(chain.EventHeader.__slots__)
COLUMNS = (*HEADER, "envelope", "body", "salt", "prev_hash", "hash")
AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)

_seconds = itertools.count()


def fixed_id(number: int) -> UUID:
    """The id that the fixed vectors call by this number."""
    return UUID(f"00000000-0000-4000-8000-{number:012d}")


def sealed(row: LogRow, **changes: Any) -> LogRow:
    """The row with these changes, sealed anew: commitment, envelope and hash fit whatever it says."""
    row = {**row, **changes}
    header = chain.EventHeader(**{name: row[name] for name in HEADER})
    seal = chain.seal(header, salt=row["salt"], body=row["body"], prev_hash=row["prev_hash"])
    return {**row, "envelope": seal.envelope, "hash": seal.hash}


def with_envelope(row: LogRow, envelope: str) -> LogRow:
    """The row with another envelope and the hash that fits it; the columns stay."""
    return {
        **row,
        "envelope": envelope,
        "hash": chain.link(row["position"], row["prev_hash"], chain.leaf_hash(envelope)),
    }


def next_row(tenant_id: UUID, before: LogRow | None = None, **changes: Any) -> LogRow:
    """A correct row after `before`, or a correct first one, of a stream of its own."""
    row: LogRow = {
        "tenant_id": tenant_id,
        "position": before["position"] + 1 if before else 1,
        "event_id": uuid.uuid4(),
        "stream_id": uuid.uuid4(),
        "stream_version": 1,
        "event_type": "entry_recorded",
        "schema_version": 1,
        "principal": f"human:{fixed_id(2)}",
        "subject_id": None,
        "command_id": uuid.uuid4(),
        "command_index": 0,
        "correlation_id": None,
        "causation_id": None,
        "occurred_at": AT,
        "recorded_at": before["recorded_at"] if before else AT,
        "body": rfc8785.dumps({"n": next(_seconds)}),
        "salt": uuid.uuid4().bytes * 2,
        "prev_hash": before["hash"] if before else chain.genesis(tenant_id),
    }
    return sealed(row, **changes)


def chain_of(tenant_id: UUID, length: int) -> list[LogRow]:
    """Correct rows from the first."""
    rows: list[LogRow] = []
    for _ in range(length):
        rows.append(next_row(tenant_id, rows[-1] if rows else None))
    return rows


def resealed(rows: Sequence[LogRow]) -> list[LogRow]:
    """The rows with hashes computed anew all the way, as an insider would."""
    out: list[LogRow] = []
    for row in rows:
        out.append(sealed(row, prev_hash=out[-1]["hash"] if out else row["prev_hash"]))
    return out


def insert_row(conn: Connection, row: LogRow) -> None:
    """Insert a row as it is."""
    conn.execute(
        sql.SQL("INSERT INTO grandbo.org_memory_events ({}) VALUES ({})").format(
            sql.SQL(", ").join(map(sql.Identifier, COLUMNS)), sql.SQL(", ").join(map(sql.Placeholder, COLUMNS))
        ),
        row,
    )


def open_head(conn: Connection, tenant_id: UUID) -> None:
    """The head before the first event."""
    conn.execute(
        "INSERT INTO grandbo.org_memory_heads (tenant_id, hash) VALUES (%s, %s)", (tenant_id, chain.genesis(tenant_id))
    )


def move_head(conn: Connection, tenant_id: UUID, position: int, hash_: bytes) -> None:
    """Name another event as the last one."""
    conn.execute(
        "UPDATE grandbo.org_memory_heads SET position = %s, hash = %s WHERE tenant_id = %s",
        (position, hash_, tenant_id),
    )


def write_log(conn: Connection, rows: Sequence[LogRow]) -> None:
    """Open the head, insert the rows, move the head onto the last."""
    tenant_id, last = rows[0]["tenant_id"], rows[-1]
    open_head(conn, tenant_id)
    for row in rows:
        insert_row(conn, row)
    move_head(conn, tenant_id, last["position"], last["hash"])


@contextmanager
def acting_as(conn: Connection, role: str, tenant_id: UUID | None) -> Iterator[None]:
    """A transaction in this role, bound to this tenant; rolled back when an error leaves it."""
    with conn.transaction():
        conn.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
        if tenant_id is not None:
            conn.execute(sql.SQL("SET LOCAL grandbo.tenant_id = {}").format(sql.Literal(str(tenant_id))))
        yield
