"""What is due: reviews and expiries as a calendar and as a list, and saying of many at once that they were checked."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any

from grandbo.errors import InvalidInput
from grandbo.types import from_utc_text, new_id, utc_now
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, id_of, number, raw_text, text

WITHIN = ("7d", "2w", "5w", "13w")
_DEFAULT = "5w"
WEEKS = 6
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
VERIFY_LIMIT = 100


def show_due(call: Call) -> View:
    """Overdue first."""
    return _view(call, text(call.query, "within") or _DEFAULT)


def verify_rows(call: Call) -> Answer:
    """Verify the rows that were ticked, each with its own reason; what could not be done stays, with what was typed."""
    ticked = list(dict.fromkeys(call.form.getlist("row")))
    if not ticked or len(ticked) > VERIFY_LIMIT:
        error = InvalidInput(f"row: tick 1 to {VERIFY_LIMIT} rows.", field="row")
        return _view(call, text(call.form, "within") or _DEFAULT, error=error)
    whole = raw_text(call.form, "reason")
    rows = [{"entry_id": row, "reason": raw_text(call.form, f"reason_{row}") or whole} for row in ticked]
    results = list(call.memory.verify_due(rows, command_id=id_of(call.form.get("command_id"))))
    within = text(call.form, "within") or _DEFAULT
    if all(result["ok"] for result in results):
        return Redirect(address("/due", within=within, verified=len(results)))
    return _view(call, within, results=results)


def note_expiries(call: Call) -> Redirect:
    """Put on the record what has expired."""
    call.memory.sweep_expired()
    return Redirect(address("/due", done="swept"))


def _view(
    call: Call, within: str, *, results: list[dict[str, Any]] | None = None, error: InvalidInput | None = None
) -> View:
    page = call.memory.due(within=within, limit=number(call.query, "limit"), after=text(call.query, "after"))
    failed = {result["entry_id"]: result["error"] for result in results or () if not result["ok"]}
    today = utc_now().date()
    shown = {
        "asked": call.query,
        "within": within,
        "withins": dict.fromkeys((*WITHIN, within)),
        "typed": {name.removeprefix("reason_"): value for name, value in call.form.multi_items() if "reason_" in name},
        "reason": raw_text(call.form, "reason"),
        "ticked": set(call.form.getlist("row")) if results is not None or error else set(),
        "failed": failed,
        "verified": number(call.query, "verified"),
        "done_rows": sum(result["ok"] for result in results or ()),
        "error": error,
        "command_id": str(new_id()),
        "weeks": calendar(page.due, today),
        "days": DAYS,
    }
    status = 422 if error else 409 if failed else 200
    return View("due.html", page.as_dict() | {"results": results}, shown, status)


def calendar(due: list[dict[str, Any]], today: date) -> list[list[dict[str, Any]]]:
    """Weeks from this one on, each day with how many reviews and expiries fall on it."""
    reviews = Counter(from_utc_text(item["review_at"]).date() for item in due)
    expiries = Counter(from_utc_text(item["expires_at"]).date() for item in due)
    first = today - timedelta(days=today.weekday())
    days = [first + timedelta(days=n) for n in range(7 * WEEKS)]
    made = [
        {
            "day": day.isoformat(),
            "month": MONTHS[day.month - 1],
            "is_today": day == today,
            "reviews": reviews[day],
            "expiries": expiries[day],
        }
        for day in days
    ]
    return [made[start : start + 7] for start in range(0, len(made), 7)]


PAGES = (Page("/due", show_due, verify_rows), Page("/due/sweep", send=note_expiries))
