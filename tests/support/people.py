"""Zoë, about whom something is remembered."""

from __future__ import annotations

from typing import Any

from grandbo.library import TenantMemory

ZOE = "zoe@example.com"
ABOUT_HER = "how does she like to be told about a failing deployment of the checkout"


def told(memory: TenantMemory, topic: str = ABOUT_HER, **how: Any) -> list[str]:
    """Titles of what is personal to the asker on a topic."""
    return [match.title for match in memory.query_topic(topic, kinds=["personal"], **how).matches]
