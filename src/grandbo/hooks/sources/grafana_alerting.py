"""Grafana Alerting, the webhook contact point with its own payload."""

from __future__ import annotations

from grandbo.hooks.drafts import Headers, Mapped, Payload
from grandbo.hooks.reading import text
from grandbo.hooks.sources import alerts


def map(payload: Payload, headers: Headers) -> Mapped:
    """What a notification says of its group. The rendered `message` repeats the alerts and is not read."""
    return (alerts.group(payload, title=text(payload, "title")),)


def delivery_key(payload: Payload, headers: Headers) -> str:
    """The group, its status, and which alerts since when."""
    return alerts.group_key(payload)
