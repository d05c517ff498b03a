"""From SQLAlchemy Core to what psycopg runs. SQLAlchemy builds statements; psycopg alone talks to the server."""

from __future__ import annotations

from collections.abc import Mapping
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


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """SQL with numbered placeholders, the parameter behind each, values fixed in the statement, jsonb parameters."""

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]
    json_names: frozenset[str]

    def bind(self, params: Mapping[str, Any]) -> list[Any]:
        """Values in the order of the placeholders; documents wrapped as jsonb. Raises `KeyError` for a missing one."""
        return [
            Jsonb(value) if name in self.json_names and value is not None else value
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
    json_names = frozenset(name for bind, name in compiled.bind_names.items() if isinstance(bind.type, pg.JSONB))
    return CompiledStatement(str(compiled), tuple(compiled.positiontup or ()), fixed, json_names)
