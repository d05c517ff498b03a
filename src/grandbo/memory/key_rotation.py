"""Rotation: every subject's key wrapped anew in a new epoch of the provider. No event is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from grandbo.events.log import LOCK_HEAD
from grandbo.storage.database import Database
from grandbo.storage.keyring import LocalKeyring
from grandbo.storage.subject_keys import highest_epoch, wrap_anew, wrapped_rows
from grandbo.storage.tenancy import all_tenants

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did."""

    epoch: int
    wrapped: int
    destroyed: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"epoch": self.epoch, "wrapped": self.wrapped, "destroyed": list(self.destroyed)}


def rotate_keys(database: Database, *, destroys_old: bool = False, progress: Progress | None = None) -> Rotated:
    """
    Begin a new epoch and wrap all keys in it. Broken off it is run again.

    Args:
        destroys_old: of a local keyring, forget the epochs before: a copy of the database from before then opens no
            more, neither for who erased a subject nor for who wants to restore it.
        progress: told how many tenants are done, of how many.

    Raises:
        KeyUnavailable: a key cannot be opened; the old epochs stay, and what was wrapped anew is whole.
    """
    provider = database.keys.provider
    tenants = all_tenants(database)
    epoch = provider.next_epoch(max((highest_epoch(database, tenant) for tenant in tenants), default=0))
    wrapped = 0
    for done, tenant_id in enumerate(tenants, start=1):
        with database.transaction("writer", tenant_id) as transaction:
            # Whoever registers a subject holds this lock: what is not seen here is wrapped in the new epoch already.
            transaction.execute(LOCK_HEAD, {"tenant_id": tenant_id})
            transaction.assume("keyholder")
            rows = wrapped_rows(transaction, tenant_id)
        wrapped += wrap_anew(database, tenant_id, rows, epoch)
        if progress:
            progress(done, len(tenants))
    old = provider.forget_before(epoch) if destroys_old and isinstance(provider, LocalKeyring) else []
    return Rotated(epoch, wrapped, tuple(old))
