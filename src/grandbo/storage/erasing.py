"""The one function that may take a body out of the log. The erasure event at the position is its authority."""

from __future__ import annotations

import sqlalchemy as sa

REMOVE_BODIES = sa.select(
    sa.func.grandbo.remove_bodies(sa.bindparam("position", type_=sa.BigInteger), type_=sa.BigInteger).label("removed")
)
