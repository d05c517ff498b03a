"""The bodies of `/v1/documents`, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from grandbo.finding_limits import NAME_LIMIT
from grandbo.http.schemas import SAYING, Document

_BASE64 = "A PDF, as base64, in the place of `text`."


class UploadedPostMortemDocument(Document):
    """A post-mortem, and what to do with it."""

    model_config = ConfigDict(extra="forbid", title="UploadedPostMortem")

    name: str = Field(min_length=1, max_length=NAME_LIMIT, pattern=SAYING, description="Of its file; tells the format.")
    text: str | None = Field(default=None, description="Markdown or HTML; at most 1 MiB in UTF-8.")
    base64: str | None = Field(default=None, description=_BASE64)
    uri: str | None = Field(default=None, description="Where it stands; else its front matter says.")
    record: bool | None = Field(default=False, description="A finding, not a candidate.")
    visibility: str | None = Field(default=None, description="A tier; else the tenant's default.")
    preview: bool | None = Field(default=False, description="Say what would become of it; change nothing.")


class UploadedFileDocument(Document):
    """One file."""

    model_config = ConfigDict(extra="forbid", title="UploadedFile")

    name: str = Field(
        min_length=1, max_length=NAME_LIMIT, pattern=SAYING, description="Its path within the collection."
    )
    text: str = Field(description="Markdown, HTML, YAML or Prometheus rules; at most 1 MiB in UTF-8.")


class UploadedRunbooksDocument(Document):
    """Runbooks, and which collection they are of."""

    model_config = ConfigDict(extra="forbid", title="UploadedRunbooks")

    files: list[UploadedFileDocument] = Field(min_length=1)
    collection: str = Field(
        min_length=1, max_length=NAME_LIMIT // 2, pattern=SAYING, description="Keeps paths of several folders apart."
    )
    base_uri: str | None = Field(default=None, description="Before a path, the address at which people read it.")
    service: str | None = Field(default=None, description="Of those that name none.")
    visibility: str | None = Field(default=None, description="A tier; else the tenant's default.")
    preview: bool | None = Field(default=False, description="Say what would become of them; change nothing.")


class DocumentOutcomeDocument(Document):
    """What became of one document; `id` of the entry or the candidate, where there is one."""

    model_config = ConfigDict(extra="forbid", title="DocumentOutcome")

    document: str
    title: str
    action: str
    id: str = Field(default="", json_schema_extra={"format": "uuid"})


class DocumentRefusalDocument(Document):
    """A document that was not taken, and why."""

    model_config = ConfigDict(extra="forbid", title="DocumentRefusal")

    document: str
    code: str
    message: str


class FollowReportDocument(Document):
    """What became of all documents; in a preview, what would."""

    model_config = ConfigDict(extra="forbid", title="FollowReport")

    read: int
    recorded: int
    corrected: int
    proposed: int
    amended: int
    corroborated: int
    unchanged: int
    vanished: int
    archived: int
    refused: int
    documents: list[DocumentOutcomeDocument]
    errors: list[DocumentRefusalDocument]


class HeadingDocument(Document):
    """A heading, and the part that it was taken for; null where its text stands in the body alone."""

    model_config = ConfigDict(extra="forbid", title="Heading")

    heading: str | None
    part: str | None


class PostMortemReportDocument(FollowReportDocument):
    """The same, with how its headings were understood, and the findings that were made of it."""

    model_config = ConfigDict(extra="forbid", title="PostMortemReport")

    headings: list[HeadingDocument]
    preview: list[dict[str, Any]]


DOCUMENT_DOCUMENTS: tuple[type[BaseModel], ...] = (
    UploadedPostMortemDocument,
    UploadedFileDocument,
    UploadedRunbooksDocument,
    FollowReportDocument,
    PostMortemReportDocument,
)
