"""The verbs that tell the outside what happens in a tenant. `TenantMemory` is one of these."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import structlog

from grandbo.memory import subscriptions
from grandbo.memory.policy import require
from grandbo.memory.subscriptions import Subscription
from grandbo.types import new_id, utc_text
from grandbo.verbs import Verbs
from grandbo.workers.delivering import Told, deliver
from grandbo.workers.sending import Sender

log = structlog.get_logger(__name__)
TESTED = "subscription_tested"


class Subscribing(Verbs):
    """Making subscriptions, and looking after them."""

    def create_subscription(self, url: str, name: str, **options: Any) -> tuple[Subscription, str]:
        """
        Have events sent to a URL; gives the subscription with its secret, this once.

        Options: `event_types` (else all of entries and candidates), `tiers` (else the tenant's default tier), `start`
        (the first position that is told; else what comes from now on), `secret` (`whsec_…`; else one is made).

        Raises:
            DestinationRefused, InvalidInput.
        """
        require(self.principal, "administer")
        made = subscriptions.create_subscription(
            self._database,
            self.tenant.tenant_id,
            self.principal,
            self._policy_now(),
            url,
            name,
            allow_internal=self._settings.send_internal,
            clock=self._clock(),
            **options,
        )
        self._noted("subscription_created", made[0].subscription_id)
        self._changed()
        return made

    def subscriptions(self) -> list[Subscription]:
        """The tenant's subscriptions, oldest first, without their secrets."""
        require(self.principal, "administer")
        return subscriptions.list_subscriptions(self._database, self.tenant.tenant_id)

    def rotate_subscription(
        self, subscription_id: UUID, *, secret: str | None = None, keep_previous: bool = True
    ) -> tuple[Subscription, str]:
        """Give it a new secret; until the next rotation it signs with the one before too, unless that is not kept."""
        require(self.principal, "administer")
        rotated = subscriptions.rotate_subscription(
            self._database,
            self.tenant.tenant_id,
            subscription_id,
            secret=secret,
            keep_previous=keep_previous,
            clock=self._clock(),
        )
        self._noted("subscription_rotated", subscription_id)
        return rotated

    def pause_subscription(self, subscription_id: UUID) -> Subscription:
        """Tell it nothing until it is resumed. Raises `NotFound`."""
        require(self.principal, "administer")
        return subscriptions.pause_subscription(self._database, self.tenant.tenant_id, subscription_id)

    def resume_subscription(self, subscription_id: UUID) -> Subscription:
        """Go on where it stands, one that was given up too. Raises `NotFound`."""
        require(self.principal, "administer")
        resumed = subscriptions.resume_subscription(
            self._database, self.tenant.tenant_id, subscription_id, clock=self._clock()
        )
        self._changed()
        return resumed

    def replay_subscription(self, subscription_id: UUID, start: int) -> Subscription:
        """Tell it everything from this position on, again; or pass over what it cannot take. Raises `NotFound`."""
        require(self.principal, "administer")
        replayed = subscriptions.replay_subscription(
            self._database, self.tenant.tenant_id, subscription_id, start, clock=self._clock()
        )
        self._changed()
        return replayed

    def remove_subscription(self, subscription_id: UUID) -> None:
        """Take it away with its secrets. Raises `NotFound`."""
        require(self.principal, "administer")
        subscriptions.remove_subscription(self._database, self.tenant.tenant_id, subscription_id)
        self._noted("subscription_removed", subscription_id)

    def test_subscription(self, subscription_id: UUID) -> dict[str, Any]:
        """Send it an event that is none, `subscription_tested`; its place stays. Raises `NotFound`."""
        require(self.principal, "administer")
        tenant_id = self.tenant.tenant_id
        found, secrets = subscriptions.read_subscription(self._database, tenant_id, subscription_id)
        now = self._clock()()
        data = {"tenant_id": str(tenant_id), "subscription_id": str(subscription_id)}
        payload = {"type": TESTED, "timestamp": utc_text(now), "data": data}
        answer = self._sender().send(found.url, payload, f"msg_{new_id().hex}_test", secrets, now)
        return {
            "subscription_id": str(subscription_id),
            "ok": answer.code is None,
            "status": answer.status,
            "error_code": answer.code,
            "note": answer.why,
        }

    def deliver_events(self) -> Told:
        """Tell what is due now, as the worker does."""
        require(self.principal, "administer")
        total = Told()
        while (told := deliver(self._database, self.tenant.tenant_id, self._sender(), clock=self._clock())) is not None:
            total.delivered += told.delivered
            total.failed += told.failed
        return total

    def _sender(self) -> Sender:
        return Sender(allow_internal=self._settings.send_internal)

    def _noted(self, event: str, subscription_id: UUID) -> None:
        log.info(event, tenant_id=str(self.tenant.tenant_id), subscription_id=str(subscription_id))
