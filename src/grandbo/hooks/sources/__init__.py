"""The tools whose deliveries are understood, by the name that stands in the URL of their hooks."""

from __future__ import annotations

from grandbo.hooks.source import Source
from grandbo.hooks.sources.grandbo import GRANDBO

SOURCES: dict[str, Source] = {source.name: source for source in (GRANDBO,)}
