"""
What a peer must offer to be measured, and how entries, topics and vectors reach it: in files, so all have the same.

Nothing here but NumPy and the standard library: it is imported by Grandbo's environment and by the peers'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

# How many each of two lists holds before they are fused, where a peer lets one say.
LIST = 25
# The tenant of whatever is not said to be another's.
ALONE = "bench"


@dataclass(frozen=True, slots=True)
class Text:
    """An entry or a topic: its id, its one text and the vector of it, the fields that it was made of, whose it is."""

    id: str
    text: str
    vector: Vectors
    fields: dict[str, Any] = field(default_factory=dict)
    tenant: str = ALONE

    @property
    def title(self) -> str:
        """The title it has, or the start of its text."""
        return str(self.fields.get("title") or self.text[:80])


@dataclass(frozen=True, slots=True)
class Where:
    """
    Where a peer keeps things: a database of its own, and a folder of its own.

    Attributes:
        server: host (a folder with a socket), port, user, password and dbname.
        dimensions: of every vector.
        listed: how many each list holds before fusion, where the peer lets one say.
        place: sets apart what one peer keeps for two purposes.
        apart: whether entries are of several tenants, to be kept apart as the peer's own documents say.
    """

    server: dict[str, str]
    folder: Path
    dimensions: int
    listed: int = LIST
    place: str = ""
    apart: bool = False

    @property
    def conninfo(self) -> str:
        """As libpq takes it."""
        return " ".join(f"{name}='{value}'" for name, value in self.server.items())

    def url(self, scheme: str) -> str:
        """As SQLAlchemy takes it."""
        s = self.server
        return f"{scheme}://{s['user']}:{s['password']}@/{s['dbname']}?host={s['host']}&port={s['port']}"


class Known:
    """Vectors by text, for those who want to embed themselves: they get what everybody got."""

    def __init__(self) -> None:
        self._of: dict[str, Vectors] = {}

    def add(self, texts: Iterable[Text]) -> None:
        """Learn the vectors of some texts."""
        self._of.update((text.text, text.vector) for text in texts)

    def forget(self, texts: Iterable[Text]) -> None:
        """Forget them: what was stored is not embedded again."""
        for text in texts:
            self._of.pop(text.text, None)

    def of(self, text: str) -> Vectors:
        """The vector of a text; `KeyError` for one that was not handed out."""
        return self._of[text]


class Peer(Protocol):
    """A memory that is written to and asked. `write` is called from several threads at once."""

    def __init__(self, where: Where, known: Known) -> None: ...

    def fill(self, entries: Sequence[Text]) -> None:
        """Store many, all of one tenant, in the fastest way that the product offers; not timed."""

    def write(self, entry: Text) -> None:
        """Store one; it is durable when this returns."""

    def recall(self, topic: Text, k: int) -> list[str]:
        """Ids of the first k, by words and meaning where the product has both."""

    def nearest(self, topic: Text, k: int) -> list[str]:
        """Ids of the first k by meaning alone."""

    def close(self) -> None: ...


class Log(Protocol):
    """A log that is appended to and read."""

    def append(self, entry: Text) -> None:
        """Append one event; it is durable when this returns."""

    def append_many(self, entries: Sequence[Text]) -> int:
        """Append many in the product's own batches; give the number of events."""

    def read(self) -> int:
        """Read the whole log in order; give the number of events."""


def save_texts(path: Path, texts: Sequence[Text]) -> None:
    """Write texts for `load_texts`: lines of JSON beside an array."""
    lines = (
        json.dumps({"id": each.id, "text": each.text, "fields": each.fields, "tenant": each.tenant}) for each in texts
    )
    path.with_suffix(".jsonl").write_text("\n".join(lines))
    np.save(path.with_suffix(".npy"), np.stack([each.vector for each in texts]))


def load_texts(path: Path, start: int = 0, stop: int | None = None) -> list[Text]:
    """Read texts from `start` up to `stop`."""
    vectors = np.array(np.load(path.with_suffix(".npy"), mmap_mode="r")[start:stop])
    lines = path.with_suffix(".jsonl").read_text().split("\n")
    rows = (json.loads(line) for line in lines[start:stop])
    return [Text(vector=vector, **row) for row, vector in zip(rows, vectors, strict=True)]
