"""How long answers took, of late, in this process: for each tenant apart, and for nobody beyond the asker's tiers."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from grandbo.types import Clock, utc_text

TENANTS_KEPT = 1_000
ANSWERS_KEPT = 2_000
ROUTES = frozenset({"/v1/recall", "/v1/context", "/mcp", "/search"})


class Latencies:
    """Bounded memory of the answers of recall. Safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[UUID, deque[tuple[datetime, float, frozenset[str]]]] = OrderedDict()

    def note(self, tenant_id: UUID, route: str, seconds: float, tiers: frozenset[str]) -> None:
        """Keep how long an answer took; only those of recall count."""
        if route not in ROUTES:
            return
        with self._lock:
            self._kept.setdefault(tenant_id, deque(maxlen=ANSWERS_KEPT)).append((self._clock(), seconds, tiers))
            self._kept.move_to_end(tenant_id)
            if len(self._kept) > TENANTS_KEPT:
                self._kept.popitem(last=False)

    def by_minute(self, tenant_id: UUID, tiers: Iterable[str], *, most: int = 60) -> list[dict[str, Any]]:
        """The last minutes with answers to whom saw no more than these tiers: how many, and the percentiles in ms."""
        own = frozenset(tiers)
        with self._lock:
            found = [(at, seconds) for at, seconds, seen in self._kept.get(tenant_id, ()) if seen <= own]
        minutes: dict[str, list[float]] = {}
        for at, seconds in found:
            minutes.setdefault(utc_text(at.replace(second=0, microsecond=0)), []).append(seconds * 1_000)
        return [
            {
                "minute": minute,
                "answers": len(taken),
                "p50_ms": _percentile(taken, 50),
                "p95_ms": _percentile(taken, 95),
            }
            for minute, taken in list(minutes.items())[-most:]
        ]


def _percentile(taken: list[float], percent: int) -> float:
    """The nearest rank."""
    ordered = sorted(taken)
    return round(ordered[max(0, -(-len(ordered) * percent // 100) - 1)], 1)
