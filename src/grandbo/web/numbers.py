"""How often it happens again, and how the memory is used and fares: plots, with the table behind each."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from grandbo.recall.answer import EmptyReason
from grandbo.types import from_utc_text
from grandbo.web.call import Call, Page, View, number, text

REASONS: tuple[EmptyReason, ...] = ("nothing_in_scope", "nothing_matched", "beyond_cutoff", "semantic_unavailable")
MONTHS = 60


def show_recurrence(call: Call) -> View:
    """By service and by month."""
    service = text(call.query, "service")
    found = call.memory.recurrences(service=service)
    shown = {"asked": call.query, "months_shown": _whole_months(found["months"])[-MONTHS:]}
    return View("recurrence.html", found, shown)


def show_usage(call: Call) -> View:
    """Recalls, the empty ones by reason, how long they took, what waits."""
    memory = call.memory
    usage = memory.usage(days=number(call.query, "days"))
    shown = {"asked": call.query, "days_shown": _whole_days(usage), "reasons": REASONS}
    return View("usage.html", {"usage": usage}, shown)


def _whole_days(usage: dict[str, Any]) -> list[dict[str, Any]]:
    """Every day of the range, those without a recall too."""
    by_day = {item["day"]: item for item in usage["recalls"]}
    day, last = from_utc_text(usage["since"]).date(), from_utc_text(usage["until"]).date()
    made = []
    while day <= last:
        name = day.isoformat()
        made.append(by_day.get(name, {"day": name, "recalls": 0, "empty": {}}))
        day += timedelta(days=1)
    return made


def _whole_months(months: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every month from the first to the last, those without an occurrence too."""
    if not months:
        return []
    by_month = {item["month"]: item["occurrences"] for item in months}
    month, last = date.fromisoformat(f"{months[0]['month']}-01"), months[-1]["month"]
    made = []
    while (name := month.strftime("%Y-%m")) <= last:
        made.append({"month": name, "occurrences": by_month.get(name, 0)})
        month = (month + timedelta(days=32)).replace(day=1)
    return made


PAGES = (Page("/recurrence", show_recurrence), Page("/usage", show_usage))
