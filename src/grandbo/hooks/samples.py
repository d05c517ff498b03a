"""One delivery of each source, as its documents describe it: what `grandbo hook test` sends unless it is given one."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def sample_of(source: str) -> dict[str, Any]:
    """The close of an incident, or what comes nearest to it, in the form of this source."""
    file = resources.files("grandbo").joinpath(f"data/hooks/samples/{source}.json")
    sample: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return sample
