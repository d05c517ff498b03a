"""`GET /openapi.json`: true, complete, and one with what the routes do."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from grandbo.http import schemas
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import finding as accepted
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, post_raw

TOPIC = "consumers lost their leases after the broker restarted"


class TestOpenAPI:
    @pytest.fixture
    def document(self, grandbo: Grandbo) -> dict[str, Any]:
        """The document as it is served."""
        served: dict[str, Any] = client_of(grandbo).get("/openapi.json").json()
        return served

    def test_every_error_is_declared_as_a_problem_and_as_nothing_else(self, document: dict[str, Any]) -> None:
        """The generator's own kind of error is gone, its schemas too."""
        operations = [operation for path in document["paths"].values() for operation in path.values()]
        contents = {
            tuple(response["content"])
            for operation in operations
            for status, response in operation["responses"].items()
            if status >= "400"
        }

        assert "3.1.0" == document["openapi"]
        assert {("application/problem+json",)} == contents
        assert not [name for name in document["components"]["schemas"] if "ValidationError" in name]

    def test_headers_that_answers_carry_are_declared(self, document: dict[str, Any]) -> None:
        """The request id everywhere; how to authenticate with a 401; when to try again with a 503."""
        responses = [
            (status, set(response["headers"]))
            for path in document["paths"].values()
            for operation in path.values()
            for status, response in operation["responses"].items()
        ]

        assert all("X-Request-Id" in headers for _, headers in responses)
        assert all("WWW-Authenticate" in headers for status, headers in responses if status == "401")
        assert all("Retry-After" in headers for status, headers in responses if status == "503")

    def test_every_reference_leads_somewhere(self, document: dict[str, Any]) -> None:
        """And every schema is used."""
        names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))

        assert names == set(document["components"]["schemas"])

    def test_the_routes_under_v1_need_a_bearer_token_and_no_others_do(self, document: dict[str, Any]) -> None:
        """As they do in fact."""
        secured = {
            path
            for path, methods in document["paths"].items()
            for operation in methods.values()
            if operation.get("security")
        }

        # What a tool delivers is signed, and carries no token.
        open_doors = {"/v1/hooks/{source}/{hook_id}"}
        assert {path for path in document["paths"] if path.startswith("/v1/")} - open_doors == secured
        assert {"/v1/findings", "/v1/recall"} < secured
        assert {"bearer": "bearer"} == {
            name: scheme["scheme"] for name, scheme in document["components"]["securitySchemes"].items()
        }

    def test_statuses_that_occur_are_declared(
        self, grandbo: Grandbo, memory: TenantMemory, document: dict[str, Any]
    ) -> None:
        """Each answer of a walk through the refusals is in the document, with its media type."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        poor = client_of(grandbo, token=make_token(memory, "hook"))
        finding = make_finding()
        walk = [
            ("/v1/findings", client.post("/v1/findings", json=finding)),
            ("/v1/findings", client.post("/v1/findings", json=finding)),
            ("/v1/findings", client.post("/v1/findings", json=make_finding(incident=...))),
            ("/v1/findings", client.post("/v1/findings", json=make_finding(visibility="admin"))),
            ("/v1/findings", client.post("/v1/findings", json=make_finding(title="x" * 300))),
            ("/v1/findings", client.post("/v1/findings", json={})),
            ("/v1/findings", client.post("/v1/findings", content=b"{}")),
            ("/v1/recall", client.post("/v1/recall", json={"topic": TOPIC})),
            ("/v1/recall", poor.post("/v1/recall", json={"topic": TOPIC})),
            ("/v1/recall", client_of(grandbo).post("/v1/recall", json={"topic": TOPIC})),
            ("/v1/recall", post_raw(client, "/v1/recall", b"{")),
            ("/v1/recall", client.post("/v1/recall", json={"topic": TOPIC}, headers={"Host": "evil.example"})),
            ("/readyz", client.get("/readyz")),
            ("/livez", client.get("/livez")),
            ("/metrics", client.get("/metrics")),
        ]

        for path, answer in walk:
            (operation,) = document["paths"][path].values()
            declared = operation["responses"][str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] in declared, (path, answer.status_code)

    def test_the_described_finding_is_the_accepted_one(self) -> None:
        """The description names the fields that `parse_finding` takes, no more and no fewer."""
        for described, taken in (
            (schemas.FindingDocument, accepted.Finding),
            (schemas.EvidenceDocument, accepted.EvidenceItem),
            (schemas.IncidentDocument, accepted.Incident),
        ):
            assert set(taken.model_fields) == set(described.model_fields)
            assert {name for name, field in taken.model_fields.items() if field.is_required()} == {
                name for name, field in described.model_fields.items() if field.is_required()
            }
