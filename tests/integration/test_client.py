"""The client: the library's verbs over HTTP, with the same answers and the same errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import stamina

from grandbo.client import ApiError, Client
from grandbo.errors import EvidenceMissing, NotFound, RevisionStale, TopicIsSlug, Unauthenticated, Unavailable
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import new_id
from tests.support.factories import make_finding
from tests.support.http import make_token, running_http

TOPIC = "checkout queue stalled after the lease renewal failed"


@pytest.fixture
def client(grandbo: Grandbo, memory: TenantMemory) -> Iterator[Client]:
    """A client of a running service."""
    with (
        running_http(grandbo) as server,
        Client(f"http://127.0.0.1:{server.port}", make_token(memory, "admin", kind="human")) as made,
    ):
        yield made


class _Answers(httpx2.BaseTransport):
    """A service that gives these answers, one a request, and remembers what was asked."""

    def __init__(self, *answers: httpx2.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class TestVerbs:
    def test_what_is_recorded_is_recalled_changed_and_proved(self, memory: TenantMemory, client: Client) -> None:
        """The whole path, each answer that of the library."""
        made = client.record_finding(make_finding())
        entry = made["entry_id"]
        memory.embed()

        answer = client.query_topic(TOPIC, limit=3, render=True)
        assert [entry] == [match["entry_id"] for match in answer["matches"]]
        assert TOPIC.split()[0] in answer["rendered"]["text"].lower()
        assert memory.query_topic(TOPIC, limit=3).as_dict()["matches"] == answer["matches"]

        changed = client.correct(entry, {"title": "Another title of it"}, reason="clearer", expected=1)
        assert (2, True) == (changed["revision"], changed["appended"])
        assert "Another title of it" == client.show_entry(entry)["title"]
        assert [1, 2] == [item["revision"] for item in client.history(entry)]
        assert "title" in [change["field"] for change in client.differences(entry, 1, 2)["changes"]]
        client.archive(entry, reason="put away")
        client.unarchive(entry, reason="needed")
        client.restore(entry, 1, reason="as it was")
        client.verify_entry(entry, reason="checked", days=30)
        assert client.replay_receipt(answer["receipt_id"], TOPIC)["equal"]
        assert client.give_feedback(answer["receipt_id"], entry, "helped")["appended"]
        assert client.verify()["ok"]
        assert memory.verify().events == len(list(client.events(limit=2)))

    def test_lists_are_followed_to_their_end(self, memory: TenantMemory, client: Client) -> None:
        """Every page, each item once."""
        made = {str(memory.record_finding(make_finding()).acknowledgement.entry_id) for _ in range(7)}

        found = [entry["entry_id"] for entry in client.list_entries(limit=3)]

        assert (7, made) == (len(found), set(found))

    def test_candidates_and_notes(self, grandbo: Grandbo, memory: TenantMemory, client: Client) -> None:
        """Propose and decide; note, read back, close."""
        agent = grandbo.authenticate(make_token(memory, "investigator"))
        waiting = agent.propose(make_finding()).candidate_id
        own = client.propose(make_finding())

        assert {str(waiting), own["candidate_id"]} == {item["candidate_id"] for item in client.candidates()}
        assert "recorded" == client.decide(waiting, "approve", reason="checked")["outcome"]
        client.note("INC-7", "the broker")
        assert "the broker" in client.context_window("INC-7")["text"]
        assert (
            1
            == client.recall_layers(TOPIC, layers=["notes"], investigation_id="INC-7")["layers"]["notes"]["rendered"][
                "shown"
            ]
        )
        assert 1 == client.close_investigation("INC-7")["forgotten"]


class TestErrors:
    def test_they_are_the_librarys(self, client: Client) -> None:
        """By their code, with their details."""
        entry = client.record_finding(make_finding())["entry_id"]
        with pytest.raises(TopicIsSlug):
            client.query_topic("payments-api")
        with pytest.raises(NotFound):
            client.show_entry(new_id())
        with pytest.raises(EvidenceMissing):
            client.record_finding(make_finding(evidence=[]))
        with pytest.raises(RevisionStale) as stale:
            client.archive(entry, reason="r", expected=9)
        assert (9, 1) == (stale.value.details["expected"], stale.value.details["current"])

    def test_a_wrong_key_opens_nothing(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """And is not in the error."""
        with running_http(grandbo) as server, Client(f"http://127.0.0.1:{server.port}", "gbk_wrong") as client:
            with pytest.raises(Unauthenticated) as refused:
                client.query_topic(TOPIC)
            assert "gbk_wrong" not in str(refused.value.as_dict())

    def test_an_unknown_error_keeps_its_code(self) -> None:
        """A newer service may know errors that this client does not."""
        problem = {"code": "moon_phase", "detail": "Not tonight.", "status": 409}
        transport = _Answers(httpx2.Response(409, json=problem))
        with Client("http://x", "k", transport=transport) as client, pytest.raises(ApiError) as refused:
            client.show_entry(new_id())
        assert ("Not tonight.", "moon_phase") == (refused.value.message, refused.value.details["code_given"])

    @pytest.mark.parametrize(
        "answer", [httpx2.Response(502, text="<html>"), httpx2.Response(302, headers={"location": "http://y"})]
    )
    def test_what_is_no_answer_of_ours_is_told_by_its_status(self, answer: httpx2.Response) -> None:
        """A proxy's page, and a redirect, which is not followed: it would carry the key along."""
        transport = _Answers(answer)
        with Client("http://x", "k", transport=transport) as client, pytest.raises(ApiError):
            client.show_entry(new_id())
        assert 1 == len(transport.asked)


class TestRetries:
    @pytest.fixture(autouse=True)
    def _at_once(self) -> Iterator[None]:
        with stamina.set_testing(True, attempts=3, cap=True):
            yield

    def test_a_busy_service_is_asked_again_with_the_same_key(self) -> None:
        """So that what was carried out the first time is answered, not done again."""
        ack: dict[str, Any] = {"entry_id": "e", "revision": 1}
        transport = _Answers(
            httpx2.Response(503, headers={"retry-after": "1"}, json={"code": "unavailable", "detail": "later"}),
            httpx2.ConnectError("gone"),
            httpx2.Response(201, json=ack),
        )
        with Client("http://x", "k", transport=transport, attempts=3) as client:
            assert ack == client.record_finding({"title": "t"})

        assert 1 == len({request.headers["idempotency-key"] for request in transport.asked})

    def test_a_note_is_sent_once(self) -> None:
        """It has no key: twice would be two notes."""
        transport = _Answers(httpx2.ConnectError("gone"))
        with Client("http://x", "k", transport=transport) as client, pytest.raises(Unavailable):
            client.note("INC-7", "text")
        assert 1 == len(transport.asked)
