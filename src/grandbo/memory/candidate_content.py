"""What a candidate says: from a finding and back, what a reviewer sees first, what a merge would change. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from grandbo.applicability import Applies
from grandbo.errors import InvalidInput, OriginMissing
from grandbo.events.candidates import CandidateContent
from grandbo.events.models import IncidentRef
from grandbo.memory.decide import applies_to, claim_digest, claim_digest_of, evidence_of, text_digest
from grandbo.memory.finding import Finding
from grandbo.memory.proposal import OWN_NAMES, in_a_findings_names, in_own_names, parse_proposal
from grandbo.text import check_text
from grandbo.types import Moment, PrincipalType, utc_text

# Kinds that are read as guidance, not as a report of what happened: an error in them does the most harm.
GUIDANCE = frozenset({"runbook", "reference", "decision"})
_PRECISION_LENGTH: dict[str, int] = {"year": 4, "month": 7, "day": 10}
ORIGIN_TYPES = ("conversation", "person")
ORIGIN_LIMIT = 200


def content_of(finding: Finding, visibility: str) -> CandidateContent:
    """A finding as a candidate keeps it."""
    occurred = finding.occurred_at
    claim = claim_digest(finding, visibility)
    if finding.kind == "personal":
        claim = claim_digest_of(finding.kind, visibility, finding.title, finding.summary, finding.external_id or "")
    return CandidateContent(
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
        evidence=evidence_of(finding),
        incident=IncidentRef(source=finding.incident.source, id=finding.incident.id) if finding.incident else None,
        external_id=finding.external_id,
        occurred_at=utc_text(occurred.at) if occurred else None,
        occurred_precision=occurred.precision if occurred else None,
        ended_at=_time(finding.ended_at),
        valid_from=_time(finding.valid_from),
        expires_at=_time(finding.expires_at),
        claim_digest=claim,
        text_digest=text_digest(finding.title, finding.summary, finding.body),
    )


def finding_of(
    content: CandidateContent, changes: Mapping[str, Any] | None = None, subject_id: UUID | None = None
) -> Finding:
    """
    The finding that a candidate would be, with some fields replaced.

    Args:
        subject_id: whom it is about.

    Raises:
        InvalidInput: a field that is none, a value that it cannot have, or what would be about somebody else, or seen
            by others, than what was proposed.
    """
    given = in_a_findings_names(
        {name: value for name, value in (changes or {}).items() if value is not None}, content.kind
    )
    unknown = sorted(set(given) - set(Finding.model_fields))
    if unknown:
        known = ", ".join((*Finding.model_fields, *OWN_NAMES.get(content.kind, {})))
        raise InvalidInput(f"{unknown[0][:100]}: name some of {known}.", field=unknown[0])
    if "subject" in given:
        raise InvalidInput(
            "subject: it is named when it is proposed; propose it anew under its subject.", field="subject"
        )
    kind = given.get("kind", content.kind)
    if kind != content.kind and not {kind, content.kind}.isdisjoint(OWN_NAMES):
        raise InvalidInput(
            f"kind: what was proposed as {content.kind} does not become {str(kind)[:100]}; propose it anew.",
            field="kind",
        )
    document = document_of(content) | given
    if content.kind == "personal" and "visibility" not in given:
        # Its tier is its subject's own, which nobody chooses.
        document["visibility"] = None
    return parse_proposal(document | {"subject": str(subject_id) if subject_id else None})


def document_of(content: CandidateContent) -> dict[str, Any]:
    """The content as a document that could have been submitted."""
    document = content.model_dump(mode="json", exclude={"claim_digest", "text_digest", "occurred_precision"})
    document["applicability"] = [str(Applies(item.system, item.versions)) for item in content.applicability]
    if content.occurred_at and content.occurred_precision:
        length = _PRECISION_LENGTH.get(content.occurred_precision)
        document["occurred_at"] = content.occurred_at[:length]
    return document


def shown_content(content: CandidateContent) -> dict[str, Any]:
    """The same as a reviewer sees it."""
    return in_own_names(document_of(content))


def flags_of(
    content: CandidateContent, author_type: PrincipalType, screen_flags: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """What a reviewer should see at first sight; `screen_flags`: what the screen had to say."""
    signs = {
        "inference": author_type == "agent",
        "guidance": content.kind in GUIDANCE,
        "no_incident": content.incident is None and content.kind not in OWN_NAMES,
        "no_cause": content.kind == "finding" and not content.summary and not content.body,
        "hearsay": all(item.type in ("conversation", "person") for item in content.evidence),
        "redacted": any("[REDACTED:" in text for text in (content.title, content.summary, content.body)),
    }
    return tuple(dict.fromkeys((*(name for name, holds in signs.items() if holds), *screen_flags)))


_RISKS = {
    "inference": 20,
    "guidance": 30,
    "no_incident": 10,
    "no_cause": 10,
    "hearsay": 20,
    "redacted": 10,
    "screen_secrets": 30,
    "screen_instructions": 40,
    "screen_smuggled": 40,
    "screen_hidden": 10,
    "screen_entropy": 20,
    "screen_personal": 10,
    "screen_mixed_script": 10,
}


def risk_of(flags: tuple[str, ...]) -> int:
    """0 to 100: what a mistake would cost and how likely it is, by its flags. The queue shows the largest first."""
    return min(100, sum(_RISKS.get(flag, 0) for flag in flags))


def merged_changes(content: CandidateContent, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a merge changes in the entry: the candidate's text, and the tags and evidence of both."""
    changes: dict[str, Any] = {
        name: getattr(content, name) for name in ("title", "summary", "body") if getattr(content, name)
    }
    tags = tuple(dict.fromkeys((*entry["tags"], *content.tags)))
    evidence = [*entry["evidence"]]
    evidence += [item.model_dump() for item in content.evidence if item.model_dump() not in evidence]
    return {**changes, "tags": list(tags), "evidence": evidence}


def with_origin(document: Mapping[str, Any], origin: Mapping[str, str] | None) -> dict[str, Any]:
    """The document, with a piece of evidence that names where it was said where it has none."""
    given = dict(document)
    if given.get("evidence"):
        return given
    kind, ref = (origin or {}).get("type"), (origin or {}).get("ref")
    if kind not in ORIGIN_TYPES or not isinstance(ref, str) or not ref.strip():
        raise OriginMissing(field="evidence")
    check_text(ref, "origin.ref", limit=ORIGIN_LIMIT, single_line=True)
    label = (origin or {}).get("label") or f"said in a {kind}" if kind == "conversation" else "said by a person"
    return {**given, "evidence": [{"type": kind, "uri": f"urn:grandbo:{kind}:{_quoted(ref)}", "label": label}]}


def _quoted(ref: str) -> str:
    return quote(ref.strip(), safe="")


def _time(moment: Moment | None) -> str | None:
    return utc_text(moment.at) if moment else None
