"""How a vector is stored: pgvector's type, how many numbers of it, and the signature that stands in for it."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

_REGISTER: Final = 64
"""Numbers; a multiple of what any processor adds up at once."""
_QUARTILE: Final = 0.6745
"""Half of what is normally distributed lies within so many standard deviations."""


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


class Signature(sa.types.UserDefinedType[Any]):
    """A bit string. It is made by the server and compared there; no value of it is read or sent."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "bit varying"


def signature_of(vector: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """
    The signature of a normalised vector: of each number, whether it is above the three quartiles of such a number.

    Numbers of a normalised vector spread by about one over the root of how many they are. As each is compared with a
    constant and nothing is added up, every machine makes the same signature. Two signatures differ in as many bits as
    their vectors lie apart in quartiles: near vectors have near signatures, whatever the model.
    """
    spread = sa.literal_column(f"{_QUARTILE}::float8") / sa.func.sqrt(sa.func.vector_dims(vector), type_=sa.Double())
    quartile = sa.cast(sa.func.array_fill(sa.cast(spread, sa.REAL), pg.array([sa.func.vector_dims(vector)])), Vector())
    above = [vector, vector.op("-", return_type=Vector())(quartile), vector.op("+", return_type=Vector())(quartile)]
    bits: sa.ColumnElement[Any]
    bits, *others = (sa.func.binary_quantize(numbers, type_=Signature()) for numbers in above)
    for other in others:
        bits = bits.op("||", return_type=Signature())(other)
    return bits


def stands_by_key(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """
    Whether a vector, or a revision, stands, where it is looked up by its key.

    In words from which the server cannot tell that the index of what stands would do. Before it has statistics it takes
    that one as soon as the key, and reads all that stands in it for each entry.
    """
    none: sa.ColumnElement[int] = sa.literal_column("0")
    return sa.func.coalesce(table.c.to_position, none) == none


def apart(one: sa.ColumnElement[Any], other: sa.ColumnElement[Any]) -> sa.ColumnElement[float]:
    """In how many bits two signatures differ."""
    return one.op("<~>", return_type=sa.Double())(other)
