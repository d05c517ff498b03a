"""The tenant: what it is, how much of everything there is, and what proves it. Of others nothing is known here."""

from __future__ import annotations

from typing import Any

from grandbo import __version__
from grandbo.memory.policy import require
from grandbo.web.call import Call, Page, View

_DAYS = 30


def show_tenant(call: Call) -> View:
    """The credential's own tenant; what is counted is what the credential may see."""
    require(call.memory.principal, "administer")
    memory = call.memory
    first = next(iter(memory.events(limit=1)), None)
    checkpoints = memory.list_checkpoints(limit=1)
    data: dict[str, Any] = {
        "tenant": {"tenant_id": str(memory.tenant_id), "name": memory.tenant.name},
        "created_at": first["recorded_at"] if first else None,
        "created_by": (first["actor"] or first["principal"]) if first else None,
        "head": memory.head(),
        "checkpoint": {"size": checkpoints[0]["size"], "root": checkpoints[0]["root"]} if checkpoints else None,
        "policy_position": memory.policy().position,
        "usage": memory.usage(days=_DAYS),
        "version": __version__,
    }
    return View("admin_tenant.html", data, {"days": _DAYS})


PAGES = (Page("/admin/tenant", show_tenant),)
