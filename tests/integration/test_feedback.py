"""What became of an answer: a verdict on one entry of one receipt, in the log and on the entry."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest

from grandbo.errors import CommandReused, Forbidden, InvalidInput, LimitExceeded, NotFound
from grandbo.library import Grandbo, TenantMemory
from tests.support import walls
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase

TOPIC = "consumers lost their leases after the broker restarted"
NOBODY = uuid.UUID("00000000-0000-7000-8000-000000000007")


def as_role(memory: TenantMemory, role: str) -> TenantMemory:
    """The same tenant, seen by someone with one role."""
    return memory._grandbo.authenticate(make_token(memory, role))


def counts(memory: TenantMemory, entry: uuid.UUID) -> dict[str, int]:
    """The verdicts in force on an entry, without those that nobody gave."""
    return {verdict: given for verdict, given in memory.show_entry(entry)["feedback"].items() if given}


@pytest.fixture
def entry(memory: TenantMemory) -> uuid.UUID:
    """One entry."""
    return memory.record_finding(make_finding()).acknowledgement.entry_id


@pytest.fixture
def investigator(memory: TenantMemory) -> TenantMemory:
    """Someone who asks."""
    return as_role(memory, "investigator")


def ask(memory: TenantMemory) -> uuid.UUID:
    """A receipt of an answer that holds the entry."""
    answer = memory.query_topic(TOPIC, mode="words")
    assert answer.matches
    return answer.receipt_id


class TestGive:
    def test_it_stands_in_the_log_and_on_the_entry(
        self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """With the receipt, the revision that was told and the note; the entry's own revision stays."""
        memory.correct(entry, {"service": "billing"}, reason="r")
        receipt = ask(investigator)
        memory.correct(entry, {"service": "search"}, reason="r")
        given = investigator.give_feedback(receipt, entry, "helped", note="It named the broker.")
        (event,) = memory.events(event_type="feedback_given", bodies=True)

        assert (True, entry, 2, True) == (
            given.appended,
            given.acknowledgement.entry_id,
            given.acknowledgement.revision,
            given.acknowledgement.created,
        )
        assert {
            "receipt_id": str(receipt),
            "entry_id": str(entry),
            "revision": 2,
            "verdict": "helped",
            "note": "It named the broker.",
        } == {name: value for name, value in event["body"].items() if name != "command_digest"}
        assert investigator.principal.ref == event["principal"]
        assert {"helped": 1, "irrelevant": 0, "wrong": 0, "stale": 0} == memory.show_entry(entry)["feedback"]
        assert 3 == memory.show_entry(entry)["revision"]
        assert memory.check_rebuild().ok
        assert memory.verify().first_bad is None

    def test_the_same_again_changes_nothing_and_another_replaces_it(
        self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """A note that is new is something new; without one, the note that there is stays."""
        receipt = ask(investigator)
        first = investigator.give_feedback(receipt, entry, "helped", note="n")
        same = [investigator.give_feedback(receipt, entry, "helped", note=note) for note in (None, "n")]
        noted = investigator.give_feedback(receipt, entry, "helped", note="another")
        changed = investigator.give_feedback(receipt, entry, "stale")

        assert [(False, first.acknowledgement.position)] * 2 == [
            (again.appended, again.acknowledgement.position) for again in same
        ]
        assert (True, True, False) == (noted.appended, changed.appended, changed.acknowledgement.created)
        assert {"stale": 1} == counts(memory, entry)
        assert 3 == len(list(memory.events(event_type="feedback_given")))
        assert memory.check_rebuild().ok

    def test_each_receipt_and_each_principal_has_a_verdict_of_its_own(
        self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Who may audit says what became of another's answer, beside what that one says."""
        receipts = [ask(investigator), ask(investigator)]
        for receipt in receipts:
            investigator.give_feedback(receipt, entry, "helped")
        as_role(memory, "auditor").give_feedback(receipts[0], entry, "wrong")

        assert {"helped": 2, "wrong": 1} == counts(memory, entry)

    def test_a_receipt_is_found_at_once(self, investigator: TenantMemory, entry: uuid.UUID) -> None:
        """Though receipts are written off the hot path."""
        for _ in range(5):
            assert investigator.give_feedback(ask(investigator), entry, "helped").appended

    def test_the_same_command_again_is_the_first_acknowledgement(
        self, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Its id with another verdict is refused."""
        receipt, command_id = ask(investigator), uuid.UUID(int=5)
        first, again = (investigator.give_feedback(receipt, entry, "helped", command_id=command_id) for _ in range(2))

        assert (first.acknowledgement, True, False) == (again.acknowledgement, again.replayed, again.appended)
        with pytest.raises(CommandReused):
            investigator.give_feedback(receipt, entry, "wrong", command_id=command_id)

    @pytest.mark.parametrize(
        ("verdict", "note", "error"),
        [
            ("good", None, InvalidInput),
            (None, None, InvalidInput),
            (7, None, InvalidInput),
            ("helped", "", InvalidInput),
            ("helped", " ", InvalidInput),
            ("helped", 7, InvalidInput),
            ("helped", "a\x00b", InvalidInput),
            ("helped", "x" * 1_001, LimitExceeded),
        ],
    )
    def test_what_does_not_fit_is_refused(
        self, investigator: TenantMemory, entry: uuid.UUID, verdict: Any, note: Any, error: type[Exception]
    ) -> None:
        """With what is allowed."""
        receipt = ask(investigator)
        with pytest.raises(error):
            investigator.give_feedback(receipt, entry, verdict, note=note)


class TestWhoMay:
    def test_a_receipt_of_someone_else_is_not_there(
        self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """As one that never was, and as an entry that the answer did not hold."""
        receipt = ask(memory)
        own = ask(investigator)
        unheld = memory.record_finding(make_finding(title="Unrelated", summary="", body="")).acknowledgement.entry_id
        refusals = []
        for answer, told in ((receipt, entry), (NOBODY, entry), (own, NOBODY), (own, unheld)):
            with pytest.raises(NotFound) as refused:
                investigator.give_feedback(answer, told, "helped")
            refusals.append(refused.value.as_dict())

        assert [refusals[0]] * 4 == refusals
        assert {} == counts(memory, entry)

    def test_an_answer_made_above_one_s_tiers_is_not_there_for_an_auditor_of_fewer(
        self, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """A reviewer sees receipts of investigators, and none that was made for the tier `admin`."""
        above, within = ask(memory), ask(as_role(memory, "investigator"))
        reviewer = as_role(memory, "reviewer")

        with pytest.raises(NotFound):
            reviewer.give_feedback(above, entry, "helped")
        assert reviewer.give_feedback(within, entry, "helped").appended

    def test_an_entry_that_rose_above_the_asker_is_not_there(
        self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Though he was told it once."""
        receipt = ask(investigator)
        memory.reclassify(entry, reason="r", visibility="admin")

        with pytest.raises(NotFound):
            investigator.give_feedback(receipt, entry, "helped")

    def test_a_hook_may_not(self, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID) -> None:
        """It was told nothing."""
        with pytest.raises(Forbidden):
            as_role(memory, "hook").give_feedback(ask(investigator), entry, "helped")

    def test_row_level_security_alone_keeps_tenants_apart(
        self, memory: TenantMemory, other_memory: TenantMemory, entry: uuid.UUID, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With every tenant predicate taken out, another tenant's receipt is not there and no verdict is counted."""
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id
        receipt = ask(other_memory)
        other_memory.give_feedback(receipt, foreign, "wrong")
        own = ask(memory)
        stripped = walls.without_predicates(monkeypatch)

        for told in (foreign, entry):
            with pytest.raises(NotFound):
                memory.give_feedback(receipt, told, "helped")
        memory.give_feedback(own, entry, "helped")
        memory.give_feedback(own, entry, "stale")
        assert {"stale": 1} == counts(memory, entry)
        assert set() == stripped.unguarded


class TestRebuild:
    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_rebuild_equals_live_after_random_feedback_and_corroboration(
        self, memory: TenantMemory, investigator: TenantMemory, seed: int
    ) -> None:
        """After each of a run of random verdicts, supports and other changes; and so it does after a rebuild."""
        chance = random.Random(seed)
        ids = [memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(3)]
        for number in range(12):
            asker = chance.choice((memory, investigator))
            answer = asker.query_topic(TOPIC, mode="words")
            told = chance.choice(answer.matches).entry_id
            note = chance.choice((None, "a note"))
            asker.give_feedback(answer.receipt_id, told, chance.choice(("helped", "wrong", "stale")), note=note)
            asker.give_feedback(answer.receipt_id, told, chance.choice(("helped", "irrelevant")))
            incident = {"source": "pager", "id": f"AGAIN-{chance.randrange(4)}"}
            memory.corroborate(chance.choice(ids), incident=incident, evidence=[{"type": "log", "uri": f"x:{number}"}])
            assert memory.check_rebuild().ok
        before = [memory.show_entry(entry) for entry in ids]
        memory.rebuild()

        assert before == [memory.show_entry(entry) for entry in ids]
        assert sum(sum(entry["feedback"].values()) for entry in before) == 12
        assert memory.check_rebuild().ok


class TestDoors:
    @pytest.fixture
    def cli(self, database: TestDatabase, memory: TenantMemory) -> Cli:
        """The command line in the test's own tenant, by words alone."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

    def test_the_command_line_gives_it_and_shows_it(
        self, cli: Cli, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """The acknowledgement with `appended`; counts on the entry, for people only those that there are."""
        receipt = ask(investigator)
        memory._grandbo.receipts.flush()
        done = cli("feedback", receipt, entry, "helped", "--note", "yes", "--json")
        told = cli("feedback", receipt, entry, "helped")

        assert (0, True, str(entry)) == (done.code, done.document["appended"], done.document["entry_id"])
        assert told.out.startswith("Nothing to change")
        assert "feedback helped 1\n" in cli("entry", "show", entry).out

    def test_it_is_given_among_the_verbs_of_an_entry_too(
        self, cli: Cli, memory: TenantMemory, investigator: TenantMemory, entry: uuid.UUID
    ) -> None:
        """The same one: what was given by either command takes the place of what the other gave."""
        receipt = ask(investigator)
        memory._grandbo.receipts.flush()

        done = cli("entry", "feedback", entry, "stale", "--receipt", receipt, "--note", "years ago", "--json")
        assert (0, True, str(entry)) == (done.code, done.document["appended"], done.document["entry_id"])
        assert cli("feedback", receipt, entry, "stale", "--note", "years ago").out.startswith("Nothing to change")

    @pytest.mark.parametrize(
        ("receipt", "told", "verdict", "code"),
        [("x", "ENTRY", "helped", 5), (str(NOBODY), "ENTRY", "helped", 5), ("RECEIPT", "ENTRY", "fine", 2)],
    )
    def test_the_command_line_refuses_under_its_code(
        self,
        cli: Cli,
        investigator: TenantMemory,
        entry: uuid.UUID,
        receipt: str,
        told: str,
        verdict: str,
        code: int,
    ) -> None:
        """Not found, or wrong in itself."""
        known = {"RECEIPT": ask(investigator), "ENTRY": entry}

        assert code == cli("feedback", known.get(receipt, receipt), known.get(told, told), verdict).code

    def test_over_http_it_is_given_with_an_idempotency_key(
        self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """By the one who asked, over the same door; a retry is the first acknowledgement again."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))
        receipt = client.post("/v1/recall", json={"topic": TOPIC, "mode": "words"}).json()["receipt_id"]
        path, body = f"/v1/receipts/{receipt}/feedback", {"entry_id": str(entry), "verdict": "irrelevant", "note": None}
        key = {"Idempotency-Key": "one"}

        first = client.post(path, json=body, headers=key)
        again = client.post(path, json=body, headers=key)
        reused = client.post(path, json={**body, "verdict": "wrong"}, headers=key)

        assert (200, True) == (first.status_code, first.json()["appended"])
        assert {**first.json(), "appended": False} == again.json()
        assert "true" == again.headers["idempotency-replayed"]
        assert (409, "command_reused") == (reused.status_code, reused.json()["code"])
        assert {"irrelevant": 1} == counts(memory, entry)

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"verdict": "good"}, 422),
            ({"verdict": None}, 422),
            ({"entry_id": None}, 422),
            ({"entry_id": str(NOBODY)}, 404),
            ({"entry_id": 7}, 404),
            ({"note": 7}, 422),
            ({"note": "x" * 1_001}, 413),
            ({"more": 1}, 422),
        ],
    )
    def test_over_http_what_does_not_fit_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID, changes: dict[str, Any], status: int
    ) -> None:
        """And nothing is written."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))
        receipt = client.post("/v1/recall", json={"topic": TOPIC, "mode": "words"}).json()["receipt_id"]
        body = {"entry_id": str(entry), "verdict": "helped", **changes}

        assert status == client.post(f"/v1/receipts/{receipt}/feedback", json=body).status_code
        assert {} == counts(memory, entry)

    def test_over_http_what_is_no_object_or_no_receipt_is_refused(
        self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """A hook may not, and nobody may without a key."""
        body = {"entry_id": str(entry), "verdict": "helped"}
        client = client_of(grandbo, token=make_token(memory, "investigator"))
        hook = client_of(grandbo, token=make_token(memory, "hook"))

        assert [422, 404, 404, 403, 401] == [
            client.post(f"/v1/receipts/{NOBODY}/feedback", json=[]).status_code,
            client.post(f"/v1/receipts/{NOBODY}/feedback", json=body).status_code,
            client.post("/v1/receipts/x/feedback", json=body).status_code,
            hook.post(f"/v1/receipts/{NOBODY}/feedback", json=body).status_code,
            client_of(grandbo).post(f"/v1/receipts/{NOBODY}/feedback", json=body).status_code,
        ]
