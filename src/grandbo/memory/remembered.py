"""A fact about a subject: what it says and who says so, and what becomes of the one that stood under its key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import NotFound, QuotaExceeded, SubjectErased
from grandbo.events.log import Event
from grandbo.events.models import (
    EntryCorrected,
    EntryExpirySet,
    EntryRecorded,
    EntrySuperseded,
    Evidence,
    Policy,
    Screened,
)
from grandbo.events.parts import EventBody
from grandbo.memory.decide import claim_digest_of, text_digest
from grandbo.memory.subjects import Subject, private_tier, refuse_held
from grandbo.storage.database import Row, Step
from grandbo.storage.tables import entries, events
from grandbo.storage.tenancy import of_tenant
from grandbo.types import PrincipalType, from_utc_text, new_id, utc_text

# A fact that stays as it is and only lasts longer by less than this is left alone.
RENEWED_BY = timedelta(days=1)
_AGAIN = "Said again under its key."
_LONGER = "Said again; it lasts as long as the later one says."
_OTHER_AUTHOR = "Said anew under its key, by somebody of another type."


@dataclass(frozen=True, slots=True)
class Author:
    """Who says it: an agent's inference is never shown as a person's statement."""

    ref: str
    type: PrincipalType

    def evidence(self) -> Evidence:
        """Where the fact comes from."""
        kind, label = ("statement", "said by a person") if self.type == "human" else ("inference", "inferred, not said")
        return Evidence(type=kind, uri=f"grandbo:principal/{self.ref}", label=label)


@dataclass(frozen=True, slots=True)
class Fact:
    """What is to be remembered, as the screen let it pass; `sources`: what it rests on besides its author's word."""

    memory_key: str
    title: str
    text: str
    confidence_bp: int
    expires_at: datetime
    author: Author
    screened: Screened
    sources: tuple[Evidence, ...] = ()

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Who says it, and what it rests on."""
        return (self.author.evidence(), *self.sources)

    def shown(self) -> dict[str, Any]:
        """What a preview says of it."""
        return {
            "memory_key": self.memory_key,
            "title": self.title,
            "text": self.text,
            "confidence_bp": self.confidence_bp,
            "author": {"principal": self.author.ref, "type": self.author.type},
            "is_inference": self.author.type != "human",
            "expires_at": utc_text(self.expires_at),
        }

    def dumped(self) -> bytes:
        """As bytes that are sealed."""
        document = self.shown() | {"screened": self.screened.model_dump(mode="json")}
        return json.dumps(document, ensure_ascii=False).encode()

    @classmethod
    def loaded(cls, sealed: bytes) -> Fact:
        """From what `dumped` gave."""
        document = json.loads(sealed)
        return cls(
            memory_key=document["memory_key"],
            title=document["title"],
            text=document["text"],
            confidence_bp=document["confidence_bp"],
            expires_at=from_utc_text(document["expires_at"]),
            author=Author(document["author"]["principal"], document["author"]["type"]),
            screened=Screened.model_validate(document["screened"]),
        )


_STANDING = (
    sa.select(entries, events.c.hash)
    .join(events, sa.and_(events.c.tenant_id == entries.c.tenant_id, events.c.position == entries.c.position))
    .where(
        of_tenant(entries),
        of_tenant(events),
        entries.c.status == "published",
        entries.c.visibility == sa.bindparam("tier", type_=sa.Text),
        entries.c.kind == "personal",
    )
    .order_by(entries.c.entry_id)
)


def same_fact_query(tenant_id: UUID, subject_id: UUID) -> Step:
    """All that stands about a subject: as many as its quota allows, out of date ones included."""
    return _STANDING, {"tenant_id": tenant_id, "tier": private_tier(subject_id)}


def decide_remember(
    fact: Fact, subject: Subject | None, standing: Sequence[Row], policy: Policy, now: datetime
) -> list[Event]:
    """
    A new key is an entry. A known key is that entry with the new text, or where somebody of another type says so a new
    one that takes its place. The same again lasts longer, or is nothing.
    """
    if subject is None:
        raise NotFound("There is no such subject in this tenant.")
    if subject.state == "erased":
        raise SubjectErased
    known = next((row for row in standing if row["external_id"] == fact.memory_key), None)
    if known is None:
        in_date = sum(row["expires_at"] > now for row in standing)
        if in_date >= policy.people.quota:
            raise QuotaExceeded(
                f"{in_date} things are remembered about this subject, of {policy.people.quota} that the policy allows: "
                "say one anew under its key, or let one expire.",
                limit=policy.people.quota,
            )
        return [_recorded(fact, subject, policy, now)]
    # What is held must be shown as it was when the hold was set.
    refuse_held(subject)
    if known["author_type"] != fact.author.type:
        made = _recorded(fact, subject, policy, now)
        gone = EntrySuperseded(revision=known["revision"] + 1, reason=_OTHER_AUTHOR, superseded_by=str(made.stream_id))
        return [Event(known["entry_id"], gone, subject_id=subject.subject_id), made]
    return [Event(known["entry_id"], body, subject_id=subject.subject_id) for body in _changes(fact, known)]


def _changes(fact: Fact, known: Row) -> list[EventBody]:
    bodies: list[EventBody] = []
    revision = known["revision"]
    said = {"title": fact.title, "summary": fact.text, "confidence_bp": fact.confidence_bp}
    changed = tuple(name for name, value in said.items() if known[name] != value)
    if changed:
        revision += 1
        bodies.append(_corrected(fact, known, revision, changed))
    if (changed and fact.expires_at != known["expires_at"]) or fact.expires_at > known["expires_at"] + RENEWED_BY:
        bodies.append(EntryExpirySet(revision=revision + 1, reason=_LONGER, expires_at=utc_text(fact.expires_at)))
    return bodies


def _corrected(fact: Fact, known: Row, revision: int, changed: tuple[str, ...]) -> EntryCorrected:
    return EntryCorrected(
        revision=revision,
        reason=_AGAIN,
        title=fact.title,
        summary=fact.text,
        body="",
        service="",
        tags=(),
        confidence_bp=fact.confidence_bp,
        evidence=fact.evidence,
        occurred_at=None,
        occurred_precision=None,
        ended_at=None,
        visibility=known["visibility"],
        claim_digest=claim_digest_of("personal", known["visibility"], fact.title, fact.text, fact.memory_key),
        text_digest=text_digest(fact.title, fact.text, ""),
        changed=changed,
        screened=fact.screened,
    )


def _recorded(fact: Fact, subject: Subject, policy: Policy, now: datetime) -> Event:
    body = EntryRecorded(
        revision=1,
        kind="personal",
        title=fact.title,
        summary=fact.text,
        body="",
        service="",
        tags=(),
        visibility=subject.tier,
        namespace="",
        owner=None,
        applicability=(),
        confidence_bp=fact.confidence_bp,
        author_type=fact.author.type,
        evidence=fact.evidence,
        incident=None,
        external_id=fact.memory_key,
        claim_digest=claim_digest_of("personal", subject.tier, fact.title, fact.text, fact.memory_key),
        text_digest=text_digest(fact.title, fact.text, ""),
        occurred_at=None,
        occurred_precision=None,
        ended_at=None,
        valid_from=utc_text(now),
        expires_at=utc_text(fact.expires_at),
        review_at=utc_text(now + timedelta(days=policy.review_days.get("personal", 90))),
        status="published",
        screened=fact.screened,
    )
    return Event(new_id(), body, subject_id=subject.subject_id, starts_stream=True)
