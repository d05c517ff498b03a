"""Limits on how often, at both doors of the service."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from grandbo.http.app import build_app
from grandbo.library import Grandbo, TenantMemory
from tests.support.http import BASE_URL, bearer, client_of, make_token
from tests.support.mcp import rpc
from tests.support.postgres import TestDatabase

TOPIC = {"topic": "consumers lost their leases after the broker restarted"}
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
def strict(database: TestDatabase) -> Iterator[Grandbo]:
    """A memory that takes three requests an hour of each principal, and two bad credentials of each address."""
    settings = database.settings(rate_limit="3/hour", auth_failure_limit="2/hour")
    with Grandbo.open(settings=settings) as opened:
        yield opened


class TestRequests:
    def test_beyond_the_limit_a_principal_waits(self, strict: Grandbo, memory: TenantMemory) -> None:
        """429 with when to come back, counted; whatever its requests come to."""
        client = client_of(strict, token=make_token(memory, "reviewer"))
        answers = [client.post("/v1/recall", json=body) for body in (TOPIC, {"topic": "slug"}, TOPIC, TOPIC)]

        last = answers[-1]
        assert [200, 422, 200, 429] == [answer.status_code for answer in answers]
        assert ("rate_limited", True) == (last.json()["code"], 1 <= int(last.headers["retry-after"]) <= 3_600)
        assert 'grandbo_http_rate_limited_total{limit="principal"} 1.0' in client.get("/metrics").text

    def test_http_and_mcp_count_together(self, strict: Grandbo, memory: TenantMemory) -> None:
        """One principal, one limit, whichever door and key."""
        key = memory.create_key("helper", "agent", ("reviewer",))[1]
        second = memory.create_key("helper", "agent", ("reviewer",))[1]
        with client_of(strict, fresh=True) as client:
            answers = [
                client.post("/v1/recall", json=TOPIC, headers=bearer(key)),
                client.post("/mcp", content=rpc("tools/list"), headers={**bearer(key), **_MCP}),
                client.post("/v1/recall", json=TOPIC, headers=bearer(second)),
                client.post("/mcp", content=rpc("tools/list"), headers={**bearer(second), **_MCP}),
            ]

        assert [200, 200, 200, 429] == [answer.status_code for answer in answers]
        assert "rate_limited" == answers[-1].json()["code"]
        assert int(answers[-1].headers["retry-after"]) >= 1

    def test_principals_and_tenants_do_not_share(
        self, strict: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """The same name elsewhere is somebody else."""
        tokens = [m.create_key(name, "agent", ("reviewer",))[1] for m in (memory, other_memory) for name in ("a", "b")]
        client = client_of(strict)
        statuses = [
            client.post("/v1/recall", json=TOPIC, headers=bearer(token)).status_code for token in tokens for _ in "123"
        ]

        assert [200] * 12 == statuses

    def test_it_is_said_before_the_body_is_read(self, strict: Grandbo, memory: TenantMemory) -> None:
        """A body over the limit of bodies is not what is complained of."""
        client = client_of(strict, token=make_token(memory, "reviewer"))
        for _ in range(3):
            client.post("/v1/recall", json=TOPIC)

        assert 429 == client.post("/v1/recall", content=b"\xff" * 1_000_000).status_code

    def test_probes_are_never_limited(self, strict: Grandbo) -> None:
        """They need no credential."""
        client = client_of(strict)

        assert {200} == {client.get("/livez").status_code for _ in range(20)}


class TestFailures:
    def test_an_address_that_guesses_is_turned_away(self, strict: Grandbo, memory: TenantMemory) -> None:
        """At both doors; a credential that has not opened anything yet waits with it."""
        good = make_token(memory, "reviewer")
        with client_of(strict, fresh=True) as client:
            guesses = [client.post("/v1/recall", json=TOPIC, headers=bearer(_guess(good))) for _ in range(3)]
            at_mcp = client.post("/mcp", content=rpc("tools/list"), headers={**bearer(_guess(good)), **_MCP})
            newcomer = client.post("/v1/recall", json=TOPIC, headers=bearer(good))

            assert [401, 401, 429] == [answer.status_code for answer in guesses]
            assert [429, 429] == [at_mcp.status_code, newcomer.status_code]
            assert {"rate_limited"} == {answer.json()["code"] for answer in (guesses[-1], at_mcp, newcomer)}
            assert int(newcomer.headers["retry-after"]) >= 1
            assert 'grandbo_http_rate_limited_total{limit="address"} 3.0' in client.get("/metrics").text

    def test_who_came_in_before_still_does(self, strict: Grandbo, memory: TenantMemory) -> None:
        """Behind a proxy the stranger and the regular have one address; a revoked key is a stranger's."""
        key, good = memory.create_key("regular", "agent", ("reviewer",))
        client = client_of(strict)
        before = client.post("/v1/recall", json=TOPIC, headers=bearer(good)).status_code
        for _ in range(5):
            client.post("/v1/recall", json=TOPIC, headers=bearer(_guess(good)))

        during = client.post("/v1/recall", json=TOPIC, headers=bearer(good)).status_code
        memory.revoke_key(key.key_id)
        revoked = [client.post("/v1/recall", json=TOPIC, headers=bearer(good)).status_code for _ in range(2)]

        assert (200, 200, [401, 429]) == (before, during, revoked)

    def test_other_addresses_are_not_held_to_account(self, strict: Grandbo, memory: TenantMemory) -> None:
        """The limit is each address's own."""
        app = build_app(strict)
        guesser = TestClient(app, base_url=BASE_URL, client=("10.0.0.1", 1))
        other = TestClient(app, base_url=BASE_URL, client=("10.0.0.2", 1))
        good = make_token(memory, "reviewer")
        for _ in range(5):
            guesser.post("/v1/recall", json=TOPIC, headers=bearer(_guess(good)))

        assert 200 == other.post("/v1/recall", json=TOPIC, headers=bearer(good)).status_code

    def test_refusals_that_are_not_for_the_credential_do_not_count(self, strict: Grandbo, memory: TenantMemory) -> None:
        """Forbidden, not found, invalid: the caller is known."""
        client = client_of(strict, token=make_token(memory, "hook"))
        for path in ("/v1/entries", "/v1/keys", f"/v1/entries/{uuid.uuid4()}"):
            assert 403 == client.get(path).status_code

        assert 200 == client_of(strict, token=make_token(memory, "reviewer")).post("/v1/recall", json=TOPIC).status_code


def _guess(token: str) -> str:
    return f"{token[:53]}{uuid.uuid4().hex}{uuid.uuid4().hex}"[: len(token)]
