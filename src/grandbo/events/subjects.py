"""Event bodies of subjects: whom the memory holds something about, what may not be touched, and what is gone."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from grandbo.events.erasures import ErasureReason
from grandbo.events.parts import Digest, EventBody, Text, UtcTime, UuidText

SubjectKind = Literal["person", "workspace"]


class SubjectRegistered(EventBody):
    """
    There is a subject; sealed under its key. A later one of its stream says anew what it is called and whose it is.

    `reference` is the keyed digest of what it is called elsewhere. `principals` are those whose own recalls are told
    what is remembered about it.
    """

    EVENT_TYPE: ClassVar[str] = "subject_registered"

    kind: SubjectKind
    reference: Digest
    name: Text
    principals: tuple[Text, ...]


class SubjectHeld(EventBody):
    """A legal hold stands on the subject: nothing about it is erased, nor made to expire."""

    EVENT_TYPE: ClassVar[str] = "subject_held"
    SEALED: ClassVar[bool] = False

    reason: Text


class SubjectHoldLifted(EventBody):
    """The hold stands no more."""

    EVENT_TYPE: ClassVar[str] = "subject_hold_lifted"
    SEALED: ClassVar[bool] = False

    reason: Text


class SubjectErased(EventBody):
    """
    All that was said about the subject before this event is gone, and its key with it.

    It names streams and people by their ids alone, so that it can stay.
    """

    EVENT_TYPE: ClassVar[str] = "subject_erased"
    SEALED: ClassVar[bool] = False

    kind: SubjectKind
    reason: ErasureReason
    requested_by: Text
    requested_at: UtcTime
    streams: Annotated[tuple[UuidText, ...], Field(min_length=1)]
