"""The tenant's policy: its defaults, and what a role lets a principal do and see. Default deny."""

from __future__ import annotations

from typing import Literal

from grandbo.errors import Forbidden, InvalidInput
from grandbo.events.models import PeoplePolicy, Policy
from grandbo.screening import Outcome, Signal
from grandbo.types import KINDS, Principal

Act = Literal["record", "recall", "propose", "remember", "govern", "audit", "administer"]
WRITING_ACTS: frozenset[Act] = frozenset({"record", "propose", "remember", "govern", "administer"})

TIERS = ("team", "operations", "tech", "admin")
ROLE_TIERS: dict[str, tuple[str, ...]] = {
    "admin": TIERS,
    "auditor": TIERS,
    "reviewer": ("team", "operations", "tech"),
    "investigator": ("team", "operations", "tech"),
    "companion": ("team", "operations", "tech"),
    "hook": ("team", "operations", "tech"),
}
# What a role may do is the product's; what it may see is the tenant's, in its policy.
ROLE_ACTS: dict[str, frozenset[Act]] = {
    "admin": frozenset({"record", "recall", "propose", "remember", "govern", "audit", "administer"}),
    "auditor": frozenset({"recall", "audit"}),
    "reviewer": frozenset({"record", "recall", "propose", "remember", "govern", "audit"}),
    "investigator": frozenset({"recall", "propose"}),
    # Works for one person: asks, and has things about that person and its workspaces remembered.
    "companion": frozenset({"recall", "remember"}),
    "hook": frozenset({"record", "propose"}),
}
ROLES = tuple(ROLE_ACTS)

DEFAULT_SCREENING: dict[Signal, Outcome] = {
    "secrets": "redact",
    "instructions": "quarantine",
    "smuggled": "quarantine",
    "hidden": "redact",
    "entropy": "quarantine",
    "personal": "flag",
    "hosts": "flag",
    "mixed_script": "flag",
    "size": "flag",
}

# The sets of numbers by which a large scope is scanned go from 1 to this one; they stand in `recall/scan.py`.
LAST_SCAN = 2

DEFAULT_POLICY = Policy(
    tiers=TIERS,
    roles=ROLE_TIERS,
    default_visibility="team",
    # What is maintained is kept by review, and does not end by itself.
    expiry_days={**dict.fromkeys(KINDS, 90), "runbook": 0, "reference": 0},
    review_days=dict.fromkeys(KINDS, 90),
    rrf_k=60,
    rrf_emphasis=2,
    exact_up_to=2_500,
    scan=LAST_SCAN,
    candidates=25,
    lexical_floor_bp=200,
    lexical_alone_floor_bp=5_000,
    stamps=(),
    floor=0,
    second_approval_kinds=(),
    second_approval_tiers=(),
    pending_candidates=200,
    screening=dict(DEFAULT_SCREENING.items()),
    people=PeoplePolicy(
        quota=200,
        per_answer=5,
        shared_with=(),
        second_person=False,
        workspace_unconfirmed=False,
        episodes=False,
    ),
)


def may(principal: Principal, act: Act) -> bool:
    """Whether one of the principal's roles may do this, with this credential."""
    if principal.read_only and act in WRITING_ACTS:
        return False
    return any(act in ROLE_ACTS.get(role, frozenset()) for role in principal.roles)


def require(principal: Principal, act: Act) -> None:
    """Raise `Forbidden` unless one of the principal's roles may do this."""
    if act in WRITING_ACTS:
        require_writing(principal)
    if not may(principal, act):
        able = ", ".join(role for role in ROLES if act in ROLE_ACTS[role])
        raise Forbidden(f"To {act} needs one of the roles {able}.")


def require_some(principal: Principal) -> None:
    """Raise `Forbidden` for a principal without any role that exists."""
    if not principal.roles & ROLE_ACTS.keys():
        raise Forbidden(f"The credential carries none of the roles {', '.join(ROLES)}.")


def require_writing(principal: Principal) -> None:
    """Raise `Forbidden` for a credential that is for reading alone; for writes that need no writing act."""
    if principal.read_only:
        raise Forbidden("This credential only reads; whoever administers keys can make one that may write.")


def check_grant(policy: Policy, granter: Principal, roles: frozenset[str]) -> None:
    """Raise `Forbidden` where the roles may do, or see, what the granter may not."""
    own_tiers = visible_tiers(policy, granter)
    for role in sorted(roles):
        acts_beyond = [act for act in ROLE_ACTS[role] if not may(granter, act)]
        if acts_beyond or not set(policy.roles.get(role, ())) <= set(own_tiers):
            raise Forbidden(f"role: {role} may do or see what you may not, so it is not yours to grant.", field="role")


def visible_tiers(policy: Policy, principal: Principal) -> tuple[str, ...]:
    """
    Tiers that the principal's roles see, in the tenant's order; a role the policy does not know sees nothing. Behind
    them those of its own subjects, where they were asked for.
    """
    seen = {tier for role in principal.roles for tier in policy.roles.get(role, ())}
    return (*(tier for tier in policy.tiers if tier in seen), *principal.own_tiers)


def check_visibility(policy: Policy, principal: Principal, wanted: str | None) -> str:
    """The visibility to store: the tenant's default, or one of the writer's own tiers."""
    visibility = policy.default_visibility if wanted is None else wanted
    if visibility not in policy.tiers:
        raise InvalidInput(f"visibility: must be one of {', '.join(policy.tiers)}.", field="visibility")
    if visibility not in visible_tiers(policy, principal):
        raise Forbidden(f"visibility: your roles do not see the tier {visibility}, so they may not write to it.")
    return visibility


def check_roles(roles: tuple[str, ...]) -> frozenset[str]:
    """Refuse a role that does not exist; a key with a mistyped role would silently see nothing."""
    for role in roles:
        if role not in ROLES:
            raise InvalidInput(f"role: must be one of {', '.join(ROLES)}.", field="role")
    if not roles:
        raise InvalidInput(f"role: give at least one of {', '.join(ROLES)}.", field="role")
    return frozenset(roles)
