"""
The figures of `scripts/bench --sizes --json > FILE` as docs/sizes.md and docs/growth.svg.

scripts/tell_sizes.py FILE… [--note TEXT]; what other runs measured `--alone` stands beside what the first one did, and
the note says what is to be known of them.

Both axes of the plot are logarithmic, so that a power of the size is a straight line; its exponent is that of the line
that fits best, and stands beside it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
# Of an exact list, the least share that a scan should hold.
WANTED = 0.99
WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 225, 24, 50
COLOURS = {
    "rebuild": "#7a3e9d",
    "verify": "#2f6f8f",
    "recall": "#b3261e",
    "floor, by hand": "#8a8a8a",
    "acknowledged write": "#2e7d32",
}

Series = dict[str, list[tuple[float, float]]]


def together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of the first run, with the rows that the others measured beside it; those are `alone`."""
    first, *others = runs
    first["crowds"] = [*first.get("crowds", []), *([first.pop("crowd")] if "crowd" in first else [])]
    for other in others:
        for name in ("recall", "crowds"):
            first[name] += [{**each, "alone": True} for each in other.get(name, ())]
    first["recall"].sort(key=lambda each: each["entries"])
    first["crowds"].sort(key=lambda each: each["tenants"])
    return first


def series_of(figures: dict[str, Any]) -> Series:
    """Size and seconds, by what was measured."""
    recalls, replays = figures["recall"], figures["replay"]
    return {
        "rebuild": [(each["entries"], each["rebuild_s"]) for each in replays],
        "verify": [(each["entries"], each["verify_s"]) for each in replays],
        "recall": [(each["entries"], each["recall_ms"]["median"] / 1000) for each in recalls],
        "floor, by hand": [(each["entries"], each["floor_ms"]["median"] / 1000) for each in recalls],
        "acknowledged write": [(int(size), each["median"] / 1000) for size, each in figures["write_ms"].items()],
    }


def exponent(points: list[tuple[float, float]]) -> float:
    """The slope of the line that fits best through the logarithms."""
    xs, ys = ([math.log(value) for value in values] for values in zip(*points, strict=True))
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    rise = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return rise / sum((x - middle_x) ** 2 for x in xs)


def drawn(series: Series) -> str:
    """The plot."""
    points = [point for each in series.values() for point in each]
    sizes, seconds = zip(*points, strict=True)
    low_x, high_x = math.log10(min(sizes)), math.log10(max(sizes))
    low_y, high_y = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))

    def place(size: float, took: float) -> tuple[float, float]:
        across = (math.log10(size) - low_x) / (high_x - low_x)
        up = (math.log10(took) - low_y) / (high_y - low_y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' font-family="sans-serif" font-size="13">',
        "<title>Time against entries in one tenant, both logarithmic</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for power in range(low_y, high_y + 1):
        _, y = place(min(sizes), 10.0**power)
        lines += [
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>',
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444444">{_seconds(power)}</text>',
        ]
    for size in sorted(set(sizes)):
        x, _ = place(size, min(seconds))
        lines.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#444444">{size:,.0f}</text>'
        )
    lines.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#444444">'
        "entries in one tenant</text>"
    )
    ends = {name: place(*each[-1]) for name, each in series.items()}
    labels = _apart({name: y for name, (_, y) in ends.items()})
    for name, each in series.items():
        colour = COLOURS[name]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in each))
        dots = "".join(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (place(*point) for point in each)
        )
        lines += [
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}',
            f'<text x="{WIDTH - RIGHT + 12}" y="{labels[name]:.1f}" fill="{colour}">'
            f"{name}: n^{exponent(each):.2f}</text>",
        ]
    return "\n".join([*lines, "</svg>", ""])


def _seconds(power: int) -> str:
    return f"{10**power} s" if power >= 0 else f"{10 ** (power + 3):g} ms"


def _apart(heights: dict[str, float], least: float = 18) -> dict[str, float]:
    """Heights of the labels, moved down where two would lie on each other."""
    placed: dict[str, float] = {}
    last = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        last = max(height + 4, last + least)
        placed[name] = last
    return placed


def page_of(figures: dict[str, Any], note: str) -> str:
    """The page, with the figures in their places, and what is to be said of this run."""
    scans = [each for each in (*figures["recall"], *figures["crowds"]) if each["scan"] == "signatures"]
    return PAGE.format(
        note=f"\n**{note}**\n" if note else "",
        real_vectors=f"{figures['real_vectors']:,}",
        logged=f"{figures['logged']:,}",
        each=f"{figures['crowds'][0]['entries']:,}",
        recalls="\n".join(map(_recall_row, [*figures["recall"], *figures["crowds"]])),
        alone=_alone([*figures["recall"], *figures["crowds"]]),
        found="\n".join(map(_found_row, scans)),
        short=_short(scans),
        writes="\n".join(_write_row(name, each) for name, each in figures["writers"].items()),
        sizes="\n".join(_size_row(*item) for item in figures["write_ms"].items()),
        replays="\n".join(map(_replay_row, figures["replay"])),
        disk="\n".join(_disk_row(*item) for item in figures["bytes_an_entry"].items() if isinstance(item[1], dict)),
        bytes=f"{figures['bytes_an_entry']['total']:,}",
    )


def _recall_row(each: dict[str, Any]) -> str:
    recall, floor = each["recall_ms"], each["floor_ms"]
    spread = f"{recall['p10']} to {recall['p90']}"
    ways = {"exact": "all vectors", "signatures": "signatures"}
    return (
        f"| {_of(each)} | {ways[each['scan']]} | {recall['median']} | {spread} | {floor['median']} "
        f"| {each['ratio']} \u00d7 |"
    )


def _of(each: dict[str, Any]) -> str:
    """Which tenant a row is of."""
    among = f", in each of {each['tenants']} tenants" if "tenants" in each else ""
    return f"{each['entries']:,}{among}{' †' if 'alone' in each else ''}"


def _alone(rows: Sequence[dict[str, Any]]) -> str:
    """What the rows of runs of their own took to make."""
    told = []
    for each in (each for each in rows if "alone" in each):
        many = (
            f"{each['tenants']} tenants of {each['entries']:,}" if "tenants" in each else f"{each['entries']:,} entries"
        )
        made = each["made"]
        took, vacuumed = (_lasting(made[name]) for name in ("written_s", "vacuumed_s"))
        told.append(f"{many}: {made['gigabytes']} GB, written in {took}, vacuumed and analysed in {vacuumed}.")
    if not told:
        return ""
    return "\n† Measured by itself (`--alone`), in another run. What that took: " + " ".join(told) + "\n"


def _lasting(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _found_row(each: dict[str, Any]) -> str:
    meaning, words = each["meaning_found_at_25"], each["words_found_at_25"]
    times = ("exact_ms", "recall_ms", "after_event_ms", "uncounted_ms")
    medians = (each[name]["median"] if name in each else "–" for name in times)  # noqa: RUF001
    return f"| {_of(each)} | {meaning} | {words} | {' | '.join(map(str, medians))} |"


def _short(scans: Sequence[dict[str, Any]]) -> str:
    """Where a scan holds less of an exact list than it should."""
    told = [
        f"of {each['entries']:,} entries {each[f'{name}_found_at_25']} by {name}, asked {each['topics']} topics"
        for each in scans
        for name in ("meaning", "words")
        if each[f"{name}_found_at_25"] < WANTED
    ]
    return f"\n**Less than the {WANTED} that is wanted: {'; '.join(told)}.**\n" if told else ""


def _write_row(name: str, each: dict[str, Any]) -> str:
    name = name.replace(" 1 writers", " 1 writer")
    return f"| {name} | {each['median']} | {each['p90']} | {each['per_second']} |"


def _size_row(size: str, each: dict[str, Any]) -> str:
    return f"| {int(size):,} | {each['median']} | {each['p90']} |"


def _replay_row(each: dict[str, Any]) -> str:
    rates = (round(each["events"] / max(each[name], 0.01)) for name in ("verify_s", "rebuild_s"))
    verified, rebuilt = (f"{rate:,}" for rate in rates)
    return f"| {each['entries']:,} | {each['events']:,} | {verified} | {rebuilt} |"


def _disk_row(name: str, each: dict[str, Any]) -> str:
    return f"| `{name}` | {each['rows']:,} | {each['out_of_line']:,} | {each['indexes']:,} |"


PAGE = """# Sizes

How a memory grows: `scripts/bench --sizes --json > FILE` measured it, `scripts/tell_sizes.py FILE…` wrote this page.
As in [benchmarks.md](benchmarks.md) absolute times belong to the machine, two shared cores; ratios are of medians,
both sides measured in turn in one run. Milliseconds, where nothing else is said.
{note}
![Time against entries in one tenant, both logarithmic](growth.svg)

## Recall

Embedding excluded, against the hand-written statement of [benchmarks.md](benchmarks.md) over the same rows, which
has no tenants, tiers, validity or counts, and measures every vector.

| entries in the tenant | measured | recall | p10 to p90 | by hand | against it |
|---|---|---|---|---|---|
{recalls}
{alone}
No recall is cut off here; one that is served is refused after two seconds.

Beyond 2,500 entries in scope not everything is measured ([recall.md](recall.md#a-large-scope)). Of the 25 first of
either exact list, the share that is in the list of the scan; what an exact recall takes there; what the first recall
after an event takes, which looks up what the event has changed; and the first of a process, which counts the scope.

| entries | found, by meaning | found, by words | exact recall | recall | the first after an event | the first |
|---|---|---|---|---|---|---|
{found}
{short}
**The data.** Texts are spans of the shipped sample incidents, about 62 words an entry. Vectors, of 384 numbers, are
mixed from {real_vectors} real ones (the first two windows of each of those incidents, by the local model): two of
them, by a weight between a half and one, and noise of .35 in a random direction, normalised; all drawn by the
digest of the text, so that each run has the same. Mixtures lie nearer to each other than real incidents do: more
lies within the cutoff, and the nearest are harder to tell apart. Up to {logged} entries all went through the log.
Larger tenants, and the many of {each}, are projected rows multiplied under the projector's role, each with its
own id, title and vector; the head of a large one was moved by hand to where its events would have brought it.

## Writing

Acknowledged writes: event, chain, projections, commit. Threads of one process; writers of one tenant wait for each
other, because positions have no gaps.

| tenants, writers | median | p90 | writes a second |
|---|---|---|---|
{writes}

| entries in the tenant before | median | p90 |
|---|---|---|
{sizes}

## Verifying and rebuilding

| entries | events | verified a second | rebuilt a second |
|---|---|---|---|
{replays}

## On disk

{bytes} bytes an entry, of about 62 words and one vector. The vector of its title, which the local model makes besides,
takes 8 KB more: the event and the row.

| table | rows | out of line | indexes |
|---|---|---|---|
{disk}

What could shrink it. The index over postings grows by insertions everywhere, and built anew it is a third smaller
(measured at five million postings): `REINDEX INDEX CONCURRENTLY` in a quiet hour. What was left: half precision
would halve the vectors, and every distance would be another; a number for each entry in place of its id, and no
tenant in each row, would take a third off the postings, and a table alone would then tell one tenant from another;
postings stand twice, in their table and in the one index that answers for them, because PostgreSQL has no tables
that are indexes. The vector in the event is a third of the log: with it a rebuild calls no model.
"""


def main() -> None:
    """Write both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--note", default="")
    given = parser.parse_args()
    figures = together([json.loads(file.read_text()) for file in given.files])
    (DOCS / "growth.svg").write_text(drawn(series_of(figures)))
    (DOCS / "sizes.md").write_text(page_of(figures, given.note))


if __name__ == "__main__":
    main()
