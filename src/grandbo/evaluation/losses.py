"""Why a topic was lost: where its answers stood in either list if nothing had been gated, and what gated them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from grandbo.errors import InvalidInput
from grandbo.evaluation.asking import LOSS_DEPTH, Asked
from grandbo.evaluation.corpus import Loaded
from grandbo.evaluation.inputs import JudgedSet
from grandbo.library import TenantMemory
from grandbo.recall.look import Look

_EVERYTHING = 1_000_000


@dataclass(frozen=True, slots=True)
class Place:
    """
    Where one relevant document stood.

    `lexical_rank`, `semantic_rank`: its place among all entries in scope, without gates; None where it shares no term,
    or has no vector. `why` names what kept it out, the nearest to the answer first.
    """

    document: str
    answered_at: int | None
    lexical_rank: int | None
    semantic_rank: int | None
    distance: float | None
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "document": self.document,
            "answered_at": self.answered_at,
            "lexical_rank": self.lexical_rank,
            "semantic_rank": self.semantic_rank,
            "distance": None if self.distance is None else round(self.distance, 4),
            "why": self.why,
        }


def explain_losses(
    memory: TenantMemory, judged: JudgedSet, loaded: Loaded, answers: dict[str, Asked], mode: str = "hybrid"
) -> dict[str, list[Place]]:
    """For each topic whose relevant documents are all below rank 5 in this mode, where each of them stood, and why."""
    lost = {}
    for name, relevant in judged.relevant.items():
        documents = list(dict.fromkeys(answers[name].documents))
        if not relevant & set(documents[:LOSS_DEPTH]):
            lost[name] = _places(memory, judged, name, loaded, documents, mode)
    return lost


def _places(
    memory: TenantMemory, judged: JudgedSet, name: str, loaded: Loaded, documents: list[str], mode: str
) -> list[Place]:
    topic, relevant = judged.topics[name], sorted(judged.relevant[name])
    try:
        look = memory.look_through(topic, _EVERYTHING, kinds=judged.kinds, mode=mode)
    except InvalidInput as error:
        return [Place(document, None, None, None, None, error.code) for document in relevant]
    places = []
    for document in relevant:
        entry = loaded.entry_of.get(document)
        found = None if entry is None else look.standings.get(entry)
        place = Place(
            document=document,
            answered_at=documents.index(document) + 1 if document in documents else None,
            lexical_rank=None if found is None else found.lexical_rank,
            semantic_rank=None if found is None else found.semantic_rank,
            distance=None if found is None else found.distance,
            why="",
        )
        is_listed = place.answered_at is not None or (found is not None and found.listed)
        places.append(replace(place, why="ranked_lower" if is_listed else _why(place, loaded, look, mode)))
    return places


def _why(place: Place, loaded: Loaded, look: Look, mode: str) -> str:
    """What kept a document out of every list."""
    if place.document not in loaded.entry_of:
        return "not_stored"
    if place.document in loaded.hidden:
        return loaded.hidden[place.document]
    if mode != "meaning" and place.lexical_rank is not None and place.lexical_rank <= look.candidates:
        return "below_floor"
    if mode != "words" and place.distance is not None and look.cutoff is not None and place.distance >= look.cutoff:
        return "beyond_cutoff"
    return "outside_the_lists"
