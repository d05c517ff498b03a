"""Hooks and inbox at the command line, over HTTP, in the doctor's report, and from the client's sender."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from grandbo.client import HookSender
from grandbo.errors import Unauthenticated, Unavailable
from grandbo.hooks.source import Source
from grandbo.hooks.sources import SOURCES
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.hooks import CAUSE, make_tool, payload
from tests.support.http import client_of, make_token, running_http
from tests.support.postgres import TestDatabase


@pytest.fixture
def cli(database: TestDatabase, memory: TenantMemory) -> Cli:
    """The command line on the tenant of the test."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)


class TestCommandLine:
    def test_from_a_hook_to_a_candidate(self, cli: Cli, grandbo: Grandbo, memory: TenantMemory, tmp_path: Path) -> None:
        """Made, listed, tried out, delivered to, looked at, mapped, dropped."""
        made = cli("hook", "create", "grandbo", "--name", "scripts", "--direct", "--json").document
        assert (True, False) == (made["direct"], made["takes_private"])
        assert made["url"].endswith(f"/v1/hooks/grandbo/{made['hook_id']}")
        listed = cli("hook", "list", "--json")
        assert [made["hook_id"]] == [item["hook_id"] for item in listed.documents]
        assert made["secret"] not in listed.out
        told = cli("hook", "test", made["hook_id"], "--json").document
        assert "a finding" == told["drafts"][0]["becomes"]
        given = tmp_path / "payload.json"
        given.write_text(json.dumps(payload("opened")))
        assert "not closed" in cli("hook", "test", made["hook_id"], "--payload", given).out

        with running_http(grandbo) as server:
            url = f"http://127.0.0.1:{server.port}{made['path']}"
            with HookSender(url, made["secret"]) as sender:
                sent = sender.send("resolved", "INC-1", {"title": "Logins failed", "cause": CAUSE})
        delivery = sent["delivery_id"]
        assert [delivery] == [item["delivery_id"] for item in cli("inbox", "list", "--json").documents]
        assert "Logins failed" in cli("inbox", "show", delivery).out
        mapped = cli("inbox", "retry", delivery, "--now", "--json").document
        assert ("mapped", "recorded") == (mapped["state"], mapped["outcomes"][0]["outcome"])
        assert "recorded" in cli("inbox", "list").out
        assert "dropped" == cli("inbox", "drop", delivery, "--json").document["state"]
        assert (6, 5) == (cli("inbox", "retry", delivery).code, cli("inbox", "show", uuid4()).code)
        assert 1 == len(memory.list_entries().as_dict()["entries"])

    def test_secrets_of_ones_own(self, cli: Cli, memory: TenantMemory) -> None:
        """Read from stdin, never an argument; a rotation gives another; a hook that is gone is not found."""
        secret = "whsec_" + "QUJD" * 8
        made = cli("hook", "create", "grandbo", "--name", "n", "--secret-stdin", "--json", stdin=f"{secret}\n").document
        assert secret == made["secret"]
        rotated = cli("hook", "rotate", made["hook_id"], "--json").document
        assert (True, True) == (rotated["has_previous_secret"], rotated["secret"] != secret)
        assert not cli("hook", "rotate", made["hook_id"], "--drop-previous", "--json").document["has_previous_secret"]
        assert "Removed" in cli("hook", "remove", made["hook_id"]).out
        assert 5 == cli("hook", "rotate", made["hook_id"]).code
        assert 2 == cli("hook", "create", "nothing").code
        assert "sentry" == cli("hook", "create", "sentry", "--json").document["name"]

    def test_the_doctor_names_what_is_not_signed(
        self, cli: Cli, grandbo: Grandbo, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And what the inbox has given up on."""
        monkeypatch.setitem(SOURCES, "plain", Source("plain", SOURCES["grandbo"].map, lambda _p, _h: "", "bearer"))
        make_tool(grandbo, memory)

        def checks() -> dict[str, Any]:
            found = cli("doctor", "--json").document["checks"]
            return {item["check"].partition(" ")[0]: item for item in found}

        assert "ok" == checks()["hooks"]["state"]
        unsigned, secret = memory.create_hook("plain", "old")
        grandbo.receive("plain", unsigned.hook_id, {"authorization": f"Bearer {secret}"}, b"no json")
        memory.map_deliveries()
        found = checks()
        assert ("warn", True) == (found["hooks"]["state"], unsigned.hook_id in found["hooks"]["found"])
        assert ("warn", True) == (found["inbox"]["state"], "1 deliveries" in found["inbox"]["found"])


class TestHttp:
    def test_hooks_and_inbox_are_kept_over_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The same verbs, with the same answers."""
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        made = client.post("/v1/hooks", json={"source": "grandbo", "name": "n", "direct": True})
        assert 201 == made.status_code
        hook_id = made.json()["hook_id"]
        assert [hook_id] == [item["hook_id"] for item in client.get("/v1/hooks").json()["hooks"]]
        rotated = client.post(f"/v1/hooks/{hook_id}/rotate", json={})
        assert rotated.json()["secret"] != made.json()["secret"]
        tried = client.post(f"/v1/hooks/{hook_id}/test", json={"payload": payload("resolved")})
        assert "a candidate without a cause" == tried.json()["drafts"][0]["becomes"]

        tool = make_tool(grandbo, memory)
        delivery = tool.post(client_of(grandbo), json.dumps(payload("resolved")).encode()).json()["delivery_id"]
        page = client.get("/v1/inbox", params={"state": "received", "limit": 1}).json()
        assert ([delivery], None) == ([item["delivery_id"] for item in page["deliveries"]], page["next"])
        assert "resolved" in client.get(f"/v1/inbox/{delivery}").json()["body"]
        assert "received" == client.post(f"/v1/inbox/{delivery}/retry").json()["state"]
        assert "dropped" == client.delete(f"/v1/inbox/{delivery}").json()["state"]
        assert 409 == client.post(f"/v1/inbox/{delivery}/retry").status_code
        assert [204, 404] == [client.delete(f"/v1/hooks/{hook_id}").status_code for _ in range(2)]

    @pytest.mark.parametrize(
        ("path", "body", "status"),
        [
            ("/v1/hooks", {"source": "grandbo"}, 422),
            ("/v1/hooks", {"source": "nothing", "name": "n"}, 422),
            ("/v1/hooks", {"source": "grandbo", "name": "n", "direct": "yes"}, 422),
            ("/v1/hooks", {"source": 7, "name": "n"}, 422),
            ("/v1/hooks", {"source": "grandbo", "name": "n", "more": 1}, 422),
            ("/v1/hooks", [], 422),
            ("/v1/hooks/x/rotate", {}, 404),
            ("/v1/hooks/x/test", {}, 404),
            ("/v1/hooks/x/test", {"payload": 1}, 422),
            ("/v1/inbox/x/retry", {}, 422),
            ("/v1/inbox/0f8a4a52-6f0e-4d0c-9a53-7a2f4e6f1c11/retry", {}, 404),
        ],
    )
    def test_bad_input_is_told(
        self, grandbo: Grandbo, memory: TenantMemory, path: str, body: object, status: int
    ) -> None:
        """With a problem, never a fault of ours."""
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))

        assert status == client.post(path, json=body).status_code

    def test_a_hooks_key_may_not(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """403 for who does not administer, 401 for nobody."""
        client = client_of(grandbo, token=make_token(memory, "hook", kind="hook"))
        assert [403, 403] == [client.get(path).status_code for path in ("/v1/hooks", "/v1/inbox")]
        assert 401 == client_of(grandbo).get("/v1/hooks").status_code


class TestSender:
    def test_the_same_delivery_again_is_the_same(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """An id of one's own makes a retry of one's own a no-op; a wrong secret is told."""
        tool = make_tool(grandbo, memory)
        with running_http(grandbo) as server:
            url = f"http://127.0.0.1:{server.port}{tool.hook.path}"
            with HookSender(url, tool.secret) as sender:
                told = [sender.send("resolved", "INC-1", is_private=True, delivery="mine") for _ in range(2)]
            with HookSender(url, "whsec_" + "QUJD" * 8) as stranger, pytest.raises(Unauthenticated):
                stranger.send("resolved", "INC-1")
        assert [False, True] == [item["duplicate"] for item in told]
        assert 1 == len({item["delivery_id"] for item in told})
        with HookSender(url, tool.secret, attempts=1) as gone, pytest.raises(Unavailable):
            gone.send("resolved", "INC-1")
        with pytest.raises(ValueError, match="URL of a hook"):
            HookSender("http://127.0.0.1/elsewhere", tool.secret)
