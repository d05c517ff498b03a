"""
The tables, as statements see them. The DDL itself is written by hand in `migrations/`; a test holds the two together.

Entry state is one list of columns, used by the current rows and by the revisions, so that a revision is a full
snapshot by construction.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.storage import subject_tables
from grandbo.storage.care_tables import contradiction_checks as contradiction_checks
from grandbo.storage.care_tables import notes as notes
from grandbo.storage.inbox_tables import SCHEMA as SCHEMA
from grandbo.storage.inbox_tables import hooks as hooks
from grandbo.storage.inbox_tables import inbox as inbox
from grandbo.storage.inbox_tables import incidents as incidents
from grandbo.storage.inbox_tables import metadata as metadata
from grandbo.storage.subscription_tables import subscriptions as subscriptions
from grandbo.storage.vectors import Signature, Vector

SCRATCH_SCHEMA = "grandbo_scratch"

_Time = sa.DateTime(timezone=True)
_Texts = pg.ARRAY(sa.Text)
_Keys = pg.ARRAY(sa.LargeBinary)


def _tenant() -> sa.Column[Any]:
    return sa.Column("tenant_id", sa.Uuid, primary_key=True)


tenants = sa.Table("org_memory_tenants", metadata, sa.Column("tenant_id", sa.Uuid, primary_key=True))

heads = sa.Table(
    "org_memory_heads",
    metadata,
    _tenant(),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    sa.Column("recorded_at", _Time, nullable=False),
    sa.Column("at_position", sa.BigInteger, sa.Computed("nullif(position, 0)", persisted=True)),
)

events = sa.Table(
    "org_memory_events",
    metadata,
    _tenant(),
    sa.Column("position", sa.BigInteger, primary_key=True),
    sa.Column("event_id", sa.Uuid, nullable=False),
    sa.Column("stream_id", sa.Uuid, nullable=False),
    sa.Column("stream_version", sa.Integer, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("schema_version", sa.Integer, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("subject_id", sa.Uuid),
    sa.Column("command_id", sa.Uuid, nullable=False),
    sa.Column("command_index", sa.Integer, nullable=False),
    sa.Column("correlation_id", sa.Uuid),
    sa.Column("causation_id", sa.Uuid),
    sa.Column("occurred_at", _Time, nullable=False),
    sa.Column("recorded_at", _Time, nullable=False),
    sa.Column("envelope", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary),
    sa.Column("salt", sa.LargeBinary),
    sa.Column("prev_position", sa.BigInteger, sa.Computed("nullif(position - 1, 0)", persisted=True)),
    sa.Column("prev_hash", sa.LargeBinary, nullable=False),
    sa.Column("hash", sa.LargeBinary, nullable=False),
)

checkpoints = sa.Table(
    "org_memory_checkpoints",
    metadata,
    _tenant(),
    sa.Column("size", sa.BigInteger, primary_key=True),
    sa.Column("root", sa.LargeBinary, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("made_at", _Time, nullable=False, server_default=sa.func.clock_timestamp()),
    sa.Column(
        "is_full", sa.Boolean, sa.Computed(r"position(E'\nprojections ' in note) > 0", persisted=True), primary_key=True
    ),
)


def _state() -> list[sa.Column[Any]]:
    """What an entry is at one revision."""
    return [
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("service", sa.Text, nullable=False),
        sa.Column("tags", _Texts, nullable=False),
        sa.Column("visibility", sa.Text, nullable=False),
        sa.Column("confidence_bp", sa.Integer, nullable=False),
        sa.Column("author_type", sa.Text, nullable=False),
        sa.Column("evidence", pg.JSONB, nullable=False),
        sa.Column("incident_source", sa.Text),
        sa.Column("incident_id", sa.Text),
        sa.Column("external_id", sa.Text),
        sa.Column("claim_digest", sa.LargeBinary, nullable=False),
        sa.Column("text_digest", sa.LargeBinary, nullable=False),
        sa.Column("occurred_at", _Time),
        sa.Column("occurred_precision", sa.Text),
        sa.Column("ended_at", _Time),
        sa.Column("valid_from", _Time, nullable=False),
        sa.Column("expires_at", _Time, nullable=False),
        sa.Column("verified_at", _Time),
        sa.Column("review_at", _Time, nullable=False),
        sa.Column("disputed", sa.Boolean, nullable=False),
        sa.Column("supported_by", pg.JSONB, nullable=False),
        sa.Column("recorded_at", _Time, nullable=False),
        sa.Column("changed_at", _Time, nullable=False),
        sa.Column("disputed_with", sa.Uuid),
        sa.Column("superseded_by", sa.Uuid),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("applicability", _Texts, nullable=False),
        sa.Column("applies_systems", _Texts, nullable=False),
        sa.Column("applies_from", _Keys, nullable=False),
        sa.Column("applies_until", _Keys, nullable=False),
    ]


STATE_COLUMNS: tuple[str, ...] = tuple(column.name for column in _state())

entries = sa.Table(
    "org_memory_entries",
    metadata,
    _tenant(),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("terms", _Texts, nullable=False),
    *_state(),
    # The expiry that the sweep has put on the record; no answer goes by it.
    sa.Column("expiry_noted", _Time),
)

revisions = sa.Table(
    "org_memory_revisions",
    metadata,
    _tenant(),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("from_position", sa.BigInteger, nullable=False),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    *_state(),
)

terms = sa.Table(
    "org_memory_terms",
    metadata,
    _tenant(),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("from_position", sa.BigInteger, primary_key=True),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("weight", sa.Integer, nullable=False),
    sa.Column("visibility", sa.Text, primary_key=True),
)

embeddings = sa.Table(
    "org_memory_embeddings",
    metadata,
    _tenant(),
    sa.Column("stamp", sa.Text, primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("window_no", sa.Integer, primary_key=True),
    sa.Column("from_position", sa.BigInteger, primary_key=True),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("text_digest", sa.LargeBinary, nullable=False),
    sa.Column("window_start", sa.Integer, nullable=False),
    sa.Column("window_end", sa.Integer, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("visibility", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("service", sa.Text, nullable=False),
    sa.Column("valid_from", _Time, nullable=False),
    sa.Column("expires_at", _Time, nullable=False),
    sa.Column("vector", Vector, nullable=False),
    sa.Column("signature", Signature, nullable=False),
)

policies = sa.Table(
    "org_memory_policies",
    metadata,
    _tenant(),
    sa.Column("from_position", sa.BigInteger, primary_key=True),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("policy", pg.JSONB, nullable=False),
    sa.Column("changed_at", _Time, nullable=False),
)

links = sa.Table(
    "org_memory_links",
    metadata,
    _tenant(),
    sa.Column("from_entry", sa.Uuid, primary_key=True),
    sa.Column("link_type", sa.Text, primary_key=True),
    sa.Column("to_entry", sa.Uuid, primary_key=True),
    sa.Column("from_position", sa.BigInteger, primary_key=True),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("linked_at", _Time, nullable=False),
)

candidates = sa.Table(
    "org_memory_candidates",
    metadata,
    _tenant(),
    sa.Column("candidate_id", sa.Uuid, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("visibility", sa.Text, nullable=False),
    sa.Column("claim_digest", sa.LargeBinary, nullable=False),
    sa.Column("incident_source", sa.Text),
    sa.Column("incident_id", sa.Text),
    sa.Column("content", pg.JSONB, nullable=False),
    sa.Column("flags", _Texts, nullable=False),
    sa.Column("risk", sa.Integer, nullable=False),
    sa.Column("into_entry", sa.Uuid),
    sa.Column("author_type", sa.Text, nullable=False),
    sa.Column("proposed_by", sa.Text, nullable=False),
    sa.Column("proposal_reason", sa.Text, nullable=False),
    sa.Column("approved_by", _Texts, nullable=False),
    sa.Column("decided_by", sa.Text),
    sa.Column("decision_reason", sa.Text),
    sa.Column("outcome", sa.Text),
    sa.Column("entry_id", sa.Uuid),
    sa.Column("entry_revision", sa.Integer),
    sa.Column("proposed_at", _Time, nullable=False),
    sa.Column("changed_at", _Time, nullable=False),
    sa.Column("disputes", sa.Uuid),
    sa.Column("other_revision", sa.Integer),
)

feedback = sa.Table(
    "org_memory_feedback",
    metadata,
    _tenant(),
    sa.Column("feedback_id", sa.Uuid, primary_key=True),
    sa.Column("from_position", sa.BigInteger, primary_key=True),
    sa.Column("to_position", sa.BigInteger),
    sa.Column("receipt_id", sa.Uuid, nullable=False),
    sa.Column("entry_id", sa.Uuid, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
    sa.Column("given_at", _Time, nullable=False),
)

subjects, subject_keys = subject_tables.subjects, subject_tables.subject_keys
subject_peppers, confirmations = subject_tables.subject_peppers, subject_tables.confirmations

# Derived from the log, rebuilt from the log, left out of backups. Parents before children.
PROJECTIONS: tuple[sa.Table, ...] = (
    policies,
    entries,
    revisions,
    terms,
    embeddings,
    links,
    candidates,
    feedback,
    subjects,
)

# -- operational: not derived from events, never rebuilt ---------------------------------------------------------------

principals = sa.Table(
    "org_memory_principals",
    metadata,
    _tenant(),
    sa.Column("principal_id", sa.Uuid, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

api_keys = sa.Table(
    "org_memory_api_keys",
    metadata,
    _tenant(),
    sa.Column("key_id", sa.Text, primary_key=True),
    sa.Column("secret_digest", sa.LargeBinary, nullable=False),
    sa.Column("principal_id", sa.Uuid, nullable=False),
    sa.Column("roles", _Texts, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
    sa.Column("revoked_at", _Time),
    sa.Column("expires_at", _Time),
    sa.Column("read_only", sa.Boolean, nullable=False),
)

embedding_attempts = sa.Table(
    "org_memory_embedding_attempts",
    metadata,
    _tenant(),
    sa.Column("stamp", sa.Text, primary_key=True),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("text_digest", sa.LargeBinary, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", _Time, nullable=False),
    sa.Column("dead", sa.Boolean, nullable=False),
    sa.Column("last_error", sa.Text, nullable=False),
)

receipt_keys = sa.Table(
    "org_memory_receipt_keys",
    metadata,
    _tenant(),
    sa.Column("epoch", sa.Integer, primary_key=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
    sa.Column("created_at", _Time, nullable=False),
)

receipts = sa.Table(
    "org_memory_receipts",
    metadata,
    _tenant(),
    sa.Column("receipt_id", sa.Uuid, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("instant", _Time, nullable=False),
    sa.Column("principal", sa.Text, nullable=False),
    sa.Column("key_epoch", sa.Integer, nullable=False),
    sa.Column("topic_hmac", sa.LargeBinary, nullable=False),
    sa.Column("parameters", pg.JSONB, nullable=False),
    sa.Column("searched", pg.JSONB, nullable=False),
    sa.Column("matches", pg.JSONB, nullable=False),
    sa.Column("made_at", _Time, nullable=False),
    sa.Column("took_us", sa.Integer),
)

# Which receipts served an entry.
receipt_entries = sa.Table(
    "org_memory_receipt_entries",
    metadata,
    _tenant(),
    sa.Column("entry_id", sa.Uuid, primary_key=True),
    sa.Column("receipt_id", sa.Uuid, primary_key=True),
    sa.Column("revision", sa.Integer, nullable=False),
)

erasures = subject_tables.erasures

OPERATIONAL: tuple[sa.Table, ...] = (
    principals,
    api_keys,
    embedding_attempts,
    receipt_keys,
    receipts,
    receipt_entries,
    notes,
    contradiction_checks,
    erasures,
    hooks,
    inbox,
    incidents,
    confirmations,
    subscriptions,
)
