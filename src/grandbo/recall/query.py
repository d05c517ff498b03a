"""`query_topic`: the one read seam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.events.log import READ_HEAD, Head, head_of
from grandbo.events.models import Policy
from grandbo.fusion import fuse
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.tenants import POLICY_IN_FORCE
from grandbo.recall.answer import MODES, Answer, EmptyReason, Lexical, Match, Mode, Searched, Semantic
from grandbo.recall.meaning import Meaning, TopicVector
from grandbo.recall.receipts import Receipt, ReceiptWriter
from grandbo.recall.scope import Scope
from grandbo.recall.statement import recall_query
from grandbo.recall.topic import Topic, check_topic
from grandbo.storage.database import Database, Row
from grandbo.text import check_text
from grandbo.types import KINDS, Clock, Principal, new_id, utc_now

DEFAULT_LIMIT = 5
MAX_LIMIT = 20


@dataclass(frozen=True, slots=True)
class Question:
    """A checked recall: the topic, and filters that only narrow."""

    topic: Topic
    limit: int
    kinds: tuple[str, ...]
    service: str | None
    mode: Mode

    def parameters(self) -> dict[str, Any]:
        """What a receipt keeps: everything but the topic."""
        return {"limit": self.limit, "kinds": list(self.kinds), "service": self.service, "mode": self.mode}


def check_question(
    topic: object,
    *,
    limit: object = None,
    kinds: object = None,
    service: object = None,
    mode: object = None,
) -> Question:
    """
    Check what was asked; None stands for a default everywhere.

    Raises:
        InvalidInput: with the field and what is allowed there.
    """
    checked = check_topic(topic)
    if limit is None:
        limit = DEFAULT_LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_LIMIT}.", field="limit")
    if isinstance(kinds, str):
        kinds = [kinds]
    if kinds is not None and not (isinstance(kinds, list | tuple) and all(kind in KINDS for kind in kinds)):
        raise InvalidInput(f"kind: it must be one of {', '.join(KINDS)}.", field="kind")
    if service is not None:
        if not isinstance(service, str) or not service.strip():
            raise InvalidInput("service: it must be the name of a service.", field="service")
        check_text(service, "service", limit=200, single_line=True)
    mode = "hybrid" if mode is None else mode
    chosen = next((known for known in MODES if known == mode), None)
    if chosen is None:
        raise InvalidInput(f"mode: it must be one of {', '.join(MODES)}.", field="mode")
    return Question(checked, limit, tuple(dict.fromkeys(kinds or ())), service, chosen)


def query_topic(
    database: Database,
    meaning: Meaning,
    receipts: ReceiptWriter,
    tenant_id: UUID,
    principal: Principal,
    question: Question,
    *,
    clock: Clock = utc_now,
) -> Answer:
    """
    Give the memory's evidence on a topic, to this principal, at this moment.

    The topic is embedded before the transaction opens; a provider that is down makes the answer keyword-only and the
    answer says so. Scope, both rankings and the rows come from one snapshot.
    """
    require(principal, "recall")
    vector = meaning.of(question.topic.text) if question.mode != "words" else TopicVector()
    signals = _signals(question.mode, vector)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        key = {"tenant_id": tenant_id}
        head_rows, policy_rows = transaction.batch([(READ_HEAD, key), (POLICY_IN_FORCE, key)])
        head = head_of(head_rows)
        policy = Policy.model_validate(policy_rows[0]["policy"])
        scope = _scope(question, policy, principal, tenant_id, head, clock)
        rows: list[Row] = []
        if signals:
            transaction.read_as(scope.tiers, scope.statuses, scope.instant)
            statement = recall_query(scope.shape, lexical="lexical" in signals, semantic="semantic" in signals)
            rows = transaction.execute(statement, _params(question, scope, policy, vector))
    matches = _fused(rows, policy, question.limit)
    answer = Answer(matches, _searched(rows, signals, vector, matches), head.position, scope.instant, new_id())
    receipts.put(_receipt(answer, tenant_id, principal, question))
    return answer


def _signals(mode: Mode, vector: TopicVector) -> tuple[str, ...]:
    wanted = {"hybrid": ("lexical", "semantic"), "words": ("lexical",), "meaning": ("semantic",)}[mode]
    return tuple(signal for signal in wanted if signal == "lexical" or vector.vector is not None)


def _scope(
    question: Question, policy: Policy, principal: Principal, tenant_id: UUID, head: Head, clock: Clock
) -> Scope:
    return Scope(
        tenant_id=tenant_id,
        tiers=visible_tiers(policy, principal),
        statuses=("published",),
        # Never before the last write: another machine's clock may be ahead, and what was acknowledged must be found.
        instant=max(clock(), head.recorded_at),
        kinds=question.kinds,
        service=question.service,
    )


def _params(question: Question, scope: Scope, policy: Policy, vector: TopicVector) -> dict[str, Any]:
    return {
        **scope.params(),
        "terms": list(question.topic.terms),
        "floor_bp": policy.lexical_floor_bp,
        "alone_floor_bp": policy.lexical_alone_floor_bp,
        "candidates": policy.candidates,
        "vector": vector.vector,
        "stamp": vector.stamp,
        "cutoff": vector.cutoff,
    }


def _fused(rows: list[Row], policy: Policy, limit: int) -> tuple[Match, ...]:
    found = {row["entry_id"]: row for row in rows if row["entry_id"] is not None}
    lexical = sorted((row["lexical_rank"], key) for key, row in found.items() if row["lexical_rank"] is not None)
    semantic = sorted((row["semantic_rank"], key) for key, row in found.items() if row["semantic_rank"] is not None)
    rankings = [[key for _, key in lexical], [key for _, key in semantic]]
    return tuple(_match(found[key], score) for key, score in fuse(rankings, k=policy.rrf_k, limit=limit))


def _match(row: Row, score: float) -> Match:
    lexical, semantic = row["lexical_rank"], row["semantic_rank"]
    return Match(
        entry_id=row["entry_id"],
        revision=row["revision"],
        position=row["position"],
        kind=row["kind"],
        title=row["title"],
        summary=row["summary"],
        service=row["service"],
        status=row["status"],
        disputed=row["disputed"],
        disputed_with=row["disputed_with"],
        confidence_bp=row["confidence_bp"],
        author_type=row["author_type"],
        occurred_at=row["occurred_at"],
        verified_at=row["verified_at"],
        expires_at=row["expires_at"],
        evidence=tuple(row["evidence"]),
        external_id=row["external_id"],
        visibility=row["visibility"],
        score=score,
        lexical=None if lexical is None else Lexical(lexical, _rarest_first(row)),
        semantic=None if semantic is None else Semantic(semantic, row["distance"]),
    )


def _rarest_first(row: Row) -> tuple[str, ...]:
    matched = set(row["matched_terms"])
    return tuple(term for term in row["rarest_first"] if term in matched)


def _searched(rows: list[Row], signals: tuple[str, ...], vector: TopicVector, matches: tuple[Match, ...]) -> Searched:
    counts: dict[str, Any] = (
        rows[0] if rows else {"eligible": 0, "embedded": None, "near_misses": 0, "nearest_beyond": None}
    )
    embedded = counts["embedded"]
    return Searched(
        signals=signals,
        degraded=vector.degraded,
        stamp=vector.stamp,
        cutoff=vector.cutoff,
        eligible=counts["eligible"],
        without_vector=None if embedded is None else counts["eligible"] - embedded,
        near_misses=counts["near_misses"],
        nearest_beyond=counts["nearest_beyond"],
        empty_reason=None if matches else _why_empty(counts, vector, ran=bool(rows)),
    )


def _why_empty(counts: dict[str, Any], vector: TopicVector, *, ran: bool) -> EmptyReason:
    if ran and counts["eligible"] == 0:
        return "nothing_in_scope"
    if vector.degraded is not None:
        return "semantic_unavailable"
    return "beyond_cutoff" if counts["near_misses"] else "nothing_matched"


def _receipt(answer: Answer, tenant_id: UUID, principal: Principal, question: Question) -> Receipt:
    return Receipt(
        tenant_id=tenant_id,
        receipt_id=answer.receipt_id,
        position=answer.position,
        instant=answer.instant,
        principal=principal.ref,
        topic=question.topic.text,
        parameters={**question.parameters(), "roles": sorted(principal.roles)},
        searched=answer.searched.as_dict(),
        matches=[
            {
                "entry_id": str(match.entry_id),
                "revision": match.revision,
                "position": match.position,
                "score": match.score,
                "lexical_rank": match.lexical.rank if match.lexical else None,
                "semantic_rank": match.semantic.rank if match.semantic else None,
                "distance": match.semantic.distance if match.semantic else None,
            }
            for match in answer.matches
        ],
        made_at=answer.instant,
    )
