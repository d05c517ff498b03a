"""Admin: the ways on, keys and hooks."""

from __future__ import annotations

import json
from typing import Any

from grandbo.errors import GrandboError, InvalidInput
from grandbo.hooks.sources import SOURCES
from grandbo.memory.policy import ROLES, require
from grandbo.memory.principals import parse_life
from grandbo.types import PrincipalType
from grandbo.web.call import Answer, Call, Page, Redirect, View, address, json_object, raw_text, text, ticked

KEY_TYPES: tuple[PrincipalType, ...] = ("human", "agent", "hook")
KEYS_PAGE = 50


def show_admin(call: Call) -> View:
    """The ways on, each with what there is."""
    require(call.memory.principal, "administer")
    memory = call.memory
    data: dict[str, Any] = {
        "tenant": {"tenant_id": str(memory.tenant_id), "name": memory.tenant.name},
        "embeds": memory.embeds,
        "backlog": None,
        "policy_position": memory.policy().position,
        "hooks": len(memory.hooks()),
        "keys": len(memory.keys(limit=KEYS_PAGE)),
    }
    if memory.embeds:
        counts = memory.backlog()
        data["backlog"] = {
            "entries": counts.entries, "embedded": counts.embedded, "pending": counts.pending, "dead": counts.dead
        }  # fmt: skip
    return View("admin.html", data, {"tenant": memory.tenant.name, "keys_page": KEYS_PAGE})


# -- keys --------------------------------------------------------------------------------------------------------------


def show_keys(call: Call) -> View:
    """Keys, oldest first, without their secrets."""
    return _keys(call)


def make_key(call: Call) -> Answer:
    """Make a key; its secret is shown this once."""
    try:
        kind = next((known for known in KEY_TYPES if known == call.form.get("type")), None)
        if kind is None:
            raise InvalidInput(f"type: it must be one of {', '.join(KEY_TYPES)}.", field="type")
        life = text(call.form, "expires_in")
        made, secret = call.memory.create_key(
            text(call.form, "principal") or "",
            kind,
            tuple(call.form.getlist("role")),
            expires_in=parse_life(life) if life else None,
            read_only=ticked(call.form, "read_only"),
        )
    except GrandboError as error:
        if error.http_status >= 500:
            raise
        return _keys(call, error=error)
    return _keys(call, made=made.as_dict() | {"secret": secret})


def revoke_key(call: Call) -> Redirect:
    """Revoke a key, at once and for good."""
    call.memory.revoke_key(call.path["key_id"])
    return Redirect(address("/admin/keys", done="key_revoked"))


def _keys(call: Call, *, made: dict[str, Any] | None = None, error: GrandboError | None = None) -> View:
    found = [key.as_dict() for key in call.memory.keys(limit=KEYS_PAGE, after=text(call.query, "after"))]
    data = {"keys": found, "next": found[-1]["key_id"] if len(found) == KEYS_PAGE else None}
    shown = {"asked": call.query, "made": made, "error": error, "typed": call.form, "types": KEY_TYPES, "roles": ROLES}
    return View("admin_keys.html", data, shown, error.http_status if error else 200)


# -- hooks -------------------------------------------------------------------------------------------------------------


def show_hooks(call: Call) -> View:
    """Hooks, oldest first, without their secrets."""
    return _hooks(call)


def make_hook(call: Call) -> Answer:
    """Make a hook; its secret is shown this once."""
    try:
        made, secret = call.memory.create_hook(
            text(call.form, "source") or "",
            text(call.form, "name") or "",
            direct=ticked(call.form, "direct"),
            takes_private=ticked(call.form, "takes_private"),
            secret=text(call.form, "secret"),
        )
    except GrandboError as error:
        if error.http_status >= 500:
            raise
        return _hooks(call, error=error)
    return _hooks(call, made=made.as_dict() | {"secret": secret})


def act_on_hook(call: Call) -> Answer:
    """Give it a new secret, try it, or take it away."""
    hook_id, act = call.path["hook_id"], call.path["act"]
    try:
        if act == "rotate":
            rotated, secret = call.memory.rotate_hook(hook_id)
            return _hooks(call, made=rotated.as_dict() | {"secret": secret})
        if act == "test":
            return _hooks(call, tested=call.memory.test_hook(hook_id, _payload(call)))
        if act == "remove":
            call.memory.remove_hook(hook_id)
            return Redirect(address("/admin/hooks", done="hook_removed"))
    except GrandboError as error:
        if error.http_status in (401, 404) or error.http_status >= 500:
            raise
        return _hooks(call, error=error)
    raise InvalidInput("There is no such act; there are rotate, test and remove.")


def _payload(call: Call) -> dict[str, Any] | None:
    given = raw_text(call.form, "payload").strip()
    if not given:
        return None
    return json_object(given, "payload")


def _hooks(
    call: Call,
    *,
    made: dict[str, Any] | None = None,
    tested: dict[str, Any] | None = None,
    error: GrandboError | None = None,
) -> View:
    shown = {
        "made": made,
        "error": error,
        "typed": call.form,
        "sources": sorted(SOURCES),
        "tested_text": None if tested is None else json.dumps(tested, indent=2, ensure_ascii=False),
    }
    data = {"hooks": [hook.as_dict() for hook in call.memory.hooks()], "tested": tested}
    return View("admin_hooks.html", data, shown, error.http_status if error else 200)


PAGES = (
    Page("/admin", show_admin),
    Page("/admin/keys", show_keys, make_key),
    Page("/admin/keys/{key_id}/revoke", send=revoke_key),
    Page("/admin/hooks", show_hooks, make_hook),
    Page("/admin/hooks/{hook_id}/{act}", send=act_on_hook),
)
