"""
Subscriptions: who outside is told of events, where, and under which tiers. Operational, not in the log.

What is sent is signed with the subscription's own secret, so it is kept, walled in; it is shown once, when it is made
or changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

import sqlalchemy as sa

from grandbo.errors import InvalidInput, NotFound
from grandbo.events.models import Policy
from grandbo.events.registry import EVENT_TYPES
from grandbo.events.verify import head_position
from grandbo.hooks import signatures
from grandbo.memory.policy import visible_tiers
from grandbo.screening.destinations import check_destination
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import heads, subscriptions
from grandbo.storage.tenancy import TENANT, of_tenant
from grandbo.text import check_text
from grandbo.types import Clock, Principal, new_id, utc_now, utc_text

SubscriptionState = Literal["active", "paused", "dead"]
STATES: tuple[SubscriptionState, ...] = get_args(SubscriptionState)
SCHEME = "standard-webhooks"
NAME_LIMIT = 100
MOST = 50
# A vector that arrives changes nothing that a reader would see.
TOLD_TYPES = tuple(
    name for name in EVENT_TYPES if name.startswith(("entry_", "candidate_")) and name != "entry_embedded"
)
_NONE_SUCH = "This tenant has no such subscription; `grandbo subscription list` names those it has."

_Time = sa.DateTime(timezone=True)
_which = sa.bindparam("which", type_=sa.Uuid)
_is_it = sa.and_(of_tenant(subscriptions), subscriptions.c.subscription_id == _which)
_now = sa.bindparam("now", type_=_Time)
_ADD = sa.insert(subscriptions).values(
    {column.name: sa.bindparam(column.name) for column in subscriptions.c if column.name != "tenant_id"}
    | {"tenant_id": TENANT}
)
_head = sa.select(heads.c.position).where(of_tenant(heads)).scalar_subquery().label("head")
_ALL = (
    sa.select(subscriptions, _head)
    .where(of_tenant(subscriptions))
    .order_by(subscriptions.c.created_at, subscriptions.c.subscription_id)
)
_ONE = sa.select(subscriptions, _head).where(_is_it)
# Whoever is telling it right now loses the claim with each of these, and stops before the next event.
_let_go: dict[str, Any] = {"claim": None, "claimed_until": None}
_ROTATE = (
    sa.update(subscriptions)
    .where(_is_it)
    .values(
        previous_secret=sa.case((sa.bindparam("keep", type_=sa.Boolean), subscriptions.c.secret), else_=None),
        secret=sa.bindparam("new_secret", type_=sa.LargeBinary),
        rotated_at=_now,
        **_let_go,
    )
    .returning(subscriptions.c.subscription_id)
)
_afresh: dict[str, Any] = {
    **_let_go,
    "state": "active",
    "attempts": 0,
    "next_attempt_at": _now,
    "error_code": None,
    "note": "",
}
_PAUSE = (
    sa.update(subscriptions).where(_is_it).values(state="paused", **_let_go).returning(subscriptions.c.subscription_id)
)
_RESUME = sa.update(subscriptions).where(_is_it).values(**_afresh).returning(subscriptions.c.subscription_id)
_REPLAY = (
    sa.update(subscriptions)
    .where(_is_it)
    .values(position=sa.bindparam("behind", type_=sa.BigInteger), **_afresh)
    .returning(subscriptions.c.subscription_id)
)
_REMOVE = sa.delete(subscriptions).where(_is_it).returning(subscriptions.c.subscription_id)
_COUNTS = sa.select(
    *(sa.func.count().filter(subscriptions.c.state == state).label(state) for state in STATES),
    sa.func.coalesce(sa.func.max(_head - subscriptions.c.position).filter(subscriptions.c.state != "paused"), 0).label(
        "behind"
    ),
).where(of_tenant(subscriptions))


@dataclass(frozen=True, slots=True)
class Subscription:
    """
    A subscription without its secrets.

    Attributes:
        event_types: which events it is told of.
        tiers: it is told of what stands in these, and of nothing else.
        position: everything up to here has been told, or was not for it.
        head: the tenant's last position.
        error_code: of the last attempt, where it failed.
    """

    tenant_id: UUID
    subscription_id: UUID
    name: str
    url: str
    event_types: tuple[str, ...]
    tiers: tuple[str, ...]
    created_by: str
    created_at: datetime
    rotated_at: datetime | None
    has_previous_secret: bool
    state: SubscriptionState
    position: int
    head: int
    attempts: int
    next_attempt_at: datetime
    error_code: str | None
    note: str
    delivered_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "subscription_id": str(self.subscription_id),
            "name": self.name,
            "url": self.url,
            "event_types": list(self.event_types),
            "tiers": list(self.tiers),
            "state": self.state,
            "position": self.position,
            "behind": max(self.head - self.position, 0),
            "attempts": self.attempts,
            "next_attempt_at": utc_text(self.next_attempt_at) if self.attempts and self.state == "active" else None,
            "error_code": self.error_code,
            "note": self.note,
            "delivered_at": utc_text(self.delivered_at) if self.delivered_at else None,
            "created_by": self.created_by,
            "created_at": utc_text(self.created_at),
            "rotated_at": utc_text(self.rotated_at) if self.rotated_at else None,
            "has_previous_secret": self.has_previous_secret,
        }


def create_subscription(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    url: str,
    name: str,
    *,
    event_types: Sequence[str] | None = None,
    tiers: Sequence[str] | None = None,
    start: int | None = None,
    secret: str | None = None,
    allow_internal: bool = False,
    clock: Clock = utc_now,
) -> tuple[Subscription, str]:
    """
    Make a subscription; its secret is given this once.

    Args:
        event_types: else all of entries and candidates, except that a vector arrived.
        tiers: what it may learn of; the tenant's default tier unless given, and never more than the maker sees.
        start: the first position that is told; what comes from now on unless given.
        allow_internal: whether it may lead into one's own network.

    Raises:
        InvalidInput: an address that leads inside, a type, tier or secret that is none, a name that is blank.
    """
    if not name.strip():
        raise InvalidInput("name: it must not be blank.", field="name")
    check_text(name, "name", limit=NAME_LIMIT, single_line=True)
    check_destination(url, allow_internal=allow_internal)
    given = _secret(secret)
    now = clock()
    row: dict[str, Any] = {
        "tenant_id": tenant_id,
        "subscription_id": new_id(),
        "name": name,
        "url": url,
        "event_types": _types(event_types),
        "tiers": _tiers(policy, principal, tiers),
        "secret": given.encode(),
        "previous_secret": None,
        "rotated_at": None,
        "created_by": principal.ref,
        "created_at": now,
        "state": "active",
        "position": _behind(database, tenant_id, start),
        "attempts": 0,
        "next_attempt_at": now,
        "error_code": None,
        "note": "",
        "delivered_at": None,
        "claim": None,
        "claimed_until": None,
    }
    if len(list_subscriptions(database, tenant_id)) >= MOST:
        raise InvalidInput(f"A tenant has at most {MOST} subscriptions; remove one first.", field="name")
    with database.transaction("writer", tenant_id) as transaction:
        transaction.execute(_ADD, row)
    return read_subscription(database, tenant_id, row["subscription_id"])[0], given


def list_subscriptions(database: Database, tenant_id: UUID) -> list[Subscription]:
    """The tenant's subscriptions, oldest first."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return [_subscription(row) for row in transaction.execute(_ALL, {"tenant_id": tenant_id})]


def read_subscription(database: Database, tenant_id: UUID, subscription_id: UUID) -> tuple[Subscription, list[str]]:
    """A subscription, and the secrets that it is signed with now, the newest first; raises `NotFound`."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        rows = transaction.execute(_ONE, {"tenant_id": tenant_id, "which": subscription_id})
    if not rows:
        raise NotFound(_NONE_SUCH)
    return _subscription(rows[0]), held_secrets(rows[0])


def rotate_subscription(
    database: Database,
    tenant_id: UUID,
    subscription_id: UUID,
    *,
    secret: str | None = None,
    keep_previous: bool = True,
    clock: Clock = utc_now,
) -> tuple[Subscription, str]:
    """
    Give it a new secret. While the one before is kept, each delivery is signed with both.

    Raises:
        NotFound, InvalidInput.
    """
    given = _secret(secret)
    params = {"new_secret": given.encode(), "keep": keep_previous, "now": clock()}
    return _changed(database, tenant_id, subscription_id, _ROTATE, params), given


def pause_subscription(database: Database, tenant_id: UUID, subscription_id: UUID) -> Subscription:
    """Tell it nothing until it is resumed; then it goes on where it stood. Raises `NotFound`."""
    return _changed(database, tenant_id, subscription_id, _PAUSE, {})


def resume_subscription(
    database: Database, tenant_id: UUID, subscription_id: UUID, *, clock: Clock = utc_now
) -> Subscription:
    """Go on where it stands, one that was given up too. Raises `NotFound`."""
    return _changed(database, tenant_id, subscription_id, _RESUME, {"now": clock()})


def replay_subscription(
    database: Database, tenant_id: UUID, subscription_id: UUID, start: int, *, clock: Clock = utc_now
) -> Subscription:
    """
    Tell it everything from this position on, again; or pass over what it cannot take.

    Raises:
        NotFound. InvalidInput: a position that is not there yet.
    """
    behind = _behind(database, tenant_id, start)
    return _changed(database, tenant_id, subscription_id, _REPLAY, {"behind": behind, "now": clock()})


def remove_subscription(database: Database, tenant_id: UUID, subscription_id: UUID) -> None:
    """Take it away with its secrets. Raises `NotFound`."""
    with database.transaction("writer", tenant_id) as transaction:
        if not transaction.execute(_REMOVE, {"tenant_id": tenant_id, "which": subscription_id}):
            raise NotFound(_NONE_SUCH)


def count_subscriptions(database: Database, tenant_id: UUID) -> dict[str, int]:
    """How many are in which state, and how many positions the last of those that are not paused is behind."""
    with database.transaction("writer", tenant_id, read_only=True) as transaction:
        return dict(transaction.execute(_COUNTS, {"tenant_id": tenant_id})[0])


def held_secrets(row: Row) -> list[str]:
    """The secrets of a row, the newest first."""
    return [bytes(row[name]).decode() for name in ("secret", "previous_secret") if row[name] is not None]


def _changed(
    database: Database, tenant_id: UUID, subscription_id: UUID, change: sa.Executable, params: Mapping[str, Any]
) -> Subscription:
    key = {"tenant_id": tenant_id, "which": subscription_id}
    with database.transaction("writer", tenant_id) as transaction:
        if not transaction.execute(change, {**key, **params}):
            raise NotFound(_NONE_SUCH)
        return _subscription(transaction.execute(_ONE, key)[0])


def _types(given: Sequence[str] | None) -> list[str]:
    for name in given or ():
        if name not in TOLD_TYPES and name != "entry_embedded":
            raise InvalidInput(f"event_types: each must be one of {', '.join(TOLD_TYPES)}.", field="event_types")
    return list(dict.fromkeys(given)) if given else list(TOLD_TYPES)


def _tiers(policy: Policy, principal: Principal, given: Sequence[str] | None) -> list[str]:
    own = visible_tiers(policy, principal)
    wanted = list(dict.fromkeys(given)) if given else [policy.default_visibility]
    for tier in wanted:
        if tier not in own:
            raise InvalidInput(f"tiers: each must be one that you see: {', '.join(own)}.", field="tiers")
    return wanted


def _behind(database: Database, tenant_id: UUID, start: int | None) -> int:
    head = head_position(database, tenant_id)
    if start is None:
        return head
    if not 1 <= start <= head + 1:
        raise InvalidInput(f"from: it is a position from 1 to {head + 1}, the next one.", field="from")
    return start - 1


def _secret(given: str | None) -> str:
    if given is None:
        return signatures.new_secret(SCHEME)
    if not signatures.is_secret(SCHEME, given):
        raise InvalidInput("secret: it must be `whsec_` and base64 of 16 to 64 bytes.", field="secret")
    return given


def _subscription(row: Row) -> Subscription:
    same = {name: row[name] for name in Subscription.__slots__ if name != "has_previous_secret"}
    same |= {name: tuple(row[name]) for name in ("event_types", "tiers")}
    return Subscription(**same, has_previous_secret=row["previous_secret"] is not None)
