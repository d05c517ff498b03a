"""The verbs about vectors, as the library has them: making them, and their spaces. `TenantMemory` is one of these."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grandbo.errors import ConfigurationError
from grandbo.memory import policies
from grandbo.memory.policy import require
from grandbo.verbs import Verbs
from grandbo.workers.backlog import BacklogCounts, count_backlog, revive
from grandbo.workers.embedding import EmbeddingWorker
from grandbo.workers.spaces import Space, decide_retire, decide_use, list_spaces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grandbo.embedding import Embedder, Stamp
    from grandbo.events.models import StampInForce


class Stamping(Verbs):
    """Embedding what lacks a vector, and the spaces that vectors live in."""

    @property
    @abstractmethod
    def _embedder_or_none(self) -> Embedder | None:
        """The embedder of this process, if it has one."""

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder; without one recall goes by words alone."""
        return self._embedder_or_none is not None

    def backlog(self) -> BacklogCounts:
        """How many entries lack a vector in the current space."""
        return count_backlog(self._database, self.tenant.tenant_id, self._embedder().stamp.id)

    def embed(
        self,
        *,
        retry_dead: bool = False,
        progress: Callable[[BacklogCounts], None] | None = None,
        deadline: float | None = None,
    ) -> BacklogCounts:
        """Drain the backlog; `retry_dead` tries those again that were given up."""
        embedder = self._embedder()
        if retry_dead:
            for stamp in filter(None, (embedder.stamp, embedder.titles)):
                revive(self._database, self.tenant.tenant_id, stamp.id, self._clock()())
        worker = EmbeddingWorker(self._database, embedder, clock=self._clock())
        return worker.drain(self.tenant.tenant_id, progress=progress, deadline=deadline)

    def stamps(self) -> list[Space]:
        """
        The spaces of vectors: how complete each is, and whether recall uses it.

        They are counted over all entries, whatever their tier: for who administers.
        """
        require(self.principal, "administer")
        current = policies.show_policy(self._database, self.tenant.tenant_id, self.principal)
        return list_spaces(self._database, self.tenant.tenant_id, current, self._own_stamp)

    def use_stamp(
        self, stamp: str, *, reason: str, cutoff_bp: int | None = None, **options: Any
    ) -> policies.PolicyInForce:
        """
        Put a space in which every entry has its vectors into force, before the others.

        Args:
            cutoff_bp: the largest distance of a match, in basis points; as it was, or as the embedder has it.
            options: `expected_position` of the policy, `command_id`.

        Raises:
            NotFound, StampNotReady, InvalidInput, PolicyStale.
        """
        spaces = self.stamps()
        asked = {"use": stamp, "cutoff_bp": cutoff_bp}
        return self._change_stamps(
            asked, lambda in_force: decide_use(spaces, in_force, stamp, cutoff_bp), reason, options
        )

    def retire_stamp(self, stamp: str, *, reason: str, **options: Any) -> policies.PolicyInForce:
        """
        Take a space out of force; its vectors stay, and recall of the past goes on using them.

        Raises:
            NotFound, StampNotReady, PolicyStale.
        """
        own = self._own_stamp
        return self._change_stamps(
            {"retire": stamp}, lambda in_force: decide_retire(in_force, stamp, own), reason, options
        )

    def _change_stamps(
        self,
        asked: dict[str, Any],
        decide: Callable[[Sequence[StampInForce]], list[dict[str, Any]]],
        reason: str,
        options: dict[str, Any],
    ) -> policies.PolicyInForce:
        who = (self._database, self.tenant.tenant_id, self.principal)
        changed = policies.change_stamps(*who, asked, decide, reason, clock=self._clock(), **options)
        self.tenant = replace(self.tenant, policy=changed.policy)
        return changed

    @property
    def _own_stamp(self) -> Stamp | None:
        embedder = self._embedder_or_none
        return embedder.stamp if embedder else None

    def _embedder(self) -> Embedder:
        embedder = self._embedder_or_none
        if embedder is None:
            raise ConfigurationError("GRANDBO_EMBEDDER is `none`: nothing is embedded, recall goes by words alone.")
        return embedder
