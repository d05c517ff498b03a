"""What HTTP and MCP add to the call of the library, and how many recalls a second the service answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from scripts.bench_timing import progress, spread

from grandbo.library import Grandbo, TenantMemory
from grandbo.settings import Settings

PORT = 18420
CLIENTS = 8
WARM_TOPICS = 20


def doors(home: Path, rounds: int, seconds: int) -> dict[str, Any]:
    """The sample incidents, the local model, one `grandbo up`, and the same topics through every door in turn."""
    settings = Settings.load(home=home, embedder="local")
    with Grandbo.open(settings=settings) as grandbo:
        grandbo.create_tenant("bench-doors")
        memory = grandbo.tenant("bench-doors", principal="human:bench")
        sample = resources.files("grandbo").joinpath("data/sample-incidents.jsonl").read_bytes().splitlines()
        memory.import_lines(sample, "finding")
        progress("embedding the sample")
        memory.embed()
        token = memory.create_key("bench", "agent", ("investigator",))[1]
        topics = _topics(sample)
        unlimited = {"GRANDBO_RATE_LIMIT": "off", "GRANDBO_AUTH_FAILURE_LIMIT": "off"}
        environment = {**os.environ, **unlimited, "GRANDBO_HOME": str(home), "GRANDBO_EMBEDDER": "local"}
        with up(environment) as (_, url):
            overhead = asyncio.run(_overhead(memory, url, token, [next(topics) for _ in range(WARM_TOPICS)], rounds))
            warm = itertools.cycle([next(topics) for _ in range(WARM_TOPICS)])
            cold_rate = asyncio.run(_sustained(url, token, topics, seconds))
            asyncio.run(_sustained(url, token, warm, 1))
            warm_rate = asyncio.run(_sustained(url, token, warm, seconds))
    return {**overhead, "recalls_per_second_cold": cold_rate, "recalls_per_second_warm": warm_rate}


def _topics(sample: list[bytes]) -> Iterator[str]:
    """Sentences of the incidents that nobody has asked yet."""
    words = [word for line in sample for word in json.loads(line)["body"].split() if word.isalpha()]
    for start in itertools.count():
        at = start * 7 % (len(words) - 12)
        yield f"{' '.join(words[at : at + 9])} {start}"[:190]


async def _overhead(memory: TenantMemory, url: str, token: str, topics: list[str], rounds: int) -> dict[str, Any]:
    """Library, HTTP and MCP in turn, the topics embedded before; a difference of medians in milliseconds."""
    headers = {"Authorization": f"Bearer {token}"}
    times: dict[str, list[float]] = {"library": [], "http": [], "mcp": []}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as mcp,
    ):
        for number in range(-WARM_TOPICS, rounds):
            topic = topics[number % WARM_TOPICS]
            started = time.perf_counter()
            memory.query_topic(topic)
            between = time.perf_counter()
            (await http.post(f"{url}/v1/recall", json={"topic": topic})).raise_for_status()
            later = time.perf_counter()
            result = await mcp.call_tool("query_org_memory", {"topic": topic})
            ended = time.perf_counter()
            assert not result.is_error
            if number >= 0:
                for name, taken in zip(times, (between - started, later - between, ended - later), strict=True):
                    times[name].append(taken)
    found: dict[str, Any] = {f"{name}_ms": spread(taken) for name, taken in times.items()}
    for name in ("http", "mcp"):
        found[f"{name}_adds_ms"] = round(found[f"{name}_ms"]["median"] - found["library_ms"]["median"], 2)
    return found


async def _sustained(url: str, token: str, topics: Iterator[str], seconds: float) -> float:
    """Recalls a second that some clients get together; they share the processors with the service."""
    until = time.monotonic() + seconds
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:

        async def ask() -> int:
            answered = 0
            while time.monotonic() < until:
                (await http.post(f"{url}/v1/recall", json={"topic": next(topics)})).raise_for_status()
                answered += 1
            return answered

        started = time.monotonic()
        answered = sum(await asyncio.gather(*(ask() for _ in range(CLIENTS))))
    return round(answered / (time.monotonic() - started), 1)


@contextmanager
def up(environment: dict[str, str]) -> Iterator[tuple[int, str]]:
    """A running `grandbo up` on a free port."""
    command = [str(Path(sys.executable).parent / "grandbo"), "up"]
    process = subprocess.Popen(
        command,
        env={**environment, "GRANDBO_HTTP_PORT": str(PORT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{PORT}"
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(["curl", "-sf", f"{url}/readyz"], capture_output=True, check=False).returncode:
            if time.monotonic() > deadline or process.poll() is not None:
                raise RuntimeError("grandbo up did not come up")
            time.sleep(0.2)
        yield process.pid, url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
