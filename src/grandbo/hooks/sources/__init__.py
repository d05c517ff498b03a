"""The tools whose deliveries are understood, by the name that stands in the URL of their hooks; one module each."""

from __future__ import annotations

from grandbo.hooks.source import Source
from grandbo.hooks.sources import (
    alertmanager,
    datadog,
    firehydrant,
    grafana_alerting,
    grafana_incident,
    grafana_oncall,
    incident_io,
    opsgenie,
    pagerduty,
    rootly,
    sentry,
    servicenow,
)
from grandbo.hooks.sources.grandbo import GRANDBO

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        GRANDBO,
        Source("pagerduty", pagerduty.map, pagerduty.delivery_key, "pagerduty"),
        Source("incident-io", incident_io.map, incident_io.delivery_key, "standard-webhooks"),
        Source("rootly", rootly.map, rootly.delivery_key, "rootly"),
        Source("firehydrant", firehydrant.map, firehydrant.delivery_key, "firehydrant"),
        Source("grafana-alerting", grafana_alerting.map, grafana_alerting.delivery_key, "grafana"),
        Source("grafana-incident", grafana_incident.map, grafana_incident.delivery_key, "grafana-incident"),
        Source("grafana-oncall", grafana_oncall.map, grafana_oncall.delivery_key, "bearer"),
        Source("alertmanager", alertmanager.map, alertmanager.delivery_key, "bearer"),
        Source("opsgenie", opsgenie.map, opsgenie.delivery_key, "bearer"),
        Source("sentry", sentry.map, sentry.delivery_key, "sentry"),
        Source("datadog", datadog.map, datadog.delivery_key, "bearer"),
        Source("servicenow", servicenow.map, servicenow.delivery_key, "bearer"),
    )
}
