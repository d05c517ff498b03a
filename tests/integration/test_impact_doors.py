"""The blast radius at the command line and over HTTP: the library's answers, declared shapes, typed refusals."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from grandbo.http import impact_schemas as schemas
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.http import client_of, make_token, post_raw
from tests.support.impacts import TOPIC, citing, record, someone, statuses
from tests.support.postgres import TestDatabase

URI = "https://logs.example.com/forged"


@pytest.fixture
def pair(memory: TenantMemory) -> list[UUID]:
    """An entry of the forged source, told to someone, and one that rests on it."""
    one = record(memory, evidence=citing(URI))
    someone(memory, "investigator").query_topic(TOPIC, incident=("pager", "INC-1"))
    memory._grandbo.receipts.flush()  # another process sees what is written, not what waits in this one
    return [one, record(memory, evidence=citing(one))]


@pytest.fixture
def client(grandbo: Grandbo, memory: TenantMemory) -> TestClient:
    """Someone who may look and govern, with the tiers of the investigator who was told."""
    return client_of(grandbo, token=make_token(memory, "reviewer"))


class TestCommandLine:
    @pytest.fixture
    def cli(self, database: TestDatabase, tenant_name: str) -> Cli:
        """The command line on the same database."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=tenant_name)

    def test_of_an_entry(self, memory: TenantMemory, pair: list[UUID], cli: Cli) -> None:
        """Looked at, put away and let out; for people the lines name members, reasons and who was told."""
        looked = cli("entry", "impact", pair[0], "--json").document
        lines = cli("entry", "impact", pair[0]).out
        put_away = cli("entry", "impact", pair[0], "--quarantine", "--reason", "forged", "--json").document
        away = statuses(memory, *pair)
        again = cli("entry", "impact", pair[0], "--quarantine", "--reason", "forged")
        let_out = cli("entry", "impact", pair[0], "--release", "--reason", "it was not")

        assert memory.entry_impact(pair[0])["receipts"] == looked["receipts"]
        assert [str(one) for one in pair] == [member["entry_id"] for member in looked["members"]]
        assert f"evidence  {pair[0]}" in lines
        assert "2 entries rest on it" in lines
        assert "1 answers held any of them:" in lines
        assert looked["receipts"]["items"][0]["receipt_id"] in lines
        assert (True, ["quarantined"] * 2) == (put_away["appended"], away)
        assert (0, True) == (again.code, "Nothing to change." in again.out)
        assert f"{pair[1]}  was in quarantine already" in again.out
        assert (0, ["published"] * 2) == (let_out.code, statuses(memory, *pair))
        assert f"{pair[1]}/3@" in let_out.out

    def test_of_a_source(self, memory: TenantMemory, pair: list[UUID], cli: Cli) -> None:
        """The same, from the URI."""
        looked = cli("source", "impact", URI, "--json").document
        put_away = cli("source", "impact", URI, "--quarantine", "--reason", "forged", "--json").document
        away = statuses(memory, *pair)
        let_out = cli("source", "impact", URI, "--release", "--reason", "it was not", "--json").document

        assert ({"uri": URI}, 2) == (looked["seed"], len(looked["members"]))
        assert (2, ["quarantined"] * 2) == (len(put_away["quarantined"]), away)
        assert {"published"} == {item["status"] for item in let_out["released"]} == set(statuses(memory, *pair))

    @pytest.mark.parametrize(
        ("options", "code", "error"),
        [
            (["--quarantine"], 2, "invalid_input"),
            (["--release"], 2, "invalid_input"),
            (["--reason", "r"], 2, "invalid_input"),
            (["--quarantine", "--release", "--reason", "r"], 2, "invalid_input"),
            (["--quarantine", "--reason", " "], 2, "invalid_input"),
        ],
    )
    def test_what_does_not_fit_together_is_refused(
        self, memory: TenantMemory, pair: list[UUID], cli: Cli, options: list[str], code: int, error: str
    ) -> None:
        """A reason goes with a change, and there is one change at a time; nothing is written."""
        head = memory.verify().head
        for named in (("entry", "impact", str(pair[0])), ("source", "impact", URI)):
            done = cli(*named, *options, "--json")
            assert (code, error) == (done.code, done.error["code"])
        assert head == memory.verify().head

    def test_what_is_not_there(self, memory: TenantMemory, cli: Cli) -> None:
        """An id that names nothing, and no id at all, are the same; a source that nothing names has no members."""
        for named in (str(uuid.uuid4()), "no-id"):
            done = cli("entry", "impact", named, "--json")
            assert (5, "not_found") == (done.code, done.error["code"])
        assert 2 == cli("source", "impact", "no-scheme").code
        assert "0 entries rest on it" in cli("source", "impact", URI).out


class TestHttp:
    def test_to_look_gives_what_the_library_gives(
        self, memory: TenantMemory, pair: list[UUID], client: TestClient
    ) -> None:
        """In the declared shape, from either side."""
        entry = client.get(f"/v1/entries/{pair[0]}/impact").json()
        source = client.post("/v1/sources/impact", json={"uri": URI}).json()

        assert memory.entry_impact(pair[0]) == entry
        assert memory.source_impact(URI) == source
        for found in (entry, source):
            assert schemas.ImpactDocument.model_validate(found).model_dump() == found
            assert 2 == len(found["members"])

    @pytest.mark.parametrize("side", ["entry", "source"])
    def test_round_trip(self, memory: TenantMemory, pair: list[UUID], client: TestClient, side: str) -> None:
        """Away and back, each retried with its key: the first acknowledgement again, and nothing more."""
        path, named = {
            "entry": (f"/v1/entries/{pair[0]}/impact", {}),
            "source": ("/v1/sources/impact", {"uri": URI}),
        }[side]
        body, key = {**named, "reason": "forged"}, {"Idempotency-Key": "a key of the caller's own"}

        first = client.post(f"{path}/quarantine", json=body, headers=key)
        again = client.post(f"{path}/quarantine", json=body, headers=key)
        reused = client.post(f"{path}/quarantine", json={**body, "reason": "another"}, headers=key)
        away, head = statuses(memory, *pair), memory.verify().head
        released = client.post(f"{path}/release", json=body)

        assert (200, 200, 409, 200) == tuple(answer.status_code for answer in (first, again, reused, released)), (
            reused.text
        )
        assert schemas.ImpactQuarantineDocument.model_validate(first.json()).model_dump() == first.json()
        assert schemas.ImpactQuarantineDocument.model_validate(again.json()).model_dump() == again.json()
        assert schemas.ImpactReleaseDocument.model_validate(released.json()).model_dump() == released.json()
        assert {**first.json(), "appended": False, "left": None} == again.json()
        assert (None, "true") == tuple(answer.headers.get("idempotency-replayed") for answer in (first, again))
        assert "command_reused" == reused.json()["code"]
        assert (["quarantined"] * 2, first.json()["quarantined"][-1]["position"]) == (away, head)
        assert ["published"] * 2 == statuses(memory, *pair)

    @pytest.mark.parametrize(
        ("path", "body", "status", "code"),
        [
            ("/v1/entries/{id}/impact/quarantine", {}, 422, "invalid_input"),
            ("/v1/entries/{id}/impact/quarantine", {"reason": ""}, 422, "invalid_input"),
            ("/v1/entries/{id}/impact/quarantine", {"reason": 5}, 422, "invalid_input"),
            ("/v1/entries/{id}/impact/quarantine", {"reason": "\ud800"}, 422, "invalid_input"),
            ("/v1/entries/{id}/impact/quarantine", {"reason": "r", "uri": URI}, 422, "invalid_input"),
            ("/v1/entries/{id}/impact/quarantine", [], 422, "invalid_input"),
            ("/v1/entries/{id}/impact/release", {"reason": "x" * 1_001}, 413, "limit_exceeded"),
            ("/v1/entries/{id}/impact/release", b"{", 400, "not_json"),
            ("/v1/sources/impact", {}, 422, "invalid_input"),
            ("/v1/sources/impact", {"uri": None}, 422, "invalid_input"),
            ("/v1/sources/impact", {"uri": {}}, 422, "invalid_input"),
            ("/v1/sources/impact", {"uri": "no-scheme"}, 422, "invalid_input"),
            ("/v1/sources/impact", {"uri": "x:\u0000"}, 422, "invalid_input"),
            ("/v1/sources/impact", {"uri": "x:" + "y" * 2_000}, 413, "limit_exceeded"),
            ("/v1/sources/impact", {"uri": URI, "reason": "r"}, 422, "invalid_input"),
            ("/v1/sources/impact", "text", 422, "invalid_input"),
            ("/v1/sources/impact/quarantine", {"uri": URI}, 422, "invalid_input"),
            ("/v1/sources/impact/release", {"reason": "r"}, 422, "invalid_input"),
            ("/v1/sources/impact/release", {"uri": [], "reason": "r"}, 422, "invalid_input"),
        ],
    )
    def test_what_does_not_fit_is_a_problem(
        self, memory: TenantMemory, pair: list[UUID], client: TestClient, path: str, body: Any, status: int, code: str
    ) -> None:
        """With its status and code, and nothing is written."""
        head = memory.verify().head
        answer = post_raw(client, path.format(id=pair[0]), body)

        assert (status, code) == (answer.status_code, answer.json()["code"]), answer.text
        assert head == memory.verify().head

    def test_foreign_absent_and_higher_entries_are_one_and_the_same(
        self, memory: TenantMemory, other_memory: TenantMemory, client: TestClient
    ) -> None:
        """404 with the same problem, to the letter, by each of the routes; so for what is no id."""
        hidden, foreign = record(memory, visibility="admin"), record(other_memory)
        seen: dict[str, set[str]] = {"": set(), "/quarantine": set(), "/release": set()}
        for named in (hidden, foreign, uuid.uuid4(), "x", "%00"):
            path = f"/v1/entries/{named}/impact"
            for rest in seen:
                answer = client.get(path) if not rest else client.post(path + rest, json={"reason": "r"})
                problem = {key: value for key, value in answer.json().items() if key != "request_id"}
                seen[rest].add(f"{answer.status_code} {problem}")

        assert {1} == {len(answers) for answers in seen.values()}
        assert {"404"} == {text[:3] for answers in seen.values() for text in answers}

    def test_who_may(self, grandbo: Grandbo, memory: TenantMemory, pair: list[UUID]) -> None:
        """Auditors look; to change needs who governs; without a token nobody."""
        auditor = client_of(grandbo, token=make_token(memory, "auditor"))
        investigator = client_of(grandbo, token=make_token(memory, "investigator"))
        path = f"/v1/entries/{pair[0]}/impact"

        assert [200, 200, 403, 403, 403, 403, 401] == [
            answer.status_code
            for answer in (
                auditor.get(path),
                auditor.post("/v1/sources/impact", json={"uri": URI}),
                auditor.post(f"{path}/quarantine", json={"reason": "r"}),
                auditor.post("/v1/sources/impact/release", json={"uri": URI, "reason": "r"}),
                investigator.get(path),
                investigator.post("/v1/sources/impact", json={"uri": URI}),
                client_of(grandbo).get(path),
            )
        ]

    def test_the_routes_are_documented(self, client: TestClient) -> None:
        """With their bodies, their answers and the key of a retry; the URI is in no path and no query."""
        paths = client.get("/openapi.json").json()["paths"]
        changes = [path for path in paths if "/impact/" in path]

        assert {"/v1/entries/{entry_id}/impact", "/v1/sources/impact"} < paths.keys()
        assert 4 == len(changes)
        for path in changes:
            operation = paths[path]["post"]
            assert "Idempotency-Key" in {item["name"] for item in operation["parameters"]}
            assert "$ref" in operation["responses"]["200"]["content"]["application/json"]["schema"]
        for path in ("/v1/sources/impact", "/v1/sources/impact/quarantine", "/v1/sources/impact/release"):
            assert not {"uri"} & {item["name"] for item in paths[path]["post"].get("parameters", [])}
