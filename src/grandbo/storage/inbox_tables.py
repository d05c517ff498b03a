"""The tables of hooks, their inbox and the incidents, as statements see them; used by way of `tables`."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

SCHEMA = "grandbo"

metadata = sa.MetaData(schema=SCHEMA)

_Time = sa.DateTime(timezone=True)
_Texts = pg.ARRAY(sa.Text)


def _tenant() -> sa.Column[Any]:
    return sa.Column("tenant_id", sa.Uuid, primary_key=True)


hooks = sa.Table(
    "org_memory_hooks",
    metadata,
    _tenant(),
    sa.Column("hook_id", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("direct", sa.Boolean, nullable=False),
    sa.Column("takes_private", sa.Boolean, nullable=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
    sa.Column("previous_secret", sa.LargeBinary),
    sa.Column("rotated_at", _Time),
    sa.Column("created_at", _Time, nullable=False),
)

# What was delivered: the bytes, until some time after they were mapped, and what became of them.
inbox = sa.Table(
    "org_memory_inbox",
    metadata,
    _tenant(),
    sa.Column("delivery_id", sa.Uuid, primary_key=True),
    sa.Column("hook_id", sa.Text, nullable=False),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("delivery_key", sa.LargeBinary, nullable=False),
    sa.Column("received_at", _Time, nullable=False),
    sa.Column("verified_by", sa.Text, nullable=False),
    sa.Column("headers", pg.JSONB, nullable=False),
    sa.Column("body", sa.LargeBinary),
    sa.Column("body_bytes", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", _Time, nullable=False),
    sa.Column("incident_ids", _Texts, nullable=False),
    sa.Column("error_code", sa.Text),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("outcomes", pg.JSONB, nullable=False),
    sa.Column("done_at", _Time),
    # Whom it is about, where a person has named somebody.
    sa.Column("subject_id", sa.Uuid),
)

# What the deliveries of one incident have said so far, and what the memory was told of it.
incidents = sa.Table(
    "org_memory_incidents",
    metadata,
    _tenant(),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("incident_id", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("said", pg.JSONB, nullable=False),
    sa.Column("is_private", sa.Boolean, nullable=False),
    sa.Column("applied", pg.JSONB),
    sa.Column("candidate_id", sa.Uuid),
    sa.Column("entry_id", sa.Uuid),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("changed_at", _Time, nullable=False),
    sa.Column("subject_id", sa.Uuid),
)
