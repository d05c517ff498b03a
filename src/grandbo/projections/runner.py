"""All projectors in their order, and the steps that a stretch of events yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from grandbo.events.log import RecordedEvent
from grandbo.projections import embeddings, entries, policies, terms
from grandbo.storage.database import Step

# Entries first: vectors are taken only while the entry has their text.
PROJECTORS = (policies.project, entries.project, terms.project, embeddings.project)


def steps_for(events: Iterable[RecordedEvent]) -> Iterator[Step]:
    """Statements that bring the projections from before these events to after them, in order, made when asked for."""
    return (step for event in events for projector in PROJECTORS for step in projector(event))
