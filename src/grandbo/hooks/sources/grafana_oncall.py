"""Grafana OnCall and the outgoing webhooks of Grafana IRM, with `Forward all`."""

from __future__ import annotations

from grandbo.hooks.drafting import draft, one_of, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload
from grandbo.hooks.reading import at, first_text, key, labels_say_drill, needed, needed_object, text

_EVENTS: dict[str, DraftEvent] = {
    "alert_group_created": "opened",
    "escalation": "opened",
    "trigger": "opened",
    "triggered": "opened",
    "firing": "opened",
    "resolve": "resolved",
    "resolved": "resolved",
    "unresolve": "reopened",
    "unresolved": "reopened",
}


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an event says of its alert group. Users and the raw alert (`alert_payload`) are not read."""
    event: DraftEvent | None = one_of(_EVENTS, needed(payload, "event.type"))
    if event is None:
        return Ignored("grafana-oncall: this type of event teaches nothing")
    group = needed_object(payload, "alert_group")
    labels = at(group, "labels")
    return (
        draft(
            event,
            needed(group, "id", within="alert_group"),
            title=text(group, "title"),
            service=first_text(labels, "service", "service_name"),
            severity=text(labels, "severity"),
            tags=[text(payload, "integration.name"), text(labels, "team")],
            evidence=[source("alert", text(group, "permalinks.web"), "alert group")],
            started=at(group, "created_at"),
            ended=at(group, "resolved_at") if event == "resolved" else None,
            is_drill=labels_say_drill(labels) or labels_say_drill(at(payload, "integration.labels")),
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The alert group, what happened to it, and when."""
    group = first_text(payload, "alert_group.id", "alert_group_id")
    known = [group, text(payload, "event.type"), text(payload, "event.time")]
    return key(*known)
