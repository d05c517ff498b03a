"""Grandbo: an organisation's memory of its incidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Grandbo", "TenantMemory", "__version__"]

if TYPE_CHECKING:
    from grandbo.library import Grandbo, TenantMemory


def __getattr__(name: str) -> Any:
    # Loaded at first use: `grandbo --help` and the lower layers must not pay for the database and the model.
    if name in ("Grandbo", "TenantMemory"):
        from grandbo import library

        return getattr(library, name)
    raise AttributeError(f"module 'grandbo' has no attribute {name!r}")
