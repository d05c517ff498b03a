"""Every topic, asked through the one read seam in each mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from grandbo.errors import InvalidInput
from grandbo.evaluation.corpus import Loaded
from grandbo.evaluation.inputs import JudgedSet
from grandbo.library import TenantMemory
from grandbo.recall.answer import MODES

DEPTH: Final = 10
"""How many matches are asked for: what the measures look at."""

LOSS_DEPTH: Final = 5
"""A topic whose answers are all below this rank counts as lost."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One topic in one mode: the documents in order, or why there are none. `answered`: at least one match."""

    documents: tuple[str, ...]
    answered: bool
    why_empty: str | None


def ask_topics(
    memory: TenantMemory,
    judged: JudgedSet,
    loaded: Loaded,
    modes: Sequence[str] = MODES,
    *,
    progress: Callable[[str, int, int], None],
) -> dict[str, dict[str, Asked]]:
    """By mode and topic, what was answered. A topic that is refused as none is one that was not answered."""
    answers: dict[str, dict[str, Asked]] = {mode: {} for mode in modes}
    for done, (name, topic) in enumerate(judged.topics.items(), start=1):
        for mode in modes:
            answers[mode][name] = _ask(memory, topic, mode, judged.kinds, loaded)
        progress("Asking", done, len(judged.topics))
    return answers


def _ask(memory: TenantMemory, topic: str, mode: str, kinds: list[str], loaded: Loaded) -> Asked:
    try:
        answer = memory.query_topic(topic, mode=mode, kinds=kinds, limit=DEPTH)
    except InvalidInput as error:
        return Asked((), False, error.code)
    # What restates a match is shown with it, so it stands right behind it.
    shown = [entry for match in answer.matches for entry in (match.entry_id, *match.restated_ids)]
    documents = tuple(loaded.document_of[entry] for entry in shown if entry in loaded.document_of)
    return Asked(documents, bool(answer.matches), answer.searched.empty_reason)
