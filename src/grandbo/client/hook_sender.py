"""Delivers to a hook of Grandbo's own format: signed with its secret, and sent again until it is taken in."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from standardwebhooks.webhooks import Webhook

from grandbo.client.transport import Transport


class HookSender:
    """
    Tells one hook what happens to incidents. Close it, or use it in a `with`.

    Args:
        url: of the hook, as `grandbo hook create` printed it.
        secret: of the hook, as it was shown then.
    """

    def __init__(self, url: str, secret: str, **options: Any) -> None:
        base, separator, rest = url.partition("/v1/hooks/")
        if not separator:
            raise ValueError("the URL of a hook ends with /v1/hooks/SOURCE/HOOK_ID")
        self._path = separator + rest
        self._webhook = Webhook(secret)
        # The signature is all that proves the sender; a credential has no business at this door.
        self._transport = Transport(base, "", **options)

    def close(self) -> None:
        """Let the connections go."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(
        self,
        event: str,
        incident_id: str,
        finding: Mapping[str, Any] | None = None,
        *,
        is_drill: bool = False,
        is_private: bool = False,
        delivery: str | None = None,
    ) -> dict[str, Any]:
        """
        Tell of one event; gives `{delivery_id, duplicate}` once it is stored.

        Args:
            event: `opened`, `alert`, `updated`, `resolved`, `reopened` or `postmortem`.
            finding: what is known: title, summary, body, cause, service, severity, tags, evidence, times.
            delivery: an id of one's own; the same one again is the same delivery.

        Raises:
            Unauthenticated, LimitExceeded, Unavailable: when it was sent several times in vain.
        """
        payload = {
            "event": event,
            "incident_id": incident_id,
            "finding": dict(finding or {}),
            "is_drill": is_drill,
            "is_private": is_private,
        }
        body = json.dumps(payload)
        now, identity = datetime.now(UTC), delivery or f"msg_{uuid.uuid4().hex}"
        headers = {
            "webhook-id": identity,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._webhook.sign(identity, now, body),
        }
        answer: dict[str, Any] = self._transport.call("POST", self._path, content=body.encode(), headers=headers)
        return answer
