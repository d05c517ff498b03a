"""incident.io, delivered by Svix: the payload is keyed by its own type."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import draft, follow_up, source
from grandbo.hooks.drafts import Draft, DraftEvent, Headers, Ignored, Mapped, Payload
from grandbo.hooks.reading import at, first_text, header, is_cause, items, key, needed, needed_object, text

_CLOSED = frozenset({"learning", "closed"})
_NEVER_WAS = frozenset({"merged", "declined", "canceled", "cancelled"})
_DRILLS = frozenset({"test", "tutorial"})
_PRIVATE: dict[str, DraftEvent] = {
    "private_incident.incident_created_v2": "opened",
    "private_incident.incident_updated_v2": "updated",
    "private_incident.incident_status_updated_v2": "updated",
}
_FOLLOW_UPS = ("public_incident.follow_up_", "public_incident.action_")


def map(payload: Payload, headers: Headers) -> Mapped:
    """What an event says of its incident. Roles, creators and channels are not read."""
    wrapped = at(payload, "event_type") is None and at(payload, "type") is not None
    kind = needed(payload, "type" if wrapped else "event_type")
    place = "data" if wrapped else kind
    if kind in _PRIVATE:
        return (draft(_PRIVATE[kind], _id(_body(payload, place)), is_private=True),)
    if kind.startswith(_FOLLOW_UPS):
        return _follow_up(_body(payload, place))
    if kind == "public_incident.incident_status_updated_v2":
        return _status_updated(_body(payload, place))
    if kind == "public_incident.incident_created_v2":
        incident = _body(payload, place)
        # A back-filled incident is over when it is created.
        return _unless_void(_category(incident), incident, "resolved" if _is_closed(incident) else "opened")
    if kind == "public_incident.incident_updated_v2":
        incident = _body(payload, place)
        return _unless_void(_category(incident), incident, "updated")
    return Ignored("incident.io: this type of event teaches nothing")


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The id that Svix gives to a delivery and to its retries."""
    return key(header(headers, "webhook-id") or header(headers, "svix-id"))


def _body(payload: Payload, name: str) -> dict[str, Any]:
    # The type holds a dot, so it is no path.
    return needed_object({"payload": payload.get(name)}, "payload")


def _id(body: dict[str, Any]) -> str:
    return text(body, "incident.id") or needed(body, "id", within="payload")


def _category(incident: dict[str, Any]) -> str:
    return text(incident, "incident_status.category")


def _is_closed(incident: dict[str, Any]) -> bool:
    return _category(incident) in _CLOSED


def _status_updated(body: dict[str, Any]) -> Mapped:
    incident = needed_object(body, "incident")
    now, before = needed(body, "new_status.category", within="payload"), text(body, "previous_status.category")
    if now in _CLOSED:
        return _unless_void(now, incident, "updated" if before in _CLOSED else "resolved")
    if before in _CLOSED:
        return _unless_void(now, incident, "reopened")
    if now in _NEVER_WAS:
        return Ignored("incident.io: it was merged, declined or cancelled")
    return Ignored("incident.io: it goes on")


def _unless_void(category: str, incident: dict[str, Any], event: DraftEvent) -> Mapped:
    if category in _NEVER_WAS:
        return Ignored("incident.io: it was merged, declined or cancelled")
    return (_incident(event, incident),)


def _incident(event: DraftEvent, incident: dict[str, Any]) -> Draft:
    fields = [
        (text(entry, "custom_field.name"), ", ".join(filter(None, (_value(value) for value in items(entry, "values")))))
        for entry in items(incident, "custom_field_entries")
    ]
    services = [said for name, said in fields if said and name.lower() in ("service", "services", "affected services")]
    return draft(
        event,
        needed(incident, "id", within="payload.incident"),
        title=text(incident, "name"),
        summary=text(incident, "summary"),
        body=[f"{name}: {said}" for name, said in fields if said],
        cause="\n".join(said for name, said in fields if said and is_cause(name)),
        service=", ".join(services),
        severity=text(incident, "severity.name"),
        tags=[text(incident, "incident_type.name")],
        evidence=[
            source("incident", text(incident, "permalink"), text(incident, "reference")),
            source("postmortem", text(incident, "postmortem_document_url"), "post-mortem"),
        ],
        started=_time(incident, "start", "impact") or at(incident, "created_at"),
        ended=_time(incident, "resolv", "closed", "fixed") if event != "opened" else None,
        is_drill=text(incident, "mode") in _DRILLS,
        is_private=text(incident, "visibility") == "private",
    )


def _value(value: dict[str, Any]) -> str:
    return first_text(
        value,
        "value_text",
        "value_numeric",
        "value_option.value",
        "value_catalog_entry.name",
        "value_link",
    )


def _time(incident: dict[str, Any], *words: str) -> object:
    """The first of the incident's own timestamps whose name has one of the words in it."""
    for item in items(incident, "incident_timestamp_values"):
        name = text(item, "incident_timestamp.name").lower()
        if any(word in name for word in words) and text(item, "value.value"):
            return at(item, "value.value")
    return None


def _follow_up(body: dict[str, Any]) -> Mapped:
    item = needed_object(body, "follow_up") if "follow_up" in body else body
    if text(item, "status") in ("completed", "not_doing", "deleted"):
        return Ignored("incident.io: the follow-up is done")
    link = first_text(item, "external_issue_reference.issue_permalink", "permalink")
    known = follow_up(
        "incident-io", needed(item, "id", within="payload"), first_text(item, "title", "description"), link
    )
    return (draft("updated", needed(item, "incident_id", within="payload"), evidence=[known]),)
