"""Incidents and the inbox: what tools delivered, what it was understood to say, and what it taught."""

from __future__ import annotations

import json
from typing import Any

from grandbo.errors import NotFound
from grandbo.memory.inbox import STATES
from grandbo.web.call import Call, Page, Redirect, View, address, number, text


def show_inbox(call: Call) -> View:
    """Deliveries, newest first."""
    wanted = {
        "state": text(call.query, "state"),
        "limit": number(call.query, "limit"),
        "after": text(call.query, "after"),
    }
    return View("inbox.html", call.memory.inbox(**wanted), {"asked": call.query, "states": STATES})


def show_delivery(call: Call) -> View:
    """One delivery with its raw body, as text."""
    found = call.memory.delivery(call.id_in_path("delivery_id"))
    return View("delivery.html", {"delivery": found}, {"body": _indented(found["body"])})


def act_on_delivery(call: Call) -> Redirect:
    """Have it mapped again, or give it up."""
    delivery_id, act = call.id_in_path("delivery_id"), call.path["act"]
    if act == "retry":
        call.memory.retry_delivery(delivery_id, subject=text(call.form, "subject"))
    elif act == "drop":
        call.memory.drop_delivery(delivery_id)
    else:
        raise NotFound
    return Redirect(address(f"/inbox/{call.path['delivery_id']}", done=call.path["act"]))


def show_incidents(call: Call) -> View:
    """What deliveries told of, the last changed first."""
    found = call.memory.incidents(limit=number(call.query, "limit"), after=text(call.query, "after"))
    return View("incidents.html", found, {"asked": call.query})


def show_incident(call: Call) -> View:
    """One incident: its timeline, its deliveries, and what it taught."""
    found = call.memory.incident(call.path["source"], call.path["incident_id"])
    times: list[dict[str, Any]] = [
        {"at": found["said"][name], "what": name}
        for name in ("opened", "resolved", "reopened", "postmortem")
        if found["said"].get(name)
    ]
    return View("incident.html", {"incident": found}, {"timeline": sorted(times, key=lambda item: item["at"])})


def _indented(body: str | None) -> str | None:
    """JSON with line breaks, where it is JSON; anything else as it came."""
    try:
        return None if body is None else json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


PAGES = (
    Page("/inbox", show_inbox),
    Page("/inbox/{delivery_id}", show_delivery),
    Page("/inbox/{delivery_id}/{act}", send=act_on_delivery),
    Page("/incidents", show_incidents),
    Page("/incidents/{source}/{incident_id}", show_incident),
)
