"""What every provider needs, once: batches, well-formed text, checked and normalised vectors, a memory for topics."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from grandbo.embedding.provider import Kind, Provider, RawVectors, Vectors
from grandbo.embedding.stamp import DIMENSIONS, Stamp
from grandbo.embedding.together import Together
from grandbo.errors import EmbedderError, EmbedderRefused, EmbedderTransient

_LEAST_NORM: Final = 1e-9
# Calls for topics at once, to a provider that does not say; and topics in one call.
_LANES: Final = 8
_TOPICS_AT_ONCE: Final = 16


def pad(vectors: npt.NDArray[Any]) -> Vectors:
    """
    Append zeros: float[n, d] to float32[n, 1024].

    Inner products, and with them cosine and every rank, stay what they were. Raises `EmbedderRefused` for d > 1024.
    """
    count, length = vectors.shape
    if length > DIMENSIONS:
        raise EmbedderRefused(f"A vector has {length} dimensions; at most {DIMENSIONS} can be stored.")
    padded = np.zeros((count, DIMENSIONS), np.float32)
    padded[:, :length] = vectors
    return padded


class Embedder:
    """
    A provider whose answers can be trusted. Safe to share between threads.

    Nothing but `EmbedderTransient`, `EmbedderRefused` and `EmbedderMisconfigured` leaves it, and no message holds a
    text: what a provider raises by surprise counts as transient and is named by its type alone.
    """

    def __init__(self, provider: Provider, *, topics_kept: int = 512) -> None:
        """Remember the vectors of the last `topics_kept` topics (4 KB each)."""
        self._provider = provider
        self._topics_kept = topics_kept
        self._topics: OrderedDict[bytes, Vectors] = OrderedDict()
        self._running: dict[bytes, Future[Vectors]] = {}
        self._lock = threading.Lock()
        self._together = Together(
            lambda topics: self.embed_padded(topics, "query"),
            most=min(_TOPICS_AT_ONCE, max(1, provider.max_texts)),
            lanes=getattr(provider, "lanes", _LANES),
        )
        self._digest_key = secrets.token_bytes(32)
        self._topics_embedded = 0

    @property
    def stamp(self) -> Stamp:
        """The space of the vectors; the first use may ask the provider, and raise what that raises."""
        try:
            return self._provider.stamp
        except EmbedderError:
            raise
        except Exception as error:  # noqa: BLE001  # a provider's surprise must not look like a bug of the caller
            raise _surprise(error) from None

    @property
    def titles(self) -> Stamp | None:
        """The space of titles alone, where the provider's vectors of them are worth making."""
        return self.stamp.titles if getattr(self._provider, "titles", False) else None

    @property
    def topics_embedded(self) -> int:
        """How often the provider was asked for the vector of a topic: a remembered topic does not count."""
        return self._topics_embedded

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """
        Give float32[n, native_dimensions], each row of length 1, in the order of `texts`.

        Either every text has a vector or an error is raised; `EmbedderRefused` has the `index` of the text in its
        details when one text alone is to blame.
        """
        if isinstance(texts, str):
            raise TypeError("texts is a sequence of strings, not a string")
        sendable = [_sendable(index, text) for index, text in enumerate(texts)]
        length = self.stamp.native_dimensions
        rows = np.empty((len(sendable), length), np.float32)
        step = max(1, self._provider.max_texts)
        for start in range(0, len(sendable), step):
            batch = sendable[start : start + step]
            rows[start : start + len(batch)] = self._embed_batch(batch, kind, length, start)
        return rows

    def embed_padded(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Give float32[n, 1024]: what `embed` gives, with zeros appended."""
        return pad(self.embed(texts, kind))

    def embed_topic(self, topic: str) -> Vectors:
        """
        Give float32[1024], read-only, for a topic; the same topic again costs nothing.

        Callers that ask for the same topic at once share one call, and a failure reaches them all and is forgotten.
        Different topics that come while the provider is busy go to it together.
        """
        key = hashlib.blake2b(
            f"{self.stamp.id}\n{topic}".encode("utf-8", "surrogatepass"), key=self._digest_key, digest_size=32
        ).digest()
        with self._lock:
            remembered = self._topics.get(key)
            if remembered is not None:
                self._topics.move_to_end(key)
                return remembered
            running = self._running.get(key)
            if running is None:
                mine: Future[Vectors] = Future()
                self._running[key] = mine
                self._topics_embedded += 1
        if running is not None:
            return running.result()
        return self._embed_topic_for_all(key, topic, mine)

    def forget_topics(self) -> None:
        """Drop every remembered topic vector, those being made included; for erasure."""
        with self._lock:
            self._topics.clear()
            self._running.clear()

    def close(self) -> None:
        """Forget the topics and let the provider close its connections."""
        self.forget_topics()
        close = getattr(self._provider, "close", None)
        if close is not None:
            close()

    def _embed_topic_for_all(self, key: bytes, topic: str, mine: Future[Vectors]) -> Vectors:
        try:
            vector = self._together.vector(topic)
            vector.setflags(write=False)
        except BaseException as error:
            with self._lock:
                if self._running.get(key) is mine:
                    del self._running[key]
            # An interrupt belongs to this thread; those who wait only learn that there is no vector.
            mine.set_exception(error if isinstance(error, EmbedderError) else EmbedderTransient())
            raise
        with self._lock:
            if self._running.get(key) is mine:
                del self._running[key]
                self._topics[key] = vector
                while len(self._topics) > self._topics_kept:
                    self._topics.popitem(last=False)
        mine.set_result(vector)
        return vector

    def _embed_batch(self, texts: list[str], kind: Kind, length: int, first: int) -> Vectors:
        try:
            return _checked(self._provider.embed(texts, kind), len(texts), length, first)
        except EmbedderError:
            raise
        except Exception as error:  # noqa: BLE001  # see `stamp`
            raise _surprise(error) from None


def _surprise(error: Exception) -> EmbedderTransient:
    return EmbedderTransient(f"The embedding provider failed unexpectedly ({type(error).__name__}).")


def _sendable(index: int, text: str) -> str:
    """Replace lone surrogates, which no UTF-8 holds; a blank text is refused because models give it a vector too."""
    if not text or text.isspace():
        raise EmbedderRefused("A blank text cannot be embedded.", index=index)
    return text.encode("utf-8", "replace").decode()


def _checked(raw: RawVectors, count: int, length: int, first: int) -> Vectors:
    """Give float32[count, length] of unit rows, or raise `EmbedderRefused`; `first` is the index of the first text."""
    if len(raw) != count:
        raise EmbedderRefused(f"The embedding provider gave {len(raw)} vectors for {count} texts.")
    rows = np.empty((count, length), np.float64)
    for offset, vector in enumerate(raw):
        index = first + offset
        try:
            numbers = np.asarray(vector)
        except ValueError:
            numbers = np.asarray(None)
        if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":
            raise EmbedderRefused("The embedding provider gave a vector that is no list of numbers.", index=index)
        if len(numbers) != length:
            raise EmbedderRefused(
                f"The embedding provider gave a vector of {len(numbers)} dimensions instead of {length}.", index=index
            )
        rows[offset] = numbers
        if not np.isfinite(rows[offset]).all():
            raise EmbedderRefused("The embedding provider gave a vector that is not finite.", index=index)
        with np.errstate(over="ignore"):
            # One row at a time, so that a vector cannot depend on its neighbours in any bit.
            norm = float(np.linalg.norm(rows[offset]))
        if not _LEAST_NORM < norm < np.inf:
            raise EmbedderRefused("The embedding provider gave a vector without a direction.", index=index)
        rows[offset] /= norm
    unit: Vectors = rows.astype(np.float32)
    return unit
