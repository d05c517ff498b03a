"""
What a delivery says, in our words: the one shape that every source is mapped to.

A mapper is pure: `payload -> drafts`. It decides nothing: what becomes of a draft is the tenant's policy's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grandbo.types import Moment

# What happened to the incident. `alert`: something bears witness to it; `updated`: its facts were edited.
DraftEvent = Literal["opened", "alert", "updated", "resolved", "reopened", "postmortem"]

Payload = Mapping[str, Any]
Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DraftEvidence:
    """Where a claim comes from."""

    type: str
    uri: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """
    One thing that a delivery says of one incident. Empty where the source does not say it; nothing is made up.

    Attributes:
        incident_id: the id that the source has for the incident; stable across all of its deliveries.
        cause: what the source states as the cause; empty where it states none.
        is_drill: a test, a drill, a maintenance window: never remembered.
        is_private: restricted in the source; the tenant's policy says whether it is taken, and how high it stands.
    """

    event: DraftEvent
    incident_id: str
    title: str
    summary: str = ""
    body: str = ""
    cause: str = ""
    service: str = ""
    severity: str = ""
    tags: tuple[str, ...] = ()
    evidence: tuple[DraftEvidence, ...] = ()
    occurred_at: Moment | None = None
    ended_at: Moment | None = None
    is_drill: bool = False
    is_private: bool = False


@dataclass(frozen=True, slots=True)
class Ignored:
    """The delivery says nothing that is remembered; `why` is a constant, for people who look into the inbox."""

    why: str


Mapped = tuple[Draft, ...] | Ignored


class Unmappable(ValueError):
    """The payload is not what this source sends; the message names what is missing, and never a value."""
