"""`/v1/events`, `/v1/audit/verify` and `/v1/audit/checkpoints`: the library's answers, for those who may audit."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from grandbo.errors import Forbidden
from grandbo.events import listing, notes
from grandbo.http import audit_routes
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, running_http
from tests.support.pool import assert_pool_is_idle
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


class TestStreams:
    def test_lines_are_the_library_s(
        self, keeper: Grandbo, kept: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """JSON Lines and CSV of the whole log, piece by piece, and narrowed as a page is."""
        monkeypatch.setattr(audit_routes, "LINES_AT_ONCE", 2)
        monkeypatch.setattr(listing, "PAGE", 2)
        client = client_of(keeper, token=make_token(kept, "auditor"))

        lines = client.get("/v1/events?format=jsonl")
        rows = client.get("/v1/events?format=csv")
        narrowed = client.get("/v1/events?format=jsonl&type=entry_recorded&after=1&limit=1&bodies=true")
        none = client.get("/v1/events?format=csv&after=3")

        assert list(kept.events()) == [json.loads(line) for line in lines.text.splitlines()]
        assert ("application/jsonl", "text/csv; charset=utf-8") == (
            lines.headers["content-type"],
            rows.headers["content-type"],
        )
        assert [event["hash"] for event in kept.events()] == [
            row["hash"] for row in csv.DictReader(rows.text.splitlines())
        ]
        assert [(2, "kept")] == [
            (event["position"], event["body_state"]) for event in map(json.loads, narrowed.text.splitlines())
        ]
        assert [",".join(listing.COLUMNS)] == none.text.splitlines()

    @pytest.mark.parametrize(
        ("query", "status"),
        [("format=xml", 422), ("format=csv&wait=1", 422), ("format=jsonl&type=x", 422), ("format=csv&limit=0", 422)],
    )
    def test_what_is_wrong_is_told_before_the_first_line(
        self, keeper: Grandbo, kept: TenantMemory, query: str, status: int
    ) -> None:
        """As a problem, as of a page."""
        answer = client_of(keeper, token=make_token(kept, "auditor")).get(f"/v1/events?{query}")

        assert (status, "application/problem+json") == (answer.status_code, answer.headers["content-type"])

    def test_who_may_not_audit_and_who_sees_not_all(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """403, and a reviewer's lines leave out what stands above him."""
        hidden = kept.record_finding(make_finding(visibility="admin")).acknowledgement
        asked = {"format": "csv"}
        reviewer = client_of(keeper, token=make_token(kept, "reviewer", kind="human"))

        assert (
            403 == client_of(keeper, token=make_token(kept, "investigator")).get("/v1/events", params=asked).status_code
        )
        assert 403 == reviewer.get("/v1/events", params={**asked, "bodies": True}).status_code
        assert str(hidden.entry_id) not in reviewer.get("/v1/events", params=asked).text
        assert_pool_is_idle(keeper)


class TestTiers:
    def test_an_auditor_is_given_what_stands_within_his_tiers(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """A reviewer's pages have no event of what stands above them, and no bodies; who sees all has all."""
        hidden = kept.record_finding(make_finding(visibility="admin")).acknowledgement
        kept.propose(make_finding(visibility="admin"))
        kept.propose(make_finding(visibility="team"))
        reviewer = client_of(keeper, token=make_token(kept, "reviewer", kind="human"))
        auditor = client_of(keeper, token=make_token(kept, "auditor"))

        everything = auditor.get("/v1/events").json()["events"]
        given = reviewer.get("/v1/events").json()

        assert str(hidden.entry_id) in {event["stream_id"] for event in everything}
        assert len(everything) - 2 == len(given["events"])
        assert hidden.position not in {event["position"] for event in given["events"]}
        assert everything[-1]["position"] == given["position"]
        asked = {"entry": str(hidden.entry_id)}
        assert [] == reviewer.get("/v1/events", params=asked).json()["events"]
        assert (403, 200) == tuple(client.get("/v1/events?bodies=true").status_code for client in (reviewer, auditor))

    def test_a_bundle_is_for_who_sees_all(self, keeper: Grandbo, kept: TenantMemory, tmp_path: Path) -> None:
        """It holds what every entry said."""
        reviewer = keeper.authenticate(make_token(kept, "reviewer", kind="human"))

        with pytest.raises(Forbidden):
            reviewer.export(tmp_path / "bundle")

    def test_feedback_on_what_is_hidden_is_hidden(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """The verdict on an entry stands in the tier of the entry."""
        kept.record_finding(make_finding(title="Zeppelin mooring failed at the north mast", visibility="admin"))
        answer = kept.query_topic("the zeppelin mooring failed at the north mast in the storm")
        keeper.receipts.flush()
        match = answer.matches[0]
        kept.give_feedback(answer.receipt_id, match.entry_id, "helped")
        reviewer = keeper.authenticate(make_token(kept, "reviewer", kind="human"))

        assert 1 == len(list(kept.events(event_type="feedback_given")))
        assert [] == list(reviewer.events(event_type="feedback_given"))


class TestPulling:
    def test_each_event_comes_once_in_order_while_it_is_written(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """Eight write while one pulls, with a filter; nothing is missed, nothing comes twice."""
        token = make_token(kept, "auditor")
        pulled: list[int] = []
        with running_http(keeper) as server, ThreadPoolExecutor(8) as many:
            writing = [many.submit(kept.record_finding, make_finding()) for _ in range(40)]
            position = 0
            while len(pulled) < 42:
                query = f"/v1/events?after={position}&wait=10&limit=7&type=entry_recorded"
                page = server.send("GET", query, token=token).json()
                pulled += [event["position"] for event in page["events"]]
                position = page["position"]
            for item in writing:
                item.result()

        assert [event["position"] for event in kept.events(event_type="entry_recorded")] == pulled

    def test_it_waits_without_a_connection_until_there_is_one(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """Twenty who wait hold nothing, and each is told of what is written then."""
        token = make_token(kept, "auditor")
        position = kept.head_position()
        with running_http(keeper) as server, ThreadPoolExecutor(20) as many:
            query = f"/v1/events?after={position}&wait=30&type=entry_recorded"
            waiting = [many.submit(server.send, "GET", query, token=token) for _ in range(20)]
            # They hold no thread either: another request is served while they wait.
            assert 200 == server.send("GET", "/v1/events", token=token).status
            assert_pool_is_idle(keeper)
            kept.record_finding(make_finding())
            replies = [item.result() for item in waiting]

        assert {(position + 1,)} == {tuple(event["position"] for event in reply.json()["events"]) for reply in replies}

    def test_the_time_is_over_and_nothing_came(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """An empty page, and where to go on."""
        position = kept.head_position()
        page = client_of(keeper, token=make_token(kept, "auditor")).get(f"/v1/events?after={position}&wait=1").json()

        assert {"events": [], "next": None, "position": position} == page

    def test_a_service_that_ends_lets_nobody_wait(self, keeper: Grandbo, kept: TenantMemory) -> None:
        """The end would else be as late as the longest wait."""
        token = make_token(kept, "auditor")
        position = kept.head_position()
        with ThreadPoolExecutor(1) as one:
            with running_http(keeper) as server:
                waiting = one.submit(server.send, "GET", f"/v1/events?after={position}&wait=60", token=token)
                while not server.server._server.server_state.tasks:
                    threading.Event().wait(0.01)
            assert [] == waiting.result(timeout=30).json()["events"]

    @pytest.mark.parametrize("wait", ["-1", "61", "x", "1.5"])
    def test_a_wait_that_is_none_is_a_problem(self, keeper: Grandbo, kept: TenantMemory, wait: str) -> None:
        """422, which names it."""
        answer = client_of(keeper, token=make_token(kept, "auditor")).get(f"/v1/events?wait={wait}")

        assert 422 == answer.status_code


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
