"""
The figures of `scripts/bench --peers --json > FILE`, and of `--peers-judged`, as docs/peers.md.

scripts/tell_peers.py FILE… [--note TEXT]; figures of several runs are put together, and the note says what is to be
known of them. Of one tenant the first file that has any is told, and sizes that others add are marked.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.peers.prose import (  # noqa: E402
    APART,
    CROWD,
    DATA,
    ELSEWHERE,
    FINDING,
    FOOT,
    HEAD,
    HOLDS,
    LOG,
    NAMES,
    NONE_OF_THEM,
    RECALL,
    SET,
    SHORT,
    WRITE,
)

PAGE_FILE = ROOT / "docs" / "peers.md"
OURS = "grandbo"
MARK = "\u2020"


def together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """
    The figures of several runs; what the first run tells stands.

    Sizes and judged sets of all of them stand beside each other. A set that was measured again is told as the last run
    found it. Sizes that are not of the first run that has any are named in `elsewhere`.
    """
    figures: dict[str, Any] = {}
    for run in runs:
        merged = {**run, **figures}
        for part in ("recall", "versions"):
            if part in merged:
                merged[part] = {**run.get(part, {}), **figures.get(part, {})}
        if "recall" in figures:
            added = set(run.get("recall", {})) - set(figures["recall"])
            merged["elsewhere"] = sorted({*figures.get("elsewhere", ()), *added}, key=int)
        if "finding" in figures and "finding" in run:
            found = {name: {**figures["finding"][name], **run["finding"][name]} for name in ("sets", "versions")}
            merged["finding"] = {**run["finding"], **found}
        if "write" in run and "write" not in figures:
            merged["written_into"] = max(run["recall"], key=int)
        figures = merged
    return figures


def page_of(figures: dict[str, Any], note: str = "") -> str:
    """The page; a part that was not measured is left out."""
    parts = [
        HEAD.format(note=f"\n**{note}**\n" if note else "", named=_versions(figures)),
        _recall(figures) if "recall" in figures else "",
        _crowd(figures) if "crowd" in figures else "",
        DATA.format(vectors=f"{figures['real_vectors']:,}") if "real_vectors" in figures else "",
        _write(figures) if "write" in figures else "",
        _log(figures["log"]) if "log" in figures else "",
        _finding(figures["finding"]) if "finding" in figures else "",
        FOOT.format(
            held="\n".join(_held(name) for name in NAMES if name in _measured(figures)),
            none=textwrap.fill(NONE_OF_THEM, 118),
        ),
    ]
    return "\n".join(part for part in parts if part)


def _measured(figures: dict[str, Any]) -> set[str]:
    """Everybody that is in any table."""
    of_sizes = (set(each) for each in figures.get("recall", {}).values())
    of_sets = (set(each["systems"]) for each in figures.get("finding", {}).get("sets", {}).values())
    of_tenants = figures.get("crowd", {}).get("systems", {})
    return set().union(*of_sizes, *of_sets, of_tenants, figures.get("log", {}))


def _versions(figures: dict[str, Any]) -> str:
    versions = {**figures.get("finding", {}).get("versions", {}), **figures.get("versions", {})}
    packages = {package: version for each in versions.values() for package, version in each.items()}
    named = ", ".join(f"{package} {version}" for package, version in sorted(packages.items()))
    server = f"{figures['server']}; Python {figures['python']}; " if "server" in figures else ""
    return textwrap.fill(f"{server}{named}", 118, break_on_hyphens=False)


def _recall(figures: dict[str, Any]) -> str:
    sizes, elsewhere = sorted(figures["recall"], key=int), figures.get("elsewhere", ())
    told = {size: f"{int(size):,}{MARK if size in elsewhere else ''}" for size in sizes}
    head = "".join(f" {told[size]}: p50 (runs) | p95 | of exact |" for size in sizes)
    rows = []
    for name in (name for name in NAMES if name in figures["recall"][sizes[0]]):
        cells = [_recall_cells(figures["recall"][size][name]) for size in sizes]
        rows.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    return RECALL.format(
        k=figures["k"],
        topics=figures["topics"],
        runs=figures["runs"],
        listed=figures["listed"],
        head=head,
        rule="---|" * (1 + 3 * len(sizes)),
        rows="\n".join(rows),
        elsewhere=ELSEWHERE.format(mark=MARK) if elsewhere else "",
        ahead="\n".join(f"- {told[size]} entries: {_who_is_ahead(figures['recall'][size])}" for size in sizes),
        approximate=_approximate(figures["recall"]),
    )


def _recall_cells(each: dict[str, Any]) -> str:
    return f"{_timed(each['p50'])} | {each['p95']['median']:.1f} | {each['exact']:.3f}"


def _who_is_ahead(systems: dict[str, Any]) -> str:
    """Who is sooner than Grandbo and who later, by the medians, as multiples of its own."""
    ours = systems[OURS]["p50"]["median"]
    times = {name: each["p50"]["median"] for name, each in systems.items() if name != OURS}
    sooner = [name for name in sorted(times, key=times.__getitem__) if times[name] < ours]
    later = [name for name in sorted(times, key=times.__getitem__) if times[name] >= ours]
    told = [f"{SHORT[name]} {times[name] / ours:.2f} \u00d7" for name in sooner]
    behind = [f"{SHORT[name]} {times[name] / ours:.2f} \u00d7" for name in later]
    return f"sooner than Grandbo: {', '.join(told) or 'none'}; later: {', '.join(behind) or 'none'}."


def _crowd(figures: dict[str, Any]) -> str:
    """Recall of one among many tenants."""
    crowd = figures["crowd"]
    systems = crowd["systems"]
    rows = [f"| {NAMES[name]} | {_recall_cells(systems[name])} | {APART[name]} |" for name in NAMES if name in systems]
    return CROWD.format(
        k=figures["k"],
        topics=crowd["topics"],
        runs=figures["runs"],
        tenants=f"{crowd['tenants']:,}",
        entries=f"{crowd['entries']:,}",
        asked=crowd["asked"],
        rows="\n".join(rows),
        ahead=_who_is_ahead(systems),
        of_exact=systems[OURS]["of_exact"],
    )


def _approximate(recalls: dict[str, Any]) -> str:
    shares = {size: each[OURS]["of_exact"] for size, each in recalls.items() if "of_exact" in each[OURS]}
    told = ", ".join(f"{shares[size]:.3f} at {int(size):,}" for size in sorted(shares, key=int))
    return f"Of the first k that Grandbo gives where all is measured, its answers held {told}."


def _write(figures: dict[str, Any]) -> str:
    rows = []
    for name in (name for name in NAMES if name in figures["write"]):
        each = figures["write"][name]
        rows.append(f"| {NAMES[name]} | {_write_cells(each['1'])} | {_write_cells(each['4'])} |")
        if "with_vector" in each:
            rows.append(f"| **Grandbo**, until its vector is there too | {_write_cells(each['with_vector'])} | | | |")
    one = {name: each["1"] for name, each in figures["write"].items()}
    return WRITE.format(
        rows="\n".join(rows),
        entries=f"{int(figures['written_into']):,}",
        writes=figures["writes"],
        runs=figures["runs"],
        ahead=_who_is_ahead(one),
    )


def _write_cells(each: dict[str, Any]) -> str:
    return f"{_timed(each['p50'])} | {each['p95']['median']:.1f} | {each['per_second']['median']:,.0f}"


def _log(logs: dict[str, Any]) -> str:
    rows = []
    for name in (name for name in NAMES if name in logs):
        each = logs[name]
        cells = [_timed(each["1"]["p50"]), f"{each['1']['per_second']['median']:,.0f}"]
        cells += [f"{each['4']['per_second']['median']:,.0f}", _rated(each["batch"]), _rated(each["read"])]
        cells += [_rated(each[way]) if way in each else "has none" for way in ("verify", "rebuild")]
        rows.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    return LOG.format(rows="\n".join(rows))


def _finding(found: dict[str, Any]) -> str:
    tables = []
    for name, each in found["sets"].items():
        rows = [
            f"| {NAMES[system]} | {_found_cells(each['systems'][system], system)} |"
            for system in NAMES
            if system in each["systems"]
        ]
        sized = {key: f"{each[key]:,}" for key in ("topics", "documents", "items")}
        tables.append(SET.format(name=name, rows="\n".join(rows), ahead=_who_finds_more(each["systems"]), **sized))
    return FINDING.format(items=found["items"], tables="\n".join(tables))


def _found_cells(measures: dict[str, Any], system: str) -> str:
    cells = []
    for each in measures.values():
        of, ahead = each["of"], each["grandbo_minus"]
        minus = (
            "" if system == OURS else f"{_signed(ahead['mean'])} [{_signed(ahead['low'])}, {_signed(ahead['high'])}]"
        )
        cells += [f"{of['mean']:.3f} [{of['low']:.3f}, {of['high']:.3f}]", minus]
    return " | ".join(cells)


def _who_finds_more(systems: dict[str, Any]) -> str:
    """From whom Grandbo differs so that the interval of the difference leaves out zero, and which way."""
    told = []
    for measure in systems[OURS]:
        minus = {name: each[measure]["grandbo_minus"] for name, each in systems.items() if name != OURS}
        better = [SHORT[name] for name, each in minus.items() if each["low"] > 0]
        worse = [SHORT[name] for name, each in minus.items() if each["high"] < 0]
        told.append(
            f"{_measure(measure)}: more than {', '.join(better) or 'none'}; less than {', '.join(worse) or 'none'};"
            f" {len(minus) - len(better) - len(worse)} not told apart."
        )
    return " ".join(told)


def _held(name: str) -> str:
    recall, write = HOLDS[name]
    return f"| {NAMES[name]} | {recall} | {write} |"


def _measure(name: str) -> str:
    return {"recall@5": "Recall@5", "ndcg@10": "nDCG@10"}[name]


def _timed(each: dict[str, float]) -> str:
    return f"{each['median']:.1f} ({each['low']:.1f} to {each['high']:.1f})"


def _rated(each: dict[str, Any]) -> str:
    return f"{each['per_second']['median']:,.0f}"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "\u2212")


def main(arguments: Sequence[str] | None = None) -> None:
    """Put the runs together and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--note", default="")
    given = parser.parse_args(arguments)
    figures = together([json.loads(file.read_text()) for file in given.files])
    PAGE_FILE.write_text(page_of(figures, given.note))


if __name__ == "__main__":
    main()
