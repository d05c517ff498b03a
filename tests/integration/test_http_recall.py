"""`POST /v1/recall`: the answer of the one read seam, and what is no topic."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from grandbo.http.recall_schemas import AnswerDocument
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, post_raw
from tests.support.postgres import TestServer

TOPIC = "consumers lost their leases after the broker restarted"


class TestRecall:
    def test_it_is_the_library_s_answer(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The same ids in the same order with the same citations, scores and signals."""
        for _ in range(3):
            memory.record_finding(make_finding())
        memory.embed()
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/recall", json={"topic": TOPIC})

        expected = memory.query_topic(TOPIC).as_dict()
        assert 200 == answer.status_code
        assert expected["matches"] == answer.json()["matches"]
        assert expected["searched"] == answer.json()["searched"]
        assert set(expected) == set(answer.json())

    def test_it_has_the_declared_shape(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What the OpenAPI document says of an answer is all of it and nothing else."""
        memory.record_finding(make_finding())
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/recall", json={"topic": TOPIC}).json()

        assert answer == AnswerDocument.model_validate(answer).model_dump()
        assert answer["matches"]

    def test_an_empty_answer_says_why(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Nothing stored is no error, and is told apart from nothing matched."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/recall", json={"topic": TOPIC})

        assert (200, []) == (answer.status_code, answer.json()["matches"])
        assert "nothing_in_scope" == answer.json()["searched"]["empty_reason"]

    @pytest.mark.parametrize("name", ["limit", "kinds", "kind", "service", "mode"])
    def test_null_stands_for_every_optional_field(self, grandbo: Grandbo, memory: TenantMemory, name: str) -> None:
        """A client that sends null for what it leaves out is understood."""
        memory.record_finding(make_finding())
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/recall", json={"topic": TOPIC, name: None})

        assert (200, 1) == (answer.status_code, len(answer.json()["matches"]))

    @pytest.mark.parametrize(
        "given", [{"kinds": ["finding"]}, {"kind": "finding"}, {"kinds": "finding"}, {"kinds": None, "kind": "finding"}]
    )
    def test_a_kind_narrows(self, grandbo: Grandbo, memory: TenantMemory, given: dict[str, Any]) -> None:
        """As a list or as one name, under either field."""
        wanted = memory.record_finding(make_finding()).acknowledgement
        memory.record_finding(make_finding(kind="runbook"))
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post("/v1/recall", json={"topic": TOPIC, **given}).json()

        assert [str(wanted.entry_id)] == [match["entry_id"] for match in answer["matches"]]

    def test_service_limit_and_mode_narrow(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Each does what it does in the library."""
        for service in ("checkout", "checkout", "billing"):
            memory.record_finding(make_finding(service=service))
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = client.post(
            "/v1/recall", json={"topic": TOPIC, "service": "checkout", "limit": 1, "mode": "words"}
        ).json()

        assert (["checkout"], 2) == ([match["service"] for match in answer["matches"]], answer["searched"]["eligible"])
        assert ["lexical"] == answer["searched"]["signals"]

    def test_times_at_the_ends_of_the_calendar_come_back_in_any_zone_of_the_server(
        self, server: TestServer, tenant_name: str
    ) -> None:
        """What was accepted can be answered with, wherever the database believes to be."""
        first, last = "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"
        seen: list[dict[str, Any]] = []
        with server.clone() as database:
            for zone in ("America/New_York", "Pacific/Kiritimati"):
                url = make_conninfo(database.service, options=f"-c timezone={zone}")
                with Grandbo.open(settings=database.settings(database_url=url)) as opened:
                    opened.create_tenant(f"{tenant_name}-{len(seen)}")
                    memory = opened.tenant(f"{tenant_name}-{len(seen)}")
                    client = client_of(opened, token=make_token(memory, "reviewer"))
                    client.post("/v1/findings", json=make_finding(occurred_at=first, expires_at=last))
                    seen.append(client.post("/v1/recall", json={"topic": TOPIC}).json())

        assert [(first, last)] * 2 == [
            (match["occurred_at"], match["expires_at"]) for answer in seen for match in answer["matches"]
        ]


class TestRefusedRecall:
    @pytest.mark.parametrize(
        ("body", "status", "code", "field"),
        [
            ({"topic": "checkout-api"}, 422, "topic_is_slug", "topic"),
            ({"topic": "latency"}, 422, "topic_too_short", "topic"),
            ({"topic": ""}, 422, "topic_too_short", "topic"),
            ({"topic": "x y" * 3_000}, 413, "limit_exceeded", "topic"),
            ({"topic": 7}, 422, "invalid_input", "topic"),
            ({"topic": None}, 422, "invalid_input", "topic"),
            ({}, 422, "invalid_input", "topic"),
            ({"topic": "a\x00b c"}, 422, "invalid_input", "topic"),
            ({"topic": "half a pair \ud800 here"}, 422, "invalid_input", "topic"),
            ({"topic": TOPIC, "limit": 0}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": 21}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": -0.0}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": 5.0}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": "5"}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": True}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "limit": 10**60}, 422, "invalid_input", "limit"),
            ({"topic": TOPIC, "kind": "gossip"}, 422, "invalid_input", "kind"),
            ({"topic": TOPIC, "kinds": [["finding"]]}, 422, "invalid_input", "kind"),
            ({"topic": TOPIC, "kinds": ["finding"], "kind": "finding"}, 422, "invalid_input", "kind"),
            ({"topic": TOPIC, "service": ["checkout"]}, 422, "invalid_input", "service"),
            ({"topic": TOPIC, "service": "a\x00"}, 422, "invalid_input", "service"),
            ({"topic": TOPIC, "mode": "telepathy"}, 422, "invalid_input", "mode"),
            ({"topic": TOPIC, "tenant_id": "another"}, 422, "invalid_input", "tenant_id"),
            ({"topic": TOPIC, "half \ud800": 1}, 422, "invalid_input", "half \ud800"),
        ],
    )
    def test_it_is_refused_with_the_field(
        self, grandbo: Grandbo, memory: TenantMemory, body: dict[str, Any], status: int, code: str, field: str
    ) -> None:
        """Each with its own code, the field's name, and never a 500."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = post_raw(client, "/v1/recall", body)

        assert (status, code, field) == (answer.status_code, answer.json()["code"], answer.json()["field"])
        assert field == answer.json()["errors"][0]["field"]
