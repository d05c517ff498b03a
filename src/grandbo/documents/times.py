"""The one reader of times that tools write: with offsets, with zone names, naive, and as epochs of any unit."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from grandbo.types import Moment

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The largest number that is read as seconds, milliseconds, microseconds, nanoseconds: each is the year 5138.
_LARGEST_SECOND = 10**11
_ZONE = re.compile(r"\s*(?:UTC|GMT)$", re.IGNORECASE)
_OFFSET = re.compile(r"\s+([+-]\d{2}:?\d{2})$")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FRACTION = re.compile(r"(\.\d{6})\d+")


def read_time(value: object) -> Moment | None:
    """
    A time in any of the forms that the tools send; None for what is none, and for the year 1, which says `not yet`.

    A time without a zone is UTC: that is what the tools that leave it out mean. Whole numbers, and texts of digits, are
    epochs; their size tells seconds from milliseconds, microseconds and nanoseconds.
    """
    if isinstance(value, bool):
        return None
    try:
        if isinstance(value, int | float):
            moment = _of_epoch(int(value))
        elif isinstance(value, str):
            moment = _of_text(value.strip())
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return moment if moment is not None and moment.at.year > 1 else None


def _of_epoch(number: int) -> Moment | None:
    if number <= 0:
        return None
    unit = 1
    while number >= _LARGEST_SECOND * unit:
        unit *= 1_000
        if unit > 10**9:
            return None
    return Moment(_EPOCH + timedelta(microseconds=number * 1_000_000 // unit), "time")


def _of_text(text: str) -> Moment | None:
    if len(text) > 64:
        return None
    if text.isdecimal():
        return _of_epoch(int(text))
    if _DAY.fullmatch(text):
        return Moment(datetime.fromisoformat(text).replace(tzinfo=UTC), "day")
    plain = _OFFSET.sub(r"\1", _ZONE.sub("+00:00", text))
    found = datetime.fromisoformat(_FRACTION.sub(r"\1", plain))
    return Moment(found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC), "time")
