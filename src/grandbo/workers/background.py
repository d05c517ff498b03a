"""What runs beside the doors in one process: the embedding worker, the caretaker, and who tells the outside."""

from __future__ import annotations

import threading

from grandbo.embedding import Embedder
from grandbo.settings import Settings
from grandbo.storage.database import Database
from grandbo.types import Clock
from grandbo.workers.caretaker import Caretaker
from grandbo.workers.delivering import Deliverer
from grandbo.workers.embedding import EmbeddingWorker
from grandbo.workers.sending import Sender


class Background:
    """Started and stopped together; woken where there may be something to do."""

    def __init__(self, database: Database, settings: Settings, clock: Clock) -> None:
        self.caretaker = Caretaker(database, clock=clock, inbox_days=settings.inbox_days)
        self.deliverer = Deliverer(database, Sender(allow_internal=settings.send_internal), clock=clock)
        self.worker: EmbeddingWorker | None = None
        self._thread: threading.Thread | None = None
        self._database = database
        self._clock = clock

    def start(self) -> None:
        """Look after all tenants, and tell the outside."""
        self.caretaker.start()
        self.deliverer.start()

    def embed(self, embedder: Embedder) -> None:
        """Embed what lacks a vector, in a thread of its own."""
        self.worker = EmbeddingWorker(self._database, embedder, clock=self._clock)
        self._thread = threading.Thread(target=self.worker.run, name="grandbo-embedding", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let each finish what it has in hand, and end it."""
        self.caretaker.stop()
        self.deliverer.stop()
        if self.worker is not None and self._thread is not None:
            self.worker.stop()
            self._thread.join(timeout=30)

    def appended(self) -> None:
        """There may be something to embed, and to tell."""
        self.deliverer.wake()
        if self.worker is not None:
            self.worker.wake()

    @property
    def embeds_still(self) -> bool:
        """Whether the embedding worker that was started still runs; True where none was."""
        return self._thread is None or self._thread.is_alive()
