"""What an entry says, as the event that it begins with anew once its past was erased."""

from __future__ import annotations

from grandbo.applicability import parse_applies
from grandbo.events.erasures import EntryKept
from grandbo.events.models import AppliesTo, Evidence, IncidentRef
from grandbo.storage.database import Row
from grandbo.types import utc_text


def kept_state(current: Row) -> EntryKept:
    """The state as it stands, as the event that the entry begins with from now on."""

    def time(name: str) -> str | None:
        return utc_text(current[name]) if current[name] else None

    def reference(name: str) -> str | None:
        return str(current[name]) if current[name] else None

    same = (
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
    )
    more = ("author_type", "external_id", "occurred_precision", "disputed")
    incident = current["incident_source"]
    return EntryKept(
        revision=current["revision"] + 1,
        tags=tuple(current["tags"]),
        applicability=tuple(
            AppliesTo(system=item.system, versions=item.versions)
            for item in map(parse_applies, current["applicability"])
        ),
        evidence=tuple(Evidence(**item) for item in current["evidence"]),
        supported_by=tuple(IncidentRef(**item) for item in current["supported_by"]),
        incident=IncidentRef(source=incident, id=current["incident_id"]) if incident is not None else None,
        claim_digest=bytes(current["claim_digest"]).hex(),
        text_digest=bytes(current["text_digest"]).hex(),
        occurred_at=time("occurred_at"),
        ended_at=time("ended_at"),
        valid_from=utc_text(current["valid_from"]),
        expires_at=utc_text(current["expires_at"]),
        verified_at=time("verified_at"),
        review_at=utc_text(current["review_at"]),
        recorded_at=utc_text(current["recorded_at"]),
        disputed_with=reference("disputed_with"),
        superseded_by=reference("superseded_by"),
        **{name: current[name] for name in (*same, *more)},
    )
