"""Receipts: what was answered, to whom; the proof that it would be answered again; and what became of it."""

from __future__ import annotations

from uuid import UUID

from grandbo.errors import GrandboError, NotFound
from grandbo.recall.ledger import DEFAULT_PAGE
from grandbo.types import VERDICTS
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, id_field, number, raw_text, text


def show_receipts(call: Call) -> View:
    """Newest first."""
    limit = number(call.query, "limit")
    found = call.memory.receipts(
        entry_id=id_field(call.query, "entry"), limit=limit, after=id_field(call.query, "after")
    )
    more = found[-1]["receipt_id"] if len(found) == (limit or DEFAULT_PAGE) else None
    return View("receipts.html", {"receipts": found, "next": more}, {"asked": call.query})


def show_receipt(call: Call) -> View:
    """One, with the titles of what it served as they stand now."""
    return _view(call)


def act_on_receipt(call: Call) -> Answer:
    """Replay it with the topic that was asked, or say what became of one of its matches."""
    receipt_id = call.id_in_path("receipt_id")
    try:
        if "topic" in call.form:
            replayed = call.memory.replay_receipt(receipt_id, raw_text(call.form, "topic"))
            return _view(call, replay=replayed.as_dict())
        entry_id = id_field(call.form, "entry_id")
        if entry_id is None:
            raise NotFound
        call.memory.give_feedback(
            receipt_id, entry_id, text(call.form, "verdict") or "", note=raw_text(call.form, "note") or None
        )
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _view(call, error=error)
    return Redirect(address(f"/receipts/{receipt_id}", done="feedback"))


def _view(call: Call, *, replay: dict[str, object] | None = None, error: GrandboError | None = None) -> View:
    receipt = call.memory.receipt(call.id_in_path("receipt_id"))
    titles = {}
    for match in receipt["matches"]:
        if "entry_id" in match:
            try:
                titles[match["entry_id"]] = call.memory.show_entry(UUID(match["entry_id"]))["title"]
            except NotFound:
                titles[match["entry_id"]] = "no longer to be seen"
    shown = {"titles": titles, "error": error, "topic": call.form.get("topic", ""), "verdicts": VERDICTS}
    status = error.http_status if error else 200
    return View("receipt.html", {"receipt": receipt, "replay": replay}, shown, status)


PAGES = (Page("/receipts", show_receipts), Page("/receipts/{receipt_id}", show_receipt, act_on_receipt))
