"""The table of subscriptions, as statements see it; used by way of `tables`."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.inbox_tables import metadata

_Time = sa.DateTime(timezone=True)
_Texts = pg.ARRAY(sa.Text)

# Who is told of events, how far he has been told, and who is telling him right now.
subscriptions = sa.Table(
    "org_memory_subscriptions",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("subscription_id", sa.Uuid, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("event_types", _Texts, nullable=False),
    sa.Column("tiers", _Texts, nullable=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
    sa.Column("previous_secret", sa.LargeBinary),
    sa.Column("rotated_at", _Time),
    sa.Column("created_by", sa.Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", _Time, nullable=False),
    sa.Column("error_code", sa.Text),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("delivered_at", _Time),
    sa.Column("claim", sa.Uuid),
    sa.Column("claimed_until", _Time),
)
