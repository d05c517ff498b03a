"""Documents for tests; every field has a default, and what a test is about is given by name."""

from __future__ import annotations

import itertools
from typing import Any

_numbers = itertools.count(1)


def make_finding(**overrides: Any) -> dict[str, Any]:
    """A finding that is accepted, unlike any other made before."""
    number = next(_numbers)
    document: dict[str, Any] = {
        "title": f"Checkout queue {number} stalled after the lease renewal failed",
        "summary": f"Consumers of partition {number} lost their leases and nobody took over.",
        "body": "The broker restarted. Renewals timed out. The consumers kept waiting for a leader.",
        "service": "checkout",
        "tags": ["queue", "lease"],
        "evidence": [{"type": "log", "uri": f"https://logs.example.com/{number}", "label": "broker log"}],
        "incident": {"source": "pager", "id": f"INC-{number}"},
        "occurred_at": "2026-01-02T03:04:05Z",
        "confidence_bp": 8_000,
    }
    return {key: value for key, value in {**document, **overrides}.items() if value is not ...}
