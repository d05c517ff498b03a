"""Who is behind a reference: names, read once a page and only where it shows one, for those who may read the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from grandbo.library import TenantMemory
from grandbo.memory.policy import may

_REFERENCE = re.compile(r"(?:human|agent|hook|system):[0-9a-f-]{36}")


class Names:
    """Names of the references that stand in a page's data; none for who may not read the log."""

    def __init__(self, memory: TenantMemory | None, data: Mapping[str, Any]) -> None:
        self._memory = memory
        self._data = data

    def get(self, ref: str) -> str | None:
        """The name of a reference; None where there is none to be told."""
        return self._known.get(ref)

    @cached_property
    def _known(self) -> dict[str, str]:
        if self._memory is None or not may(self._memory.principal, "audit"):
            return {}
        return self._memory.names(_references(self._data))


def _references(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        if _REFERENCE.fullmatch(data):
            yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _references(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _references(value)
