"""
Speed of the governed paths against hand-written floors on the same server, in one run.

Absolute times belong to the machine; the ratios are what is promised. Every pair is measured in turn, A B A B, so that
a machine that grows slower grows slower for both.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
import structlog
from pgvector.psycopg import register_vector
from psycopg import sql
from scripts.bench_doors import doors, up
from scripts.bench_floor import FLOOR_QUERY, make_floor
from scripts.bench_ingress import ingress
from scripts.bench_past import past, receipts
from scripts.bench_peers import SIZES, found, peers
from scripts.bench_people import people
from scripts.bench_quick import quick
from scripts.bench_sizes import found_enough, sizes
from scripts.bench_timing import in_turn, progress, ratio, spread

from grandbo.embedding import RECIPE, Embedder, Kind, Stamp, build_embedder
from grandbo.library import Grandbo, TenantMemory
from grandbo.settings import Settings
from grandbo.text import terms

ENTRIES = 5_000
OTHER_TENANTS = 19
OTHER_ENTRIES = 200


def _prose() -> list[str]:
    """Words of the shipped sample incidents, in order: real frequencies, real rarities."""
    text = resources.files("grandbo").joinpath("data/sample-incidents.jsonl").read_text()
    return [word for line in text.splitlines() for word in json.loads(line)["body"].split() if word.isascii()]


WORDS = _prose()


class DenseWords:
    """1,024 dense dimensions from a text's words: random directions, fixed by the word, added and normalised."""

    stamp = Stamp("bench", "dense-words", "1", 1024, RECIPE, 9_000)
    max_texts = 64

    def __init__(self) -> None:
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str], kind: Kind) -> npt.NDArray[np.float32]:
        """One row a text."""
        rows = np.stack([sum((self._direction(term) for term in terms(text)), np.full(1024, 1e-3)) for text in texts])
        normal: npt.NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return normal

    def _direction(self, term: str) -> npt.NDArray[np.float32]:
        if term not in self._known:
            seed = int.from_bytes(term.encode()[:8].ljust(8, b"."), "little")
            self._known[term] = np.random.default_rng(seed).standard_normal(1024).astype(np.float32)
        return self._known[term]


class Texts:
    """Made-up findings and topics of real words; the same in every run."""

    def __init__(self) -> None:
        self.rng = random.Random(20260102)

    def sentence(self, count: int) -> str:
        """Some words of prose, from anywhere in it."""
        start = self.rng.randrange(len(WORDS) - count)
        return " ".join(WORDS[start : start + count])[:190]

    def finding(self, number: int) -> dict[str, Any]:
        """A finding of about 62 words."""
        return {
            "title": self.sentence(8),
            "summary": self.sentence(22),
            "body": self.sentence(30),
            "service": self.rng.choice(("checkout", "billing", "search")),
            "source_url": f"https://example.com/{number}",
            "id": str(number),
            "source": "bench",
        }


class Bench(Texts):
    """One server, the tenants on it, and the figures so far."""

    def __init__(self, home: Path, entries: int) -> None:
        super().__init__()
        self.home = home
        self.entries = entries
        self.figures: dict[str, Any] = {"entries": entries, "tenants": OTHER_TENANTS + 1}
        settings = Settings.load(home=home, embedder="none")
        self.grandbo = Grandbo.open(settings=settings, embedder=Embedder(DenseWords()))

    def fill(self) -> TenantMemory:
        """Twenty tenants, one of them large; all embedded; statistics and visibility maps fresh."""
        memories = []
        for tenant in range(OTHER_TENANTS + 1):
            self.grandbo.create_tenant(f"bench-{tenant}")
            memory = self.grandbo.tenant(f"bench-{tenant}", principal="human:bench")
            count = self.entries if tenant == 0 else OTHER_ENTRIES
            lines = [json.dumps(self.finding(number)).encode() for number in range(count)]
            memory.import_lines(lines, "finding")
            memory.embed()
            memories.append(memory)
            progress(f"filled tenant {tenant + 1} of {OTHER_TENANTS + 1}")
        with self.admin() as conn:
            conn.execute("VACUUM ANALYZE")
        return memories[0]

    def admin(self) -> psycopg.Connection[Any]:
        """A superuser's connection to the same server."""
        server = self.grandbo._opened.server
        assert server is not None
        conn = psycopg.connect(server.conninfo("grandbo"), autocommit=True)
        conn.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
        register_vector(conn)
        return conn

    # -- recall --------------------------------------------------------------------------------------------------------

    def recall(self, memory: TenantMemory, rounds: int) -> None:
        """Governed recall against one hand-written statement over the same rows, embedding excluded from both."""
        topics = [self.sentence(9) for _ in range(rounds)]
        for topic in topics:
            self.grandbo.meaning.of(topic)
        with self.admin() as conn:
            make_floor(conn, memory.tenant_id)

            def floor(number: int) -> None:
                topic = topics[number]
                vector = self.grandbo.meaning.of(topic).vector
                params = {"terms": list(dict.fromkeys(terms(topic))), "vector": vector, "k": 5}
                conn.execute(FLOOR_QUERY, params, prepare=True).fetchall()

            governed, bare = in_turn(rounds, lambda number: memory.query_topic(topics[number]), floor)
        self.grandbo.receipts.flush()
        self.figures["recall_ms"] = spread(governed)
        self.figures["recall_floor_ms"] = spread(bare)
        self.figures["recall_ratio"] = ratio(governed, bare)

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(self, rounds: int) -> None:
        """An acknowledged write against a bare single-row INSERT and commit."""
        self.grandbo.create_tenant("bench-write")
        memory = self.grandbo.tenant("bench-write", principal="hook:bench")
        findings = []
        for number in range(rounds + 20):
            row = self.finding(number)
            findings.append(
                {
                    **{name: row[name] for name in ("title", "summary", "body", "service")},
                    "evidence": [{"type": "log", "uri": row["source_url"], "label": ""}],
                    "incident": {"source": "bench-write", "id": row["id"]},
                }
            )
        for finding in findings[rounds:]:
            memory.record_finding(finding)
        with self.admin() as conn:
            conn.execute("CREATE TABLE bare (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), document jsonb NOT NULL)")
            documents = [json.dumps(finding) for finding in findings]

            def bare(number: int) -> None:
                conn.execute("INSERT INTO bare (document) VALUES (%s)", (documents[number],), prepare=True)

            half = rounds // 2
            acknowledged, floor = in_turn(half, lambda number: memory.record_finding(findings[number]), bare)
            # The same on a disk whose flush takes 2 ms, as most do: the server waits that long before each commit.
            self._set(conn, "commit_delay", "2000")
            self._set(conn, "commit_siblings", "0")
            slow, slow_floor = in_turn(half, lambda number: memory.record_finding(findings[half + number]), bare)
            self._set(conn, "commit_delay", None)
            self._set(conn, "commit_siblings", None)
        self.figures["write_ms"] = spread(acknowledged)
        self.figures["write_floor_ms"] = spread(floor)
        self.figures["write_ratio"] = ratio(acknowledged, floor)
        self.figures["write_ratio_where_a_flush_takes_2_ms"] = ratio(slow, slow_floor)

    @staticmethod
    def _set(conn: psycopg.Connection[Any], name: str, value: str | None) -> None:
        change = sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
        conn.execute(sql.SQL("ALTER SYSTEM ") + (change if value else sql.SQL("RESET {}").format(sql.Identifier(name))))
        conn.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)

    # -- replay --------------------------------------------------------------------------------------------------------

    def replay(self, memory: TenantMemory) -> None:
        """Events a second: verify, rebuild, rebuild check."""
        events = memory.verify().events
        for name, work in (
            ("verify", memory.verify),
            ("rebuild", memory.rebuild),
            ("rebuild_check", memory.check_rebuild),
        ):
            started = time.perf_counter()
            work()
            self.figures[f"{name}_events_per_second"] = round(events / (time.perf_counter() - started))
        self.figures["replayed_events"] = events

    # -- real incidents, real model ------------------------------------------------------------------------------------

    def real(self, path: Path) -> None:
        """Import and embed real incidents with the local model."""
        settings = Settings.load(home=self.home, embedder="local", embedder_threads=min(2, os.cpu_count() or 1))
        with Grandbo.open(settings=settings, embedder=build_embedder(settings)) as grandbo:
            grandbo.create_tenant("bench-real")
            memory = grandbo.tenant("bench-real", principal="human:bench")
            started = time.perf_counter()
            with path.open("rb") as lines:
                report = memory.import_lines(lines, "finding")
            imported = time.perf_counter() - started
            counts = memory.embed(progress=lambda counts: progress(f"{counts.pending} to embed"))
            embedded = time.perf_counter() - started - imported
        self.figures["real_import"] = {
            **{name: value for name, value in report.as_dict().items() if name != "errors"},
            "seconds": round(imported, 1),
            "per_second": round(report.read / imported),
            "embedded": counts.embedded,
            "embed_seconds": round(embedded, 1),
            "embedded_per_second": round(counts.embedded / embedded, 1),
        }

    def idle_memory(self) -> None:
        """Resident memory of `grandbo up` with the local model loaded, and of the server's processes."""
        environment = {**os.environ, "GRANDBO_HOME": str(self.home), "GRANDBO_EMBEDDER": "local"}
        token = self.grandbo.tenant("bench-1", principal="human:bench").create_key("bench", "agent", ("investigator",))[
            1
        ]
        with up(environment) as (pid, url):
            command = ["curl", "-sf", "-X", "POST", f"{url}/v1/recall", "-H", f"Authorization: Bearer {token}"]
            body = ["-H", "Content-Type: application/json", "-d", json.dumps({"topic": self.sentence(9)})]
            subprocess.run([*command, *body], check=True, capture_output=True)
            status = Path(f"/proc/{pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        self.figures["idle_up_rss_mb"] = round(int(line.split()[1]) / 1024)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a few ratios only, status 1 where one is beyond its limit; with --sizes or --peers a tenth of everything",
    )
    parser.add_argument("--tolerance", type=float, default=1.0, help="of --quick: times the limits")
    parser.add_argument("--incidents", type=Path, help="JSON Lines of incidents, imported and embedded for real")
    parser.add_argument("--sizes", action="store_true", help="measure how everything grows with size, and nothing else")
    parser.add_argument("--tenants", type=int, default=20, help="of --sizes: tenants of 5,000 entries")
    parser.add_argument("--logged", type=int, default=20_000, help="of --sizes: largest tenant made through the log")
    parser.add_argument("--largest", type=int, default=100_000, help="of --sizes: entries of the largest tenant")
    parser.add_argument(
        "--alone", choices=("largest", "tenants"), help="of --sizes: the recall of the largest, or of the many, alone"
    )
    parser.add_argument(
        "--room", type=float, default=40, metavar="GB", help="of --sizes: what is multiplied may take so much at most"
    )
    parser.add_argument("--peers", action="store_true", help="measure other systems beside Grandbo, and nothing else")
    parser.add_argument(
        "--peers-entries",
        type=lambda given: [int(size) for size in given.split(",") if size],
        default=list(SIZES),
        metavar="N,N,…",
        help="of --peers: the sizes of the one tenant; empty for none of it",
    )
    parser.add_argument(
        "--peers-recall", action="store_true", help="of --peers: recall alone, neither writes nor the log"
    )
    parser.add_argument(
        "--peers-tenants",
        type=int,
        default=0,
        metavar="N",
        help="of --peers: also recall among N tenants of 5,000, 0.3 GB of disk each",
    )
    parser.add_argument(
        "--peers-judged",
        nargs="+",
        action="append",
        metavar="FILE",
        help="who finds more: corpus, topics and judgements of one set, and the field of a topic if not `text`; again"
        " for each set",
    )
    parser.add_argument("--peers-vectors", type=Path, help="of --peers-judged: a file that keeps the model's vectors")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if any(len(files) not in (3, 4) for files in arguments.peers_judged or ()):
        parser.error("--peers-judged takes CORPUS TOPICS QRELS [FIELD]")
    return arguments


def main() -> None:
    """Measure what is asked for, and print the figures."""
    arguments = _arguments()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    with tempfile.TemporaryDirectory(prefix="grandbo-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        figures, status = _measured(folder, arguments)
    progress("")
    print(json.dumps(figures) if arguments.json else json.dumps(figures, indent=2))
    sys.exit(status)


def _measured(folder: Path, arguments: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """What was asked for, and the status to end with."""
    share = 10 if arguments.quick else 1
    if arguments.peers or arguments.peers_judged:
        return _peers(folder, arguments, share), 0
    bench = Bench(folder / "home", ENTRIES // share)
    if arguments.sizes:
        bench.grandbo.close()
        how = {name: getattr(arguments, name) for name in ("tenants", "logged", "largest", "alone", "room")}
        figures = sizes(bench.home, bench.finding, bench.sentence, incidents=arguments.incidents, share=share, **how)
        return figures, 0 if found_enough(figures) else 1
    try:
        if arguments.quick:
            figures = quick(bench, arguments.tolerance)
            return figures, 1 if figures["beyond"] else 0
        return _everything(bench, arguments.incidents), 0
    finally:
        bench.grandbo.close()


def _everything(bench: Bench, incidents: Path | None) -> dict[str, Any]:
    """The figures of docs/benchmarks.md."""
    memory = bench.fill()
    bench.recall(memory, 200)
    bench.write(300)
    bench.replay(memory)
    bench.figures["receipts"] = receipts(bench.grandbo, memory, bench.sentence, 400)
    bench.figures["past"] = past(bench.grandbo, bench.finding, bench.sentence, 20_000, 100)
    bench.figures["people"] = people(bench.grandbo, bench.sentence, 1_000, 200)
    bench.idle_memory()
    with bench.admin() as conn:
        bench.figures["ingress"] = ingress(bench.grandbo, conn, bench.home, 2_000)
    bench.figures["doors"] = doors(bench.home, 200, 20)
    if incidents:
        bench.real(incidents)
    return bench.figures


def _peers(folder: Path, arguments: argparse.Namespace, share: int) -> dict[str, Any]:
    """The figures of docs/peers.md."""
    figures: dict[str, Any] = {}
    if arguments.peers:
        texts = Texts()
        figures |= peers(
            folder / "speed",
            texts.finding,
            texts.sentence,
            sizes=arguments.peers_entries,
            tenants=arguments.peers_tenants,
            writing=not arguments.peers_recall,
            share=share,
            incidents=arguments.incidents,
        )
    if arguments.peers_judged:
        figures |= found(folder / "finding", arguments.peers_judged, vectors=arguments.peers_vectors)
    return figures


if __name__ == "__main__":
    main()
