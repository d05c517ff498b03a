#!/usr/bin/env python3
"""
How long each page takes at ten thousand entries: scripts/bench_pages.py [ENTRIES].

Over HTTP to a server of its own on this machine, with vectors of hashed words, so that no model's time is in it. A page
is to answer within 100 ms, but for those that recall, which take recall's time.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.factories import make_finding  # noqa: E402
from tests.support.http import ServedAt, make_token, running_http  # noqa: E402
from tests.support.pages import furnish  # noqa: E402
from tests.support.postgres import running_server  # noqa: E402
from tests.support.providers import words_embedder  # noqa: E402

from grandbo.library import Grandbo, TenantMemory  # noqa: E402

ENTRIES = 10_000
ROUNDS = 15
WITHIN_MS = 100
RECALLING = ("/search?", "&topic=", "?topic=")


def main() -> int:
    """Print a line for each page, slowest first; give 1 where one that does not recall is too slow."""
    entries = int(sys.argv[1]) if sys.argv[1:] else ENTRIES
    with running_server() as server, tempfile.TemporaryDirectory() as home:
        settings = server.at("grandbo").settings(home=home, rate_limit="off")
        with Grandbo.open(settings=settings, embedder=words_embedder()) as grandbo:
            grandbo.create_tenant("acme")
            memory = grandbo.tenant("acme", principal="human:jo")
            fill(memory, entries)
            addresses = furnish(grandbo, memory).addresses
            token = make_token(memory, "admin", kind="human")
            with running_http(grandbo) as site:
                taken = [(measure(site, address, token), address) for address in addresses]
    slow = 0
    print(f"{entries} entries; milliseconds, median and worst of {ROUNDS}")
    for (median, worst), address in sorted(taken, reverse=True):
        recalls = any(part in address for part in RECALLING) or address.startswith("/review/")
        verdict = "recalls" if recalls else "ok" if median <= WITHIN_MS else "TOO SLOW"
        slow += verdict == "TOO SLOW"
        print(f"{median:8.1f} {worst:8.1f}  {verdict:8}  {address}")
    return 1 if slow else 0


def fill(memory: TenantMemory, entries: int) -> None:
    """That many findings, of different services and months, with vectors."""
    print(f"recording {entries} entries", file=sys.stderr)
    lines = [
        json.dumps(
            make_finding(service=f"service-{n % 40}", occurred_at=f"20{20 + n % 6}-{1 + n % 12:02}-02T03:04:05Z")
        ).encode()
        for n in range(entries)
    ]
    memory.import_lines(lines, "finding")
    print("embedding them", file=sys.stderr)
    memory.embed()


def measure(site: ServedAt, address: str, token: str) -> tuple[float, float]:
    """Median and worst of some rounds, after one that is not counted."""
    taken = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        answer = site.send("GET", address, token=token)
        taken.append((time.perf_counter() - began) * 1_000)
        assert answer.status in (200, 404, 422), (address, answer.status)
    return statistics.median(taken[1:]), max(taken[1:])


if __name__ == "__main__":
    sys.exit(main())
