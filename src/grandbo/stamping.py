"""The verbs about vectors, as the library has them: what lacks one, and making it. `TenantMemory` is one of these."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from grandbo.errors import ConfigurationError
from grandbo.verbs import Verbs
from grandbo.workers.backlog import BacklogCounts, count_backlog, revive
from grandbo.workers.embedding import EmbeddingWorker

if TYPE_CHECKING:
    from collections.abc import Callable

    from grandbo.embedding import Embedder


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
            revive(self._database, self.tenant.tenant_id, embedder.stamp.id)
        worker = EmbeddingWorker(self._database, embedder, clock=self._clock())
        return worker.drain(self.tenant.tenant_id, progress=progress, deadline=deadline)

    def _embedder(self) -> Embedder:
        embedder = self._embedder_or_none
        if embedder is None:
            raise ConfigurationError("GRANDBO_EMBEDDER is `none`: nothing is embedded, recall goes by words alone.")
        return embedder
