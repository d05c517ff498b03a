"""What `/metrics` tells: counts and times by route, outcome and reason; never a tenant, a principal or a topic."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator

import structlog
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from grandbo.errors import GrandboError
from grandbo.library import Grandbo
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
        self._backlog = _Backlog(grandbo, clock)

    def describe(self) -> list[Metric]:
        """Nothing: registering must not touch the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All that this process can say of itself now."""
        yield self._receipts()
        stats = self._grandbo.database.pool.get_stats()
        in_use = stats.get("pool_size", 0) - stats.get("pool_available", 0)
        yield GaugeMetricFamily("grandbo_pool_connections_in_use", "Database connections in use.", value=in_use)
        yield GaugeMetricFamily(
            "grandbo_pool_requests_waiting",
            "Requests that wait for a database connection.",
            value=stats.get("requests_waiting", 0),
        )
        pending, dead = self._backlog.counts()
        backlog = GaugeMetricFamily(
            "grandbo_embedding_backlog", "Entries without a vector, over all tenants.", labels=["state"]
        )
        backlog.add_metric(["pending"], pending)
        backlog.add_metric(["dead"], dead)
        yield backlog
        yield GaugeMetricFamily(
            "grandbo_worker_last_pass_age_seconds",
            "Seconds since the embedding worker's last pass; NaN where none ran.",
            value=self._worker_age(),
        )

    def _receipts(self) -> Metric:
        receipts = CounterMetricFamily("grandbo_receipts", "Receipts of recalls.", labels=["outcome"])
        receipts.add_metric(["written"], self._grandbo.receipts.written)
        receipts.add_metric(["dropped"], self._grandbo.receipts.dropped)
        return receipts

    def _worker_age(self) -> float:
        worker = self._grandbo.worker
        if worker is None or worker.last_pass_at is None:
            return math.nan
        return time.monotonic() - worker.last_pass_at


class _Backlog:
    """The backlog of all tenants, counted at most every 15 seconds however often it is asked for."""

    def __init__(self, grandbo: Grandbo, clock: Callable[[], float]) -> None:
        self._grandbo = grandbo
        self._clock = clock
        self._lock = threading.Lock()
        self._counted_at = -math.inf
        self._counts = (math.nan, math.nan)

    def counts(self) -> tuple[float, float]:
        """Pending and dead; NaN where there is no embedder, or the database cannot say."""
        with self._lock:
            if self._clock() - self._counted_at >= BACKLOG_SECONDS:
                self._counts = self._count()
                self._counted_at = self._clock()
            return self._counts

    def _count(self) -> tuple[float, float]:
        embedder = self._grandbo.embedder
        if embedder is None:
            return math.nan, math.nan
        database, stamp = self._grandbo.database, embedder.stamp.id
        try:
            found = [count_backlog(database, tenant_id, stamp) for tenant_id in all_tenants(database)]
        except GrandboError as error:
            log.warning("backlog_not_counted", code=error.code)
            return math.nan, math.nan
        return sum(counts.pending for counts in found), sum(counts.dead for counts in found)
