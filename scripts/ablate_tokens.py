"""Token vectors of texts by the local model, made once and kept in a file; and the forms they could be stored in."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scripts.ablate_corpus import Vectors
from scripts.ablate_reckoning import Reckoner

from grandbo.embedding import windows
from grandbo.embedding.local import LocalProvider, Tokens

Stored = npt.NDArray[np.int8]
Forms = dict[str, dict[int, float]]
_PAGE = 64
# As they could be stored: the mean of so many neighbours, and whether of each number but its sign.
_FORMS = {"": (1, False), "mean of 2": (2, False), "mean of 4": (4, False), "mean of 8": (8, False), "1 bit": (1, True)}


class TokenVectors:
    """
    What the local model makes of each token: unit vectors, as int8, by the digest of the text.

    What stands for no letter or digit is left out.
    """

    def __init__(self, file: Path, provider: LocalProvider) -> None:
        self._provider = provider
        self._kept = sqlite3.connect(file)
        self._kept.execute("CREATE TABLE IF NOT EXISTS made (digest BLOB PRIMARY KEY, vectors BLOB) WITHOUT ROWID")

    def make(self, texts: Iterable[str]) -> None:
        """Make what is not there yet."""
        wanted = {_digest(text): text for text in texts}
        missing = [(digest, text) for digest, text in wanted.items() if not self._row(digest)]
        for start in range(0, len(missing), _PAGE):
            page = missing[start : start + _PAGE]
            made = self._provider.tokens([text for _, text in page])
            rows = [(digest, _stored(_told(tokens)).tobytes()) for (digest, _), tokens in zip(page, made, strict=True)]
            self._kept.executemany("INSERT INTO made VALUES (?, ?)", rows)
            self._kept.commit()
            print(f"tokens: {start + len(page)} of {len(missing)}", file=sys.stderr, flush=True)

    def of(self, text: str) -> Vectors:
        """float32[tokens, dimensions], each row of length 1."""
        length = self._provider.stamp.native_dimensions
        return _unit(np.frombuffer(self._row(_digest(text))[0], np.int8).reshape(-1, length).astype(np.float32))

    def _row(self, digest: bytes) -> tuple[bytes]:
        found: tuple[bytes] = self._kept.execute("SELECT vectors FROM made WHERE digest = ?", (digest,)).fetchone()
        return found


def pooled(windows: Sequence[Vectors], neighbours: int) -> Vectors:
    """The mean of each so many neighbours of a window, of length 1 and as precise as int8 is."""
    found = []
    for vectors in windows:
        starts = np.arange(0, len(vectors), neighbours)
        if len(starts):
            found.append(np.add.reduceat(vectors, starts, axis=0))
    means = _unit(np.concatenate(found)) if found else np.zeros((0, windows[0].shape[1]), np.float32)
    return _unit(_stored(means).astype(np.float32)) if neighbours > 1 else means


def signs(vectors: Vectors) -> Vectors:
    """One bit a number: whether it is above 0."""
    return _unit(np.where(vectors > 0, 1, -1).astype(np.float32))


class LateInteraction:
    """How near the tokens of the candidates of a topic come to its own, for each form of the stored ones."""

    def __init__(self, reckoner: Reckoner, vectors: TokenVectors) -> None:
        self._reckoner = reckoner
        self._vectors = vectors
        self._made: dict[str, Forms] = {}

    def of(self, name: str) -> Forms:
        """For each form each candidate with its nearness; vectors that are not kept yet are made."""
        if name not in self._made:
            topic_text = self._reckoner.corpus.topics[name].text
            texts = {entry: self._windows(entry) for entry in self._reckoner.candidates(name)}
            self._vectors.make([topic_text, *(text for windowed in texts.values() for text in windowed)])
            topic = self._vectors.of(topic_text)
            self._made[name] = {form: {} for form in _FORMS}
            for entry, windowed in texts.items():
                whole = [self._vectors.of(text) for text in windowed]
                for form, (neighbours, as_signs) in _FORMS.items():
                    stored = pooled(whole, neighbours)
                    near = late(topic, signs(stored) if as_signs else stored)
                    self._made[name][form][entry] = near
        return self._made[name]

    def _windows(self, entry: int) -> list[str]:
        row = self._reckoner.corpus.texts[entry]
        text = f"{row['summary']}\n\n{row['body']}" if row["body"] else str(row["summary"])
        return [window.text for window in windows(row["title"], text)]


def late(topic: Vectors, entry: Vectors) -> float:
    """How near each token of the topic comes to its nearest of the entry, in the mean."""
    return float((topic @ entry.T).max(axis=1).mean()) if len(topic) and len(entry) else 0.0


def _told(tokens: Tokens) -> Vectors:
    told = [place for place, name in enumerate(tokens.names) if any(character.isalnum() for character in name)]
    return tokens.vectors[told]


def _stored(vectors: Vectors) -> Stored:
    most = np.abs(vectors).max(axis=1, keepdims=True, initial=1e-9)
    stored: Stored = np.rint(vectors / most * 127).astype(np.int8)
    return stored


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
