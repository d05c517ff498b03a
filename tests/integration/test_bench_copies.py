"""Tenants that a benchmark makes of the rows of one: whole, of their own, and found."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
from pgvector.psycopg import register_vector
from scripts.bench_copies import Copies
from scripts.peers.grandbo_memory import Multiplied

from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase
from tests.support.providers import WORDS_STAMP

_HELD = """
SELECT (SELECT count(*) FROM grandbo.org_memory_entries WHERE tenant_id = %(tenant)s),
       (SELECT count(*) FROM grandbo.org_memory_terms WHERE tenant_id = %(tenant)s),
       (SELECT count(DISTINCT vector::text) FROM grandbo.org_memory_embeddings WHERE tenant_id = %(tenant)s),
       (SELECT count(DISTINCT stamp) FROM grandbo.org_memory_embeddings WHERE tenant_id = %(tenant)s)
"""


def _drawn(rng: np.random.Generator, count: int) -> npt.NDArray[np.float32]:
    rows = rng.standard_normal((count, WORDS_STAMP.native_dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


class TestCopies:
    def test_as_many_as_are_wanted_and_all_of_them_found(
        self, grandbo: Grandbo, memory: TenantMemory, database: TestDatabase, tenant_name: str
    ) -> None:
        """Two and a half times the entries, each with its postings and a vector of its own; the source stays."""
        for number in range(4):
            memory.record_finding(make_finding(title=f"Orchard{number} lost its lease"))
        memory.embed()
        grandbo.create_tenant(f"{tenant_name}-copies")
        other = grandbo.tenant(f"{tenant_name}-copies", principal="human:tester")

        with database.as_admin() as conn:
            register_vector(conn)
            before = conn.execute(_HELD, {"tenant": memory.tenant_id}).fetchone()
            assert before is not None
            copies = Copies(conn, memory.tenant_id, _drawn)
            copies.write(other.tenant_id, 10, number=3)
            held = conn.execute(_HELD, {"tenant": other.tenant_id}).fetchone()
            assert before == conn.execute(_HELD, {"tenant": memory.tenant_id}).fetchone()
            assert copies.bytes_an_entry() > 1_000

        assert held is not None
        assert (4, 10) == (copies.entries, held[0])
        assert before[3] == held[3]
        assert 10 * int(str(held[3])) == held[2]
        assert 2 * int(str(before[1])) < int(str(held[1])) < 3 * int(str(before[1]))
        found = other.query_topic("orchard1 lost the lease of its queue", limit=20)
        titles = {match.title for match in found.matches if match.title.startswith("Orchard1 ")}
        assert titles <= {f"Orchard1 lost its lease {copy}" for copy in (3, 4, 5)}
        assert 2 <= len(titles)


class TestMultiplied:
    def test_a_copy_has_the_vectors_that_are_given_for_it(
        self, grandbo: Grandbo, memory: TenantMemory, database: TestDatabase, tenant_name: str
    ) -> None:
        """So a benchmark fills Grandbo with what its peers hold; the copy's head stands where writes would have led."""
        for number in range(4):
            memory.record_finding(make_finding(title=f"Orchard{number} lost its lease"))
        memory.embed()
        given = _drawn(np.random.default_rng(7), 4)
        multiplied = Multiplied(database.admin, memory.tenant_id)

        for number in (1, 2):
            grandbo.create_tenant(f"{tenant_name}-{number}")
            other = grandbo.tenant(f"{tenant_name}-{number}", principal="human:tester")
            multiplied.write(other.tenant_id, number, given * (-1) ** number)
        multiplied.close()

        with database.as_admin() as conn:
            held = conn.execute(
                "SELECT vector::text FROM grandbo.org_memory_embeddings WHERE tenant_id = %s", (other.tenant_id,)
            ).fetchall()
            head = conn.execute(
                "SELECT position FROM grandbo.org_memory_heads WHERE tenant_id = %s", (other.tenant_id,)
            ).fetchone()
        kept = {tuple(round(value, 4) for value in json.loads(str(row[0]))) for row in held}
        assert {tuple(round(float(value), 4) for value in row) for row in given} == kept
        assert (8,) == head
        assert {f"Orchard{number} lost its lease 2" for number in range(4)} == {
            match.title for match in other.query_topic("orchards lost the lease of their queues", limit=20).matches
        }
