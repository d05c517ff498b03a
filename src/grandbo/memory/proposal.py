"""
What may be proposed: a finding of any kind, or what would be remembered about a subject. Pure.

What is personal and what tells of a session go by the names that they have at their own doors (`memory_key`, `text`,
`session_id`), and are kept under those that a finding has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import field_validator

from grandbo.errors import InvalidInput, KindNotRecorded, SubjectMissing
from grandbo.finding_limits import NAME_LIMIT
from grandbo.memory.finding import Finding, Refusal, parse_finding
from grandbo.text import check_text
from grandbo.types import Kind

# By kind: the name at its own door, and the one that a finding has for it.
OWN_NAMES: dict[str, dict[str, str]] = {
    "personal": {"memory_key": "external_id", "text": "summary"},
    "episode": {"session_id": "external_id"},
}
_KEYS = {"personal": "memory_key: name the key that it is remembered under", "episode": "session_id: name the session"}
# What a fact about a subject has none of: it is one sentence or two under a key, in the subject's own tier.
_NOT_PERSONAL = (
    "body",
    "service",
    "tags",
    "incident",
    "occurred_at",
    "ended_at",
    "valid_from",
    "visibility",
    "namespace",
    "owner",
    "applicability",
)


class Proposal(Finding):
    """What the entry would say; of any kind but a note, which belongs to its investigation."""

    @field_validator("kind")
    @classmethod
    def _is_the_organisations(cls, value: Kind) -> Kind:
        if value == "note":
            raise Refusal(KindNotRecorded(field="kind"))
        return value


def in_a_findings_names(document: Mapping[str, Any], kind: object) -> dict[str, Any]:
    """
    The document with a finding's names; what is of another kind as it is.

    Raises:
        InvalidInput: the same thing under both of its names.
    """
    given = dict(document)
    for own, name in OWN_NAMES.get(str(kind), {}).items():
        if given.get(own) is None:
            given.pop(own, None)
            continue
        if given.get(name) not in (None, ""):
            raise InvalidInput(f"{own}: it is given twice, as {name} too.", field=own)
        given[name] = given.pop(own)
    return given


def in_own_names(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same document with what its kind has names of its own for said under these too."""
    return {**document, **{own: document[name] for own, name in OWN_NAMES.get(document["kind"], {}).items()}}


def check_about(document: Mapping[str, Any]) -> dict[str, Any]:
    """
    A proposal's document as a finding's. What is about a subject names it, and the key or the session.

    Raises:
        SubjectMissing, InvalidInput
    """
    kind = document.get("kind")
    given = in_a_findings_names(document, kind)
    if kind not in ("personal", "episode"):
        return given
    if not given.get("subject"):
        raise SubjectMissing(field="subject")
    key = given.get("external_id")
    if not isinstance(key, str) or not key.strip():
        raise InvalidInput(f"{_KEYS[kind]}.", field=next(iter(OWN_NAMES[kind])))
    return with_session(given, key) if kind == "episode" else given


def with_session(document: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """An episode's document with the session as its first source."""
    check_text(session_id, "session_id", limit=NAME_LIMIT, single_line=True)
    source = {"type": "session", "uri": f"urn:grandbo:session:{quote(session_id, safe='')}", "label": ""}
    return {**document, "external_id": session_id, "evidence": [source, *(document.get("evidence") or [])]}


def parse_proposal(document: Mapping[str, Any]) -> Finding:
    """
    Read what is proposed from plain values, under a finding's names.

    Raises:
        LimitExceeded, EvidenceMissing, InvalidInput
    """
    proposal = parse_finding(dict(document), Proposal)
    if proposal.kind == "personal":
        for name in _NOT_PERSONAL:
            if getattr(proposal, name):
                raise InvalidInput(
                    f"{name}: what is personal has none; it has subject, memory_key, title, text, confidence_bp, "
                    "expires_at and evidence.",
                    field=name,
                )
    return proposal
