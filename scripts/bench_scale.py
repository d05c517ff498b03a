"""
More than one server: many connections on few through PgBouncer, recall on a streaming replica, a kill under load.

Both are real, and made for the run: `PYTHONPATH=. .venv/bin/python scripts/bench_scale.py`
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import structlog
from scripts.bench import Bench
from scripts.bench_timing import in_turn, progress, ratio, spread
from tests.support.pooler import pooled
from tests.support.postgres import TestDatabase
from tests.support.replica import standby

from grandbo.errors import GrandboError
from grandbo.library import Grandbo, TenantMemory
from grandbo.settings import Settings

ENTRIES = 2_000
CALLERS = 64
SERVER_CONNECTIONS = 4


def _database(bench: Bench) -> TestDatabase:
    opened = bench.grandbo._opened
    assert opened.server is not None
    return TestDatabase(opened.server.conninfo("grandbo"), str(opened.database.pool.conninfo))


def _open(bench: Bench, **settings: Any) -> Grandbo:
    return Grandbo.open(
        settings=Settings.load(home=bench.home, embedder="none", **settings), embedder=bench.grandbo.embedder
    )


def pooler(bench: Bench, memory: TenantMemory, rounds: int) -> dict[str, Any]:
    """The same recall through PgBouncer and past it, in turn; then many callers on few server connections."""
    topics = [bench.sentence(9) for _ in range(rounds)]
    for topic in topics:
        bench.grandbo.meaning.of(topic)
    with (
        pooled(_database(bench), server_connections=SERVER_CONNECTIONS) as conninfo,
        _open(bench, database_url=conninfo, pool_size=CALLERS) as behind,
    ):
        through = behind.tenant(memory.tenant_id, principal="human:bench")
        direct, pooled_times = in_turn(
            rounds,
            lambda number: memory.query_topic(topics[number]),
            lambda number: through.query_topic(topics[number]),
        )
        started = time.perf_counter()
        with ThreadPoolExecutor(CALLERS) as threads:
            answered = sum(
                1 for _ in threads.map(through.query_topic, itertools.islice(itertools.cycle(topics), rounds))
            )
        seconds = time.perf_counter() - started
    return {
        "recall_ms": spread(pooled_times),
        "recall_to_direct": ratio(pooled_times, direct),
        "callers": CALLERS,
        "server_connections": SERVER_CONNECTIONS,
        "answered": answered,
        "recalls_per_second": round(answered / seconds, 1),
    }


def replica(bench: Bench, memory: TenantMemory, rounds: int) -> dict[str, Any]:
    """Recall on the replica against recall on the primary, in turn; how soon the replica has what was acknowledged."""
    topics = [bench.sentence(9) for _ in range(rounds)]
    database = _database(bench)
    with standby(database) as made, _open(bench, replica_url=made.service) as served:
        made.wait_for(database)
        there = served.tenant(memory.tenant_id, principal="human:bench")
        direct, on_replica = in_turn(
            rounds, lambda number: memory.query_topic(topics[number]), lambda number: there.query_topic(topics[number])
        )
        late = []
        for number in range(rounds):
            recorded = memory.record_finding(_finding(bench, f"replica-{number}")).acknowledgement
            started = time.perf_counter()
            made.wait_for(database)
            late.append(time.perf_counter() - started)
            assert recorded.position
        counts = served.readers.counts()
    return {
        "recall_ms": spread(on_replica),
        "recall_to_primary": ratio(on_replica, direct),
        "asked": counts,
        "behind_after_an_acknowledgement_ms": spread(late),
    }


def killed(bench: Bench, memory: TenantMemory, kills: int) -> dict[str, Any]:
    """Writers that try again, the server killed under them: what was acknowledged is there; how long nothing was."""
    acknowledged: dict[str, float] = {}
    stop = threading.Event()
    lock = threading.Lock()

    def write(writer: int) -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            name = f"killed-{writer}-{number}"
            finding = _finding(bench, name)
            while not stop.is_set():
                try:
                    memory.record_finding(finding)
                except GrandboError:
                    time.sleep(0.01)
                    continue
                with lock:
                    acknowledged[name] = time.perf_counter()
                break

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    gaps = []
    try:
        for _ in range(kills):
            time.sleep(2.0)
            at = time.perf_counter()
            os.kill(int((bench.home / "pg" / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
            gaps.append(_silence(acknowledged, lock, at))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    with bench.admin() as conn:
        stored = {
            row[0]
            for row in conn.execute(
                "SELECT external_id FROM grandbo.org_memory_entries WHERE tenant_id = %s", (memory.tenant_id,)
            )
        }
    return {
        "kills": kills,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged.keys() - stored),
        "until_the_next_acknowledgement_s": {
            "median": round(statistics.median(gaps), 2),
            "longest": round(max(gaps), 2),
        },
    }


def _silence(acknowledged: dict[str, float], lock: threading.Lock, since: float) -> float:
    """Seconds until something is acknowledged that was begun after the kill."""
    deadline = time.perf_counter() + 120
    while time.perf_counter() < deadline:
        with lock:
            later = [at for at in acknowledged.values() if at > since + 0.05]
        if later:
            return min(later) - since
        time.sleep(0.01)
    raise RuntimeError("nothing was acknowledged within two minutes of the kill")


def _finding(bench: Bench, name: str) -> dict[str, Any]:
    row = bench.finding(0)
    return {
        **{field: row[field] for field in ("title", "summary", "body", "service")},
        "title": f"{row['title'][:120]} {name}",
        "external_id": name,
        "evidence": [{"type": "log", "uri": row["source_url"], "label": ""}],
        "incident": {"source": "bench-scale", "id": name},
    }


def main() -> None:
    """Run everything and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the entries and rounds")
    share = 10 if parser.parse_args().quick else 1
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="grandbo-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        bench = Bench(Path(folder) / "home", ENTRIES // share)
        try:
            memory = bench.fill()
            progress("pooler")
            bench.figures["pooler"] = pooler(bench, memory, 400 // share)
            progress("replica")
            bench.figures["replica"] = replica(bench, memory, 200 // share)
            progress("kills")
            bench.figures["killed"] = killed(bench, memory, max(2, 10 // share))
        finally:
            bench.grandbo.close()
    progress("")
    print(json.dumps(bench.figures, indent=2))


if __name__ == "__main__":
    main()
