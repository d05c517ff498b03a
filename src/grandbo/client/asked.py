"""The arguments of a recall over HTTP, as types."""

from __future__ import annotations

from typing import Any, TypedDict

Document = dict[str, Any]


class Asked(TypedDict, total=False):
    """What a recall may say besides its topic; see `docs/recall.md`. Times are RFC 3339 with a zone."""

    limit: int | None
    kinds: list[str] | None
    service: str | None
    namespace: str | None
    statuses: list[str] | None
    context: dict[str, str] | None
    incident: dict[str, str] | None
    mode: str | None
    as_of_position: int | None
    as_of: str | None
    valid_at: str | None
    as_role: str | None
    at_least: int | None
    render: bool | None
    budget: int | None
