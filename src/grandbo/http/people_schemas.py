"""The bodies of `/v1/subjects`, `/v1/memories` and `/v1/episodes`, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.events.erasures import ErasureReason
from grandbo.finding_limits import NAME_LIMIT, SUMMARY_LIMIT, TITLE_LIMIT
from grandbo.http.entry_schemas import BasisPoints, Id, Time
from grandbo.http.schemas import LINE, SAYING, SAYING_TEXT, TEXT, Document, EvidenceDocument, Name, StatedTime
from grandbo.memory.subjects import NAME_LIMIT as SUBJECT_NAME_LIMIT
from grandbo.memory.subjects import PRINCIPALS_LIMIT, REFERENCE_LIMIT

_Kind = Literal["person", "workspace"]
_Subject = Annotated[
    str,
    Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING, description="The id of a subject, or its reference."),
]
_PrincipalType = Literal["human", "agent", "hook", "system"]


class SubjectRequestDocument(Document):
    """Whom something may be remembered about. Of the reference only a keyed digest is kept."""

    model_config = ConfigDict(extra="forbid", title="SubjectRequest")

    kind: _Kind
    reference: str = Field(min_length=1, max_length=REFERENCE_LIMIT, pattern=SAYING, examples=["zoe@example.com"])
    name: str = Field(min_length=1, max_length=SUBJECT_NAME_LIMIT, pattern=SAYING)
    principals: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=100, pattern=LINE)]],
            Field(max_length=PRINCIPALS_LIMIT, description="`[type:]name` of those whose own recalls are told of it."),
        ]
        | None
    ) = None


class HoldDocument(Document):
    """Why it is held, by whom and since when."""

    model_config = ConfigDict(extra="forbid", title="Hold")

    reason: str
    by: str
    since: Time


class SubjectDocument(Document):
    """A subject, or what is left of one; `name` is null where many are listed."""

    model_config = ConfigDict(extra="forbid", title="Subject")

    subject_id: Id
    kind: _Kind
    name: str | None
    state: Literal["active", "erased"]
    principals: list[str]
    registered_at: Time | None
    hold: HoldDocument | None
    erased_at: Time | None


class RegisteredSubjectDocument(SubjectDocument):
    """The subject, and whether it was made just now."""

    model_config = ConfigDict(extra="forbid", title="RegisteredSubject")

    created: bool


class SubjectsDocument(Document):
    """All of them, oldest first, without names."""

    model_config = ConfigDict(extra="forbid", title="Subjects")

    subjects: list[SubjectDocument]


class HoldRequestDocument(Document):
    """Why; it stands in the history and in every refusal."""

    model_config = ConfigDict(extra="forbid", title="HoldRequest")

    reason: str = Field(min_length=1, max_length=1_000, pattern=SAYING_TEXT)


class ForgetRequestDocument(Document):
    """Why, as a code; words could hold what is to go."""

    model_config = ConfigDict(extra="forbid", title="ForgetRequest")

    reason: ErasureReason


class HeldDocument(Document):
    """All that is held about a subject."""

    model_config = ConfigDict(extra="forbid", title="Held")

    subject: dict[str, Any]
    purpose: str
    entries: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    feedback: list[dict[str, Any]]
    waiting: list[dict[str, Any]]
    deliveries: list[dict[str, Any]]
    erasure: dict[str, Any] | None


class PersonalFactDocument(Document):
    """Something to remember about a subject, under a key of its own: the same key again replaces it."""

    model_config = ConfigDict(extra="forbid", title="PersonalFact")

    subject: _Subject
    memory_key: str = Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING)
    title: str = Field(min_length=1, max_length=TITLE_LIMIT, pattern=SAYING)
    text: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=TEXT)] | None = ""
    confidence_bp: BasisPoints | None = 7_000
    expires_at: StatedTime | None = None


class AboutDocument(Document):
    """Whom it is about."""

    model_config = ConfigDict(extra="forbid", title="About")

    subject_id: Id
    kind: _Kind
    name: str | None


class AuthorDocument(Document):
    """Who says so."""

    model_config = ConfigDict(extra="forbid", title="Author")

    principal: str
    type: _PrincipalType


class MemoryPreviewDocument(Document):
    """What would be stored; nothing is, until a person confirms the token."""

    model_config = ConfigDict(extra="forbid", title="MemoryPreview")

    stored: Literal[False]
    token: str
    waits_until: Time
    about: AboutDocument
    memory_key: str
    title: str
    text: str
    confidence_bp: BasisPoints
    author: AuthorDocument
    is_inference: bool
    expires_at: Time


class RememberedDocument(Document):
    """It is stored."""

    model_config = ConfigDict(extra="forbid", title="Remembered")

    stored: Literal[True]
    entry_id: Id
    revision: int
    position: int
    hash: str
    created: bool
    appended: bool


class MemoryTokenDocument(Document):
    """What the preview gave."""

    model_config = ConfigDict(extra="forbid", title="MemoryToken")

    token: str = Field(min_length=1, max_length=100, pattern=SAYING)


class EpisodeDocument(Document):
    """What came of a session of work; one a session id and subject."""

    model_config = ConfigDict(extra="forbid", title="Episode")

    session_id: str = Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING)
    subject: _Subject
    title: str = Field(min_length=1, max_length=TITLE_LIMIT, pattern=SAYING)
    summary: Annotated[str, Field(max_length=SUMMARY_LIMIT, pattern=TEXT)] | None = ""
    body: Annotated[str, Field(pattern=TEXT)] | None = ""
    service: Name | None = ""
    visibility: Name | None = None
    evidence: Annotated[list[EvidenceDocument], Field(max_length=19)] | None = None
    confidence_bp: BasisPoints | None = 7_000
    expires_at: StatedTime | None = None


PEOPLE_DOCUMENTS: tuple[type[BaseModel], ...] = (
    SubjectRequestDocument,
    SubjectDocument,
    RegisteredSubjectDocument,
    SubjectsDocument,
    HoldRequestDocument,
    ForgetRequestDocument,
    HeldDocument,
    PersonalFactDocument,
    MemoryPreviewDocument,
    RememberedDocument,
    MemoryTokenDocument,
    EpisodeDocument,
)
