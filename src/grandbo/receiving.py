"""The verbs that keep the hooks of a tenant and its inbox. `TenantMemory` is one of these."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import structlog

from grandbo.errors import InvalidInput
from grandbo.hooks import signatures
from grandbo.hooks.drafts import Draft, Ignored, Unmappable
from grandbo.hooks.samples import sample_of
from grandbo.memory import hooks, inbox, incident_records
from grandbo.memory.hooks import Hook
from grandbo.memory.incidents import document_of_incident, fold, has_cause, is_closed
from grandbo.memory.policy import require
from grandbo.types import new_id, utc_text
from grandbo.verbs import Verbs
from grandbo.workers.mapping import MappedCounts, drafts_of, map_deliveries

log = structlog.get_logger(__name__)


class Receiving(Verbs):
    """Making hooks, and looking after what they deliver."""

    def create_hook(self, source: str, name: str, **options: Any) -> tuple[Hook, str]:
        """
        Make a hook; gives it with its secret, this once.

        Options: `direct` (what has a cause is recorded without a person), `takes_private` (what is restricted at the
        source is remembered in the highest tier, and not refused), `secret` (where the tool makes it).
        """
        require(self.principal, "administer")
        made, secret = hooks.create_hook(
            self._database, self.tenant.tenant_id, source, name, clock=self._clock(), **options
        )
        log.info("hook_created", tenant_id=str(self.tenant.tenant_id), hook_id=made.hook_id, source=source)
        return made, secret

    def hooks(self) -> list[Hook]:
        """The tenant's hooks, oldest first, without their secrets."""
        require(self.principal, "administer")
        return hooks.list_hooks(self._database, self.tenant.tenant_id)

    def rotate_hook(self, hook_id: str, *, secret: str | None = None, keep_previous: bool = True) -> tuple[Hook, str]:
        """Give a hook a new secret; the one before works on unless it is not kept. Raises `NotFound`."""
        require(self.principal, "administer")
        rotated = hooks.rotate_hook(
            self._database,
            self.tenant.tenant_id,
            hook_id,
            secret=secret,
            keep_previous=keep_previous,
            clock=self._clock(),
        )
        log.info("hook_rotated", tenant_id=str(self.tenant.tenant_id), hook_id=hook_id)
        return rotated

    def remove_hook(self, hook_id: str) -> None:
        """Take a hook away; what it delivered and is not mapped yet comes to rest as dead. Raises `NotFound`."""
        require(self.principal, "administer")
        hooks.remove_hook(self._database, self.tenant.tenant_id, hook_id)
        log.info("hook_removed", tenant_id=str(self.tenant.tenant_id), hook_id=hook_id)

    def test_hook(self, hook_id: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Sign a delivery with the hook's own secret, verify it, and show what would be mapped; nothing is written.

        Args:
            payload: what the tool would send; a sample of its source unless given.

        Raises:
            NotFound. InvalidInput: the payload is not one that the source sends.
        """
        require(self.principal, "administer")
        hook, held = hooks.read_hook(self._database, self.tenant.tenant_id, hook_id)
        source = hooks.source_named(hook.source)
        body = json.dumps(sample_of(hook.source) if payload is None else payload).encode()
        now = self._clock()()
        headers = signatures.sign(source.signature, body, f"test-{new_id()}", held[0], now)
        checked = hooks.authenticate_delivery(
            self._database, hook.source, hook.hook_id, headers, body, clock=self._clock()
        )
        try:
            mapped = drafts_of(hook.source, body, inbox.kept_headers(headers))
        except Unmappable as error:
            raise InvalidInput(f"payload: {error}", field="payload") from None
        told: dict[str, Any] = {"hook_id": checked.hook_id, "verified_by": source.signature, "ignored": None}
        if isinstance(mapped, Ignored):
            return told | {"ignored": mapped.why, "drafts": []}
        return told | {"drafts": [_preview(checked, draft, self._clock()) for draft in mapped]}

    # -- the inbox -----------------------------------------------------------------------------------------------------

    def inbox(self, **wanted: Any) -> dict[str, Any]:
        """A page of what was delivered, newest first: `state`, `limit`, `after`; gives `{deliveries, next}`."""
        require(self.principal, "administer")
        return inbox.list_deliveries(self._database, self.tenant.tenant_id, **wanted)

    def delivery(self, delivery_id: UUID) -> dict[str, Any]:
        """One delivery with its headers and its body; raises `NotFound`."""
        require(self.principal, "administer")
        return inbox.show_delivery(self._database, self.tenant.tenant_id, delivery_id)

    def retry_delivery(self, delivery_id: UUID, *, subject: UUID | str | None = None) -> dict[str, Any]:
        """
        Have it mapped again; raises `NotFound`, `IllegalTransition` where its body is gone.

        Args:
            subject: whom it is about, by id or reference, where it speaks of somebody: what comes of it, and all that
                is told of the same incident later, is about that subject.
        """
        require(self.principal, "administer")
        who = (self._database, self.tenant.tenant_id, delivery_id)
        again = inbox.retry_delivery(*who, subject=subject, clock=self._clock())
        self._changed()
        return again

    def drop_delivery(self, delivery_id: UUID) -> dict[str, Any]:
        """Give it up, and its body away; raises `NotFound`."""
        require(self.principal, "administer")
        return inbox.drop_delivery(self._database, self.tenant.tenant_id, delivery_id, clock=self._clock())

    def incidents(self, **wanted: Any) -> dict[str, Any]:
        """A page of the incidents that deliveries told of, the last changed first: `limit`, `after`."""
        require(self.principal, "administer")
        return incident_records.list_incidents(self._database, self.tenant.tenant_id, **wanted)

    def incident(self, source: str, incident_id: str) -> dict[str, Any]:
        """What is known of one incident, with the deliveries that told it; raises `NotFound`."""
        require(self.principal, "administer")
        return incident_records.show_incident(self._database, self.tenant.tenant_id, source, incident_id)

    def map_deliveries(self, *, at_most: int = 1_000) -> MappedCounts:
        """Map what is due now, as the worker does."""
        require(self.principal, "administer")
        counts = map_deliveries(self._database, self.tenant.tenant_id, at_most=at_most, clock=self._clock())
        self._changed()
        return counts


def _preview(hook: Hook, draft: Draft, clock: Any) -> dict[str, Any]:
    """What one draft says, and what would come of it by itself."""
    said = fold({}, draft, clock())
    if draft.is_drill:
        becomes = "nothing: a drill"
    elif draft.is_private and not hook.takes_private:
        becomes = "nothing: private"
    elif not is_closed(said):
        becomes = "nothing yet: it is not closed"
    elif hook.direct and has_cause(said):
        becomes = "a finding"
    else:
        becomes = "a candidate" if has_cause(said) else "a candidate without a cause"
    return {
        "event": draft.event,
        "incident_id": draft.incident_id,
        "occurred_at": utc_text(draft.occurred_at.at) if draft.occurred_at else None,
        "becomes": becomes,
        "document": document_of_incident(hook.source, draft.incident_id, said),
    }
