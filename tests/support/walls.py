"""Taking walls away, one kind at a time, to show that the others hold by themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import psycopg
import pytest

from grandbo.storage import compiling
from grandbo.storage.compiling import CompiledStatement, Executable
from grandbo.storage.tables import SCHEMA
from grandbo.storage.walls import WALLED, unwall_statements, wall_statements

Connection = psycopg.Connection[tuple[object, ...]]

_COLUMN = r"[a-z_.]*\b"
# Each predicate has its placeholder, with the cast that tells the server its type: it stays in use when the predicate
# is made true, for a placeholder that is never used has no type.
_TENANT_PREDICATE = re.compile(_COLUMN + r"tenant_id = (\$\d+::UUID)")
_SCOPE_PREDICATE = re.compile(
    _COLUMN
    + r"(?:(?:visibility|status) = ANY \((\$\d+::TEXT\[\])\)"
    + r"|(?:valid_from <=|expires_at >) (\$\d+::TIMESTAMP WITH TIME ZONE))"
)
# A table that is read or changed row by row; the plain list of tenants is no tenant's.
_READ = re.compile(r"(?:FROM|JOIN|UPDATE|,)\s+grandbo(?:_scratch)?\.(org_memory_(?!tenants\b)\w+\b)(?!\.)")


@dataclass(slots=True)
class Stripped:
    """What was taken out of the statements that ran, and which had too little to take out."""

    tenant: int = 0
    scope: int = 0
    tables_read: int = 0
    unguarded: set[str] = field(default_factory=set)


def without_predicates(patch: pytest.MonkeyPatch) -> Stripped:
    """From now on no statement names its tenant, nor the reader's scope: row-level security alone is left."""
    stripped = Stripped()

    def compile_bare(statement: Executable, schema: str = SCHEMA) -> CompiledStatement:
        compiled = compiling.compile_statement(statement, schema)
        bare, tenants = _TENANT_PREDICATE.subn(_always_true, compiled.sql)
        bare, scopes = _SCOPE_PREDICATE.subn(_always_true, bare)
        stripped.tenant += tenants
        stripped.scope += scopes
        read = len(_READ.findall(compiled.sql))
        stripped.tables_read += read
        if tenants < read:
            stripped.unguarded.add(compiled.sql)
        return replace(compiled, sql=bare)

    patch.setattr("grandbo.storage.database.compile_statement", compile_bare)
    return stripped


def _always_true(found: re.Match[str]) -> str:
    (placeholder,) = (group for group in found.groups() if group)
    return f"({placeholder} IS NULL OR true)"


def without_row_security(conn: Connection) -> None:
    """No table has row-level security any more: the explicit predicates alone are left."""
    for schema, policies in WALLED.items():
        for table in policies:
            conn.execute(f"ALTER TABLE {schema}.{table} DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY")


def as_distributed(conn: Connection) -> None:
    """The policies in the form of a distributed server: without the restrictive walls, without sub-selects."""
    for schema, policies in WALLED.items():
        for statement in unwall_statements(schema, policies):
            conn.execute(statement)
        for statement in wall_statements(schema, policies, distributed=True):
            conn.execute(statement)
