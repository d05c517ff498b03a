"""How a vector is stored: pgvector's type, and how many numbers of it."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

_REGISTER: Final = 64
"""Numbers; a multiple of what any processor adds up at once."""


class Vector(sa.types.UserDefinedType[Any]):
    """pgvector's `vector`. Values are float32 arrays; the driver's adapter sends them in binary."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "vector"


def stored_length(native_dimensions: int) -> int:
    """
    How many numbers a stored vector has: the dimensions of its space, rounded up to a multiple of 64; at most 1,024.

    Zeros behind a vector that fill up whole registers leave every cosine as it was, bit for bit. More of them would
    only be read by every recall. All vectors of a stamp have one length, and only those are ever compared.
    """
    return -(-native_dimensions // _REGISTER) * _REGISTER
