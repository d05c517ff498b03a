"""Who may enter, and what they see: credentials, roles, tenants, host names."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import bearer, client_of, make_token

TOPIC = {"topic": "consumers lost their leases after the broker restarted"}
ROUTES = ("/v1/findings", "/v1/recall")


def _bad_headers(memory: TenantMemory) -> dict[str, dict[str, str]]:
    key, token = memory.create_key("leaver", "agent", ("reviewer",))
    memory.revoke_key(key.key_id)
    good = make_token(memory, "reviewer")
    foreign_tenant = f"gbk_{uuid.uuid4().hex}{good[36:]}"
    return {
        "absent": {},
        "another scheme": {"Authorization": f"Basic {good}"},
        "no token": {"Authorization": "Bearer"},
        "malformed": bearer("let-me-in"),
        "oversized": bearer("gbk_" + "a" * 6_000),
        "wrong secret": bearer(good[:-4] + "AAAA"),
        "unknown key": bearer(good[:51] + ("1" if good[51] == "0" else "0") + good[52:]),
        "unknown tenant": bearer(foreign_tenant),
        "revoked": bearer(token),
        "not ascii": {"Authorization": "Bearer caf\u00e9"},
    }


class TestCredential:
    @pytest.mark.parametrize("route", ROUTES)
    def test_every_bad_credential_gets_the_same_answer(
        self, grandbo: Grandbo, memory: TenantMemory, route: str
    ) -> None:
        """Absent, malformed, unknown, foreign, revoked: nothing tells which."""
        client = client_of(grandbo)
        answers: dict[str, Any] = {}

        for name, headers in _bad_headers(memory).items():
            raw = [(key.encode(), value.encode("latin-1")) for key, value in headers.items()]
            answer = client.post(route, json=TOPIC, headers=raw)
            body = {key: value for key, value in answer.json().items() if key != "request_id"}
            answers[name] = (answer.status_code, answer.headers["www-authenticate"], body)

        assert {401} == {status for status, _, _ in answers.values()}
        assert 1 == len({repr(answer) for answer in answers.values()}), answers

    def test_it_is_checked_before_the_body_is_looked_at(self, grandbo: Grandbo) -> None:
        """Who may not enter learns nothing from the way in which a body is refused."""
        client = client_of(grandbo)

        answers = [client.post(route, content=b"\xff" * 1_000_000) for route in ROUTES]

        assert [401, 401] == [answer.status_code for answer in answers]

    def test_a_key_works_until_it_is_revoked(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """And not a request longer."""
        key, token = memory.create_key("agent-7", "agent", ("investigator",))
        client = client_of(grandbo, token=token)
        before = client.post("/v1/recall", json=TOPIC).status_code

        memory.revoke_key(key.key_id)

        assert (200, 401) == (before, client.post("/v1/recall", json=TOPIC).status_code)


class TestRoles:
    def test_an_investigator_may_not_record(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """403, and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/findings", json=make_finding())

        assert (403, "forbidden") == (answer.status_code, answer.json()["code"])
        assert 1 == memory.verify().head

    def test_a_hook_may_not_recall(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A credential that leaks from a webhook's settings opens no memory."""
        client = client_of(grandbo, token=make_token(memory, "hook", kind="hook"))

        answer = client.post("/v1/recall", json=TOPIC)

        assert (403, "forbidden") == (answer.status_code, answer.json()["code"])

    def test_nobody_writes_to_a_tier_they_do_not_see(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """403 that names the field."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = client.post("/v1/findings", json=make_finding(visibility="admin"))

        assert (403, "forbidden") == (answer.status_code, answer.json()["code"])


class TestTenants:
    def test_a_key_opens_its_own_tenant_alone(
        self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """The other tenant's entries are in no match, no count and no position."""
        mine = client_of(grandbo, token=make_token(memory, "reviewer"))
        theirs = client_of(grandbo, token=make_token(other_memory, "reviewer"))
        finding = make_finding()
        first = mine.post("/v1/findings", json=finding).json()
        before = theirs.post("/v1/recall", json=TOPIC).json()

        second = theirs.post("/v1/findings", json=finding).json()

        seen = {client: client.post("/v1/recall", json=TOPIC).json() for client in (mine, theirs)}
        assert (0, "nothing_in_scope", 1) == (
            before["searched"]["eligible"],
            before["searched"]["empty_reason"],
            before["position"],
        )
        assert [first["entry_id"]] == [match["entry_id"] for match in seen[mine]["matches"]]
        assert [second["entry_id"]] == [match["entry_id"] for match in seen[theirs]["matches"]]
        assert first["entry_id"] != second["entry_id"]

    def test_a_body_cannot_name_a_tenant_or_a_principal(
        self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """Both come from the credential; in a body they are unknown fields, in headers they are nothing."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        named = {"tenant_id": str(other_memory.tenant_id), "principal": "human:root"}

        refused = [client.post("/v1/recall", json={**TOPIC, name: value}) for name, value in named.items()]
        refused += [client.post("/v1/findings", json=make_finding(**{name: value})) for name, value in named.items()]
        client.post(
            "/v1/findings", json=make_finding(), headers={"X-Tenant": other_memory.tenant.name, "X-Tenant-Id": "x"}
        )

        assert [422] * 4 == [answer.status_code for answer in refused]
        assert (2, 1) == (memory.verify().head, other_memory.verify().head)


class TestHostNames:
    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:80:80", "a b", ""])
    def test_a_foreign_host_is_refused(self, grandbo: Grandbo, memory: TenantMemory, host: str) -> None:
        """A page that rebinds its name to loopback reaches nothing, with a good credential neither."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = client.post("/v1/recall", json=TOPIC, headers={"Host": host})

        assert (421, "host_not_allowed") == (answer.status_code, answer.json()["code"])

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8420", "127.0.0.1:1", "[::1]:8420"])
    def test_loopback_names_are_served(self, grandbo: Grandbo, memory: TenantMemory, host: str) -> None:
        """With any port and in any case."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        assert 200 == client.post("/v1/recall", json=TOPIC, headers={"Host": host}).status_code

    def test_a_probe_may_use_any_address(self, grandbo: Grandbo) -> None:
        """An orchestrator calls by the address of the moment."""
        client = client_of(grandbo)

        assert 200 == client.get("/livez", headers={"Host": "10.1.2.3:8420"}).status_code
