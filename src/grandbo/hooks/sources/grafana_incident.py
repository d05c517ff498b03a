"""Grafana Incident: the signed outgoing webhook, and the CloudEvents of Grafana Workflows."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import draft, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import at, first_text, is_true, items, key, names_a_drill, needed, text


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an event says of its incident. Members, channels and tasks are not read."""
    kind = first_text(payload, "event", "type")
    if not kind:
        raise Unmappable("event is missing or is no text.")
    if "incident" not in kind.lower():
        return Ignored("grafana-incident: this type of event teaches nothing")
    incident = _incident(payload)
    if incident is None:
        raise Unmappable("incident is missing or is no object.")
    event = _event(kind.lower(), incident)
    labels = [first_text(item, "label") for item in items(incident, "labels")]
    return (
        draft(
            event,
            needed(incident, "incidentID", within="incident"),
            title=text(incident, "title"),
            summary=text(incident, "summary"),
            severity=text(incident, "severity"),
            service=next((label.partition(":")[2] for label in labels if label.startswith("service:")), ""),
            tags=labels,
            evidence=[
                source("incident", text(incident, "overviewURL"), "Grafana incident"),
                *(
                    source("link", text(item, "url"), first_text(item, "title", "key"))
                    for item in items(incident, "refs")
                ),
            ],
            started=first_text(incident, "incidentStart", "createdTime"),
            ended=first_text(incident, "incidentEnd", "closedTime") if event == "resolved" else None,
            is_drill=is_true(incident, "isDrill") or names_a_drill(text(incident, "incidentType")),
            is_private=text(incident, "incidentType") == "private",
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """
    The id of the event; of a CloudEvent, whose retry has another, the incident with its status and when it changed.
    """
    if text(payload, "version") and text(payload, "id"):
        return key(text(payload, "id"))
    incident = _incident(payload)
    known = [text(incident, name) for name in ("incidentID", "status", "modifiedTime")]
    return key(*known)


def _incident(payload: Payload) -> dict[str, Any] | None:
    for path in ("incident", "data.incident", "data"):
        found = at(payload, path)
        if isinstance(found, dict):
            return found
    return None


def _event(kind: str, incident: dict[str, Any]) -> DraftEvent:
    if "reopen" in kind:
        return "reopened"
    if text(incident, "status").lower() == "resolved" or text(incident, "closedTime"):
        return "resolved"
    return "opened" if "creat" in kind or "declar" in kind else "updated"
