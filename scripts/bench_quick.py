"""
What must not get slower unnoticed: a few ratios, each against hand-written work of the same kind in the same run.

Both sides are measured in turn, so a machine under load slows both, and the limits are wide. What is beyond its limit
is measured once more, and counts only if it is beyond it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
from scripts.bench_floor import FLOOR_QUERY, make_floor
from scripts.bench_timing import in_turn, progress, ratio

from grandbo.library import TenantMemory
from grandbo.text import terms

if TYPE_CHECKING:
    from scripts.bench import Bench

ENTRIES = 500
ROUNDS = 40
REPLAYS = 3
# At least twice what was measured, on an idle machine and on a crowded one; docs/benchmarks.md has both.
LIMITS = {"recall": 16.0, "write": 16.0, "verify": 5.0, "rebuild": 30.0}

LOG = "SELECT envelope, body, salt FROM grandbo.org_memory_events WHERE tenant_id = %s ORDER BY position"
MAKE = "CREATE TABLE IF NOT EXISTS public.bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, document jsonb)"
INSERT = "INSERT INTO public.bare (document) VALUES (%s)"

Figures = dict[str, Any]


def quick(bench: Bench, factor: float = 1.0) -> Figures:
    """The ratios, their limits times `factor`, and the names of those that are beyond them."""
    limits = {name: limit * factor for name, limit in LIMITS.items()}
    return judged(Quick(bench).of, limits)


def judged(measure: Callable[[str], float], limits: dict[str, float]) -> Figures:
    """Measure each ratio, and those that are beyond their limit once more: what counts is the smaller."""
    ratios = {name: measure(name) for name in limits}
    for name in beyond(ratios, limits):
        ratios[name] = min(ratios[name], measure(name))
    return {"ratios": ratios, "limits": limits, "beyond": beyond(ratios, limits)}


def beyond(ratios: dict[str, float], limits: dict[str, float]) -> list[str]:
    """The names of the ratios that are larger than they may be."""
    return [name for name, limit in limits.items() if ratios[name] > limit]


class Quick:
    """One tenant of a few hundred entries, and the four things that are done to it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        bench.grandbo.create_tenant("quick")
        self._memory = bench.grandbo.tenant("quick", principal="human:bench")
        progress(f"{ENTRIES} entries")
        self._memory.import_lines([json.dumps(bench.finding(number)).encode() for number in range(ENTRIES)], "finding")
        self._memory.embed()
        self._written = 0
        with bench.admin() as conn:
            conn.execute(MAKE)
            make_floor(conn, self._memory.tenant_id)
            conn.execute("VACUUM ANALYZE")

    def of(self, name: str) -> float:
        """The ratio of that name."""
        progress(name)
        measure: Callable[[psycopg.Connection[Any], TenantMemory], float] = getattr(self, f"_{name}")
        with self._bench.admin() as conn:
            return measure(conn, self._memory)

    def _recall(self, conn: psycopg.Connection[Any], memory: TenantMemory) -> float:
        """A recall against one hand-written statement over the same rows."""
        topics = [self._bench.sentence(9) for _ in range(ROUNDS)]
        vectors = [self._bench.grandbo.meaning.of(topic).vector for topic in topics]
        words = [list(dict.fromkeys(terms(topic))) for topic in topics]

        def floor(number: int) -> None:
            params = {"terms": words[number], "vector": vectors[number], "k": 5}
            conn.execute(FLOOR_QUERY, params, prepare=True).fetchall()

        return ratio(*in_turn(ROUNDS, lambda number: memory.query_topic(topics[number]), floor))

    def _write(self, conn: psycopg.Connection[Any], memory: TenantMemory) -> float:
        """An acknowledged write against a bare row and a commit."""
        findings = [self._finding() for _ in range(ROUNDS)]
        documents = [json.dumps(finding) for finding in findings]

        def bare(number: int) -> None:
            conn.execute(INSERT, (documents[number],), prepare=True)

        return ratio(*in_turn(ROUNDS, lambda number: memory.record_finding(findings[number]), bare))

    def _verify(self, conn: psycopg.Connection[Any], memory: TenantMemory) -> float:
        """Verifying the log against reading and hashing it."""

        def read(_: int) -> None:
            for envelope, body, salt in conn.execute(LOG, (memory.tenant_id,)):
                hashlib.sha256(envelope.encode() + bytes(salt or b"") + bytes(body or b"")).digest()

        return _ratio_of(*in_turn(REPLAYS, lambda _: memory.verify(), read))

    def _rebuild(self, conn: psycopg.Connection[Any], memory: TenantMemory) -> float:
        """Rebuilding against reading the log and writing one bare row for each event."""

        def copy(_: int) -> None:
            with conn.transaction(), conn.cursor() as cursor:
                rows = cursor.execute(LOG, (memory.tenant_id,)).fetchall()
                cursor.executemany(INSERT, [(json.dumps(json.loads(envelope)),) for envelope, _body, _salt in rows])

        return _ratio_of(*in_turn(REPLAYS, lambda _: memory.rebuild(), copy))

    def _finding(self) -> Figures:
        self._written += 1
        row = self._bench.finding(self._written)
        texts = {name: row[name] for name in ("title", "summary", "body", "service")}
        evidence = [{"type": "log", "uri": row["source_url"], "label": ""}]
        return {**texts, "evidence": evidence, "incident": {"source": "bench-quick", "id": str(self._written)}}


def _ratio_of(ours: list[float], theirs: list[float]) -> float:
    """Of the best of each: of so few rounds the best is what the other processes disturbed least."""
    return round(min(ours) / min(theirs), 2)
