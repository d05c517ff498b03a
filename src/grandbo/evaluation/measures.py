"""The measures, by `ir-measures`, and their intervals by a paired bootstrap over topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from grandbo.errors import ConfigurationError
from grandbo.evaluation.asking import Asked

MEASURES: Final = ("recall@5", "recall@10", "ndcg@10", "mrr@10")
RATES: Final = ("answer_rate", "false_answer_rate")
RESAMPLES: Final = 2_000
SEED: Final = 20260102

Scores = dict[str, float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over topics with its 95 % interval."""

    mean: float
    low: float
    high: float
    topics: int

    def as_dict(self) -> dict[str, float | int]:
        """Plain values, to four places."""
        rounded = {name: round(getattr(self, name), 4) for name in ("mean", "low", "high")}
        return {**rounded, "topics": self.topics}


def scores_of(answers: Mapping[str, Asked], relevant: Mapping[str, frozenset[str]]) -> dict[str, Scores]:
    """
    By measure, the score of each topic it applies to.

    The four measures and `answer_rate` of the topics that have an answer in the corpus; `false_answer_rate` of those
    that have none: 1 where something was answered all the same.
    """
    scores = _ranked(answers, relevant)
    scores["answer_rate"] = {name: float(asked.answered) for name, asked in answers.items() if name in relevant}
    scores["false_answer_rate"] = {
        name: float(asked.answered) for name, asked in answers.items() if name not in relevant
    }
    return scores


def _ranked(answers: Mapping[str, Asked], relevant: Mapping[str, frozenset[str]]) -> dict[str, Scores]:
    try:
        import ir_measures
    except ImportError:
        raise ConfigurationError("The measures need ir-measures: `pip install 'grandbo[eval]'`.") from None
    of_measure = dict(
        zip(
            (ir_measures.R @ 5, ir_measures.R @ 10, ir_measures.nDCG @ 10, ir_measures.RR @ 10),
            MEASURES,
            strict=True,
        )
    )
    qrels = [ir_measures.Qrel(topic, doc, 1) for topic, ids in relevant.items() for doc in sorted(ids)]
    run = [
        ir_measures.ScoredDoc(topic, doc, -float(rank))
        for topic in relevant
        for rank, doc in enumerate(dict.fromkeys(answers[topic].documents))
    ]
    scores: dict[str, Scores] = {name: dict.fromkeys(relevant, 0.0) for name in MEASURES}
    # Without a single document there is nothing to hand over, and every topic keeps its nought.
    for found in ir_measures.iter_calc(list(of_measure), qrels, run) if run else ():
        scores[of_measure[found.measure]][found.query_id] = float(found.value)
    return scores


def interval(values: Scores) -> Interval | None:
    """The mean of a score with its interval; None where no topic has it."""
    if not values:
        return None
    return _interval(list(values.values()))


def difference(left: Scores, right: Scores) -> Interval | None:
    """Left minus right over the topics that both have, resampled in pairs; None where they share none."""
    shared = [name for name in left if name in right]
    return _interval([left[name] - right[name] for name in shared]) if shared else None


def _interval(values: Sequence[float]) -> Interval:
    # The same seed and count draw the same topics: two systems are compared on the same resamples.
    rng = np.random.default_rng(SEED)
    numbers: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    drawn = rng.integers(0, len(numbers), size=(RESAMPLES, len(numbers)))
    low, high = np.percentile(numbers[drawn].mean(axis=1), (2.5, 97.5))
    return Interval(float(numbers.mean()), float(low), float(high), len(numbers))
