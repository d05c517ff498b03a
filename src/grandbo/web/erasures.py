"""Erasure: one person asks, another confirms, and the certificate that anyone can check."""

from __future__ import annotations

from typing import get_args

from grandbo.errors import GrandboError, InvalidInput, NotFound
from grandbo.events.erasures import ErasureReason
from grandbo.web.call import Answer, Call, Download, Page, Redirect, View, address, id_field, text, ticked

REASONS: tuple[str, ...] = get_args(ErasureReason)


def show_erasures(call: Call) -> View:
    """Requests and what became of them, the newest first."""
    return _view(call)


def ask(call: Call) -> Answer:
    """Ask for an entry to be erased."""
    try:
        entry_id = id_field(call.form, "entry_id")
        if entry_id is None:
            raise InvalidInput("entry_id: say which entry.", field="entry_id")
        call.memory.request_erasure(
            entry_id,
            text(call.form, "reason") or "",
            keeps_current=ticked(call.form, "keeps_current"),
            revisions=_numbers(text(call.form, "revisions") or ""),
        )
    except GrandboError as error:
        if error.http_status >= 500:
            raise
        return _view(call, error=error)
    return Redirect(address("/erasures", done="asked"))


def act_on_erasure(call: Call) -> Answer:
    """Confirm what somebody else asked for, or take a request back."""
    erasure_id, act = call.id_in_path("erasure_id"), call.path["act"]
    try:
        if act == "confirm":
            if not ticked(call.form, "sure"):
                raise InvalidInput("Say that you are sure: nothing brings it back.", field="sure")
            call.memory.confirm_erasure(erasure_id)
            return Redirect(address("/erasures", done="erased"))
        if act == "cancel":
            call.memory.cancel_erasure(erasure_id)
            return Redirect(address("/erasures", done="cancelled"))
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _view(call, error=error)
    raise NotFound


def download_certificate(call: Call) -> Download:
    """The certificate as it was signed."""
    erasure_id = call.id_in_path("erasure_id")
    found = next((item for item in call.memory.erasures() if item.erasure_id == erasure_id), None)
    if found is None or found.certificate is None:
        raise NotFound("There is no such certificate in this tenant.")
    return Download(f"erasure-{erasure_id}.certificate", "text/plain", found.certificate)


def _numbers(typed: str) -> list[int]:
    """Numbers with commas or blanks between them. Raises `InvalidInput`."""
    given = typed.replace(",", " ").split()
    if not all(one.isascii() and one.isdigit() and len(one) < 10 for one in given):
        raise InvalidInput("revisions: give their numbers, such as 2, 3.", field="revisions")
    return [int(one) for one in given]


def _view(call: Call, *, error: GrandboError | None = None) -> View:
    found = [item.as_dict() for item in reversed(call.memory.erasures())]
    shown = {
        "reasons": REASONS,
        "error": error,
        "entry": call.form.get("entry_id") or call.query.get("entry") or "",
        "own": call.memory.principal.ref,
        "may_ask": call.may("administer"),
    }
    return View("erasures.html", {"erasures": found}, shown, error.http_status if error else 200)


PAGES = (
    Page("/erasures", show_erasures, ask),
    Page("/erasures/{erasure_id}/certificate", download_certificate),
    Page("/erasures/{erasure_id}/{act}", send=act_on_erasure),
)
