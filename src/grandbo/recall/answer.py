"""The answer of a recall: the same shape for library, CLI, HTTP and MCP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from grandbo.types import utc_text

EmptyReason = Literal["nothing_in_scope", "nothing_matched", "beyond_cutoff", "semantic_unavailable"]
Scanned = Literal["exact", "signatures"]
Mode = Literal["hybrid", "words", "meaning"]
MODES: tuple[Mode, ...] = ("hybrid", "words", "meaning")


@dataclass(frozen=True, slots=True)
class Lexical:
    """
    Place in the list by words, from 1, and the topic's terms that the entry has, rarest first.

    `part`: how much of the match's score comes from this list.
    """

    rank: int
    terms: tuple[str, ...]
    part: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"rank": self.rank, "terms": list(self.terms), "part": self.part}


@dataclass(frozen=True, slots=True)
class Semantic:
    """
    Place in the list by meaning, from 1, and the cosine distance of the nearest window.

    `part`: how much of the match's score comes from this list.
    """

    rank: int
    distance: float
    part: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"rank": self.rank, "distance": self.distance, "part": self.part}


@dataclass(frozen=True, slots=True)
class Match:
    """One ranked answer. Its citation is (entry_id, revision, position)."""

    entry_id: UUID
    revision: int
    position: int
    kind: str
    title: str
    summary: str
    service: str
    status: str
    disputed: bool
    disputed_with: UUID | None
    confidence_bp: int
    author_type: str
    occurred_at: datetime | None
    verified_at: datetime | None
    expires_at: datetime
    evidence: tuple[dict[str, str], ...]
    external_id: str | None
    visibility: str
    score: float
    lexical: Lexical | None
    semantic: Semantic | None
    namespace: str = ""
    owner: str | None = None
    applies_to: tuple[str, ...] = ()
    expired: bool = False
    trust_bp: int = 0
    open_follow_ups: int = 0
    restated_ids: tuple[UUID, ...] = ()

    @property
    def restated(self) -> int:
        """How many others that were found say nothing but this."""
        return len(self.restated_ids)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in the documented shape."""
        return {
            "entry_id": str(self.entry_id),
            "revision": self.revision,
            "position": self.position,
            "kind": self.kind,
            "title": self.title,
            "summary": self.summary,
            "service": self.service,
            "status": self.status,
            "expired": self.expired,
            "disputed": self.disputed,
            "disputed_with": str(self.disputed_with) if self.disputed_with else None,
            "confidence_bp": self.confidence_bp,
            "trust_bp": self.trust_bp,
            "author_type": self.author_type,
            "occurred_at": _text(self.occurred_at),
            "verified_at": _text(self.verified_at),
            "expires_at": utc_text(self.expires_at),
            "evidence": list(self.evidence),
            "open_follow_ups": self.open_follow_ups,
            "external_id": self.external_id,
            "visibility": self.visibility,
            "namespace": self.namespace,
            "owner": self.owner,
            "applies_to": list(self.applies_to),
            "score": self.score,
            "lexical": self.lexical.as_dict() if self.lexical else None,
            "semantic": self.semantic.as_dict() if self.semantic else None,
            "restated": self.restated,
            "restated_ids": [str(entry_id) for entry_id in self.restated_ids],
        }


@dataclass(frozen=True, slots=True)
class Excluded:
    """
    What the asker's context kept out: how many entries do not apply to his systems, and which of his versions are none.

    Entries that depend on the version of a system in `unreadable` are among the excluded.
    """

    applicability: int
    unreadable: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"applicability": self.applicability, "unreadable": list(self.unreadable)}


@dataclass(frozen=True, slots=True)
class Searched:
    """
    What was searched, and why there is no more.

    `scan` "signatures": the scope is large, and distances are those of the vectors that are nearest by signature. Then
    `near_misses` are at least so many, and `nearest_beyond` is at most so near.
    """

    signals: tuple[str, ...]
    degraded: str | None
    stamp: str | None
    cutoff: float | None
    eligible: int
    without_vector: int | None
    near_misses: int
    nearest_beyond: float | None
    empty_reason: EmptyReason | None
    excluded: Excluded = Excluded(0, ())
    scan: Scanned = "exact"

    @property
    def beyond(self) -> str:
        """How many lie just beyond the cutoff, as people read it."""
        return f"at least {self.near_misses}" if self.scan == "signatures" else str(self.near_misses)

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "signals": list(self.signals),
            "degraded": self.degraded,
            "stamp": self.stamp,
            "cutoff": self.cutoff,
            "eligible": self.eligible,
            "without_vector": self.without_vector,
            "near_misses": self.near_misses,
            "nearest_beyond": self.nearest_beyond,
            "excluded": self.excluded.as_dict(),
            "empty_reason": self.empty_reason,
            "scan": self.scan,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Matches, best first, or why there are none; the moment it was given at; the receipt that records it.

    `floor` is what the tenant's policy has given where nothing matched: core references, in neither list.
    """

    matches: tuple[Match, ...]
    searched: Searched
    position: int
    instant: datetime
    receipt_id: UUID
    floor: tuple[Match, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in the documented shape."""
        return {
            "matches": [match.as_dict() for match in self.matches],
            "floor": [match.as_dict() for match in self.floor],
            "searched": self.searched.as_dict(),
            "position": self.position,
            "instant": utc_text(self.instant),
            "receipt_id": str(self.receipt_id),
        }


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else utc_text(moment)
