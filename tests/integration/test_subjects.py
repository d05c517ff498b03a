"""Subjects and their keys: registered, held, sealed, wrapped anew, and what happens when a key cannot be had."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import ANY, Stubber

from grandbo.errors import ConfigurationError, EventUnreadable, Forbidden, InvalidInput, NotFound
from grandbo.key_errors import KeyEpochGone, KeyLost, KeyProviderDown, KeyUnavailable, KeyWrong
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.key_rotation import rotate_keys
from grandbo.storage.keyring import KEYRING_FILE, LocalKeyring
from grandbo.storage.kms import KmsProvider
from grandbo.storage.tenancy import tenant_id_for
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import words_embedder

ZOE = "zoe.nakamura@example.com"


def register(memory: TenantMemory, reference: str = ZOE, **how: Any) -> Any:
    """A person."""
    return memory.register_subject("person", reference, "Zoë Nakamura", **how).subject


class TestRegistering:
    def test_the_same_reference_is_the_same_subject(self, memory: TenantMemory) -> None:
        """However it is written; and it is one event."""
        first = memory.register_subject("person", ZOE, "Zoë Nakamura")
        again = memory.register_subject("person", f"  {ZOE.upper()} ", "Zoë Nakamura")

        assert [True, False] == [first.created, again.created]
        assert first.subject.subject_id == again.subject.subject_id
        assert 1 == len(list(memory.events(event_type="subject_registered")))

    def test_what_is_new_of_it_is_put_on_record(self, memory: TenantMemory) -> None:
        """A new name, or other principals, under the same id."""
        before = register(memory)
        after = memory.register_subject("person", ZOE, "Zoë Müller", principals=["human:zoe"])

        assert [False, before.subject_id] == [after.created, after.subject.subject_id]
        assert ["Zoë Müller", 1] == [memory.subject(ZOE).name, len(memory.subject(ZOE).principals)]
        assert [] == memory.check_rebuild().differences

    def test_neither_reference_nor_name_stands_anywhere_in_the_clear(
        self, memory: TenantMemory, database: TestDatabase
    ) -> None:
        """The log has ciphertext, the table a keyed digest."""
        subject = register(memory)
        with database.as_admin() as conn:
            row = conn.execute(
                "SELECT e.body, e.envelope, s.* FROM grandbo.org_memory_events e JOIN grandbo.org_memory_subjects s"
                " ON s.subject_id = e.stream_id WHERE e.stream_id = %s",
                [subject.subject_id],
            ).fetchone()

        assert row is not None
        text = repr(row).lower()
        assert not any(word in text for word in ("zoe", "nakamura", "example.com"))
        assert isinstance(row[0], bytes)
        assert 1 == row[0][0]

    def test_two_tenants_know_the_same_reference_apart(
        self, memory: TenantMemory, other_memory: TenantMemory, database: TestDatabase
    ) -> None:
        """Another id, another digest; neither is found from the other."""
        here, there = register(memory), register(other_memory)
        with database.as_admin() as conn:
            digests = conn.execute(
                "SELECT DISTINCT reference FROM grandbo.org_memory_subjects WHERE subject_id = ANY(%s)",
                [[here.subject_id, there.subject_id]],
            ).fetchall()

        assert here.subject_id != there.subject_id
        assert 2 == len(digests)
        with pytest.raises(NotFound):
            memory.subject(there.subject_id)

    @pytest.mark.parametrize(
        ("kind", "reference", "name"),
        [
            ("robot", ZOE, "Zoë"),
            ("person", " ", "Zoë"),
            ("person", ZOE, ""),
            ("person", "x" * 201, "Zoë"),
            (None, 7, 7),
        ],
    )
    def test_what_does_not_fit_is_refused(self, memory: TenantMemory, kind: Any, reference: Any, name: Any) -> None:
        """With the field that is wrong."""
        with pytest.raises(InvalidInput):
            memory.register_subject(kind, reference, name)

    def test_only_who_governs_registers(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """An investigator does not, nor does it see who is registered."""
        who = grandbo.authenticate(make_token(memory, "investigator"))

        for attempt in (lambda: register(who), who.subjects, lambda: who.subject(register(memory).subject_id)):
            with pytest.raises(Forbidden):
                attempt()


class TestHold:
    def test_a_hold_says_why_and_who(self, memory: TenantMemory) -> None:
        """Set twice it keeps its first reason; lifted it is gone; each is an event."""
        subject = register(memory)
        held = memory.hold_subject(ZOE, "Litigation 17")
        again = memory.hold_subject(ZOE, "Another reason")
        lifted = memory.lift_hold(subject.subject_id, "Settled")

        assert ["Litigation 17", memory.principal.ref] == [held.hold_reason, held.held_by]
        assert held == again
        assert [None, None] == [lifted.hold_reason, lifted.held_at]
        kinds = [event["event_type"] for event in memory.events(entry_id=subject.subject_id)]
        assert ["subject_registered", "subject_held", "subject_hold_lifted"] == kinds
        assert [] == memory.check_rebuild().differences

    def test_only_an_admin_sets_one(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A reviewer does not."""
        register(memory)
        with pytest.raises(Forbidden):
            grandbo.authenticate(make_token(memory, "reviewer")).hold_subject(ZOE, "why not")


@pytest.fixture
def clone(server: TestServer) -> Iterator[TestDatabase]:
    """A database of its own: its keys are lost and changed here."""
    with server.clone() as made:
        yield made


def _open(clone: TestDatabase, home: Path, **how: Any) -> Grandbo:
    return Grandbo.open(settings=clone.settings(home=home), embedder=words_embedder(), **how)


class TestKeyring:
    def test_it_is_made_at_the_first_start_for_its_owner_alone(self, clone: TestDatabase, tmp_path: Path) -> None:
        """And read as it is at the second."""
        with _open(clone, tmp_path):
            made = (tmp_path / KEYRING_FILE).read_text()
        with _open(clone, tmp_path):
            pass

        assert 0o600 == (tmp_path / KEYRING_FILE).stat().st_mode & 0o777
        assert made == (tmp_path / KEYRING_FILE).read_text()

    def test_rotation_touches_no_event(self, clone: TestDatabase, tmp_path: Path) -> None:
        """Every hash stays; names still open, also in a process that remembers nothing; a rebuild is the same."""
        with _open(clone, tmp_path) as opened:
            opened.create_tenant("acme")
            acme = opened.tenant("acme")
            subjects = [register(acme, f"p{n}@example.com") for n in range(3)]
            before = [event["hash"] for event in acme.events()]
            rotated = rotate_keys(opened.database, destroys_old=True)
            acme.register_subject("workspace", "payments", "Payments")

        with _open(clone, tmp_path) as opened:
            acme = opened.tenant("acme")
            names = [acme.subject(subject.subject_id).name for subject in subjects]
            hashes = [event["hash"] for event in acme.events()]
            assert acme.check_rebuild().ok
            assert acme.verify().first_bad is None
        assert {"epoch": 2, "wrapped": 4, "destroyed": [1]} == rotated.as_dict()
        assert ["Zoë Nakamura"] * 3 == names
        assert before == hashes[:-1]

    def test_a_rotation_that_was_broken_off_is_run_again(
        self, clone: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Half of the keys are in the new epoch, half in the old one; all open, and the next rotation takes them on."""
        with _open(clone, tmp_path) as opened:
            opened.create_tenant("acme")
            acme = opened.tenant("acme")
            for n in range(4):
                register(acme, f"p{n}@example.com")
            wrap, left = LocalKeyring.wrap, iter(range(2))

            def failing(self: LocalKeyring, *given: Any) -> bytes:
                if next(left, None) is None:
                    raise OSError("the disk went away")
                return wrap(self, *given)

            monkeypatch.setattr(LocalKeyring, "wrap", failing)
            with pytest.raises(OSError, match="disk"):
                rotate_keys(opened.database, destroys_old=True)
            monkeypatch.undo()
        with _open(clone, tmp_path) as opened:
            assert opened.tenant("acme").check_rebuild().ok
            rotated = rotate_keys(opened.database, destroys_old=True)
            assert opened.tenant("acme").check_rebuild().ok
        assert [3, 5, (1, 2)] == [rotated.epoch, rotated.wrapped, rotated.destroyed]

    @pytest.mark.parametrize("case", ["lost", "wrong", "rotated"])
    def test_without_the_right_keyring_everything_else_goes_on(
        self, clone: TestDatabase, tmp_path: Path, case: str
    ) -> None:
        """What needs the key says which case it is; recall, recording and verifying do not need it."""
        expected: dict[str, type[KeyUnavailable]] = {"lost": KeyLost, "wrong": KeyWrong, "rotated": KeyEpochGone}
        keyring = tmp_path / KEYRING_FILE
        with _open(clone, tmp_path) as opened:
            opened.create_tenant("acme")
            acme = opened.tenant("acme")
            subject = register(acme)
            exported = LocalKeyring(tmp_path).exported()
        keyring.unlink()
        if case == "wrong":
            LocalKeyring(tmp_path).create()
        if case == "rotated":
            document = json.loads(exported)
            document["epochs"] = {"2": document["epochs"].pop("1")}
            keyring.write_text(json.dumps({**document, "current": 2}))
            keyring.chmod(0o600)

        with _open(clone, tmp_path) as opened:
            acme = opened.tenant("acme")
            acme.record_finding(make_finding())
            answer = acme.query_topic("the lease renewal of the checkout queue failed")
            assert [1, None] == [len(answer.matches), acme.verify().first_bad]
            assert [subject.subject_id] == [found.subject_id for found in acme.subjects()]
            for attempt in (lambda: acme.subject(subject.subject_id), acme.check_rebuild, acme.rebuild):
                with pytest.raises(expected[case]):
                    attempt()
            assert keyring.exists() == (case != "lost")
        keyring.unlink(missing_ok=True)
        LocalKeyring(tmp_path).restore(exported)
        with _open(clone, tmp_path) as opened:
            assert "Zoë Nakamura" == opened.tenant("acme").subject(subject.subject_id).name

    def test_a_keyring_open_to_others_or_broken_is_refused(self, tmp_path: Path) -> None:
        """As is a restore over one that is there."""
        ring = LocalKeyring(tmp_path)
        ring.create()
        text = ring.exported()
        with pytest.raises(ConfigurationError):
            ring.restore(text)
        ring.path.chmod(0o644)
        with pytest.raises(ConfigurationError):
            LocalKeyring(tmp_path).described()
        for broken in ("", "{}", text.replace('"current": 1', '"current": 9'), text[:-8]):
            ring.path.write_text(broken)
            ring.path.chmod(0o600)
            with pytest.raises(ConfigurationError):
                LocalKeyring(tmp_path).described()


class TestKms:
    def test_keys_are_wrapped_by_kms_and_bound_to_their_subject(self, clone: TestDatabase, tmp_path: Path) -> None:
        """What goes over the wire is checked against botocore's model of KMS; a wrong key opens nothing."""
        client = boto3.client("kms", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
        with Stubber(client) as kms:
            sent = {"KeyId": "alias/grandbo", "Plaintext": ANY, "EncryptionContext": ANY}
            for wrapped in (b"pepper", b"key"):
                kms.add_response("encrypt", {"CiphertextBlob": wrapped}, sent)
            with _open(clone, tmp_path, key_provider=KmsProvider("alias/grandbo", client=client)) as opened:
                opened.create_tenant("acme")
                subject = register(opened.tenant("acme"))
            bound = {"grandbo:tenant": str(tenant_id_for("acme")), "grandbo:subject": str(subject.subject_id)}
            asked = {"CiphertextBlob": b"key", "EncryptionContext": bound}
            kms.add_response("decrypt", {"Plaintext": bytes(32)}, asked)
            other = KmsProvider("alias/other", client=client)
            with _open(clone, tmp_path, key_provider=other) as opened, pytest.raises(EventUnreadable):
                opened.tenant("acme").subject(subject.subject_id)
            kms.assert_no_pending_responses()
        assert not (tmp_path / KEYRING_FILE).exists()

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            ("KMSInternalException", KeyProviderDown),
            ("AccessDeniedException", KeyProviderDown),
            ("DisabledException", KeyProviderDown),
            ("InvalidCiphertextException", KeyWrong),
            ("IncorrectKeyException", KeyWrong),
        ],
    )
    def test_what_kms_says_becomes_a_typed_error(
        self, clone: TestDatabase, tmp_path: Path, code: str, error: type[KeyUnavailable]
    ) -> None:
        """Down, refusing, or another key; the rest of the memory goes on."""
        client = boto3.client("kms", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
        with Stubber(client) as kms, _open(clone, tmp_path, key_provider=KmsProvider("k", client=client)) as opened:
            opened.create_tenant("acme")
            acme = opened.tenant("acme")
            kms.add_client_error("encrypt", code)
            with pytest.raises(error) as raised:
                register(acme)
            assert code == raised.value.details["reason"]
            assert acme.record_finding(make_finding()).appended

    def test_kms_that_cannot_be_reached_is_down(
        self, clone: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A connection that is refused is no fault of the caller's."""
        provider = KmsProvider("k", region="eu-central-1", endpoint_url="http://127.0.0.1:9", timeout=0.2)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        with _open(clone, tmp_path, key_provider=provider) as opened:
            opened.create_tenant("acme")
            with pytest.raises(KeyProviderDown) as raised:
                register(opened.tenant("acme"))
        assert EndpointConnectionError.__name__ == raised.value.details["reason"]
