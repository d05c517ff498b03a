"""A finding as a caller submits it: strict, limited, refused rather than cut."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from grandbo.applicability import Applies, parse_applicability
from grandbo.errors import (
    EvidenceMissing,
    GrandboError,
    InvalidInput,
    KindNotRecorded,
    LimitExceeded,
    SourceRefused,
)
from grandbo.finding_limits import (
    BODY_LIMIT_BYTES,
    EVIDENCE_LIMIT,
    FOLLOW_UP,
    NAME_LIMIT,
    SUMMARY_LIMIT,
    TAG_LIMIT,
    TAGS_LIMIT,
    TITLE_LIMIT,
    URI_LIMIT,
)
from grandbo.screening import uri_problem
from grandbo.text import check_text
from grandbo.types import ORGANISATION_KINDS, TIME_WANTED, Kind, Moment, parse_moment, require_zone

MEMORY_SCHEME = "grandbo:"


class Refusal(ValueError):
    """Carries one of our own errors out of a pydantic validator unchanged."""

    def __init__(self, error: GrandboError) -> None:
        super().__init__(error.message)
        self.error = error


def submitted_text(value: object, field: str, limit: int, *, single_line: bool = True) -> object:
    """A text as it was submitted, within its limit; what is no text is left to its own check."""
    if not isinstance(value, str):
        return value
    try:
        return check_text(value, field, limit=limit, single_line=single_line)
    except GrandboError as error:
        raise Refusal(error) from None


def _moment(value: object, info: ValidationInfo) -> object:
    field = info.field_name or "time"
    try:
        if isinstance(value, str):
            return parse_moment(value, field)
        if isinstance(value, datetime):
            return Moment(require_zone(value, field), "time")
    except GrandboError as error:
        raise Refusal(error) from None
    if value is None or isinstance(value, Moment):
        return value
    raise Refusal(InvalidInput(f"{field}: this is not a time; {TIME_WANTED}.", field=field))


StatedTime = Annotated[Moment, BeforeValidator(_moment)]


class Submitted(BaseModel):
    """Base of what comes from outside."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_omitted(cls, value: object) -> object:
        """Clients generated from a schema send null for what they leave out."""
        if isinstance(value, dict):
            known = cls.model_fields
            return {name: item for name, item in value.items() if item is not None or name not in known}
        return value


class EvidenceItem(Submitted):
    """Where the claim comes from: `type` such as `postmortem`, `log`, `dashboard`; a URI; a label for people."""

    type: str = Field(min_length=1)
    uri: str = Field(min_length=1)
    label: str = ""

    @field_validator("type", "label", mode="before")
    @classmethod
    def _names(cls, value: object, info: ValidationInfo) -> object:
        return submitted_text(value, f"evidence.{info.field_name}", NAME_LIMIT)

    @field_validator("uri", mode="before")
    @classmethod
    def _uri(cls, value: object) -> object:
        checked = submitted_text(value, "evidence.uri", URI_LIMIT)
        if isinstance(checked, str) and (":" not in checked or any(char.isspace() for char in checked)):
            raise ValueError("a URI has a scheme and no spaces, such as https://tickets.example.com/INC-1")
        if isinstance(checked, str) and (problem := uri_problem(checked)) is not None:
            raise Refusal(SourceRefused(field="evidence.uri", kind=problem))
        return checked


class Incident(Submitted):
    """The incident that taught it: the tool that knows it, and its id there."""

    source: str = Field(min_length=1)
    id: str = Field(min_length=1)

    @field_validator("source", "id", mode="before")
    @classmethod
    def _names(cls, value: object, info: ValidationInfo) -> object:
        return submitted_text(value, f"incident.{info.field_name}", NAME_LIMIT)


class Finding(Submitted):
    """
    What an incident taught.

    Limits: title 200 characters, summary 4,000, body 64 KiB of UTF-8, 16 tags of 64 characters, 20 pieces of evidence
    of which at least one is not memory itself, 16 systems that it applies to. Times are RFC 3339 with a zone, or dates.
    Confidence is in basis points. `subject`: whom it is about, by id or reference; its text is then sealed under the
    subject's key, and goes with the subject.
    """

    title: str = Field(min_length=1)
    summary: str = ""
    body: str = ""
    kind: Kind = "finding"
    service: str = ""
    tags: tuple[str, ...] = Field(default=(), strict=False)
    evidence: tuple[EvidenceItem, ...] = Field(strict=False)
    incident: Incident | None = None
    external_id: str | None = None
    occurred_at: StatedTime | None = None
    ended_at: StatedTime | None = None
    valid_from: StatedTime | None = None
    expires_at: StatedTime | None = None
    confidence_bp: int = Field(default=7_000, ge=0, le=10_000)
    visibility: str | None = None
    namespace: str = ""
    owner: str | None = None
    applicability: tuple[Applies, ...] = ()
    subject: str | None = None

    @field_validator("title", "service", "external_id", "visibility", "namespace", "owner", "subject", mode="before")
    @classmethod
    def _lines(cls, value: object, info: ValidationInfo) -> object:
        return submitted_text(value, str(info.field_name), TITLE_LIMIT if info.field_name == "title" else NAME_LIMIT)

    @field_validator("applicability", mode="before")
    @classmethod
    def _applicability(cls, value: object) -> object:
        try:
            return parse_applicability(value)
        except GrandboError as error:
            raise Refusal(error) from None

    @field_validator("summary", mode="before")
    @classmethod
    def _summary(cls, value: object) -> object:
        return submitted_text(value, "summary", SUMMARY_LIMIT, single_line=False)

    @field_validator("body", mode="before")
    @classmethod
    def _body(cls, value: object) -> object:
        checked = submitted_text(value, "body", BODY_LIMIT_BYTES, single_line=False)
        if isinstance(checked, str) and (size := len(checked.encode())) > BODY_LIMIT_BYTES:
            raise Refusal(_over("body", size, BODY_LIMIT_BYTES, "bytes of UTF-8"))
        return checked

    @field_validator("title")
    @classmethod
    def _title_says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it must not be blank")
        return value

    @field_validator("tags", mode="before")
    @classmethod
    def _tags(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            if len(value) > TAGS_LIMIT:
                raise Refusal(_over("tags", len(value), TAGS_LIMIT, "tags"))
            return tuple(submitted_text(tag, "tags", TAG_LIMIT) for tag in value)
        return value

    @field_validator("tags")
    @classmethod
    def _distinct_tags(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if any(not tag.strip() for tag in value):
            raise ValueError("a tag must not be blank")
        return tuple(dict.fromkeys(value))

    @field_validator("evidence", mode="before")
    @classmethod
    def _evidence(cls, value: object) -> object:
        if isinstance(value, list | tuple) and len(value) > EVIDENCE_LIMIT:
            raise Refusal(_over("evidence", len(value), EVIDENCE_LIMIT, "pieces of evidence"))
        return value

    @field_validator("kind")
    @classmethod
    def _is_the_organisations(cls, value: Kind) -> Kind:
        if value not in ORGANISATION_KINDS:
            raise Refusal(KindNotRecorded(field="kind"))
        return value

    @model_validator(mode="after")
    def _corroborated(self) -> Self:
        # What is still to be done says nothing of where the claim comes from.
        if all(item.uri.lower().startswith(MEMORY_SCHEME) or item.type == FOLLOW_UP for item in self.evidence):
            raise Refusal(EvidenceMissing(field="evidence"))
        if self.occurred_at and self.ended_at and self.ended_at.at < self.occurred_at.at:
            raise ValueError("ended_at lies before occurred_at")
        if self.valid_from and self.expires_at and self.expires_at.at <= self.valid_from.at:
            raise ValueError("expires_at does not lie after valid_from")
        return self


def said_by(finding: Finding) -> dict[str, Any]:
    """
    What a finding says, as plain values: what tells a retry from another finding under the same command id.

    A field that came with a later release counts only where it is given, so that a retry stays one across upgrades.
    """
    said = finding.model_dump(mode="json")
    later = {name: said.pop(name) for name in ("namespace", "owner", "applicability", "subject")}
    return said | {name: value for name, value in later.items() if value}


def parse_finding(document: object, model: type[Finding] = Finding) -> Finding:
    """
    Read a finding from plain values.

    Raises:
        LimitExceeded, EvidenceMissing, InvalidInput: with the field, and under `errors` everything that is wrong.
    """
    if not isinstance(document, dict):
        raise InvalidInput("A finding is an object with at least title and evidence.")
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise explained(error) from None


class _MadeFor(Submitted):
    incident: Incident


def parse_incident(given: object) -> Incident:
    """
    Read an incident from `{source, id}`, or from a pair of the two.

    Raises:
        LimitExceeded, InvalidInput: with the field.
    """
    if isinstance(given, tuple) and len(given) == 2:
        given = {"source": given[0], "id": given[1]}
    try:
        return _MadeFor(incident=given).incident  # type: ignore[arg-type]  # what it may be is checked there
    except ValidationError as error:
        raise explained(error) from None


def explained(error: ValidationError) -> GrandboError:
    """One typed error out of pydantic's list: the first refusal of ours if there is one, all problems by field."""
    own: GrandboError | None = None
    problems: list[dict[str, str]] = []
    for item in error.errors(include_input=False, include_url=False):
        field = ".".join(str(part) for part in item["loc"]) or "finding"
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, Refusal):
            own = own or cause.error
            problems.append({"field": field, "code": cause.error.code, "message": cause.error.message})
        else:
            problems.append(
                {"field": field, "code": "invalid_input", "message": item["msg"].removeprefix("Value error, ")}
            )
    if own is not None:
        details = {**own.details, "errors": problems} if len(problems) > 1 else own.details
        return type(own)(own.message, **details)
    first = problems[0]
    return InvalidInput(f"{first['field']}: {first['message']}.", field=first["field"], errors=problems)


def _over(field: str, size: int, limit: int, unit: str) -> LimitExceeded:
    return LimitExceeded(f"{field}: {size} {unit}, at most {limit} are allowed.", field=field, limit=limit, length=size)
