"""Embedding providers for tests: real implementations of the protocol that need no model and can be made to fail."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from grandbo.embedding import RECIPE, Embedder, Kind, Stamp
from grandbo.errors import EmbedderTransient
from grandbo.text import terms

WORDS_STAMP = Stamp("test", "hashed-words", "1", 256, RECIPE, 8_000)


class HashedWords:
    """A bag of words hashed into 256 dimensions: texts that share words are near. Deterministic everywhere."""

    stamp = WORDS_STAMP
    max_texts = 64

    def __init__(self, stamp: Stamp = WORDS_STAMP) -> None:
        self.stamp = stamp
        self.calls = 0

    def embed(self, texts: Sequence[str], kind: Kind) -> npt.NDArray[np.float32]:
        self.calls += 1
        return np.stack([_bag(text) for text in texts])


class Titled(HashedWords):
    """The same provider, whose vectors of titles alone are worth making."""

    titles = True


class Switchable(HashedWords):
    """The same provider with a switch: while `failure` is set, it raises that; while `answer` is set, it gives that."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.answer: npt.NDArray[np.float32] | None = None
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: Sequence[str], kind: Kind) -> npt.NDArray[np.float32]:
        if not self.gate.wait(30):
            raise EmbedderTransient("the gate stayed shut")
        if self.failure is not None:
            self.calls += 1
            raise self.failure
        if self.answer is not None:
            self.calls += 1
            return self.answer
        return super().embed(texts, kind)


def words_embedder(revision: str = WORDS_STAMP.revision) -> Embedder:
    """An embedder over hashed words; with another revision it is, by name, another space."""
    return Embedder(HashedWords(replace(WORDS_STAMP, revision=revision)))


def _bag(text: str) -> npt.NDArray[np.float32]:
    vector = np.zeros(WORDS_STAMP.native_dimensions, np.float32)
    for term in terms(text) or [text]:
        digest = hashlib.sha256(term.encode("utf-8", "surrogatepass")).digest()
        vector[digest[0]] += 1.0 if digest[1] & 1 else -1.0
    if not vector.any():
        vector[0] = 1.0
    return vector / np.linalg.norm(vector)
