"""
Recall among many tenants of one size: everybody holds all of them in one store, and keeps them apart as it is meant to.

The first tenant is made as ever. Each further one has its texts under titles of its own, and the vectors that are drawn
for them. Grandbo's further ones are copies of the first one's projected rows, with those titles and vectors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from scripts.bench_timing import progress
from scripts.peers.comparing import MEMORIES, Comparison, Figures, asked_in_turn, how_exact
from scripts.peers.protocol import Text, save_texts
from scripts.peers.running import Child, Ground

ENTRIES = 5_000
ASKED = 8
# Who takes longest begins: two are filled at a time.
FILLED = ("memgres", "llamaindex", "langchain", "langgraph", "mem0", "pghybrid", "grandbo")


def crowd(
    comparison: Comparison, ground: Ground, tenants: int, entries: int, names: Sequence[str] = MEMORIES
) -> Figures:
    """Recall of topics of some tenants in turn, and how long it took to fill everybody."""
    ground.expect_much()
    made = comparison.made("first", entries, first=20_000_000)
    files = [_saved(comparison, made, number, tenants) for number in range(tenants)]
    of_first = np.stack([entry.vector for entry in made])
    children = {name: comparison.started(ground, name, of_first.shape[1], "tenants", apart=True) for name in names}
    most = min(ASKED, comparison.plan.topics)
    asked = sorted({number * tenants // most for number in range(most)})
    filled = _filled(children, files, asked)
    ground.settle()
    topics, warm = _topics(comparison, [tenant_of(number) for number in asked])
    save_texts(comparison.folder / "crowd-topics", topics + warm)
    systems = asked_in_turn(
        children, comparison.folder / "crowd-topics", len(topics), len(warm), f"{tenants} tenants of {entries:,}"
    )
    first = [replace(topic, tenant=tenant_of(0)) for topic in topics]
    save_texts(comparison.folder / "first-topics", first)
    for name, found in how_exact(children, comparison.folder / "first-topics", first, of_first).items():
        systems[name] |= found
    return {
        "tenants": tenants,
        "entries": entries,
        "asked": len(asked),
        "topics": len(topics),
        "gigabytes": ground.gigabytes(),
        "filled_s": filled,
        "systems": systems,
    }


def tenant_of(number: int) -> str:
    """What a tenant is called."""
    return f"tenant-{number:04}"


def _saved(comparison: Comparison, first: list[Text], number: int, tenants: int) -> Path:
    """The file of a tenant's entries."""
    path, tenant = comparison.folder / tenant_of(number), tenant_of(number)
    # Numbers go on from tenant to tenant, so that an entry of another one is not taken for one's own.
    named = [
        replace(each, id=f"{tenant}-{place}", tenant=tenant) for place, each in enumerate(first, number * len(first))
    ]
    save_texts(path, comparison.drawn([renamed(each, number) for each in named]) if number else named)
    progress(f"{number + 1} of {tenants} tenants drawn")
    return path


def renamed(entry: Text, number: int) -> Text:
    """The same of another tenant: its title, which its text begins with, has a number."""
    title = f"{entry.title} {number}"
    return replace(entry, text=title + entry.text.removeprefix(entry.title), fields={"title": title})


def _filled(children: dict[str, Child], files: list[Path], asked: list[int]) -> dict[str, float]:
    """Seconds of each, two at a time; the floor copies the tenants that are asked, from Grandbo."""
    first, *others = map(str, files)

    def fill(name: str) -> float:
        started = time.perf_counter()
        children[name]("fill_tenants", first=first, others=others)
        progress(f"{len(files)} tenants: {name} is filled")
        return round(time.perf_counter() - started, 1)

    names = [name for name in FILLED if name in children]
    with ThreadPoolExecutor(2) as threads:
        filled = dict(zip(names, threads.map(fill, names), strict=True))
    if "floor" in children:
        for number in asked:
            children["floor"]("fill", path=str(files[number]), start=0, stop=None)
    return filled


def _topics(comparison: Comparison, asked: list[str]) -> tuple[list[Text], list[Text]]:
    """Topics of the tenants in turn, and for each tenant one more to warm up with."""
    count = comparison.plan.topics
    topics, spare = comparison.topics[:count], comparison.topics[count:]
    timed = [replace(topic, tenant=asked[number % len(asked)]) for number, topic in enumerate(topics)]
    return timed, [replace(spare[number % len(spare)], tenant=tenant) for number, tenant in enumerate(asked)]
