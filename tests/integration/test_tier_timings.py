"""An id above somebody's tiers costs him no time that would tell him of it; measured in turn, in a campaign."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from grandbo.errors import GrandboError
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import new_id
from tests.support.factories import make_finding
from tests.support.http import make_token

ROUNDS = 400

pytestmark = pytest.mark.campaign


def _ratio(one: Callable[[], object], other: Callable[[], object]) -> float:
    """Of the medians, both measured in turn; whoever comes first changes from round to round."""
    times: dict[int, list[float]] = {0: [], 1: []}
    for number in range(ROUNDS):
        for which in (0, 1) if number % 2 else (1, 0):
            started = time.perf_counter()
            with suppress(GrandboError):
                (one, other)[which]()
            times[which].append(time.perf_counter() - started)
    return statistics.median(times[0][40:]) / statistics.median(times[1][40:])


def test_a_hidden_id_takes_as_long_as_one_that_never_was(grandbo: Grandbo, memory: TenantMemory) -> None:
    """Of an entry above the asker's tiers, of another tenant's, and of none."""
    hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
    reviewer = grandbo.authenticate(make_token(memory, "reviewer", kind="human"))
    absent = new_id()

    for verb in (reviewer.show_entry, reviewer.history):
        ratio = _ratio(lambda verb=verb: verb(hidden), lambda verb=verb: verb(absent))  # type: ignore[misc]
        print(f"{verb.__name__}: hidden against absent {ratio:.3f}")
        assert 0.9 < ratio < 1.1
