"""The door of the tools: what is taken in, once, from whoever has the hook's secret; and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from freezegun import freeze_time
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from grandbo.errors import InvalidInput, NotFound, Unauthenticated
from grandbo.hooks import signatures
from grandbo.hooks.sources import SOURCES
from grandbo.http import build_app
from grandbo.http.app import DELIVERY_LIMIT_BYTES
from grandbo.library import Grandbo, TenantMemory
from grandbo.workers import caretaker
from tests.support.hooks import Tool, make_tool, payload
from tests.support.http import BASE_URL, client_of, running_http
from tests.support.postgres import TestDatabase

BODY = json.dumps(payload("resolved")).encode()


def _as_value(text: str) -> str:
    """What may stand in a header: no control character."""
    return "".join(char for char in text if char.isprintable())


@pytest.fixture
def tool(grandbo: Grandbo, memory: TenantMemory) -> Tool:
    """A tool with a hook of its own."""
    return make_tool(grandbo, memory)


@pytest.fixture
def client(grandbo: Grandbo) -> TestClient:
    """The service, without a bearer token."""
    return client_of(grandbo)


class TestDoor:
    def test_a_delivery_is_stored_and_mapped_later(self, tool: Tool, client: TestClient) -> None:
        """202 with an id; nothing is mapped in the request."""
        answer = tool.post(client, BODY)

        assert (202, False) == (answer.status_code, answer.json()["duplicate"])
        (kept,) = tool.memory.inbox()["deliveries"]
        assert (answer.json()["delivery_id"], "received", len(BODY)) == (
            kept["delivery_id"],
            kept["state"],
            kept["bytes"],
        )
        assert [] == tool.memory.candidates()
        assert (1, 0) == (tool.memory.map_deliveries().mapped, tool.memory.map_deliveries().total)
        assert 1 == len(tool.memory.candidates())

    def test_what_is_not_genuine_is_refused_alike(
        self, tool: Tool, client: TestClient, other_memory: TenantMemory
    ) -> None:
        """Unknown, forged, stale, tampered, doubled, from another hook: one answer, and no row."""
        other = make_tool(tool.grandbo, other_memory)
        good = tool.signed(BODY)
        stale = tool.signed(BODY, at=datetime.now(UTC) - timedelta(minutes=6))
        ahead = tool.signed(BODY, at=datetime.now(UTC) + timedelta(minutes=6))
        unknown = f"/v1/hooks/grandbo/{tool.memory.tenant_id.hex}{'0' * 16}"
        tries: list[tuple[str, bytes, Any]] = [
            (tool.hook.path, BODY + b" ", good),
            (tool.hook.path, BODY, {}),
            (tool.hook.path, BODY, stale),
            (tool.hook.path, BODY, ahead),
            (tool.hook.path, BODY, other.signed(BODY)),
            (tool.hook.path, BODY, {**good, "webhook-signature": "v1,a,b"}),
            (tool.hook.path, BODY, {**good, "webhook-signature": "ä".encode()}),
            (tool.hook.path, BODY, [*good.items(), ("webhook-signature", good["webhook-signature"])]),
            (tool.hook.path, b"\xff" + BODY, good),
            (other.hook.path, BODY, good),
            (unknown, BODY, good),
            ("/v1/hooks/grandbo/nobody", BODY, good),
            (f"/v1/hooks/no-such-tool/{tool.hook.hook_id}", BODY, good),
        ]

        answers = [client.post(path, content=body, headers=headers) for path, body, headers in tries]

        assert [401] * len(tries) == [answer.status_code for answer in answers]
        told = [{name: value for name, value in answer.json().items() if name != "request_id"} for answer in answers]
        assert [told[0]] * len(tries) == told
        assert [[], []] == [memory.inbox()["deliveries"] for memory in (tool.memory, other_memory)]

    def test_a_hundred_at_once_are_one(self, tool: Tool) -> None:
        """Identical deliveries at the same time are one row; each is told its id."""
        headers = tool.signed(BODY, delivery="the-same")
        with running_http(tool.grandbo) as server, ThreadPoolExecutor(20) as many:
            replies = list(
                many.map(lambda _: server.send("POST", tool.hook.path, body=BODY, headers=headers), range(100))
            )

        assert {202} == {reply.status for reply in replies}
        assert 1 == len({reply.json()["delivery_id"] for reply in replies})
        assert 99 == sum(reply.json()["duplicate"] for reply in replies)
        assert 1 == len(tool.memory.inbox()["deliveries"])
        tool.memory.map_deliveries()
        assert 1 == len(tool.memory.candidates())

    def test_a_retry_is_signed_anew_and_is_the_same(self, tool: Tool, client: TestClient) -> None:
        """The sender's id tells, not the time of the signature; what was mapped is not mapped again."""
        first = tool.post(client, BODY, tool.signed(BODY, delivery="one")).json()
        tool.memory.map_deliveries()
        later = datetime.now(UTC) + timedelta(minutes=2)
        with freeze_time(later):
            again = tool.post(client, BODY, tool.signed(BODY, delivery="one")).json()

        assert (first["delivery_id"], True) == (again["delivery_id"], again["duplicate"])
        assert 0 == tool.memory.map_deliveries().total

    def test_two_secrets_work_while_one_is_changed(self, tool: Tool, client: TestClient) -> None:
        """The old one goes on after a rotation, until it is not kept; the one before that does not."""

        def status(secret: str) -> int:
            body = json.dumps(payload("updated", summary=secret)).encode()
            headers = signatures.sign("standard-webhooks", body, secret[-8:], secret, datetime.now(UTC))
            return int(tool.post(client, body, headers).status_code)

        second = tool.memory.rotate_hook(tool.hook.hook_id)[1]
        assert [202, 202] == [status(secret) for secret in (tool.secret, second)]
        third = tool.memory.rotate_hook(tool.hook.hook_id)[1]
        assert [401, 202, 202] == [status(secret) for secret in (tool.secret, second, third)]
        last = tool.memory.rotate_hook(tool.hook.hook_id, keep_previous=False)[1]
        assert [401, 401, 202] == [status(secret) for secret in (second, third, last)]

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            (b"", "not_json"),
            (b"no json", "not_json"),
            (b"[" * 100_000, "not_json"),
            (b"[]", "unmappable"),
            (b'{"event": "resolved"}', "unmappable"),
            (b'{"event": "resolved", "incident_id": "a\\u0000b"}', "unmappable"),
            (b'{"event": "resolved", "incident_id": "\\ud800"}', "unmappable"),
            (b'{"event": "resolved", "incident_id": 7, "finding": []}', "unmappable"),
        ],
    )
    def test_what_cannot_be_mapped_is_taken_in_all_the_same(
        self, tool: Tool, client: TestClient, body: bytes, code: str
    ) -> None:
        """2xx, whatever the body is: a refusal would only switch the sender off. It waits as dead, for a person."""
        answer = client.post(tool.hook.path, content=body, headers={"Content-Type": "text/plain", **tool.signed(body)})
        assert 202 == answer.status_code

        assert 1 == tool.memory.map_deliveries().dead
        (kept,) = tool.memory.inbox(state="dead")["deliveries"]
        assert code == kept["error_code"]

    @pytest.mark.parametrize(
        ("source", "body", "headers"),
        [
            ("pagerduty", b"\xff\xfe no UTF-8", {}),
            ("pagerduty", gzip.compress(b"0" * 100_000_000), {"Content-Encoding": "gzip"}),
            ("pagerduty", b'{"a":' * 100_000, {}),
            ("alertmanager", b"\xff\xfe no UTF-8", {"Content-Type": "text/plain"}),
            ("alertmanager", gzip.compress(b"0" * 100_000_000), {"Content-Encoding": "gzip"}),
        ],
        ids=["no-utf8", "bomb", "deep", "no-utf8-unsigned", "bomb-unsigned"],
    )
    def test_bytes_of_any_kind_are_taken_in_and_never_unpacked(
        self, grandbo: Grandbo, memory: TenantMemory, client: TestClient, source: str, body: bytes, headers: Any
    ) -> None:
        """From whoever has the secret; kept as they came, byte for byte, and dead once somebody tried to read them."""
        hook, secret = memory.create_hook(source, "n")
        signed = signatures.sign(SOURCES[source].signature, body, "one", secret, datetime.now(UTC))

        assert 202 == client.post(hook.path, content=body, headers={**headers, **signed}).status_code
        assert 1 == memory.map_deliveries().dead
        (kept,) = memory.inbox()["deliveries"]
        assert ("not_json", len(body)) == (kept["error_code"], kept["bytes"])

    def test_two_mebibytes_are_refused_as_they_stream(self, tool: Tool) -> None:
        """Without a word of their length, too: 413 at the limit, and no row."""

        def pieces() -> Iterator[bytes]:
            for _ in range(32):
                yield b"x" * 65_536

        answer = client_of(tool.grandbo).post(tool.hook.path, content=pieces())
        assert (413, []) == (answer.status_code, tool.memory.inbox()["deliveries"])

    def test_an_unknown_event_is_ignored(self, tool: Tool) -> None:
        """Taken in, and said to be nothing to remember."""
        found = tool.told("renamed")

        assert ("ignored", "unknown_event") == (found["state"], found["note"])

    def test_bodies_have_a_limit(self, tool: Tool, client: TestClient) -> None:
        """413 before any signature is looked at; up to the limit it is kept byte for byte."""
        full = json.dumps(payload("resolved", body="")).encode()
        full = full.replace(b'"body": ""', b'"body": "' + b"x" * (DELIVERY_LIMIT_BYTES - len(full)) + b'"')
        assert DELIVERY_LIMIT_BYTES == len(full)

        assert 202 == tool.post(client, full).status_code
        too_long = tool.post(client, full + b" ", {})
        assert (413, DELIVERY_LIMIT_BYTES) == (too_long.status_code, too_long.json()["limit"])
        assert 1 == tool.memory.map_deliveries().mapped

    def test_a_slow_body_is_given_up(self, tool: Tool) -> None:
        """408 once its time is over; nothing is stored."""
        app = build_app(tool.grandbo, body_seconds=0.05)
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            if not sent_piece:
                sent_piece.append(True)
                return {"type": "http.request", "body": BODY[:10], "more_body": True}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append(message)

        sent_piece: list[bool] = []
        scope = {
            "type": "http",
            "method": "POST",
            "path": tool.hook.path,
            "raw_path": tool.hook.path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
        }
        asyncio.run(app(scope, receive, send))

        assert 408 == sent[0]["status"]
        assert [] == tool.memory.inbox()["deliveries"]

    def test_a_database_that_is_down_asks_to_come_again(self, tool: Tool, database: TestDatabase) -> None:
        """503 with Retry-After, never a 4xx; the tool's retry is then taken in."""
        with Grandbo.open(settings=database.settings(pool_timeout=0.2)) as opened:
            client = client_of(opened)
            opened.database.close()
            down = tool.post(client, BODY, tool.signed(BODY, delivery="r"))
        assert (503, True) == (down.status_code, "retry-after" in down.headers)

        again = tool.post(client_of(tool.grandbo), BODY, tool.signed(BODY, delivery="r"))
        assert (202, False) == (again.status_code, again.json()["duplicate"])

    def test_no_credential_and_no_signature_is_kept(self, tool: Tool, client: TestClient) -> None:
        """Of the headers only those that are known to be harmless."""
        headers = {**tool.signed(BODY), "Authorization": "Bearer hidden", "X-Forwarded-For": "10.1.2.3"}
        answer = tool.post(client, BODY, headers)

        kept = tool.memory.delivery(answer.json()["delivery_id"])["headers"]
        assert {"content-type", "user-agent", "webhook-id", "webhook-timestamp"} == kept.keys()

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.binary(max_size=60),
        st.dictionaries(
            st.sampled_from(["webhook-id", "webhook-timestamp", "webhook-signature", "content-encoding", "svix-id"]),
            st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=30).map(_as_value),
        ),
    )
    def test_whatever_is_sent_is_no_fault_of_ours(
        self, tool: Tool, client: TestClient, body: bytes, headers: dict[str, str]
    ) -> None:
        """Any body and headers: 401, and no row."""
        sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        answer = client.post(tool.hook.path, content=body, headers=sent)

        assert 401 == answer.status_code
        assert [] == tool.memory.inbox()["deliveries"]


class TestLimits:
    def test_a_hook_has_a_rate_and_guessing_too(self, tool: Tool, database: TestDatabase) -> None:
        """429, which tools retry; who has come in of late is not turned away for the guesses of others."""
        strict = database.settings(hook_rate_limit="3/hour", auth_failure_limit="2/hour")
        with Grandbo.open(settings=strict) as opened:
            client = TestClient(build_app(opened), base_url=BASE_URL)
            stranger = make_tool(tool.grandbo, tool.memory)
            assert 202 == tool.post(client, BODY).status_code
            assert [401, 401, 429] == [tool.post(client, BODY, {}).status_code for _ in range(2)] + [
                stranger.post(client, BODY).status_code
            ]
            assert [202, 202, 429] == [tool.post(client, BODY).status_code for _ in range(3)]


class TestHooks:
    def test_a_secret_is_shown_once(self, tool: Tool) -> None:
        """Neither the list nor anything else has it."""
        assert tool.secret not in json.dumps([hook.as_dict() for hook in tool.memory.hooks()])
        assert tool.secret.startswith("whsec_")

    def test_the_tools_own_secret_is_taken(self, tool: Tool) -> None:
        """Where the tool makes it; one that cannot be one is refused, and not repeated."""
        secret = signatures.new_secret("standard-webhooks")
        assert secret == tool.memory.create_hook("grandbo", "n", secret=secret)[1]
        with pytest.raises(InvalidInput) as refused:
            tool.memory.create_hook("grandbo", "n", secret="whsec_tooshort")
        assert "tooshort" not in refused.value.message

    @pytest.mark.parametrize(("source", "name"), [("nothing", "n"), ("grandbo", " "), ("grandbo", "n" * 101)])
    def test_what_makes_no_sense_is_refused(self, memory: TenantMemory, source: str, name: str) -> None:
        """With the field."""
        with pytest.raises(InvalidInput):
            memory.create_hook(source, name)

    def test_one_that_is_gone_takes_nothing_in(self, tool: Tool) -> None:
        """What it delivered before comes to rest as dead."""
        delivery = tool.tell("resolved")
        tool.memory.remove_hook(tool.hook.hook_id)

        assert 1 == tool.memory.map_deliveries().dead
        assert "not_found" == tool.state(delivery)["error_code"]
        with pytest.raises(Unauthenticated):
            tool.tell("resolved")
        with pytest.raises(NotFound):
            tool.memory.remove_hook(tool.hook.hook_id)

    def test_another_tenants_look_absent(self, tool: Tool, other_memory: TenantMemory) -> None:
        """Hooks and deliveries alike."""
        delivery = tool.tell("resolved")

        verbs: tuple[Callable[[str], object], ...] = (
            other_memory.rotate_hook,
            other_memory.remove_hook,
            other_memory.test_hook,
        )
        for verb in verbs:
            with pytest.raises(NotFound):
                verb(tool.hook.hook_id)
        for look in (other_memory.delivery, other_memory.retry_delivery, other_memory.drop_delivery):
            with pytest.raises(NotFound):
                look(delivery.delivery_id)
        assert ([], []) == (other_memory.hooks(), other_memory.inbox()["deliveries"])
        assert 0 == other_memory.map_deliveries().total

    def test_a_test_writes_nothing(self, tool: Tool) -> None:
        """It says what would become of the sample, and of a payload that is given."""
        before = tool.memory.verify().events
        told = tool.memory.test_hook(tool.hook.hook_id)
        opened, drill = (
            tool.memory.test_hook(tool.hook.hook_id, given)
            for given in (payload("opened"), payload("resolved", is_drill=True))
        )

        assert ("standard-webhooks", "a candidate") == (told["verified_by"], told["drafts"][0]["becomes"])
        assert ["nothing yet: it is not closed", "nothing: a drill"] == [
            shown["drafts"][0]["becomes"] for shown in (opened, drill)
        ]
        assert "unknown_event" == tool.memory.test_hook(tool.hook.hook_id, {"event": "x"})["ignored"]
        with pytest.raises(InvalidInput):
            tool.memory.test_hook(tool.hook.hook_id, {"event": "resolved"})
        assert (before, []) == (tool.memory.verify().events, tool.memory.inbox()["deliveries"])


class TestWorker:
    def test_what_is_delivered_is_mapped_without_being_asked(
        self, clone: TestDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The service's own caretaker is woken by a delivery."""
        # It would not come by itself. On a database of its own: it goes round all tenants.
        monkeypatch.setattr(caretaker, "PAUSE_SECONDS", 600.0)
        with Grandbo.open(settings=clone.settings(embedder="none")) as opened:
            opened.create_tenant("acme")
            mine = make_tool(opened, opened.tenant("acme"))
            opened.start_worker()
            delivery = mine.tell("resolved")
            done = threading.Event()
            deadline = datetime.now(UTC) + timedelta(seconds=30)
            while "received" == mine.state(delivery)["state"]:
                assert datetime.now(UTC) < deadline
                done.wait(0.05)

            assert "mapped" == mine.state(delivery)["state"]
