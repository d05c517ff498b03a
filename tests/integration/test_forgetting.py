"""Held and forgotten: all that there is about one person is shown to them, and goes for good when it has to."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog

from grandbo.errors import (
    ErasureMissing,
    Forbidden,
    GrandboError,
    InvalidInput,
    NotFound,
    SubjectErased,
    SubjectOnHold,
)
from grandbo.events import notes
from grandbo.key_errors import KeyLost
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import forgetting
from grandbo.memory.erasing import Erasure
from grandbo.memory.erasure_list import LIST_FILE
from grandbo.memory.held_page import render_held_page
from grandbo.memory.held_report import render_held
from grandbo.storage import migrate
from grandbo.storage.embedded.install import find_install
from grandbo.storage.keyring import LocalKeyring, OpenedKeys
from tests.support import forget_child
from tests.support.erasing import SCRIPTS, dump
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder
from tests.support.warm import run_warm

ROOT = Path(__file__).parents[2]
# Words that nothing else in the database holds, in any form that a dump could show them in.
NAME, REFERENCE, WORD = "Quillonbright", "q.bright@wrexhamoor.example", "Vexilwharf"
SECRETS = (NAME, REFERENCE, WORD)
TOPIC = f"what does she like of the {WORD} deployment of the checkout"


@pytest.fixture
def admin(opened: Grandbo) -> TenantMemory:
    """Who administers."""
    return opened.tenant("acme", principal="human:admin")


@pytest.fixture
def subject(admin: TenantMemory) -> UUID:
    """The person."""
    owners = ["human:her", "agent:helper"]
    subject_id: UUID = admin.register_subject("person", REFERENCE, NAME, principals=owners).subject.subject_id
    return subject_id


@pytest.fixture
def her(opened: Grandbo, subject: UUID) -> TenantMemory:
    """The person herself."""
    return opened.tenant("acme", principal="human:her", roles=("companion",))


@pytest.fixture
def helper(opened: Grandbo, subject: UUID) -> TenantMemory:
    """Her agent."""
    return opened.tenant("acme", principal="agent:helper", roles=("companion",))


def remember(helper: TenantMemory, her: TenantMemory, key: str = "k", **fields: Any) -> UUID:
    """Something that holds the word."""
    told = {"subject": REFERENCE, "memory_key": f"{WORD}-{key}", "title": f"Likes the {WORD} deployment", **fields}
    done = her.confirm_memory(helper.remember(told).token)
    return done.acknowledgement.entry_id


def fill(admin: TenantMemory, helper: TenantMemory, her: TenantMemory) -> dict[str, UUID]:
    """Something in every place that could hold anything about her."""
    personal = remember(helper, her, text=f"All of {WORD}.")
    remember(helper, her, text=f"All of {WORD}, again.")
    finding = make_finding(title=f"{NAME} restarted {WORD}", body=f"Ask {REFERENCE}.", subject=REFERENCE)
    recorded = admin.record_finding(finding).acknowledgement.entry_id
    admin.correct(recorded, {"summary": f"{WORD} it was."}, reason=f"{NAME} said so")
    agent = admin._grandbo.authenticate(make_token(admin, "investigator"))
    proposed = agent.propose(make_finding(title=f"{NAME} and {WORD}", subject=REFERENCE)).candidate_id
    admin.change_policy({"people": {"episodes": True}}, reason="we want them")
    episode = helper.record_episode({"session_id": f"{WORD}-1", "subject": REFERENCE, "title": f"Looked at {WORD}"})
    admin.embed()
    told = helper.query_topic(TOPIC, kinds=["personal"])
    helper.give_feedback(told.receipt_id, personal, "helped", note=f"{WORD} it was")
    answer = admin.query_topic(f"somebody restarted the {WORD} broker of the queue")
    admin.give_feedback(answer.receipt_id, recorded, "helped", note=f"{NAME} was right")
    helper.remember({"subject": REFERENCE, "memory_key": "waits", "title": f"Waits for {WORD}"})
    other = admin.record_finding(make_finding()).acknowledgement.entry_id
    admin.link(recorded, "relates_to", other, reason=f"{WORD} too")
    return {
        "personal": personal,
        "recorded": recorded,
        "candidate": proposed,
        "episode": episode.acknowledgement.entry_id,
        "other": other,
    }


def held_in(data: bytes) -> list[str]:
    """Which of the secrets are in there: as text in any case of its letters, or as the hex in which bytes are shown."""
    low = data.lower()
    parts = [(secret, part) for secret in SECRETS for part in {secret, secret.partition("@")[0]}]
    return [secret for secret, part in parts if part.lower().encode() in low or part.encode().hex().encode() in low]


class TestHeld:
    def test_it_shows_everything_with_where_it_came_from_and_went(
        self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory
    ) -> None:
        """Entries and their revisions, reasons, authors, expiry, candidates, notes, what waits, each showing."""
        ids = fill(admin, helper, her)
        report = her.held(REFERENCE)
        entries = {UUID(entry["entry_id"]): entry for entry in report["entries"]}
        personal, recorded = entries[ids["personal"]], entries[ids["recorded"]]

        assert {ids["personal"], ids["recorded"], ids["episode"]} == set(entries)
        assert [NAME, "person", "active"] == [report["subject"][name] for name in ("name", "kind", "state")]
        assert [True, f"{WORD}-k", 2] == [
            personal["is_inference"],
            personal["memory_key"],
            sum(revision["event_type"] != "entry_expiry_set" for revision in personal["revisions"]),
        ]
        assert [None, f"{NAME} said so"] == [revision["reason"] for revision in recorded["revisions"]]
        assert [{"type": "agent", "name": "helper"}] == [shown["to"] for shown in personal["shown"]]
        assert [["companion"]] == [shown["roles"] for shown in personal["shown"]]
        assert [{"type": "human", "name": "admin"}] == [shown["to"] for shown in recorded["shown"]]
        assert {("human", "somebody else")} == {(one["by"]["type"], one["by"]["name"]) for one in recorded["revisions"]}
        assert [1, 2, 1] == [len(report[name]) for name in ("candidates", "feedback", "waiting")]
        assert 4 <= sum(len(entry["log"]) for entry in report["entries"])

    def test_asked_again_it_is_the_same(self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory) -> None:
        """By her, by an admin, as a document and as a page; in another order of asking."""
        fill(admin, helper, her)
        first = json.dumps(admin.held(REFERENCE))

        assert {first} == {json.dumps(memory.held(REFERENCE)) for memory in (her, admin, helper, her)}
        assert render_held(json.loads(first)) == render_held(admin.held(REFERENCE))

    def test_the_page_can_be_read_and_its_texts_are_no_markup(self, helper: TenantMemory, her: TenantMemory) -> None:
        """Headings and lists are the page's own; a text that looks like Markdown or HTML is text."""
        remember(helper, her, text="# Not a heading\n<script>alert(1)</script> [link](javascript:x)")
        page = render_held(her.held(REFERENCE))

        assert f"# What is held about {NAME}" == page.splitlines()[0]
        assert "inferred, not said by a person" in page
        assert "\n# Not" not in page
        assert "<script>" not in page
        assert "](javascript" not in page

    def test_the_page_of_a_browser_has_no_markup_of_theirs(self, helper: TenantMemory, her: TenantMemory) -> None:
        """One file without a script, a style, an image or a link, however a text tries."""
        said = "<img src=x onerror=alert(1)> ![x](https://x.example/y) <https://x.example> [a]: https://x.example"
        remember(helper, her, text=f"# Not a heading\n<script>alert(1)</script>\n{said}")
        report = her.held(REFERENCE)
        page = render_held_page(report)
        tags = set(re.findall(r"<\s*/?\s*([a-z!][a-z0-9]*)", page))

        assert {"!doctype", "html", "head", "meta", "title", "body", "h1", "h2", "h3", "p", "ul", "li", "code"} | {
            "blockquote"
        } == tags
        assert 1 == page.count("<h1>")
        assert f"<h1>What is held about {NAME}</h1>" in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page

    def test_nobody_else_is_shown_it(
        self, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory
    ) -> None:
        """Neither another person nor another tenant, by id or by reference; an auditor is not an admin."""
        fill(admin, helper, her)
        opened.create_tenant("other")
        others = [
            opened.tenant("acme", principal="human:other", roles=("companion", "reviewer", "auditor")),
            opened.tenant("other", principal="human:her"),
        ]
        for other in others:
            for named in (REFERENCE, admin.subject(REFERENCE).subject_id):
                with pytest.raises((Forbidden, NotFound)):
                    other.held(named)


class TestForgotten:
    @pytest.mark.parametrize("form", ["plain", "custom"])
    def test_no_byte_is_left_anywhere(
        self,
        opened: Grandbo,
        admin: TenantMemory,
        helper: TenantMemory,
        her: TenantMemory,
        subject: UUID,
        clone: TestDatabase,
        tmp_path: Path,
        form: str,
    ) -> None:
        """Dump, scratch schema, export, receipts, lists, logs of the whole run; the same search found it before."""
        lines: list[str] = []
        log = structlog.get_config()["processors"]

        def keep(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
            lines.append(repr(event))
            return event

        structlog.configure(processors=[keep, *log])
        try:
            ids = fill(admin, helper, her)
            options = ["-Fp"] if form == "plain" else ["-Fc", "-Z0"]
            before = dump(clone, *options)
            admin.forget_subject(REFERENCE, "personal_data")
            after = dump(clone, *options)
            admin.check_rebuild()
            admin.export(tmp_path / "bundle")
        finally:
            structlog.configure(processors=log)
        exported = b"".join(path.read_bytes() for path in (tmp_path / "bundle").rglob("*") if path.is_file())
        home = b"".join(path.read_bytes() for path in (tmp_path / "home").iterdir() if path.is_file())
        shown = json.dumps([admin.receipts(), [str(one) for one in admin.events(bodies=True)]], default=str).encode()

        assert set(SECRETS) - {REFERENCE} <= set(held_in(before))
        assert [[]] * 5 == [held_in(data) for data in (after, exported, home, shown, "\n".join(lines).encode())]
        assert lines
        with clone.as_admin() as conn:
            vectors = conn.execute(
                "SELECT count(*) FROM grandbo.org_memory_embeddings WHERE entry_id = ANY(%s)", [list(ids.values())]
            ).fetchone()
            bodies = conn.execute(
                "SELECT count(*) FROM grandbo.org_memory_events WHERE subject_id = %s AND body IS NOT NULL", [subject]
            ).fetchone()
            keys = conn.execute(
                "SELECT count(*) FROM grandbo.org_memory_subject_keys WHERE subject_id = %s", [subject]
            ).fetchone()
        assert [(0,), (0,), (0,)] == [vectors, bodies, keys]

    def test_it_says_what_went_from_where(
        self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, subject: UUID
    ) -> None:
        """By store, never a bare ok; asked again, the same answer and nothing more in the log."""
        fill(admin, helper, her)
        done = admin.forget_subject(REFERENCE, "personal_data")
        again = admin.forget_subject(subject, "personal_data")
        assert done.outcome is not None
        rows = done.outcome["rows_removed"]

        assert done == again
        assert {"entries": 3, "candidates": 1, "feedback": 2, "links": 1, "keys": 1, "confirmations": 1} == {
            name: rows[name] for name in ("entries", "candidates", "feedback", "links", "keys", "confirmations")
        }
        assert all(rows[name] > 0 for name in ("terms", "embeddings", "revisions", "receipts"))
        assert done.outcome["bodies_removed"] == len(done.outcome["positions"]) > 10
        assert 1 == len(list(admin.events(event_type="subject_erased")))

    def test_everything_works_afterwards_and_shows_a_tombstone(
        self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, subject: UUID, clone: TestDatabase
    ) -> None:
        """Recall, history, as of, receipts, lists, rebuild, verify; the checkpoint of before is a prefix."""
        ids = fill(admin, helper, her)
        signed = admin.checkpoint()
        told = helper.query_topic(TOPIC, kinds=["personal"])
        position = told.position
        admin.forget_subject(REFERENCE, "personal_data")

        for mode in ("words", "meaning"):
            assert () == helper.query_topic(TOPIC, kinds=["personal"], mode=mode).matches
            for as_of in (None, position):
                found = admin.query_topic(TOPIC, mode=mode, as_of_position=as_of).matches
                assert not {ids["recorded"], ids["episode"], ids["personal"]} & {match.entry_id for match in found}
        for entry in (ids["personal"], ids["recorded"], ids["episode"]):
            for read in (admin.show_entry, admin.history):
                with pytest.raises(NotFound):
                    read(entry)
        with clone.as_admin() as conn:
            kept = conn.execute(
                "SELECT matches FROM grandbo.org_memory_receipts WHERE receipt_id = %s", [told.receipt_id]
            ).fetchone()
        assert ([{"erased": True}],) == kept
        assert ["erased", None] == [admin.subject(subject).state, admin.subject(subject).name]
        assert "erased" in render_held(admin.held(subject))
        assert [] == admin.held(subject)["entries"]
        assert admin.check_rebuild().ok
        assert admin.check_rebuild(until=position).differences == []
        assert admin.verify().first_bad is None
        assert admin.checkpoint().checkpoint.size > signed.checkpoint.size
        admin.rebuild()
        assert ["erased"] == [one.state for one in admin.subjects()]

    def test_nothing_can_be_said_of_it_any_more(
        self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, subject: UUID
    ) -> None:
        """Neither what waited, nor a retry, nor anything new; registered anew it is another subject."""
        finding = make_finding(title=f"{NAME} restarted {WORD}", subject=str(subject))
        acknowledged = admin.record_finding(finding).acknowledgement
        token = helper.remember({"subject": REFERENCE, "memory_key": "k", "title": WORD}).token
        admin.forget_subject(REFERENCE, "personal_data")

        with pytest.raises(NotFound):
            her.confirm_memory(token)
        for named in (finding, make_finding(subject=str(subject))):
            with pytest.raises(SubjectErased):
                admin.record_finding(named)
        with pytest.raises(NotFound):
            admin.record_finding(make_finding(subject=REFERENCE))
        with pytest.raises(SubjectErased):
            helper.remember({"subject": str(subject), "memory_key": "k", "title": WORD})
        with pytest.raises(SubjectErased):
            admin.hold_subject(subject, "too late")
        again = admin.register_subject("person", REFERENCE, NAME)
        assert [True, False] == [again.created, again.subject.subject_id == subject]
        with pytest.raises(NotFound):
            admin.show_entry(acknowledged.entry_id)

    def test_a_retry_by_its_command_id_brings_nothing_back(self, admin: TenantMemory, subject: UUID) -> None:
        """It is the first acknowledgement again, and writes nothing."""
        command = UUID("0191d1a0-0000-7000-8000-00000000aaaa")
        finding = make_finding(title=f"{NAME} restarted {WORD}", subject=REFERENCE)
        first = admin.record_finding(finding, command_id=command)
        admin.forget_subject(REFERENCE, "personal_data")
        at = admin.verify().head
        finding = make_finding(title="something else")
        again = admin.record_finding(finding, command_id=command)

        assert first.acknowledgement.position == again.acknowledgement.position
        assert [True, at] == [again.replayed, admin.verify().head]

    def test_others_do_not_move(
        self, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory
    ) -> None:
        """Another subject with the same words, and another tenant with the same reference: found by both signals."""
        fill(admin, helper, her)
        admin.register_subject("person", "twin@example.com", "Twin", principals=["human:twin"])
        twin = opened.tenant("acme", principal="human:twin")
        said = {"subject": "twin@example.com", "memory_key": f"{WORD}-k", "title": f"Likes the {WORD} deployment"}
        twin.confirm_memory(twin.remember(said).token)
        opened.create_tenant("other")
        other = opened.tenant("other", principal="human:her")
        other.register_subject("person", REFERENCE, NAME, principals=["human:her"])
        other.confirm_memory(other.remember({**said, "subject": REFERENCE}).token)
        for memory in (admin, other):
            memory.embed()
        before = [json.dumps(twin.held("twin@example.com")), json.dumps(other.held(REFERENCE))]
        digest = other.check_rebuild().digest
        admin.forget_subject(REFERENCE, "personal_data")

        assert before == [json.dumps(twin.held("twin@example.com")), json.dumps(other.held(REFERENCE))]
        assert digest == other.check_rebuild().digest
        for memory in (twin, other):
            for mode in ("words", "meaning"):
                assert 1 == len(memory.query_topic(TOPIC, kinds=["personal"], mode=mode).matches)

    def test_an_admins_erasure_of_one_entry_needs_no_reading(
        self, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory
    ) -> None:
        """By its id, with a second person; its past alone too, and what is kept is sealed; the rest stays."""
        gone, kept = remember(helper, her, "gone"), remember(helper, her, "kept")
        remember(helper, her, "kept", title=f"Likes {WORD} better")
        second = opened.tenant("acme", principal="human:second")
        second.confirm_erasure(admin.request_erasure(gone, "request").erasure_id)
        second.confirm_erasure(admin.request_erasure(kept, "request", keeps_current=True).erasure_id)
        report = her.held(REFERENCE)

        assert [[str(kept), f"Likes {WORD} better"]] == [
            [entry["entry_id"], entry["revisions"][-1]["title"]] for entry in report["entries"]
        ]
        body = next(event for event in admin.events(bodies=True, event_type="entry_kept"))
        assert ["encrypted", None] == [body["body_state"], body["body"]]
        assert admin.check_rebuild().ok
        admin.forget_subject(REFERENCE, "personal_data")
        assert admin.check_rebuild().ok
        assert admin.verify().first_bad is None


class TestWithoutTheKey:
    def test_who_cannot_be_read_any_more_can_still_be_forgotten(
        self, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, subject: UUID
    ) -> None:
        """By id; others whose keys are lost with the same keyring stay as they are, and the certificate says less."""
        remember(helper, her)
        admin.register_subject("person", "other@example.com", "Other")
        (opened.settings.home / "keyring.json").unlink()
        opened.database.keys = OpenedKeys(LocalKeyring(opened.settings.home))
        with pytest.raises(KeyLost):
            admin.held(subject)
        done = admin.forget_subject(subject, "request")

        assert ["certified", "erased"] == [done.as_dict()["state"], admin.subject(subject).state]
        assert admin.verify().first_bad is None
        with pytest.raises(KeyLost):
            admin.check_rebuild()


class TestWhoMay:
    @pytest.mark.parametrize("role", ["companion", "reviewer", "auditor", "investigator"])
    def test_only_a_person_who_administers(
        self, opened: Grandbo, admin: TenantMemory, subject: UUID, role: str
    ) -> None:
        """No other role, and no agent."""
        machine = opened.authenticate(make_token(admin, "admin"))
        for who in (opened.authenticate(make_token(admin, role, kind="human")), machine):
            with pytest.raises(Forbidden):
                who.forget_subject(subject, "personal_data")

    @pytest.mark.parametrize("reason", ["she asked for it", "", None])
    def test_the_reason_is_a_code(self, admin: TenantMemory, subject: UUID, reason: Any) -> None:
        """Words could hold what is to go."""
        with pytest.raises(InvalidInput):
            admin.forget_subject(subject, reason)

    def test_the_policy_can_want_a_second_person(self, opened: Grandbo, admin: TenantMemory, subject: UUID) -> None:
        """Then it waits; the same request again is the same; who asked does not confirm."""
        admin.change_policy({"people": {"second_person": True}}, reason="two heads")
        asked, again = (admin.forget_subject(subject, "request") for _ in range(2))
        with pytest.raises(Forbidden):
            admin.confirm_erasure(asked.erasure_id)
        state = admin.subject(subject).state
        done = opened.tenant("acme", principal="human:second").confirm_erasure(asked.erasure_id)

        assert asked == again
        assert ["requested", "active", "certified", "erased"] == [
            asked.as_dict()["state"],
            state,
            done.as_dict()["state"],
            admin.subject(subject).state,
        ]

    def test_a_hold_blocks_it_and_says_who_and_why(
        self, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, subject: UUID
    ) -> None:
        """Erasing the subject, an entry of it, its expiry and its sweep; set after the request too. Lifted, all go."""
        entry = remember(helper, her)
        found = admin.record_finding(make_finding(subject=REFERENCE)).acknowledgement.entry_id
        request = admin.request_erasure(found, "request")
        admin.hold_subject(REFERENCE, "Litigation 17")
        second = opened.tenant("acme", principal="human:second")
        attempts: list[Callable[[], Any]] = [
            lambda: admin.forget_subject(REFERENCE, "personal_data"),
            lambda: admin.request_erasure(entry, "request"),
            lambda: second.confirm_erasure(request.erasure_id),
            lambda: admin.expire(found, "2099-12-31T00:00:00Z", reason="r"),
            lambda: admin.correct(found, {"summary": "otherwise"}, reason="r"),
        ]
        for attempt in attempts:
            with pytest.raises(SubjectOnHold, match="Litigation 17") as refused:
                attempt()
            assert admin.principal.ref == refused.value.details["held_by"]
        assert "Litigation 17" in render_held(admin.held(REFERENCE))
        admin.lift_hold(REFERENCE, "Settled")

        assert second.confirm_erasure(request.erasure_id).position is not None
        assert admin.forget_subject(REFERENCE, "personal_data").position is not None

    def test_what_is_held_does_not_expire(
        self, clone: TestDatabase, opened: Grandbo, admin: TenantMemory, helper: TenantMemory, her: TenantMemory
    ) -> None:
        """The sweep passes it over, and takes it once the hold is lifted."""
        remember(helper, her)
        admin.hold_subject(REFERENCE, "Litigation 17")
        later = datetime.now(UTC) + timedelta(days=100)
        with Grandbo.open(settings=clone.settings(home=opened.settings.home), clock=lambda: later) as late:
            memory = late.tenant("acme", principal="human:admin")
            swept = [memory.sweep_expired()]
            memory.lift_hold(REFERENCE, "Settled")
            swept.append(memory.sweep_expired())
        assert [0, 1] == swept


def _interleave(opened: Grandbo, admin: TenantMemory, rounds: int, seed: int) -> None:
    """Forget while a worker embeds and recalls run, each time with another delay between them."""
    chance = random.Random(seed)
    embedder = words_embedder()
    errors: list[BaseException] = []
    for number in range(rounds):
        reference, owner = f"{number}.{REFERENCE}", f"human:her{number}"
        admin.register_subject("person", reference, NAME, principals=[owner])
        her = opened.tenant("acme", principal=owner)
        for key in ("a", "b"):
            her.confirm_memory(her.remember({"subject": reference, "memory_key": key, "title": f"{WORD} {key}"}).token)
        start = threading.Barrier(3)

        def run(act: Callable[[], object], wait: float, start: threading.Barrier = start) -> None:
            start.wait()
            threading.Event().wait(wait)
            try:
                act()
            except GrandboError as error:
                errors.append(error)

        acts: list[Callable[[], object]] = [
            admin.embed,
            lambda her=her: her.query_topic(TOPIC, kinds=["personal"]),  # type: ignore[misc]
            lambda reference=reference: admin.forget_subject(reference, "personal_data"),  # type: ignore[misc]
        ]
        threads = [threading.Thread(target=run, args=(act, chance.random() * 0.01)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert embedder is not None
    assert [] == errors


class TestAtOnce:
    def test_while_it_is_embedded_and_recalled(self, opened: Grandbo, admin: TenantMemory, clone: TestDatabase) -> None:
        """A few times, each otherwise; nothing is left in any order, and a replay is the same."""
        _interleave(opened, admin, rounds=12, seed=1)
        opened.receipts.flush()

        assert [] == held_in(dump(clone))
        assert admin.check_rebuild().ok
        assert admin.verify().first_bad is None

    @pytest.mark.campaign
    @pytest.mark.parametrize("seed", range(4))
    def test_in_hundreds_of_ways(self, opened: Grandbo, admin: TenantMemory, clone: TestDatabase, seed: int) -> None:
        """The same sixty times over, with four seeds."""
        _interleave(opened, admin, rounds=60, seed=seed)
        opened.receipts.flush()

        assert [] == held_in(dump(clone))
        assert admin.check_rebuild().ok

    def test_by_four_at_once_it_is_done_once(self, opened: Grandbo, admin: TenantMemory, subject: UUID) -> None:
        """They get the same answer."""
        done: list[Erasure] = []
        threads = [
            threading.Thread(target=lambda: done.append(admin.forget_subject(subject, "request"))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [4, 1] == [len(done), len({(item.position, item.hash, item.certificate) for item in done})]
        assert 1 == len(list(admin.events(event_type="subject_erased")))

    def test_while_something_is_about_to_wait(self, admin: TenantMemory, helper: TenantMemory, subject: UUID) -> None:
        """What is asked for at the same moment is refused, or goes with the rest."""
        refused: list[type[GrandboError]] = []

        def ask() -> None:
            for number in range(12):
                try:
                    helper.remember({"subject": str(subject), "memory_key": str(number), "title": WORD})
                except GrandboError as error:
                    refused.append(type(error))

        thread = threading.Thread(target=ask)
        thread.start()
        admin.forget_subject(subject, "request")
        thread.join()

        assert [] == admin.held(subject)["waiting"]
        assert {SubjectErased} >= set(refused)


class TestBrokenOff:
    @pytest.mark.parametrize("step", ["count_rows", "append", "take_out", "remove_traces"])
    def test_an_error_at_any_step_leaves_everything(
        self,
        admin: TenantMemory,
        helper: TenantMemory,
        her: TenantMemory,
        monkeypatch: pytest.MonkeyPatch,
        step: str,
    ) -> None:
        """All or nothing, and then all."""
        remember(helper, her)
        before = json.dumps(admin.held(REFERENCE))

        def break_off(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(forgetting, step, break_off)
            with pytest.raises(KeyboardInterrupt):
                admin.forget_subject(REFERENCE, "personal_data")

        assert before == json.dumps(admin.held(REFERENCE))
        assert admin.check_rebuild().ok
        assert "certified" == admin.forget_subject(REFERENCE, "personal_data").as_dict()["state"]

    @pytest.mark.parametrize(
        "step",
        [
            "forgetting.count_rows",
            "forgetting.append",
            "forgetting.take_out",
            "forgetting.remove_traces",
            "erasing._done",
            "append_listed",
            "sign_certificate",
            "keep_certificate",
        ],
    )
    def test_killed_at_any_step_it_is_all_or_nothing(
        self, clone: TestDatabase, opened: Grandbo, admin: TenantMemory, subject: UUID, step: str
    ) -> None:
        """By kill -9 in a process of its own; run again, it is done, listed and certified."""
        given = (clone.service, str(opened.settings.home), str(subject), step)
        code, complaints = run_warm(forget_child.main, *given)
        assert -signal.SIGKILL == code, complaints
        is_gone = admin.subject(subject).state == "erased"
        assert is_gone == (step in ("append_listed", "sign_certificate", "keep_certificate"))
        assert admin.check_rebuild().ok

        done = admin.forget_subject(subject, "request")
        assert ["certified", "erased"] == [done.as_dict()["state"], admin.subject(subject).state]
        assert 1 == len((opened.settings.home / LIST_FILE).read_text().splitlines())
        assert 1 == len(list(admin.events(event_type="subject_erased")))
        assert admin.verify().first_bad is None


class TestCertificate:
    @pytest.fixture
    def proof(
        self, admin: TenantMemory, helper: TenantMemory, her: TenantMemory, tmp_path: Path
    ) -> tuple[Path, str, Path]:
        """A certificate, the public key, and a bundle of afterwards."""
        fill(admin, helper, her)
        done = admin.forget_subject(REFERENCE, "personal_data")
        assert done.certificate is not None
        path = tmp_path / "erased.txt"
        path.write_text(done.certificate, encoding="utf-8")
        admin.export(tmp_path / "bundle")
        return path, admin.notary()["public_key"], tmp_path / "bundle"

    def _check(self, path: Path, key: str, *more: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPTS / "verify_certificate.py"), str(path), "--public-key", key]
        return subprocess.run([*command, *map(str, more)], capture_output=True, text=True, check=False)

    def test_it_holds_with_the_key_alone_and_with_the_bundle(self, proof: tuple[Path, str, Path]) -> None:
        """It says what went, and holds no word of it; the bundle's own verifier agrees."""
        path, key, bundle = proof
        alone, with_bundle = self._check(path, key), self._check(path, key, "--bundle", bundle)
        (bundle.parent / "key").write_text(key)
        command = [sys.executable, str(SCRIPTS / "verify_bundle.py"), "--public-key", str(bundle.parent / "key")]
        whole = subprocess.run([*command, str(bundle)], capture_output=True, text=True, check=False)

        assert [0, 0, 0] == [alone.returncode, with_bundle.returncode, whole.returncode], whole.stdout
        assert "holds: person" in alone.stdout
        assert [] == held_in(path.read_bytes())

    def test_a_change_of_any_field_is_caught(self, proof: tuple[Path, str, Path], tmp_path: Path) -> None:
        """Each field of the document, and each byte of the frame around it."""
        path, key, _ = proof
        lines = path.read_text(encoding="utf-8").split("\n")
        document = json.loads(lines[1])
        changed = tmp_path / "changed.txt"
        assert {"subject_id", "kind", "before", "key", "checkpoint", "rows_removed"} <= document.keys()
        for name in document:
            other = {**document, name: [document[name]]}
            text = json.dumps(other, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            changed.write_text("\n".join([lines[0], text, *lines[2:]]), encoding="utf-8")
            assert 1 == self._check(changed, key).returncode, name

    def test_signed_but_not_true_it_is_caught(
        self, proof: tuple[Path, str, Path], opened: Grandbo, tmp_path: Path
    ) -> None:
        """By who has the key: a key that was not destroyed, another place in the log, a body that can be read."""
        path, key, bundle = proof
        origin, line = path.read_text(encoding="utf-8").split("\n")[:2]
        document = json.loads(line)
        forged = [
            {**document, "key": {**document["key"], "destroyed": False}},
            {**document, "before": {**document["before"], "position": 1}},
            {**document, "before": {**document["before"], "hash": "00" * 32}},
            {**document, "subject_id": str(UUID(int=7)), "hash": "00" * 32},
            {**document, "position": document["position"] - 1},
            {**document, "bodies_removed": 1},
        ]
        for other in forged:
            text = json.dumps(other, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            note = notes.sign(f"{origin}\n{text}\n", origin, notes.notary_key(opened.settings.home))
            changed = tmp_path / "changed.txt"
            changed.write_text(note, encoding="utf-8")
            assert 1 == self._check(changed, key, "--bundle", bundle).returncode, other


class TestRestored:
    def test_it_is_not_served_before_it_is_forgotten_again(
        self,
        server: TestServer,
        clone: TestDatabase,
        opened: Grandbo,
        admin: TenantMemory,
        helper: TenantMemory,
        her: TenantMemory,
        subject: UUID,
        tmp_path: Path,
    ) -> None:
        """A real dump from before, restored: start-up refuses it, restore-check mends it, nothing is left in it."""
        fill(admin, helper, her)
        backup = tmp_path / "before.dump"
        backup.write_bytes(dump(clone, "-Fc"))
        admin.forget_subject(REFERENCE, "personal_data")
        home = opened.settings.home
        with server.empty() as empty:
            restore = [str(find_install() / "bin" / "pg_restore"), "-d", empty.admin, str(backup)]
            subprocess.run(restore, check=True, capture_output=True)
            migrate.migrate(empty.admin, service_conninfo=empty.service)
            settings = empty.settings(home=home)
            with pytest.raises(ErasureMissing):
                Grandbo.open(settings=settings)
            with Grandbo.open(settings=settings, check_erasures=False) as mending:
                assert ["missing"] == [item.state for item in mending.check_erasures()]
                assert 1 == len(mending.apply_erasures())
                assert [] == mending.apply_erasures()
            with Grandbo.open(settings=settings, embedder=words_embedder()) as served:
                memory = served.tenant("acme", principal="human:admin")
                assert ["erased", True] == [memory.subject(subject).state, memory.check_rebuild().ok]
                assert memory.verify().first_bad is None
                assert [] == memory.held(subject)["entries"]
            assert [] == held_in(dump(empty))
