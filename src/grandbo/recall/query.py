"""`query_topic`: the one read seam."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import MomentUnknown
from grandbo.events.log import Head
from grandbo.events.models import Policy
from grandbo.memory.policy import may, require, visible_tiers
from grandbo.memory.restating import FOLD_VERSION
from grandbo.memory.tenants import HEAD_AND_POLICY, standing_of
from grandbo.recall.answer import Answer, EmptyReason, Excluded, Match, Mode, Searched
from grandbo.recall.counting import Counting, Counts, are_more_than, count_then
from grandbo.recall.folding import fold, look_around
from grandbo.recall.matching import match_of
from grandbo.recall.meaning import Meaning, TopicVector
from grandbo.recall.moment import AsOf, resolve
from grandbo.recall.question import Question
from grandbo.recall.ranking import Ranking
from grandbo.recall.receipts import Receipt, ReceiptWriter, matches_kept
from grandbo.recall.scan import Scan, Scanning, scan_of
from grandbo.recall.scope import Scope
from grandbo.recall.statement import floor_query, recall_query
from grandbo.recall.view import View, held_at
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.readers import ReplicaBehind
from grandbo.storage.tables import policies
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, new_id, utc_now

_POLICY_AT = sa.select(policies.c.policy).where(of_tenant(policies), held_at(policies, "position"))

# The past is read without an index over its vectors, and must end all the same; live recall has the reader's limit.
AS_OF_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Setting:
    """
    Where a question is answered: the view, the position, the scope, and the policy in force there.

    Without `folds` restatements are matches of their own, as they were in answers of before they were folded. Of the
    past, `seen_tiers` and `seen_at` keep out what stood above the asker's own tiers at the head he asked from. `scan`
    says from which size on a scope is not measured whole.
    """

    view: View
    position: int
    scope: Scope
    policy: Policy
    seen_at: int
    seen_tiers: tuple[str, ...]
    scan: Scan
    folds: bool = True


def query_topic(
    database: Database,
    meaning: Meaning,
    receipts: ReceiptWriter,
    counting: Counting,
    tenant_id: UUID,
    principal: Principal,
    question: Question,
    as_of: AsOf | None = None,
    *,
    at_least: int = 0,
    not_below: int | None = None,
    scanning: Scanning = scan_of,
    clock: Clock = utc_now,
) -> Answer:
    """
    Give the memory's evidence on a topic, to this principal, at this moment, or as of an earlier one.

    The topic is embedded before the transaction opens; a provider that is down makes the answer keyword-only and the
    answer says so. Scope, both rankings and the rows come from one snapshot.

    Args:
        at_least: a position that the caller knows of, and that the answer must not be given without.
        not_below: on a replica, the position that its log must have reached.
        scanning: the scan that the policy of the moment asks for.

    Raises:
        MomentUnknown: the log has not come as far as `at_least`. ReplicaBehind: not as far as `not_below`.
        ScanUnknown: that policy is of a newer version.
    """
    started = time.perf_counter_ns()
    require(principal, "recall")
    if as_of is not None:
        require(principal, "audit")
    # Quarantined text is for those who decide about it; no investigator is told it, whatever he asks for by name.
    if "quarantined" in question.statuses and not may(principal, "audit"):
        require(principal, "govern")
    vector = meaning.of(question.topic.text) if question.mode != "words" else TopicVector()
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        found = transaction.execute(HEAD_AND_POLICY, {"tenant_id": tenant_id})
        refuse_behind(found, not_below)
        head, policy = standing_of(found)
        if at_least > head.position:
            raise MomentUnknown(f"at_least: this tenant's log ends at position {head.position}.", field="at_least")
        # Never before the last write: another machine's clock may be ahead, and what was acknowledged must be found.
        now = max(clock(), head.recorded_at)
        tiers = _tiers(policy, principal, question)
        if as_of is None:
            scope = scope_of(question, tenant_id, tiers, now)
            # The reader sees nothing that is out of date: who asks for that by name is answered from the revisions.
            view = View.AS_OF if scope.shape.by_expired else View.LIVE
            setting = Setting(view, head.position, scope, policy, head.position, tiers, scanning(policy))
        else:
            asked = (question, tenant_id, principal, as_of)
            setting = _setting_then(transaction, *asked, head, tiers, now, scanning)
        vector = in_force(vector, setting.policy)
        answer = answer_in(transaction, question, vector, setting, counting, ends=True)
    took_us = (time.perf_counter_ns() - started) // 1_000
    receipts.put(_receipt(answer, setting, principal, question, as_of, now, took_us, vector.titles))
    return answer


def refuse_behind(head_rows: Sequence[Row], not_below: int | None) -> None:
    """Raises `ReplicaBehind` where a replica has not heard of the tenant, or not of this position."""
    if not_below is not None and (not head_rows or head_rows[0]["position"] < not_below):
        raise ReplicaBehind


def _setting_then(
    transaction: Transaction,
    question: Question,
    tenant_id: UUID,
    principal: Principal,
    as_of: AsOf,
    head: Head,
    own: tuple[str, ...],
    now: datetime,
    scanning: Scanning,
) -> Setting:
    moment = resolve(transaction, tenant_id, as_of, head, now)
    policy = policy_at(transaction, tenant_id, moment.position)
    roles = principal.roles if as_of.role is None else frozenset({as_of.role})
    asker = Principal(principal.type, principal.principal_id, roles=roles, own_tiers=principal.own_tiers)
    then = _tiers(policy, asker, question)
    tiers = tuple(tier for tier in then if tier in own)
    scope = scope_of(question, tenant_id, tiers, moment.instant)
    return Setting(View.AS_OF, moment.position, scope, policy, head.position, own, scanning(policy))


def _tiers(policy: Policy, principal: Principal, question: Question) -> tuple[str, ...]:
    """What is personal is asked for by itself, and stands in the tiers of the asker's own subjects alone."""
    return principal.own_tiers if question.is_personal else visible_tiers(policy, principal)


def policy_at(transaction: Transaction, tenant_id: UUID, position: int) -> Policy:
    """The policy that was in force at a position of the log."""
    rows = transaction.execute(_POLICY_AT, {"tenant_id": tenant_id, "position": position})
    return Policy.model_validate(rows[0]["policy"])


def in_force(vector: TopicVector, policy: Policy) -> TopicVector:
    """
    The topic's vector with the cutoff that the policy sets for its space.

    None where the policy names spaces and this is not one of them: its vectors are not complete yet, or no more.
    """
    if vector.stamp is None or not policy.stamps:
        return vector
    cutoff = next((item.cutoff_bp for item in policy.stamps if item.stamp == vector.stamp), None)
    if cutoff is None:
        return TopicVector(degraded="stamp_not_in_force")
    return replace(vector, cutoff=cutoff / 10_000)


def scope_of(question: Question, tenant_id: UUID, tiers: tuple[str, ...], instant: datetime) -> Scope:
    """The scope of a question for who sees these tiers."""
    return Scope(
        tenant_id=tenant_id,
        tiers=tiers,
        statuses=question.statuses,
        instant=instant,
        kinds=question.kinds,
        service=question.service,
        namespace=question.namespace,
        context=question.context,
    )


def answer_in(
    transaction: Transaction,
    question: Question,
    vector: TopicVector,
    setting: Setting,
    counting: Counting | None = None,
    *,
    ends: bool = False,
) -> Answer:
    """
    Answer a question in its setting; live, with the counts that are kept.

    Where this is all that the transaction is for, it ends with it.
    """
    scope, policy = setting.scope, setting.policy
    signals = signals_of(question.mode, vector)
    rows: list[Row] = []
    counts = None
    if signals:
        params = parameters(question, setting, vector)
        counts = _counts_if_large(transaction, setting, params, counting)
        if counts is not None:
            known = {"eligible": counts.eligible, "embedded": counts.embedded, "standing": counts.standing}
            params |= {**known, "depth": counts.depth(setting.scan)}
        if setting.view is View.LIVE:
            transaction.read_as(scope.tiers, scope.read_statuses, scope.instant)
        else:
            transaction.limit(AS_OF_TIMEOUT_MS)
        shown = {"lexical": "lexical" in signals, "semantic": "semantic" in signals}
        scan = None if counts is None else counts.applied(setting.scan)
        rows = transaction.execute(recall_query(scope.shape, setting.view, **shown, scan=scan), params)
    ranking = Ranking(rows, policy, folds=setting.folds)
    matches = _matches(transaction, setting, ranking, question.limit, ends=ends)
    floor = _floor(transaction, setting) if signals and not matches and policy.floor else ()
    searched = _searched(ranking.counts, signals, vector, matches, scope, is_large=counts is not None)
    return Answer(matches, searched, setting.position, scope.instant, new_id(), floor)


def _counts_if_large(
    transaction: Transaction, setting: Setting, params: dict[str, Any], counting: Counting | None
) -> Counts | None:
    """
    What is in scope, where that is more than is measured whole; else None, and the statement counts for itself.

    A scope of which a vector's row does not say all is measured whole, whatever its size.
    """
    most = setting.scan.exact_up_to
    # Each entry took a position of the log: where the log is short, so is the scope, and nothing need be counted.
    if most is None or setting.position <= most or not setting.scope.shape.is_carried:
        return None
    if setting.view is View.LIVE and counting is not None:
        return counting.of(transaction, setting.scope, setting.position, params["stamp"], most)
    if not are_more_than(transaction, setting.scope.tenant_id, most):
        return None
    transaction.limit(AS_OF_TIMEOUT_MS)
    if counting is not None:
        return counting.of_then(transaction, setting.scope, params, most)
    counts = count_then(transaction, setting.scope, params, most)
    return counts if counts.eligible > most else None


def _floor(transaction: Transaction, setting: Setting) -> tuple[Match, ...]:
    """What the tenant wants given where nothing matched. Of the same snapshot, within the same scope."""
    params = {
        **setting.scope.params(),
        "position": setting.position,
        "seen_at": setting.seen_at,
        "seen_tiers": list(setting.seen_tiers),
        "floor": setting.policy.floor,
    }
    rows = transaction.execute(floor_query(setting.scope.shape, setting.view), params)
    ordered = sorted(rows, key=lambda row: (row["verified_at"] is None, _age(row), row["entry_id"]))
    around = look_around(transaction, setting.scope.tenant_id, setting.view, setting.position, ordered)
    instant = setting.scope.instant
    return tuple(match_of(row, None, (), around.record_of(row), instant) for row in ordered)


def _age(row: Row) -> float:
    return -row["verified_at"].timestamp() if row["verified_at"] else 0.0


def signals_of(mode: Mode, vector: TopicVector) -> tuple[str, ...]:
    """The signals that run: what the mode wants, and of meaning only where there is a vector."""
    wanted = {"hybrid": ("lexical", "semantic"), "words": ("lexical",), "meaning": ("semantic",)}[mode]
    return tuple(signal for signal in wanted if signal == "lexical" or vector.vector is not None)


def parameters(question: Question, setting: Setting, vector: TopicVector) -> dict[str, Any]:
    """Values for the placeholders of the statement of recall."""
    policy = setting.policy
    return {
        **setting.scope.params(),
        "terms": list(question.topic.terms),
        "floor_bp": policy.lexical_floor_bp,
        "alone_floor_bp": policy.lexical_alone_floor_bp,
        "candidates": policy.candidates,
        "vector": vector.vector,
        "stamp": vector.stamp,
        "cutoff": vector.cutoff,
        "titles": vector.titles,
        "position": setting.position,
        "seen_at": setting.seen_at,
        "seen_tiers": list(setting.seen_tiers),
    }


def _matches(
    transaction: Transaction, setting: Setting, ranking: Ranking, limit: int, *, ends: bool
) -> tuple[Match, ...]:
    """The best of what was found, each with what restates it folded in."""
    where = (transaction, setting.scope.tenant_id, setting.view, setting.position)
    around = look_around(*where, ranking.found, meanwhile=ranking.make, ends=ends)
    kept = fold(ranking.ranked, ranking.keys, around) if setting.folds else [(row, ()) for row in ranking.ranked]
    instant = setting.scope.instant
    return tuple(
        match_of(row, ranking.fused_of(row), ranking.rarest_first, around.record_of(row), instant, restated)
        for row, restated in kept[:limit]
    )


_NO_COUNTS = {"eligible": 0, "inapplicable": 0, "embedded": None, "near_misses": 0, "nearest_beyond": None}


def _searched(
    found: Row | None,
    signals: tuple[str, ...],
    vector: TopicVector,
    matches: tuple[Match, ...],
    scope: Scope,
    *,
    is_large: bool,
) -> Searched:
    counts: dict[str, Any] = _NO_COUNTS if found is None else found
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
        excluded=Excluded(counts["inapplicable"], scope.unreadable),
        empty_reason=None if matches else _why_empty(counts, vector, ran=found is not None),
        scan="signatures" if is_large else "exact",
    )


def _why_empty(counts: dict[str, Any], vector: TopicVector, *, ran: bool) -> EmptyReason:
    if ran and counts["eligible"] == 0:
        return "nothing_in_scope"
    if vector.degraded is not None:
        return "semantic_unavailable"
    return "beyond_cutoff" if counts["near_misses"] else "nothing_matched"


def _receipt(
    answer: Answer,
    setting: Setting,
    principal: Principal,
    question: Question,
    as_of: AsOf | None,
    now: datetime,
    took_us: int,
    titles: str | None,
) -> Receipt:
    asked = as_of and {**as_of.as_dict(), "seen_at": setting.seen_at, "seen_tiers": list(setting.seen_tiers)}
    who = {"roles": sorted(principal.roles), "tiers": list(setting.scope.tiers), "as_of": asked, "fold": FOLD_VERSION}
    how = {"scan": setting.scan.as_dict(), "titles": titles}
    return Receipt(
        tenant_id=setting.scope.tenant_id,
        receipt_id=answer.receipt_id,
        position=answer.position,
        instant=answer.instant,
        principal=principal.ref,
        topic=question.topic.text,
        parameters={**question.parameters(), **who, **how},
        searched=answer.searched.as_dict(),
        matches=matches_kept(answer),
        made_at=now,
        took_us=took_us,
    )
