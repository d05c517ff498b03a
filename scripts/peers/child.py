"""
One peer in a process of its own: it is asked in lines of JSON, and times itself around its own calls.

So each runs in the environment that its pins want, and no pipe is in any number.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scripts.peers.protocol import Known, Text, Where, load_texts

# By name: the module, its class, and the packages whose versions are told.
PEERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "grandbo": ("grandbo_memory", "GrandboMemory", ("grandbo",)),
    "floor": ("floor_sql", "FloorSQL", ()),
    "langgraph": ("langgraph_store", "LangGraphStore", ("langgraph-checkpoint-postgres",)),
    "langchain": ("langchain_hybrid", "LangChainHybrid", ("langchain-postgres",)),
    "llamaindex": ("llamaindex_hybrid", "LlamaIndexHybrid", ("llama-index-vector-stores-postgres",)),
    "llamaindex-fused": ("llamaindex_hybrid", "LlamaIndexFused", ("llama-index-vector-stores-postgres",)),
    "pghybrid": ("pghybrid_search", "PgHybridSearch", ("pghybrid",)),
    "mem0": ("mem0_memory", "Mem0Memory", ("mem0ai",)),
    "memgres": ("memgres_memory", "MemgresMemory", ("memgres",)),
    "eventsourcing": ("eventsourcing_log", "EventSourcingLog", ("eventsourcing",)),
}
OURS = ("grandbo", "floor")


class Session:
    """A peer that is being measured."""

    def __init__(self, name: str) -> None:
        module, cls, self._packages = PEERS[name]
        self._make = getattr(importlib.import_module(f"scripts.peers.{module}"), cls)
        self._known = Known()
        self._peer: Any = None

    def open(self, where: dict[str, Any]) -> dict[str, Any]:
        """Make or open its store."""
        self._peer = self._make(Where(**{**where, "folder": Path(where["folder"])}), self._known)
        return {"versions": {name: version(name) for name in self._packages}}

    def fill(self, path: str, start: int, stop: int | None, way: str = "fill") -> dict[str, Any]:
        """Store the entries of a file from `start` up to `stop`."""
        entries = self._loaded(path, start, stop)
        started = time.perf_counter()
        getattr(self._peer, way)(entries)
        self._known.forget(entries)
        return {"seconds": time.perf_counter() - started}

    def fill_tenants(self, first: str, others: list[str]) -> dict[str, Any]:
        """Store the entries of files, one a tenant; the others as copies of the first where the peer can do so."""
        way = "multiply" if hasattr(self._peer, "multiply") else "fill"
        started = time.perf_counter()
        with getattr(self._peer, "filling", nullcontext)():
            self.fill(first, 0, None)
            for path in others:
                self.fill(path, 0, None, way)
        return {"seconds": time.perf_counter() - started}

    def recall(self, path: str, start: int, stop: int, k: int, way: str = "recall") -> dict[str, Any]:
        """Ask topics one after another; what each took and what each gave."""
        ask = getattr(self._peer, way)
        seconds, ids = [], []
        for topic in self._loaded(path, start, stop):
            started = time.perf_counter()
            found = ask(topic, k)
            seconds.append(time.perf_counter() - started)
            ids.append(found[:k])
        return {"seconds": seconds, "ids": ids}

    def write(self, path: str, start: int, stop: int, writers: int, way: str = "write") -> dict[str, Any]:
        """Store entries one by one, by so many threads; what each took, and what all took together."""
        entries, store = self._loaded(path, start, stop), getattr(self._peer, way)
        taken: list[list[float]] = [[] for _ in range(writers)]
        failures: list[BaseException] = []
        gate = threading.Barrier(writers + 1)

        def work(number: int) -> None:
            gate.wait()
            try:
                for entry in entries[number::writers]:
                    started = time.perf_counter()
                    store(entry)
                    taken[number].append(time.perf_counter() - started)
            except BaseException as error:  # noqa: BLE001  # told to the caller below
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
        for thread in threads:
            thread.start()
        gate.wait()
        started = time.perf_counter()
        for thread in threads:
            thread.join()
        together = time.perf_counter() - started
        if failures:
            raise failures[0]
        return {"seconds": [each for mine in taken for each in mine], "together": together}

    def batch(self, path: str, start: int, stop: int) -> dict[str, Any]:
        """Append entries in batches."""
        entries = self._loaded(path, start, stop)
        started = time.perf_counter()
        events = self._peer.append_many(entries)
        return {"events": events, "seconds": time.perf_counter() - started}

    def time_of(self, way: str) -> dict[str, Any]:
        """One call that goes through a whole log, and the events that it saw."""
        started = time.perf_counter()
        events = getattr(self._peer, way)()
        return {"events": events, "seconds": time.perf_counter() - started}

    def close(self) -> dict[str, Any]:
        """Let go of its connections."""
        self._peer.close()
        return {}

    def _loaded(self, path: str, start: int, stop: int | None) -> list[Text]:
        texts = load_texts(Path(path), start, stop)
        self._known.add(texts)
        return texts


def main() -> None:
    """Answer until the input ends. What a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session(sys.argv[1])
    for line in sys.stdin:
        ask = json.loads(line)
        try:
            answer = getattr(session, ask.pop("do"))(**ask)
        except Exception as error:  # noqa: BLE001  # whatever a peer raises is told, and ends the run there
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
