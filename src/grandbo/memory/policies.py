"""
Changing the tenant's policy: one event with the whole policy as it is from there on.

What it may hold is decided here and nowhere else, so that no policy stands in the log that recall could not work with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from pydantic import ValidationError

from grandbo.errors import IllegalTransition, InvalidInput, NotFound, PolicyStale
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import Policy, PolicyChanged, StampInForce
from grandbo.memory.candidate_content import GUIDANCE
from grandbo.memory.commands import Command, run_command
from grandbo.memory.govern import REASON_LIMIT, check_reason
from grandbo.memory.policy import LAST_SCAN, ROLES, require
from grandbo.memory.screening import Screening
from grandbo.memory.tenants import POLICY_IN_FORCE, find_tenant, read_tenant
from grandbo.screening import NOT_REDACTABLE, SIGNALS
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import entries, policies
from grandbo.storage.tenancy import of_tenant
from grandbo.types import KINDS, Clock, Principal, digest_of, new_id, utc_now, utc_text

LONGEST_DAYS = 36_500
MOST_EXACT = 100_000
STAMPS_LIMIT = 4
TIERS_LIMIT = 16
_TIER = re.compile(r"[a-z][a-z0-9_]{0,31}")
_RANGES = {
    "rrf_k": (1, 1_000),
    "rrf_emphasis": (0, 4),
    "exact_up_to": (0, MOST_EXACT),
    "scan": (1, LAST_SCAN),
    "candidates": (1, 200),
    "floor": (0, 3),
    "pending_candidates": (1, 100_000),
}

_POSITION = sa.bindparam("position", type_=sa.BigInteger)
_POLICY_AT = sa.select(policies.c.name, policies.c.policy, policies.c.from_position, policies.c.changed_at).where(
    of_tenant(policies),
    policies.c.from_position <= _POSITION,
    sa.or_(policies.c.to_position.is_(None), policies.c.to_position > _POSITION),
)
_TIERS_IN_USE = sa.select(entries.c.visibility).where(of_tenant(entries)).distinct()


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy, and the position of the event that states it; that position is what a change is decided on."""

    policy: Policy
    position: int
    changed_at: datetime

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "position": self.position,
            "changed_at": utc_text(self.changed_at),
            "policy": self.policy.model_dump(mode="json"),
        }


def show_policy(
    database: Database, tenant_id: UUID, principal: Principal, *, position: int | None = None
) -> PolicyInForce:
    """The policy in force, or the one that was at a position. Raises `NotFound`: the log does not reach it."""
    require(principal, "audit")
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        read_tenant(transaction, tenant_id)
        if position is None:
            return _in_force(transaction.execute(POLICY_IN_FORCE, {"tenant_id": tenant_id})[0])
        found = transaction.execute(_POLICY_AT, {"tenant_id": tenant_id, "position": position})
    if not found:
        raise NotFound("No policy was in force at that position.")
    return _in_force(found[0])


def preview_policy(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    changes: Mapping[str, Any],
    *,
    expected_position: int | None = None,
) -> tuple[PolicyInForce, Policy | None]:
    """
    The policy in force, and what it would become; None where nothing would be other than it is. Nothing is written.

    Raises:
        InvalidInput, PolicyStale, IllegalTransition: as changing it would.
    """
    require(principal, "administer")
    key = {"tenant_id": tenant_id}
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        tenant = read_tenant(transaction, tenant_id)
        rows, tiers = transaction.batch([(POLICY_IN_FORCE, key), (_TIERS_IN_USE, key)])
    current = _in_force(rows[0])
    _check_position(current, expected_position)
    given = _given(changes)
    would = decide_change_policy(tenant.name, current.policy, given, {row["visibility"] for row in tiers}, "")
    return current, would.policy if would else None


def change_policy(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    changes: Mapping[str, Any],
    reason: str,
    *,
    expected_position: int | None = None,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> PolicyInForce:
    """
    Replace the named fields; in `roles`, `expiry_days` and `review_days` the named keys. A field that is null stays as
    it is; a kind whose `expiry_days` are null or 0 does not expire.

    Raises:
        InvalidInput: a field that is none, or a value that it cannot have.
        PolicyStale: the policy is no longer the one of `expected_position`.
        IllegalTransition: a tier would go in which entries stand: nobody would see them any more.
    """
    given = _given(changes)
    said = {"changes": json.loads(_json(given))}
    who = (database, tenant_id, principal)
    return _change(*who, said, lambda _current: given, reason, expected_position, command_id, clock)


def change_stamps(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    asked: Mapping[str, Any],
    decide: Callable[[Sequence[StampInForce]], Sequence[Mapping[str, Any]]],
    reason: str,
    *,
    expected_position: int | None = None,
    command_id: UUID | None = None,
    clock: Clock = utc_now,
) -> PolicyInForce:
    """
    Put other spaces into force: `decide` makes them of those that are; `asked` tells one wish from another.

    Raises:
        PolicyStale, and what `decide` raises; a retry is the first answer again, and decides nothing.
    """
    who = (database, tenant_id, principal)

    def changes(current: Policy) -> Mapping[str, Any]:
        return {"stamps": list(decide(current.stamps))}

    return _change(*who, {"stamps": dict(asked)}, changes, reason, expected_position, command_id, clock)


def adopt_stamp(
    database: Database, tenant_id: UUID, principal: Principal, stamp: StampInForce, command_id: UUID, clock: Clock
) -> PolicyInForce:
    """
    Let recall use a space in which every entry has its vectors; the newest comes first.

    For the worker, on whose completion the change of a model waits; nobody's credential calls this.
    """

    def decide(name: str, current: PolicyInForce, _in_use: Collection[str]) -> PolicyChanged | None:
        before = current.policy.stamps
        if any(known.stamp == stamp.stamp for known in before):
            return None
        policy = current.policy.model_copy(update={"stamps": (stamp, *before)[:STAMPS_LIMIT]})
        reason = "Every entry has its vectors in this space."
        return PolicyChanged(name=name, policy=policy, changed=("stamps",), reason=reason)

    context = CommandContext(tenant_id, principal, command_id, digest_of(stamp.stamp))
    return _run(database, context, decide, clock)


def decide_change_policy(
    name: str, before: Policy, given: Mapping[str, Any], in_use: Collection[str], reason: str
) -> PolicyChanged | None:
    """The event, or None where nothing would be other than it is. Pure."""
    known = tuple(Policy.model_fields)
    unknown = sorted(set(given) - set(known))
    if unknown or not given:
        raise InvalidInput(f"{unknown[0][:100] if unknown else 'changes'}: name some of {', '.join(known)}.")
    document = before.model_dump(mode="json")
    for field, value in given.items():
        is_merged = isinstance(document[field], dict) and isinstance(value, dict)
        document[field] = {**document[field], **value} if is_merged else value
        if field == "expiry_days" and is_merged:
            document[field] = {kind: 0 if days is None else days for kind, days in document[field].items()}
    try:
        after = Policy.model_validate_json(_json(document))
    except ValidationError as error:
        field = str(error.errors(include_input=False)[0]["loc"][0])
        raise InvalidInput(f"{field}: it cannot have this value.", field=field) from None
    _check(after)
    gone = sorted(set(before.tiers) - set(after.tiers))
    if stranded := [tier for tier in gone if tier in in_use]:
        raise IllegalTransition(
            f"Entries stand in the tier {stranded[0]}; reclassify them before it goes.", entry_status="published"
        )
    changed = tuple(field for field in known if getattr(before, field) != getattr(after, field))
    return PolicyChanged(name=name, policy=after, changed=changed, reason=reason) if changed else None


def _change(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    said: Mapping[str, Any],
    changes: Callable[[Policy], Mapping[str, Any]],
    reason: str,
    expected_position: int | None,
    command_id: UUID | None,
    clock: Clock,
) -> PolicyInForce:
    require(principal, "administer")
    check_reason(reason)
    screening = Screening(database, tenant_id, find_tenant(database, str(tenant_id)).policy)
    why = screening.reason(reason, limit=REASON_LIMIT)

    def decide(name: str, current: PolicyInForce, in_use: Collection[str]) -> PolicyChanged | None:
        _check_position(current, expected_position)
        return decide_change_policy(name, current.policy, changes(current.policy), in_use, why)

    digest = screening.digest({**said, "reason": reason})
    context = CommandContext(tenant_id, principal, command_id or new_id(), digest)
    return _run(database, context, decide, clock)


def _given(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in changes.items() if value is not None}


def _check_position(current: PolicyInForce, expected: int | None) -> None:
    if expected is not None and expected != current.position:
        raise PolicyStale(expected_position=expected, position=current.position)


def _json(document: Mapping[str, Any]) -> str:
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidInput("changes: they must be plain JSON values.", field="changes") from None


def _check(policy: Policy) -> None:
    tiers = policy.tiers
    if not 1 <= len(tiers) <= TIERS_LIMIT or len(set(tiers)) < len(tiers) or not all(map(_TIER.fullmatch, tiers)):
        raise _refused("tiers", f"1 to {TIERS_LIMIT} names of lower-case letters, digits and underscores, each once")
    for role, seen in policy.roles.items():
        if role not in ROLES:
            raise _refused("roles", f"the roles are {', '.join(ROLES)}")
        if not set(seen) <= set(tiers):
            raise _refused("roles", f"what {role} sees must be among the tiers")
    if policy.default_visibility not in tiers:
        raise _refused("default_visibility", "it must be one of the tiers")
    if set(policy.expiry_days) != set(KINDS) or max(policy.expiry_days.values()) > LONGEST_DAYS:
        raise _refused("expiry_days", f"1 to {LONGEST_DAYS} days for some of {', '.join(KINDS)}")
    if endless := [kind for kind, days in policy.expiry_days.items() if days == 0 and kind not in GUIDANCE]:
        raise _refused("expiry_days", f"{endless[0]} must expire; 0, never, is for {', '.join(sorted(GUIDANCE))}")
    if set(policy.review_days) != set(KINDS) or max(policy.review_days.values()) > LONGEST_DAYS:
        raise _refused("review_days", f"1 to {LONGEST_DAYS} days for some of {', '.join(KINDS)}")
    if not set(policy.second_approval_tiers) <= set(tiers):
        raise _refused("second_approval_tiers", "they must be among the tiers")
    if not set(policy.second_approval_kinds) <= set(KINDS):
        raise _refused("second_approval_kinds", f"some of {', '.join(KINDS)}")
    for field, (least, most) in _RANGES.items():
        if not least <= getattr(policy, field) <= most:
            raise _refused(field, f"{least} to {most}")
    if set(policy.screening) != set(SIGNALS):
        raise _refused("screening", f"refuse, redact, quarantine or flag for some of {', '.join(SIGNALS)}")
    if any(policy.screening[signal] == "redact" for signal in NOT_REDACTABLE):
        raise _refused("screening", f"{', '.join(NOT_REDACTABLE)} cannot be redacted")
    if not set(policy.people.shared_with) <= set(ROLES):
        raise _refused("people", f"shared_with: some of {', '.join(ROLES)}")
    names = [item.stamp for item in policy.stamps]
    if len(names) > STAMPS_LIMIT or len(set(names)) < len(names):
        raise _refused("stamps", f"at most {STAMPS_LIMIT}, each once, the newest first")


def _refused(field: str, wanted: str) -> InvalidInput:
    return InvalidInput(f"{field}: {wanted}.", field=field)


def _run(
    database: Database,
    context: CommandContext,
    decide: Callable[[str, PolicyInForce, Collection[str]], PolicyChanged | None],
    clock: Clock,
) -> PolicyInForce:
    tenant_id = context.tenant_id
    key = {"tenant_id": tenant_id}
    seen: list[PolicyInForce] = []

    def decided(found: list[list[Row]], _now: datetime) -> list[Event]:
        current = _in_force(found[0][0])
        seen[:] = [current]
        body = decide(found[0][0]["name"], current, {row["visibility"] for row in found[1]})
        return [] if body is None else [Event(tenant_id, body)]

    command = Command(context, [(POLICY_IN_FORCE, key), (_TIERS_IN_USE, key)], decided)
    appended = run_command(database, command, clock=clock)
    if not appended.events:
        return seen[0]
    event = appended.events[0]
    assert isinstance(event.data, PolicyChanged)
    return PolicyInForce(event.data.policy, event.position, event.header.recorded_at)


def _in_force(row: Row) -> PolicyInForce:
    return PolicyInForce(Policy.model_validate(row["policy"]), row["from_position"], row["changed_at"])
