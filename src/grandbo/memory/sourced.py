"""
Entries whose truth stands in a document elsewhere: recorded once, corrected when the document changed, never doubled.

The evidence of such an entry carries the revision of the document that it was made from. So it is plain which entries a
change concerns, a person's own correction stays until the document itself changes, and nothing else has to be kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import Policy
from grandbo.finding_limits import EVIDENCE_LIMIT, FOLLOW_UP
from grandbo.memory.policy import require, visible_tiers
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal, derived_id, digest_of

# What a correction may change; the rest of an entry is set when it is recorded, and is the reviewers' from then on.
FOLLOWED = ("title", "summary", "body", "service", "tags", "evidence", "occurred_at", "ended_at")
# Types of the evidence that a document gives; whatever else an entry rests on came to it from elsewhere.
TAKEN_TYPES = frozenset({"postmortem", "runbook", "document", "link", FOLLOW_UP})
_LENGTH = 12
_MARK = re.compile(rf" @ ([0-9a-f]{{{_LENGTH}}})$")
LABEL_LIMIT = 200

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
_ENTRIES = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.status,
        entries.c.title,
        entries.c.incident_id.label("external_id"),
        entries.c.evidence,
        entries.c.applicability,
    )
    .where(
        of_tenant(entries),
        entries.c.incident_source == sa.bindparam("source"),
        entries.c.visibility == sa.any_(_tiers),
    )
    .order_by(entries.c.recorded_at, entries.c.entry_id)
)
_PENDING = (
    sa.select(
        candidates.c.candidate_id,
        candidates.c.version,
        candidates.c.incident_id.label("external_id"),
        candidates.c.content,
    )
    .where(
        of_tenant(candidates),
        candidates.c.status == "pending",
        candidates.c.incident_source == sa.bindparam("source"),
        candidates.c.visibility == sa.any_(_tiers),
    )
    .order_by(candidates.c.proposed_at, candidates.c.candidate_id)
)


@dataclass(frozen=True, slots=True)
class Known:
    """An entry, or a candidate that waits, of a document: its id, and the revision of the document that it is of."""

    id: UUID
    revision: int
    status: str
    title: str
    evidence: tuple[Mapping[str, str], ...]
    applicability: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The revision of the document; empty where a person took it out of the evidence."""
        # A merge keeps the evidence of before in front of what came with it.
        marks = [found[1] for item in self.evidence if (found := _MARK.search(item.get("label", "")))]
        return marks[-1] if marks else ""


def known_entries(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, source: str
) -> dict[str, Known]:
    """The entries of a source by the ids that their documents have there, within the caller's tiers."""
    rows = _read(database, tenant_id, principal, policy, source, _ENTRIES)
    return {
        row["external_id"]: Known(
            row["entry_id"],
            row["revision"],
            row["status"],
            row["title"],
            tuple(row["evidence"]),
            tuple(row["applicability"]),
        )
        for row in reversed(rows)
    }


def known_candidates(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, source: str
) -> dict[str, Known]:
    """The candidates of a source that wait, likewise."""
    rows = _read(database, tenant_id, principal, policy, source, _PENDING)
    return {
        row["external_id"]: Known(
            row["candidate_id"],
            row["version"],
            "pending",
            row["content"]["title"],
            tuple(row["content"]["evidence"]),
        )
        for row in reversed(rows)
    }


def _read(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, source: str, statement: sa.Select[Any]
) -> list[Row]:
    require(principal, "record" if statement is _ENTRIES else "propose")
    wanted = {"tenant_id": tenant_id, "source": source, "tiers": list(visible_tiers(policy, principal))}
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return list(transaction.execute(statement, wanted))


def marked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its revision in the label of its first evidence."""
    first, *rest = document["evidence"]
    mark = mark_of(document)
    room = LABEL_LIMIT - len(mark) - 3
    label = first.get("label") or first["type"]
    return {**document, "evidence": [{**first, "label": f"{label[:room]} @ {mark}"}, *rest]}


def mark_of(document: Mapping[str, Any]) -> str:
    """The revision of a document: the digest of all that an entry takes from it."""
    said = {name: document.get(name) for name in (*FOLLOWED, "applicability")}
    return digest_of(said)[:_LENGTH]


def corrections(document: Mapping[str, Any], known: Known) -> dict[str, Any]:
    """What a correction sets: all that the document says, beside the evidence that did not come from it."""
    said = {name: document[name] for name in FOLLOWED if document.get(name) is not None}
    named = {item["uri"] for item in document["evidence"]}
    others = [dict(item) for item in known.evidence if item["uri"] not in named and item["type"] not in TAKEN_TYPES]
    return {**said, "evidence": [*document["evidence"], *others][:EVIDENCE_LIMIT]}


def command_id(act: str, document: Mapping[str, Any], visibility: str, known: Known | None = None) -> UUID:
    """
    One id for the same act on the same revision of the same document and the same state of what is known of it, so that
    a retry is a no-op. The tier is part of it, as everywhere where an id is derived.
    """
    incident = document["incident"]
    state = [str(known.id), str(known.revision)] if known is not None else []
    return derived_id("document", act, visibility, incident["source"], incident["id"], mark_of(document), *state)


def vanished(known: Mapping[str, Known], present: Iterable[str], within: str = "") -> dict[str, Known]:
    """What is in force, or waits, of documents that are no more; of those alone whose ids begin so."""
    still = set(present)
    return {
        name: found
        for name, found in known.items()
        if name not in still and name.startswith(within) and found.status in ("published", "pending")
    }
