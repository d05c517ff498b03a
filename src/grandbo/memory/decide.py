"""Deciders: from what is stored and what is asked to what happened. Pure: no clock, no database."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from grandbo.applicability import Applies
from grandbo.errors import InvalidInput
from grandbo.events.log import Event
from grandbo.events.models import AppliesTo, EntryCorroborated, EntryRecorded, Evidence, IncidentRef, Policy, Screened
from grandbo.memory.finding import Finding, Incident
from grandbo.types import PrincipalType, digest_of, utc_text

FUTURE_TOLERANCE = timedelta(days=1)
# What does not expire by itself. A date, so that validity stays one comparison.
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SameClaim:
    """A published entry that already makes the claim, and the incidents that taught it."""

    entry_id: UUID
    revision: int
    incidents: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class AlreadyKnown:
    """Nothing happens: the entry says this already."""

    entry_id: UUID


def text_digest(title: str, summary: str, body: str) -> str:
    """Identity of an entry's text: what vectors belong to. Hex."""
    return digest_of([title, summary, body])


def claim_digest(finding: Finding, visibility: str) -> str:
    """Identity of the claim that a finding makes; the same of two subjects is two claims. Hex."""
    tier = visibility if finding.subject is None else f"{visibility}/{finding.subject}"
    return claim_digest_of(finding.kind, tier, finding.title, finding.summary, finding.body)


def claim_digest_of(kind: str, visibility: str, title: str, summary: str, body: str) -> str:
    """Identity of a claim: kind, tier and text, but for case, width and white space. Hex."""

    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

    return digest_of([kind, visibility, plain(title), plain(summary), plain(body)])


def decide_record_finding(
    finding: Finding,
    known: Sequence[SameClaim],
    *,
    policy: Policy,
    visibility: str,
    author_type: PrincipalType,
    new_entry_id: UUID,
    now: datetime,
    screened: Screened,
    is_quarantined: bool = False,
    subject_id: UUID | None = None,
) -> Event | AlreadyKnown:
    """
    A new claim is an entry. A claim that its own incident taught before is that entry. A claim that another incident
    makes again corroborates it.
    """
    if not known:
        return Event(
            new_entry_id,
            _recorded(finding, policy, visibility, author_type, now, screened, is_quarantined),
            occurred_at=finding.occurred_at.at if finding.occurred_at else None,
            subject_id=subject_id,
            starts_stream=True,
        )
    same = known[0]
    incident = finding.incident
    if incident is None:
        return AlreadyKnown(same.entry_id)
    taught = next((entry for entry in known if (incident.source, incident.id) in entry.incidents), None)
    if taught is not None:
        return AlreadyKnown(taught.entry_id)
    return Event(
        same.entry_id,
        EntryCorroborated(revision=same.revision + 1, incident=_incident(incident), evidence=evidence_of(finding)),
        occurred_at=finding.occurred_at.at if finding.occurred_at else None,
    )


def _recorded(
    finding: Finding,
    policy: Policy,
    visibility: str,
    author_type: PrincipalType,
    now: datetime,
    screened: Screened,
    is_quarantined: bool,
) -> EntryRecorded:
    occurred = finding.occurred_at
    if occurred and occurred.at > now + FUTURE_TOLERANCE:
        raise InvalidInput("occurred_at: the time lies in the future.", field="occurred_at")
    # Valid from when it happened, so that "what was valid then" has an answer for incidents imported years later.
    valid_from = finding.valid_from.at if finding.valid_from else min(occurred.at if occurred else now, now)
    days = policy.expiry_days.get(finding.kind, 90)
    by_policy = now + timedelta(days=days) if days else NEVER
    expires_at = finding.expires_at.at if finding.expires_at else by_policy
    if expires_at <= max(now, valid_from):
        raise InvalidInput("expires_at: the time has passed already.", field="expires_at")
    return EntryRecorded(
        revision=1,
        kind=finding.kind,
        title=finding.title,
        summary=finding.summary,
        body=finding.body,
        service=finding.service,
        tags=finding.tags,
        visibility=visibility,
        namespace=finding.namespace,
        owner=finding.owner,
        applicability=applies_to(finding.applicability),
        confidence_bp=finding.confidence_bp,
        author_type=author_type,
        evidence=evidence_of(finding),
        incident=_incident(finding.incident) if finding.incident else None,
        external_id=finding.external_id,
        claim_digest=claim_digest(finding, visibility),
        text_digest=text_digest(finding.title, finding.summary, finding.body),
        occurred_at=utc_text(occurred.at) if occurred else None,
        occurred_precision=occurred.precision if occurred else None,
        ended_at=utc_text(finding.ended_at.at) if finding.ended_at else None,
        valid_from=utc_text(valid_from),
        expires_at=utc_text(expires_at),
        review_at=utc_text(now + timedelta(days=policy.review_days.get(finding.kind, 90))),
        status="quarantined" if is_quarantined else "published",
        screened=screened,
    )


def applies_to(applicability: Iterable[Applies]) -> tuple[AppliesTo, ...]:
    """What it applies to, as events have it."""
    return tuple(AppliesTo(system=item.system, versions=item.versions) for item in applicability)


def _incident(incident: Incident) -> IncidentRef:
    return IncidentRef(source=incident.source, id=incident.id)


def evidence_of(finding: Finding) -> tuple[Evidence, ...]:
    """Its evidence, as events have it."""
    return tuple(Evidence(type=item.type, uri=item.uri, label=item.label) for item in finding.evidence)
