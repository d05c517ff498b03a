"""What HTTP and MCP add to the call of the library, and how many recalls a second the service answers."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
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
BARE_PORT = PORT + 1
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
            cold = asyncio.run(_sustained(url, token, topics, seconds))
            asyncio.run(_sustained(url, token, warm, 1))
            return {**overhead, "cold": cold, "warm": asyncio.run(_sustained(url, token, warm, seconds))}


def _topics(sample: list[bytes]) -> Iterator[str]:
    """Sentences of the incidents that nobody has asked yet."""
    words = [word for line in sample for word in json.loads(line)["body"].split() if word.isalpha()]
    for start in itertools.count():
        at = start * 7 % (len(words) - 12)
        yield f"{' '.join(words[at : at + 9])} {start}"[:190]


async def _overhead(memory: TenantMemory, url: str, token: str, topics: list[str], rounds: int) -> dict[str, Any]:
    """
    Library, HTTP and MCP in turn, the topics embedded before; differences of medians in milliseconds.

    HTTP gives the answer, MCP the answer and its block: each is held against the calls of the library that give the
    same. `mcp` is the bare protocol, `mcp_client` the official client, whose own work is in it. `bare_http` and
    `bare_mcp` are answers of the same size that were ready, behind the same framework and SDK: what those take.
    """
    headers = {"Authorization": f"Bearer {token}"}
    bare = http.client.HTTPConnection(url.removeprefix("http://"))
    ready = {
        "recall": json.loads(_post(bare, "/v1/recall", token, {"topic": topics[0]})),
        "tool": json.loads(_post(bare, "/mcp", token, _tool_call(topics[0])))["result"],
    }
    async with (
        _bare(ready) as least,
        httpx2.AsyncClient(headers=headers, timeout=30) as client,
        Client(streamable_http_client(f"{url}/mcp", http_client=client)) as mcp,
    ):

        async def official(topic: str) -> None:
            assert not (await mcp.call_tool("query_org_memory", {"topic": topic})).is_error

        works: dict[str, Callable[[str], Any]] = {
            "library": memory.query_topic,
            "library_block": lambda topic: memory.context_block(memory.query_topic(topic), topic),
            "http": lambda topic: _post(bare, "/v1/recall", token, {"topic": topic}),
            "mcp": lambda topic: _post(bare, "/mcp", token, _tool_call(topic)),
            "mcp_client": official,
            "bare_http": lambda topic: _post(least, "/v1/recall", token, {"topic": topic}),
            "bare_mcp": lambda topic: _post(least, "/mcp/", token, _tool_call(topic)),
        }
        times: dict[str, list[float]] = {name: [] for name in works}
        for number in range(-WARM_TOPICS, rounds):
            for name, work in works.items():
                started = time.perf_counter()
                given = work(topics[number % WARM_TOPICS])
                if asyncio.iscoroutine(given):
                    await given
                if number >= 0:
                    times[name].append(time.perf_counter() - started)
    found: dict[str, Any] = {f"{name}_ms": spread(taken) for name, taken in times.items()}
    for name, of in (("http", "library"), ("mcp", "library_block"), ("mcp_client", "library_block")):
        found[f"{name}_adds_ms"] = round(found[f"{name}_ms"]["median"] - found[f"{of}_ms"]["median"], 2)
    return found


def _tool_call(topic: str) -> dict[str, Any]:
    params = {"name": "query_org_memory", "arguments": {"topic": topic}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


@asynccontextmanager
async def _bare(ready: dict[str, Any]) -> AsyncIterator[http.client.HTTPConnection]:
    """A connection to a service whose answers are these, in a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(ready, file)
        file.flush()
        command = [sys.executable, "-m", "scripts.bench_bare", str(BARE_PORT), file.name]
        process = subprocess.Popen(command, cwd=Path(__file__).parent.parent)
        try:
            await asyncio.to_thread(_wait_for, BARE_PORT)
            yield http.client.HTTPConnection(f"127.0.0.1:{BARE_PORT}")
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port}")


def _post(bare: http.client.HTTPConnection, path: str, token: str, document: dict[str, Any]) -> bytes:
    """One request over a connection that is kept; the client's own work is next to nothing."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    bare.request("POST", path, json.dumps(document), headers)
    answer = bare.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    return body


async def _sustained(url: str, token: str, topics: Iterator[str], seconds: float) -> dict[str, float]:
    """
    Recalls a second that some clients get together, and how long each waits, in milliseconds.

    They share the processors with the service.
    """
    until = time.monotonic() + seconds
    waits: list[float] = []
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as client:

        async def ask() -> None:
            while (started := time.monotonic()) < until:
                (await client.post(f"{url}/v1/recall", json={"topic": next(topics)})).raise_for_status()
                waits.append(time.monotonic() - started)

        began = time.monotonic()
        await asyncio.gather(*(ask() for _ in range(CLIENTS)))
        rate = len(waits) / (time.monotonic() - began)
    cuts = statistics.quantiles(waits, n=20)
    return {
        "per_second": round(rate, 1),
        "p50_ms": round(statistics.median(waits) * 1000, 1),
        "p95_ms": round(cuts[-1] * 1000, 1),
    }


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
