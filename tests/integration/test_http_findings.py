"""`POST /v1/findings`: what is acknowledged, what is a retry, what needs a key."""

from __future__ import annotations

import uuid

import pytest

from grandbo.library import Grandbo, TenantMemory
from grandbo.types import derived_id
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token


class TestRecordFinding:
    def test_a_finding_is_acknowledged_and_a_retry_gets_the_same(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """201 when it was appended; 200 with the replay header and the same body afterwards."""
        client = client_of(grandbo, token=make_token(memory, "hook", kind="hook"))
        finding = make_finding()

        first = client.post("/v1/findings", json=finding)
        again = client.post("/v1/findings", json=finding)

        assert (201, 200) == (first.status_code, again.status_code)
        assert {"entry_id", "revision", "position", "hash", "created"} == set(first.json())
        assert first.json() == again.json()
        assert (None, "true") == (
            first.headers.get("idempotency-replayed"),
            again.headers.get("idempotency-replayed"),
        )
        assert first.json()["position"] == memory.verify().head

    def test_it_is_found_by_the_next_request(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What was acknowledged over HTTP is recalled at once, over HTTP and in the library alike."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        entry_id = client.post("/v1/findings", json=make_finding()).json()["entry_id"]

        answer = client.post("/v1/recall", json={"topic": "consumers lost their leases"}).json()

        assert [entry_id] == [match["entry_id"] for match in answer["matches"]]
        assert [entry_id] == [
            str(match.entry_id) for match in memory.query_topic("consumers lost their leases").matches
        ]

    def test_another_incident_with_the_same_claim_supports_the_entry(
        self, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """Something was appended, so it is 201, and it is not a new entry."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        finding = make_finding()
        first = client.post("/v1/findings", json=finding).json()

        other = client.post("/v1/findings", json={**finding, "incident": {"source": "pager", "id": "ANOTHER"}})

        assert (201, False) == (other.status_code, other.json()["created"])
        assert (first["entry_id"], 2) == (other.json()["entry_id"], other.json()["revision"])

    def test_a_finding_that_adds_nothing_is_200_without_a_replay(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Under a new key, what the incident taught already is known: nothing is appended, nothing is replayed."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        finding = make_finding()
        first = client.post("/v1/findings", json=finding).json()

        known = client.post("/v1/findings", json=finding, headers={"Idempotency-Key": "another key"})

        assert (200, None) == (known.status_code, known.headers.get("idempotency-replayed"))
        assert (first["entry_id"], first["position"], False) == (
            known.json()["entry_id"],
            known.json()["position"],
            known.json()["created"],
        )

    def test_null_stands_for_every_optional_field(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A client that sends null for what it leaves out is understood."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        optional = (
            "summary", "body", "kind", "service", "tags", "external_id", "occurred_at", "ended_at", "valid_from",
            "expires_at", "confidence_bp", "visibility", "incident",
        )  # fmt: skip
        evidence = [{"type": "log", "uri": "https://logs.example.com/1", "label": None}]
        finding = {**make_finding(evidence=evidence), **dict.fromkeys(optional)}

        answer = client.post("/v1/findings", json=finding, headers={"Idempotency-Key": "nulls"})

        assert 201 == answer.status_code, answer.text

    def test_null_is_no_way_to_omit_what_is_required(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A required field that is null is missing, and the answer names it; an unknown one stays unknown."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        missing = client.post("/v1/findings", json=make_finding(title=None))
        unknown = client.post("/v1/findings", json=make_finding(colour=None))

        assert (422, "title") == (missing.status_code, missing.json()["field"])
        assert (422, "colour") == (unknown.status_code, unknown.json()["field"])


class TestIdempotencyKey:
    def test_it_is_required_where_the_finding_names_no_incident(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Without either, a retry could not be told from a second finding."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = client.post("/v1/findings", json=make_finding(incident=...))

        assert (400, "idempotency_key_missing") == (answer.status_code, answer.json()["code"])
        assert 1 == memory.verify().head

    @pytest.mark.parametrize(
        "key", ["0f8a4a52-6f0e-4d0c-9a53-7a2f4e6f1c11", str(uuid.uuid5(uuid.NAMESPACE_URL, "x")), "close of INC-7", "~"]
    )
    def test_the_same_key_and_content_is_the_first_acknowledgement(
        self, grandbo: Grandbo, memory: TenantMemory, key: str
    ) -> None:
        """A UUID or a plain string, in the quotes of a structured field or not."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        finding = make_finding(incident=...)

        first = client.post("/v1/findings", json=finding, headers={"Idempotency-Key": key})
        again = client.post("/v1/findings", json=finding, headers={"Idempotency-Key": f'"{key}"'})

        assert (201, 200) == (first.status_code, again.status_code), first.text
        assert first.json() == again.json()

    def test_the_same_key_with_other_content_is_refused(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """409, and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        headers = {"Idempotency-Key": "one key"}
        client.post("/v1/findings", json=make_finding(), headers=headers)

        other = client.post("/v1/findings", json=make_finding(), headers=headers)

        assert (409, "command_reused") == (other.status_code, other.json()["code"])
        assert 2 == memory.verify().head

    def test_it_belongs_to_the_tenant(self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """Two tenants that use the same key know nothing of each other."""
        finding = make_finding(incident=...)
        headers = {"Idempotency-Key": "shared"}

        answers = [
            client_of(grandbo, token=make_token(tenant, "hook")).post("/v1/findings", json=finding, headers=headers)
            for tenant in (memory, other_memory)
        ]

        assert [201, 201] == [answer.status_code for answer in answers]
        assert answers[0].json()["entry_id"] != answers[1].json()["entry_id"]

    def test_a_caller_cannot_take_the_id_of_a_command_of_grandbo(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Grandbo's own ids are derived, version 5, and could be guessed; such a key is made into another id."""
        own = derived_id("tenant_created", str(memory.tenant_id))
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = client.post("/v1/findings", json=make_finding(), headers={"Idempotency-Key": str(own)})

        assert 201 == answer.status_code, answer.text

    @pytest.mark.parametrize("key", ["", " ", "x" * 201, "tab\there", "caf\u00e9"])
    def test_a_malformed_key_is_refused(self, grandbo: Grandbo, memory: TenantMemory, key: str) -> None:
        """400, with what a key may be."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = client.post("/v1/findings", json=make_finding(), headers=[(b"Idempotency-Key", key.encode("latin-1"))])

        assert (400, "idempotency_key_invalid") == (answer.status_code, answer.json()["code"])

    def test_two_keys_are_none(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Which of the two is meant is not for the server to guess."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = client.post(
            "/v1/findings", json=make_finding(), headers=[("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
        )

        assert (400, "idempotency_key_invalid") == (answer.status_code, answer.json()["code"])
