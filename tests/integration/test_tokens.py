"""JWTs of an issuer as bearer tokens: what opens a memory, as whom, and all that does not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from grandbo.errors import ConfigurationError, Forbidden, Unauthenticated, Unavailable
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.identities import principal_id_of
from grandbo.memory.tokens import REFRESH_SECONDS, STALE_SECONDS, TOKEN_LIMIT, Tokens
from tests.support.factories import make_finding
from tests.support.http import Clock, bearer, client_of
from tests.support.issuer import AUDIENCE, Issuer, running_issuer
from tests.support.mcp import rpc
from tests.support.postgres import TestDatabase

TOPIC = "consumers lost their leases after the broker restarted"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer that no other test uses."""
    with running_issuer() as started:
        yield started


@pytest.fixture
def issued(database: TestDatabase, issuer: Issuer) -> Iterator[Grandbo]:
    """A memory that takes the issuer's tokens."""
    settings = database.settings(oidc_issuer=issuer.url, oidc_audience=AUDIENCE)
    with Grandbo.open(settings=settings) as opened:
        yield opened


def _tokens(database: TestDatabase, issuer: Issuer, clock: Clock, **settings: object) -> Tokens:
    chosen = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "oidc_jwks_url": f"{issuer.url}/keys", **settings}
    return Tokens(database.settings(**chosen), clock=clock)


class TestGenuine:
    @pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
    def test_a_token_opens_the_tenant_that_it_claims(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory, algorithm: str
    ) -> None:
        """By each kind of key: the claimed tenant, the claimed roles, a human unless it says otherwise."""
        opened = issued.authenticate(issuer.token(memory.tenant.name, algorithm=algorithm))

        assert memory.tenant_id == opened.tenant_id
        assert (frozenset({"reviewer"}), "human", False) == (
            opened.principal.roles,
            opened.principal.type,
            opened.principal.read_only,
        )

    def test_the_tenant_may_be_named_by_its_id(self, issued: Grandbo, issuer: Issuer, memory: TenantMemory) -> None:
        """As everywhere."""
        assert memory.tenant_id == issued.authenticate(issuer.token(str(memory.tenant_id))).tenant_id

    def test_the_principal_stays_the_same_whatever_else_the_token_says(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Issuer and subject make the id; the name is that of the first sight."""
        first = issued.authenticate(issuer.token(memory.tenant.name, preferred_username="ada")).principal
        again = issued.authenticate(issuer.token(memory.tenant.name, preferred_username="countess")).principal
        another = issued.authenticate(issuer.token(memory.tenant.name, sub="other", preferred_username="ada")).principal

        assert principal_id_of(issuer.url, "someone") == first.principal_id == again.principal_id
        assert first.name == again.name != another.name
        assert first.name.startswith("oidc:ada#")
        assert another.name.startswith("oidc:ada#")

    def test_the_token_says_whether_it_is_an_agent(self, issued: Grandbo, issuer: Issuer, memory: TenantMemory) -> None:
        """And what it writes is marked so."""
        opened = issued.authenticate(issuer.token(memory.tenant.name, principal_type="agent"))
        recorded = opened.record_finding(make_finding()).acknowledgement

        assert opened.principal.ref.startswith("agent:")
        assert "agent" == memory.show_entry(recorded.entry_id)["author_type"]

    def test_claims_may_lie_deep_and_roles_be_words(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Dots make a path; a text is split at its spaces; a claim with dots in its own name goes first."""
        tokens = _tokens(
            database, issuer, Clock(), oidc_roles_claim="realm.roles", oidc_tenant_claim="https://acme.example/tenant"
        )
        claims: dict[str, Any] = {"https://acme.example/tenant": "acme", "realm": {"roles": "hook auditor"}}

        found = tokens.verify(issuer.token(memory.tenant.name, **claims))

        assert ("acme", frozenset({"hook", "auditor"})) == (found.tenant, found.roles)

    def test_clocks_may_differ_a_little(self, issued: Grandbo, issuer: Issuer, memory: TenantMemory) -> None:
        """A token just over, or not quite begun, is taken."""
        now = int(time.time())
        skewed: list[dict[str, Any]] = [{"exp": now - 10}, {"nbf": now + 10}, {"iat": now + 10}]
        for times in skewed:
            assert issued.authenticate(issuer.token(memory.tenant.name, **times)).tenant_id == memory.tenant_id

    def test_keys_go_on_working_beside_tokens(self, issued: Grandbo, memory: TenantMemory, issuer: Issuer) -> None:
        """And never make us ask the issuer."""
        token = memory.create_key("helper", "agent", ("investigator",))[1]

        assert memory.tenant_id == issued.authenticate(token).tenant_id
        assert [] == issuer.asked


class TestRoles:
    def test_a_role_that_does_not_exist_grants_nothing(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Beside one that does it is not there at all."""
        opened = issued.authenticate(issuer.token(memory.tenant.name, roles=["root", "investigator", 7, None]))

        assert frozenset({"investigator"}) == opened.principal.roles

    @pytest.mark.parametrize("roles", [..., None, [], "", "root", ["Admin"], {"admin": True}, 1])
    def test_without_a_role_nothing_may_be_done(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory, roles: Any
    ) -> None:
        """403 at the first verb; and no name of theirs is kept."""
        opened = issued.authenticate(issuer.token(memory.tenant.name, roles=roles))
        client = client_of(issued, token=issuer.token(memory.tenant.name, roles=roles))

        with pytest.raises(Forbidden):
            opened.query_topic(TOPIC)
        answers = [
            client.post("/v1/recall", json={"topic": TOPIC}),
            client.get("/v1/tenant"),
            client.get("/v1/entries"),
        ]
        assert [403] * 3 == [answer.status_code for answer in answers]

    def test_nobody_gets_a_key_for_an_issuers_principal(self, memory: TenantMemory) -> None:
        """Such names are the issuer's to give."""
        with pytest.raises(Exception, match="names that begin with oidc:"):
            memory.create_key("oidc:ada#0123456789abcdef", "human", ("reviewer",))


def _refused(issuer: Issuer, tenant: str) -> dict[str, str]:
    now = int(time.time())
    good = issuer.token(tenant)
    head, body, signature = good.split(".")
    other = base64.urlsafe_b64encode(json.dumps(issuer.claims(tenant, roles=["admin"])).encode()).rstrip(b"=").decode()
    deep = base64.urlsafe_b64encode(b"[" * 5_000).decode()
    return {
        "expired": issuer.token(tenant, exp=now - 120),
        "not yet valid": issuer.token(tenant, nbf=now + 120),
        "from the future": issuer.token(tenant, iat=now + 120),
        "another audience": issuer.token(tenant, aud="https://elsewhere.example.com"),
        "no audience": issuer.token(tenant, aud=...),
        "another issuer": issuer.token(tenant, iss="https://evil.example.com"),
        "no issuer": issuer.token(tenant, iss=...),
        "no end": issuer.token(tenant, exp=...),
        "no beginning": issuer.token(tenant, iat=...),
        "no subject": issuer.token(tenant, sub=...),
        "empty subject": issuer.token(tenant, sub=""),
        "no tenant": issuer.token(tenant, tenant=...),
        "tenant of another type": issuer.token(tenant, tenant=[tenant]),
        "tenant that is not there": issuer.token("no-such-tenant"),
        "tenant with a NUL": issuer.token("a\0b"),
        "unknown type of principal": issuer.token(tenant, principal_type="system"),
        "unknown key": issuer.token(tenant, headers={"kid": "unheard-of"}),
        "no key id": issuer.token(tenant, headers={"kid": ""}),
        "another key": issuer.signed_by_another(tenant),
        "a key of another algorithm": issuer.token(tenant, headers={"kid": issuer.key_ids["ES256"]}),
        "tampered claims": f"{head}.{other}.{signature}",
        "tampered signature": f"{head}.{body}.{signature[:-8]}AAAAAAAA",
        "no signature": f"{head}.{body}.",
        "shared secret": issuer.confused(tenant),
        "none": issuer.unsigned(tenant),
        "None": issuer.unsigned(tenant, "None"),
        "logout token": issuer.token(tenant, headers={"typ": "logout+jwt"}),
        "critical header": issuer.token(tenant, headers={"crit": ["unheard-of"], "unheard-of": 1}),
        "two parts": f"{head}.{body}",
        "not base64": "a.b.c",
        "not a token": "let-me-in",
        "deep": f"{deep}.{body}.{signature}",
        "empty": "",
        "half a surrogate pair": "\ud800.a.b",
        "huge": issuer.token(tenant, filler="x" * TOKEN_LIMIT),
        "endless": "x" * 1_000_000,
    }


class TestRefused:
    def test_whatever_is_wrong_the_answer_is_the_same(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Unauthenticated, without a cause that could hold parts of the token."""
        assert issued.authenticate(issuer.token(memory.tenant.name)).tenant_id == memory.tenant_id
        opened, told = [], set()
        for name, token in _refused(issuer, memory.tenant.name).items():
            try:
                issued.authenticate(token)
            except Unauthenticated as error:
                told.add((error.message, repr(error.details), error.__suppress_context__ or error.__context__ is None))
            else:
                opened.append(name)

        assert [] == opened
        assert 1 == len(told)

    def test_without_an_issuer_no_token_opens_anything(
        self, grandbo: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """A good one neither; and nobody is asked."""
        with pytest.raises(Unauthenticated):
            grandbo.authenticate(issuer.token(memory.tenant.name))
        assert [] == issuer.asked

    def test_what_cannot_be_genuine_asks_nobody(self, issued: Grandbo, issuer: Issuer, memory: TenantMemory) -> None:
        """The issuer is asked for keys only when a token of its own needs one."""
        for token in (issuer.unsigned(memory.tenant.name), issuer.confused(memory.tenant.name), "a.b.c"):
            with pytest.raises(Unauthenticated):
                issued.authenticate(token)
        with pytest.raises(Unauthenticated):
            issued.authenticate(issuer.token(memory.tenant.name, iss="https://evil.example.com"))

        assert [] == issuer.asked


class TestKeys:
    def test_a_flood_of_unknown_key_ids_is_no_flood_of_requests(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Once for the first need; the rest is refused from what is known."""
        tokens = _tokens(database, issuer, Clock())
        for number in range(50):
            with pytest.raises(Unauthenticated):
                tokens.verify(issuer.token(memory.tenant.name, headers={"kid": f"unheard-of-{number}"}))

        assert 1 == issuer.keys_asked

    def test_a_new_key_is_found(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once the time between two questions has gone by."""
        clock = Clock()
        monkeypatch.setattr("jwt.jwks_client.time.monotonic", clock)
        tokens = _tokens(database, issuer, clock)
        tokens.verify(issuer.token(memory.tenant.name))
        issuer.rotate()
        with pytest.raises(Unauthenticated):
            tokens.verify(issuer.token(memory.tenant.name))

        clock.now += REFRESH_SECONDS + 1

        assert "someone" == tokens.verify(issuer.token(memory.tenant.name)).subject
        assert 2 == issuer.keys_asked

    def test_while_the_issuer_is_down_nobody_can_say(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Unavailable, not unauthenticated; and it is not asked again for each token."""
        tokens = _tokens(database, issuer, Clock())
        issuer.is_down = True
        for _ in range(20):
            with pytest.raises(Unavailable):
                tokens.verify(issuer.token(memory.tenant.name))

        assert 1 == issuer.keys_asked

    @pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"keys": []}', b"\xff"])
    def test_an_answer_that_is_no_set_of_keys_is_as_none(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory, raw: bytes
    ) -> None:
        """Nobody can say either."""
        tokens = _tokens(database, issuer, Clock())
        issuer.raw_keys = raw

        with pytest.raises(Unavailable):
            tokens.verify(issuer.token(memory.tenant.name))

    def test_the_last_keys_serve_for_a_while(
        self, database: TestDatabase, issuer: Issuer, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A known key goes on for an hour, an unknown one is unavailable at once; then both are."""
        clock = Clock()
        for place in ("jwt.jwks_client.time.monotonic", "jwt.jwk_set_cache.time.monotonic"):
            monkeypatch.setattr(place, clock)
        tokens = _tokens(database, issuer, clock)
        tokens.verify(issuer.token(memory.tenant.name))
        issuer.is_down = True
        clock.now += STALE_SECONDS - 60

        assert "someone" == tokens.verify(issuer.token(memory.tenant.name)).subject
        with pytest.raises(Unavailable):
            tokens.verify(issuer.token(memory.tenant.name, headers={"kid": "new"}))
        clock.now += 120
        with pytest.raises(Unavailable):
            tokens.verify(issuer.token(memory.tenant.name))

    def test_an_issuer_that_says_it_is_another_is_not_believed(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """Its document must name the issuer that was configured."""
        issuer.stated_issuer = "https://evil.example.com"

        with pytest.raises(Unavailable):
            issued.authenticate(issuer.token(memory.tenant.name))
        assert 0 == issuer.keys_asked


class TestSettings:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"oidc_issuer": "https://id.example.com"},
            {"oidc_audience": AUDIENCE},
            {"oidc_issuer": "http://id.example.com", "oidc_audience": AUDIENCE},
            {"oidc_issuer": "file:///etc/passwd", "oidc_audience": AUDIENCE},
            {"oidc_issuer": "https://id.example.com", "oidc_audience": AUDIENCE, "oidc_jwks_url": "http://x.example/k"},
        ],
    )
    def test_half_or_unsafe_settings_end_the_start(self, database: TestDatabase, wrong: dict[str, str]) -> None:
        """Keys that anybody on the way could exchange prove nothing."""
        with pytest.raises(ConfigurationError, match="GRANDBO_OIDC"):
            Grandbo.open(settings=database.settings(**wrong)).close()


class TestDoors:
    def test_http_and_mcp_take_the_same_tokens(self, issued: Grandbo, issuer: Issuer, memory: TenantMemory) -> None:
        """A good one opens both, a bad one neither."""
        at_mcp = [_mcp_headers(issuer.token(memory.tenant.name)), _mcp_headers(issuer.unsigned(memory.tenant.name))]
        good = bearer(issuer.token(memory.tenant.name))
        with client_of(issued, fresh=True) as client:
            answers = [client.post("/mcp", content=rpc("tools/list"), headers=headers) for headers in at_mcp]
            assert [200, 401] == [answer.status_code for answer in answers]
            assert 200 == client.post("/v1/recall", json={"topic": TOPIC}, headers=good).status_code
            refused = client.post("/v1/recall", json={"topic": TOPIC}, headers=bearer(issuer.unsigned("x")))
            assert 401 == refused.status_code

    def test_while_the_issuer_is_down_both_say_unavailable(
        self, issued: Grandbo, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """503 with Retry-After, at either."""
        issuer.is_down = True
        token = issuer.token(memory.tenant.name)
        with client_of(issued, fresh=True) as client:
            answers = [
                client.post("/v1/recall", json={"topic": TOPIC}, headers=bearer(token)),
                client.post("/mcp", content=rpc("tools/list"), headers=_mcp_headers(token)),
            ]

        assert [(503, "unavailable")] * 2 == [(answer.status_code, answer.json()["code"]) for answer in answers]
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)

    def test_clients_are_told_who_issues_tokens(self, issued: Grandbo, issuer: Issuer) -> None:
        """At the well-known place, which a 401 of either door points to."""
        with client_of(issued, fresh=True) as client:
            told = client.get("/.well-known/oauth-protected-resource/mcp")
            refused = [client.post("/mcp", content=rpc("tools/list")), client.post("/v1/recall", json={})]

        document = told.json()
        assert (200, "http://127.0.0.1:8420/mcp") == (told.status_code, document["resource"])
        assert [issuer.url] == [url.rstrip("/") for url in document["authorization_servers"]]
        where = 'resource_metadata="http://127.0.0.1:8420/.well-known/oauth-protected-resource/mcp"'
        assert [401, 401] == [answer.status_code for answer in refused]
        assert all(where in answer.headers["www-authenticate"] for answer in refused)

    def test_without_an_issuer_there_is_nothing_to_tell(self, grandbo: Grandbo) -> None:
        """No such address, and no hint."""
        client = client_of(grandbo)

        assert 404 == client.get("/.well-known/oauth-protected-resource/mcp").status_code
        assert "resource_metadata" not in client.post("/v1/recall", json={}).headers["www-authenticate"]


def _mcp_headers(token: str) -> dict[str, str]:
    return {**bearer(token), "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
