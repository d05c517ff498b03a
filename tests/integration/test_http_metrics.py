"""`GET /metrics`: what is counted, and what is never told."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from grandbo.http.metrics import BACKLOG_SECONDS, Metrics
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import Clock, client_of, make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder

TOPIC = "consumers lost their leases after the broker restarted"


def _samples(client: TestClient) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = client.get("/metrics").text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def database(server: TestServer) -> Iterator[TestDatabase]:
    """A database of this file's own: the backlog is counted over all tenants."""
    with server.clone() as made:
        yield made


@pytest.fixture(scope="module")
def grandbo(database: TestDatabase) -> Iterator[Grandbo]:
    """An open memory on that."""
    with Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened:
        yield opened


class TestMetrics:
    def test_requests_recalls_and_findings_are_counted(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """By route template and status, by outcome, by the reason of an empty answer."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"), fresh=True)
        finding = make_finding()
        client.post("/v1/recall", json={"topic": TOPIC})
        for document in (
            finding,
            finding,
            {**finding, "incident": {"source": "pager", "id": "X"}},
            make_finding(title=1),
        ):
            client.post("/v1/findings", json=document)
        client.post("/v1/findings", json=finding, headers={"Idempotency-Key": "other"})
        client.post("/v1/recall", json={"topic": TOPIC})
        client.post("/v1/recall", json={"topic": "slug"})
        client.get("/nothing/at/all")
        client.request("BREW", "/v1/recall")

        found = _samples(client)

        def requests(method: str, route: str, status: str) -> float | None:
            return found.get(
                ("grandbo_http_requests_total", (("method", method), ("route", route), ("status", status)))
            )

        assert (2, 2, 1) == tuple(requests("POST", "/v1/findings", status) for status in ("201", "200", "422"))
        assert (2, 1) == tuple(requests("POST", "/v1/recall", status) for status in ("200", "422"))
        assert 1 == requests("GET", "unmatched", "404")
        assert not [labels for _, labels in found if ("method", "BREW") in labels]
        outcomes = {
            dict(labels)["outcome"]: value
            for (name, labels), value in found.items()
            if name == "grandbo_findings_total"
        }
        assert {"created": 1, "replayed": 1, "corroborated": 1, "known": 1, "refused": 1} == outcomes
        recalls = {
            tuple(dict(labels).values()): value
            for (name, labels), value in found.items()
            if name == "grandbo_recalls_total"
        }
        assert {("nothing_in_scope", "empty"): 1, ("", "matched"): 1, ("", "refused"): 1} == recalls
        assert 3 == found[("grandbo_http_request_seconds_count", (("method", "POST"), ("route", "/v1/recall")))]

    def test_the_state_of_the_process_is_told(self, database: TestDatabase, memory: TenantMemory) -> None:
        """Pool, receipts, backlog over all tenants, age of the worker's last pass."""
        with Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened:
            client = client_of(opened, token=make_token(memory, "reviewer"))
            client.post("/v1/findings", json=make_finding())
            client.post("/v1/recall", json={"topic": TOPIC})
            opened.receipts.flush()

            found = _samples(client)

        assert 1 <= found[("grandbo_embedding_backlog", (("state", "pending"),))]
        assert 0 <= found[("grandbo_embedding_backlog", (("state", "dead"),))]
        assert 0 == found[("grandbo_pool_connections_in_use", ())]
        assert (1, 0) == tuple(
            found[("grandbo_receipts_total", (("outcome", outcome),))] for outcome in ("written", "dropped")
        )
        age = found[("grandbo_worker_last_pass_age_seconds", ())]
        assert age != age

    def test_the_backlog_is_counted_at_most_every_fifteen_seconds(self, server: TestServer, tenant_name: str) -> None:
        """However often it is scraped."""
        clock = Clock()
        with (
            server.clone() as database,
            Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened,
        ):
            opened.create_tenant(tenant_name)
            memory = opened.tenant(tenant_name)
            metrics = Metrics(opened, clock=clock)
            pending = re.compile(r'^grandbo_embedding_backlog\{state="pending"\} (\S+)$', re.MULTILINE)

            def counted() -> list[str]:
                return pending.findall(metrics.exposition().decode())

            first = counted()
            memory.record_finding(make_finding())
            clock.now += BACKLOG_SECONDS - 1
            remembered = counted()
            clock.now += 1

            assert (["0.0"], ["0.0"], ["1.0"]) == (first, remembered, counted())

    def test_routes_are_counted_without_ids(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A metric has the route as it is declared, not as it was called."""
        entry = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        client = client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))
        archived = client.post(f"/v1/entries/{entry}/archive", json={"reason": "r"}, headers={"If-Match": '"1"'})
        assert 200 == archived.status_code

        exposition = client.get("/metrics").text

        assert 'route="/v1/entries/{entry_id}/archive"' in exposition
        assert entry not in exposition

    def test_they_hold_no_tenant_no_principal_and_no_text(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Whoever scrapes learns how much, never who or what."""
        token = make_token(memory, "reviewer")
        client = client_of(grandbo, token=token, fresh=True)
        client.post("/v1/findings", json=make_finding(title="Zebrafish incident", service="zebrafish"))
        client.post("/v1/recall", json={"topic": "zebrafish stopped swimming", "service": "zebrafish"})
        client.get("/zebrafish")

        text = client.get("/metrics").text.lower()

        hidden = ("zebrafish", memory.tenant.name, str(memory.tenant_id), memory.tenant_id.hex, token.lower(), "key-")
        assert [] == [secret for secret in hidden if secret in text]
