"""
Grandbo's own signed format (Standard Webhooks): an event of an incident, with what it taught as a finding has it.

`{"event": "resolved", "incident_id": "INC-1", "finding": {"title": …, "summary": …, "cause": …, "evidence": […]}}`,
beside them `is_drill` and `is_private`. For tools without a format that is known here, and for one's own scripts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from grandbo.errors import GrandboError
from grandbo.finding_limits import NAME_LIMIT
from grandbo.hooks.drafting import draft, source
from grandbo.hooks.drafts import DraftEvent, DraftEvidence, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import key
from grandbo.hooks.source import Source
from grandbo.types import Moment, parse_moment

EVENTS: tuple[DraftEvent, ...] = get_args(DraftEvent)
_TEXTS = ("title", "summary", "body", "cause", "service", "severity")


def map_payload(payload: Payload, _headers: Headers) -> Mapped:
    """One draft; an event that is not known here is ignored. Raises `Unmappable`."""
    if not isinstance(payload, Mapping):
        raise Unmappable("It is no object.")
    named = _text(payload, "event")
    event = next((known for known in EVENTS if known == named), None)
    if event is None:
        return Ignored("unknown_event")
    finding = payload.get("finding") or {}
    if not isinstance(finding, Mapping):
        raise Unmappable("finding: it must be an object.")
    incident_id = _text(payload, "incident_id").strip()
    if not incident_id:
        raise Unmappable("incident_id: it is required.")
    if not incident_id.isprintable():
        raise Unmappable("incident_id: it must be one line of characters that can be shown.")
    occurred_at, ended_at = _moment(finding, "occurred_at"), _moment(finding, "ended_at")
    if occurred_at and ended_at and ended_at.at < occurred_at.at:
        raise Unmappable("ended_at: it lies before occurred_at.")
    made = draft(
        event,
        incident_id,
        **{name: _text(finding, name) for name in _TEXTS},
        tags=[tag for tag in _list(finding, "tags") if isinstance(tag, str)],
        evidence=[_evidence(item) for item in _list(finding, "evidence")],
        is_drill=payload.get("is_drill") is True,
        is_private=payload.get("is_private") is True,
    )
    # In the form that the API takes, and refused otherwise; tools of others write times in many more.
    return (replace(made, occurred_at=occurred_at, ended_at=ended_at),)


def delivery_key(_payload: Payload, headers: Headers) -> str:
    """The id that the sender gave the delivery, which its signature covers."""
    return key(headers.get("webhook-id", "") or headers.get("svix-id", ""))


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise Unmappable(f"{name}: it must be text.")
    return value or ""


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    if value is not None and not isinstance(value, list):
        raise Unmappable(f"{name}: it must be a list.")
    return value or []


def _evidence(item: object) -> DraftEvidence | None:
    if not isinstance(item, Mapping):
        raise Unmappable("evidence: each piece is an object with type, uri and label.")
    kind = _text(item, "type").strip() or "link"
    if len(kind) > NAME_LIMIT or not kind.isprintable():
        raise Unmappable(f"evidence: a type is one line of at most {NAME_LIMIT} characters.")
    return source(kind, _text(item, "uri"), _text(item, "label"))


def _moment(values: Mapping[str, Any], name: str) -> Moment | None:
    text = _text(values, name)
    try:
        return parse_moment(text, name) if text else None
    except GrandboError as error:
        raise Unmappable(error.message) from None


GRANDBO = Source("grandbo", map_payload, delivery_key, "standard-webhooks")
