"""The topic's vector, or why there is none. A provider that is down must not make every recall wait for it."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import structlog

from grandbo.embedding import Embedder
from grandbo.errors import EmbedderError
from grandbo.storage.vectors import stored_length

log = structlog.get_logger(__name__)

# After a failure the provider is left alone for this long; recalls in between answer by words at once.
COOL_DOWN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class TopicVector:
    """
    A vector, as long as the stored ones of its space, or the reason why there is none.

    `titles`: the space that the vectors of titles alone are in, where they count.
    """

    vector: npt.NDArray[np.float32] | None = None
    stamp: str | None = None
    cutoff: float | None = None
    degraded: str | None = None
    titles: str | None = None


class Meaning:
    """Embeds topics. One per process; safe to share between threads."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._silent_until = 0.0
        self._last_code = ""

    def of(self, topic: str) -> TopicVector:
        """The vector of a topic. Never raises for a provider's failure: the answer says it was found by words alone."""
        if self._embedder is None:
            return TopicVector(degraded="embedder_none")
        with self._lock:
            if time.monotonic() < self._silent_until:
                return TopicVector(degraded=self._last_code)
        try:
            stamp = self._embedder.stamp
            titles = self._embedder.titles
            vector = self._embedder.embed_topic(topic)
        except EmbedderError as error:
            with self._lock:
                self._silent_until = time.monotonic() + COOL_DOWN_SECONDS
                self._last_code = error.code
            log.warning("topic_not_embedded", code=error.code)
            return TopicVector(degraded=error.code)
        return TopicVector(
            vector[: stored_length(stamp.native_dimensions)],
            stamp.id,
            stamp.cutoff_bp / 10_000,
            titles=None if titles is None else titles.id,
        )
