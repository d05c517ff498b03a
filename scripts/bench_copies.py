"""
Tenants of any size, made of one tenant's projected rows: each copy under ids and titles and with vectors of its own.

Rows are written by the projector's role, into the indexes as they are, and by the columns that the tables have. They
are written in the order of each table's key, many copies at once: so each page of an index is written a few times, and
not once for each row.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
import sqlalchemy as sa
from psycopg import sql
from scripts.bench_timing import progress

from grandbo.storage.compiling import compile_statement
from grandbo.storage.vectors import signature_of

Vectors = npt.NDArray[np.float32]
Draw = Callable[[np.random.Generator, int], Vectors]

TABLES = {"entries": "", "terms": "AND to_position IS NULL", "embeddings": "AND to_position IS NULL"}
ENTRIES_AT_ONCE = 25_000
# What a copy has of its own; whatever else a table has is the source's.
_OWN = {
    "tenant_id": "%(target)s::uuid",
    "entry_id": "i.new_id",
    "title": "l.title || ' ' || i.copy",
    "claim_digest": "sha256(l.claim_digest || convert_to(i.copy::text, 'UTF8'))",
    "vector": "v.vector",
    "signature": "({signature})",
}
_IDS = """
INSERT INTO copied_ids
  SELECT copy, entry_id, md5(entry_id::text || %(target)s || copy)::uuid
    FROM (SELECT entry_id, row_number() OVER (ORDER BY entry_id) AS place FROM laid_entries) e
   CROSS JOIN generate_series(%(first)s::bigint, %(last)s::bigint) copy
   WHERE (copy - %(origin)s) * %(each)s + place <= %(count)s
"""
_COLUMNS = """
SELECT a.attname FROM pg_attribute a
 WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname FROM pg_index x
  JOIN unnest(x.indkey::int[]) WITH ORDINALITY k(attnum, place) ON k.place <= x.indnkeyatts
  JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum
 WHERE x.indrelid = %s::regclass AND x.indisprimary ORDER BY k.place
"""
_BYTES = "SELECT coalesce(sum(pg_total_relation_size(name::regclass)), 0)::bigint FROM unnest(%s::text[]) name"


@dataclass(frozen=True, slots=True)
class _Table:
    """How the rows of one table are copied."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def insert(self, signature: str) -> str:
        """The statement that writes its rows of all copies that have ids."""
        own = {name: _OWN[name].replace("{signature}", signature) for name in self.columns if name in _OWN}
        values = ", ".join(own.get(name, f"l.{name}") for name in self.columns)
        order = ", ".join("i.new_id" if name == "entry_id" else f"l.{name}" for name in self.key if name != "tenant_id")
        vectors = (
            "JOIN copied_vectors v ON v.new_id = i.new_id AND v.stamp = l.stamp" if "vector" in self.columns else ""
        )
        return (
            f"INSERT INTO grandbo.{self.name} ({', '.join(self.columns)}) SELECT {values}"
            f" FROM laid_{self.name.removeprefix('org_memory_')} l JOIN copied_ids i USING (entry_id) {vectors}"
            f" ORDER BY {order}"
        )


class Copies:
    """One tenant's rows, laid out once."""

    def __init__(self, conn: psycopg.Connection[Any], source: UUID, draw: Draw) -> None:
        """
        Read them; there is a vector of its own for each copy in each space of the source.

        Args:
            conn: a superuser's, who reads past every policy; the rows are written as the projector.
        """
        self._conn = conn
        self._draw = draw
        self._tables = [self._known(f"org_memory_{name}") for name in TABLES]
        self._signature = compile_statement(sa.select(signature_of(sa.literal_column("v.vector")))).sql
        conn.execute("SET search_path = grandbo, extensions, public, pg_temp")
        conn.execute("SET work_mem = '256MB'; SET synchronous_commit = off")
        for name, narrowed in TABLES.items():
            conn.execute(
                f"CREATE TEMP TABLE laid_{name} AS SELECT * FROM grandbo.org_memory_{name}"
                f" WHERE tenant_id = %(source)s {narrowed}",
                {"source": source},
            )
            conn.execute(f"ANALYZE laid_{name}; GRANT SELECT ON laid_{name} TO grandbo_projector")
        conn.execute("CREATE TEMP TABLE copied_ids (copy bigint, entry_id uuid, new_id uuid PRIMARY KEY)")
        conn.execute(
            "CREATE TEMP TABLE copied_vectors (stamp text, new_id uuid, vector vector, PRIMARY KEY (new_id, stamp))"
        )
        conn.execute("GRANT SELECT ON copied_ids, copied_vectors TO grandbo_projector")
        spaces = conn.execute("SELECT DISTINCT stamp FROM laid_embeddings ORDER BY stamp").fetchall()
        self._stamps = [str(stamp) for (stamp,) in spaces]
        row = conn.execute("SELECT count(*) FROM laid_entries").fetchone()
        assert row is not None
        self.entries = int(row[0])

    def _known(self, name: str) -> _Table:
        columns, key = (
            tuple(row[0] for row in self._conn.execute(asked, (f"grandbo.{name}",))) for asked in (_COLUMNS, _KEY)
        )
        return _Table(name, columns, key)

    def write(self, target: UUID, count: int, *, number: int = 0, told: str = "") -> None:
        """
        So many entries into a tenant.

        Args:
            number: of the first copy; two tenants that begin with other numbers have other titles and vectors.
            told: what the progress is called; empty for none.
        """
        started = time.perf_counter()
        copies = -(-count // self.entries)
        at_once = max(1, ENTRIES_AT_ONCE // self.entries)
        for first in range(number, number + copies, at_once):
            last = min(first + at_once, number + copies) - 1
            self._write(target, {"first": first, "last": last, "origin": number, "each": self.entries, "count": count})
            done = min(count, (last + 1 - number) * self.entries)
            if told:
                rate = done / (time.perf_counter() - started)
                left = (count - done) / rate / 60
                progress(f"{told}: {done:,} of {count:,}, {rate:,.0f} a second, {left:.0f} minutes left")

    def _write(self, target: UUID, which: dict[str, int]) -> None:
        conn = self._conn
        with conn.transaction():
            conn.execute("TRUNCATE copied_ids, copied_vectors")
            conn.execute(_IDS, {**which, "target": str(target)})
            ids = [row[0] for row in conn.execute("SELECT new_id FROM copied_ids ORDER BY new_id")]
            rng = np.random.default_rng([which["first"], target.int % 2**32])
            for stamp in self._stamps:
                self._draw_for(stamp, ids, self._draw(rng, len(ids)))
            conn.execute("ANALYZE copied_ids; ANALYZE copied_vectors")
            with self._as_projector(target):
                for table in self._tables:
                    conn.execute(table.insert(self._signature), {"target": target})

    def _draw_for(self, stamp: str, ids: Sequence[UUID], vectors: Vectors) -> None:
        into = "COPY copied_vectors (stamp, new_id, vector) FROM STDIN (FORMAT BINARY)"
        with self._conn.cursor() as cursor, cursor.copy(into) as lines:
            lines.set_types(["text", "uuid", "vector"])
            for new_id, vector in zip(ids, vectors, strict=True):
                lines.write_row((stamp, new_id, vector))

    @contextmanager
    def _as_projector(self, tenant_id: UUID) -> Iterator[None]:
        conn = self._conn
        conn.execute(sql.SQL("SET LOCAL grandbo.tenant_id = {}").format(sql.Literal(str(tenant_id))))
        conn.execute("SET LOCAL ROLE grandbo_projector")
        yield
        conn.execute("RESET ROLE")

    def bytes_an_entry(self) -> float:
        """What an entry takes in the tables that are copied, as the source's server has it."""
        names = [f"grandbo.{table.name}" for table in self._tables]
        held = self._conn.execute(_BYTES, (names,)).fetchone()
        entries = self._conn.execute("SELECT count(*) FROM grandbo.org_memory_entries").fetchone()
        assert held is not None
        assert entries is not None
        return int(held[0]) / max(1, int(entries[0]))


def send_on(conn: psycopg.Connection[Any], tenant_id: UUID, count: int, *, more: int = 0) -> None:
    """
    Move a tenant's head to where it would stand had each of its entries been recorded and embedded, and so many on.

    A recall asks the head whether a scope can be large. A superuser moves it without the events; nothing verifies this
    tenant, and nothing is written to it.
    """
    with conn.transaction():
        conn.execute("SET LOCAL session_replication_role = replica")
        conn.execute(
            "UPDATE grandbo.org_memory_heads SET position = %s WHERE tenant_id = %s",
            (2 * count + more, tenant_id),
        )


class NoRoom(SystemExit):
    """What was asked for would fill the disk."""


def check_room(place: Path, bytes_an_entry: float, count: int, most: float) -> float:
    """
    Gigabytes that so many entries will take at most, the floor beside them included.

    Raises:
        NoRoom: they are more than `most`, or than what is free.
    """
    # The floor has two thirds of it; the write-ahead log and what is sorted come on top.
    wanted = bytes_an_entry * count * 5 / 3 / 1e9 + 8
    free = shutil.disk_usage(place).free / 1e9
    if wanted > min(most, free * 0.9):
        raise NoRoom(
            f"{count:,} entries would take about {wanted:.0f} GB; {free:.0f} GB are free in {place}, and at most "
            f"{most:.0f} GB may be taken (--room)."
        )
    return wanted
