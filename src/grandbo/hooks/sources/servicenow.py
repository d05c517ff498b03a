"""ServiceNow incidents, by the business rule that comes with Grandbo (`data/hooks/servicenow.js`)."""

from __future__ import annotations

from typing import Any

from grandbo.hooks.drafting import draft, source
from grandbo.hooks.drafts import DraftEvent, Headers, Ignored, Mapped, Payload, Unmappable
from grandbo.hooks.reading import at, first_text, key, names_a_drill, needed, needed_object, text

TEMPLATE = "servicenow.js"
_OVER = ("6", "7")
_OPEN = ("1", "2", "3")


def map(payload: Payload, headers: Headers) -> Mapped:
    """What a record says. Callers, assignees, comments and work notes are not sent."""
    if text(payload, "grandbo_template") != "1":
        raise Unmappable("grandbo_template is missing or is not `1`; paste the business rule again.")
    record = needed_object(payload, "record")
    state, before = needed(record, "state", within="record"), text(payload, "previous_state")
    if state not in _OVER and state not in _OPEN:
        return Ignored("servicenow: this state teaches nothing")
    event = _event(state, before)
    return (
        draft(
            event,
            needed(record, "sys_id", within="record"),
            title=text(record, "short_description"),
            summary=text(record, "description"),
            body=_details(record),
            # The only field that says why; while an incident is open it holds what an earlier close said.
            cause=text(record, "close_notes") if state in _OVER else "",
            service=first_text(record, "business_service", "cmdb_ci"),
            severity=text(record, "priority"),
            tags=[text(record, "category"), text(record, "subcategory")],
            evidence=[source("incident", text(payload, "url"), text(record, "number"))],
            started=at(record, "sys_created_on"),
            ended=at(record, "resolved_at") if state in _OVER else None,
            is_drill=names_a_drill(text(record, "category"), text(record, "subcategory")),
        ),
    )


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The record, its state, and when it changed last."""
    known = [text(payload, f"record.{name}") for name in ("sys_id", "state", "sys_updated_on")]
    return key(*known)


def _event(state: str, before: str) -> DraftEvent:
    if state in _OVER:
        return "updated" if before in _OVER else "resolved"
    if before in _OVER:
        return "reopened"
    return "opened" if not before else "updated"


def _details(record: dict[str, Any]) -> list[str]:
    named = (("Close code", "close_code"), ("Impact", "impact"), ("Urgency", "urgency"), ("Problem", "problem_id"))
    return [f"{label}: {text(record, name)}" for label, name in named if text(record, name)]
