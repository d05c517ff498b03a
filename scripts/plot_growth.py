"""
How cost grows with a memory, as docs/growth.svg: scripts/bench --sizes --json > FILE; scripts/plot_growth.py FILE.

Both axes are logarithmic, so that a power of the size is a straight line; its exponent is that of the line that fits
best, and stands beside it.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "docs" / "growth.svg"
WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 210, 24, 50
COLOURS = {
    "rebuild": "#7a3e9d",
    "verify": "#2f6f8f",
    "recall": "#b3261e",
    "floor, by hand": "#8a8a8a",
    "acknowledged write": "#2e7d32",
}

Series = dict[str, list[tuple[float, float]]]


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


if __name__ == "__main__":
    OUT.write_text(drawn(series_of(json.loads(Path(sys.argv[1]).read_text()))))
