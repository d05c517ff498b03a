"""Reading candidates: the queue, and one with all that a reviewer needs to decide."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.models import Policy
from grandbo.memory import candidacy
from grandbo.memory.candidacy import CANDIDATE_STATUSES, CandidateState
from grandbo.memory.candidate_content import shown_content
from grandbo.memory.candidate_rows import CANDIDATE, QUEUED, deciders_wanted, is_seen
from grandbo.memory.policy import may, require, visible_tiers
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.types import KINDS, Principal, utc_text

DEFAULT_PAGE = 50
MAX_PAGE = 500
_CURSOR = re.compile(r"(\d{1,3})-(\d{1,18})")

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
_status = sa.bindparam("status", type_=sa.Text)
_kind = sa.bindparam("kind", type_=sa.Text)
_proposer = sa.bindparam("proposer", type_=sa.Text)
_risk = sa.bindparam("after_risk", type_=sa.Integer)
_position = sa.bindparam("after_position", type_=sa.BigInteger)
# What a mistake in would cost most comes first, and of these what has waited longest.
_QUEUE = (
    QUEUED.where(
        candidates.c.status == _status,
        sa.or_(_kind.is_(None), candidates.c.kind == _kind),
        sa.or_(_proposer.is_(None), candidates.c.proposed_by == _proposer),
        sa.or_(
            _risk.is_(None),
            candidates.c.risk < _risk,
            sa.and_(candidates.c.risk == _risk, candidates.c.position > _position),
        ),
    )
    .order_by(candidates.c.risk.desc(), candidates.c.position)
    .limit(sa.bindparam("page", type_=sa.Integer))
)
# Live entries that say the same, or come of the same incident.
_RELATED = (
    sa.select(
        entries.c.entry_id,
        entries.c.title,
        entries.c.revision,
        (entries.c.claim_digest == sa.bindparam("claim_digest", type_=sa.LargeBinary)).label("same_text"),
    )
    .where(
        of_tenant(entries),
        entries.c.visibility == sa.any_(_tiers),
        entries.c.status == "published",
        sa.or_(
            entries.c.claim_digest == sa.bindparam("claim_digest", type_=sa.LargeBinary),
            sa.and_(
                entries.c.incident_source == sa.bindparam("incident_source", type_=sa.Text),
                entries.c.incident_id == sa.bindparam("incident_id", type_=sa.Text),
            ),
        ),
    )
    .order_by(entries.c.position)
    .limit(20)
)


def list_candidates(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    *,
    status: str = "pending",
    kind: str | None = None,
    mine: bool = False,
    limit: int | None = None,
    after: tuple[int, int] | None = None,
) -> list[dict[str, Any]]:
    """
    A page of candidates, the riskiest and then the oldest first, without their texts.

    Who may only propose sees his own; who may govern sees those within his tiers. What is personal is seen by whose it
    is, and by who administers where nobody of its own could decide on it.

    Args:
        after: `(risk, position)` of the last one of the page before.
    """
    _require_some_business(principal)
    if status not in CANDIDATE_STATUSES:
        raise InvalidInput(f"status: it must be one of {', '.join(CANDIDATE_STATUSES)}.", field="status")
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"kind: it must be one of {', '.join(KINDS)}.", field="kind")
    limit = DEFAULT_PAGE if limit is None else limit
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_PAGE}.", field="limit")
    params = {
        "tenant_id": tenant_id,
        "tiers": _readable(principal, policy),
        "own": principal.ref,
        "deciders": deciders_wanted(policy, principal),
        "status": status,
        "kind": kind,
        "proposer": principal.ref if mine else None,
        "after_risk": after[0] if after else None,
        "after_position": after[1] if after else None,
        "page": limit,
    }
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return [_summary(row) for row in transaction.execute(_QUEUE, params)]


def cursor_behind(found: Sequence[Mapping[str, Any]], limit: int | None) -> str | None:
    """What leads to the page behind this one; None where it is not full, and so the last."""
    if not found or len(found) < (limit or DEFAULT_PAGE):
        return None
    return f"{found[-1]['risk']}-{found[-1]['position']}"


def read_cursor(given: str | None) -> tuple[int, int] | None:
    """The `after` of a page, from what the page before gave; raises `InvalidInput`."""
    if given is None:
        return None
    match = _CURSOR.fullmatch(given)
    if match is None:
        raise InvalidInput("after: it must be the `next` of the page before.", field="after")
    return int(match[1]), int(match[2])


def show_candidate(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, candidate_id: UUID
) -> dict[str, Any]:
    """
    One candidate with its text, its evidence, its flags, and the live entries of the same text or incident.

    Raises `NotFound`, for one that is not the caller's to see too.
    """
    _require_some_business(principal)
    tiers = _readable(principal, policy)
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        rows = transaction.execute(CANDIDATE, {"tenant_id": tenant_id, "candidate_id": candidate_id})
        if not rows or not is_seen(rows[0], principal, tiers, deciders_wanted(policy, principal)):
            raise NotFound("There is no such candidate in this tenant.")
        key = {name: rows[0][name] for name in ("claim_digest", "incident_source", "incident_id")}
        related = transaction.execute(_RELATED, {"tenant_id": tenant_id, "tiers": tiers, **key})
    state = CandidateState.of_row(rows[0])
    return _summary(rows[0]) | {
        "content": shown_content(state.content),
        "may_decide": candidacy.may_decide(state, principal),
        "proposal_reason": rows[0]["proposal_reason"],
        "related": [
            {
                "entry_id": str(row["entry_id"]),
                "revision": row["revision"],
                "title": row["title"],
                "same_text": row["same_text"],
            }
            for row in related
        ],
    }


def _require_some_business(principal: Principal) -> None:
    """Whoever proposes has; and a person for whom things are remembered, with what is proposed about that person."""
    if not (principal.own_tiers and may(principal, "recall")):
        require(principal, "propose")


def _readable(principal: Principal, policy: Policy) -> list[str]:
    sees_all = may(principal, "govern") or may(principal, "audit")
    return list(visible_tiers(policy, principal) if sees_all else principal.own_tiers)


def _summary(row: Row) -> dict[str, Any]:
    return {
        "candidate_id": str(row["candidate_id"]),
        "version": row["version"],
        "position": row["position"],
        "status": row["status"],
        "kind": row["kind"],
        "title": row["title"],
        "visibility": row["visibility"],
        "flags": row["flags"],
        "risk": row["risk"],
        "into": str(row["into_entry"]) if row["into_entry"] else None,
        "disputes": str(row["disputes"]) if row["disputes"] else None,
        "subject_id": str(row["subject_id"]) if row["subject_id"] else None,
        "author_type": row["author_type"],
        "proposed_by": row["proposed_by"],
        "proposed_at": utc_text(row["proposed_at"]),
        "changed_at": utc_text(row["changed_at"]),
        "approved_by": row["approved_by"],
        "decided_by": row["decided_by"],
        "decision_reason": row["decision_reason"],
        "outcome": row["outcome"],
        "entry_id": str(row["entry_id"]) if row["entry_id"] else None,
        "entry_revision": row["entry_revision"],
    }
