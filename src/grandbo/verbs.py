"""What every group of verbs stands on: one tenant, one principal, and the memory they work in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from grandbo.memory.subjects import own_tiers
from grandbo.recall.scan import scan_of

if TYPE_CHECKING:
    from pathlib import Path

    from grandbo.events.models import Policy
    from grandbo.memory.tenants import Tenant
    from grandbo.recall.counting import Counting
    from grandbo.recall.meaning import Meaning
    from grandbo.recall.receipts import ReceiptWriter
    from grandbo.recall.scan import Scanning
    from grandbo.settings import Settings
    from grandbo.storage.database import Database
    from grandbo.storage.readers import Readers
    from grandbo.types import Clock, Principal


class Verbs(ABC):
    """Base of the groups of verbs that make up a `TenantMemory`."""

    tenant: Tenant
    principal: Principal
    _database: Database
    _readers: Readers
    _meaning: Meaning
    _receipts: ReceiptWriter
    _counting: Counting
    _scanning: Scanning = staticmethod(scan_of)

    @property
    @abstractmethod
    def _settings(self) -> Settings:
        """The settings of this process."""

    @property
    @abstractmethod
    def _home(self) -> Path:
        """The folder of the keys."""

    @abstractmethod
    def _clock(self) -> Clock:
        """The clock of the write side."""

    @abstractmethod
    def _policy_now(self) -> Policy:
        """The policy in force, however long this memory has been open."""

    @abstractmethod
    def _changed(self) -> None:
        """Called after something was appended."""

    def _owner(self) -> Principal:
        """The principal with the tiers of its own subjects: for verbs that may show what is remembered about them."""
        shared = self._policy_now().people.shared_with
        own = own_tiers(self._database, self.tenant.tenant_id, self.principal, shared)
        return replace(self.principal, own_tiers=own)
