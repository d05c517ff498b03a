"""
The figures of `scripts/bench --peers --json > FILE`, and of `--peers-judged`, as docs/peers.md.

scripts/tell_peers.py FILE… [--note TEXT]; figures of several runs are put together, and the note says what is to be
known of them.
"""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE_FILE = Path(__file__).parents[1] / "docs" / "peers.md"
OURS = "grandbo"

NAMES = {
    "grandbo": "**Grandbo**",
    "floor": "by hand",
    "langgraph": "LangGraph `PostgresStore`",
    "langchain": "LangChain `PGVectorStore`, hybrid",
    "llamaindex": "LlamaIndex `PGVectorStore`, hybrid",
    "llamaindex-fused": "the same, fused by `QueryFusionRetriever`",
    "pghybrid": "pghybrid",
    "mem0": "mem0, `infer=False`",
    "memgres": "memgres",
    "eventsourcing": "eventsourcing, PostgreSQL recorder",
}
# Where a name stands in a sentence.
SHORT = {
    "grandbo": "Grandbo",
    "floor": "by hand",
    "langgraph": "LangGraph",
    "langchain": "LangChain",
    "llamaindex": "LlamaIndex",
    "llamaindex-fused": "LlamaIndex fused",
    "pghybrid": "pghybrid",
    "mem0": "mem0",
    "memgres": "memgres",
    "eventsourcing": "eventsourcing",
}
# What is in the numbers of each, and what is not.
HOLDS = {
    "grandbo": (
        "words and meaning in one statement under row-level security; tenant, tier, status, kind and validity as scope;"
        " counts of what is eligible and of what lies beyond the cutoff; what restates a match folded; a receipt",
        "an event in the tenant's hash chain, what screening finds, the projections (entry, revision, postings),"
        " idempotency; the vector is a second event, which the worker brings",
    ),
    "floor": (
        "the same two rankings over a copy of Grandbo's own postings and vectors; no tenant, tier, validity or count",
        "one row of text and vector; no words, no history",
    ),
    "langgraph": (
        "meaning alone, within a namespace",
        "a row and its vector; an item written again is overwritten without a trace",
    ),
    "langchain": (
        "meaning, then words, in two round trips; words must all be in an entry; both lists fused by rank; no tenant",
        "one row with vector and words; no history",
    ),
    "llamaindex": (
        "meaning, then words, in two statements; what words found besides stands behind the k by meaning, so they"
        " change nothing among the first k; no tenant",
        "one row with vector and words; no history",
    ),
    "llamaindex-fused": ("both lists fused by rank in Python; its answers are measured, not its speed", ""),
    "pghybrid": (
        "both rankings in one statement, fused by rank; no tenant",
        "it brings none: the row is the caller's own INSERT, its words a generated column",
    ),
    "mem0": (
        "meaning, a boost by words, a filter by user; spaCy, which it would take words' stems from, is not there,"
        " because its model is fetched when it is first used",
        "a row and its vector, and a second record in SQLite; without a language model nothing is drawn from the text",
    ),
    "memgres": (
        "meaning, by an index that is approximate, and words in two statements, fused by rank; a namespace; its"
        " counting of reads is switched off",
        "a row, its words and its vector, and a hash-chained history of each memory",
    ),
    "eventsourcing": ("", "an event of an aggregate, numbered; no chain, nothing derived from it"),
}
NONE_OF_THEM = (
    "In these numbers none of the others runs under row-level security, chains the memory as a whole, leaves a receipt,"
    " answers as of a past moment, waits for a review, or says why an answer is empty. memgres chains and verifies the"
    " history of each memory, mem0 keeps a history beside, and LangGraph, mem0 and memgres can let items expire."
    " In the other direction: with Grandbo one cannot overwrite an item by its key, store anything but text, do without"
    " a tenant, or bring a vector of one's own."
)


def together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of several runs; judged sets of any of them stand beside each other."""
    figures: dict[str, Any] = {}
    for run in runs:
        found = figures.get("finding")
        figures |= run
        if found and "finding" in run:
            both = {name: {**found[name], **run["finding"][name]} for name in ("sets", "versions")}
            figures["finding"] = {**run["finding"], **both}
    return figures


def page_of(figures: dict[str, Any], note: str = "") -> str:
    """The page; a part that was not measured is left out."""
    parts = [
        HEAD.format(note=f"\n**{note}**\n" if note else "", named=_versions(figures)),
        _recall(figures) if "recall" in figures else "",
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
    return set().union(*of_sizes, *of_sets, figures.get("log", {}))


def _versions(figures: dict[str, Any]) -> str:
    versions = {**figures.get("finding", {}).get("versions", {}), **figures.get("versions", {})}
    packages = {package: version for each in versions.values() for package, version in each.items()}
    named = ", ".join(f"{package} {version}" for package, version in sorted(packages.items()))
    server = f"{figures['server']}; Python {figures['python']}; " if "server" in figures else ""
    return textwrap.fill(f"{server}{named}", 118, break_on_hyphens=False)


def _recall(figures: dict[str, Any]) -> str:
    sizes = list(figures["recall"])
    head = "".join(f" {int(size):,}: p50 (runs) | p95 | of exact |" for size in sizes)
    rows = []
    for name in (name for name in NAMES if name in figures["recall"][sizes[0]]):
        cells = [_recall_cells(figures["recall"][size][name]) for size in sizes]
        rows.append(f"| {NAMES[name]} | {' | '.join(cells)} |")
    return RECALL.format(
        k=figures["k"],
        topics=figures["topics"],
        runs=figures["runs"],
        listed=figures["listed"],
        vectors=f"{figures['real_vectors']:,}",
        head=head,
        rule="---|" * (1 + 3 * len(sizes)),
        rows="\n".join(rows),
        ahead="\n".join(f"- {int(size):,} entries: {_who_is_ahead(figures['recall'][size])}" for size in sizes),
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


def _approximate(recalls: dict[str, Any]) -> str:
    shares = {size: each[OURS]["of_exact"] for size, each in recalls.items() if "of_exact" in each[OURS]}
    told = ", ".join(f"{share:.3f} at {int(size):,}" for size, share in shares.items())
    return f"Of the first k that Grandbo gives where all is measured, its answers held {told}."


def _write(figures: dict[str, Any]) -> str:
    rows = []
    for name in (name for name in NAMES if name in figures["write"]):
        each = figures["write"][name]
        rows.append(f"| {NAMES[name]} | {_write_cells(each['1'])} | {_write_cells(each['4'])} |")
        if "with_vector" in each:
            rows.append(f"| **Grandbo**, until its vector is there too | {_write_cells(each['with_vector'])} | | | |")
    one = {name: each["1"] for name, each in figures["write"].items()}
    return WRITE.format(rows="\n".join(rows), writes=figures["writes"], runs=figures["runs"], ahead=_who_is_ahead(one))


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


HEAD = """# Peers

Grandbo beside the systems that people would pick instead, each driven as its own documents say.
`scripts/bench --peers --json > FILE` measured speed, `scripts/bench --peers-judged … --json > FILE` what is found,
`scripts/tell_peers.py FILE…` wrote this page. `scripts/setup peers` installs the others into an environment of their
own, with pinned versions; no part of Grandbo needs any of them.
{note}
All keep what they hold in databases of their own on one embedded server, with the same settings, no parallel plans, and
fsync on:
{named}.

Every text has the same vector for everybody, made before, so no number holds a model's time. Titles have none of their
own where times are measured; they would be 25 more look-ups in a recall of Grandbo's. Each runs in a process of its own
and times its own calls; the table at the end says what they do within them, and what not. Absolute times belong to the
machine, two shared cores.
"""

RECALL = """## Sooner: recall

Milliseconds. One tenant, the first {k}, {topics} topics. A store grows from one size to the next. All are asked in
turn, {runs} times, each time begun by another: the median over the runs of each run's median and 95th of a hundred, in
parentheses the least and the most of the runs' medians. Each list holds {listed} before it is fused, where one may say.
*Of exact*: of the {k} nearest by exact cosine, the share that is found by meaning alone, for Grandbo as far as its
cutoff.

| |{head}
|{rule}
{rows}

Medians, as multiples of Grandbo's:

{ahead}

{approximate} memgres asks an index that is approximate (HNSW; it has no other way), all others measure every vector;
PostgreSQL ranks every entry that has the words.

**The data.** Entries of about 62 words from the shipped sample incidents, topics of nine; vectors of 384 numbers, mixed
from {vectors} real ones as in [sizes.md](sizes.md). A word of them is in many entries, so those that rank by any word
rank much of the memory.
"""

WRITE = """## Sooner: an acknowledged write

Milliseconds until it is durable, one entry a call, into the largest memory above; {writes} writes a writer, in turn,
{runs} times. Writers are threads of one process.

| | one writer: p50 (runs) | p95 | a second | four writers: p50 (runs) | p95 | a second |
|---|---|---|---|---|---|---|
{rows}

One writer, medians, as multiples of Grandbo's: {ahead}

Grandbo's writers of one tenant wait for each other, because its positions have no gaps; those of different tenants do
not ([sizes.md](sizes.md#writing)).
"""

LOG = """## The log alone

Events a second; the same documents. An append of Grandbo's brings the projections with it, an append of the other's
nothing but the event. In batches: Grandbo's import against a hundred events a call. Read: every event in order.

| | append, one writer: ms (runs) | a second | four writers | in batches | read | verified | rebuilt |
|---|---|---|---|---|---|---|---|
{rows}
"""

FINDING = """## Finding more

Judged sets, development halves ([evaluation.md](evaluation.md)). Grandbo as `grandbo eval` measures it: with its
refusals, its screening, its folding and its cutoff, and with the vectors of titles that its worker makes. The others
hold each window of a document as one item, with the vector that Grandbo has for it; they are asked for {items} items,
and their lists are as deep before they are fused: of 25, 50 and 120 that suited them best on incidents (of alerts
pghybrid finds more with 120, a Recall@5 of 0.860). A document stands where its first item stands. Means with 95 %
intervals; Grandbo minus each, topic by topic, resampled in pairs. All others answer any topic at all, also one of
another world; Grandbo's cutoff, which keeps those out, is in its numbers. A topic of duplicates is the title of a
report, and what is to be found are reports of the same fault.

{tables}"""

SET = """### {name}: {topics} topics, {documents} documents, {items} windows

| | Recall@5 | Grandbo minus it | nDCG@10 | Grandbo minus it |
|---|---|---|---|---|
{rows}

{ahead}
"""

FOOT = """## What each does in these numbers

| | recall | write |
|---|---|---|
{held}

{none}
"""


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
