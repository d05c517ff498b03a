"""Erasure of single revisions: what was found late in a text goes, and the history before and after is what it was."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import (
    ErasureMissing,
    Forbidden,
    GrandboError,
    IllegalTransition,
    InvalidInput,
    NotFound,
    SubjectOnHold,
)
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import erasing, erasing_revisions
from grandbo.memory.erasing import Erasure
from grandbo.memory.erasure_list import LIST_FILE
from grandbo.recall.receipts import Receipt
from grandbo.storage import migrate
from grandbo.storage.embedded.install import find_install
from grandbo.types import new_id
from tests.support import forget_child
from tests.support.cli import Cli
from tests.support.erasing import SCRIPTS, SECRET, TOPIC, dump, holds, record_secret, secret_finding
from tests.support.factories import make_finding
from tests.support.histories import History
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.warm import run_warm

CLEAN = {
    "title": "Somebody forgot the lease renewal",
    "summary": "Somebody was on call.",
    "body": "Ask whoever is on call first.",
    "tags": ["lease"],
    "evidence": [{"type": "log", "uri": "https://logs.example.com/1", "label": "log"}],
}


def cleaned(memory: TenantMemory, **fields: Any) -> UUID:
    """The same once its text was corrected: revision 2, with vectors of its own."""
    entry_id = record_secret(memory, **fields)
    memory.correct(entry_id, CLEAN, reason="no names")
    memory.embed()
    return entry_id


def redact(first: TenantMemory, second: TenantMemory, entry_id: UUID, *revisions: int) -> Erasure:
    """Asked for by one, confirmed by the other."""
    asked = first.request_erasure(entry_id, "personal_data", revisions=revisions)
    return second.confirm_erasure(asked.erasure_id)


def assert_sound(memory: TenantMemory) -> None:
    """The chain holds; a replay gives the same rows, and so does one that takes their place."""
    assert memory.verify().first_bad is None
    assert [] == memory.check_rebuild().differences
    memory.rebuild()
    assert [] == memory.check_rebuild().differences


class TestRedacted:
    @pytest.mark.parametrize("form", ["plain", "custom"])
    def test_no_byte_of_it_is_left(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase, tmp_path: Path, form: str
    ) -> None:
        """In no table, export or rebuilt row; the same search found it before."""
        entry_id = cleaned(first)
        first.query_topic(TOPIC)
        before = dump(clone)
        done = redact(first, second, entry_id, 1)
        first.rebuild()
        options = [] if form == "plain" else ["-Fc", "-Z0"]
        first.export(tmp_path / "bundle")
        exported = b"".join(path.read_bytes() for path in (tmp_path / "bundle").rglob("*") if path.is_file())

        assert holds(before)
        assert not holds(dump(clone, *options))
        assert not holds(exported)
        assert not holds(json.dumps(done.as_dict()).encode())
        assert not holds(b"".join(path.read_bytes() for path in (tmp_path / "home").glob("*.jsonl")))

    def test_a_tombstone_stands_in_its_place_and_the_rest_is_as_it_was(
        self, first: TenantMemory, second: TenantMemory
    ) -> None:
        """Numbers, times, authors, types and hashes stay; what it says now is found by both signals."""
        entry_id = cleaned(first)
        before, current = first.history(entry_id), first.show_entry(entry_id)
        found = [first.query_topic("somebody forgot the lease renewal", mode=mode) for mode in ("words", "meaning")]
        done = redact(first, second, entry_id, 1)
        after = first.history(entry_id)

        assert before[1:] == after[1:]
        gone = after[0]
        assert [True, "", "", "", [], []] == [
            gone["erased"],
            *(gone["state"][name] for name in ("title", "summary", "body", "tags", "evidence")),
        ]
        kept = ("revision", "position", "event_type", "principal", "at", "reason")
        assert [before[0][name] for name in kept] == [gone[name] for name in kept]
        assert [before[0]["state"][name] for name in ("kind", "visibility", "status", "incident_id")] == [
            gone["state"][name] for name in ("kind", "visibility", "status", "incident_id")
        ]
        assert current == first.show_entry(entry_id)
        again = [first.query_topic("somebody forgot the lease renewal", mode=mode) for mode in ("words", "meaning")]
        assert [answer.matches for answer in found] == [answer.matches for answer in again]
        assert done.outcome is not None
        assert [[1], 2, 1] == [
            done.outcome["revisions"],
            done.outcome["bodies_removed"],
            done.outcome["rows_removed"]["embeddings"],
        ]
        assert_sound(first)

    def test_of_its_time_nothing_is_told(self, first: TenantMemory, second: TenantMemory) -> None:
        """As of a position inside it the entry shows the tombstone and no recall finds it; after it, as it was."""
        entry_id = cleaned(first)
        history = first.history(entry_id)
        inside, later = history[0]["position"] + 1, history[1]["position"]
        then = first.query_topic("somebody forgot the lease renewal", as_of_position=later, mode="words").matches
        redact(first, second, entry_id, 1)
        shown = first.show_entry(entry_id, as_of_position=inside)

        assert [True, "", 1] == [shown[name] for name in ("erased", "title", "revision")]
        assert not first.show_entry(entry_id, as_of_position=later)["erased"]
        for mode in ("words", "meaning", "hybrid"):
            assert () == first.query_topic(TOPIC, as_of_position=inside, mode=mode).matches
        assert (
            then == first.query_topic("somebody forgot the lease renewal", as_of_position=later, mode="words").matches
        )
        for position in range(1, first.verify().events + 1):
            assert [] == first.check_rebuild(until=position).differences

    def test_one_in_the_middle_goes_alone(self, first: TenantMemory, second: TenantMemory) -> None:
        """With the revisions that only repeat its text: an archiving, a dispute, another tier."""
        entry_id = first.record_finding(make_finding()).acknowledgement.entry_id
        first.embed()
        first.correct(entry_id, {"summary": f"{SECRET} was on call."}, reason=f"{SECRET} says so")
        first.embed()
        first.archive(entry_id, reason="put away")
        first.reclassify(entry_id, reason="higher", visibility="tech")
        first.unarchive(entry_id, reason="back")
        first.correct(entry_id, {"summary": "Somebody was on call."}, reason="no names")
        first.embed()
        before = first.history(entry_id)
        done = redact(first, second, entry_id, 2)
        after = first.history(entry_id)

        assert done.outcome is not None
        assert [2, 3, 4, 5] == done.outcome["revisions"]
        assert [False, True, True, True, True, False] == [item["erased"] for item in after]
        assert [before[0], before[5]] == [after[0], after[5]]
        assert [None, None, "put away", None, "back", "no names"] == [item["reason"] for item in after]
        assert ["archived", "archived", "published"] == [item["state"]["status"] for item in after[2:5]]
        assert ["tech"] * 3 == [item["state"]["visibility"] for item in after[3:]]
        assert_sound(first)

    def test_a_reason_goes_alone(self, first: TenantMemory, second: TenantMemory, clone: TestDatabase) -> None:
        """Of a revision without a text of its own what somebody said of it goes; its text is another's, and is told."""
        entry_id = first.record_finding(make_finding()).acknowledgement.entry_id
        first.archive(entry_id, reason=f"{SECRET} wanted it")
        before = first.history(entry_id)
        asked = first.request_erasure(entry_id, "personal_data", revisions=[2])
        assert [1, 2] == [item["revision"] for item in asked.still_in or ()]
        second.confirm_erasure(asked.erasure_id)
        after = first.history(entry_id)

        assert [(None, False), (None, False)] == [(item["reason"], item["erased"]) for item in after]
        assert [item["state"] for item in before] == [item["state"] for item in after]
        assert not holds(dump(clone))
        assert_sound(first)

    def test_it_says_where_the_same_words_stand_still(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """A later revision that repeats the body keeps it: it is named by number and field, until it is named too."""
        entry_id = record_secret(first)
        first.correct(entry_id, {"title": "It was forgotten", "tags": []}, reason="shorter")
        first.correct(entry_id, CLEAN, reason="no names")
        asked = first.request_erasure(entry_id, "personal_data", revisions=[1])
        told = [{"revision": 2, "fields": ["summary", "body", "evidence"]}]

        assert told == asked.still_in == second.confirm_erasure(asked.erasure_id).still_in
        assert holds(dump(clone))
        assert [] == redact(first, second, entry_id, 2).still_in
        assert not holds(dump(clone))
        assert [True, True, False] == [item["erased"] for item in first.history(entry_id)]
        assert_sound(first)

    def test_several_go_at_once(self, first: TenantMemory, second: TenantMemory, clone: TestDatabase) -> None:
        """Those that a text was restored to as well."""
        entry_id = record_secret(first)
        first.correct(entry_id, CLEAN, reason="no names")
        first.restore(entry_id, 1, reason="by mistake")
        first.embed()
        first.correct(entry_id, CLEAN, reason="no names")
        done = redact(first, second, entry_id, 1, 3)

        assert [] == done.still_in
        assert not holds(dump(clone))
        assert [True, False, True, False] == [item["erased"] for item in first.history(entry_id)]
        assert_sound(first)

    def test_a_vector_that_another_revision_has_stays(self, first: TenantMemory, second: TenantMemory) -> None:
        """The same text twice, one of them erased: the other is found by its meaning, then and now."""
        entry_id = first.record_finding(make_finding(title="The broker lost its lease")).acknowledgement.entry_id
        first.embed()
        first.correct(entry_id, {"title": "Something else"}, reason="r")
        first.embed()
        first.restore(entry_id, 1, reason="r")
        first.embed()
        now = first.query_topic("the broker lost its lease", mode="meaning").matches
        done = redact(first, second, entry_id, 1)

        assert [3] == [item["revision"] for item in done.still_in or () if "title" in item["fields"]]
        assert now == first.query_topic("the broker lost its lease", mode="meaning").matches
        assert_sound(first)

    def test_what_quotes_it_goes_and_what_quotes_another_stays(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """The candidate that it was, the verdict on it, the receipt's match; those of other revisions stay."""
        agent = opened.tenant("acme", principal="agent:scout")
        entry_id = first.approve_candidate(agent.propose(secret_finding()).candidate_id, reason="r").entry_id
        assert entry_id is not None
        first.embed()
        told = first.query_topic(TOPIC)
        first.give_feedback(told.receipt_id, entry_id, "wrong", note=f"{SECRET} did not")
        first.correct(entry_id, CLEAN, reason="no names")
        merged = agent.propose(make_finding(**{**CLEAN, "body": "Ask whoever is on call, and wait."}))
        first.merge_candidate(merged.candidate_id, into=entry_id, reason="better said")
        first.embed()
        later = first.query_topic("somebody forgot the lease renewal")
        first.give_feedback(later.receipt_id, entry_id, "helped")
        redact(first, second, entry_id, 1)

        assert not holds(dump(clone))
        assert [str(merged.candidate_id)] == [item["candidate_id"] for item in first.candidates(status="approved")]
        assert {"helped": 1, "irrelevant": 0, "wrong": 0, "stale": 0} == first.show_entry(entry_id)["feedback"]
        assert [[{"erased": True}], 1] == [
            first.receipt(told.receipt_id)["matches"],
            len([match for match in first.receipt(later.receipt_id)["matches"] if "entry_id" in match]),
        ]
        assert "matches[0].erased" in [
            item["what"] for item in first.replay_receipt(told.receipt_id, TOPIC).differences
        ]
        assert first.replay_receipt(later.receipt_id, "somebody forgot the lease renewal").equal
        assert_sound(first)

    def test_an_answer_that_was_on_its_way_leaves_no_receipt_of_it(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """Given before and written after: it keeps the place, and no longer what."""
        entry_id = record_secret(first)
        with Grandbo.open(settings=clone.settings(home=first._home), embedder=words_embedder()) as elsewhere:
            late: list[Receipt] = []
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(elsewhere.receipts, "put", late.append)
                told = elsewhere.tenant("acme").query_topic(TOPIC)
            first.correct(entry_id, CLEAN, reason="no names")
            redact(first, second, entry_id, 1)
            elsewhere.receipts.put(late[0])
            elsewhere.receipts.flush()

        assert [{"erased": True}] == first.receipt(told.receipt_id)["matches"]

    def test_its_text_is_not_brought_back(self, first: TenantMemory, second: TenantMemory) -> None:
        """Nothing restores a tombstone, and a retry of the command that recorded it stores nothing."""
        command, finding = new_id(), secret_finding()
        entry_id = first.record_finding(finding, command_id=command).acknowledgement.entry_id
        first.correct(entry_id, CLEAN, reason="no names")
        redact(first, second, entry_id, 1)

        with pytest.raises(InvalidInput, match="erased"):
            first.restore(entry_id, 1, reason="r")
        assert not first.record_finding(finding, command_id=command).appended

    def test_before_and_after_its_past_goes_as_a_whole(self, first: TenantMemory, second: TenantMemory) -> None:
        """Single revisions can go before the whole past does, and of what began anew."""
        entry_id = cleaned(first)
        redact(first, second, entry_id, 1)
        asked = first.request_erasure(entry_id, "personal_data", keeps_current=True)
        second.confirm_erasure(asked.erasure_id)
        assert [3] == [item["revision"] for item in first.history(entry_id)]
        with pytest.raises(InvalidInput, match="there are 3 to 3"):
            first.request_erasure(entry_id, "personal_data", revisions=[1])
        first.correct(entry_id, {"title": "Another title"}, reason="r")
        redact(first, second, entry_id, 3)
        assert [True, False] == [item["erased"] for item in first.history(entry_id)]
        assert_sound(first)
        second.confirm_erasure(first.request_erasure(entry_id, "legal").erasure_id)
        with pytest.raises(NotFound):
            first.show_entry(entry_id)
        assert_sound(first)

    def test_links_to_what_was_erased_before_it_stay_gone(self, first: TenantMemory, second: TenantMemory) -> None:
        """Its rows are made anew from its own events, which know nothing of what became of the others."""
        entry_id, other, kept = (
            record_secret(first, summary=f"{SECRET} {where}.") for where in ("here", "there", "elsewhere")
        )
        first.correct(entry_id, CLEAN, reason="no names")
        first.correct(kept, CLEAN, reason="no names")
        for to in (other, kept):
            first.link(entry_id, "relates_to", to, reason="seen")
        second.confirm_erasure(first.request_erasure(other, "legal").erasure_id)
        second.confirm_erasure(first.request_erasure(kept, "personal_data", keeps_current=True).erasure_id)
        first.link(entry_id, "caused_by", kept, reason="seen again")
        before = first.show_entry(entry_id)["links"]

        redact(first, second, entry_id, 1)

        assert ["caused_by"] == [link["type"] for link in before]
        assert before == first.show_entry(entry_id)["links"]
        assert_sound(first)

    @pytest.mark.parametrize("seed", range(3))
    def test_wherever_it_is_in_a_history(self, opened: Grandbo, seed: int) -> None:
        """After all that can happen to entries, any revisions of any of them: a replay gives the same rows."""
        chance = random.Random(seed)
        opened.create_tenant("any")
        one, two = (opened.tenant("any", principal=f"human:{name}") for name in ("one", "two"))
        History(one, {"admin": one}, seed).grow(60, 5)
        one.embed()
        done = 0
        gone = set()
        for entry_id in [item["entry_id"] for item in one.list_entries(limit=200).entries] * 3:
            if entry_id in gone:
                continue
            numbers = [item["revision"] for item in one.history(UUID(entry_id))]
            named = chance.sample(numbers, min(len(numbers), chance.choice((1, 1, 2))))
            try:
                redact(one, two, UUID(entry_id), *named)
            except (IllegalTransition, InvalidInput):
                continue
            done += 1
            if chance.random() < 0.2:
                keeps_current = chance.random() < 0.5
                asked = one.request_erasure(UUID(entry_id), "legal", keeps_current=keeps_current)
                two.confirm_erasure(asked.erasure_id)
                gone |= set() if keeps_current else {entry_id}
            elif chance.random() < 0.5:
                with contextlib.suppress(IllegalTransition):
                    one.correct(UUID(entry_id), {"title": f"Another title {done}"}, reason="r")

        assert done > 3
        assert_sound(one)
        for position in chance.sample(range(1, one.verify().events + 1), 8):
            assert [] == one.check_rebuild(until=position).differences


class TestRefused:
    def test_what_it_says_now_does_not_go_like_that(self, first: TenantMemory, second: TenantMemory) -> None:
        """It says what to do; once something else is current it goes; current again by then, it is refused then."""
        entry_id = record_secret(first)
        first.verify_entry(entry_id, reason="seen")
        with pytest.raises(IllegalTransition, match="correct the entry first, or erase the whole"):
            first.request_erasure(entry_id, "personal_data", revisions=[1])
        first.correct(entry_id, CLEAN, reason="no names")
        assert [{"revision": 3, "fields": []}] != redact(first, second, entry_id, 1).still_in

        other = record_secret(first, incident={"source": "pager", "id": "INC-OTHER"})
        first.correct(other, {"title": "x y z"}, reason="r")
        first.correct(other, CLEAN, reason="r")
        asked = first.request_erasure(other, "personal_data", revisions=[3 - 1])
        second.confirm_erasure(asked.erasure_id)
        with pytest.raises(InvalidInput, match="erased already"):
            first.request_erasure(other, "personal_data", revisions=[2])

    @pytest.mark.parametrize("given", [[0], [-1], ["1"], [True], [1.5], [7], "1", None, list(range(1, 60))])
    def test_what_is_no_revision_of_it_is_refused(self, first: TenantMemory, given: Any) -> None:
        """With the numbers that there are."""
        entry_id = cleaned(first)

        with pytest.raises(InvalidInput, match="revision"):
            first.request_erasure(entry_id, "personal_data", revisions=given)
        with pytest.raises(InvalidInput):
            first.request_erasure(entry_id, "personal_data", revisions=[1], keeps_current=True)

    def test_it_takes_two_people_who_administer(self, opened: Grandbo, first: TenantMemory) -> None:
        """As every erasure; above one's tiers and in another tenant the entry is not there."""
        entry_id = cleaned(first)
        asked = first.request_erasure(entry_id, "personal_data", revisions=[1])
        reviewer = opened.tenant("acme", principal="human:rita", roles=("reviewer",))
        opened.create_tenant("other")

        with pytest.raises(Forbidden):
            first.confirm_erasure(asked.erasure_id)
        with pytest.raises(Forbidden):
            reviewer.request_erasure(entry_id, "personal_data", revisions=[1])
        with pytest.raises(NotFound):
            opened.tenant("other", principal="human:x").request_erasure(entry_id, "personal_data", revisions=[1])
        assert not first.history(entry_id)[0]["erased"]

    def test_confirmed_twice_and_at_once_it_is_done_once(self, first: TenantMemory, second: TenantMemory) -> None:
        """All are told the same; one event says it."""
        asked = first.request_erasure(cleaned(first), "personal_data", revisions=[1])
        barrier, told, errors = threading.Barrier(3), [], list[BaseException]()

        def confirm() -> None:
            barrier.wait()
            try:
                told.append(second.confirm_erasure(asked.erasure_id))
            except GrandboError as error:
                errors.append(error)

        threads = [threading.Thread(target=confirm) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert [] == errors
        assert 1 == len({(done.position, done.certificate) for done in told})
        assert 1 == len(list(first.events(event_type="entry_redacted")))

    @pytest.mark.parametrize(
        ("module", "step"),
        [
            (erasing, "plan_for"),
            (erasing_revisions, "append"),
            (erasing_revisions, "remake_entry"),
            (erasing_revisions, "remove_revision_traces"),
            (erasing, "_done"),
        ],
    )
    def test_what_breaks_off_has_done_nothing(
        self, first: TenantMemory, second: TenantMemory, monkeypatch: pytest.MonkeyPatch, module: Any, step: str
    ) -> None:
        """An error at any step inside leaves everything as it was; the same request is then confirmed."""
        entry_id = cleaned(first)
        asked = first.request_erasure(entry_id, "secret", revisions=[1])
        before = first.check_rebuild(), first.history(entry_id)

        def break_off(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(module, step, break_off)
            with pytest.raises(KeyboardInterrupt):
                second.confirm_erasure(asked.erasure_id)

        assert before == (first.check_rebuild(), first.history(entry_id))
        assert "certified" == second.confirm_erasure(asked.erasure_id).as_dict()["state"]


class TestAtOnce:
    def _interleave(self, opened: Grandbo, first: TenantMemory, second: TenantMemory, rounds: int, seed: int) -> None:
        """Erase while a worker embeds, a correction comes and recalls run, each time with another delay between."""
        chance = random.Random(seed)
        errors: list[BaseException] = []
        for number in range(rounds):
            incident = {"source": "pager", "id": f"INC-{number}"}
            entry_id: UUID = first.record_finding(secret_finding(incident=incident)).acknowledgement.entry_id
            first.correct(entry_id, CLEAN, reason="no names")
            asked = first.request_erasure(entry_id, "personal_data", revisions=[1])
            start = threading.Barrier(4)

            def run(act: Callable[[], object], wait: float, start: threading.Barrier = start) -> None:
                start.wait()
                threading.Event().wait(wait)
                try:
                    act()
                except GrandboError as error:
                    errors.append(error)

            acts: list[Callable[[], object]] = [
                first.embed,
                lambda: first.query_topic(TOPIC),
                lambda entry_id=entry_id: first.correct(entry_id, {"service": "billing"}, reason="r"),  # type: ignore[misc]
                lambda asked=asked: second.confirm_erasure(asked.erasure_id),  # type: ignore[misc]
            ]
            threads = [threading.Thread(target=run, args=(act, chance.random() * 0.01)) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        opened.receipts.flush()
        assert [] == errors

    def test_while_it_is_embedded_corrected_and_recalled(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """A few times, each otherwise; nothing is left in any order, and a replay is the same."""
        self._interleave(opened, first, second, rounds=8, seed=1)

        assert not holds(dump(clone))
        assert_sound(first)

    @pytest.mark.campaign
    @pytest.mark.parametrize("seed", range(4))
    def test_in_hundreds_of_ways(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase, seed: int
    ) -> None:
        """The same sixty times over, with four seeds."""
        self._interleave(opened, first, second, rounds=60, seed=seed)

        assert not holds(dump(clone))
        assert_sound(first)

    @pytest.mark.parametrize(
        "step",
        [
            "erasing_revisions.append",
            "erasing_revisions.remove_revision_traces",
            "erasing._done",
            "append_listed",
        ],
    )
    def test_killed_at_any_step_it_is_all_or_nothing(
        self, clone: TestDatabase, opened: Grandbo, first: TenantMemory, second: TenantMemory, step: str
    ) -> None:
        """By kill -9 in a process of its own; confirmed again, it is done, listed and certified."""
        entry_id = cleaned(first)
        asked = first.request_erasure(entry_id, "personal_data", revisions=[1])
        given = (clone.service, str(opened.settings.home), f"erasure:{asked.erasure_id}", step)
        code, complaints = run_warm(forget_child.main, *given)
        assert -signal.SIGKILL == code, complaints
        is_gone = first.history(entry_id)[0]["erased"]
        assert is_gone == (step == "append_listed")
        assert [] == first.check_rebuild().differences

        assert "certified" == second.confirm_erasure(asked.erasure_id).as_dict()["state"]
        assert 1 == len((opened.settings.home / LIST_FILE).read_text().splitlines())
        assert 1 == len(list(first.events(event_type="entry_redacted")))
        assert not holds(dump(clone))


class TestAboutSomebody:
    def test_what_is_left_of_it_is_sealed_too(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """Of an entry that names its subject; a hold blocks it; forgotten later, all of it goes."""
        first.register_subject("person", "zoe@example.com", "Zoë")
        entry_id = cleaned(first, subject="zoe@example.com", external_id="known-elsewhere-as-this")
        first.hold_subject("zoe@example.com", "Litigation 17")
        with pytest.raises(SubjectOnHold):
            first.request_erasure(entry_id, "personal_data", revisions=[1])
        first.lift_hold("zoe@example.com", "Settled")
        redact(first, second, entry_id, 1)
        with clone.as_admin() as conn:
            bodies = conn.execute("SELECT body FROM grandbo.org_memory_events WHERE body IS NOT NULL").fetchall()

        assert not holds(dump(clone))
        assert not holds(repr(bodies).encode(), "known-elsewhere-as-this")
        report = first.held("zoe@example.com")
        assert [True, False] == [item["erased"] for item in report["entries"][0]["revisions"]]
        assert_sound(first)
        first.forget_subject("zoe@example.com", "request")
        assert_sound(first)
        with pytest.raises(NotFound):
            first.show_entry(entry_id)


class TestProof:
    @pytest.fixture
    def proof(self, first: TenantMemory, second: TenantMemory, tmp_path: Path) -> tuple[Path, str, Path]:
        """A certificate, the public key, and a bundle made afterwards."""
        entry_id = record_secret(first)
        first.correct(entry_id, {"title": "It was forgotten"}, reason="shorter")
        first.correct(entry_id, CLEAN, reason="no names")
        first.export(tmp_path / "before")
        done = redact(first, second, entry_id, 1)
        assert done.certificate is not None
        path = tmp_path / "erased.txt"
        path.write_text(done.certificate, encoding="utf-8")
        first.export(tmp_path / "bundle")
        return path, first.notary()["public_key"], tmp_path / "bundle"

    def _run(self, script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPTS / script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_it_holds_with_the_key_alone_and_with_the_bundle(self, proof: tuple[Path, str, Path]) -> None:
        """It says which revision went and which holds some of the words still; before it, it does not hold."""
        path, key, bundle = proof
        alone = self._run("verify_certificate.py", path, "--public-key", key)

        assert 0 == alone.returncode, alone.stdout
        assert alone.stdout.startswith("holds: revision 1 of entry ")
        assert "revision 2 holds some of the same words still: summary, body, tags, evidence" in alone.stdout
        assert 0 == self._run("verify_certificate.py", path, "--public-key", key, "--bundle", bundle).returncode
        assert 0 == self._run("verify_bundle.py", bundle).returncode
        before = self._run("verify_certificate.py", path, "--public-key", key, "--bundle", bundle.parent / "before")
        assert (1, True) == (before.returncode, "can still be read" in before.stdout)
        assert SECRET not in path.read_text()

    def test_a_change_of_any_field_is_caught(self, proof: tuple[Path, str, Path], tmp_path: Path) -> None:
        """Each in turn."""
        path, key, _ = proof
        lines = path.read_text(encoding="utf-8").split("\n")
        document = json.loads(lines[1])
        tampered = tmp_path / "tampered.txt"

        assert {"revisions", "tombstones", "still_in"} <= set(document)
        for name, value in document.items():
            other = document | {name: f"{value}x" if isinstance(value, str) else [value] if value else 1}
            text = json.dumps(other, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            tampered.write_text("\n".join([lines[0], text, *lines[2:]]), encoding="utf-8")
            assert 1 == self._run("verify_certificate.py", tampered, "--public-key", key).returncode, name

    def test_what_is_missing_besides_is_found(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """The erasure accounts for the positions that it names in its own stream, and for no other."""
        entry_id = cleaned(first)
        redact(first, second, entry_id, 1)
        position = first.history(entry_id)[1]["position"]
        with clone.as_admin() as conn:
            conn.execute("ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER ALL")
            conn.execute(
                "UPDATE grandbo.org_memory_events SET body = NULL, salt = NULL WHERE position = %s", [position]
            )
        bad = first.verify().first_bad

        assert bad is not None
        assert (position, "body missing without an erasure event") == (bad.position, bad.what)

    def test_what_is_left_can_be_read_as_its_event(self, first: TenantMemory, second: TenantMemory) -> None:
        """The event that says what is left holds no word, and a body of the version that it names."""
        redact(first, second, cleaned(first), 1)
        event = next(iter(first.events(event_type="entry_redacted", bodies=True)))

        assert [1] == event["body"]["revisions"]
        left = json.loads(event["body"]["events"][0]["body"])
        assert ["", "", "", None] == [left[name] for name in ("title", "summary", "body", "command_digest")]
        assert not holds(json.dumps(event).encode())


class TestRestored:
    """A real dump from before the erasure, restored after it."""

    @pytest.mark.parametrize("was_corrected", [True, False])
    def test_it_is_not_served_before_the_erasure_is_applied_again(
        self,
        first: TenantMemory,
        second: TenantMemory,
        clone: TestDatabase,
        server: TestServer,
        tmp_path: Path,
        *,
        was_corrected: bool,
    ) -> None:
        """The revision goes again; where the log ends before the correction, it is all there is, and goes whole."""
        entry_id = record_secret(first)
        if was_corrected:
            first.correct(entry_id, CLEAN, reason="no names")
        file = tmp_path / "before.sql"
        file.write_bytes(dump(clone, "-Fp"))
        if not was_corrected:
            first.correct(entry_id, CLEAN, reason="no names")
        redact(first, second, entry_id, 1)
        with server.empty() as target:
            psql = [str(find_install() / "bin" / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", target.admin]
            subprocess.run([*psql, "-f", str(file)], check=True, capture_output=True)
            migrate.migrate(target.admin, service_conninfo=target.service)
            settings = target.settings(home=tmp_path / "home")
            with pytest.raises(ErasureMissing):
                Grandbo.open(settings=settings)
            cli = Cli(GRANDBO_DATABASE_URL=target.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=str(tmp_path / "home"))
            found = cli("restore-check", "--json")
            applied, again = cli("restore-check", "--apply", "--json"), cli("restore-check", "--apply", "--json")

            assert (1, ["missing"]) == (found.code, [item["state"] for item in found.document["missing"]])
            assert (0, 1, []) == (applied.code, len(applied.document["applied"]), applied.document["missing"])
            assert (0, []) == (again.code, again.document["applied"])
            assert not holds(dump(target))
            with Grandbo.open(settings=settings) as opened:
                memory = opened.tenant("acme")
                if was_corrected:
                    assert [True, False] == [item["erased"] for item in memory.history(entry_id)]
                else:
                    with pytest.raises(NotFound):
                        memory.show_entry(entry_id)
                assert_sound(memory)

    def test_bodies_that_came_back_go_again(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase, tmp_path: Path
    ) -> None:
        """The log has the erasure, and what it took out as well: the check finds it, and the event is its authority."""
        entry_id = cleaned(first)
        with clone.as_admin() as conn:
            kept = conn.execute("SELECT position, body, salt FROM grandbo.org_memory_events").fetchall()
        redact(first, second, entry_id, 1)
        with clone.as_admin() as conn:
            conn.execute("ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER ALL")
            for position, body, salt in kept:
                conn.execute(
                    "UPDATE grandbo.org_memory_events SET body = %s, salt = %s WHERE position = %s",
                    [body, salt, position],
                )
            conn.execute("ALTER TABLE grandbo.org_memory_events ENABLE ALWAYS TRIGGER no_row_change")
        first.rebuild()
        assert first.history(entry_id)[0]["erased"]
        assert holds(dump(clone))
        settings = clone.settings(home=tmp_path / "home")
        with pytest.raises(ErasureMissing):
            Grandbo.open(settings=settings)
        cli = Cli(GRANDBO_DATABASE_URL=clone.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=str(tmp_path / "home"))
        applied = cli("restore-check", "--apply", "--json")

        assert (0, ["readable_again"]) == (applied.code, [item["state"] for item in applied.document["applied"]])
        assert not holds(dump(clone))
        assert_sound(first)
        assert 1 == len((tmp_path / "home" / LIST_FILE).read_text().splitlines())


class TestDoors:
    def test_the_command_line(self, opened: Grandbo, first: TenantMemory, clone: TestDatabase, tmp_path: Path) -> None:
        """Asked for by number, confirmed by another; people are told where the words stand still."""
        entry_id = record_secret(first)
        first.correct(entry_id, {"title": "It was forgotten"}, reason="shorter")
        first.correct(entry_id, CLEAN, reason="no names")
        cli = Cli(
            GRANDBO_DATABASE_URL=clone.service,
            GRANDBO_EMBEDDER="none",
            GRANDBO_TENANT="acme",
            GRANDBO_HOME=str(tmp_path / "home"),
        )
        erase = ["entry", "erase-revision", entry_id, "--reason", "personal_data"]
        told = cli(*erase, "--revision", "1", "--as", "human:kim")
        refused = cli(*erase, "--revision", "3", "--as", "human:kim", "--json")
        asked = cli(*erase, "--revision", "1", "--revision", "2", "--as", "human:kim", "--json").document
        done = cli("erasure", "confirm", asked["erasure_id"], "--as", "human:lee", "--json").document

        assert "revision 2 holds some of the same words still: summary, body, tags, evidence" in told.out
        assert (6, "illegal_transition") == (refused.code, refused.error["code"])
        assert [[1, 2], []] == [done["revisions"], done["still_in"]]
        assert 2 == cli("entry", "history", entry_id).out.count("[erased]")
        then = first.history(entry_id)[0]["position"]
        assert "[erased]" in cli("entry", "show", entry_id, "--as-of-position", then).out

    def test_http_and_the_pages(self, opened: Grandbo, first: TenantMemory) -> None:
        """The same, each by a key of a person of his own."""
        entry_id = record_secret(first)
        first.correct(entry_id, CLEAN, reason="no names")
        one, two = (client_of(opened, token=make_token(first, "admin", kind="human")) for _ in range(2))
        body = {"entry_id": str(entry_id), "reason": "request"}
        asked = one.post("/v1/erasures", json={**body, "revisions": [1]})
        now = one.post("/v1/erasures", json={**body, "revisions": [2]})
        done = two.post(f"/v1/erasures/{asked.json()['erasure_id']}/confirm")

        assert [201, 409] == [asked.status_code, now.status_code]
        assert [200, [1], []] == [done.status_code, done.json()["revisions"], done.json()["still_in"]]
        history = one.get(f"/v1/entries/{entry_id}/history").json()["revisions"]
        assert [True, False] == [item["erased"] for item in history]
        for wrong in ([0], ["x"], "1", [1, 1.5]):
            assert 422 == one.post("/v1/erasures", json={**body, "revisions": wrong}).status_code
        page = one.get(f"/entries/{entry_id}/history").text
        assert "Its words were erased" in page
        then = first.history(entry_id)[0]["position"]
        for address in (
            f"/entries/{entry_id}?as_of_position={then}",
            f"/entries?as_of_position={then}",
            f"/replay?position={then}",
        ):
            shown = one.get(address)
            assert (200, True) == (shown.status_code, "[erased]" in shown.text), address
        form = {"entry_id": str(entry_id), "reason": "request", "revisions": "1 x"}
        assert "give their numbers" in one.post("/erasures", data=form, headers={"Origin": "http://127.0.0.1"}).text
