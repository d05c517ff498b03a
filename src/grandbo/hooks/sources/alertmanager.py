"""Prometheus Alertmanager, the webhook payload of version 4."""

from __future__ import annotations

from grandbo.hooks.drafts import Headers, Mapped, Payload, Unmappable
from grandbo.hooks.reading import needed
from grandbo.hooks.sources import alerts


def map(payload: Payload, headers: Headers) -> Mapped:
    """What a notification says of its group."""
    if needed(payload, "version") != "4":
        raise Unmappable("version is not `4`; a custom `payload:` template is not read.")
    return (alerts.group(payload),)


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The group, its status, and which alerts since when."""
    return alerts.group_key(payload)
