"""
Doing something to an entry: a form, a preview of what it would change, and the deed.

A form names the revision that it was begun on. Where somebody was faster, the page shows what has changed since and
keeps every word that was typed; the fields that were left alone take what stands there now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from starlette.datastructures import ImmutableMultiDict

from grandbo.errors import GrandboError, InvalidInput, NotFound, RevisionStale
from grandbo.events.models import EntryReleased
from grandbo.events.parts import EventBody
from grandbo.memory.differences import compare_revisions, revision_of, state_differences
from grandbo.memory.lifecycle import EntryState
from grandbo.memory.policy import require
from grandbo.types import new_id, utc_text
from grandbo.web.call import Answer, Call, Page, Redirect, Values, View, address, id_of, raw_text
from grandbo.web.verbs import VERBS, Form, Verb, unix_lines

_STATUS_AFTER = {
    "archive": "archived",
    "unarchive": "published",
    "supersede": "superseded",
    "quarantine": "quarantined",
}
_LEFT_ALONE = frozenset({"revision", "changed_at", "claim_digest", "text_digest"})


def show_form(call: Call) -> View:
    """The form of a verb, filled with what stands there now."""
    verb = _verb(call)
    require(call.memory.principal, "govern")
    entry = call.memory.show_entry(call.entry_id)
    values = {field.name: field.initial(entry) for field in verb.fields}
    given = {field.name: call.query[field.name] for field in verb.fields if field.name in call.query}
    values |= given | {"reason": "", "command_id": str(new_id())}
    return _form_view(call, verb, entry, values, entry["revision"])


def carry_out(call: Call) -> Answer:
    """Preview what was asked for, or do it."""
    verb = _verb(call)
    require(call.memory.principal, "govern")
    entry = call.memory.show_entry(call.entry_id)
    values: dict[str, Any] = {field.name: raw_text(call.form, field.name) for field in verb.fields}
    values |= {"reason": raw_text(call.form, "reason"), "command_id": call.form.get("command_id", "")}
    begun_on = _begun_on(call, entry)
    try:
        wish = verb.wish(_form_of(call, begun_on))
        if call.form.get("step") != "commit":
            state, would = call.memory.preview(wish)
            preview = {"changes": changes_of(verb, state, would), "is_change": would is not None}
            return _form_view(call, verb, entry, values, begun_on["revision"], preview=preview)
        changed = call.memory.govern(wish)
    except RevisionStale as error:
        return _conflict(call, verb, entry, values, begun_on, error)
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _form_view(call, verb, entry, values, begun_on["revision"], error=error)
    done = verb.name if changed.appended or changed.replayed else "nothing"
    return Redirect(address(f"/entries/{call.entry_id}", done=done))


def changes_of(verb: Verb, state: EntryState, would: EventBody | None) -> list[dict[str, Any]]:
    """What an event would make of a state, field by field."""
    if would is None:
        return []
    said = would.model_dump(mode="json")
    known = {name: plain(getattr(state, name)) for name in EntryState.__slots__}
    after = {name: value for name, value in said.items() if name not in _LEFT_ALONE}
    if verb.name in _STATUS_AFTER:
        after["status"] = _STATUS_AFTER[verb.name]
    if isinstance(would, EntryReleased):
        after["status"] = would.status
    if verb.name in ("dispute", "resolve"):
        after["disputed"] = verb.name == "dispute"
    if verb.name == "verify":
        known["review_at"] = None
    if "applicability" in after:
        after["applicability"] = [f"{item['system']} {item['versions']}".strip() for item in said["applicability"]]
    shared = [name for name in after if name in known]
    return [
        difference.as_dict()
        for difference in state_differences(
            {name: known[name] for name in shared}, {name: plain(after[name]) for name in shared}
        )
    ]


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, UUID):
        return str(value)
    return utc_text(value) if hasattr(value, "astimezone") else value


def _conflict(
    call: Call, verb: Verb, entry: dict[str, Any], values: dict[str, Any], begun_on: dict[str, Any], error: GrandboError
) -> View:
    """Somebody was faster: show what changed since, keep what was typed, refresh what was left alone."""
    for field in verb.fields:
        untouched = unix_lines(field.initial(begun_on["state"]))
        if values[field.name] == untouched:
            values[field.name] = field.initial(entry)
    history = call.memory.history(call.entry_id)
    since = compare_revisions(history, begun_on["revision"], entry["revision"]).as_dict()
    events = [item for item in history if item["revision"] > begun_on["revision"]]
    conflict = {"since": since, "events": events}
    return _form_view(call, verb, entry, values, entry["revision"], error=error, conflict=conflict)


def _begun_on(call: Call, entry: dict[str, Any]) -> dict[str, Any]:
    """The revision that the form was filled from, and its state; as it stands where that is not to be had."""
    given = call.form.get("expected_revision", "")
    stands = {"revision": entry["revision"], "state": entry}
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise InvalidInput("expected_revision: the form lacks the revision it was begun on; open it again.")
    if int(given) == entry["revision"]:
        return stands
    found = revision_of(call.memory.history(call.entry_id), int(given))
    return {"revision": int(given), "state": found["state"]}


def _form_of(call: Call, begun_on: Mapping[str, Any]) -> Form:
    options: dict[str, Any] = {"expected_revision": begun_on["revision"]}
    command_id = id_of(call.form.get("command_id"))
    if call.form.get("step") == "commit" and command_id is not None and command_id.version != 5:
        options["command_id"] = command_id
    values: Values = ImmutableMultiDict(call.form.multi_items())
    return Form(call.memory, call.entry_id, begun_on["state"], values, options)


def _form_view(
    call: Call,
    verb: Verb,
    entry: dict[str, Any],
    values: Mapping[str, Any],
    revision: int,
    *,
    preview: dict[str, Any] | None = None,
    error: GrandboError | None = None,
    conflict: dict[str, Any] | None = None,
) -> View:
    fields = [
        {
            "name": field.name,
            "label": field.label,
            "kind": field.kind,
            "hint": field.hint,
            "required": field.required,
            "choices": field.choices(call.memory) if field.choices else (),
        }
        for field in verb.fields
    ]
    data = {
        "verb": verb.name,
        "entry_id": entry["entry_id"],
        "expected_revision": revision,
        "fields": fields,
        "preview": preview,
        "conflict": conflict,
        "error": error.as_dict() if error else None,
    }
    shown = {"act": verb, "entry": entry, "values": values}
    return View("act.html", data, shown, error.http_status if error else 200)


def _verb(call: Call) -> Verb:
    verb = VERBS.get(call.path["verb"])
    if verb is None:
        raise NotFound(f"There is no such act; there are {', '.join(VERBS)}.")
    return verb


PAGES = (Page("/entries/{entry_id}/do/{verb}", show_form, carry_out),)
