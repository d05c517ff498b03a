"""
A LangGraph `BaseStore` over the memory.

Reading is recall, through the one seam. Writing is a proposal: what an agent puts waits for a person, so it is not read
back. Deleting is refused: who may, archives an entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from grandbo.errors import Forbidden, InvalidInput, NotFound
from grandbo.library import TenantMemory
from grandbo.recall.question import MAX_LIMIT
from grandbo.types import ORGANISATION_KINDS

ROOT = "memory"


class GrandboStore(BaseStore):
    """
    The memory as a store.

    Namespaces are `("memory", kind)`; a shorter prefix looks into all kinds. A key is an entry's id. A value has what
    the memory says: `title`, `summary`, `body`, `service`, `evidence`, …; to put one needs `title`, and `evidence`, or
    else the namespace and key are kept as the conversation it came from. `filter` knows `service`.
    """

    supports_ttl = False

    def __init__(self, memory: TenantMemory) -> None:
        self._memory = memory

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry the operations out, in their order."""
        return [self._one(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, in a thread: the memory is synchronous."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _one(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case PutOp():
                self._put(op)
                return None
            case ListNamespacesOp():
                return self._namespaces(op)
        raise InvalidInput(f"{type(op).__name__}: this store does not know that operation.")

    def _get(self, op: GetOp) -> Item | None:
        kinds = _kinds(op.namespace)
        try:
            found = self._memory.show_entry(UUID(op.key))
        except (ValueError, NotFound):
            return None
        return Item(**_item(found)) if found["kind"] in kinds else None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        kinds = _kinds(op.namespace_prefix)
        service = _service(op.filter)
        if not op.query:
            page = self._memory.list_entries(
                kinds=list(kinds), statuses=["published"], service=service, limit=min(200, op.limit + op.offset)
            )
            return [SearchItem(**_item(entry)) for entry in page.entries[op.offset : op.offset + op.limit]]
        answer = self._memory.query_topic(
            op.query, kinds=list(kinds), service=service, limit=min(MAX_LIMIT, op.limit + op.offset)
        )
        found = []
        for match in answer.matches[op.offset : op.offset + op.limit]:
            try:
                entry = self._memory.show_entry(match.entry_id)
            except NotFound:
                continue  # raised above the caller's tiers in between
            found.append(SearchItem(**_item(entry), score=match.score))
        return found

    def _put(self, op: PutOp) -> None:
        if op.value is None:
            raise Forbidden("Nothing is deleted from the memory by an agent; who may, archives an entry.")
        kinds = _kinds(op.namespace)
        document = {name: value for name, value in op.value.items() if value is not None}
        if len(kinds) == 1:
            document.setdefault("kind", kinds[0])
        origin = {"type": "conversation", "ref": "/".join((*op.namespace, op.key))[:200]}
        self._memory.propose(document, origin=origin)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        all_of_them = [(ROOT, kind) for kind in ORGANISATION_KINDS]
        for condition in op.match_conditions or ():
            all_of_them = [one for one in all_of_them if _fits(one, tuple(condition.path), condition.match_type)]
        if op.max_depth is not None:
            all_of_them = list(dict.fromkeys(one[: op.max_depth] for one in all_of_them))  # type: ignore[misc]
        return list(all_of_them[op.offset : op.offset + op.limit])


def _kinds(namespace: tuple[str, ...]) -> tuple[str, ...]:
    if not namespace or namespace == (ROOT,):
        return ORGANISATION_KINDS
    if len(namespace) == 2 and namespace[0] == ROOT and namespace[1] in ORGANISATION_KINDS:
        return (namespace[1],)
    raise InvalidInput(f"namespace: it is ({ROOT!r}, KIND), with one of {', '.join(ORGANISATION_KINDS)}.")


def _service(given: dict[str, Any] | None) -> str | None:
    unknown = sorted(set(given or {}) - {"service"})
    if unknown:
        raise InvalidInput(f"filter: {unknown[0][:100]} is not known; only service is.", field="filter")
    service: str | None = (given or {}).get("service")
    return service


def _fits(namespace: tuple[str, ...], path: tuple[str, ...], match_type: str) -> bool:
    part = namespace[: len(path)] if match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(wanted in ("*", name) for name, wanted in zip(part, path, strict=True))


def _item(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "namespace": (ROOT, entry["kind"]),
        "key": entry["entry_id"],
        "value": {name: value for name, value in entry.items() if name not in ("links", "feedback")},
        "created_at": datetime.fromisoformat(entry["recorded_at"]),
        "updated_at": datetime.fromisoformat(entry["changed_at"]),
    }
