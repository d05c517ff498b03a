"""A sample of the entries, by their ids alone: the same in every replay, and of any position."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

ONE_IN: Final = 16
"""How many entries there are for each one of the sample."""


def is_sampled(entry_id: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """
    Whether the entry is of the sample, by the last byte of its id, which is random in every kind of id.

    Printed, not bound: the server takes the index over the sample only where it sees the very same words.
    """
    last = sa.func.get_byte(sa.func.uuid_send(entry_id), sa.literal_column("15"))
    return last < sa.literal_column(str(256 // ONE_IN))
