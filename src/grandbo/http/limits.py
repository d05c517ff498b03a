"""Limits on how often: a moving window for each key, in this process alone, in bounded memory."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from grandbo.errors import ConfigurationError

KEYS_KEPT = 10_000
OFF = "off"

_RATE = re.compile(r"([1-9][0-9]{0,5})\s*/\s*(second|minute|hour)")
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0}


@dataclass(frozen=True, slots=True)
class Rate:
    """So many in so many seconds."""

    count: int
    seconds: float


def parse_rate(text: str, setting: str) -> Rate | None:
    """Read `600/minute`; None for `off`. Raises `ConfigurationError`."""
    if text.strip().lower() == OFF:
        return None
    match = _RATE.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigurationError(f"{setting} must be COUNT/second, COUNT/minute, COUNT/hour, or {OFF}.")
    return Rate(int(match[1]), _SECONDS[match[2]])


class MovingWindow:
    """
    Counts what happened within the last `rate.seconds`, key by key.

    Beyond `keys` of them the key that was quiet longest is forgotten.
    """

    def __init__(
        self, rate: Rate | None, *, keys: int = KEYS_KEPT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._keys = keys
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Count one more of this key and give 0; beyond the limit count nothing and give the seconds to wait."""
        return self._look(key, count=True)

    def wait(self, key: str) -> float:
        """The seconds to wait before one more of this key would be within the limit; nothing is counted."""
        return self._look(key, count=False)

    def _look(self, key: str, *, count: bool) -> float:
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock()
            seen = self._seen.get(key)
            while seen and seen[0] <= now - self._rate.seconds:
                seen.popleft()
            if seen and len(seen) >= self._rate.count:
                return seen[0] + self._rate.seconds - now
            if count:
                self._seen.setdefault(key, deque()).append(now)
                self._seen.move_to_end(key)
                if len(self._seen) > self._keys:
                    self._seen.popitem(last=False)
            return 0.0
