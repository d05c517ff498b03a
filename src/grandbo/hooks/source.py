"""What Grandbo must know of one tool that sends deliveries: how to read, tell apart and verify them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from grandbo.hooks.drafts import Headers, Mapped, Payload


@dataclass(frozen=True, slots=True)
class Source:
    """
    One tool whose deliveries are understood.

    Attributes:
        name: as in the URL: lower case words joined by hyphens.
        map: pure; raises `Unmappable` for a payload that this tool does not send.
        delivery_key: what a retry of the same delivery has too; pure; the names of the headers are in lower case.
            An empty answer (or any failure) falls back to the digest of the raw body.
        signature: the name of a scheme of `grandbo.hooks.signatures`, e.g. `pagerduty`, `standard-webhooks`,
            `sentry`, `grafana`, `bearer`.
    """

    name: str
    map: Callable[[Payload, Headers], Mapped]
    delivery_key: Callable[[Payload, Headers], str]
    signature: str
