"""Opsgenie and the operations of Jira Service Management: alerts."""

from __future__ import annotations

from grandbo.hooks.drafting import draft, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload
from grandbo.hooks.reading import (
    at,
    first_text,
    is_cause,
    key,
    labels_say_drill,
    names_a_drill,
    needed,
    needed_object,
    pairs,
    text,
    texts,
)

_EVENTS: dict[str, DraftEvent] = {
    "Create": "opened",
    "Close": "resolved",
    "UpdateMessage": "updated",
    "UpdateDescription": "updated",
    "UpdatePriority": "updated",
}


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an action says of its alert. Notes, users, responders and teams are not read."""
    action = needed(payload, "action")
    if action not in _EVENTS:
        return Ignored("opsgenie: this action teaches nothing")
    alert = needed_object(payload, "alert")
    tags = texts(alert, "tags")
    details = list(pairs(alert, "details"))
    return (
        draft(
            _EVENTS[action],
            needed(alert, "alertId", within="alert"),
            title=text(alert, "message"),
            summary=text(alert, "description"),
            body=[f"{name}: {said}" for name, said in details],
            cause="\n".join(said for name, said in details if is_cause(name)),
            service=first_text(alert, "details.service", "entity"),
            severity=text(alert, "priority"),
            tags=tags,
            evidence=[
                source("alert", text(alert, "details.url"), f"alert {text(alert, 'tinyId')}".strip()),
                source("runbook", text(alert, "details.runbook_url"), "runbook"),
            ],
            started=at(alert, "createdAt"),
            ended=at(alert, "updatedAt") if action == "Close" else None,
            is_drill=any(names_a_drill(tag) for tag in tags) or labels_say_drill(at(alert, "details")),
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The alert, what was done to it, and when."""
    known = [text(payload, "alert.alertId"), text(payload, "action"), text(payload, "alert.updatedAt")]
    return key(*known)
