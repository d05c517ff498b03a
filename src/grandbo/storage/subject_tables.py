"""The tables of subjects, of their keys, of what waits to be confirmed and of erasures, as statements see them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage.inbox_tables import metadata

_Time = sa.DateTime(timezone=True)


def _tenant() -> sa.Column[Any]:
    return sa.Column("tenant_id", sa.Uuid, primary_key=True)


subject_keys = sa.Table(
    "org_memory_subject_keys",
    metadata,
    _tenant(),
    sa.Column("subject_id", sa.Uuid, primary_key=True),
    sa.Column("subject_ref", sa.LargeBinary, nullable=False),
    sa.Column("kek_epoch", sa.Integer, nullable=False),
    sa.Column("wrapped_dek", sa.LargeBinary, nullable=False),
)

# What external references are digested with, wrapped as the keys are.
subject_peppers = sa.Table(
    "org_memory_subject_peppers",
    metadata,
    _tenant(),
    sa.Column("kek_epoch", sa.Integer, nullable=False),
    sa.Column("wrapped", sa.LargeBinary, nullable=False),
)

# No name: that is in the subject's first event, under its key.
subjects = sa.Table(
    "org_memory_subjects",
    metadata,
    _tenant(),
    sa.Column("subject_id", sa.Uuid, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("reference", sa.LargeBinary),
    sa.Column("principals", pg.ARRAY(sa.Text), nullable=False),
    sa.Column("registered_at", _Time),
    sa.Column("held_by", sa.Text),
    sa.Column("held_at", _Time),
    sa.Column("hold_reason", sa.Text),
    sa.Column("erased_at", _Time),
)

# What somebody would have remembered about a subject, sealed under its key, until a person confirms it.
confirmations = sa.Table(
    "org_memory_confirmations",
    metadata,
    _tenant(),
    sa.Column("confirmation_id", sa.Uuid, primary_key=True),
    sa.Column("subject_id", sa.Uuid, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("asked_by", sa.Text, nullable=False),
    sa.Column("asked_at", _Time, nullable=False),
    sa.Column("expires_at", _Time, nullable=False),
)

erasures = sa.Table(
    "org_memory_erasures",
    metadata,
    _tenant(),
    sa.Column("erasure_id", sa.Uuid, primary_key=True),
    sa.Column("entry_id", sa.Uuid),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("keeps_current", sa.Boolean, nullable=False),
    sa.Column("requested_by", sa.Text, nullable=False),
    sa.Column("requested_at", _Time, nullable=False),
    sa.Column("confirmed_by", sa.Text),
    sa.Column("erased_at", _Time),
    sa.Column("position", sa.BigInteger),
    sa.Column("hash", sa.LargeBinary),
    sa.Column("outcome", pg.JSONB),
    sa.Column("certificate", sa.Text),
    # Of an erasure that is not of an entry.
    sa.Column("subject_id", sa.Uuid),
    # Of an erasure that is of single revisions; and in which others, by field, some of the same words stand.
    sa.Column("revisions", pg.ARRAY(sa.Integer)),
    sa.Column("still_in", pg.JSONB),
)
