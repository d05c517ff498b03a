"""`/v1/events`, `/v1/audit/verify` and `/v1/audit/checkpoints`: the library's answers, for those who may audit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from grandbo.events import notes
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase


@pytest.fixture(scope="module")
def keeper(database: TestDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grandbo]:
    """The shared database, served by someone with a home for the notary's key."""
    with Grandbo.open(settings=database.settings(home=tmp_path_factory.mktemp("notary"))) as opened:
        yield opened


@pytest.fixture
def kept(keeper: Grandbo, tenant_name: str) -> TenantMemory:
    """A tenant with three events."""
    keeper.create_tenant(tenant_name)
    memory = keeper.tenant(tenant_name, principal="human:ada")
    memory.record_finding(make_finding())
    memory.record_finding(make_finding())
    return memory


class TestEvents:
    def test_pages_are_the_library_s(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """`next` leads on from page to page until it is null."""
        client = client_of(keeper, token=make_token(kept, "auditor"))

        first = client.get("/v1/events", params={"limit": 2}).json()
        second = client.get("/v1/events", params={"limit": 2, "after": first["next"]}).json()

        assert list(kept.events()) == first["events"] + second["events"]
        assert (2, None) == (first["next"], second["next"])

    def test_filters_narrow(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """Actor, type, entry and time, as the library has them."""
        client = client_of(keeper, token=make_token(kept, "auditor"))
        last = list(kept.events())[-1]
        asked = {
            "actor": last["principal"],
            "type": "entry_recorded",
            "entry": last["stream_id"],
            "since": last["recorded_at"],
            "bodies": True,
        }

        events = client.get("/v1/events", params=asked).json()["events"]

        assert [(3, "kept")] == [(event["position"], event["body_state"]) for event in events]

    @pytest.mark.parametrize(
        "query",
        [
            "actor=ada",
            "actor=human:x%00",
            "type=x%00",
            "entry=x",
            "since=soon",
            "until=2026-01-01T00:00:00",
            "after=-1",
            f"after={2**80}",
            "limit=0",
            "limit=1001",
            "bodies=x",
        ],
    )
    def test_a_wrong_filter_is_a_problem(self, keeper: Grandbo, kept: TenantMemory, query: str) -> None:
        """422, which names it; a name is no actor here, because it would stand in the URL."""
        answer = client_of(keeper, token=make_token(kept, "auditor")).get(f"/v1/events?{query}")

        assert (422, "application/problem+json") == (answer.status_code, answer.headers["content-type"])


class TestAudit:
    def test_verify(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """The command's answer, for the caller's own tenant."""
        client = client_of(keeper, token=make_token(kept, "auditor"))

        whole, part = client.get("/v1/audit/verify"), client.get("/v1/audit/verify?from=3")

        assert {"ok": True, "tenants": [kept.verify().as_dict()]} == whole.json()
        assert 1 == part.json()["tenants"][0]["events"]
        assert 422 == client.get("/v1/audit/verify?from=4").status_code

    def test_a_checkpoint_is_made_once(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """201 and then 200, with a note that the notary's key opens."""
        client = client_of(keeper, token=make_token(kept, "auditor"))

        made, again = client.post("/v1/audit/checkpoints"), client.post("/v1/audit/checkpoints?quick=true")

        public = notes.known_public_key(keeper.settings.home)
        assert public is not None
        assert (201, 200) == (made.status_code, again.status_code)
        assert made.json()["note"] == again.json()["note"]
        assert 3 == notes.open_checkpoint(made.json()["note"], made.json()["origin"], public).size

    @pytest.mark.parametrize(
        ("method", "path"), [("GET", "/v1/events"), ("GET", "/v1/audit/verify"), ("POST", "/v1/audit/checkpoints")]
    )
    def test_who_may_not(self, keeper: Grandbo, kept: TenantMemory, method: str, path: str) -> None:
        """An investigator is told so; without a credential nobody learns anything."""
        poor = client_of(keeper, token=make_token(kept, "investigator"))

        assert (403, 401) == (
            poor.request(method, path).status_code,
            client_of(keeper).request(method, path).status_code,
        )

    def test_answers_have_the_declared_fields(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """What the OpenAPI document requires is what comes."""
        client = client_of(keeper, token=make_token(kept, "auditor"))
        paths = json.loads(client.get("/openapi.json").content)["paths"]

        for method, path in (("get", "/v1/events"), ("get", "/v1/audit/verify"), ("post", "/v1/audit/checkpoints")):
            answer = client.request(method, path)
            schema = paths[path][method]["responses"][str(answer.status_code)]["content"]["application/json"]["schema"]

            assert set(schema["required"]) == set(answer.json())
        event = client.get("/v1/events").json()["events"][0]
        page = paths["/v1/events"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert set(page["properties"]["events"]["items"]["required"]) == set(event)
