"""PagerDuty, webhooks of version 3."""

from __future__ import annotations

from grandbo.hooks.drafting import draft, source
from grandbo.hooks.drafts import Draft, DraftEvent, DraftEvidence, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import (
    at,
    first_text,
    header,
    is_cause,
    items,
    key,
    names_a_drill,
    needed,
    needed_object,
    text,
)

_EVENTS: dict[str, DraftEvent] = {
    "incident.triggered": "opened",
    "incident.resolved": "resolved",
    "incident.reopened": "reopened",
    "incident.priority_updated": "updated",
    "incident.service_updated": "updated",
    "incident.annotated": "updated",
    "incident.custom_field_values.updated": "updated",
    "incident.status_update_published": "updated",
}


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an event says of its incident. Responders, subscribers and conference bridges are not read."""
    event = needed_object(payload, "event")
    kind = needed(payload, "event.event_type")
    if kind not in _EVENTS:
        return Ignored("pagerduty: this type of event teaches nothing")
    data = needed_object(payload, "event.data")
    if "incident" in data:
        return (_about(_EVENTS[kind], data),)
    return (_incident(_EVENTS[kind], data, ended=at(event, "occurred_at") if kind == "incident.resolved" else None),)


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The id of the delivery, or of the event."""
    return key(header(headers, "x-webhook-id") or text(payload, "event.id"))


def _incident(event: DraftEvent, data: dict[str, object], ended: object) -> Draft:
    number = text(data, "number")
    kind = text(data, "incident_type.name")
    return draft(
        event,
        needed(data, "id", within="event.data"),
        title=text(data, "title"),
        body=text(data, "resolve_reason"),
        service=text(data, "service.summary"),
        severity=first_text(data, "priority.summary", "urgency"),
        tags=[kind],
        evidence=[source("incident", text(data, "html_url"), f"PagerDuty incident {number}".strip())],
        started=at(data, "created_at"),
        ended=ended,
        is_drill=names_a_drill(kind),
    )


def _about(event: DraftEvent, data: dict[str, object]) -> Draft:
    """A note, a status update or the fields of an incident that is named by reference."""
    fields = [(text(item, "name"), text(item, "value")) for item in items(data, "custom_fields")]
    if not text(data, "incident.id"):
        raise Unmappable("event.data.incident.id is missing or is no text.")
    return draft(
        event,
        text(data, "incident.id"),
        title=text(data, "incident.summary"),
        body=[first_text(data, "content", "message"), *(f"{name}: {value}" for name, value in fields if value)],
        cause="\n".join(value for name, value in fields if is_cause(name) and value),
        evidence=[_reference(data)],
        is_drill=any(names_a_drill(name) and value.lower() in ("true", "yes") for name, value in fields),
    )


def _reference(data: dict[str, object]) -> DraftEvidence | None:
    return source("incident", text(data, "incident.html_url"), "PagerDuty incident")
