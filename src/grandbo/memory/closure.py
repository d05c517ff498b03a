"""The closure of what rests on what, over edges that become known bit by bit. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from grandbo.errors import ImpactTooLarge

MEMBER_LIMIT = 10_000

Because = Literal[
    "seed",
    "evidence",
    "corroboration",
    "link:caused_by",
    "link:mitigated_by",
    "link:relates_to",
    "link:supersedes",
    "link:duplicates",
    "recorded_after",
]


@dataclass(frozen=True, slots=True)
class Edge:
    """One entry rests on another, and why; with the receipt by which its author had been told, where it was that."""

    entry_id: UUID
    on: UUID
    because: Because
    receipt_id: UUID | None = None


class Closure:
    """What is reached from the seeds over edges, in whatever order these become known."""

    def __init__(self, limit: int = MEMBER_LIMIT) -> None:
        self._limit = limit
        self._rests: defaultdict[UUID, dict[Edge, None]] = defaultdict(dict)
        self._carries: defaultdict[UUID, list[UUID]] = defaultdict(list)
        self._reached: dict[UUID, None] = {}

    def __iter__(self) -> Iterator[UUID]:
        """What is reached, the seeds first."""
        return iter(self._reached)

    def start(self, seeds: Iterable[UUID]) -> list[UUID]:
        """Begin at these; give all that is reached now and was not before. Raises `ImpactTooLarge`."""
        return self._spread(seeds)

    def learn(self, edges: Iterable[Edge]) -> list[UUID]:
        """Take edges in; give all that is reached now and was not before. Raises `ImpactTooLarge`."""
        touched = []
        for edge in edges:
            if edge.entry_id == edge.on:
                continue
            self._rests[edge.entry_id][edge] = None
            self._carries[edge.on].append(edge.entry_id)
            if edge.on in self._reached:
                touched.append(edge.entry_id)
        return self._spread(touched)

    def reasons(self, entry_id: UUID) -> list[Edge]:
        """Every edge from this entry to what is reached."""
        return [edge for edge in self._rests.get(entry_id, ()) if edge.on in self._reached]

    def _spread(self, touched: Iterable[UUID]) -> list[UUID]:
        new: list[UUID] = []
        frontier = list(touched)
        while frontier:
            following: list[UUID] = []
            for entry_id in frontier:
                if entry_id in self._reached:
                    continue
                if len(self._reached) == self._limit:
                    raise ImpactTooLarge(limit=self._limit)
                self._reached[entry_id] = None
                new.append(entry_id)
                following += self._carries.get(entry_id, ())
            frontier = following
        return new
