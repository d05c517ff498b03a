"""Committed snapshots of what must not change unnoticed. `UPDATE_SNAPSHOTS=1 pytest …` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"


def check_snapshot(name: str, actual: str, *, hint: str) -> None:
    """Hold a text against the committed one; `hint` says what a difference means."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(actual, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""

    assert expected == actual, f"{path.name} differs: {hint}"
