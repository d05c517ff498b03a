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

from grandbo.storage.tenancy import of_tenant

_Texts = pg.ARRAY(sa.Text)
_Time = sa.DateTime(timezone=True)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a recall looks."""

    tenant_id: UUID
    tiers: tuple[str, ...]
    statuses: tuple[str, ...]
    instant: datetime
    kinds: tuple[str, ...] = ()
    service: str | None = None

    @property
    def shape(self) -> Shape:
        """Which of the optional filters are given: each shape is a statement of its own, planned for what it has."""
        return Shape(by_kind=bool(self.kinds), by_service=self.service is not None)

    def params(self) -> dict[str, Any]:
        """Values for the placeholders that `in_scope` and `visible` leave."""
        return {
            "tenant_id": self.tenant_id,
            "tiers": list(self.tiers),
            "statuses": list(self.statuses),
            "instant": self.instant,
            "kinds": list(self.kinds),
            "service": self.service,
        }


@dataclass(frozen=True, slots=True)
class Shape:
    """The optional filters in use."""

    by_kind: bool
    by_service: bool


def visible(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The tenant's rows in the caller's tiers."""
    return sa.and_(of_tenant(table), table.c.visibility == sa.any_(sa.bindparam("tiers", type_=_Texts)))


def in_scope(table: sa.FromClause, shape: Shape) -> sa.ColumnElement[bool]:
    """The whole scope, on any table that carries its columns."""
    instant = sa.bindparam("instant", type_=_Time)
    conditions = [
        visible(table),
        table.c.status == sa.any_(sa.bindparam("statuses", type_=_Texts)),
        table.c.valid_from <= instant,
        table.c.expires_at > instant,
    ]
    if shape.by_kind:
        conditions.append(table.c.kind == sa.any_(sa.bindparam("kinds", type_=_Texts)))
    if shape.by_service:
        conditions.append(table.c.service == sa.bindparam("service", type_=sa.Text))
    return sa.and_(*conditions)
