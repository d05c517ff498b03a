"""A judged set out of the verdicts that people gave on answers: the tenant's own memory, topics and judgements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from grandbo.errors import InvalidInput
from grandbo.evaluation.corpus import Loaded, loaded_already
from grandbo.evaluation.inputs import JudgedSet
from grandbo.library import TenantMemory


@dataclass(frozen=True, slots=True)
class FromFeedback:
    """
    The judged set, the memory as its corpus, and what could not be used of what was there.

    Attributes:
        verdicts: how many verdicts the judgements rest on.
        unrecognised: verdicts on answers to other topics.
        unjudged: topics that nobody gave a verdict on.
        without_help: topics whose verdicts name nothing that helped. What would have is unknown: they are not asked.
    """

    judged: JudgedSet
    loaded: Loaded
    verdicts: int
    unrecognised: int
    unjudged: int
    without_help: int

    def as_dict(self) -> dict[str, int]:
        """The counts."""
        return {name: getattr(self, name) for name in ("verdicts", "unrecognised", "unjudged", "without_help")}


def judged_set_from_feedback(memory: TenantMemory, topics: Mapping[str, str]) -> FromFeedback:
    """
    Judge topics by the verdicts on their answers: relevant is what helped more often than not.

    Raises:
        InvalidInput: nothing helped on any of the topics, so that there is nothing to measure.
    """
    found = memory.judged_by_feedback(topics)
    loaded = loaded_already(memory)
    relevant = {name: frozenset(map(str, ids)) & loaded.entry_of.keys() for name, ids in found.relevant().items()}
    relevant = {name: ids for name, ids in relevant.items() if ids}
    if not relevant:
        raise InvalidInput(
            "topics: no answer to any of them was given the verdict helped. Topics must be given word for word as they "
            "were asked; verdicts come from `grandbo feedback`.",
            field="topics",
        )
    asked = {name: topics[name] for name in topics if name in relevant}
    verdicts = sum(said.total() for of_topic in found.verdicts.values() for said in of_topic.values())
    return FromFeedback(
        JudgedSet({}, frozenset(), asked, relevant),
        loaded,
        verdicts=verdicts,
        unrecognised=found.unrecognised,
        unjudged=len(topics) - len(found.verdicts),
        without_help=len(found.verdicts) - len(relevant),
    )
