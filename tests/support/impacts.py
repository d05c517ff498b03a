"""Entries that rest on each other, for tests of the blast radius."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from grandbo.library import TenantMemory
from grandbo.types import PrincipalType
from tests.support.factories import make_finding
from tests.support.http import make_token

TOPIC = "consumers lost their leases after the broker restarted"


def record(memory: TenantMemory, **overrides: Any) -> UUID:
    """A new entry."""
    return memory.record_finding(make_finding(**overrides)).acknowledgement.entry_id


def citing(*cited: UUID | str) -> list[dict[str, str]]:
    """Evidence of which one piece is no memory, and the others are these entries or URIs."""
    uris = [one if isinstance(one, str) else f"grandbo://entries/{one}" for one in cited]
    own = make_finding()["evidence"]
    return [*own, *({"type": "memory", "uri": uri, "label": ""} for uri in uris)]


def someone(memory: TenantMemory, *roles: str, kind: PrincipalType = "agent") -> TenantMemory:
    """The same tenant, for a new principal with these roles."""
    return memory._grandbo.authenticate(make_token(memory, *roles, kind=kind))


def members(found: dict[str, Any]) -> dict[str, set[tuple[str, str]]]:
    """What is affected, and why: entry → {(because, of)}."""
    return {
        member["entry_id"]: {(reason["because"], reason["of"]) for reason in member["reasons"]}
        for member in found["members"]
    }


def statuses(memory: TenantMemory, *ids: UUID) -> list[str]:
    """The statuses of these entries."""
    return [memory.show_entry(one)["status"] for one in ids]
