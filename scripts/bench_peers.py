"""
Grandbo against the systems that people would pick instead: the same server, texts, vectors and k.

`scripts/setup peers` installs them apart; `scripts/tell_peers.py` makes a page of the figures.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scripts.bench_sizes import MixedIncidents
from scripts.bench_timing import progress
from scripts.peers.comparing import RUNS, Comparison, K, Plan
from scripts.peers.crowd import ENTRIES, crowd
from scripts.peers.judging import FINDERS, finding
from scripts.peers.protocol import LIST
from scripts.peers.running import ROOT, Ground

SIZES = (500, 5_000, 20_000)


def peers(
    folder: Path,
    finding: Callable[[int], dict[str, Any]],
    sentence: Callable[[int], str],
    *,
    sizes: Sequence[int] = SIZES,
    tenants: int = 0,
    writing: bool = True,
    share: int = 1,
    incidents: Path | None = None,
) -> dict[str, Any]:
    """
    Recall, writes and the log, of everybody.

    Args:
        sizes: entries of the one tenant; a store grows from one to the next. Without any only tenants are measured.
        tenants: how many of 5,000 entries, on a server of their own.
        writing: whether writes and the log are measured too.
        share: of the sizes, topics and writes only one in so many.
        incidents: whose vectors are mixed; the shipped samples otherwise.
    """
    install()
    folder.mkdir(mode=0o755)
    plan = Plan.of(sizes, share, writing=writing)
    drawn = MixedIncidents(incidents)
    comparison = Comparison(folder, plan, finding, sentence, lambda texts: drawn.embed(texts, "document"))
    figures: dict[str, Any] = {"k": K, "runs": RUNS, "listed": LIST, "real_vectors": len(drawn._real)}
    figures |= {"python": platform.python_version(), "processors": os.cpu_count()}
    if sizes:
        with Ground(folder / "home") as ground:
            figures["server"] = ground.version()
            figures |= comparison.memories(ground)
            if plan.writes:
                figures |= {"log": comparison.logs(ground), "writes": plan.writes}
    if tenants:
        with Ground(folder / "crowded") as ground:
            figures["server"] = ground.version()
            figures["crowd"] = crowd(comparison, ground, tenants, ENTRIES // share)
    return figures | {"versions": comparison.versions, "topics": plan.topics}


def found(
    folder: Path, judged: Sequence[Sequence[str]], *, vectors: Path | None = None, names: Sequence[str] = FINDERS
) -> dict[str, Any]:
    """
    Who finds more on judged sets.

    Args:
        judged: of each set the files of corpus, topics and judgements, and the field that holds a topic.
        vectors: a file that keeps what the model made, for the next run.
    """
    install()
    folder.mkdir(mode=0o755)
    return {"finding": finding(folder, judged, vectors, names)}


def install() -> None:
    """Their environment, made where it is not there yet; raises `CalledProcessError` where it cannot be."""
    progress("The peers' environment")
    subprocess.run([str(ROOT / "scripts" / "setup"), "peers"], check=True, stdout=subprocess.DEVNULL)
