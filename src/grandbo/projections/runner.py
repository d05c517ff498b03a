"""All projectors in their order, and the steps that a stretch of events yields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from grandbo.events.log import RecordedEvent, append_steps
from grandbo.projections import candidates, embeddings, entries, erasures, feedback, links, policies, subjects, terms
from grandbo.storage.database import Step, Transaction

# Terms before entries: those of the text before are found by the list that the entry's row still has. Embeddings last:
# vectors are taken only while the entry has their text, and they carry the scope that it has by now.
PROJECTORS = (
    policies.project,
    terms.project,
    entries.project,
    embeddings.project,
    links.project,
    candidates.project,
    feedback.project,
    erasures.project,
    subjects.project,
)


def append(transaction: Transaction, sealed: Sequence[RecordedEvent], *, commit: bool = False) -> None:
    """Append sealed events and project them, in one round trip; with `commit` the COMMIT travels along."""
    transaction.batch(chain(append_steps(sealed), steps_for(sealed)), commit=commit)
    transaction.reached = sealed[-1].position


def steps_for(events: Iterable[RecordedEvent]) -> Iterator[Step]:
    """Statements that bring the projections from before these events to after them, in order, made when asked for."""
    return (step for event in events for projector in PROJECTORS for step in projector(event))
