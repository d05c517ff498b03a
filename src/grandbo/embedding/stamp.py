"""The stamp: which space a vector lives in. Vectors of different stamps are never compared."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Final

DIMENSIONS: Final = 1024
"""Length of every stored vector; shorter ones are padded with zeros, which keeps cosine and rank."""

TITLES: Final = "title-v1"
"""The recipe of the vectors of titles alone. None of them makes a match; they order what the others found."""

UNCALIBRATED_CUTOFF_BP: Final = 20_000
"""The largest cosine distance there is: no cutoff. For spaces whose distances nobody has measured yet."""

_STRANGE: Final = re.compile(r"[^a-z0-9/._:-]+")


@dataclass(frozen=True)
class Stamp:
    """
    Identity of an embedding space.

    `revision` is a short file hash or model version, `recipe` names how a text was cut before it was embedded,
    `native_dimensions` is the length before padding, and `cutoff_bp` the largest cosine distance that still counts as
    a match, in basis points (10,000 = orthogonal).
    """

    provider: str
    model: str
    revision: str
    native_dimensions: int
    recipe: str
    cutoff_bp: int

    def __post_init__(self) -> None:
        """Raise `ValueError` for dimensions or a cutoff that cannot be."""
        if not 1 <= self.native_dimensions <= DIMENSIONS:
            raise ValueError(f"native_dimensions must be between 1 and {DIMENSIONS}, not {self.native_dimensions}")
        if not 1 <= self.cutoff_bp <= UNCALIBRATED_CUTOFF_BP:
            raise ValueError(f"cutoff_bp must be between 1 and {UNCALIBRATED_CUTOFF_BP}, not {self.cutoff_bp}")

    @property
    def titles(self) -> Stamp:
        """The space of titles alone, by the same model: its vectors lie where this one's do."""
        return replace(self, recipe=TITLES)

    @property
    def id(self) -> str:
        """
        Name of the space, e.g. ``local/all-minilm-l6-v2@8199be6f/384/title-window-150w-v1``.

        At most 200 characters of ``[a-z0-9@/._:-]``. The cutoff is left out: it can be tuned without a new vector.
        """
        return "/".join(
            (
                _slug(self.provider, 24),
                f"{_slug(self.model, 90)}@{_slug(self.revision, 32)}",
                str(self.native_dimensions),
                _slug(self.recipe, 40),
            )
        )


def is_of_titles(stamp_id: str) -> bool:
    """Whether a stamp's id names a space of titles."""
    return stamp_id.rpartition("/")[2] == TITLES


def _slug(name: str, limit: int) -> str:
    """Keep a plain name; give any other a digest of the original, so that two names never share a stamp."""
    slug = _STRANGE.sub("-", name.lower())
    if slug == name and 0 < len(slug) <= limit:
        return slug
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{slug[: limit - 9]}-{digest}"
