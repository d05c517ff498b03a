"""The candidates of a recall in their order: the lists by words and by meaning, fused."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from grandbo.events.models import Policy
from grandbo.fusion import Fused, fuse, nearness
from grandbo.recall.folding import Key, may_restate, words_keys
from grandbo.storage.database import Row


class Ranking:
    """
    What the statement of recall gave, taken apart; in order once it is made.

    Attributes:
        counts: the row of the counts; None where no signal ran.
        found: the candidates, in no order.
        ranked: the same, the best first.
        keys: of each of these what is equal where two say the same; none where nothing is folded.
    """

    def __init__(self, rows: Sequence[Row], policy: Policy, *, folds: bool) -> None:
        self.counts: Row | None = None
        self.found: list[Row] = []
        for row in rows:
            if row["entry_id"] is None:
                self.counts = row
            else:
                self.found.append(row)
        self.ranked: list[Row] = []
        self.keys: list[Key] = []
        self._fused: dict[int, Fused[int]] = {}
        self._policy = policy
        self._folds = folds

    @property
    def rarest_first(self) -> Sequence[str]:
        """The terms of the topic; none where words were not asked."""
        return () if self.counts is None else self.counts["rarest_first"] or ()

    def make(self) -> list[UUID]:
        """Put the candidates in order; gives those of whom only their bodies tell whether one restates another."""
        # By the number that an id is: ids are compared and looked up some hundred times, and take ten times as long.
        rows_by_id = {row["entry_id"].int: row for row in self.found}
        fused = _fuse_lists(rows_by_id, self._policy)
        self._fused = {found.item: found for found in fused}
        self.ranked = [rows_by_id[found.item] for found in fused]
        if not self._folds:
            return []
        self.keys = words_keys(self.ranked)
        return may_restate(self.ranked, self.keys)

    def fused_of(self, row: Row) -> Fused[int]:
        """What the lists gave a candidate."""
        return self._fused[row["entry_id"].int]


def _fuse_lists(found: dict[int, Row], policy: Policy) -> list[Fused[int]]:
    """The lists by words and by meaning, fused; entries by the number that their id is."""
    lexical = sorted((row["lexical_rank"], key) for key, row in found.items() if row["lexical_rank"] is not None)
    semantic = sorted((row["semantic_rank"], key) for key, row in found.items() if row["semantic_rank"] is not None)
    rankings = [
        [(key, float(found[key]["lexical_score"])) for _, key in lexical],
        [(key, nearness(found[key]["distance"])) for _, key in semantic],
    ]
    return fuse(rankings, k=policy.rrf_k, emphasis=policy.rrf_emphasis, limit=len(found))
