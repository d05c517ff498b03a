"""The inbox and its worker: nothing lost, nothing doubled, what cannot be mapped waits for a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from grandbo.errors import Forbidden, IllegalTransition, InvalidInput, NotFound
from grandbo.hooks.drafts import Draft, Headers, Mapped, Payload
from grandbo.hooks.source import Source
from grandbo.hooks.sources import SOURCES
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.inbox_queue import claim, prune_inbox
from grandbo.types import new_id
from grandbo.workers.caretaker import Caretaker
from grandbo.workers.mapping import MAX_ATTEMPTS
from tests.support.hooks import CAUSE, Tool, make_tool, payload
from tests.support.http import make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.twins import Hands


@pytest.fixture
def hands() -> Hands:
    """A clock that a test moves."""
    return Hands()


@pytest.fixture
def memory(database: TestDatabase, tenant_name: str, hands: Hands) -> Iterator[TenantMemory]:
    """A tenant of its own in a memory whose clock a test moves."""
    with Grandbo.open(settings=database.settings(), embedder=words_embedder(), clock=hands) as opened:
        opened.create_tenant(tenant_name)
        yield opened.tenant(tenant_name, principal="human:tester")


@pytest.fixture
def tool(memory: TenantMemory) -> Tool:
    """A tool whose causes are recorded."""
    return make_tool(memory._grandbo, memory, direct=True)


def send_from(tool: Tool, source: str, incident_id: str) -> UUID:
    """A delivery through a hook of another source, which is signed by its secret alone."""
    hook, secret = tool.memory.create_hook(source, source)
    body = json.dumps(payload("resolved", incident_id)).encode()
    return tool.grandbo.receive(source, hook.hook_id, {"authorization": f"Bearer {secret}"}, body).delivery_id


class TestClaims:
    def test_a_worker_that_died_loses_nothing(self, tool: Tool, memory: TenantMemory, hands: Hands) -> None:
        """What it had claimed is another's after a minute, and is mapped once."""
        delivery = tool.tell("resolved", cause=CAUSE)
        claimed = claim(memory._grandbo.database, memory.tenant_id, clock=hands)
        assert claimed is not None
        assert delivery.delivery_id == claimed["delivery_id"]
        assert 0 == memory.map_deliveries().total

        hands.now += timedelta(seconds=61)

        assert (1, 0) == (memory.map_deliveries().mapped, memory.map_deliveries().total)
        assert (2, "recorded") == (tool.state(delivery)["attempts"], tool.state(delivery)["outcome"])

    def test_one_that_kills_workers_comes_to_rest(self, tool: Tool, memory: TenantMemory, hands: Hands) -> None:
        """Each claim counts, also one that nobody came back from."""
        delivery = tool.tell("resolved")
        for _ in range(MAX_ATTEMPTS):
            assert claim(memory._grandbo.database, memory.tenant_id, clock=hands) is not None
            hands.now += timedelta(seconds=61)

        assert 1 == memory.map_deliveries().dead
        assert ("dead", "given_up") == (tool.state(delivery)["state"], tool.state(delivery)["error_code"])

    @pytest.mark.parametrize("direct", [False, True])
    def test_a_death_between_memory_and_record_doubles_nothing(
        self, server: TestServer, hands: Hands, direct: bool
    ) -> None:
        """The finding is in the log, its record is not: the next try finds it under its command id."""
        with server.clone() as own, Grandbo.open(settings=own.settings(), clock=hands) as opened:
            opened.create_tenant("t")
            memory = opened.tenant("t")
            tool = make_tool(opened, memory, direct=direct)
            delivery = tool.tell("resolved", cause=CAUSE)
            with own.as_admin() as admin:
                admin.execute(
                    "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$;"
                    "GRANT EXECUTE ON FUNCTION public.fail() TO PUBLIC;"
                    "CREATE TRIGGER fail BEFORE INSERT ON grandbo.org_memory_incidents"
                    " FOR EACH ROW EXECUTE FUNCTION public.fail()"
                )
            assert 1 == memory.map_deliveries().postponed
            appended = memory.verify().events
            assert ("received", "mapper_failed") == (
                tool.state(delivery)["state"],
                tool.state(delivery)["error_code"],
            )
            with own.as_admin() as admin:
                admin.execute("DROP TRIGGER fail ON grandbo.org_memory_incidents")
            hands.now += timedelta(minutes=1)

            assert 1 == memory.map_deliveries().mapped
            assert appended == memory.verify().events
            assert ("recorded" if direct else "proposed") == tool.state(delivery)["outcome"]

    def test_two_workers_help_each_other(self, tool: Tool, memory: TenantMemory, hands: Hands) -> None:
        """A claimed delivery is left to its claimer; the rest is done meanwhile."""
        tool.tell("resolved", "A", cause=CAUSE)
        tool.tell("resolved", "B", cause=CAUSE)
        assert claim(memory._grandbo.database, memory.tenant_id, clock=hands) is not None

        assert 1 == memory.map_deliveries().mapped


class TestOrder:
    def test_what_is_about_the_same_waits_for_what_came_first(
        self, tool: Tool, memory: TenantMemory, hands: Hands
    ) -> None:
        """A delivery that is tried again holds back those behind it of its incident, and no others."""
        memory.change_policy({"pending_candidates": 1}, reason="small")
        assert "proposed" == tool.told("resolved", "FIRST")["outcome"]
        full, behind = tool.tell("resolved", "SECOND"), tool.tell("reopened", "SECOND")
        other = tool.tell("resolved", "THIRD", cause=CAUSE)

        counts = memory.map_deliveries()

        assert (1, 2) == (counts.mapped, counts.postponed)
        assert ("quota_exceeded", "waits", "recorded") == (
            tool.state(full)["error_code"],
            tool.state(behind)["error_code"],
            tool.state(other)["outcome"],
        )
        assert 0 == tool.state(full)["attempts"], "want of room is not its fault"
        memory.change_policy({"pending_candidates": 5}, reason="room")
        hands.now += timedelta(minutes=6)
        assert 2 == memory.map_deliveries().mapped
        assert ("proposed", "amended") == (tool.state(full)["outcome"], tool.state(behind)["outcome"])


class TestDead:
    def test_a_mapper_that_fails_is_tried_and_given_up(
        self, tool: Tool, memory: TenantMemory, hands: Hands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At growing distances, then dead with its code; the others go on; mended, a retry maps it."""

        def broken(_payload: Payload, _headers: Headers) -> Mapped:
            raise ZeroDivisionError

        source = Source("broken", broken, lambda _payload, _headers: "", "bearer")
        monkeypatch.setitem(SOURCES, "broken", source)
        delivery_id = send_from(tool, "broken", "INC-1")
        other = tool.tell("resolved", "INC-2", cause=CAUSE)

        counts = memory.map_deliveries()
        assert (1, 1, "recorded") == (counts.mapped, counts.postponed, tool.state(other)["outcome"])
        for _ in range(MAX_ATTEMPTS - 1):
            hands.now += timedelta(hours=1, seconds=1)
            memory.map_deliveries()

        found = memory.delivery(delivery_id)
        assert ("dead", "mapper_failed", MAX_ATTEMPTS) == (found["state"], found["error_code"], found["attempts"])
        assert "ZeroDivisionError" in found["note"]
        good = SOURCES["grandbo"].map
        monkeypatch.setitem(SOURCES, "broken", replace(source, map=good))
        assert "received" == memory.retry_delivery(delivery_id)["state"]
        assert 1 == memory.map_deliveries().mapped
        assert "proposed" == memory.delivery(delivery_id)["outcomes"][0]["outcome"]

    def test_a_delivery_without_an_id_is_known_by_its_bytes(
        self, tool: Tool, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where the source's own key cannot be made of it."""

        def no_key(_payload: Payload, _headers: Headers) -> str:
            raise KeyError

        monkeypatch.setitem(SOURCES, "keyless", Source("keyless", SOURCES["grandbo"].map, no_key, "bearer"))
        hook, secret = memory.create_hook("keyless", "k")
        headers = {"authorization": f"Bearer {secret}"}
        bodies = (b'{"a": 1}', b'{"a": 1}', b'{"a": 2}')

        told = [tool.grandbo.receive("keyless", hook.hook_id, headers, body) for body in bodies]

        assert [True, False, True] == [item.is_new for item in told]

    def test_several_incidents_in_one_delivery(
        self, tool: Tool, memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each has an outcome of its own; what is empty is ignored."""

        def two(_payload: Payload, _headers: Headers) -> Mapped:
            return tuple(Draft("resolved", name, f"Alert {name}", cause="c") for name in ("A", "B"))

        monkeypatch.setitem(SOURCES, "two", Source("two", two, lambda _payload, _headers: "", "bearer"))
        monkeypatch.setitem(SOURCES, "none", Source("none", lambda _p, _h: (), lambda _p, _h: "", "bearer"))
        both, none = send_from(tool, "two", "x"), send_from(tool, "none", "x")
        memory.map_deliveries()

        assert ["A", "B"] == [item["incident_id"] for item in memory.delivery(both)["outcomes"]]
        assert ("ignored", "says_nothing") == (memory.delivery(none)["state"], memory.delivery(none)["note"])

    def test_what_the_screen_refuses_is_dead_with_the_field(self, tool: Tool, memory: TenantMemory) -> None:
        """Nothing of it is in the memory, and the value in no note; under another policy a retry takes it."""
        secret = "AKIA" + "IOSFODNN7EXAMPLQ"
        memory.change_policy({"screening": {"secrets": "refuse"}}, reason="strict")
        delivery = tool.tell("resolved", cause=f"The key {secret} had leaked.")
        assert 1 == memory.map_deliveries().dead

        found = tool.state(delivery)
        assert ("screen_refused", False) == (found["error_code"], secret in found["note"])
        memory.change_policy({"screening": {"secrets": "redact"}}, reason="as before")
        memory.retry_delivery(delivery.delivery_id)
        assert 1 == memory.map_deliveries().mapped


class TestPeople:
    def test_pages_from_the_newest_on(self, tool: Tool, memory: TenantMemory) -> None:
        """Each delivery once, in its state; the pages end."""
        sent = [str(tool.tell("opened", f"INC-{number}").delivery_id) for number in range(5)]
        memory.map_deliveries(at_most=2)

        first = memory.inbox(limit=3)
        second = memory.inbox(limit=3, after=first["next"])

        assert sent[::-1] == [item["delivery_id"] for item in first["deliveries"] + second["deliveries"]]
        assert None is second["next"]
        assert sent[1::-1] == [item["delivery_id"] for item in memory.inbox(state="mapped")["deliveries"]]

    def test_a_dropped_one_is_known_and_gone(self, tool: Tool, memory: TenantMemory) -> None:
        """Its sender's retry is none, and there is nothing left to map."""
        body = json.dumps(payload("resolved")).encode()
        headers = tool.signed(body, delivery="one")
        delivery = tool.grandbo.receive("grandbo", tool.hook.hook_id, headers, body)

        assert ("dropped", False) == tuple(
            memory.drop_delivery(delivery.delivery_id)[name] for name in ("state", "has_body")
        )
        assert not tool.grandbo.receive("grandbo", tool.hook.hook_id, headers, body).is_new
        assert 0 == memory.map_deliveries().total
        with pytest.raises(IllegalTransition):
            memory.retry_delivery(delivery.delivery_id)

    def test_mapping_again_is_the_same_again(self, tool: Tool, memory: TenantMemory, hands: Hands) -> None:
        """A retry of what was mapped changes nothing, also an older one behind a newer."""
        first = tool.told("resolved", cause=CAUSE)
        hands.now += timedelta(seconds=1)
        tool.told("updated", title="A better title")
        before = memory.verify().events

        memory.retry_delivery(UUID(first["delivery_id"]))

        assert 1 == memory.map_deliveries().mapped
        assert before == memory.verify().events

    def test_bodies_do_not_stay_for_ever(self, tool: Tool, memory: TenantMemory, hands: Hands) -> None:
        """Of what is done they go after some days, the row after a year; what is dead or waits keeps its own."""
        done = tool.tell("resolved")
        memory.map_deliveries()
        waits = tool.tell("opened", "INC-2")
        hands.now += timedelta(days=31)
        database = memory._grandbo.database

        assert 0 == prune_inbox(database, memory.tenant_id, 32, clock=hands)
        assert 1 == prune_inbox(database, memory.tenant_id, 30, clock=hands)
        assert (False, True) == (tool.state(done)["has_body"], tool.state(waits)["has_body"])
        hands.now += timedelta(days=365)
        assert 1 == prune_inbox(database, memory.tenant_id, 30, clock=hands)
        with pytest.raises(NotFound):
            memory.delivery(done.delivery_id)

    def test_the_caretaker_maps(self, clone: TestDatabase, hands: Hands) -> None:
        """For all tenants, in its round."""
        with Grandbo.open(settings=clone.settings(), embedder=words_embedder(), clock=hands) as opened:
            tools = []
            for name in ("one", "two"):
                opened.create_tenant(name)
                tools.append(make_tool(opened, opened.tenant(name)))
            deliveries = [tool.tell("resolved") for tool in tools]

            assert Caretaker(opened.database, clock=hands).go_round()
            assert ["mapped"] * 2 == [tool.state(told)["state"] for tool, told in zip(tools, deliveries, strict=True)]

    def test_it_is_for_who_administers(self, tool: Tool, memory: TenantMemory) -> None:
        """A hook's key, an agent and a reviewer see neither hooks nor inbox."""
        for role in ("hook", "investigator", "reviewer", "auditor"):
            other = memory._grandbo.authenticate(make_token(memory, role))
            for verb in (other.hooks, other.inbox, other.map_deliveries):
                with pytest.raises(Forbidden):
                    verb()
            with pytest.raises(Forbidden):
                other.create_hook("grandbo", "n", direct=True)

    @pytest.mark.parametrize("wanted", [{"state": "x"}, {"limit": 0}, {"limit": True}, {"after": "x"}])
    def test_what_makes_no_sense_is_refused(self, memory: TenantMemory, wanted: dict[str, object]) -> None:
        """With the field."""
        with pytest.raises(InvalidInput):
            memory.inbox(**wanted)
        with pytest.raises(NotFound):
            memory.delivery(new_id())
