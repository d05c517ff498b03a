"""Deliveries of Grandbo's own format, as a tool would sign and send them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.testclient import TestClient

from grandbo.hooks import signatures
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.hooks import Hook
from grandbo.memory.inbox import Delivery

CAUSE = "The renewal job had lost its permission."


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that knows one hook and its secret."""

    grandbo: Grandbo
    memory: TenantMemory
    hook: Hook
    secret: str

    def signed(self, body: bytes, *, delivery: str | None = None, at: datetime | None = None) -> dict[str, str]:
        """The headers of a delivery."""
        scheme = "standard-webhooks"
        return signatures.sign(scheme, body, delivery or uuid.uuid4().hex, self.secret, at or datetime.now(UTC))

    def post(self, client: TestClient, body: bytes, headers: Mapping[str, str] | None = None) -> Any:
        """Send bytes; signed unless other headers are given."""
        given = {"Content-Type": "application/json", **(self.signed(body) if headers is None else headers)}
        return client.post(self.hook.path, content=body, headers=given)

    def tell(self, event: str, incident_id: str = "INC-1", **told: Any) -> Delivery:
        """Deliver through the library, without mapping."""
        body = json.dumps(payload(event, incident_id, **told)).encode()
        return self.grandbo.receive("grandbo", self.hook.hook_id, self.signed(body), body)

    def told(self, event: str, incident_id: str = "INC-1", **told: Any) -> dict[str, Any]:
        """Deliver and map; what came of it."""
        delivery = self.tell(event, incident_id, **told)
        self.memory.map_deliveries()
        return self.state(delivery)

    def state(self, delivery: Delivery) -> dict[str, Any]:
        """The delivery as the inbox has it; what came of its only draft beside it."""
        found = self.memory.delivery(delivery.delivery_id)
        return {**found, **(found["outcomes"][0] if found["outcomes"] else {})}


def payload(event: str, incident_id: str = "INC-1", **told: Any) -> dict[str, Any]:
    """What a tool sends; `is_drill` and `is_private` beside the finding, all else in it."""
    beside: dict[str, Any] = {name: told.pop(name) for name in ("is_drill", "is_private") if name in told}
    finding = {
        "title": "Logins failed after a certificate expired",
        "summary": "The gateway refused all logins.",
        "service": "gateway",
        "evidence": [{"type": "ticket", "uri": f"https://tickets.example.com/{incident_id}", "label": incident_id}],
        "occurred_at": "2026-01-02T03:04:05Z",
        **told,
    }
    return {"event": event, "incident_id": incident_id, "finding": finding, **beside}


def make_tool(grandbo: Grandbo, memory: TenantMemory, **options: Any) -> Tool:
    """A hook of Grandbo's own format, and who delivers to it."""
    hook, secret = memory.create_hook("grandbo", f"hook {uuid.uuid4().hex[:8]}", **options)
    return Tool(grandbo, memory, hook, secret)
