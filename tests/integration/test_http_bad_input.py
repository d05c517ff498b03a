"""Bodies that no honest client sends: a defined answer each, never a 5xx, nothing stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, post_raw

BOTH = pytest.mark.parametrize("route", ["/v1/findings", "/v1/recall"])
TOPIC = "consumers lost their leases after the broker restarted"


class TestNotJSON:
    @BOTH
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b" ",
            b"{",
            b'{"topic": NaN}',
            b'{"topic": [Infinity]}',
            b'{"topic": -Infinity}',
            b'{"topic": "\xff\xfe"}',
            b'\xef\xbb\xbf{"topic": "x"}',
            '{"topic": "words in another encoding"}'.encode("utf-16"),
            b'{"topic": "a raw line\nbreak"}',
            b"{'topic': 'x'}",
            b'{"topic": "x"} {}',
            b'{"topic": 0x10}',
            b"[" * 20_000,
            b'{"a":' * 10_000,
            b"1" * 10_000,
        ],
    )
    def test_it_is_refused(self, grandbo: Grandbo, memory: TenantMemory, route: str, body: bytes) -> None:
        """400 `not_json` for what is malformed, not UTF-8, not finite, or nested or long beyond reason."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = post_raw(client, route, body)

        assert (400, "not_json") == (answer.status_code, answer.json()["code"])
        assert 1 == memory.verify().head

    @BOTH
    @pytest.mark.parametrize("body", [b"[]", b"null", b"7", b'"topic"', b"1e400", b"[[[[[[]]]]]]"])
    def test_json_that_is_no_object_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, route: str, body: bytes
    ) -> None:
        """422: it could be read and does not fit."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = post_raw(client, route, body)

        assert (422, "invalid_input") == (answer.status_code, answer.json()["code"])


class TestContentType:
    @BOTH
    @pytest.mark.parametrize(
        "headers",
        [
            {"Content-Type": ""},
            {"Content-Type": "text/plain"},
            {"Content-Type": "application/x-www-form-urlencoded"},
            {"Content-Type": "multipart/form-data; boundary=x"},
            {"Content-Type": "application/json; charset=utf-16"},
            {"Content-Type": "text/json"},
            {"Content-Type": "json"},
            {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        ],
    )
    def test_another_one_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, route: str, headers: dict[str, str]
    ) -> None:
        """415, also for what a browser form could send without asking first."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = post_raw(client, route, {"topic": TOPIC}, headers)

        assert (415, "unsupported_media_type") == (answer.status_code, answer.json()["code"])

    @pytest.mark.parametrize(
        "stated", ["application/json", "Application/JSON; charset=UTF-8", "application/vnd.pager.v2+json"]
    )
    def test_json_under_any_of_its_names_is_taken(self, grandbo: Grandbo, memory: TenantMemory, stated: str) -> None:
        """Case and parameters do not matter."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        assert 200 == post_raw(client, "/v1/recall", {"topic": TOPIC}, {"Content-Type": stated}).status_code


class TestLimits:
    @pytest.mark.parametrize(("route", "limit"), [("/v1/findings", 256 * 1024), ("/v1/recall", 64 * 1024)])
    def test_a_body_over_the_limit_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, route: str, limit: int
    ) -> None:
        """413 that names the limit, whether the length is declared or the body comes in pieces without one."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        body = json.dumps({"topic": "x " * 500_000}).encode()
        pieces = (body[at : at + 10_000] for at in range(0, len(body), 10_000))

        declared = post_raw(client, route, body)
        streamed = client.post(route, content=pieces, headers={"Content-Type": "application/json"})

        for answer in (declared, streamed):
            assert (413, "limit_exceeded") == (answer.status_code, answer.json()["code"])
            assert (limit, "body") == (answer.json()["limit"], answer.json()["field"])
            assert str(limit) in answer.json()["detail"]

    def test_a_body_of_exactly_the_limit_is_read(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The limit itself is allowed."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        body = json.dumps({"topic": TOPIC}).encode()

        assert 200 == post_raw(client, "/v1/recall", body + b" " * (64 * 1024 - len(body))).status_code
        assert 413 == post_raw(client, "/v1/recall", body + b" " * (64 * 1024 - len(body) + 1)).status_code

    @pytest.mark.parametrize(
        ("overrides", "field", "limit"),
        [
            ({"title": "t" * 201}, "title", 200),
            ({"summary": "s" * 4_001}, "summary", 4_000),
            ({"body": "b" * 65_537}, "body", 65_536),
            ({"body": "é" * 32_769}, "body", 65_536),
            ({"tags": [f"t{number}" for number in range(17)]}, "tags", 16),
            ({"tags": ["t" * 65]}, "tags", 64),
            ({"evidence": [{"type": "log", "uri": "x:y"}] * 21}, "evidence", 20),
        ],
    )
    def test_a_field_over_its_limit_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, overrides: dict[str, Any], field: str, limit: int
    ) -> None:
        """413 that names field and limit; nothing is cut and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = post_raw(client, "/v1/findings", make_finding(**overrides))

        assert (413, "limit_exceeded") == (answer.status_code, answer.json()["code"])
        assert (field, limit) == (answer.json()["field"], answer.json()["limit"])
        assert 1 == memory.verify().head

    def test_many_wrong_fields_do_not_make_a_long_answer(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The first twenty are named, the rest are counted, and a long name is shortened."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        body = {**make_finding(), **{f"{number}{'x' * 900}": 1 for number in range(200)}}

        answer = post_raw(client, "/v1/findings", body)

        assert (422, 20, 180) == (
            answer.status_code,
            len(answer.json()["errors"]),
            answer.json()["errors_omitted"],
        )
        assert len(answer.content) < 6_000


class TestFindingFields:
    @pytest.mark.parametrize(
        ("overrides", "field"),
        [
            ({"title": "nul \x00 byte"}, "title"),
            ({"title": "two\nlines"}, "title"),
            ({"title": "half \ud800 pair"}, "title"),
            ({"title": "  "}, "title"),
            ({"title": ["a list"]}, "title"),
            ({"title": ...}, "title"),
            ({"summary": "half \udfff pair"}, "summary"),
            ({"body": "bell \x07"}, "body"),
            ({"service": {"name": "checkout"}}, "service"),
            ({"tags": "queue"}, "tags"),
            ({"tags": ["a\x00"]}, "tags"),
            ({"kind": "gossip"}, "kind"),
            ({"occurred_at": "2026-01-02T03:04:05"}, "occurred_at"),
            ({"occurred_at": "yesterday"}, "occurred_at"),
            ({"occurred_at": "2026-02-30"}, "occurred_at"),
            ({"occurred_at": "0001-01-01T00:00:00+23:59"}, "occurred_at"),
            ({"occurred_at": 1_767_323_045}, "occurred_at"),
            ({"confidence_bp": -0.0}, "confidence_bp"),
            ({"confidence_bp": 0.8}, "confidence_bp"),
            ({"confidence_bp": True}, "confidence_bp"),
            ({"confidence_bp": 10_001}, "confidence_bp"),
            ({"confidence_bp": 10**40}, "confidence_bp"),
            ({"confidence_bp": "8000"}, "confidence_bp"),
            ({"visibility": "everyone"}, "visibility"),
            ({"incident": "INC-1"}, "incident"),
            ({"incident": {"source": "pager"}}, "incident.id"),
            ({"incident": {"source": "pager", "id": 7}}, "incident.id"),
            ({"evidence": {"type": "log", "uri": "x:y"}}, "evidence"),
            ({"evidence": [{"type": "log", "uri": "no scheme"}]}, "evidence.0.uri"),
            ({"evidence": [{"type": "log", "uri": "x:y", "by": "me"}]}, "evidence.0.by"),
            ({"tenant_id": "another"}, "tenant_id"),
        ],
    )
    def test_it_is_refused_with_the_field(
        self, grandbo: Grandbo, memory: TenantMemory, overrides: dict[str, Any], field: str
    ) -> None:
        """422 that names the field in `field` and in `errors`, and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = post_raw(client, "/v1/findings", make_finding(**overrides))

        assert (422, "invalid_input", field) == (
            answer.status_code,
            answer.json()["code"],
            answer.json()["field"],
        )
        assert field in [error["field"] for error in answer.json()["errors"]]
        assert 1 == memory.verify().head

    def test_a_number_beyond_all_floats_is_refused(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """1e400 is JSON, and is infinity to most readers; here it is no confidence."""
        client = client_of(grandbo, token=make_token(memory, "hook"))
        body = json.dumps(make_finding(confidence_bp=8_000)).replace("8000", "1e400").encode()

        answer = post_raw(client, "/v1/findings", body)

        assert (422, "confidence_bp") == (answer.status_code, answer.json()["field"])

    @pytest.mark.parametrize("evidence", [[], [{"type": "memory", "uri": "grandbo:entry/1"}]])
    def test_a_finding_without_evidence_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, evidence: list[dict[str, str]]
    ) -> None:
        """422 `evidence_missing`: memory does not corroborate itself."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = post_raw(client, "/v1/findings", make_finding(evidence=evidence))

        assert (422, "evidence_missing") == (answer.status_code, answer.json()["code"])

    @pytest.mark.parametrize(
        "text", ["“curly” ‘quotes’", "𝔘𝔫𝔦 🎛️", "עברית rtl", "e\u0301 combining", "می\u200cخواهم", "👩\u200d💻 ❤\ufe0f"]
    )
    def test_any_text_comes_back_as_it_was_sent(self, grandbo: Grandbo, memory: TenantMemory, text: str) -> None:
        """Byte for byte, whatever the script."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        client.post("/v1/findings", json=make_finding(title=f"Broker said {text}", summary=f"{text}\n{text}"))

        match = client.post("/v1/recall", json={"topic": TOPIC}).json()["matches"][0]

        assert (f"Broker said {text}", f"{text}\n{text}") == (match["title"], match["summary"])

    @pytest.mark.parametrize(("text", "kept"), [("עברית \u202e rtl", "עברית  rtl"), ("\u200b\ufeff!", "!")])
    def test_what_nobody_sees_is_taken_out(self, grandbo: Grandbo, memory: TenantMemory, text: str, kept: str) -> None:
        """And everything else stays."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        client.post("/v1/findings", json=make_finding(title=f"Broker said {text}", summary=f"{text}\n{text}"))

        match = client.post("/v1/recall", json={"topic": TOPIC}).json()["matches"][0]

        assert (f"Broker said {kept}", f"{kept}\n{kept}") == (match["title"], match["summary"])


def _weird() -> st.SearchStrategy[Any]:
    text = st.text(st.characters(), max_size=20) | st.sampled_from(
        [
            "\x00",
            "\ud800",
            "2026-01-02T03:04:05",
            "9999-12-31T23:59:59-23:59",
            "0001-01-01",
            "grandbo:x",
            "$1",
            "%s",
            "'",
        ]
    )
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | text
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=8
    )


FINDING_FIELDS = (
    *make_finding(),
    "kind",
    "external_id",
    "ended_at",
    "valid_from",
    "expires_at",
    "visibility",
    "x\ud800",
)
RECALL_FIELDS = ("topic", "limit", "kinds", "kind", "service", "mode", "\x00")


class TestFuzz:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(changes=st.dictionaries(st.sampled_from(FINDING_FIELDS), _weird(), min_size=1, max_size=3))
    def test_a_finding_with_anything_in_its_fields(
        self, grandbo: Grandbo, memory: TenantMemory, changes: dict[str, Any]
    ) -> None:
        """It is acknowledged or refused with a problem; the server never fails."""
        client = client_of(grandbo, token=make_token(memory, "hook"))

        answer = post_raw(client, "/v1/findings", {**make_finding(), **changes})

        assert answer.status_code in (200, 201, 400, 403, 409, 413, 422), answer.text
        assert answer.status_code < 400 or answer.headers["content-type"] == "application/problem+json"

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(changes=st.dictionaries(st.sampled_from(RECALL_FIELDS), _weird(), max_size=3))
    def test_a_recall_with_anything_in_its_fields(
        self, grandbo: Grandbo, memory: TenantMemory, changes: dict[str, Any]
    ) -> None:
        """It is answered or refused with a problem; the server never fails."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answer = post_raw(client, "/v1/recall", {"topic": TOPIC, **changes})

        assert answer.status_code in (200, 400, 413, 422), answer.text
        assert answer.status_code < 400 or answer.headers["content-type"] == "application/problem+json"

    @BOTH
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(body=st.binary(max_size=60) | _weird().map(lambda value: json.dumps(value).encode("ascii")))
    def test_a_body_of_anything(self, grandbo: Grandbo, memory: TenantMemory, route: str, body: bytes) -> None:
        """Bytes, scalars, lists, objects of anything: refused, and nothing is stored."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))

        answer = post_raw(client, route, body)

        assert answer.status_code in (400, 422), answer.text
        assert 1 == memory.verify().head


class TestReasons:
    @pytest.mark.parametrize("reason", [{}, {"a": 1}, [], ["a reason"], 7, 1.5, True], ids=repr)
    def test_a_reason_that_is_no_text_is_refused(self, grandbo: Grandbo, memory: TenantMemory, reason: Any) -> None:
        """422 that names it, wherever a body has one; nothing is stored."""
        entry = memory.record_finding(make_finding()).acknowledgement
        client = client_of(grandbo, token=make_token(memory, "admin"))
        candidate = client.post("/v1/candidates", json={"candidate": make_finding(), "reason": "seen it"}).json()
        head = memory.verify().head
        at_first = {"If-Match": '"1"'}
        answers = [
            client.post("/v1/candidates", json={"candidate": make_finding(), "reason": reason}),
            client.post(
                f"/v1/candidates/{candidate['candidate_id']}/reject", json={"reason": reason}, headers=at_first
            ),
            client.post(f"/v1/entries/{entry.entry_id}/archive", json={"reason": reason}, headers=at_first),
            client.post(f"/v1/entries/{entry.entry_id}/impact/quarantine", json={"reason": reason}),
            client.patch("/v1/policy", json={"changes": {"floor": 1}, "reason": reason}, headers=at_first),
        ]

        assert [422] * 5 == [answer.status_code for answer in answers], [answer.text for answer in answers]
        assert head == memory.verify().head


class TestMethods:
    @pytest.mark.parametrize(
        ("path", "allowed"),
        [
            ("/v1/entries", "GET, POST"),
            ("/v1/policy", "GET, PATCH"),
            ("/v1/keys", "GET, POST"),
            ("/v1/recall", "POST"),
            ("/mcp", "POST"),
        ],
    )
    def test_all_methods_of_an_address_are_named(
        self, grandbo: Grandbo, memory: TenantMemory, path: str, allowed: str
    ) -> None:
        """Where another one is refused."""
        answer = client_of(grandbo, token=make_token(memory, "admin")).put(path, json={})

        assert (405, allowed) == (answer.status_code, answer.headers["allow"])
