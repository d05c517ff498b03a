"""
Scope: everything that is decided before ranking. The rules stand here once, and both rankings use them.

Whatever lies outside the scope is not scored, not counted and not timed. The reader's row-level security repeats
tenant, tiers, status and validity; here they are explicit, and the filters that only narrow come on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.applicability import key_of
from grandbo.recall.question import DISPUTED, EXPIRED
from grandbo.storage.tenancy import of_tenant

_Texts = pg.ARRAY(sa.Text)
_Time = sa.DateTime(timezone=True)
_Keys = pg.ARRAY(sa.LargeBinary)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a recall looks."""

    tenant_id: UUID
    tiers: tuple[str, ...]
    statuses: tuple[str, ...]
    instant: datetime
    kinds: tuple[str, ...] = ()
    service: str | None = None
    namespace: str | None = None
    context: tuple[tuple[str, str], ...] = ()

    @property
    def shape(self) -> Shape:
        """Which of the optional filters are given: each shape is a statement of its own, planned for what it has."""
        return Shape(
            by_kind=bool(self.kinds),
            by_service=self.service is not None,
            by_namespace=self.namespace is not None,
            by_context=bool(self.context),
            by_disputed=DISPUTED in self.statuses,
            by_expired=EXPIRED in self.statuses,
        )

    @property
    def stored_statuses(self) -> tuple[str, ...]:
        """The statuses that rows have; the two names that are no statuses look among the published."""
        return tuple(status for status in self.statuses if status not in (DISPUTED, EXPIRED))

    @property
    def read_statuses(self) -> tuple[str, ...]:
        """What the reader must see for it."""
        also = ("published",) if DISPUTED in self.statuses else ()
        return tuple(dict.fromkeys((*self.stored_statuses, *also)))

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Systems of the context whose version is none: what depends on their version is left out."""
        return tuple(system for system, version in self.context if key_of(version) is None)

    def params(self) -> dict[str, Any]:
        """Values for the placeholders that `in_scope` and `visible` leave."""
        return {
            "tenant_id": self.tenant_id,
            "tiers": list(self.tiers),
            "statuses": list(self.stored_statuses),
            "instant": self.instant,
            "kinds": list(self.kinds),
            "service": self.service,
            "namespace": self.namespace,
            "systems": [system for system, _ in self.context],
            "version_keys": [key_of(version) for _, version in self.context],
        }


@dataclass(frozen=True, slots=True)
class Shape:
    """The optional filters in use."""

    by_kind: bool = False
    by_service: bool = False
    by_namespace: bool = False
    by_context: bool = False
    by_disputed: bool = False
    by_expired: bool = False

    @property
    def is_carried(self) -> bool:
        """Whether a vector's row says all of the scope by itself."""
        return not (self.by_namespace or self.by_context or self.by_disputed or self.by_expired)


def visible(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The tenant's rows in the caller's tiers."""
    return sa.and_(of_tenant(table), table.c.visibility == sa.any_(sa.bindparam("tiers", type_=_Texts)))


def in_scope(table: sa.FromClause, shape: Shape) -> sa.ColumnElement[bool]:
    """The scope but for applicability and namespace, on any table that carries its columns."""
    conditions = [visible(table), _stands(table, shape)]
    if shape.by_kind:
        conditions.append(table.c.kind == sa.any_(sa.bindparam("kinds", type_=_Texts)))
    if shape.by_service:
        conditions.append(table.c.service == sa.bindparam("service", type_=sa.Text))
    return sa.and_(*conditions)


def _stands(table: sa.FromClause, shape: Shape) -> sa.ColumnElement[bool]:
    """Status and validity: in date and of a status that counts; or disputed, or out of date, where that is wanted."""
    instant = sa.bindparam("instant", type_=_Time)
    has_begun, is_in_date = table.c.valid_from <= instant, table.c.expires_at > instant
    counts = table.c.status == sa.any_(sa.bindparam("statuses", type_=_Texts))
    if not (shape.by_disputed or shape.by_expired):
        return sa.and_(counts, has_begun, is_in_date)
    is_published = table.c.status == sa.literal_column("'published'")
    ways = [sa.and_(counts, is_in_date)]
    if shape.by_disputed:
        ways.append(sa.and_(is_published, is_in_date, table.c.disputed))
    if shape.by_expired:
        ways.append(sa.and_(is_published, table.c.expires_at <= instant))
    return sa.and_(has_begun, sa.or_(*ways))


def of_namespace(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The rows of the namespace that was asked for."""
    return table.c.namespace == sa.bindparam("namespace", type_=sa.Text)


def applicable(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """
    Whether a row applies to the asker's systems: of each that both name, the version lies in one of the row's ranges.

    A version that is none lies in no range, so what depends on it does not apply.
    """
    asked = (
        sa.func.unnest(
            sa.bindparam("systems", type_=_Texts),
            sa.bindparam("version_keys", type_=_Keys),
        )
        .table_valued(sa.column("system", sa.Text), sa.column("version", sa.LargeBinary), name="asked")
        .render_derived()
    )
    span = (
        sa.func.unnest(table.c.applies_systems, table.c.applies_from, table.c.applies_until)
        .table_valued(
            sa.column("system", sa.Text),
            sa.column("low", sa.LargeBinary),
            sa.column("high", sa.LargeBinary),
            name="span",
        )
        .render_derived()
    )
    one: sa.ColumnElement[int] = sa.literal_column("1")
    is_within = sa.exists(
        sa.select(one)
        .select_from(span)
        .where(span.c.system == asked.c.system, span.c.low <= asked.c.version, span.c.high > asked.c.version)
        .correlate(table, asked)
    )
    names_it = asked.c.system == sa.any_(table.c.applies_systems)
    return sa.not_(sa.exists(sa.select(one).select_from(asked).where(names_it, sa.not_(is_within)).correlate(table)))
