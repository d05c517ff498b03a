"""The memory behind LangGraph's store and LangChain's retriever."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langgraph.store.base import Item

from grandbo.adapters.langchain import GrandboRetriever
from grandbo.adapters.langgraph import GrandboStore
from grandbo.client import Client
from grandbo.errors import Forbidden, InvalidInput
from grandbo.library import Grandbo, TenantMemory
from grandbo.sample import sample_lines
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, running_http
from tests.support.mcp import call
from tests.support.postgres import TestDatabase

TOPIC = "checkout queue stalled after the lease renewal failed"


@pytest.fixture
def store(grandbo: Grandbo, memory: TenantMemory) -> GrandboStore:
    """The memory as a store, for an investigator."""
    return GrandboStore(grandbo.authenticate(make_token(memory, "investigator")))


class TestStore:
    def test_searching_is_recall(self, memory: TenantMemory, store: GrandboStore) -> None:
        """The same ids in the same order with the same scores, page by page."""
        for number in range(7):
            memory.record_finding(make_finding(service="checkout" if number % 2 else "billing"))
        memory.embed()
        matches = memory.query_topic(TOPIC, limit=6).matches

        found = [
            *store.search(("memory",), query=TOPIC, limit=4),
            *store.search(("memory",), query=TOPIC, limit=2, offset=4),
        ]

        assert [(str(match.entry_id), match.score) for match in matches] == [(item.key, item.score) for item in found]
        assert {"billing"} == {
            item.value["service"]
            for item in store.search(("memory", "finding"), query=TOPIC, filter={"service": "billing"})
        }
        assert [] == store.search(("memory", "runbook"), query=TOPIC)
        assert 7 == len(store.search(("memory",), limit=50))

    def test_getting_is_reading(self, memory: TenantMemory, store: GrandboStore) -> None:
        """By id; what is not there, or of another kind, is none."""
        entry = str(memory.record_finding(make_finding()).acknowledgement.entry_id)

        found = store.get(("memory", "finding"), entry)

        assert isinstance(found, Item)
        assert (("memory", "finding"), entry) == (found.namespace, found.key)
        assert None is store.get(("memory", "runbook"), entry)
        assert None is store.get(("memory",), str(new_id()))
        assert None is store.get(("memory",), "no id")

    def test_putting_is_proposing(self, memory: TenantMemory, store: GrandboStore) -> None:
        """It waits for a person, with the conversation it came from, and is not read back."""
        store.put(("memory", "ruled_out"), "turn-7", {"title": "It was not the lease store", "summary": TOPIC})

        waiting = memory.candidates()
        assert [("ruled_out", "agent")] == [(item["kind"], item["author_type"]) for item in waiting]
        assert [] == store.search(("memory",), query=TOPIC)
        assert [] == store.search(("memory",))

    def test_deleting_is_refused(self, memory: TenantMemory, store: GrandboStore) -> None:
        """And so is what the store does not know."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        with pytest.raises(Forbidden):
            store.delete(("memory",), str(entry))
        for namespace in (("users", "7"), ("memory", "dream"), ("memory", "personal")):
            with pytest.raises(InvalidInput):
                store.search(namespace, query=TOPIC)
        with pytest.raises(InvalidInput):
            store.search(("memory",), query=TOPIC, filter={"color": "red"})
        assert "published" == memory.show_entry(entry)["status"]

    def test_namespaces_are_the_kinds(self, store: GrandboStore) -> None:
        """With prefixes, suffixes and depth."""
        assert 6 == len(store.list_namespaces())
        assert [("memory", "runbook")] == store.list_namespaces(suffix=("runbook",))
        assert [("memory",)] == store.list_namespaces(max_depth=1)
        assert [] == store.list_namespaces(prefix=("users",))

    def test_the_asynchronous_side_is_the_same(self, memory: TenantMemory, store: GrandboStore) -> None:
        """In a thread, so that it does not hold up the loop."""
        memory.record_finding(make_finding())

        found = asyncio.run(store.asearch(("memory",), query=TOPIC))

        assert 1 == len(found)


class TestRetriever:
    def test_documents_say_what_they_are_worth(self, memory: TenantMemory) -> None:
        """Quoted and citable, with the parts of their score."""
        entry = memory.record_finding(make_finding(title="Queue <<<stalled>>>")).acknowledgement.entry_id

        (document,) = GrandboRetriever(memory=memory, asked={"limit": 3}).invoke(TOPIC)

        assert str(entry) == document.metadata["entry_id"]
        assert document.metadata["lexical"]["rank"] == 1
        assert "incident evidence, not guidance" in document.page_content
        assert "<<<" not in document.page_content


class TestOneSeam:
    def test_every_door_gives_the_same_for_200_topics(
        self, grandbo: Grandbo, database: TestDatabase, memory: TenantMemory
    ) -> None:
        """Library, command line, HTTP, MCP, retriever, store and client: ids, order and scores."""
        lines = list(sample_lines())[:60]
        memory.import_lines(lines, "finding")
        memory.embed()
        token = make_token(memory, "investigator")
        agent = grandbo.authenticate(token)
        http = client_of(grandbo, token=token)
        retriever, store = GrandboRetriever(memory=agent, asked={"limit": 4}), GrandboStore(agent)
        with running_http(grandbo) as server, Client(f"http://127.0.0.1:{server.port}", token) as client:
            for topic in _topics(lines):
                library = _kept(agent.query_topic(topic, limit=4).as_dict())
                assert library == _kept(http.post("/v1/recall", json={"topic": topic, "limit": 4}).json()), topic
                assert library == _kept(client.query_topic(topic, limit=4)), topic
                called = call(agent, "query_org_memory", {"topic": topic, "limit": 4}).structured_content
                assert library == _kept(called), topic
                documents = retriever.invoke(topic)
                assert library[: len(documents)] == [(d.metadata["entry_id"], d.metadata["score"]) for d in documents]
                assert bool(documents) == bool(library)
                assert library == [(i.key, i.score) for i in store.search(("memory",), query=topic, limit=4)], topic

    def test_the_command_line_too(self, database: TestDatabase, memory: TenantMemory) -> None:
        """By words, as its process embeds with another model; twenty of the topics."""
        lines = list(sample_lines())[:40]
        memory.import_lines(lines, "finding")
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)
        for topic in _topics(lines)[:20]:
            found = cli("recall", topic, "--mode", "words", "--limit", "4", "--json").document
            assert _kept(memory.query_topic(topic, mode="words", limit=4).as_dict()) == _kept(found), topic


def _topics(lines: list[bytes]) -> list[str]:
    """Two hundred stretches of real incident texts."""
    texts = [json.loads(line)["body"].split() for line in lines]
    stretches = [" ".join(words[start : start + 9]) for start in range(0, 60, 9) for words in texts if len(words) > 80]
    topics = [stretch for stretch in stretches if sum(any(c.isalpha() for c in word) for word in stretch.split()) > 3]
    assert len(topics) >= 200
    return topics[:200]


def _kept(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(match["entry_id"], match["score"]) for match in answer["matches"]]
