"""The group of alerts that Alertmanager and Grafana Alerting both send."""

from __future__ import annotations

import hashlib
from typing import Any

from grandbo.documents.times import read_time
from grandbo.finding_limits import NAME_LIMIT
from grandbo.hooks.drafting import bullet, draft, lines, source
from grandbo.hooks.drafts import Draft, DraftEvidence, Payload, Unmappable
from grandbo.hooks.reading import at, first_text, items, labels_say_drill, needed, pairs, text
from grandbo.types import digest_of

_LINKS = (
    ("dashboard", "dashboardURL", "dashboard"),
    ("graph", "panelURL", "panel"),
    ("graph", "generatorURL", "what the alert asks"),
)

_TAGGED = ("namespace", "cluster", "team")


def group(payload: Payload, *, title: str = "", severity: str = "") -> Draft:
    """
    What a group of alerts says: it fires, or it is over. It states no cause.

    Raises:
        Unmappable: it has no status, no group key or no list of alerts.
    """
    status = needed(payload, "status")
    if status not in ("firing", "resolved"):
        raise Unmappable("status is neither `firing` nor `resolved`.")
    key = needed(payload, "groupKey")
    if not isinstance(at(payload, "alerts"), list):
        raise Unmappable("alerts is missing or is no list.")
    alerts = items(payload, "alerts")
    labels = at(payload, "commonLabels")
    name = first_text(payload, "commonLabels.alertname", "groupLabels.alertname")
    left_out = text(payload, "truncatedAlerts")
    return draft(
        "opened" if status == "firing" else "resolved",
        _incident_id(key),
        title=first_text(payload, "commonAnnotations.summary") or title or name or "A group of alerts",
        summary=first_text(payload, "commonAnnotations.description", "commonAnnotations.message"),
        body=[*map(_alert, alerts), f"{left_out} more alerts were left out." if left_out not in ("", "0") else ""],
        service=first_text(labels, "service", "app", "job"),
        severity=first_text(labels, "severity") or severity,
        tags=[
            name,
            *(said for label, said in pairs(payload, "commonLabels") if label in ("namespace", "cluster", "team")),
        ],
        evidence=[item for alert in alerts for item in _evidence(alert)],
        started=_earliest(alerts),
        ended=_latest_end(alerts) if status == "resolved" else None,
        is_drill=labels_say_drill(labels)
        or labels_say_drill(at(payload, "groupLabels"))
        or (bool(alerts) and all(labels_say_drill(at(alert, "labels")) for alert in alerts)),
    )


def group_key(payload: Payload) -> str:
    """The group, its status, and which alerts since when: what a repeated notification has in common."""
    key, status = text(payload, "groupKey"), text(payload, "status")
    if not key or not status:
        return ""
    told = sorted([text(item, "fingerprint"), text(item, "startsAt")] for item in items(payload, "alerts"))
    return digest_of([key, status, told])


def _incident_id(key: str) -> str:
    return key if len(key) <= NAME_LIMIT else f"sha256:{hashlib.sha256(key.encode(errors='replace')).hexdigest()}"


def _alert(alert: dict[str, Any]) -> str:
    name = first_text(alert, "labels.alertname") or "alert"
    labels = ", ".join(f"{label}={said}" for label, said in pairs(alert, "labels") if label != "alertname")
    return lines(
        f"{name}: {text(alert, 'status') or 'unknown'}, began {text(alert, 'startsAt') or 'at an unknown time'}",
        bullet("labels", labels),
        *(bullet(label, said) for label, said in pairs(alert, "annotations") if label != "runbook_url"),
        bullet("values", text(alert, "valueString")),
    )


def _evidence(alert: dict[str, Any]) -> list[DraftEvidence | None]:
    name = first_text(alert, "labels.alertname") or "alert"
    runbook = first_text(alert, "annotations.runbook_url", "annotations.runbook")
    return [
        *(source(kind, text(alert, field), f"{label} of {name}") for kind, field, label in _LINKS),
        source("runbook", runbook, f"runbook of {name}"),
    ]


def _earliest(alerts: list[dict[str, Any]]) -> object:
    known = [(moment.at, alert["startsAt"]) for alert in alerts if (moment := read_time(alert.get("startsAt")))]
    return min(known, key=lambda item: item[0])[1] if known else None


def _latest_end(alerts: list[dict[str, Any]]) -> object:
    known = [(moment.at, alert["endsAt"]) for alert in alerts if (moment := read_time(alert.get("endsAt")))]
    return max(known, key=lambda item: item[0])[1] if known else None
