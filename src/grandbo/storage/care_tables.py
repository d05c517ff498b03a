"""The tables of investigations' notes and of what the caretaker has compared; used by way of `tables`."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.inbox_tables import metadata

notes = sa.Table(
    "org_memory_notes",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("investigation_id", sa.Text, primary_key=True),
    sa.Column("note_id", sa.Uuid, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("author", sa.Text, nullable=False),
    sa.Column("tiers", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False),
)

# Up to which revision an entry was compared with its neighbours, under which version of the rules.
contradiction_checks = sa.Table(
    "org_memory_contradiction_checks",
    metadata,
    sa.Column("tenant_id", sa.Uuid, primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
)
