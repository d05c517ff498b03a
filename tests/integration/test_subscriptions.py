"""Telling the outside: signed, in the order of positions, at least once, and nothing above its tiers."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from grandbo.errors import DestinationRefused, Forbidden, InvalidInput, NotFound
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import subscription_queue
from grandbo.memory.subscriptions import MOST, Subscription
from grandbo.workers.delivering import MAX_ATTEMPTS, Deliverer, deliver
from grandbo.workers.sending import Sender
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.receiver import Received, Receiver, listening
from tests.support.twins import Hands

# The id of nothing; the same in every run, for it stands in the names of tests.
NOBODY = "0190d5b0-7c1e-7a2b-9d0e-5f3a2b1c4d5e"


@pytest.fixture
def hands() -> Hands:
    """A clock that a test moves."""
    return Hands()


@pytest.fixture
def memory(database: TestDatabase, tenant_name: str, hands: Hands) -> Iterator[TenantMemory]:
    """A tenant whose clock a test moves, in a memory that may send to this machine."""
    with Grandbo.open(settings=database.settings(send_internal=True, embedder="none"), clock=hands) as opened:
        opened.create_tenant(tenant_name)
        yield opened.tenant(tenant_name, principal="human:tester")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Someone who is told."""
    with listening() as started:
        yield started


def subscribe(memory: TenantMemory, receiver: Receiver, **options: Any) -> tuple[Subscription, str]:
    """A subscription to the receiver."""
    return memory.create_subscription(receiver.url, "bus", **options)


def state_of(memory: TenantMemory, subscription: Subscription) -> dict[str, Any]:
    """As it stands now."""
    (found,) = [item for item in memory.subscriptions() if item.subscription_id == subscription.subscription_id]
    return found.as_dict()


def record(memory: TenantMemory, **fields: Any) -> UUID:
    """An entry more."""
    return memory.record_finding(make_finding(**fields)).acknowledgement.entry_id


class TestTelling:
    def test_what_happens_is_told_signed_and_in_order(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Ids, revision, position and hash, as the log has them; no text of the entry."""
        made, secret = subscribe(memory, receiver)
        entry_id = record(memory, title="Payments stalled behind a full queue")
        memory.archive(entry_id, reason="done with", expected_revision=1)

        told = memory.deliver_events()

        assert (2, 0) == (told.delivered, told.failed)
        log = {event["position"]: event for event in memory.events()}
        assert ["entry_recorded", "entry_archived"] == [item.document["type"] for item in receiver.received]
        for item in receiver.received:
            item.verify(secret)
            event, data = log[item.position], item.document["data"]
            assert (event["hash"], event["event_id"], str(entry_id)) == (
                data["hash"],
                data["event_id"],
                data["entry_id"],
            )
            assert b"stalled" not in item.body
            assert ("/in?from=grandbo", f"127.0.0.1:{receiver.port}") == (item.path, item.headers["host"])
        assert [(1, "published"), (2, "archived")] == [
            (item.document["data"]["revision"], item.document["data"]["status"]) for item in receiver.received
        ]
        assert (0, 0) == (state_of(memory, made)["behind"], memory.deliver_events().delivered)

    def test_candidates_are_told_of_too(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Proposed and decided, by the candidate's id; the entry that came of it follows."""
        subscribe(memory, receiver)
        proposed = memory.propose(make_finding())
        another = memory._grandbo.tenant(memory.tenant_id, principal="human:another")
        another.reject_candidate(proposed.candidate_id, reason="no", expected_version=1)

        memory.deliver_events()

        told = [(item.document["type"], item.document["data"]) for item in receiver.received]
        assert ["candidate_proposed", "candidate_rejected"] == [name for name, _ in told]
        assert {str(proposed.candidate_id)} == {data["candidate_id"] for _, data in told}
        assert [1, 2] == [data["version"] for _, data in told]

    def test_types_narrow_and_the_past_can_be_had(self, memory: TenantMemory, receiver: Receiver) -> None:
        """From the first position on, and only what was asked for."""
        entry_id = record(memory)
        memory.archive(entry_id, reason="done with", expected_revision=1)

        subscribe(memory, receiver, event_types=["entry_archived"], start=1)

        assert 1 == memory.deliver_events().delivered
        assert ["entry_archived"] == [item.document["type"] for item in receiver.received]

    def test_a_new_secret_is_signed_beside_the_old_one(self, memory: TenantMemory, receiver: Receiver) -> None:
        """So that the receiver can change over when it likes; then by the new one alone."""
        made, first = subscribe(memory, receiver)
        _, second = memory.rotate_subscription(made.subscription_id)
        record(memory)
        memory.deliver_events()
        _, third = memory.rotate_subscription(made.subscription_id, keep_previous=False)
        record(memory)
        memory.deliver_events()

        one, other = receiver.received
        for secret in (first, second):
            one.verify(secret)
        other.verify(third)
        with pytest.raises(WebhookVerificationError):
            other.verify(second)

    def test_a_replay_tells_again_with_the_same_ids(self, memory: TenantMemory, receiver: Receiver) -> None:
        """The receiver knows what it has had by `webhook-id`; paused it hears nothing."""
        made, _ = subscribe(memory, receiver)
        for _ in range(3):
            record(memory)
        memory.deliver_events()
        first = [item.headers["webhook-id"] for item in receiver.received]

        memory.replay_subscription(made.subscription_id, receiver.positions[1])
        memory.pause_subscription(made.subscription_id)
        assert 0 == memory.deliver_events().delivered
        memory.resume_subscription(made.subscription_id)
        memory.deliver_events()

        assert [*first, *first[1:]] == [item.headers["webhook-id"] for item in receiver.received]

    def test_more_than_a_batch_keeps_its_order(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Every event once, by position."""
        subscribe(memory, receiver)
        lines = [json.dumps(make_finding(incident=None, id=str(number))).encode() for number in range(120)]
        assert 120 == memory.import_lines(lines, "finding").recorded

        assert 120 == memory.deliver_events().delivered
        assert [event["position"] for event in memory.events(event_type="entry_recorded")] == receiver.positions


class TestTiers:
    def test_what_stands_above_its_tiers_does_not_go_out(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Neither what is there now nor what was there then; a subscription of that tier hears it."""
        subscribe(memory, receiver)
        secret_id, shown_id = record(memory, visibility="admin"), record(memory, visibility="team")
        memory.reclassify(shown_id, visibility="tech", reason="rises", expected_revision=1)
        memory.reclassify(secret_id, visibility="team", reason="sinks", expected_revision=1)

        memory.deliver_events()

        # Of the one that sank, that it sank; of the one that rose, nothing any more.
        assert [("entry_reclassified", str(secret_id))] == [
            (item.document["type"], item.document["data"]["entry_id"]) for item in receiver.received
        ]
        receiver.received.clear()
        subscribe(memory, receiver, tiers=["team", "operations", "tech", "admin"], start=1)
        assert 4 == memory.deliver_events().delivered

    def test_a_tier_that_its_maker_does_not_see_is_refused(self, memory: TenantMemory, receiver: Receiver) -> None:
        """And so is one that does not exist."""
        with pytest.raises(InvalidInput):
            subscribe(memory, receiver, tiers=["nowhere"])

    def test_what_was_erased_does_not_go_out(self, memory: TenantMemory, receiver: Receiver, hands: Hands) -> None:
        """Not even its ids; who sees every tier is told that it is gone, so that copies can go too."""
        erased, kept = record(memory), record(memory)
        asked = memory.request_erasure(erased, reason="personal_data")
        memory._grandbo.tenant(memory.tenant_id, principal="human:second").confirm_erasure(asked.erasure_id)

        subscribe(memory, receiver, start=1)
        memory.deliver_events()
        assert [str(kept)] == [item.document["data"]["entry_id"] for item in receiver.received]

        receiver.received.clear()
        subscribe(memory, receiver, tiers=["team", "operations", "tech", "admin"], start=1)
        memory.deliver_events()
        told = [(item.document["type"], item.document["data"]["entry_id"]) for item in receiver.received]
        assert [("entry_recorded", str(kept)), ("entry_erased", str(erased))] == told

    def test_another_tenant_hears_nothing(self, memory: TenantMemory, receiver: Receiver, tenant_name: str) -> None:
        """Nor can it touch what is not its own."""
        made, _ = subscribe(memory, receiver)
        memory._grandbo.create_tenant(f"{tenant_name}-b")
        other = memory._grandbo.tenant(f"{tenant_name}-b", principal="human:tester")
        record(other)

        assert (0, []) == (other.deliver_events().delivered, other.subscriptions())
        for touch in (
            other.pause_subscription,
            other.resume_subscription,
            other.remove_subscription,
            other.test_subscription,
            other.rotate_subscription,
            lambda found: other.replay_subscription(found, 1),
        ):
            with pytest.raises(NotFound):
                touch(made.subscription_id)
        assert [] == receiver.received


class TestFailing:
    def test_what_is_not_taken_holds_back_what_comes_after(
        self, memory: TenantMemory, receiver: Receiver, hands: Hands
    ) -> None:
        """It is tried again at growing distances, and then all goes on in order."""
        made, _ = subscribe(memory, receiver)
        for _ in range(3):
            record(memory)
        receiver.answer = lambda item: 500 if len(receiver.received) in (2, 3) else 204

        assert (1, 1) == (lambda told: (told.delivered, told.failed))(memory.deliver_events())
        assert ("refused", 1) == (state_of(memory, made)["error_code"], state_of(memory, made)["attempts"])
        assert 0 == memory.deliver_events().delivered, "its time has not come"
        hands.now += timedelta(seconds=5)
        assert 1 == memory.deliver_events().failed
        hands.now += timedelta(seconds=5)
        assert 0 == memory.deliver_events().failed, "the second pause is longer"
        hands.now += timedelta(seconds=5)
        assert 2 == memory.deliver_events().delivered

        first, second, third = sorted(set(receiver.positions))
        assert [first, second, second, second, third] == receiver.positions
        assert (0, None) == (state_of(memory, made)["attempts"], state_of(memory, made)["error_code"])

    def test_it_is_given_up_and_can_be_resumed(self, memory: TenantMemory, receiver: Receiver, hands: Hands) -> None:
        """Dead after so many attempts, or at once where the receiver says so; nothing is lost."""
        made, _ = subscribe(memory, receiver)
        record(memory)
        receiver.answer = lambda _item: 503
        for _ in range(MAX_ATTEMPTS):
            memory.deliver_events()
            hands.now += timedelta(hours=3)
        assert ("dead", MAX_ATTEMPTS) == (state_of(memory, made)["state"], len(receiver.received))
        assert 0 == memory.deliver_events().failed

        receiver.answer = lambda _item: 410
        memory.resume_subscription(made.subscription_id)
        memory.deliver_events()
        assert "dead" == state_of(memory, made)["state"]

        receiver.answer = lambda _item: 204
        memory.resume_subscription(made.subscription_id)
        assert 1 == memory.deliver_events().delivered

    @pytest.mark.parametrize(
        ("answer", "seconds"), [((429, {"retry-after": "600"}), 600), ((429, {"retry-after": "soon"}), 5), (302, 5)]
    )
    def test_the_receiver_may_ask_for_time(
        self, memory: TenantMemory, receiver: Receiver, hands: Hands, answer: Any, seconds: int
    ) -> None:
        """`Retry-After` is kept to; a redirect is followed nowhere."""
        subscribe(memory, receiver)
        record(memory)
        receiver.answer = lambda _item: answer
        memory.deliver_events()
        hands.now += timedelta(seconds=seconds - 1)
        assert 0 == memory.deliver_events().failed
        hands.now += timedelta(seconds=1)
        assert 1 == memory.deliver_events().failed

    def test_an_event_that_it_cannot_take_is_passed_over_by_a_person(
        self, memory: TenantMemory, receiver: Receiver
    ) -> None:
        """`replay` from the next position on."""
        made, _ = subscribe(memory, receiver)
        record(memory)
        record(memory)
        receiver.answer = lambda item: 400 if len(receiver.received) == 1 else 204
        memory.deliver_events()

        memory.replay_subscription(made.subscription_id, receiver.positions[0] + 1)

        assert 1 == memory.deliver_events().delivered

    def test_a_receiver_that_drips_is_left(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Each byte would come within the time for one read; the whole has a time too."""
        receiver.drips = 0.05
        answer = Sender(allow_internal=True, seconds=0.4).send(
            receiver.url, {}, "msg_1", ["whsec_" + "QUJD" * 8], memory._clock()()
        )

        assert "timed_out" == answer.code

    def test_nobody_there(self, memory: TenantMemory, receiver: Receiver) -> None:
        """A closed port and a name without an address are failures like any other."""
        closed = Sender(allow_internal=True)
        now = memory._clock()()
        secret = ["whsec_" + "QUJD" * 8]

        def nowhere(_host: str, _port: int) -> list[str]:
            raise OSError("no such name")

        assert "unreachable" == closed.send("http://127.0.0.1:1/", {}, "m", secret, now).code
        unknown = Sender(resolve=nowhere).send("https://bus.example.com/", {}, "m", secret, now)
        assert "unreachable" == unknown.code


class TestAtOnce:
    def test_two_workers_do_not_reorder(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Eight at once: whoever holds the claim tells; each event comes once, in order."""
        subscribe(memory, receiver)
        for _ in range(30):
            record(memory)
        database, sender = memory._grandbo.database, Sender(allow_internal=True)
        with ThreadPoolExecutor(8) as many:
            list(many.map(lambda _: deliver(database, memory.tenant_id, sender, clock=memory._clock()), range(24)))

        assert [event["position"] for event in memory.events(event_type="entry_recorded")] == receiver.positions

    def test_a_worker_that_died_is_made_up_for(self, memory: TenantMemory, receiver: Receiver, hands: Hands) -> None:
        """It had told two and noted one: the second is told again, none is missed."""
        subscribe(memory, receiver)
        for _ in range(3):
            record(memory)
        database, sender = memory._grandbo.database, Sender(allow_internal=True)
        row = subscription_queue.claim_subscription(database, memory.tenant_id, clock=hands)
        assert row is not None
        found, _ = subscription_queue.next_events(database, row, ["team"])
        for event in found[:2]:
            sender.send(row["url"], {"data": {"position": event["position"]}}, "m", ["whsec_" + "QUJD" * 8], hands())
        assert subscription_queue.advance(database, row, found[0]["position"], clock=hands)

        assert 0 == memory.deliver_events().delivered, "it is another's still"
        hands.now += timedelta(minutes=2, seconds=1)
        assert 2 == memory.deliver_events().delivered

        first, second, third = sorted(set(receiver.positions))
        assert [first, second, second, third] == receiver.positions
        assert not subscription_queue.advance(database, row, first, clock=hands), "a late one moves nothing back"

    def test_a_change_stops_who_is_telling(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Paused in the middle of a turn: what is on its way arrives, and nothing after it."""
        made, _ = subscribe(memory, receiver)
        for _ in range(3):
            record(memory)

        def pause(_item: Received) -> int:
            memory.pause_subscription(made.subscription_id)
            return 204

        receiver.answer = pause
        memory.deliver_events()
        assert 1 == len(receiver.received)

    def test_what_is_written_goes_out_by_itself(self, memory: TenantMemory, receiver: Receiver) -> None:
        """The process that wrote it is woken; a slow receiver of another subscription holds nothing up."""
        begun, slow, arrived = threading.Event(), threading.Event(), threading.Event()

        def answer(item: Received) -> int:
            if item.path == "/slow":
                begun.set()
                slow.wait(10)
            else:
                arrived.set()
            return 204

        receiver.answer = answer
        memory.create_subscription(receiver.url.replace("/in?from=grandbo", "/slow"), "slow")
        subscribe(memory, receiver)
        deliverer = Deliverer(memory._grandbo.database, Sender(allow_internal=True), clock=memory._clock())
        deliverer._tenants = lambda: [memory.tenant_id]  # type: ignore[method-assign]  # not those of other tests
        deliverer.start()
        try:
            record(memory)
            deliverer.wake()
            assert arrived.wait(10)
            assert begun.wait(10)
        finally:
            slow.set()
            deliverer.stop()
        assert 2 == deliverer.delivered


class TestDestinations:
    @pytest.mark.parametrize(
        "url",
        [
            "http://bus.example.com/in",
            "https://localhost/in",
            "https://127.0.0.1/in",
            "https://0x7f000001/in",
            "https://2130706433/in",
            "https://10.1.2.3/in",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://168.63.129.16/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[fd00:ec2::254]/",
            "https://metadata.google.internal/",
            "https://user:word@bus.example.com/",
            "https://bus.example.com/#part",
            "https://bus.example.com:99999/",
            "ftp://bus.example.com/",
            "https:///in",
            "bus.example.com",
            "https://bus.example.com/ä",
            "https://bus.example.com/a b",
            f"https://bus.example.com/{'x' * 2_000}",
        ],
    )
    def test_what_leads_inside_is_refused(self, grandbo: Grandbo, tenant_name: str, url: str) -> None:
        """By its own words, when it is made."""
        grandbo.create_tenant(tenant_name)

        with pytest.raises(DestinationRefused):
            grandbo.tenant(tenant_name).create_subscription(url, "n")

    @pytest.mark.parametrize(
        "address",
        ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1", "fe80::1%eth0", "::ffff:192.168.0.1", "224.0.0.1"],
    )
    def test_a_name_that_leads_inside_is_refused_when_it_is_sent_to(self, memory: TenantMemory, address: str) -> None:
        """Whatever one of its addresses is; nothing is connected to."""
        sender = Sender(resolve=lambda _host, _port: ["93.184.215.14", address])
        answer = sender.send("https://bus.example.com/", {}, "m", ["whsec_" + "QUJD" * 8], memory._clock()())

        assert "destination_refused" == answer.code

    @pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://[fe80::1]/", "http://0.0.0.0/"])
    def test_some_are_refused_wherever_internal_ones_are_allowed(self, memory: TenantMemory, url: str) -> None:
        """Clouds tell a machine its credentials there."""
        with pytest.raises(DestinationRefused):
            memory.create_subscription(url, "n")
        answer = Sender(allow_internal=True).send(url, {}, "m", ["whsec_" + "QUJD" * 8], memory._clock()())
        assert "destination_refused" == answer.code


class TestKeeping:
    def test_what_makes_no_sense_is_refused(self, memory: TenantMemory, receiver: Receiver) -> None:
        """A blank name, a type that is no entry's or candidate's, a position that is not there yet, a weak secret."""
        for options in ({"event_types": ["policy_changed"]}, {"start": 99}, {"start": 0}, {"secret": "whsec_QUJD"}):
            with pytest.raises(InvalidInput):
                subscribe(memory, receiver, **options)
        with pytest.raises(InvalidInput):
            memory.create_subscription(receiver.url, " ")
        made, _ = subscribe(memory, receiver)
        with pytest.raises(InvalidInput):
            memory.replay_subscription(made.subscription_id, 99)

    def test_there_is_an_end_to_how_many(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Each is told every event, so their number is bounded."""
        for _ in range(MOST):
            subscribe(memory, receiver)
        with pytest.raises(InvalidInput):
            subscribe(memory, receiver)

    def test_it_is_for_who_administers(self, memory: TenantMemory, receiver: Receiver) -> None:
        """Not for who reviews."""
        made, _ = subscribe(memory, receiver)
        poor = memory._grandbo.tenant(
            memory.tenant_id, principal=replace(memory.principal, roles=frozenset({"reviewer"}))
        )
        for call in (
            lambda: poor.create_subscription(receiver.url, "n"),
            poor.subscriptions,
            poor.deliver_events,
            lambda: poor.rotate_subscription(made.subscription_id),
            lambda: poor.pause_subscription(made.subscription_id),
            lambda: poor.resume_subscription(made.subscription_id),
            lambda: poor.replay_subscription(made.subscription_id, 1),
            lambda: poor.remove_subscription(made.subscription_id),
            lambda: poor.test_subscription(made.subscription_id),
        ):
            with pytest.raises(Forbidden):
                call()

    def test_at_the_command_line(self, memory: TenantMemory, receiver: Receiver, database: TestDatabase) -> None:
        """Made, listed, tried, told, stopped, told again from a position, taken away."""
        cli = Cli(
            GRANDBO_DATABASE_URL=database.service,
            GRANDBO_EMBEDDER="none",
            GRANDBO_TENANT=memory.tenant.name,
            GRANDBO_SEND_INTERNAL="true",
        )
        made = cli("subscription", "create", receiver.url, "--name", "bus", "--tier", "team", "--json").document
        which = made["subscription_id"]
        assert made["secret"] not in cli("subscription", "list", "--json").out
        record(memory)
        assert {"delivered": 1, "failed": 0} == cli("subscription", "deliver", "--json").document
        receiver.received[0].verify(made["secret"])
        given = cli("subscription", "rotate", which, "--secret-stdin", "--json", stdin=f"{made['secret']}\n").document
        assert made["secret"] == given["secret"]
        assert ["paused", "active"] == [
            cli("subscription", verb, which, "--json").document["state"] for verb in ("pause", "resume")
        ]
        assert "2 behind" in cli("subscription", "replay", which, "--from", "1").out
        assert 0 == cli("subscription", "test", which).code
        receiver.answer = lambda _item: 500
        assert 1 == cli("subscription", "test", which, "--json").code
        cli("subscription", "deliver")
        assert "refused" in cli("subscription", "list").out
        assert "1 attempts in vain" in cli("doctor", "--tenant", memory.tenant.name).out
        assert [0, 5, 5] == [cli("subscription", "remove", item).code for item in (which, which, "x")]
        assert 2 == cli("subscription", "create", "https://10.0.0.1", "--name", "n", "--tier", "none").code

    def test_over_http(self, memory: TenantMemory, receiver: Receiver) -> None:
        """The same verbs, with the same answers."""
        client = client_of(memory._grandbo, token=make_token(memory, "admin", kind="human"))
        made = client.post("/v1/subscriptions", json={"url": receiver.url, "name": "n", "tiers": ["team"]})
        assert 201 == made.status_code
        path = f"/v1/subscriptions/{made.json()['subscription_id']}"
        assert made.json()["secret"] not in client.get("/v1/subscriptions").text
        assert made.json()["secret"] != client.post(f"{path}/rotate", json={}).json()["secret"]
        assert client.post(f"{path}/test").json()["ok"]
        assert "subscription_tested" == receiver.received[0].document["type"]
        assert ["paused", "active"] == [client.post(f"{path}/{verb}").json()["state"] for verb in ("pause", "resume")]
        assert 0 == client.post(f"{path}/replay", json={"start": 1}).json()["position"]
        assert [204, 404] == [client.delete(path).status_code for _ in range(2)]

    @pytest.mark.parametrize(
        ("path", "body", "status"),
        [
            ("", {"url": "https://bus.example.com/"}, 422),
            ("", {"url": 7, "name": "n"}, 422),
            ("", {"url": "https://10.0.0.1:/", "name": "n", "tiers": "team"}, 422),
            ("", {"url": "https://bus.example.com/", "name": "n", "start": True}, 422),
            ("", {"url": "https://bus.example.com/", "name": "n", "more": 1}, 422),
            ("/x/pause", None, 422),
            (f"/{NOBODY}/pause", None, 404),
            (f"/{NOBODY}/replay", {"start": "1"}, 422),
            (f"/{NOBODY}/rotate", {"keep_previous": 1}, 422),
        ],
    )
    def test_bad_input_is_told(self, memory: TenantMemory, path: str, body: object, status: int) -> None:
        """With a problem, never a fault of ours."""
        client = client_of(memory._grandbo, token=make_token(memory, "admin", kind="human"))

        assert status == client.post(f"/v1/subscriptions{path}", json=body).status_code
