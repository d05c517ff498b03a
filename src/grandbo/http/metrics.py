"""What `/metrics` tells: counts and times by route, outcome and reason; never a tenant, a principal or a topic."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from grandbo.errors import GrandboError
from grandbo.library import Grandbo
from grandbo.memory.inbox import count_inbox
from grandbo.memory.subscriptions import STATES, count_subscriptions
from grandbo.storage.tenancy import all_tenants
from grandbo.workers.backlog import count_backlog

BACKLOG_SECONDS = 15.0

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

log = structlog.get_logger(__name__)


class Metrics:
    """One application's metrics, in a registry of their own: two applications in a process do not mix."""

    def __init__(self, grandbo: Grandbo, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "grandbo_http_requests", "Requests served.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "grandbo_http_request_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._recalls = Counter(
            "grandbo_recalls",
            "Recalls: matched, empty (and why), refused, failed.",
            ["outcome", "empty_reason"],
            registry=self._registry,
        )
        self._findings = Counter(
            "grandbo_findings",
            "Findings: created, corroborated, known, replayed, refused, failed.",
            ["outcome"],
            registry=self._registry,
        )
        self._limited = Counter(
            "grandbo_http_rate_limited",
            "Requests turned away: of a principal that asks too often, of an address that fails too often.",
            ["limit"],
            registry=self._registry,
        )
        self._registry.register(_State(grandbo, clock))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request under its route's template."""
        known = self.method(method)
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def recall(self, outcome: str, empty_reason: str | None = None) -> None:
        """Count a recall."""
        self._recalls.labels(outcome, empty_reason or "").inc()

    def finding(self, outcome: str) -> None:
        """Count a finding that was submitted."""
        self._findings.labels(outcome).inc()

    def limited(self, limit: str) -> None:
        """Count a request that was turned away by this limit."""
        self._limited.labels(limit).inc()

    @staticmethod
    def method(name: str) -> str:
        """The method, or `other`: a caller must not be able to make new series."""
        return name if name in _METHODS else "other"

    def exposition(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)


class _State(Collector):
    """What is read when it is asked for: the pool, the receipts, the backlog, the worker."""

    def __init__(self, grandbo: Grandbo, clock: Callable[[], float]) -> None:
        self._grandbo = grandbo
        self._backlog = _Counted(lambda: _backlog(grandbo), clock)
        self._ways_counted = _Counted(lambda: _ways(grandbo), clock)

    def describe(self) -> list[Metric]:
        """Nothing: registering must not touch the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All that this process can say of itself now."""
        yield self._receipts()
        if self._grandbo.readers.replica is not None:
            yield self._replica_reads()
        stats = self._grandbo.database.pool.get_stats()
        in_use = stats.get("pool_size", 0) - stats.get("pool_available", 0)
        yield GaugeMetricFamily("grandbo_pool_connections_in_use", "Database connections in use.", value=in_use)
        yield GaugeMetricFamily(
            "grandbo_pool_requests_waiting",
            "Requests that wait for a database connection.",
            value=stats.get("requests_waiting", 0),
        )
        counts = self._backlog.counts()
        backlog = GaugeMetricFamily(
            "grandbo_embedding_backlog", "Entries without a vector, over all tenants.", labels=["state"]
        )
        backlog.add_metric(["pending"], counts["pending"])
        backlog.add_metric(["dead"], counts["dead"])
        yield backlog
        yield from self._ways()
        yield GaugeMetricFamily(
            "grandbo_worker_last_pass_age_seconds",
            "Seconds since the embedding worker's last pass; NaN where none ran.",
            value=self._worker_age(),
        )

    def _replica_reads(self) -> Metric:
        reads = CounterMetricFamily(
            "grandbo_replica_reads",
            "Recalls asked of the replica: answered, or why the primary was.",
            labels=["outcome"],
        )
        for outcome, count in self._grandbo.readers.counts().items():
            reads.add_metric([outcome], count)
        return reads

    def _receipts(self) -> Metric:
        receipts = CounterMetricFamily("grandbo_receipts", "Receipts of recalls.", labels=["outcome"])
        receipts.add_metric(["written"], self._grandbo.receipts.written)
        receipts.add_metric(["dropped"], self._grandbo.receipts.dropped)
        return receipts

    def _ways(self) -> Iterator[Metric]:
        """What waits on its way in, and on its way out."""
        waiting = self._ways_counted.counts()
        inbox = GaugeMetricFamily("grandbo_inbox", "Deliveries of hooks, over all tenants.", labels=["state"])
        for state in ("received", "dead"):
            inbox.add_metric([state], waiting[f"inbox_{state}"])
        yield inbox
        subscriptions = GaugeMetricFamily("grandbo_subscriptions", "Subscriptions, over all tenants.", labels=["state"])
        for state in STATES:
            subscriptions.add_metric([state], waiting[state])
        yield subscriptions
        yield GaugeMetricFamily(
            "grandbo_subscription_positions_behind",
            "How many positions the subscription that is last is behind its log; paused ones are left out.",
            value=waiting["behind"],
        )
        deliverer = self._grandbo.background.deliverer if self._grandbo.background else None
        sent = CounterMetricFamily("grandbo_events_sent", "Events sent to subscriptions.", labels=["outcome"])
        sent.add_metric(["delivered"], deliverer.delivered if deliverer else 0)
        sent.add_metric(["failed"], deliverer.failed if deliverer else 0)
        yield sent

    def _worker_age(self) -> float:
        worker = self._grandbo.worker
        if worker is None or worker.last_pass_at is None:
            return math.nan
        return time.monotonic() - worker.last_pass_at


class _Counted:
    """Counts over all tenants, taken at most every 15 seconds however often they are asked for."""

    def __init__(self, count: Callable[[], dict[str, float]], clock: Callable[[], float]) -> None:
        self._count = count
        self._clock = clock
        self._lock = threading.Lock()
        self._counted_at = -math.inf
        self._counts: dict[str, float] = {}

    def counts(self) -> dict[str, float]:
        """By name; NaN for what the database cannot say."""
        with self._lock:
            if self._clock() - self._counted_at >= BACKLOG_SECONDS:
                try:
                    self._counts = self._count()
                except GrandboError as error:
                    log.warning("backlog_not_counted", code=error.code)
                    self._counts = {}
                self._counted_at = self._clock()
            return defaultdict(lambda: math.nan, self._counts)


def _backlog(grandbo: Grandbo) -> dict[str, float]:
    """Entries without a vector; nothing where there is no embedder."""
    if grandbo.embedder is None:
        return {}
    stamp = grandbo.embedder.stamp.id
    found = [count_backlog(grandbo.database, tenant_id, stamp) for tenant_id in all_tenants(grandbo.database)]
    return {"pending": sum(counts.pending for counts in found), "dead": sum(counts.dead for counts in found)}


def _ways(grandbo: Grandbo) -> dict[str, float]:
    """What the inboxes hold, and how the subscriptions stand."""
    told: dict[str, float] = dict.fromkeys(("inbox_received", "inbox_dead", "behind", *STATES), 0)
    for tenant_id in all_tenants(grandbo.database):
        for state, count in count_inbox(grandbo.database, tenant_id).items():
            told[f"inbox_{state}"] += count
        counts = count_subscriptions(grandbo.database, tenant_id)
        told["behind"] = max(told["behind"], counts.pop("behind"))
        for state, count in counts.items():
            told[state] += count
    return told
