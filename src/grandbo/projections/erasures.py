"""
Erasure: everything that was derived from the erased streams goes, and what an entry keeps is built anew.

In a replay the erased events have no body any more and make no rows; what others made that bears on the entry, such as
links to it, is made and then taken out here, live and in every replay alike.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.erasures import EntryErased, EntryKept
from grandbo.events.log import RecordedEvent
from grandbo.events.subjects import SubjectErased
from grandbo.projections.entries import INSERT, applies_columns, snapshot
from grandbo.projections.terms import opened_terms, term_weights
from grandbo.storage.database import Step
from grandbo.storage.tables import candidates, embeddings, entries, events, feedback, links, revisions, terms
from grandbo.storage.tenancy import of_tenant
from grandbo.types import from_utc_text

# These take out rows of other streams than their own.
REACHING = (EntryErased, SubjectErased)
is_reaching = sa.or_(*(events.c.event_type == model.EVENT_TYPE for model in REACHING))

_ids = sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid)))

# By store, in the order in which they are counted and told.
ERASING: dict[str, sa.Delete] = {
    "terms": sa.delete(terms).where(of_tenant(terms), terms.c.entry_id == _ids),
    "embeddings": sa.delete(embeddings).where(of_tenant(embeddings), embeddings.c.entry_id == _ids),
    "revisions": sa.delete(revisions).where(of_tenant(revisions), revisions.c.entry_id == _ids),
    "entries": sa.delete(entries).where(of_tenant(entries), entries.c.entry_id == _ids),
    "candidates": sa.delete(candidates).where(of_tenant(candidates), candidates.c.candidate_id == _ids),
    "links": sa.delete(links).where(of_tenant(links), sa.or_(links.c.from_entry == _ids, links.c.to_entry == _ids)),
    "feedback": sa.delete(feedback).where(
        of_tenant(feedback), sa.or_(feedback.c.feedback_id == _ids, feedback.c.entry_id == _ids)
    ),
}


def project(event: RecordedEvent) -> list[Step]:
    """Take the rows of the erased streams out, or put what was kept in."""
    match event.data:
        case EntryErased() | SubjectErased() as erased:
            params = {"tenant_id": event.header.tenant_id, "ids": list(erased.streams)}
            return [(statement, params) for statement in ERASING.values()]
        case EntryKept() as kept:
            return [opened_terms(event, kept), (INSERT, _kept_row(event, kept)), snapshot(event)]
        case _:
            return []


def _kept_row(event: RecordedEvent, kept: EntryKept) -> dict[str, Any]:
    def time(text: str | None) -> Any:
        return from_utc_text(text) if text else None

    same = (
        "revision",
        "kind",
        "status",
        "title",
        "summary",
        "body",
        "service",
        "visibility",
        "namespace",
        "owner",
        "confidence_bp",
        "author_type",
        "external_id",
        "occurred_precision",
        "disputed",
        "disputed_with",
        "superseded_by",
    )
    times = ("occurred_at", "ended_at", "valid_from", "expires_at", "verified_at", "review_at", "recorded_at")
    return {
        "tenant_id": event.header.tenant_id,
        "entry_id": event.header.stream_id,
        "position": event.position,
        "terms": " ".join(term_weights(kept)),
        "changed_at": event.header.recorded_at,
        "tags": list(kept.tags),
        "evidence": [item.model_dump() for item in kept.evidence],
        "supported_by": [item.model_dump() for item in kept.supported_by],
        "incident_source": kept.incident.source if kept.incident else None,
        "incident_id": kept.incident.id if kept.incident else None,
        "claim_digest": bytes.fromhex(kept.claim_digest),
        "text_digest": bytes.fromhex(kept.text_digest),
        **{name: getattr(kept, name) for name in same},
        **{name: time(getattr(kept, name)) for name in times},
        **applies_columns(kept.applicability),
        "expiry_noted": None,
    }
