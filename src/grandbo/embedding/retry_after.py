"""The `Retry-After` header: seconds, or the moment when to come back."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Final

_LONGEST: Final = 3600.0


def parse_retry_after(value: str | None) -> float | None:
    """Give the seconds to wait, between 0 and an hour, or None for a header that is missing or makes no sense."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST)
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(max(moment - time.time(), 0.0), _LONGEST)
