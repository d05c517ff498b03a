"""
How long a tool waits for its 202 while nothing is mapped: the mapper stands before a lock, the inbox fills.

By one sender, one delivery after the other; by eight, at fifty a second between them; and by eight as fast as they can,
which says how many a second there is room for: those times are of a service that is full.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from scripts.bench_doors import up
from scripts.bench_timing import progress

from grandbo.hooks import signatures
from grandbo.library import Grandbo

# Name, senders, deliveries a second between them.
WAYS: tuple[tuple[str, int, int | None], ...] = (("one", 1, None), ("eight_at_50", 8, 50), ("eight_unpaced", 8, None))
# What a tool sends of an incident: a few kilobytes, most of which is said again with each delivery.
PADDING = "The gateway refused all logins. " * 100


def ingress(grandbo: Grandbo, admin: psycopg.Connection[Any], home: Path, rounds: int) -> dict[str, Any]:
    """Deliveries to `grandbo up`, each signed and new, by one sender and by eight; milliseconds."""
    grandbo.create_tenant("bench-ingress")
    memory = grandbo.tenant("bench-ingress", principal="human:bench")
    hook, secret = memory.create_hook("grandbo", "bench", direct=True)
    unlimited = {"GRANDBO_HOOK_RATE_LIMIT": "off", "GRANDBO_RATE_LIMIT": "off"}
    environment = {**os.environ, **unlimited, "GRANDBO_HOME": str(home), "GRANDBO_EMBEDDER": "none"}
    found: dict[str, Any] = {}
    with up(environment) as (_, url), admin.transaction():
        # Each claimed delivery waits here for its statement's time and is then tried again: a mapper that is stalled.
        admin.execute("LOCK TABLE grandbo.org_memory_incidents IN ACCESS EXCLUSIVE MODE")
        for name, senders, rate in WAYS:
            progress(f"deliveries: {name}")
            started = time.perf_counter()
            times = asyncio.run(_deliver(url + hook.path, secret, name, senders, rate, rounds))
            seconds = time.perf_counter() - started
            found[name] = {
                "median_ms": round(statistics.median(times) * 1000, 2),
                "p99_ms": round(statistics.quantiles(times, n=100)[98] * 1000, 2),
                "worst_ms": round(max(times) * 1000, 2),
                "per_second": round(rounds / seconds),
            }
        found["mapped_meanwhile"] = sum(item["state"] == "mapped" for item in memory.inbox(limit=500)["deliveries"])
    return found


async def _deliver(url: str, secret: str, way: str, senders: int, rate: int | None, rounds: int) -> list[float]:
    """Each sender sends its share on a connection of its own; the first tenth is not counted."""
    share = rounds // senders

    async def sender(number: int) -> list[float]:
        times = []
        async with httpx2.AsyncClient(timeout=30) as http:
            begun = time.perf_counter()
            for turn in range(share):
                if rate is not None:
                    await asyncio.sleep(max(begun + (turn * senders + number) / rate - time.perf_counter(), 0))
                identity = f"{way}-{number}-{turn}"
                finding = {"title": "Down", "body": PADDING}
                body = json.dumps({"event": "resolved", "incident_id": identity, "finding": finding}).encode()
                headers = signatures.sign("standard-webhooks", body, identity, secret, datetime.now(UTC))
                started = time.perf_counter()
                answer = await http.post(url, content=body, headers=headers)
                times.append(time.perf_counter() - started)
                assert answer.status_code == 202, answer.text
        return times[share // 10 :]

    return [item for times in await asyncio.gather(*(sender(number) for number in range(senders))) for item in times]
