"""Datadog incidents, by the payload template that comes with Grandbo (`data/hooks/datadog.json`)."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import draft, one_of, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import at, first_text, is_cause, is_true, items, names_a_drill, needed, text, texts
from grandbo.types import digest_of

TEMPLATE = "datadog.json"
_STATUSES: dict[str, DraftEvent] = {
    "active": "opened",
    "stable": "updated",
    "resolved": "resolved",
    "completed": "postmortem",
}


def map(payload: Payload, headers: Headers) -> Mapped:
    """What a notification says of its incident. The commander is not read."""
    if text(payload, "grandbo_template") != "1":
        raise Unmappable("grandbo_template is missing or is not `1`; paste the payload template again.")
    event: DraftEvent | None = one_of(_STATUSES, needed(payload, "status"))
    if event is None:
        return Ignored("datadog: this status teaches nothing")
    fields = dict(_fields(payload))
    postmortems = [item for item in items(payload, "attachments") if text(item, "attachment_type") == "postmortem"]
    impact = text(payload, "customer_impact.customer_impact_scope")
    title = text(payload, "title")
    return (
        draft(
            "resolved" if event == "postmortem" and not postmortems else event,
            text(payload, "uuid") or needed(payload, "public_id"),
            title=title,
            summary=fields.get("summary", ""),
            body=[
                f"Customer impact: {impact}" if impact else "",
                *(f"{name}: {said}" for name, said in fields.items()),
            ],
            cause="\n".join(said for name, said in fields.items() if is_cause(name)),
            service=fields.get("services", fields.get("service", "")),
            severity=text(payload, "severity"),
            evidence=[
                source("incident", text(payload, "url"), f"Datadog incident {text(payload, 'public_id')}".strip()),
                *(
                    source(
                        "postmortem",
                        first_text(item, "attachment.documentUrl", "attachment.url"),
                        text(item, "attachment.title"),
                    )
                    for item in postmortems
                ),
            ],
            is_drill=title.upper().startswith("[TEST]")
            or names_a_drill(fields.get("incident_type", ""))
            or is_true(payload, "is_test"),
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The incident with all that is said of it: the tool gives its deliveries no id."""
    known = first_text(payload, "uuid", "public_id")
    told = [text(payload, name) for name in ("status", "severity", "title", "message")]
    more = [sorted(_fields(payload)), [text(item, "attachment_type") for item in items(payload, "attachments")]]
    return digest_of([known, told, more]) if known else ""


def _fields(payload: Payload) -> list[tuple[str, str]]:
    """Fields as `{name: value}` or `{name: {value}}`, where a value may be a list."""
    found = at(payload, "fields")
    if not isinstance(found, dict):
        return []
    said = {name: _value(value.get("value") if isinstance(value, dict) else value) for name, value in found.items()}
    return [(name, said[name]) for name in sorted(said) if said[name]]


def _value(value: Any) -> str:
    return ", ".join(texts({"list": value}, "list")) if isinstance(value, list) else text({"": value}, "")
