"""The bodies of the routes that keep a memory in good order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from grandbo.http.candidate_schemas import Reason, RecurrenceDocument
from grandbo.http.entry_schemas import Id, Time
from grandbo.memory.wishes import LONGEST_REVIEW_DAYS
from grandbo.recall.answer import EmptyReason
from grandbo.types import Kind, Status

VERIFY_LIMIT = 100


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DueEntryDocument(_Document):
    """An entry that is due, and why."""

    model_config = ConfigDict(extra="forbid", title="DueEntry")

    entry_id: Id
    revision: int = Field(ge=1)
    kind: Kind
    title: str
    service: str
    owner: str | None
    visibility: str
    verified_at: Time | None
    review_at: Time
    expires_at: Time
    due_at: Time
    why: list[Literal["expired", "overdue", "due", "expiring", "wrong", "stale"]]


class DueDocument(_Document):
    """A page of what is due, the longest due first; `next` goes into `after`, null at the end."""

    model_config = ConfigDict(extra="forbid", title="Due")

    due: list[DueEntryDocument]
    next: str | None


class VerifyRowDocument(_Document):
    """An entry that was checked, and why it may stand."""

    model_config = ConfigDict(extra="forbid", title="VerifyRow")

    entry_id: Id
    reason: Reason
    days: Annotated[int, Field(ge=1, le=LONGEST_REVIEW_DAYS)] | None = None


class VerifyRowsDocument(_Document):
    """Up to a hundred rows."""

    model_config = ConfigDict(extra="forbid", title="VerifyRows")

    rows: list[VerifyRowDocument] = Field(max_length=VERIFY_LIMIT)


class RowErrorDocument(_Document):
    """Why a row was not carried out."""

    model_config = ConfigDict(extra="forbid", title="RowError")

    code: str
    message: str


class VerifyResultDocument(_Document):
    """What became of a row; `error` where it was not carried out."""

    model_config = ConfigDict(extra="forbid", title="VerifyResult")

    row: int = Field(ge=1)
    entry_id: str | None
    ok: bool
    revision: int | None = None
    position: int | None = None
    appended: bool | None = None
    error: RowErrorDocument | None = None


class VerifyResultsDocument(_Document):
    """One result for each row, in order."""

    model_config = ConfigDict(extra="forbid", title="VerifyResults")

    results: list[VerifyResultDocument]
    failed: int


class SweptDocument(_Document):
    """How many expiries were put on the record."""

    model_config = ConfigDict(extra="forbid", title="Swept")

    noted: int


class DetectedDocument(_Document):
    """How many entries were compared, how many disputes wait because of it, and how many entries are left."""

    model_config = ConfigDict(extra="forbid", title="Detected")

    compared: int
    proposed: int
    pending: int


class RecurringEntryDocument(_Document):
    """How often an entry's incident has happened."""

    model_config = ConfigDict(extra="forbid", title="RecurringEntry")

    entry_id: Id
    title: str
    service: str
    open_follow_ups: int
    occurrences: int
    last: Time


class RecurringServiceDocument(_Document):
    """How often something has happened to a service, and how many entries tell of it."""

    model_config = ConfigDict(extra="forbid", title="RecurringService")

    service: str
    occurrences: int
    entries: int
    last: Time


class RecurringMonthDocument(_Document):
    """How often something has happened in a month."""

    model_config = ConfigDict(extra="forbid", title="RecurringMonth")

    month: str = Field(pattern=r"^\d{4}-\d{2}$")
    occurrences: int
    last: Time


class RecurrencesDocument(_Document):
    """Occurrences, counted three ways."""

    model_config = ConfigDict(extra="forbid", title="Recurrences")

    entries: list[RecurringEntryDocument]
    services: list[RecurringServiceDocument]
    months: list[RecurringMonthDocument]
    near: list[RecurrenceDocument] = Field(description="Of an entry: those near it whose follow-ups are still open.")


class EntryCountDocument(_Document):
    """How many entries there are of a kind in a status."""

    model_config = ConfigDict(extra="forbid", title="EntryCount")

    kind: Kind
    status: Status
    count: int


class DayDocument(_Document):
    """How many recalls there were on a day of UTC, and how many gave nothing, by why."""

    model_config = ConfigDict(extra="forbid", title="Day")

    day: str
    recalls: int
    empty: dict[EmptyReason, int]


class EmptyRateDocument(_Document):
    """How many recalls gave nothing for a reason, and what share of all that is, in basis points."""

    model_config = ConfigDict(extra="forbid", title="EmptyRate")

    recalls: int
    rate_bp: int


class BacklogDocument(_Document):
    """How many entries wait for a vector, and how many were given up."""

    model_config = ConfigDict(extra="forbid", title="Backlog")

    pending: int
    dead: int


class DayLatencyDocument(_Document):
    """How long the answers of a day took, in microseconds."""

    model_config = ConfigDict(extra="forbid", title="Day latency")

    day: str
    recalls: int
    p50_us: int
    p95_us: int


class LatencyDocument(_Document):
    """How long answers took from question to answer, in microseconds; null where none was timed."""

    model_config = ConfigDict(extra="forbid", title="Latency")

    recalls: int
    p50_us: int | None
    p95_us: int | None
    days: list[DayLatencyDocument]


class WaitedDocument(_Document):
    """One day."""

    model_config = ConfigDict(extra="forbid", title="Waited")

    day: str = Field(examples=["2026-03-01"])
    entries: int


class UsageDocument(_Document):
    """Counts, within the caller's tiers. Topics are kept nowhere."""

    model_config = ConfigDict(extra="forbid", title="Usage")

    since: Time
    until: Time
    entries: list[EntryCountDocument]
    candidates: dict[Literal["pending", "approved", "rejected", "withdrawn"], int]
    recalls: list[DayDocument]
    recalls_total: int
    empty: dict[EmptyReason, EmptyRateDocument]
    latency: LatencyDocument
    backlog: BacklogDocument | None = Field(description="Null where nothing is embedded.")
    waited: list[WaitedDocument] = Field(description="Entries without a vector at each day's end.")


CARE_DOCUMENTS: tuple[type[BaseModel], ...] = (
    DueDocument,
    VerifyRowsDocument,
    VerifyResultsDocument,
    SweptDocument,
    DetectedDocument,
    RecurrencesDocument,
    UsageDocument,
)
