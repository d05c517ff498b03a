"""FireHydrant: it sends on every change, so what counts is the milestone that the incident has reached."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import draft, follow_up, one_of, source
from grandbo.hooks.drafts import Draft, DraftEvent, Headers, Ignored, Mapped, Payload
from grandbo.hooks.reading import (
    at,
    first_text,
    is_cause,
    is_true,
    items,
    key,
    labels_say_drill,
    named,
    names_a_drill,
    needed,
    needed_object,
    text,
    texts,
)

_MILESTONES: dict[str, DraftEvent] = {
    "started": "opened",
    "detected": "opened",
    "acknowledged": "updated",
    "investigating": "updated",
    "identified": "updated",
    "mitigated": "updated",
    "resolved": "resolved",
    "retrospective_started": "updated",
    "postmortem_started": "updated",
    "retrospective_completed": "postmortem",
    "postmortem_completed": "postmortem",
    "closed": "updated",
}
_OVER = ("resolved", "closed", "retrospective_started", "retrospective_completed")


def map(payload: Payload, headers: Headers) -> Mapped:
    """What the state of the incident says. Chat lines (`last_note`), people and channels are not read."""
    if text(payload, "event.resource_type") not in ("", "incident"):
        return Ignored("firehydrant: this type of resource teaches nothing")
    incident = needed_object(payload, "data.incident")
    event: DraftEvent | None = one_of(_MILESTONES, needed(incident, "current_milestone", within="data.incident"))
    if event is None:
        return Ignored("firehydrant: this milestone teaches nothing")
    return (_incident(event, incident),)


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The incident, its milestone and when that was reached; a change that reaches no other one is a retry."""
    incident = at(payload, "data.incident")
    known = [text(incident, "id"), text(incident, "current_milestone")]
    reached = [item for item in items(incident, "milestones") if text(item, "type") == known[1]]
    when = text(reached[-1], "occurred_at") if reached else ""
    kind = text(payload, "event.resource_type")
    return key(*known, when or "unknown") if kind in ("", "incident") else ""


def _incident(event: DraftEvent, incident: dict[str, Any]) -> Draft:
    fields = [(text(item, "display_name"), text(item, "value")) for item in items(incident, "custom_fields")]
    impact = text(incident, "customer_impact_summary")
    milestones = {text(item, "type"): at(item, "occurred_at") for item in items(incident, "milestones")}
    return draft(
        event,
        needed(incident, "id", within="data.incident"),
        title=text(incident, "name"),
        summary=first_text(incident, "summary", "description"),
        body=[f"Customer impact: {impact}" if impact else "", *(f"{name}: {said}" for name, said in fields if said)],
        cause="\n".join(said for name, said in fields if said and is_cause(name)),
        service=", ".join(_impacted(incident)),
        severity=first_text(incident, "severity.slug", "severity"),
        tags=[*texts(incident, "tags"), *named(incident, "tags").split(", ")],
        evidence=[
            source("incident", first_text(incident, "incident_url", "private_status_page_url"), _label(incident)),
            *(
                follow_up("firehydrant", text(item, "id"), first_text(item, "summary", "description"))
                for item in items(incident, "follow_ups")
                if text(item, "state").lower() not in ("done", "cancelled")
            ),
        ],
        started=milestones.get("started") or first_text(incident, "started_at", "created_at"),
        ended=milestones.get("resolved") if text(incident, "current_milestone") in _OVER else None,
        is_drill=names_a_drill(first_text(incident, "severity.type", "severity.slug"), text(incident, "incident_type"))
        or labels_say_drill(at(incident, "labels")),
        is_private=is_true(incident, "restricted"),
    )


def _impacted(incident: dict[str, Any]) -> list[str]:
    found = [first_text(item, "impact.name", "name") for item in items(incident, "impacts")]
    return list(dict.fromkeys(name for name in found if name))


def _label(incident: dict[str, Any]) -> str:
    return f"FireHydrant incident {text(incident, 'number')}".strip()
