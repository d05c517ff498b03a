"""MCP over the wire: streamable HTTP in the service, stdio as a process; who may enter, what the log says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import RunningServer, make_token, raw_exchange, running_http
from tests.support.mcp import MODES, rpc, talk_http, talk_stdio, text_of
from tests.support.pool import assert_pool_is_idle
from tests.support.postgres import TestDatabase

TOPIC = "consumers lost their leases after the broker restarted"
ACCEPTED = {"Accept": "application/json"}


@pytest.fixture(scope="module")
def service(grandbo: Grandbo) -> Iterator[RunningServer]:
    """The service of this module."""
    with running_http(grandbo) as running:
        yield running


@pytest.mark.parametrize("mode", MODES)
class TestHttp:
    def test_a_conversation(self, service: RunningServer, memory: TenantMemory, mode: str) -> None:
        """List, ask, read: the answer is the library's."""
        made = memory.record_finding(make_finding()).acknowledgement

        async def ask(client: Any) -> tuple[Any, ...]:
            return (
                await client.list_tools(),
                await client.call_tool("query_org_memory", {"topic": TOPIC}),
                await client.read_resource(f"grandbo://entries/{made.entry_id}"),
            )

        tools, answer, entry = talk_http(service.port, make_token(memory, "investigator"), ask, mode=mode)

        assert "query_org_memory" == tools.tools[0].name
        expected = memory.query_topic(TOPIC).as_dict()["matches"]
        assert expected == answer.structured_content["matches"]
        assert "| Checkout queue" in text_of(answer)
        assert "| Checkout queue" in entry.contents[0].text

    def test_a_token_that_may_not_ask_is_offered_only_to_propose(
        self, service: RunningServer, memory: TenantMemory, mode: str
    ) -> None:
        """The hook's key opens the door and finds no tool that reads."""
        listed = talk_http(service.port, make_token(memory, "hook"), lambda client: client.list_tools(), mode=mode)

        assert ["propose_memory"] == [tool.name for tool in listed.tools]

    def test_one_tenant_s_token_does_not_reach_another_s_entry(
        self, service: RunningServer, memory: TenantMemory, other_memory: TenantMemory, mode: str
    ) -> None:
        """It is not there."""
        theirs = other_memory.record_finding(make_finding()).acknowledgement

        async def ask(client: Any) -> Any:
            return await client.call_tool("get_memory_entry", {"entry_id": str(theirs.entry_id)})

        result = talk_http(service.port, make_token(memory, "admin"), ask, mode=mode)

        assert (True, True) == (result.is_error, text_of(result).startswith("not_found: "))


class TestWire:
    def test_without_a_token_or_with_a_wrong_one_nobody_enters(
        self, service: RunningServer, memory: TenantMemory
    ) -> None:
        """Missing, malformed, foreign in form, unknown, revoked: 401, and the same words."""
        good = make_token(memory, "investigator")
        revoked = make_token(memory, "investigator")
        memory.revoke_key(revoked.split("_")[1])
        unknown = good[:-4] + ("aaaa" if good[-4:] != "aaaa" else "bbbb")
        answers = [
            service.send("POST", "/mcp", body=rpc("tools/list"), headers=ACCEPTED, token=token)
            for token in (None, "x", "ghp_1234", "a.b.c", unknown, revoked)
        ]

        assert {401} == {answer.status for answer in answers}
        assert 1 == len({answer.body for answer in answers})
        assert all("Bearer" in answer.headers["www-authenticate"] for answer in answers)
        assert 200 == service.send("POST", "/mcp", body=rpc("tools/list"), headers=ACCEPTED, token=good).status

    def test_a_legacy_handshake_needs_no_session(self, service: RunningServer, memory: TenantMemory) -> None:
        """Answered as JSON, without a session id, to a client of last year."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}

        answer = service.send(
            "POST", "/mcp", body=rpc("initialize", params), headers=ACCEPTED, token=make_token(memory, "investigator")
        )

        assert (200, "2025-06-18") == (answer.status, answer.json()["result"]["protocolVersion"])
        assert "mcp-session-id" not in answer.headers

    @pytest.mark.parametrize(
        ("method", "body", "headers", "status"),
        [
            ("GET", None, {}, 405),
            ("DELETE", None, {}, 405),
            ("POST", b"{", {}, 400),
            ("POST", b"[]", {}, 400),
            ("POST", b"[" * 100_000, {}, 400),
            ("POST", rpc("tools/list"), {"Host": "evil.example"}, 421),
            ("POST", b'"' + b"x" * 1_000_000 + b'"', {}, 413),
            ("POST", rpc("tools/list"), {"Content-Type": "text/plain"}, 400),
            ("POST", rpc("tools/list"), {"Accept": "text/html"}, 406),
            ("POST", rpc("no/such"), {}, 200),
        ],
    )
    def test_odd_requests_have_a_defined_answer(
        self,
        service: RunningServer,
        memory: TenantMemory,
        method: str,
        body: bytes | None,
        headers: dict[str, str],
        status: int,
    ) -> None:
        """None of them a 500."""
        token = make_token(memory, "investigator")

        answer = service.send(method, "/mcp", body=body, headers={**ACCEPTED, **headers}, token=token)

        assert status == answer.status

    def test_a_client_that_leaves_takes_no_connection_with_it(
        self, grandbo: Grandbo, service: RunningServer, memory: TenantMemory
    ) -> None:
        """After requests that nobody waits for, the pool is idle and the next one is served."""
        token = make_token(memory, "investigator")
        body = rpc("tools/call", {"name": "query_org_memory", "arguments": {"topic": TOPIC}})
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        for cut in (10, len(body)):
            raw_exchange(service.port, head.encode() + body[:cut])

        assert 200 == service.send("POST", "/mcp", body=body, headers=ACCEPTED, token=token).status
        grandbo.receipts.flush()
        assert_pool_is_idle(grandbo)

    def test_requests_are_counted_under_their_own_name(self, service: RunningServer, memory: TenantMemory) -> None:
        """As `/mcp`."""
        service.send("POST", "/mcp", body=rpc("tools/list"), headers=ACCEPTED, token=make_token(memory, "investigator"))

        assert 'method="POST",route="/mcp",status="200"' in service.send("GET", "/metrics").body.decode()


class TestStdio:
    def _cli(self, database: TestDatabase, **variables: str) -> Cli:
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", **variables)

    def _talk(self, cli: Cli, tmp_path: Path, what: Any, *options: str, mode: str = "auto") -> Any:
        command = [sys.executable, "-m", "grandbo.cli.main", "mcp", *options]
        return talk_stdio(command, cli.environment(), what, tmp_path / "stderr", mode=mode)

    @pytest.mark.parametrize("mode", MODES)
    def test_a_conversation(self, database: TestDatabase, memory: TenantMemory, tmp_path: Path, mode: str) -> None:
        """By tenant and name; the log is JSON on stderr, and holds neither topic nor text."""
        memory.record_finding(make_finding())

        async def ask(client: Any) -> tuple[Any, ...]:
            return await client.list_tools(), await client.call_tool("query_org_memory", {"topic": TOPIC})

        options = ("--tenant", memory.tenant.name, "--as", "helper", "--read-only")
        tools, answer = self._talk(self._cli(database), tmp_path, ask, *options, mode=mode)

        assert 3 == len(tools.tools)
        assert 1 == len(answer.structured_content["matches"])
        written = (tmp_path / "stderr").read_text()
        assert "mcp_tool_called" in [json.loads(line)["event"] for line in written.splitlines()]
        assert "leases" not in written

    def test_a_role_decides_what_is_offered(self, database: TestDatabase, memory: TenantMemory, tmp_path: Path) -> None:
        """A hook has no tool that reads; an investigator does not see what admins see."""
        memory.record_finding(make_finding(visibility="admin"))
        cli = self._cli(database, GRANDBO_TENANT=memory.tenant.name)

        async def ask(client: Any) -> Any:
            return await client.call_tool("query_org_memory", {"topic": TOPIC})

        offered = self._talk(cli, tmp_path, lambda client: client.list_tools(), "--role", "hook").tools
        assert ["propose_memory"] == [tool.name for tool in offered]
        assert [] == self._talk(cli, tmp_path, ask).structured_content["matches"]
        assert 1 == len(self._talk(cli, tmp_path, ask, "--role", "admin").structured_content["matches"])

    def test_a_key_names_tenant_and_roles_and_can_be_revoked(
        self, database: TestDatabase, memory: TenantMemory, tmp_path: Path
    ) -> None:
        """Also while the process runs."""
        memory.record_finding(make_finding())
        token = make_token(memory, "investigator")

        async def ask(client: Any) -> tuple[Any, ...]:
            before = await client.call_tool("query_org_memory", {"topic": TOPIC})
            memory.revoke_key(token.split("_")[1])
            return before, await client.call_tool("query_org_memory", {"topic": TOPIC})

        before, after = self._talk(self._cli(database, GRANDBO_API_KEY=token), tmp_path, ask)

        assert 1 == len(before.structured_content["matches"])
        assert (True, True) == (after.is_error, text_of(after).startswith("unauthenticated: "))

    @pytest.mark.parametrize(
        ("options", "variables", "code"),
        [
            ((), {}, 2),
            (("--tenant", "no-such-tenant"), {}, 5),
            (("--tenant", "x", "--role", "emperor"), {}, 2),
            ((), {"GRANDBO_API_KEY": "gbk_wrong"}, 4),
        ],
    )
    def test_what_is_wrong_at_the_start_ends_it(
        self,
        database: TestDatabase,
        memory: TenantMemory,
        options: tuple[str, ...],
        variables: dict[str, str],
        code: int,
    ) -> None:
        """With the exit code of the error; nothing on stdout, where a client listens."""
        given = [memory.tenant.name if option == "x" else option for option in options]

        ended = self._cli(database, **variables).run("mcp", *given)

        assert (code, "") == (ended.code, ended.out)
