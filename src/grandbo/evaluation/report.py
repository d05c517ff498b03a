"""What was measured, as a document that can be kept, read again and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grandbo.errors import InvalidInput
from grandbo.evaluation.asking import Asked
from grandbo.evaluation.inputs import JudgedSet
from grandbo.evaluation.losses import Place
from grandbo.evaluation.measures import MEASURES, RATES, Interval, Scores, difference, interval, scores_of

FORMAT = "grandbo-eval-1"


@dataclass(frozen=True, slots=True)
class Report:
    """By mode and measure the score of each topic; `corpus` and `losses` are what else there is to say, as values."""

    scores: dict[str, dict[str, Scores]]
    corpus: dict[str, Any] = field(default_factory=dict)
    losses: dict[str, dict[str, list[Place]]] = field(default_factory=dict)

    def summary(self) -> dict[str, dict[str, Interval | None]]:
        """By mode and measure the mean with its interval; None where no topic has the measure."""
        return {
            mode: {name: interval(of_mode[name]) for name in (*MEASURES, *RATES)}
            for mode, of_mode in self.scores.items()
        }

    def gains(self) -> dict[str, dict[str, Interval | None]]:
        """What hybrid has over each other mode, topic by topic; empty without it."""
        if "hybrid" not in self.scores:
            return {}
        others = [mode for mode in self.scores if mode != "hybrid"]
        return {mode: _differences(self.scores["hybrid"], self.scores[mode]) for mode in others}

    def as_dict(self) -> dict[str, Any]:
        """Plain values; `of_document` reads them again. No topic's text is among them, only its id."""
        return {
            "format": FORMAT,
            "corpus": self.corpus,
            "summary": _plain(self.summary()),
            "hybrid_minus": _plain(self.gains()),
            "losses": {
                mode: {topic: [place.as_dict() for place in places] for topic, places in lost.items()}
                for mode, lost in self.losses.items()
            },
            "scores": self.scores,
        }

    @classmethod
    def of_document(cls, document: object) -> Report:
        """A report that was saved; raises `InvalidInput` for anything else."""
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InvalidInput("compare: it must be a file that `grandbo eval --save` wrote.", field="compare")
        return cls(document["scores"], document["corpus"])


def report_of(
    judged: JudgedSet, answers: Mapping[str, Mapping[str, Asked]], corpus: dict[str, Any] | None = None
) -> Report:
    """Score the answers of every mode."""
    return Report({mode: scores_of(of_mode, judged.relevant) for mode, of_mode in answers.items()}, corpus or {})


def compare(now: Report, before: Report) -> dict[str, dict[str, Interval | None]]:
    """Now minus before, by mode and measure, over the topics that both asked."""
    return {mode: _differences(now.scores[mode], before.scores[mode]) for mode in now.scores if mode in before.scores}


def _differences(left: Mapping[str, Scores], right: Mapping[str, Scores]) -> dict[str, Interval | None]:
    return {name: difference(left[name], right[name]) for name in (*MEASURES, *RATES)}


def _plain(table: Mapping[str, Mapping[str, Interval | None]]) -> dict[str, dict[str, dict[str, float | int] | None]]:
    return {
        mode: {name: None if found is None else found.as_dict() for name, found in row.items()}
        for mode, row in table.items()
    }
