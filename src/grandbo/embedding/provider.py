"""What a provider of vectors must offer. Everything that all of them need is done once, by `Embedder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from grandbo.embedding.stamp import Stamp

Kind: TypeAlias = Literal["document", "query"]
"""Some models want the two told apart; a stored text is a document, a topic is a query."""

RawVectors: TypeAlias = Sequence[Sequence[float]] | Sequence[npt.NDArray[Any]] | npt.NDArray[Any]
"""What a provider gives: one vector a text, in the order of the texts, neither checked nor normalised."""

Vectors: TypeAlias = npt.NDArray[np.float32]


class Provider(Protocol):
    """
    A model, near or far.

    It may also have a `close()`; `lanes`, how many calls at once it is to get at most; and `titles`, whether a vector
    of each title alone is worth making: not until somebody has measured it.
    """

    @property
    def stamp(self) -> Stamp:
        """The space of its vectors; may ask the model once and raise `EmbedderTransient` if it does not answer."""
        ...

    @property
    def max_texts(self) -> int:
        """The most texts that `embed` takes at once."""
        ...

    def embed(self, texts: Sequence[str], kind: Kind) -> RawVectors:
        """
        Give one vector of `stamp.native_dimensions` numbers for each text.

        Raises `EmbedderTransient` (try later), `EmbedderRefused` (never for these texts) or `EmbedderMisconfigured`.
        """
        ...
