"""
How recall, writing, rebuilding and verifying grow with a memory, and what it takes on disk.

Up to some size everything goes through the log. Larger tenants, and the many of one size, are made of its projected
rows, multiplied: an entry and its postings under a new id and title, a vector of its own.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from pgvector.psycopg import register_vector
from scripts.bench_copies import Copies, check_room, send_on
from scripts.bench_floor import FLOOR_QUERY, make_floor
from scripts.bench_timing import in_turn, progress, ratio, spread

from grandbo.embedding import RECIPE, Embedder, Kind, Stamp, windows
from grandbo.embedding.local import LocalProvider
from grandbo.errors import TopicTooShort
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import DEFAULT_POLICY
from grandbo.recall.counting import Counting
from grandbo.recall.query import query_topic
from grandbo.recall.question import check_question
from grandbo.recall.scan import EXACT, Scanning, scan_of
from grandbo.settings import Settings
from grandbo.storage import database as serving
from grandbo.text import terms

SIZES = (500, 5_000, 20_000, 100_000)
EXACT_UP_TO = DEFAULT_POLICY.exact_up_to
LEAST_FOUND = 0.99
WRITERS = (1, 4, 8)
MANY = 50

Vectors = npt.NDArray[np.float32]
Make = Callable[[int], dict[str, Any]]
Sentence = Callable[[int], str]


class MixedIncidents:
    """
    Vectors of real incidents, mixed: of any text two of them, by a weight, and a little noise; all drawn by its digest.

    So there are as many as one wants, each text has always the same, and they lie to each other as those of incidents.
    """

    stamp = Stamp("bench", "mixed-incidents", "1", 384, RECIPE, 6_500)
    max_texts = 64

    def __init__(self, incidents: Path | None) -> None:
        self._real = _real_vectors(incidents)

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """One row a text."""
        return np.stack(
            [self.drawn(np.random.default_rng(list(sha256(text.encode()).digest())), 1)[0] for text in texts]
        )

    def drawn(self, rng: np.random.Generator, count: int) -> Vectors:
        """So many mixtures."""
        one, other = (self._real[rng.integers(len(self._real), size=count)] for _ in range(2))
        weight = rng.uniform(0.5, 1, size=(count, 1))
        noise = _normal(rng.standard_normal((count, self._real.shape[1])))
        return _normal(_normal(one * weight + other * (1 - weight)) + 0.35 * noise)


def _normal(rows: npt.NDArray[Any]) -> Vectors:
    normal: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return normal


def _real_vectors(incidents: Path | None) -> Vectors:
    """The first two windows of each incident, by the local model."""
    sample = resources.files("grandbo").joinpath("data/sample-incidents.jsonl")
    lines = (incidents.read_text() if incidents else sample.read_text()).splitlines()
    rows = [json.loads(line) for line in lines]
    texts = [window.text for row in rows for window in windows(row["title"], f"{row['summary']}\n{row['body']}")[:2]]
    model = LocalProvider(threads=2)
    made = []
    for start in range(0, len(texts), model.max_texts):
        made.append(model.embed(texts[start : start + model.max_texts], "document"))
        progress(f"real vectors: {start} of {len(texts)}")
    return _normal(np.concatenate(made))


@dataclass(frozen=True, slots=True)
class Made:
    """A tenant of the bench, and how many entries it has."""

    memory: TenantMemory
    entries: int
    is_logged: bool = False


class Sizes:
    """One server with tenants of many sizes, and the figures so far."""

    def __init__(self, home: Path, incidents: Path | None, finding: Make, sentence: Sentence, exact_up_to: int) -> None:
        self._provider = MixedIncidents(incidents)
        self._finding, self._sentence = finding, sentence
        self._exact_up_to = exact_up_to
        settings = Settings.load(home=home, embedder="none", pool_size=16)
        # To measure what is refused when it is served: a recall that takes longer than two seconds.
        serving._STATEMENT_TIMEOUT_MS["reader"] = 0
        self.grandbo = Grandbo.open(settings=settings, embedder=Embedder(self._provider))
        self.figures: dict[str, Any] = {"real_vectors": len(self._provider._real)}
        with self.admin() as conn:
            # Many rows at once, and no checkpoint for each gigabyte of them; the server is thrown away.
            conn.execute("ALTER SYSTEM SET max_wal_size = '8GB'")
            conn.execute("SELECT pg_reload_conf()")

    # -- filling -------------------------------------------------------------------------------------------------------

    def _tenant(self, name: str) -> TenantMemory:
        self.grandbo.create_tenant(name)
        memory = self.grandbo.tenant(name, principal="human:bench")
        memory.change_policy({"exact_up_to": self._exact_up_to}, reason="A bench says from which size on it scans.")
        return memory

    def through_the_log(self, count: int) -> Made:
        """A tenant whose every entry was imported and embedded."""
        memory = self._tenant(f"log-{count}")
        started = time.perf_counter()
        for start in range(0, count, 1_000):
            rows = (self._finding(number) for number in range(start, min(count, start + 1_000)))
            memory.import_lines([json.dumps(row).encode() for row in rows], "finding")
            progress(f"{count} through the log: {start} imported")
        imported = time.perf_counter() - started
        memory.embed(progress=lambda counts: progress(f"{count} through the log: {counts.pending} to embed"))
        embedded = time.perf_counter() - started - imported
        self.figures.setdefault("import_per_second", {})[count] = round(count / imported)
        self.figures.setdefault("embedding_events_per_second", {})[count] = round(count / embedded)
        return Made(memory, count, is_logged=True)

    def multiplied(self, of: Made, count: int, room: float) -> tuple[Made, dict[str, float]]:
        """
        A tenant of so many entries, each under its own id and title and with its own vector; and what it took.

        Args:
            room: gigabytes that it may take at most.
        """
        memory = self._tenant(f"multiplied-{count}")
        before, started = self._held(), time.perf_counter()
        with self.admin() as conn:
            copies = Copies(conn, of.memory.tenant_id, self._provider.drawn)
            check_room(self.grandbo.settings.home, copies.bytes_an_entry(), count, room)
            copies.write(memory.tenant_id, count, told="multiplied")
            send_on(conn, memory.tenant_id, count)
        written = time.perf_counter()
        self.settled()
        took = {"written_s": round(written - started), "vacuumed_s": round(time.perf_counter() - written)}
        return Made(memory, count), {**took, "gigabytes": round((self._held() - before) / 1e9, 1)}

    def crowd(self, of: Made, tenants: int, room: float) -> tuple[Made, dict[str, float]]:
        """As many tenants of the same size; gives one in the middle, and what they took."""
        made = []
        before, started = self._held(), time.perf_counter()
        with self.admin() as conn:
            copies = Copies(conn, of.memory.tenant_id, self._provider.drawn)
            check_room(self.grandbo.settings.home, copies.bytes_an_entry(), tenants * of.entries, room)
            for number in range(tenants):
                memory = self._tenant(f"crowd-{number}")
                copies.write(memory.tenant_id, of.entries, number=number)
                send_on(conn, memory.tenant_id, of.entries)
                made.append(Made(memory, of.entries))
                rate = (number + 1) / (time.perf_counter() - started)
                left = (tenants - number - 1) / rate / 60
                progress(f"tenants of {of.entries:,}: {number + 1} of {tenants}, {left:.0f} minutes left")
        written = time.perf_counter()
        self.settled()
        took = {"written_s": round(written - started), "vacuumed_s": round(time.perf_counter() - written)}
        return made[tenants // 2], {**took, "gigabytes": round((self._held() - before) / 1e9, 1)}

    def _held(self) -> int:
        """Bytes of the whole database."""
        with self.admin() as conn:
            row = conn.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])

    def admin(self) -> psycopg.Connection[Any]:
        """A superuser's connection to the same server."""
        server = self.grandbo._opened.server
        assert server is not None
        conn = psycopg.connect(server.conninfo("grandbo"), autocommit=True)
        conn.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        register_vector(conn)
        return conn

    def settled(self) -> None:
        """Statistics and visibility maps fresh."""
        with self.admin() as conn:
            conn.execute("VACUUM ANALYZE")

    # -- recall --------------------------------------------------------------------------------------------------------

    def recall(self, made: Made, rounds: int) -> dict[str, Any]:
        """Governed recall, embedding excluded, against the hand-written floor over the same rows; in turn."""
        memory = made.memory
        topics = self._topics(rounds)
        asked = [self.grandbo.meaning.of(topic).vector for topic in topics]
        words = [list(dict.fromkeys(terms(topic))) for topic in topics]
        with self.admin() as conn:
            make_floor(conn, memory.tenant_id)

            def floor(number: int) -> None:
                params = {"terms": words[number], "vector": asked[number], "k": 5}
                conn.execute(FLOOR_QUERY, params, prepare=True).fetchall()

            governed, bare = in_turn(rounds, lambda number: memory.query_topic(topics[number]), floor)
            conn.execute("DROP SCHEMA floor CASCADE")
        first = memory.query_topic(topics[0]).searched
        found = {
            "entries": made.entries,
            "scan": first.scan,
            "eligible": first.eligible,
            "recall_ms": spread(governed),
            "floor_ms": spread(bare),
            "ratio": ratio(governed, bare),
        }
        if first.scan == "signatures":
            found |= self._found_of_exact(memory, topics[: max(8, rounds // 4)])
            found["uncounted_ms"] = self._uncounted(memory, topics)
            found["after_event_ms"] = self._after_event(made, topics)
        self.grandbo.receipts.flush()
        return found

    def _topics(self, count: int) -> list[str]:
        """So many sentences that may be asked: some say too little."""
        topics: list[str] = []
        while len(topics) < count:
            sentence = self._sentence(9)
            with contextlib.suppress(TopicTooShort):
                check_question(sentence)
                topics.append(sentence)
        return topics

    def _found_of_exact(self, memory: TenantMemory, topics: list[str]) -> dict[str, Any]:
        """How much of the 25 of either exact list is in the list of the scan."""
        found: dict[str, list[float]] = {"meaning": [], "words": []}
        took = []
        for topic in topics:
            started = time.perf_counter()
            exact = self._lists(memory, topic, lambda _policy: EXACT)
            took.append(time.perf_counter() - started)
            scanned = self._lists(memory, topic, scan_of)
            for name, ids in exact.items():
                if ids:
                    found[name].append(len(ids & scanned[name]) / len(ids))
        shares = {f"{name}_found_at_25": round(statistics.mean(each), 4) for name, each in found.items()}
        return {**shares, "topics": len(topics), "exact_ms": spread(took)}

    def _lists(self, memory: TenantMemory, topic: str, scanning: Scanning) -> dict[str, set[UUID]]:
        question = replace(check_question(topic), limit=50)
        who = (self.grandbo.database, self.grandbo.meaning, self.grandbo.receipts, self.grandbo.counting)
        matches = query_topic(*who, memory.tenant_id, memory.principal, question, scanning=scanning).matches
        return {
            "meaning": {match.entry_id for match in matches if match.semantic},
            "words": {match.entry_id for match in matches if match.lexical},
        }

    def _uncounted(self, memory: TenantMemory, topics: list[str]) -> dict[str, float]:
        """A recall whose scope was not counted before, as the first one of a process."""
        took = []
        for topic in topics[:12]:
            question = check_question(topic)
            started = time.perf_counter()
            who = (self.grandbo.database, self.grandbo.meaning, self.grandbo.receipts, Counting())
            query_topic(*who, memory.tenant_id, memory.principal, question)
            took.append(time.perf_counter() - started)
        return spread(took)

    def _after_event(self, made: Made, topics: list[str]) -> dict[str, float]:
        """
        The first recall after an event: someone verifies an entry.

        Where the head was moved by hand, it is moved one on, and no entry has changed.
        """
        memory, took = made.memory, []
        matches = memory.query_topic(topics[0]).matches
        for number, topic in enumerate(topics[:12], start=1):
            if made.is_logged:
                memory.verify_entry(matches[number % len(matches)].entry_id, reason="A bench writes something.")
            else:
                with self.admin() as conn:
                    send_on(conn, memory.tenant_id, made.entries, more=number)
            started = time.perf_counter()
            memory.query_topic(topic)
            took.append(time.perf_counter() - started)
        return spread(took)

    # -- writing, replaying --------------------------------------------------------------------------------------------

    def written(self, made: Made, count: int) -> dict[str, float]:
        """Acknowledged writes into a memory of this size, one after another."""
        return spread(self._writes([made.memory], 1, count)[0])

    def _writes(self, memories: list[TenantMemory], writers: int, count: int) -> tuple[list[float], float]:
        """Latencies of `count` acknowledged writes by so many threads, and how long it took together; seconds."""
        findings = [self._recorded(number) for number in range(count)]
        took: list[float] = []
        gate = threading.Barrier(writers + 1)

        def write(writer: int) -> None:
            mine = []
            gate.wait()
            for number in range(writer, count, writers):
                started = time.perf_counter()
                memories[number % len(memories)].record_finding(findings[number])
                mine.append(time.perf_counter() - started)
            took.extend(mine)

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
        for thread in threads:
            thread.start()
        gate.wait()
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        return took, time.perf_counter() - started

    def _recorded(self, number: int) -> dict[str, Any]:
        row = self._finding(number)
        evidence = [{"type": "log", "uri": row["source_url"], "label": ""}]
        texts = {name: row[name] for name in ("title", "summary", "body", "service")}
        incident = {"source": "bench-sizes", "id": f"{time.perf_counter_ns()}-{number}"}
        return {**texts, "evidence": evidence, "incident": incident}

    def writers(self, count: int) -> dict[str, Any]:
        """Latency and throughput of 1, 4 and 8 writers, into one tenant and into 50."""
        one, many = [self._tenant("written")], [self._tenant(f"written-{number}") for number in range(MANY)]
        self._writes(one + many, 1, 2 * (MANY + 1))
        found: dict[str, Any] = {}
        for name, memories in (("1 tenant", one), (f"{MANY} tenants", many)):
            for writers in WRITERS:
                took, together = self._writes(memories, writers, count)
                found[f"{name}, {writers} writers"] = {**spread(took), "per_second": round(count / together)}
        return found

    def replayed(self, made: Made) -> dict[str, Any]:
        """Seconds to verify and to rebuild."""
        found: dict[str, Any] = {"entries": made.entries, "events": made.memory.verify().events}
        for name, work in (("verify", made.memory.verify), ("rebuild", made.memory.rebuild)):
            started = time.perf_counter()
            work()
            found[f"{name}_s"] = round(time.perf_counter() - started, 2)
        return found

    # -- on disk -------------------------------------------------------------------------------------------------------

    def on_disk(self, entries: int) -> dict[str, Any]:
        """Bytes an entry, by table: rows, what is out of line, and indexes; of a server with so many entries."""
        with self.admin() as conn:
            rows = conn.execute(ON_DISK).fetchall()
        found = {
            name: dict(zip(("rows", "out_of_line", "indexes"), (round(size / entries) for size in sizes), strict=True))
            for name, *sizes in rows
        }
        total = sum(sum(sizes.values()) for sizes in found.values())
        return {"entries": entries, "total": total, **found}


def sizes(
    home: Path,
    finding: Make,
    sentence: Sentence,
    *,
    incidents: Path | None,
    share: int,
    tenants: int,
    logged: int,
    largest: int,
    alone: str | None,
    room: float,
) -> dict[str, Any]:
    """
    Everything about size; `share` of the entries and rounds, and so many tenants of the second size.

    Args:
        logged: up to how many entries a tenant is made through the log.
        largest: entries of the largest tenant.
        alone: `largest` or `tenants`: only the recall of that, multiplied from a tenant of the second size.
        room: gigabytes that what is multiplied may take at most.
    """
    bench = Sizes(home, incidents, finding, sentence, EXACT_UP_TO // share)
    figures = bench.figures
    try:
        if alone is not None:
            figures |= _alone(bench, alone, share, tenants, largest, room)
            return figures
        wanted = [count for count in SIZES if count < largest] + [largest]
        made = [bench.through_the_log(count // share) for count in wanted if count <= logged]
        bench.settled()
        figures["logged"] = made[-1].entries
        figures["bytes_an_entry"] = bench.on_disk(sum(each.entries for each in made))
        figures["recall"] = [bench.recall(each, 120 // share) for each in made]
        figures["replay"] = [bench.replayed(each) for each in made]
        for count in (count for count in wanted if count > logged):
            large, took = bench.multiplied(made[-1], count // share, room)
            figures["recall"].append(bench.recall(large, max(12, 60 // share)) | {"made": took})
        # Of multiplied tenants the head was moved by hand, so only what went through the log is written to.
        figures["write_ms"] = {each.entries: bench.written(each, 200 // share) for each in made}
        figures["writers"] = bench.writers(400 // share)
        figures["crowds"] = [_crowd(bench, made[1], tenants, room, 120 // share)]
    finally:
        bench.grandbo.close()
    return figures


def _alone(bench: Sizes, what: str, share: int, tenants: int, largest: int, room: float) -> dict[str, Any]:
    """The recall of one large tenant, or of one among many, and nothing else."""
    of = bench.through_the_log(SIZES[1] // share)
    bench.settled()
    if what == "tenants":
        return {"crowds": [_crowd(bench, of, tenants, room, 120 // share)]}
    large, took = bench.multiplied(of, largest // share, room)
    return {"recall": [bench.recall(large, max(12, 24 // share)) | {"made": took}]}


def _crowd(bench: Sizes, of: Made, tenants: int, room: float, rounds: int) -> dict[str, Any]:
    one, took = bench.crowd(of, tenants, room)
    return {"tenants": tenants, **bench.recall(one, rounds), "made": took}


def found_enough(figures: dict[str, Any]) -> bool:
    """Whether every scan held as much of the exact lists as is promised."""
    scans = (each for each in figures.get("recall", ()) if each["scan"] == "signatures")
    return all(min(each["meaning_found_at_25"], each["words_found_at_25"]) >= LEAST_FOUND for each in scans)


ON_DISK = """
SELECT c.relname, pg_relation_size(c.oid), coalesce(pg_total_relation_size(nullif(c.reltoastrelid, 0)), 0),
       pg_indexes_size(c.oid)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'grandbo' AND c.relkind = 'r' AND pg_total_relation_size(c.oid) > 1000000
 ORDER BY pg_total_relation_size(c.oid) DESC
"""
