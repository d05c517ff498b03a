"""From SQLAlchemy Core to what psycopg runs. SQLAlchemy builds statements; psycopg alone talks to the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from psycopg.types.json import Jsonb
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from grandbo.storage.tables import SCHEMA

# The server's own `$1`: the driver has nothing to rewrite on the way, which a write of many statements feels.
_dialect = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]

Executable = sa.Executable


class Column(list[Any]):
    """Values of one type, one for each of many rows. Sent in binary, which the driver cannot risk with any list."""


class ColumnOf(pg.ARRAY[Any]):
    """
    A parameter that is a column of many rows.

    A statement with such a one is planned anew each time, for the tables as they have become: a plan that was made
    while they were empty would read all of them.
    """


_WRAPPERS: tuple[tuple[type, Callable[[Any], Any]], ...] = ((pg.JSONB, Jsonb), (ColumnOf, Column))


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """SQL with numbered placeholders, the parameter behind each, values fixed in it; parameters that are wrapped."""

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]
    wrappers: Mapping[str, Callable[[Any], Any]]
    of_many: bool

    def bind(self, params: Mapping[str, Any]) -> list[Any]:
        """Values in the order of the placeholders; documents wrapped as jsonb. Raises `KeyError` for a missing one."""
        return [
            self.wrappers[name](value) if name in self.wrappers and value is not None else value
            for name in self.names
            for value in (params[name] if name in params else self.fixed[name],)
        ]


@lru_cache(maxsize=1024)
def compile_statement(statement: Executable, schema: str = SCHEMA) -> CompiledStatement:
    """
    Compile a statement once. Statements are module constants or come from cached builders, so the cache holds them.

    Args:
        schema: where the tables stand; the scratch schema of a rebuild takes the very same statements.
    """
    compiled = statement.compile(  # type: ignore[attr-defined]  # every executable here is a ClauseElement
        dialect=_dialect, schema_translate_map={SCHEMA: schema}, render_schema_translate=True
    )
    fixed = {name: bind.value for bind, name in compiled.bind_names.items() if not bind.required}
    types = {name: bind.type for bind, name in compiled.bind_names.items()}
    wrappers = {name: wrap for name, type_ in types.items() for kind, wrap in _WRAPPERS if isinstance(type_, kind)}
    of_many = Column in wrappers.values()
    return CompiledStatement(str(compiled), tuple(compiled.positiontup or ()), fixed, wrappers, of_many)
