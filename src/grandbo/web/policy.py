"""The policy: as it is in force, each section as a form with its preview and its conflict, and all of it as JSON."""

from __future__ import annotations

import json
from typing import Any

from grandbo.errors import GrandboError, NotFound, PolicyStale
from grandbo.events.models import Policy
from grandbo.memory.policies import PolicyInForce
from grandbo.memory.policy import require
from grandbo.types import new_id
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, id_of, json_object, number, raw_text
from grandbo.web.policy_forms import BY_NAME, SECTIONS, Section, Typed, changes_in, differences


def show_policy(call: Call) -> View:
    """The policy in force, section by section."""
    in_force = call.memory.policy()
    stated = in_force.as_dict()
    shown = {
        "sections": [_told(section, stated["policy"]) for section in SECTIONS],
        "may_change": call.may("administer"),
    }
    return View("admin_policy.html", stated, shown)


def show_section(call: Call) -> View:
    """The form of one section, filled with what is in force."""
    require(call.memory.principal, "administer")
    section = _section(call)
    in_force = call.memory.policy()
    stated = in_force.policy.model_dump(mode="json")
    return _section_view(
        call, section, in_force, {control.name: control.shown(stated) for control in section.all_controls}
    )


def change_section(call: Call) -> Answer:
    """Preview what was typed, or make it the policy."""
    require(call.memory.principal, "administer")
    section = _section(call)
    begun_on = _begun_on(call)
    stood = begun_on.policy.model_dump(mode="json")
    typed = {control.name: control.typed(call.form) for control in section.all_controls}
    try:
        changes = changes_in(section, call.form, stood)
        return _carried_out(call, changes, begun_on) or _section_view(
            call, section, begun_on, typed, preview=_preview(call, changes, begun_on)
        )
    except PolicyStale as error:
        now = call.memory.policy()
        stands = now.policy.model_dump(mode="json")
        for control in section.all_controls:
            if typed[control.name] == control.shown(stood):
                typed[control.name] = control.shown(stands)
        since = differences(stood, stands)
        return _section_view(call, section, now, typed, error=error, conflict=since)
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _section_view(call, section, begun_on, typed, error=error)


def show_json(call: Call) -> View:
    """The whole policy as JSON, and the form for those who would rather write it."""
    require(call.memory.principal, "administer")
    return _json_view(call, call.memory.policy())


def change_json(call: Call) -> Answer:
    """The same for fields that were written as JSON."""
    require(call.memory.principal, "administer")
    begun_on = _begun_on(call)
    try:
        changes = json_object(raw_text(call.form, "changes"), "changes")
        return _carried_out(call, changes, begun_on) or _json_view(
            call, begun_on, preview=_preview(call, changes, begun_on)
        )
    except PolicyStale as error:
        now = call.memory.policy()
        since = differences(begun_on.policy.model_dump(mode="json"), now.policy.model_dump(mode="json"))
        return _json_view(call, now, error=error, conflict=since)
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _json_view(call, begun_on, error=error)


def _carried_out(call: Call, changes: dict[str, Any], begun_on: PolicyInForce) -> Redirect | None:
    """Done, where that was asked for; None for a preview."""
    if call.form.get("step") != "commit":
        return None
    if not changes:
        return Redirect(address("/admin/policy", done="nothing"))
    changed = call.memory.change_policy(
        changes,
        reason=raw_text(call.form, "reason"),
        expected_position=begun_on.position,
        command_id=_command_id(call),
    )
    done = "policy" if changed.position != begun_on.position else "nothing"
    return Redirect(address("/admin/policy", done=done))


def _preview(call: Call, changes: dict[str, Any], begun_on: PolicyInForce) -> list[dict[str, Any]]:
    if not changes:
        return []
    before, would = call.memory.preview_policy(changes, expected_position=begun_on.position)
    after: Policy = would or before.policy
    return differences(before.policy.model_dump(mode="json"), after.model_dump(mode="json"))


def _command_id(call: Call) -> Any:
    found = id_of(call.form.get("command_id"))
    return found if found is not None and found.version != 5 else None


def _begun_on(call: Call) -> PolicyInForce:
    """The policy that the form was filled from."""
    position = number(call.form, "expected_position")
    return call.memory.policy(position=position)


def _section(call: Call) -> Section:
    section = BY_NAME.get(call.path["section"])
    if section is None:
        raise NotFound(f"There is no such section; there are {', '.join(BY_NAME)} and json.")
    return section


def _told(section: Section, document: dict[str, Any]) -> dict[str, Any]:
    """A section as it is read: its controls with their values."""
    return {
        "section": section,
        "values": [(control, control.value(document)) for control in section.controls],
        "rows": [(title, [control.value(document) for control in controls]) for title, controls in section.rows],
    }


def _section_view(
    call: Call,
    section: Section,
    in_force: PolicyInForce,
    typed: dict[str, Typed],
    *,
    preview: list[dict[str, Any]] | None = None,
    error: GrandboError | None = None,
    conflict: list[dict[str, Any]] | None = None,
) -> View:
    tiers = typed.get("tiers")
    known = tiers.split("\n") if isinstance(tiers, str) else list(in_force.policy.tiers)
    data = {
        "section": section.name,
        "position": in_force.position,
        "values": typed,
        "preview": preview,
        "conflict": conflict,
        "error": error.as_dict() if error else None,
    }
    shown = {
        "form": section,
        "typed": typed,
        "tiers": [tier.strip() for tier in known if tier.strip()],
        "failed": error.details.get("field") if error else None,
        **_around(call),
    }
    return View("admin_policy_section.html", data, shown, error.http_status if error else 200)


def _json_view(
    call: Call,
    in_force: PolicyInForce,
    *,
    preview: list[dict[str, Any]] | None = None,
    error: GrandboError | None = None,
    conflict: list[dict[str, Any]] | None = None,
) -> View:
    data = {
        **in_force.as_dict(),
        "preview": preview,
        "conflict": conflict,
        "error": error.as_dict() if error else None,
    }
    whole = json.dumps(data["policy"], indent=2, ensure_ascii=False)
    shown = {"whole": whole, "typed": raw_text(call.form, "changes") or "{}", **_around(call)}
    return View("admin_policy_json.html", data, shown, error.http_status if error else 200)


def _around(call: Call) -> dict[str, Any]:
    return {
        "reason": raw_text(call.form, "reason"),
        "command_id": call.form.get("command_id") or str(new_id()),
    }


PAGES = (
    Page("/admin/policy", show_policy),
    Page("/admin/policy/json", show_json, change_json),
    Page("/admin/policy/{section}", show_section, change_section),
)
