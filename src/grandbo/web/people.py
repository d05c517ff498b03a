"""People: find a subject, all that is held about one, holds, and forgetting one with a second person."""

from __future__ import annotations

from typing import Any, get_args

from grandbo.errors import GrandboError, InvalidInput, NotFound
from grandbo.events.erasures import ErasureReason
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, raw_text, text
from grandbo.web.verbs import read_lines

KINDS = ("person", "workspace")
REASONS: tuple[str, ...] = get_args(ErasureReason)


def show_people(call: Call) -> View:
    """All subjects, without their names."""
    return _people(call)


def find_or_register(call: Call) -> Answer:
    """Find a subject by what it is called elsewhere, which must stand in no address; or register it."""
    reference = text(call.form, "reference") or ""
    try:
        if call.form.get("act") == "find":
            return Redirect(f"/people/{call.memory.subject(reference).subject_id}")
        made = call.memory.register_subject(
            text(call.form, "kind") or "",
            reference,
            text(call.form, "name") or "",
            principals=read_lines(raw_text(call.form, "principals")),
        )
    except GrandboError as error:
        if error.http_status == 401 or error.http_status >= 500:
            raise
        return _people(call, error=error)
    done = "registered" if made.created else "known"
    return Redirect(address(f"/people/{made.subject.subject_id}", done=done))


def show_person(call: Call) -> View:
    """One subject, its hold, and the acts on it."""
    return _person(call)


def act_on_person(call: Call) -> Answer:
    """Set or lift a hold, or forget: at once, or where the policy wants two people, once another has confirmed it."""
    subject_id, act = call.id_in_path("subject_id"), call.path["act"]
    reason = raw_text(call.form, "reason")
    try:
        if act == "hold":
            call.memory.hold_subject(subject_id, reason)
            return Redirect(address(f"/people/{subject_id}", done="held"))
        if act == "lift-hold":
            call.memory.lift_hold(subject_id, reason)
            return Redirect(address(f"/people/{subject_id}", done="lifted"))
        if act == "forget":
            if not text(call.form, "sure"):
                raise InvalidInput("Say that you are sure: nothing brings it back.", field="sure")
            done = call.memory.forget_subject(subject_id, reason)
            asked = done.position is None
            return Redirect(address(f"/people/{subject_id}", done="forget_asked" if asked else "forgotten"))
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _person(call, error=error)
    raise NotFound


def show_held(call: Call) -> View:
    """All that is held about a subject, and to whom it was shown."""
    return View("held.html", call.memory.held(call.id_in_path("subject_id")))


def _people(call: Call, *, error: GrandboError | None = None) -> View:
    found = [subject.as_dict() for subject in call.memory.subjects()]
    shown = {"kinds": KINDS, "error": error, "typed": call.form, "may_register": call.may("govern")}
    return View("people.html", {"subjects": found}, shown, error.http_status if error else 200)


def _person(call: Call, *, error: GrandboError | None = None) -> View:
    subject = call.memory.subject(call.id_in_path("subject_id")).as_dict()
    wanted: list[dict[str, Any]] = [
        item.as_dict() for item in call.memory.erasures() if str(item.subject_id) == subject["subject_id"]
    ]
    shown = {
        "reasons": REASONS,
        "error": error,
        "reason": raw_text(call.form, "reason"),
        "own": call.memory.principal.ref,
        "may_act": call.may("administer"),
        "second_person": call.memory.tenant.policy.people.second_person,
    }
    data = {"subject": subject, "erasures": wanted}
    return View("person.html", data, shown, error.http_status if error else 200)


PAGES = (
    Page("/people", show_people, find_or_register),
    Page("/people/{subject_id}/held", show_held),
    Page("/people/{subject_id}", show_person),
    Page("/people/{subject_id}/{act}", send=act_on_person),
)
