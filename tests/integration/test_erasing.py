"""Erasure of an entry: two people, one transaction, nothing left to read, a certificate that anyone can check."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.embedding import Embedder
from grandbo.errors import ConfigurationError, ErasureMissing, Forbidden, InvalidInput, NotFound
from grandbo.events import notes
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import erasing
from grandbo.memory.erasing import Erasure
from grandbo.memory.erasure_list import LIST_FILE
from grandbo.recall.receipts import Receipt
from grandbo.storage import migrate
from grandbo.storage.embedded.install import find_install
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.erasing import SCRIPTS, SECRET, TOPIC, dump, holds, record_secret, secret_finding
from tests.support.hooks import CAUSE, make_tool
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import Titled, words_embedder


def _erase(first: TenantMemory, second: TenantMemory, entry_id: UUID, **how: Any) -> Erasure:
    return second.confirm_erasure(first.request_erasure(entry_id, "personal_data", **how).erasure_id)


class TestTwoPeople:
    def test_nobody_confirms_what_he_asked_for(self, first: TenantMemory) -> None:
        """The one who asked is refused; nothing has happened."""
        entry_id = record_secret(first)
        asked = first.request_erasure(entry_id, "secret")

        with pytest.raises(Forbidden):
            first.confirm_erasure(asked.erasure_id)
        assert SECRET in first.show_entry(entry_id)["title"]

    @pytest.mark.parametrize("role", ["investigator", "reviewer", "auditor"])
    def test_only_an_admin_asks(self, opened: Grandbo, first: TenantMemory, role: str) -> None:
        """No other role, and no credential that is not a person's."""
        entry_id = record_secret(first)
        machine = opened.authenticate(make_token(first, "admin"))

        for who in (opened.authenticate(make_token(first, role, kind="human")), machine):
            with pytest.raises(Forbidden):
                who.request_erasure(entry_id, "secret")

    @pytest.mark.parametrize("reason", ["Kim asked for it", "", None, 7])
    def test_the_reason_is_a_code(self, first: TenantMemory, reason: Any) -> None:
        """Words could hold what is to go, and the event stays."""
        with pytest.raises(InvalidInput):
            first.request_erasure(record_secret(first), reason)

    def test_an_entry_of_another_tenant_is_not_there(self, opened: Grandbo, first: TenantMemory) -> None:
        """Neither its entry nor its request can be named from elsewhere."""
        entry_id = record_secret(first)
        asked = first.request_erasure(entry_id, "secret")
        opened.create_tenant("other")
        other = opened.tenant("other", principal="human:third")

        for attempt in (
            lambda: other.request_erasure(entry_id, "secret"),
            lambda: other.confirm_erasure(asked.erasure_id),
            lambda: other.cancel_erasure(asked.erasure_id),
        ):
            with pytest.raises(NotFound):
                attempt()

    def test_a_request_is_taken_back(self, first: TenantMemory, second: TenantMemory) -> None:
        """Then there is nothing to confirm; what was confirmed cannot be taken back."""
        entry_id = record_secret(first)
        asked = first.request_erasure(entry_id, "secret")
        first.cancel_erasure(asked.erasure_id)

        with pytest.raises(NotFound):
            second.confirm_erasure(asked.erasure_id)
        done = _erase(first, second, entry_id)
        with pytest.raises(NotFound):
            first.cancel_erasure(done.erasure_id)

    def test_confirmed_twice_and_at_once_it_is_done_once(self, first: TenantMemory, second: TenantMemory) -> None:
        """Four at the same moment get the same answer, and there is one event."""
        asked = first.request_erasure(record_secret(first), "secret")
        done: list[Erasure] = []

        def confirm() -> None:
            done.append(second.confirm_erasure(asked.erasure_id))

        threads = [threading.Thread(target=confirm) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [4, 1] == [len(done), len({(item.position, item.hash, item.certificate) for item in done})]
        assert 1 == len(list(first.events(event_type="entry_erased")))
        assert 1 == len((first._home / LIST_FILE).read_text().splitlines())


class TestNothingIsLeft:
    @pytest.mark.parametrize("form", ["plain", "custom"])
    def test_a_dump_holds_no_byte_of_it(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase, form: str
    ) -> None:
        """Text, words, evidence, what was said of it; before the erasure the same search finds it."""
        entry_id = record_secret(first)
        first.correct(entry_id, {"summary": f"{SECRET} again."}, reason=f"{SECRET} said so")
        first.embed()
        first.give_feedback(first.query_topic(TOPIC).receipt_id, entry_id, "helped", note=f"{SECRET} was right")
        options = ["-Fp"] if form == "plain" else ["-Fc", "-Z0"]
        before = dump(clone, *options)

        _erase(first, second, entry_id)

        after = dump(clone, *options)
        assert [True, False] == [holds(dump, SECRET) for dump in (before, after)]

    def test_no_vector_of_it_is_left(self, first: TenantMemory, second: TenantMemory, clone: TestDatabase) -> None:
        """Neither in the table of vectors nor in the event that brought it: of the text, and of the title alone."""
        entry_id = record_secret(first)
        with Grandbo.open(settings=clone.settings(home=first._home), embedder=Embedder(Titled())) as elsewhere:
            elsewhere.tenant("acme").embed()
        held = "SELECT count(*) FROM grandbo.org_memory_embeddings WHERE entry_id = %s"
        bodies = (
            "SELECT count(*) FROM grandbo.org_memory_events WHERE event_type = 'entry_embedded' AND body IS NOT NULL"
        )
        with clone.as_admin() as conn:
            before = [conn.execute(held, [entry_id]).fetchone(), conn.execute(bodies).fetchone()]
            _erase(first, second, entry_id)
            after = [conn.execute(held, [entry_id]).fetchone(), conn.execute(bodies).fetchone()]

        assert [[(2,), (2,)], [(0,), (0,)]] == [before, after]

    def test_every_door_says_it_is_gone(self, first: TenantMemory, second: TenantMemory) -> None:
        """Recall by both signals, now and as of before; the entry, its history, its past; the list."""
        entry_id = record_secret(first)
        position = first.query_topic(TOPIC).position

        _erase(first, second, entry_id)

        for asked in ({}, {"as_of_position": position}, {"statuses": ["archived", "superseded", "quarantined"]}):
            for mode in ("words", "meaning"):
                assert () == first.query_topic(TOPIC, mode=mode, **asked).matches
        for read in (first.show_entry, first.history):
            with pytest.raises(NotFound):
                read(entry_id)

    def test_its_twin_is_still_found_by_both_signals(self, first: TenantMemory, second: TenantMemory) -> None:
        """Two entries with the same text: the one that was not erased is as it was."""
        gone = record_secret(first)
        stays = record_secret(first, service="billing", summary=f"{SECRET} was on call elsewhere.")

        _erase(first, second, gone)

        for mode in ("words", "meaning"):
            assert [stays] == [match.entry_id for match in first.query_topic(TOPIC, mode=mode).matches]

    def test_what_was_proposed_and_what_became_of_it_goes_too(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """The candidate that the entry came from has the same text."""
        agent = opened.authenticate(make_token(first, "investigator"))
        made = agent.propose(secret_finding()).candidate_id
        entry_id = first.approve_candidate(made, reason="seen").entry_id
        assert entry_id is not None

        _erase(first, second, entry_id)

        assert not holds(dump(clone), SECRET)
        with pytest.raises(NotFound):
            first.candidate(made)

    @pytest.mark.parametrize("keeps", [False, True])
    def test_what_its_tool_delivered_goes_and_does_not_come_back(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase, keeps: bool
    ) -> None:
        """The inbox and the record of the incident; told again, late and anew. What was kept may be added to."""
        tool = make_tool(opened, first, direct=True)
        words = {"title": f"{SECRET} let a certificate expire", "summary": f"{SECRET} was away.", "cause": CAUSE}
        closed = tool.told("resolved", **words)
        entry_id = UUID(closed["entry_id"])
        waiting = tool.tell("updated", summary=f"{SECRET} is back.")
        if keeps:
            clean = {"title": "A certificate expired", "summary": "Nobody was there.", "body": "See the ticket."}
            first.correct(entry_id, clean, reason="a name has to go")

        done = _erase(first, second, entry_id, keeps_current=keeps)
        assert done.outcome is not None
        assert {"deliveries": 1, "incidents": 1}.items() <= done.outcome["rows_removed"].items()
        if keeps:
            assert "received" == tool.state(waiting)["state"]
            return
        again = tool.told("postmortem", body=f"{SECRET} wrote this.", **words)

        assert ("ignored", "erased", None) == (again["state"], again["outcome"], again["entry_id"])
        assert "ignored" == tool.state(waiting)["state"]
        assert not holds(dump(clone), SECRET)
        assert () == first.query_topic(TOPIC).matches

    def test_a_retry_of_the_hook_does_not_bring_it_back(self, first: TenantMemory, second: TenantMemory) -> None:
        """The same command again, late: it says what it said, and stores nothing."""
        document, command = secret_finding(), new_id()
        entry_id = first.record_finding(document, command_id=command).acknowledgement.entry_id
        _erase(first, second, entry_id)

        again = first.record_finding(document, command_id=command)

        assert entry_id == again.acknowledgement.entry_id
        assert () == first.query_topic(TOPIC).matches


class TestHistoryStaysWhole:
    def test_the_log_verifies_and_a_rebuild_is_equal(self, first: TenantMemory, second: TenantMemory) -> None:
        """Links of others to it, later events, and an earlier checkpoint included."""
        gone, other = record_secret(first), record_secret(first, title="The disk was full", summary="It filled up.")
        first.link(other, "caused_by", gone, reason="seen")
        before = first.checkpoint()
        _erase(first, second, gone)
        first.correct(other, {"summary": "Another one."}, reason="r")
        first.embed()

        assert first.verify().first_bad is None
        assert first.check_rebuild().ok
        assert before.checkpoint.size < first.checkpoint().checkpoint.size

    def test_a_receipt_keeps_the_place_and_no_longer_what(self, first: TenantMemory, second: TenantMemory) -> None:
        """Shown as erased, in the list of receipts too; a replay names it as the difference."""
        gone, stays = record_secret(first), record_secret(first, service="billing", summary=f"{SECRET} elsewhere.")
        answer = first.query_topic(TOPIC)
        at = [match.entry_id for match in answer.matches].index(gone)

        _erase(first, second, gone)

        shown = first.receipt(answer.receipt_id)["matches"]
        assert {"erased": True} == shown[at]
        assert str(stays) == shown[1 - at]["entry_id"]
        assert [shown] == [item["matches"] for item in first.receipts(limit=1)]
        replay = first.replay_receipt(answer.receipt_id, TOPIC)
        assert f"matches[{at}].erased" in [item["what"] for item in replay.differences]
        with pytest.raises(NotFound):
            first.receipts(entry_id=gone)

    def test_an_answer_that_was_on_its_way_leaves_no_receipt_of_it(
        self, opened: Grandbo, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """Another process answered before the erasure and writes its receipt after it: the place alone is kept."""
        gone, stays = record_secret(first), record_secret(first, service="billing", summary=f"{SECRET} elsewhere.")
        with Grandbo.open(settings=clone.settings(home=first._home), embedder=words_embedder()) as elsewhere:
            late: list[Receipt] = []
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(elsewhere.receipts, "put", late.append)
                answer = elsewhere.tenant("acme").query_topic(TOPIC)
            assert {gone, stays} == {match.entry_id for match in answer.matches}

            _erase(first, second, gone)
            elsewhere.receipts.put(late[0])
            elsewhere.receipts.flush()

        kept = first.receipt(answer.receipt_id)["matches"]
        assert [{"erased": True}] == [match for match in kept if "entry_id" not in match]
        assert [str(stays)] == [match["entry_id"] for match in kept if "entry_id" in match]
        assert not holds(dump(clone, "-t", "grandbo.org_memory_receipt*"), str(gone))

    def test_a_check_of_an_earlier_position_has_nothing_against_it(
        self, first: TenantMemory, second: TenantMemory
    ) -> None:
        """What others said of the entry before, such as a link to it, is gone from the rows of then as well."""
        gone, other = record_secret(first), record_secret(first, title="The disk was full", summary="It filled up.")
        first.link(other, "caused_by", gone, reason="seen")
        before = first.verify().events

        _erase(first, second, gone)

        for position in (before, before + 1):
            assert [] == first.check_rebuild(until=position).differences

    def test_the_other_side_of_a_dispute_can_still_be_resolved(self, first: TenantMemory, second: TenantMemory) -> None:
        """And what it took the place of can be brought back."""
        gone, other = record_secret(first), record_secret(first, title="The disk was full", summary="It filled up.")
        old = record_secret(first, title="The disk was slow", summary="It wore out.")
        first.dispute(other, other=gone, reason="they differ")
        first.supersede(old, gone, reason="better said")

        _erase(first, second, gone)

        first.resolve(other, reason="nothing is left to differ from")
        assert not first.show_entry(other)["disputed"]
        assert ("superseded", None) == tuple(first.show_entry(old)[name] for name in ("status", "superseded_by"))
        assert first.check_rebuild().ok

    def test_another_tenant_does_not_move(self, opened: Grandbo, first: TenantMemory, second: TenantMemory) -> None:
        """Its digest and its head are what they were."""
        opened.create_tenant("other")
        other = opened.tenant("other", principal="human:third")
        kept = record_secret(other)
        before = other.check_rebuild()

        _erase(first, second, record_secret(first))

        assert before == other.check_rebuild()
        assert [kept] == [match.entry_id for match in other.query_topic(TOPIC).matches]


class TestKeepingCurrent:
    def test_its_past_goes_and_what_it_says_now_stays(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase
    ) -> None:
        """Corrected first, then its past erased: found by its new words, with its evidence; the name is nowhere."""
        entry_id = record_secret(first, evidence=[{"type": "log", "uri": "https://logs.example.com/7", "label": "log"}])
        clean = {
            "title": "The lease renewal was forgotten",
            "summary": "Nobody was on call.",
            "body": "Ask first.",
            "tags": ["lease"],
        }
        first.correct(entry_id, clean, reason="a name has to go")
        before = first.show_entry(entry_id)

        _erase(first, second, entry_id, keeps_current=True)
        first.embed()

        after = first.show_entry(entry_id)
        changed = {name for name in before if before[name] != after[name]}
        assert {"revision", "position", "changed_at"} == changed
        assert [3] == [item["revision"] for item in first.history(entry_id)]
        assert not holds(dump(clone), SECRET)
        for mode in ("words", "meaning"):
            assert [entry_id] == [m.entry_id for m in first.query_topic("lease renewal forgotten", mode=mode).matches]
        assert first.check_rebuild().ok
        first.correct(entry_id, {"summary": "Nobody at all."}, reason="more")
        assert 4 == first.show_entry(entry_id)["revision"]


class TestAtOnce:
    def test_while_it_is_embedded_and_recalled(self, first: TenantMemory, second: TenantMemory) -> None:
        """Interleaved with a worker and with readers: afterwards no vector, no answer, and an equal rebuild."""
        entries = [
            record_secret(first, title=f"{SECRET} forgot lease {n}", summary=f"Was on call {n}.") for n in range(4)
        ]
        more = [secret_finding(title=f"{SECRET} missed lease {n}", summary=f"Was away {n}.") for n in range(8)]
        entries += [first.record_finding(finding).acknowledgement.entry_id for finding in more]
        asked = [first.request_erasure(entry_id, "request").erasure_id for entry_id in entries]
        errors: list[Exception] = []
        done = threading.Event()

        def repeat(act: Callable[[], object]) -> None:
            while not done.is_set():
                try:
                    act()
                except Exception as error:  # noqa: BLE001  # whatever it is, it fails the test
                    errors.append(error)
                    return

        others = [
            threading.Thread(target=repeat, args=(act,)) for act in (first.embed, lambda: first.query_topic(TOPIC))
        ]
        for thread in others:
            thread.start()
        for erasure_id in asked:
            second.confirm_erasure(erasure_id)
        done.set()
        for thread in others:
            thread.join()
        first.embed()

        assert [] == errors
        assert () == first.query_topic(TOPIC).matches
        assert first.check_rebuild().ok
        assert first.verify().first_bad is None

    @pytest.mark.parametrize("step", ["remove_traces", "count_rows", "_decide"])
    def test_what_breaks_off_has_done_nothing(
        self, first: TenantMemory, second: TenantMemory, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        """An error at any step inside leaves everything as it was; the same request is then confirmed."""
        entry_id = record_secret(first)
        asked = first.request_erasure(entry_id, "secret")
        before = first.check_rebuild()

        def break_off(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(erasing, step, break_off)
            with pytest.raises(KeyboardInterrupt):
                second.confirm_erasure(asked.erasure_id)

        assert before == first.check_rebuild()
        assert "certified" == second.confirm_erasure(asked.erasure_id).as_dict()["state"]

    def test_what_was_not_certified_is_made_up_for(
        self, first: TenantMemory, second: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A crash after the transaction: erased, and the list and the certificate follow at the next occasion."""
        asked = first.request_erasure(record_secret(first), "secret")

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(erasing, "keep_certificate", die)
            with pytest.raises(KeyboardInterrupt):
                second.confirm_erasure(asked.erasure_id)
        assert ["erased"] == [item.as_dict()["state"] for item in first.erasures()]

        assert ["certified"] == [item.as_dict()["state"] for item in first.finish_erasures()]
        assert 1 == len((first._home / LIST_FILE).read_text().splitlines())

    def test_the_next_erasure_makes_up_for_it_too(
        self, first: TenantMemory, second: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody has to know that one broke off."""
        asked = first.request_erasure(record_secret(first), "secret")

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(erasing, "keep_certificate", die)
            with pytest.raises(KeyboardInterrupt):
                second.confirm_erasure(asked.erasure_id)

        _erase(first, second, record_secret(first))

        assert ["certified"] * 2 == [item.as_dict()["state"] for item in first.erasures()]
        assert 2 == len((first._home / LIST_FILE).read_text().splitlines())


class TestCertificate:
    @pytest.fixture
    def proof(self, first: TenantMemory, second: TenantMemory, tmp_path: Path) -> tuple[Path, str, Path]:
        """A certificate, the public key, and a bundle made afterwards."""
        done = _erase(first, second, record_secret(first))
        assert done.certificate is not None
        path = tmp_path / "erased.txt"
        path.write_text(done.certificate, encoding="utf-8")
        first.export(tmp_path / "bundle")
        return path, first.notary()["public_key"], tmp_path / "bundle"

    def _check(self, path: Path, key: str, *more: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, SCRIPTS / "verify_certificate.py", path, "--public-key", key, *more]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)

    def test_it_holds_with_the_key_alone_and_with_the_bundle(self, proof: tuple[Path, str, Path]) -> None:
        """Outside of the product; the bundle itself verifies too."""
        path, key, bundle = proof
        whole = [sys.executable, str(SCRIPTS / "verify_bundle.py"), str(bundle)]

        assert 0 == self._check(path, key).returncode
        assert 0 == self._check(path, key, "--bundle", bundle).returncode
        assert 0 == subprocess.run(whole, capture_output=True, check=False).returncode
        assert SECRET not in path.read_text()

    def test_a_change_of_any_field_is_caught(self, proof: tuple[Path, str, Path], tmp_path: Path) -> None:
        """Each in turn, and another key."""
        path, key, _ = proof
        lines = path.read_text(encoding="utf-8").split("\n")
        document = json.loads(lines[1])
        tampered = tmp_path / "tampered.txt"

        for name, value in document.items():
            other = document | {name: f"{value}x" if isinstance(value, str) else [value] if value else 1}
            text = json.dumps(other, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            tampered.write_text("\n".join([lines[0], text, *lines[2:]]), encoding="utf-8")
            assert 1 == self._check(tampered, key).returncode, name
        foreign = notes.described_key(notes.notary_key(tmp_path / "foreign"), "x")["public_key"]
        assert 1 == self._check(path, foreign).returncode

    def test_a_bundle_that_still_has_it_is_caught(
        self, first: TenantMemory, second: TenantMemory, tmp_path: Path
    ) -> None:
        """An export from before the erasure does not go with the certificate."""
        entry_id = record_secret(first)
        first.export(tmp_path / "before")
        done = _erase(first, second, entry_id)
        (tmp_path / "erased.txt").write_text(done.certificate or "", encoding="utf-8")

        found = self._check(tmp_path / "erased.txt", first.notary()["public_key"], "--bundle", tmp_path / "before")

        assert 1 == found.returncode
        assert "can still be read" in found.stdout


class TestRestored:
    """A real dump from before the erasure, restored after it."""

    @pytest.fixture
    def restored(
        self, first: TenantMemory, second: TenantMemory, clone: TestDatabase, server: TestServer, tmp_path: Path
    ) -> Iterator[TestDatabase]:
        """The database as of before the erasure of one of its entries."""
        gone = record_secret(first)
        record_secret(
            first,
            title="The disk was full",
            summary="It filled up.",
            body="",
            tags=[],
            evidence=[{"type": "log", "uri": "https://logs.example.com/8", "label": "log"}],
        )
        before = tmp_path / "before.sql"
        before.write_bytes(dump(clone, "-Fp"))
        _erase(first, second, gone)
        with server.empty() as target:
            psql = [str(find_install() / "bin" / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", target.admin]
            subprocess.run([*psql, "-f", str(before)], check=True, capture_output=True)
            # Settings and grants of the database itself are in no dump of it.
            migrate.migrate(target.admin, service_conninfo=target.service)
            yield target

    def test_it_is_not_served_before_the_erasure_is_applied_again(self, restored: TestDatabase, tmp_path: Path) -> None:
        """Opening is refused with what to run; the check says what is missing; once applied it is gone for good."""
        settings = restored.settings(home=tmp_path / "home")
        with pytest.raises(ErasureMissing):
            Grandbo.open(settings=settings)
        cli = Cli(GRANDBO_DATABASE_URL=restored.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=str(tmp_path / "home"))

        found = cli("restore-check", "--json")
        applied, again = cli("restore-check", "--apply", "--json"), cli("restore-check", "--apply", "--json")

        assert (1, ["missing"]) == (found.code, [item["state"] for item in found.document["missing"]])
        assert (0, 1, []) == (applied.code, len(applied.document["applied"]), applied.document["missing"])
        assert (0, []) == (again.code, again.document["applied"])
        assert not holds(dump(restored), SECRET)
        with Grandbo.open(settings=settings) as opened:
            memory = opened.tenant("acme")
            assert memory.verify().first_bad is None
            assert memory.check_rebuild().ok
            assert 1 == len(memory.query_topic("the disk was full", mode="words").matches)

    def test_a_list_that_was_changed_is_refused(self, restored: TestDatabase, tmp_path: Path) -> None:
        """Whoever edits the list cannot get a restored entry past it."""
        path = tmp_path / "home" / LIST_FILE
        path.write_text(path.read_text().replace('"position\\":', '"position\\":1'), encoding="ascii")

        with pytest.raises(ConfigurationError):
            Grandbo.open(settings=restored.settings(home=tmp_path / "home"))


class TestDoors:
    def test_the_command_line(self, opened: Grandbo, first: TenantMemory, clone: TestDatabase, tmp_path: Path) -> None:
        """Request, refuse, confirm with a file, list; then the entry is not there."""
        entry_id = record_secret(first)
        cli = Cli(
            GRANDBO_DATABASE_URL=clone.service,
            GRANDBO_EMBEDDER="none",
            GRANDBO_TENANT="acme",
            GRANDBO_HOME=str(tmp_path / "home"),
        )
        cancelled = cli("erasure", "request", entry_id, "--reason", "legal", "--as", "human:kim", "--json").document
        asked = cli("erasure", "request", entry_id, "--reason", "legal", "--as", "human:kim", "--json").document

        assert 0 == cli("erasure", "cancel", cancelled["erasure_id"], "--as", "human:kim").code
        refused = cli("erasure", "confirm", asked["erasure_id"], "--as", "human:kim", "--json")
        file = tmp_path / "certificate.txt"
        done = cli("erasure", "confirm", asked["erasure_id"], "--as", "human:lee", "--certificate", file)
        listed = cli("erasure", "list", "--finish", "--json").documents

        assert (4, "forbidden") == (refused.code, refused.error["code"])
        assert (0, True) == (done.code, file.read_text().startswith("grandbo.local/erasure/"))
        assert ["certified"] == [item["state"] for item in listed]
        assert 5 == cli("entry", "show", entry_id).code

    def test_http(self, opened: Grandbo, first: TenantMemory) -> None:
        """The same over HTTP, each by a key of a person of his own."""
        entry_id = str(record_secret(first))
        one, two = (client_of(opened, token=make_token(first, "admin", kind="human")) for _ in range(2))

        asked = one.post("/v1/erasures", json={"entry_id": entry_id, "reason": "request"})
        path = f"/v1/erasures/{asked.json()['erasure_id']}"

        assert 201 == asked.status_code
        assert 403 == one.post(f"{path}/confirm").status_code
        done = two.post(f"{path}/confirm")
        assert (200, "certified") == (done.status_code, done.json()["state"])
        assert [done.json()] == one.get("/v1/erasures").json()["erasures"]
        assert [404, 404] == [one.delete(path).status_code, one.get(f"/v1/entries/{entry_id}").status_code]
        for wrong in ({"entry_id": "x", "reason": "request"}, {"entry_id": entry_id, "reason": "he left"}, {}):
            assert one.post("/v1/erasures", json=wrong).status_code in (400, 422)
