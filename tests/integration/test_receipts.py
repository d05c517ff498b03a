"""Receipts: read by who may, listed by entry and page, replayed and equal, or the difference is named."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from grandbo.embedding import Embedder
from grandbo.errors import (
    EmbedderTransient,
    Forbidden,
    InvalidInput,
    NotFound,
    ReceiptBeyondTiers,
    ReceiptNotReplayable,
    TopicMismatch,
    Unavailable,
)
from grandbo.http import recall_schemas as schemas
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.histories import History
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import Switchable

TOPIC = "consumers lost their leases after the broker restarted"


def as_role(memory: TenantMemory, role: str) -> TenantMemory:
    """The same tenant, seen by someone with one role."""
    return memory._grandbo.authenticate(make_token(memory, role, kind="human"))


@pytest.fixture
def entry(memory: TenantMemory) -> uuid.UUID:
    """One embedded entry."""
    entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
    memory.embed()
    return entry_id


@pytest.fixture
def cli(database: TestDatabase, tenant_name: str) -> Cli:
    """The command line on the same database; it embeds nothing."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=tenant_name)


class TestReading:
    def test_a_receipt_says_what_was_answered_and_not_what_was_asked(
        self, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Who, when, where in the log, with which filters, which entries; of the topic nothing."""
        answer = memory.query_topic(TOPIC, kinds=["finding"], limit=3)

        receipt = memory.receipt(answer.receipt_id)

        assert memory.principal.ref == receipt["principal"]
        assert (answer.position, 1) == (receipt["position"], receipt["key_epoch"])
        assert (["finding"], 3, ["published"]) == tuple(
            receipt["parameters"][name] for name in ("kinds", "limit", "statuses")
        )
        assert [str(entry)] == [match["entry_id"] for match in receipt["matches"]]
        assert answer.searched.as_dict() == receipt["searched"]
        assert not [word for word in TOPIC.split() if word in json.dumps(receipt)]

    def test_a_list_is_newest_first_and_goes_on_where_a_page_ended(
        self, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """No receipt twice, none left out."""
        made = [str(memory.query_topic(TOPIC).receipt_id) for _ in range(5)]

        first = [receipt["receipt_id"] for receipt in memory.receipts(limit=3)]
        rest = [receipt["receipt_id"] for receipt in memory.receipts(limit=3, after=uuid.UUID(first[-1]))]

        assert made[::-1] == first + rest

    def test_who_was_told_an_entry(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Receipts of the answers that held it, and of no other."""
        told = memory.query_topic(TOPIC)
        memory.query_topic("zebra xylophone", mode="words")

        assert [str(told.receipt_id)] == [receipt["receipt_id"] for receipt in memory.receipts(entry_id=entry)]
        with pytest.raises(NotFound):
            memory.receipts(entry_id=uuid.uuid4())

    def test_who_was_told_is_looked_up_and_not_searched_for(
        self, memory: TenantMemory, entry: uuid.UUID, database: TestDatabase
    ) -> None:
        """The index has a row for each entry of an answer, with its revision; the list is what the index says."""
        told, gone = memory.query_topic(TOPIC), memory.query_topic(TOPIC)
        memory.receipt(gone.receipt_id)
        with database.as_admin() as conn:
            rows = conn.execute(
                "SELECT receipt_id, revision FROM grandbo.org_memory_receipt_entries WHERE entry_id = %s"
                " ORDER BY receipt_id",
                (entry,),
            ).fetchall()
            conn.execute("DELETE FROM grandbo.org_memory_receipt_entries WHERE receipt_id = %s", (gone.receipt_id,))

        assert [(told.receipt_id, 1), (gone.receipt_id, 1)] == rows
        assert [str(told.receipt_id)] == [receipt["receipt_id"] for receipt in memory.receipts(entry_id=entry)]

    def test_who_was_told_goes_on_where_a_page_ended(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Newest first, no receipt twice, none left out."""
        made = [str(memory.query_topic(TOPIC).receipt_id) for _ in range(5)]

        first = [receipt["receipt_id"] for receipt in memory.receipts(entry_id=entry, limit=3)]
        rest = memory.receipts(entry_id=entry, limit=3, after=uuid.UUID(first[-1]))

        assert made[::-1] == first + [receipt["receipt_id"] for receipt in rest]

    @pytest.mark.parametrize("limit", [0, 501, True, "5"])
    def test_a_page_has_a_size(self, memory: TenantMemory, limit: Any) -> None:
        """Refused with the sizes that there are."""
        with pytest.raises(InvalidInput, match="from 1 to 500"):
            memory.receipts(limit=limit)

    def test_a_receipt_made_above_the_caller_s_tiers_is_not_there(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Neither by id nor in a list; one of an investigator is."""
        above = memory.query_topic(TOPIC)
        within = as_role(memory, "investigator").query_topic(TOPIC)
        reviewer = as_role(memory, "reviewer")

        with pytest.raises(NotFound):
            reviewer.receipt(above.receipt_id)
        assert [str(within.receipt_id)] == [receipt["receipt_id"] for receipt in reviewer.receipts()]

    def test_a_match_that_rose_above_the_caller_is_left_out(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """The receipt must not tell of an entry what the entry itself would not."""
        answer = as_role(memory, "investigator").query_topic(TOPIC)
        memory.reclassify(entry, reason="r", visibility="admin")
        reviewer = as_role(memory, "reviewer")

        assert [] == reviewer.receipt(answer.receipt_id)["matches"]
        assert 1 == len(memory.receipt(answer.receipt_id)["matches"])
        with pytest.raises(NotFound):
            reviewer.receipts(entry_id=entry)
        with pytest.raises(ReceiptBeyondTiers):
            reviewer.replay_receipt(answer.receipt_id, TOPIC)

    def test_another_tenant_s_receipt_is_not_there(
        self, memory: TenantMemory, other_memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """It looks like one that never was."""
        answer = memory.query_topic(TOPIC)

        assert [] == other_memory.receipts()
        for verb in (other_memory.receipt, lambda one: other_memory.replay_receipt(one, TOPIC)):
            with pytest.raises(NotFound):
                verb(answer.receipt_id)

    def test_it_needs_who_may_audit(self, memory: TenantMemory) -> None:
        """An investigator reads no receipts; to change the key needs an admin."""
        investigator, auditor = as_role(memory, "investigator"), as_role(memory, "auditor")
        for refused in (
            lambda: investigator.receipts(),
            lambda: investigator.receipt(uuid.uuid4()),
            lambda: investigator.replay_receipt(uuid.uuid4(), TOPIC),
            lambda: auditor.rotate_receipt_key(),
        ):
            with pytest.raises(Forbidden):
                refused()


class TestIncident:
    @pytest.mark.parametrize("incident", [("pager", "INC-1"), {"source": "pager", "id": "INC-1"}])
    def test_it_stands_in_the_receipt_and_narrows_nothing(
        self, memory: TenantMemory, entry: uuid.UUID, incident: Any
    ) -> None:
        """The same answer with it and without; the receipt of the one names it, and both replay."""
        plain, named = memory.query_topic(TOPIC), memory.query_topic(TOPIC, incident=incident)

        assert plain.as_dict()["matches"] == named.as_dict()["matches"]
        assert [None, {"source": "pager", "id": "INC-1"}] == [
            memory.receipt(answer.receipt_id)["parameters"]["incident"] for answer in (plain, named)
        ]
        assert memory.replay_receipt(plain.receipt_id, TOPIC).equal
        assert memory.replay_receipt(named.receipt_id, TOPIC).equal

    def test_both_answers_of_a_difference_name_it(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Then and today are asked for the same incident."""
        position = memory.verify().head
        found = memory.query_topic_diff(TOPIC, as_of_position=position, incident=("pager", "INC-1"))

        assert [{"source": "pager", "id": "INC-1"}] * 2 == [
            memory.receipt(answer.receipt_id)["parameters"]["incident"] for answer in (found.then, found.today)
        ]

    @pytest.mark.parametrize(
        ("incident", "field"),
        [
            ("pager:INC-1", "incident"),
            (["pager", "INC-1"], "incident"),
            (("pager",), "incident"),
            (("pager", ""), "incident.id"),
            ((5, "INC-1"), "incident.source"),
            ({"source": "pager"}, "incident.id"),
            ({"source": "pager", "id": "1", "more": 1}, "incident.more"),
            ({"source": "pa\nger", "id": "1"}, "incident.source"),
            ({"source": "pager", "id": "x" * 201}, "incident.id"),
            ({"source": "pager", "id": "\ud800"}, "incident.id"),
        ],
    )
    def test_what_is_no_incident_is_refused(self, memory: TenantMemory, incident: Any, field: str) -> None:
        """As a finding's would be, with the field; nothing is answered."""
        with pytest.raises(InvalidInput) as refused:
            memory.query_topic(TOPIC, incident=incident)
        assert field == refused.value.details["field"]

    def test_at_the_other_doors(self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID, cli: Cli) -> None:
        """HTTP takes an object, the command line SOURCE:ID, where the id may hold colons."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))
        asked = client.post("/v1/recall", json={"topic": TOPIC, "incident": {"source": "pager", "id": "INC:1"}})
        said = cli("recall", TOPIC, "--incident", "pager:INC:1", "--json").document

        for receipt_id in (asked.json()["receipt_id"], said["receipt_id"]):
            receipt = memory.receipt(uuid.UUID(receipt_id))
            assert {"source": "pager", "id": "INC:1"} == receipt["parameters"]["incident"]
        wrong = client.post("/v1/recall", json={"topic": TOPIC, "incident": {"source": "pager"}})
        assert (422, "incident.id") == (wrong.status_code, wrong.json()["field"])
        assert 422 == client.post("/v1/recall", json={"topic": TOPIC, "incident": "pager:1"}).status_code
        for refused in ("pager", ":1", "pager:"):
            assert (2, "invalid_input") == (
                (done := cli("recall", TOPIC, "--incident", refused, "--json")).code,
                done.error["code"],
            )


class TestReplay:
    def test_every_receipt_of_a_random_history_replays_equal(self, memory: TenantMemory) -> None:
        """Whatever happened since, whoever asked, with whatever filters, before and after a change of the key."""
        callers = {role: as_role(memory, role) for role in ("investigator", "admin")}
        history = History(memory, callers, seed=7)
        history.grow(60, 30)
        memory.rotate_receipt_key()
        history.grow(60, 30)
        auditor = as_role(memory, "auditor")

        for asked in history.asked:
            replay = auditor.replay_receipt(asked.answer.receipt_id, asked.question["topic"])
            assert () == replay.differences
        assert {1, 2} == {receipt["key_epoch"] for receipt in auditor.receipts(limit=100)}

    def test_a_receipt_of_an_as_of_recall_replays_too(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """As what it was: the past, seen from when it was asked, within the tiers of who asked."""
        position = memory.query_topic(TOPIC).position
        memory.reclassify(entry, reason="r", visibility="admin")
        reviewer = as_role(memory, "reviewer")
        hidden = reviewer.query_topic(TOPIC, as_of_position=position)
        seen = memory.query_topic(TOPIC, as_of_position=position, as_role="investigator")
        memory.reclassify(entry, reason="r", visibility="team")

        assert [] == list(hidden.matches)
        for answer in (hidden, seen):
            assert () == memory.replay_receipt(answer.receipt_id, TOPIC).differences

    @pytest.mark.parametrize("topic", [TOPIC.upper(), TOPIC + "?", "another topic altogether"])
    def test_another_topic_is_refused(self, memory: TenantMemory, entry: uuid.UUID, topic: str) -> None:
        """The keyed digest knows; the error holds neither topic."""
        answer = memory.query_topic(TOPIC)

        with pytest.raises(TopicMismatch) as caught:
            memory.replay_receipt(answer.receipt_id, topic)
        assert topic not in str(caught.value.as_dict())

    def test_a_receipt_that_was_tampered_with_names_the_difference(
        self, memory: TenantMemory, entry: uuid.UUID, database: TestDatabase
    ) -> None:
        """A superuser's edit of a match and of a count are found, each where it is."""
        answer = memory.query_topic(TOPIC)
        memory.receipt(answer.receipt_id)
        other = str(uuid.uuid4())
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_receipts SET"
                " matches = jsonb_set(matches, '{0,entry_id}', to_jsonb(%s::text)),"
                " searched = jsonb_set(searched, '{eligible}', '7') WHERE receipt_id = %s",
                (other, answer.receipt_id),
            )

        replay = memory.replay_receipt(answer.receipt_id, TOPIC)

        assert not replay.equal
        assert [
            {"what": "searched.eligible", "then": 7, "now": 1},
            {"what": "matches[0].entry_id", "then": other, "now": str(entry)},
        ] == list(replay.differences)

    def test_a_receipt_of_before_tiers_were_kept_replays(
        self, memory: TenantMemory, entry: uuid.UUID, database: TestDatabase
    ) -> None:
        """The tiers are those that the policy then gave to the asker's roles."""
        answer = as_role(memory, "investigator").query_topic(TOPIC)
        memory.receipt(answer.receipt_id)
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_receipts SET parameters = parameters - '{tiers,as_of,statuses}'::text[]"
                " WHERE receipt_id = %s",
                (answer.receipt_id,),
            )

        assert memory.replay_receipt(answer.receipt_id, TOPIC).equal
        with pytest.raises(NotFound):
            as_role(memory, "reviewer").receipt(answer.receipt_id)


class TestSpaces:
    @pytest.fixture
    def opened(self, database: TestDatabase, provider: Switchable) -> Iterator[Grandbo]:
        """A memory with that provider."""
        with Grandbo.open(settings=database.settings(), embedder=Embedder(provider)) as opened:
            yield opened

    def test_an_answer_by_words_alone_replays_by_words_alone(
        self, memory: TenantMemory, entry: uuid.UUID, opened: Grandbo, provider: Switchable
    ) -> None:
        """The provider was down then; that it is up now changes nothing."""
        provider.failure = EmbedderTransient("down")
        answer = opened.tenant(str(memory.tenant_id)).query_topic(TOPIC)
        opened.receipts.flush()

        assert "embedder_transient" == answer.searched.degraded
        assert memory.replay_receipt(answer.receipt_id, TOPIC).equal

    def test_a_provider_that_is_down_now_is_no_difference(
        self, memory: TenantMemory, entry: uuid.UUID, opened: Grandbo, provider: Switchable
    ) -> None:
        """The replay says that it cannot be made at the moment."""
        answer = memory.query_topic(TOPIC)
        memory.receipt(answer.receipt_id)
        provider.failure = EmbedderTransient("down")

        with pytest.raises(Unavailable, match="embedder_transient"):
            opened.tenant(str(memory.tenant_id)).replay_receipt(answer.receipt_id, TOPIC)

    def test_another_space_is_named(self, memory: TenantMemory, entry: uuid.UUID, database: TestDatabase) -> None:
        """Vectors of another space cannot be compared with these."""
        answer = memory.query_topic(TOPIC)
        memory.receipt(answer.receipt_id)

        with (
            Grandbo.open(settings=database.settings(embedder="none")) as opened,
            pytest.raises(ReceiptNotReplayable, match=str(answer.searched.stamp)),
        ):
            opened.tenant(str(memory.tenant_id)).replay_receipt(answer.receipt_id, TOPIC)


class TestCommandLine:
    def test_show_list_and_replay(self, memory: TenantMemory, entry: uuid.UUID, cli: Cli) -> None:
        """A recall's receipt is shown, found by entry, and equal."""
        told = cli("recall", TOPIC, "--json").document
        receipt = told["receipt_id"]

        assert told["position"] == cli("receipt", "show", receipt, "--json").document["position"]
        assert str(entry) in cli("receipt", "show", receipt).out
        assert [receipt] == [row["receipt_id"] for row in cli("receipt", "list", "--entry", entry, "--json").documents]
        assert receipt in cli("receipt", "list").out
        assert (0, "equal\n") == ((done := cli("receipt", "replay", receipt, "--topic", TOPIC)).code, done.out)
        assert cli("receipt", "replay", receipt, "--topic", TOPIC, "--json").document["equal"]

    def test_a_page_says_that_there_is_more(self, memory: TenantMemory, entry: uuid.UUID, cli: Cli) -> None:
        """Who was told is never cut unseen; the last page says nothing."""
        made = [cli("recall", TOPIC, "--json").document["receipt_id"] for _ in range(3)]

        first = cli("receipt", "list", "--entry", entry, "--limit", "2", "--json")
        rest = cli("receipt", "list", "--entry", entry, "--limit", "2", "--after", made[1])

        assert ([made[2], made[1]], {"next": made[1]}) == (
            [row["receipt_id"] for row in first.documents],
            json.loads(first.err),
        )
        assert made[0] in rest.out
        assert "" == rest.err

    def test_what_is_not_equal_ends_with_1(
        self, memory: TenantMemory, entry: uuid.UUID, cli: Cli, database: TestDatabase
    ) -> None:
        """And names the difference; another topic is a usage error."""
        receipt = cli("recall", TOPIC, "--json").document["receipt_id"]
        with database.as_admin() as conn:
            conn.execute("UPDATE grandbo.org_memory_receipts SET matches = '[]' WHERE receipt_id = %s", (receipt,))

        done = cli("receipt", "replay", receipt, "--topic", TOPIC)

        assert 1 == done.code
        assert "matches[0].entry_id" in done.out
        assert (2, "topic_mismatch") == (
            (wrong := cli("receipt", "replay", receipt, "--topic", "some other topic", "--json")).code,
            wrong.error["code"],
        )
        assert "not_found" == cli("receipt", "show", "no-id", "--json").error["code"]
        assert 2 == cli("receipt", "rotate-key", "--json").document["key_epoch"]
        assert "key_epoch  3" in cli("receipt", "rotate-key").out

    def test_recall_as_of_and_its_difference(self, memory: TenantMemory, entry: uuid.UUID, cli: Cli) -> None:
        """The options are the library's arguments; text and JSON name what changed."""
        position = memory.verify().head
        memory.archive(entry, reason="r")

        then = cli("recall", TOPIC, "--as-of-position", position, "--as-role", "investigator", "--json").document
        diff = cli("recall", TOPIC, "--as-of-position", position, "--diff")

        assert [str(entry)] == [match["entry_id"] for match in then["matches"]]
        assert (0, True) == (diff.code, f"entry_archived at {position + 1}" in diff.out)
        assert (
            str(entry)
            == cli("recall", TOPIC, "--as-of-position", position, "--diff", "--json").document["dropped"][0]["entry_id"]
        )
        assert "ARCHIVED" in cli("recall", TOPIC, "--status", "archived").out
        assert 2 == cli("recall", TOPIC, "--as-of", "2026-03-29T02:30:00").code
        assert 2 == cli("recall", TOPIC, "--diff").code
        assert 2 == cli("recall", TOPIC, "--diff", "--render", "--as-of-position", position).code
        assert "moment_unknown" == cli("recall", TOPIC, "--as-of-position", 999, "--json").error["code"]


class TestHttp:
    def test_the_routes_give_what_the_library_gives(
        self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Pages, one receipt, a replay, in the declared shapes."""
        client = client_of(grandbo, token=make_token(memory, "auditor"))
        receipts = [client.post("/v1/recall", json={"topic": TOPIC}).json()["receipt_id"] for _ in range(3)]

        page = client.get("/v1/receipts", params={"entry": str(entry), "limit": 2}).json()
        rest = client.get("/v1/receipts", params={"after": page["next"], "limit": 2}).json()
        one = client.get(f"/v1/receipts/{receipts[0]}").json()
        replay = client.post(f"/v1/receipts/{receipts[0]}/replay", json={"topic": TOPIC}).json()

        assert receipts[::-1] == [item["receipt_id"] for item in page["receipts"] + rest["receipts"]]
        assert rest["next"] is None
        assert schemas.ReceiptsDocument.model_validate(page).model_dump() == page
        assert schemas.ReceiptDocument.model_validate(one).model_dump() == one == rest["receipts"][0]
        assert {"receipt_id": receipts[0], "equal": True, "differences": []} == replay

    def test_what_does_not_fit_is_a_problem(self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID) -> None:
        """With its status and code, never a fault of the server."""
        client = client_of(grandbo, token=make_token(memory, "auditor"))
        poor = client_of(grandbo, token=make_token(memory, "investigator"))
        replay = f"/v1/receipts/{client.post('/v1/recall', json={'topic': TOPIC}).json()['receipt_id']}/replay"

        assert [403, 403, 404, 404, 404, 404, 422, 422, 422, 422, 422] == [
            answer.status_code
            for answer in (
                poor.get("/v1/receipts"),
                poor.post(replay, json={"topic": TOPIC}),
                client.get(f"/v1/receipts/{uuid.uuid4()}"),
                client.get("/v1/receipts", params={"entry": str(uuid.uuid4())}),
                client.get("/v1/receipts/not-an-id"),
                client.post("/v1/receipts/not-an-id/replay", json={"topic": TOPIC}),
                client.get("/v1/receipts", params={"limit": 0}),
                client.get("/v1/receipts", params={"after": "x"}),
                client.post(replay, json={"topic": "a different topic"}),
                client.post(replay, json={"topic": TOPIC, "more": 1}),
                client.post(replay, json={"topic": 5}),
            )
        ]

    def test_recall_as_of(self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID) -> None:
        """The body's fields are the library's arguments; a difference has its declared shape."""
        client = client_of(grandbo, token=make_token(memory, "auditor"))
        position = memory.verify().head
        memory.archive(entry, reason="r")
        asked = {"topic": TOPIC, "as_of_position": position, "as_role": "investigator"}

        then = client.post("/v1/recall", json=asked).json()
        diff = client.post("/v1/recall", json={**asked, "diff": True}).json()

        assert [str(entry)] == [match["entry_id"] for match in then["matches"]]
        assert schemas.DifferenceDocument.model_validate(diff).model_dump() == diff
        assert [str(entry)] == [change["entry_id"] for change in diff["dropped"]]
        assert 200 == client.post("/v1/recall", json={"topic": TOPIC, "statuses": "archived"}).status_code

    @pytest.mark.parametrize(
        "wrong",
        [
            {"as_of": "2026-03-29T02:30:00"},
            {"as_of": {}},
            {"as_of": "\ud800T"},
            {"valid_at": "9999-12-31T23:59:59-23:59"},
            {"as_of_position": 10**40},
            {"as_of_position": 1.5},
            {"as_role": []},
            {"statuses": [{}]},
            {"diff": "yes"},
            {"diff": True},
        ],
    )
    def test_a_field_that_does_not_fit(self, grandbo: Grandbo, memory: TenantMemory, wrong: dict[str, Any]) -> None:
        """422, and the problem names the field."""
        client = client_of(grandbo, token=make_token(memory, "auditor"))

        content = json.dumps({"topic": TOPIC, **wrong})
        answer = client.post("/v1/recall", content=content, headers={"Content-Type": "application/json"})

        assert 422 == answer.status_code, answer.text
        assert answer.json()["field"] in {*wrong, "status"}
