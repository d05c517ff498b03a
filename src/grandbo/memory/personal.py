"""
What is remembered about one person or workspace: one fact under one key, in a tier that is that subject's own.

An agent that wants something remembered is shown what would be stored, about whom and until when, and is given a token;
only a person's confirmation of the token stores it. Until then it waits sealed under the subject's key, so that it goes
with the subject.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import Field, ValidationError, ValidationInfo, field_validator

from grandbo.errors import Forbidden, InvalidInput, NotFound, QuotaExceeded, SubjectMissing
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import EntryRecorded, Policy
from grandbo.events.sealing import open_apart, seal_apart
from grandbo.finding_limits import NAME_LIMIT, SUMMARY_LIMIT, TITLE_LIMIT
from grandbo.memory.commands import Appended, Command, run_command
from grandbo.memory.finding import StatedTime, Submitted, explained, submitted_text
from grandbo.memory.policy import require, require_writing
from grandbo.memory.remembered import Author, Fact, decide_remember, same_fact_query
from grandbo.memory.screening import Screening
from grandbo.memory.subjects import (
    SUBJECT,
    Subject,
    active_subject,
    find_subject,
    key_of_subject,
    locked_subject,
    name_in,
)
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import confirmations
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Acknowledgement, Clock, Principal, digest_of, new_id, utc_now, utc_text

CONFIRMATION = "gbc_"
WAITS_FOR = timedelta(hours=24)
# How many may wait about one subject at once: whoever asks must not be able to fill the table.
WAITING_LIMIT = 50

_subject = sa.bindparam("subject", type_=sa.Uuid)
_which = sa.bindparam("which", type_=sa.Uuid)
_KEEP = sa.insert(confirmations).values({column.name: sa.bindparam(column.name) for column in confirmations.c})
_WAITING = (
    sa.select(sa.func.count().label("n"))
    .select_from(confirmations)
    .where(of_tenant(confirmations), confirmations.c.subject_id == _subject)
)
_FIND = sa.select(confirmations).where(of_tenant(confirmations), confirmations.c.confirmation_id == _which)
_DROP = (
    sa.delete(confirmations)
    .where(of_tenant(confirmations), confirmations.c.confirmation_id == _which)
    .returning(confirmations.c.confirmation_id)
)
_SWEEP = sa.delete(confirmations).where(
    of_tenant(confirmations), confirmations.c.expires_at <= sa.bindparam("now", type_=sa.DateTime(timezone=True))
)


class PersonalFact(Submitted):
    """
    Something to remember about a subject, under a key of its own: the same key again replaces it.

    Limits: key 200 characters, title 200, text 4,000. Confidence is in basis points.
    """

    subject: str = Field(min_length=1)
    memory_key: str = Field(min_length=1)
    title: str = Field(min_length=1)
    text: str = ""
    confidence_bp: int = Field(default=7_000, ge=0, le=10_000)
    expires_at: StatedTime | None = None

    @field_validator("subject", "memory_key", "title", mode="before")
    @classmethod
    def _lines(cls, value: object, info: ValidationInfo) -> object:
        field = str(info.field_name)
        return submitted_text(value, field, TITLE_LIMIT if field == "title" else NAME_LIMIT)

    @field_validator("text", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return submitted_text(value, "text", SUMMARY_LIMIT, single_line=False)

    @field_validator("memory_key", "title")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it must not be blank")
        return value


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be stored, about whom, by whom and until when; the token that a person confirms it with."""

    fact: Fact
    subject: Subject
    token: str
    waits_until: datetime

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "stored": False,
            "token": self.token,
            "waits_until": utc_text(self.waits_until),
            "about": {
                "subject_id": str(self.subject.subject_id),
                "kind": self.subject.kind,
                "name": self.subject.name,
            },
            **self.fact.shown(),
        }


@dataclass(frozen=True, slots=True)
class Remembered:
    """It is stored; whether anything had to be appended for it."""

    acknowledgement: Acknowledgement
    appended: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"stored": True, **self.acknowledgement.as_dict(), "appended": self.appended}


def ask_to_remember(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    document: object,
    *,
    clock: Clock = utc_now,
) -> Preview:
    """
    Have something about a person or a workspace wait for a person's confirmation.

    Raises:
        Forbidden, InvalidInput, SubjectMissing, SubjectErased, ScreenRefused, QuotaExceeded
    """
    given, subject_id = _given(database, tenant_id, principal, document)
    key = key_of_subject(database, tenant_id, subject_id)
    screening = Screening(database, tenant_id, policy, is_reviewed=True, names_subject=True)
    fact = _fact(given, principal, policy, screening, clock())
    token = CONFIRMATION + secrets.token_urlsafe(24)
    asked_at = clock()
    row = {
        "tenant_id": tenant_id,
        "confirmation_id": confirmation_id_of(token),
        "subject_id": subject_id,
        "sealed": seal_apart(fact.dumped(), key, tenant_id, subject_id, confirmation_id_of(token)),
        "asked_by": principal.ref,
        "asked_at": asked_at,
        "expires_at": asked_at + WAITS_FOR,
    }
    with database.transaction("writer", tenant_id) as transaction:
        about = {"tenant_id": tenant_id, "subject": subject_id}
        # The row is locked against an erasure that runs at the same time: what it does not see must not be left over.
        subject = locked_subject(transaction, tenant_id, subject_id)
        transaction.execute(_SWEEP, {"tenant_id": tenant_id, "now": asked_at})
        if transaction.execute(_WAITING, about)[0]["n"] >= WAITING_LIMIT:
            raise QuotaExceeded(
                f"{WAITING_LIMIT} things about this subject wait to be confirmed; have some confirmed first.",
                limit=WAITING_LIMIT,
            )
        name = name_in(transaction, tenant_id, subject_id, {subject_id: key})
        transaction.execute(_KEEP, row)
    return Preview(fact, replace(subject, name=name), token, asked_at + WAITS_FOR)


def remember_workspace(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    document: object,
    *,
    clock: Clock = utc_now,
) -> Remembered | Preview:
    """Remember a fact about a workspace: at once where the tenant's policy says so, else as of a person."""
    given, subject_id = _given(database, tenant_id, principal, document)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        subject = active_subject(transaction, tenant_id, subject_id)
    if subject.kind != "workspace":
        raise InvalidInput("subject: this is a person; what is about a person waits for a person.", field="subject")
    screening = Screening(database, tenant_id, policy, names_subject=True)
    fact = _fact(given, principal, policy, screening, clock())
    if not policy.people.workspace_unconfirmed or screening.quarantines:
        return ask_to_remember(database, tenant_id, principal, policy, document, clock=clock)
    return _store(database, tenant_id, principal, policy, subject_id, fact, new_id(), clock)


def confirm_memory(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    token: object,
    *,
    clock: Clock = utc_now,
) -> Remembered:
    """
    Store what waits under this token. Confirmed again it is the first answer again.

    Raises:
        Forbidden: the credential is not a person's, or neither the subject's own nor one that governs.
        NotFound: nothing waits under it: it was used, is over, or its subject is gone.
    """
    _require_person(principal)
    which = confirmation_id_of(token)
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_FIND, {"tenant_id": tenant_id, "which": which})
        waits = rows[0] if rows and rows[0]["expires_at"] > clock() else None
        if waits is not None:
            subject = active_subject(transaction, tenant_id, waits["subject_id"])
            if principal.ref not in subject.principals:
                require(principal, "govern")
    fact = None
    if waits is not None:
        key = key_of_subject(database, tenant_id, waits["subject_id"])
        sealed = open_apart(bytes(waits["sealed"]), key, tenant_id, waits["subject_id"], which)
        fact = None if sealed is None else Fact.loaded(sealed)
    subject_id = waits["subject_id"] if waits is not None else None
    remembered = _store(database, tenant_id, principal, policy, subject_id, fact, which, clock)
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_DROP, {"tenant_id": tenant_id, "which": which})
    return remembered


def refuse_memory(database: Database, tenant_id: UUID, principal: Principal, token: object) -> None:
    """Drop what waits under this token; whoever has the token may. Raises `NotFound`."""
    which = confirmation_id_of(token)
    require(principal, "recall")
    require_writing(principal)
    with database.transaction("writer", tenant_id) as transaction:
        if not transaction.execute(_DROP, _key(tenant_id, which)):
            raise NotFound("Nothing waits under this token.")


def confirmation_id_of(token: object) -> UUID:
    """Under which id it waits: a digest of the token, which is stored nowhere."""
    if not isinstance(token, str) or not token.startswith(CONFIRMATION) or len(token) > 100:
        raise NotFound("Nothing waits under this token.")
    return UUID(bytes=hashlib.sha256(token.encode()).digest()[:16])


def _key(tenant_id: UUID, which: UUID) -> dict[str, Any]:
    return {"tenant_id": tenant_id, "which": which}


def _given(database: Database, tenant_id: UUID, principal: Principal, document: object) -> tuple[PersonalFact, UUID]:
    require(principal, "remember")
    if not isinstance(document, Mapping):
        raise InvalidInput("What is to be remembered is an object with subject, memory_key and title.")
    if not document.get("subject"):
        raise SubjectMissing(field="subject")
    try:
        given = PersonalFact.model_validate(dict(document))
    except ValidationError as error:
        raise explained(error) from None
    return given, find_subject(database, tenant_id, given.subject)


def _fact(given: PersonalFact, principal: Principal, policy: Policy, screening: Screening, now: datetime) -> Fact:
    said = screening.values({"title": given.title, "summary": given.text, "external_id": given.memory_key})
    days = policy.expiry_days.get("personal", 90)
    expires_at = given.expires_at.at if given.expires_at else now + timedelta(days=days)
    if expires_at <= now:
        raise InvalidInput("expires_at: the time has passed already.", field="expires_at")
    return Fact(
        memory_key=said["external_id"],
        title=said["title"],
        text=said["summary"],
        confidence_bp=given.confidence_bp,
        expires_at=expires_at,
        author=Author(principal.ref, principal.type),
        screened=screening.screened,
    )


def _store(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    subject_id: UUID | None,
    fact: Fact | None,
    command_id: UUID,
    clock: Clock,
) -> Remembered:
    seen: list[Row] = []

    def decide(found: list[list[Row]], now: datetime) -> Sequence[Event]:
        if fact is None or subject_id is None:
            raise NotFound("Nothing waits under this token: it was used, is over, or its subject is gone.")
        subject = Subject.of_row(found[0][0]) if found[0] else None
        seen[:] = [row for row in found[1] if row["external_id"] == fact.memory_key]
        return decide_remember(fact, subject, found[1], policy, now)

    reads = []
    if subject_id is not None:
        reads = [
            (SUBJECT, {"tenant_id": tenant_id, "subject": subject_id}),
            same_fact_query(tenant_id, subject_id),
        ]
    context = CommandContext(tenant_id, principal, command_id, digest_of(["remember", str(command_id)]))
    return remembered_by(run_command(database, Command(context, reads, decide), clock=clock), seen)


def remembered_by(appended: Appended, seen: Sequence[Row]) -> Remembered:
    """The acknowledgement of what was appended, or of the row that says it already."""
    if appended.events:
        event = appended.events[-1]
        revision = getattr(event.data, "revision", 0)
        is_new = any(isinstance(one.data, EntryRecorded) for one in appended.events)
        ack = Acknowledgement(event.header.stream_id, revision, event.position, event.hash.hex(), created=is_new)
        return Remembered(ack, not appended.replayed)
    row = seen[0]
    known = Acknowledgement(row["entry_id"], row["revision"], row["position"], row["hash"].hex(), created=False)
    return Remembered(known, appended=False)


def _require_person(principal: Principal) -> None:
    if principal.type != "human":
        raise Forbidden("Only a person confirms what is remembered about one; this credential is not a person's.")
    require(principal, "recall")
    require_writing(principal)
