"""Checkpoints and bundles: proof that leaves the database, and holds against whoever runs it."""

from __future__ import annotations

import ast
import json
import random
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from scripts import verify_bundle, verify_log

from grandbo.errors import Forbidden, InvalidInput, LogDamaged
from grandbo.events import chain, merkle, notes
from grandbo.events.checkpoints import Signed
from grandbo.events.export import export_line
from grandbo.events.verify import verify_tenant
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import Principal, new_id
from tests.support.chains import Connection, LogRow, insert_row, move_head, resealed, sealed
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase, TestServer
from tests.support.tamper import disarm, export_lines, mutant, random_log, stored_rows

SCRIPT = Path(verify_bundle.__file__)
MUTANTS = 400


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notary of this module has its key."""
    return tmp_path_factory.mktemp("notary")


@pytest.fixture(scope="module")
def keeper(database: TestDatabase, home: Path) -> Iterator[Grandbo]:
    """The shared database, opened by someone with that home."""
    with Grandbo.open(settings=database.settings(home=home)) as opened:
        yield opened


@pytest.fixture
def signer(keeper: Grandbo, tenant_name: str) -> TenantMemory:
    """A fresh tenant with two findings."""
    return _filled(keeper, tenant_name)


def _filled(grandbo: Grandbo, name: str) -> TenantMemory:
    grandbo.create_tenant(name)
    memory = grandbo.tenant(name, principal="human:auditor")
    memory.record_finding(make_finding())
    memory.record_finding(make_finding())
    return memory


def _public(home: Path) -> bytes:
    return notes.public_bytes(notes.notary_key(home))


def _leaves(database: TestDatabase, memory: TenantMemory) -> list[bytes]:
    with database.as_admin() as conn:
        return [chain.leaf_hash(row["envelope"]) for row in stored_rows(conn, memory.tenant_id)]


class TestCheckpoint:
    def test_it_signs_the_whole_log(self, signer: TenantMemory, database: TestDatabase, home: Path) -> None:
        """Origin, size and root are the log's, the digest is the projections', and the key is the notary's."""
        signed = signer.checkpoint()

        opened = notes.open_checkpoint(signed.note, f"grandbo.local/log/{signer.tenant_id}", _public(home))
        assert (3, merkle.root_of(_leaves(database, signer))) == (opened.size, opened.root)
        assert f"projections {signer.check_rebuild().digest}" == opened.extensions[0]
        assert opened.extensions[1].startswith("time 20")
        assert (True, opened) == (signed.created, signed.checkpoint)

    def test_nothing_new_is_signed_where_nothing_was_appended(self, signer: TenantMemory) -> None:
        """The same note again, byte for byte."""
        first, again = signer.checkpoint(), signer.checkpoint()

        assert (first.note, True, False) == (again.note, first.created, again.created)

    def test_a_full_one_is_due_after_a_quick_one(self, signer: TenantMemory, home: Path, tmp_path: Path) -> None:
        """Of the same size and root, with the digest; the quick one is kept beside it, and a quick one more is it."""
        quick = signer.checkpoint(projections=False)
        full = signer.checkpoint()

        assert (True, True) == (quick.created, full.created)
        assert (3, quick.checkpoint.root) == (full.checkpoint.size, full.checkpoint.root)
        assert (None, signer.check_rebuild().digest) == (quick.checkpoint.projections, full.checkpoint.projections)
        for again in (signer.checkpoint(), signer.checkpoint(projections=False)):
            assert (full.note, False) == (again.note, again.created)
        assert [full.note] == [kept["note"] for kept in signer.list_checkpoints()]
        assert (True, True) == (signer.check_rebuild(until=3).signed is not None, signer.check_rebuild(until=3).ok)
        assert signer.verify().first_bad is None
        bundle = signer.export(tmp_path / "bundle")
        assert (full.note, 1) == ((tmp_path / "bundle/checkpoints/3.note").read_text(), bundle.manifest["checkpoints"])
        for note in (quick.note, full.note):
            assert 3 == notes.open_checkpoint(note, f"grandbo.local/log/{signer.tenant_id}", _public(home)).size

    def test_a_page_of_them_has_each_size_once(self, signer: TenantMemory) -> None:
        """Wherever the page ends."""
        for _ in range(3):
            signer.checkpoint(projections=False)
            signer.checkpoint()
            signer.record_finding(make_finding())

        sizes = [kept["size"] for kept in signer.list_checkpoints(limit=2)]
        more = [kept["size"] for kept in signer.list_checkpoints(limit=2, before=sizes[-1])]
        assert [[5, 4], [3]] == [sizes, more]

    def test_an_older_one_is_a_prefix_of_a_newer_one(self, signer: TenantMemory, database: TestDatabase) -> None:
        """The consistency proof of the log leads from the older root to the newer one."""
        old = signer.checkpoint().checkpoint
        signer.record_finding(make_finding())
        new = signer.checkpoint(projections=False).checkpoint

        proof = merkle.consistency_proof(_leaves(database, signer), old.size)
        assert merkle.is_consistent(old.size, new.size, proof, old.root, new.root)
        assert ["time"] == [line.split()[0] for line in new.extensions]

    def test_two_notaries_agree(self, signer: TenantMemory) -> None:
        """Of several that sign one size at once, one makes the note and all give it."""
        made: list[Signed] = []
        threads = [threading.Thread(target=lambda: made.append(signer.checkpoint(projections=False))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert (4, 1) == (len(made), len({signed.note for signed in made}))
        assert 1 == sum(signed.created for signed in made)

    def test_verification_checks_them(self, signer: TenantMemory) -> None:
        """A log that grew after its checkpoints verifies with them."""
        signer.checkpoint()
        signer.record_finding(make_finding())

        assert (None, 4) == (signer.verify().first_bad, signer.verify().events)

    def test_only_who_may_audit(self, keeper: Grandbo, signer: TenantMemory, tmp_path: Path) -> None:
        """Neither signing nor exporting nor listing is for an investigator."""
        memory = TenantMemory(
            keeper, signer.tenant, Principal("agent", new_id(), "scout", frozenset({"investigator", "hook"}))
        )

        for verb in (memory.checkpoint, lambda: memory.export(tmp_path / "x"), memory.events, memory.notary):
            with pytest.raises(Forbidden):
                verb()
        assert [] == list(tmp_path.iterdir())


class Tampering:
    """A database that has lost every protection, and someone who may do anything in it."""

    def __init__(self, grandbo: Grandbo, conn: Connection) -> None:
        self.grandbo = grandbo
        self.conn = conn

    def signed(self) -> TenantMemory:
        """A tenant of three events, all signed."""
        memory = _filled(self.grandbo, f"t-{uuid.uuid4().hex[:12]}")
        memory.checkpoint()
        return memory

    def rows(self, memory: TenantMemory) -> list[LogRow]:
        """The stored log."""
        return stored_rows(self.conn, memory.tenant_id)

    def replace(self, memory: TenantMemory, rows: list[LogRow]) -> None:
        """Another log in place of the stored one, with the head on its end."""
        self.conn.execute("DELETE FROM grandbo.org_memory_events WHERE tenant_id = %s", (memory.tenant_id,))
        for row in rows:
            insert_row(self.conn, row)
        move_head(self.conn, memory.tenant_id, rows[-1]["position"], rows[-1]["hash"])

    def rewrite(self, memory: TenantMemory, position: int) -> None:
        """The perfect rewriting: another title, all hashes computed anew."""
        rows = self.rows(memory)
        at = position - 1
        rows[at] = sealed(rows[at], body=rows[at]["body"].replace(b"Checkout", b"Checkin!"))
        self.replace(memory, resealed(rows))

    def set_note(self, memory: TenantMemory, **columns: object) -> None:
        """An edit of the stored checkpoint."""
        assignments = ", ".join(f"{name} = %({name})s" for name in columns)
        self.conn.execute(
            f"UPDATE grandbo.org_memory_checkpoints SET {assignments} WHERE tenant_id = %(tenant)s",
            {**columns, "tenant": memory.tenant_id},
        )


@pytest.fixture(scope="module")
def tampering(server: TestServer, home: Path) -> Iterator[Tampering]:
    """A database of its own, without protection."""
    with (
        server.clone() as database,
        Grandbo.open(settings=database.settings(home=home)) as grandbo,
        psycopg.connect(database.admin, autocommit=True) as conn,
    ):
        disarm(conn)
        for trigger in ("no_row_change", "no_stmt_change"):
            conn.execute(f"ALTER TABLE grandbo.org_memory_checkpoints DISABLE TRIGGER {trigger}")
        yield Tampering(grandbo, conn)


def _fault(memory: TenantMemory) -> tuple[int, str] | None:
    bad = memory.verify().first_bad
    return None if bad is None else (bad.position, bad.what)


class TestTamperedLog:
    def test_a_perfect_rewriting_is_found_by_the_checkpoint_alone(self, tampering: Tampering) -> None:
        """Every hash fits; what was signed does not. Without the notary's key the log looks sound."""
        memory = tampering.signed()
        tampering.rewrite(memory, 2)

        assert None is verify_tenant(tampering.grandbo.database, memory.tenant_id).first_bad
        assert (3, "the log up to here is not the one of the signed checkpoint") == _fault(memory)
        with pytest.raises(LogDamaged, match="first 3 events"):
            memory.checkpoint()

    def test_nothing_is_signed_on_top_of_a_rewriting(self, tampering: Tampering) -> None:
        """Also when the log has grown since."""
        memory = tampering.signed()
        tampering.rewrite(memory, 2)
        memory.record_finding(make_finding())

        with pytest.raises(LogDamaged, match="first 3 events"):
            memory.checkpoint(projections=False)

    def test_a_tail_that_was_cut_behind_a_checkpoint(self, tampering: Tampering) -> None:
        """The head fits the shorter log; the checkpoint knows of more."""
        memory = tampering.signed()
        tampering.replace(memory, tampering.rows(memory)[:2])

        assert (3, "the log ends before the signed checkpoint of size 3") == _fault(memory)
        with pytest.raises(LogDamaged, match="ends at position 2"):
            memory.checkpoint()

    def test_what_came_after_the_last_checkpoint_is_verified(self, tampering: Tampering) -> None:
        """A fault there is named with its position, and nothing is signed."""
        memory = tampering.signed()
        memory.record_finding(make_finding())
        rows = tampering.rows(memory)
        rows[3] = {**rows[3], "body": rows[3]["body"] + b" "}
        tampering.replace(memory, rows)

        with pytest.raises(LogDamaged, match="position 4: body altered"):
            memory.checkpoint(projections=False)

    def test_projections_that_are_not_the_logs_are_not_signed(self, tampering: Tampering) -> None:
        """The digest would be of something else."""
        memory = _filled(tampering.grandbo, f"t-{uuid.uuid4().hex[:12]}")
        tampering.conn.execute(
            "UPDATE grandbo.org_memory_entries SET title = 'forged' WHERE tenant_id = %s", (memory.tenant_id,)
        )

        with pytest.raises(LogDamaged, match="rebuild --check"):
            memory.checkpoint()

    @pytest.mark.parametrize("change", ["root", "note", "foreign", "forged"])
    def test_an_edited_checkpoint(self, tampering: Tampering, change: str) -> None:
        """Another root, an altered note, a note of another tenant or of another key: found at its size."""
        memory, other = tampering.signed(), tampering.signed()
        note = memory.checkpoint().note
        edits: dict[str, dict[str, Any]] = {
            "root": {"root": bytes(32)},
            "note": {"note": note.replace("time 2", "time 1")},
            "foreign": {"note": other.checkpoint().note},
            "forged": {
                "note": notes.sign(
                    note.partition("\n\n")[0] + "\n", notes.origin_of(memory.tenant_id), Ed25519PrivateKey.generate()
                )
            },
        }
        tampering.set_note(memory, **edits[change])

        assert 3 == (_fault(memory) or (0, ""))[0]
        assert None is _fault(other)
        with pytest.raises(LogDamaged, match="checkpoint of size 3"):
            memory.checkpoint()


@pytest.fixture(scope="module")
def made(keeper: Grandbo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of five events with checkpoints of 3 and 5; tests copy it."""
    memory = _filled(keeper, f"t-{uuid.uuid4().hex[:12]}")
    memory.checkpoint()
    memory.record_finding(make_finding())
    memory.record_finding(make_finding())
    memory.checkpoint()
    return memory.export(tmp_path_factory.mktemp("bundles") / "made").directory


@pytest.fixture
def bundle(made: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(made, tmp_path / "bundle"))


def _check(bundle: Path, **brought: Any) -> int | None:
    """The position at which the standalone verifier finds a fault."""
    try:
        verify_bundle.Bundle(bundle, **brought).verify()
    except verify_bundle.Fault as fault:
        return fault.position
    return None


def _events(bundle: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / "events.jsonl").read_text().splitlines()]


def _write_events(bundle: Path, events: list[dict[str, Any]]) -> None:
    (bundle / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def _restate(bundle: Path, **changes: object) -> None:
    path = bundle / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _reseal(bundle: Path, at: int) -> None:
    """The perfect rewriting of a bundle: another body at `at`, every hash and the manifest computed anew."""
    events = _events(bundle)
    tenant = json.loads(events[0]["envelope"])["tenant_id"]
    salt, body = bytes.fromhex(events[at]["salt"]), b'{"n":1}'
    document = json.loads(events[at]["envelope"]) | {"commitment": chain.commitment(salt, body).hex()}
    events[at]["envelope"] = json.dumps(document, sort_keys=True, separators=(",", ":"))
    events[at]["body"] = "eyJuIjoxfQ=="
    head = chain.genesis(uuid.UUID(tenant))
    for position, event in enumerate(events, 1):
        event["prev_hash"] = head.hex()
        head = chain.link(position, head, chain.leaf_hash(event["envelope"]))
        event["hash"] = head.hex()
    _write_events(bundle, events)
    _restate(bundle, head=head.hex())


def _drop_last(bundle: Path) -> None:
    """A shorter log, and a manifest that agrees with it."""
    events = _events(bundle)[:-1]
    _write_events(bundle, events)
    at = json.loads(events[-1]["envelope"])["recorded_at"]
    _restate(bundle, events=len(events), head=events[-1]["hash"], recorded_at=at)


def _drop_note(bundle: Path, size: int) -> None:
    (bundle / "checkpoints" / f"{size}.note").unlink()
    _restate(bundle, checkpoints=len(list((bundle / "checkpoints").iterdir())))


def _swap_notes(bundle: Path) -> None:
    three, five = bundle / "checkpoints" / "3.note", bundle / "checkpoints" / "5.note"
    kept = three.read_text()
    three.write_text(five.read_text())
    five.write_text(kept)


def _swap_events(bundle: Path) -> None:
    events = _events(bundle)
    events[1], events[2] = events[2], events[1]
    _write_events(bundle, events)


def _edit_event(at: int, **changes: object) -> Callable[[Path], None]:
    def change(bundle: Path) -> None:
        events = _events(bundle)
        events[at].update(changes)
        _write_events(bundle, events)

    return change


def _edit(name: str, before: str, after: str) -> Callable[[Path], None]:
    def change(bundle: Path) -> None:
        text = (bundle / name).read_text()
        assert before in text
        (bundle / name).write_text(text.replace(before, after))

    return change


def _other_key(bundle: Path) -> None:
    (bundle / "public.key").write_text("A" * 43 + "=\n")


def _add_file(bundle: Path) -> None:
    (bundle / "extra").touch()


def _insert_event(bundle: Path) -> None:
    events = _events(bundle)
    _write_events(bundle, [*events[:2], events[1], *events[2:]])


def _rename_note(bundle: Path) -> None:
    (bundle / "checkpoints" / "3.note").rename(bundle / "checkpoints" / "4.note")


def _no_manifest(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("[]")


_TAMPERINGS: dict[str, tuple[Callable[[Path], None], int]] = {
    "an envelope edited": (_edit("events.jsonl", "entry_recorded", "entry_archived"), 2),
    "a body replaced": (_edit_event(1, body="e30="), 2),
    "a body removed": (_edit_event(2, body=None, salt=None), 3),
    "half of body and salt removed": (_edit_event(2, salt=None), 3),
    "a hash edited": (_edit_event(3, hash="00" * 32), 4),
    "a previous hash edited": (_edit_event(3, prev_hash="00" * 32), 4),
    "an event that is no object": (_edit_event(4, extra=1), 5),
    "events swapped": (_swap_events, 2),
    "an event twice": (_insert_event, 3),
    "the last event dropped": (_drop_last, 5),
    "the past rewritten": (lambda bundle: _reseal(bundle, 1), 3),
    "the tail rewritten": (lambda bundle: _reseal(bundle, 4), 5),
    "notes swapped": (_swap_notes, 3),
    "a note renamed": (_rename_note, 4),
    "a note's size edited": (_edit("checkpoints/5.note", "\n5\n", "\n4\n"), 5),
    "a note's further line edited": (_edit("checkpoints/3.note", "\ntime 2", "\ntime 1"), 3),
    "a note's signature cut": (_edit("checkpoints/3.note", "\n\n", "\n"), 3),
    "a note with a line behind it": (_edit("checkpoints/3.note", "\n\n\u2014", "\n\nx\n\u2014"), 3),
    "the key replaced": (_other_key, 3),
    "the manifest's count edited": (_edit("manifest.json", '"events": 5', '"events": 4'), 5),
    "the manifest's head edited": (lambda bundle: _restate(bundle, head="00" * 32), 5),
    "the manifest's time edited": (lambda bundle: _restate(bundle, recorded_at="2026-01-01T00:00:00.000000Z"), 5),
    "the manifest's tenant edited": (lambda bundle: _restate(bundle, tenant_id=str(uuid.uuid4())), 0),
    "the manifest's origin edited": (_edit("manifest.json", "grandbo.local", "grandbo.other"), 3),
    "the manifest's format edited": (_edit("manifest.json", "bundle/1", "bundle/2"), 0),
    "the manifest's number of checkpoints edited": (_edit("manifest.json", '"checkpoints": 2', '"checkpoints": 1'), 0),
    "the manifest no object": (_no_manifest, 0),
    "a file too many": (_add_file, 0),
    "a file too few": (lambda bundle: (bundle / "public.key").unlink(), 0),
}


class TestBundle:
    def test_a_good_one_verifies_far_from_here(self, made: Path, home: Path, tmp_path: Path) -> None:
        """One file, in a process that can import nothing of ours, in another folder, with all that can be brought."""
        script = Path(shutil.copy(SCRIPT, tmp_path / "check.py"))
        brought = tmp_path / "public.key"
        brought.write_bytes((made / "public.key").read_bytes())
        last = _events(made)[-1]["hash"]
        arguments = ["--public-key", str(brought), "--note", str(made / "checkpoints/3.note"), "--ack", f"5:{last}"]

        done = subprocess.run(
            [sys.executable, "-I", str(script), str(made), *arguments], capture_output=True, text=True, cwd=tmp_path
        )

        assert (0, "") == (done.returncode, done.stderr)
        assert ["verified  5 events, 2 checkpoints, signed up to 5", f"last hash {last}"] == done.stdout.splitlines()

    def test_it_imports_nothing_of_ours(self) -> None:
        """Standard library and `cryptography`, nothing else."""
        modules = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(SCRIPT.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [node.module or ""] if isinstance(node, ast.ImportFrom) else [item.name for item in node.names]
            )
        }

        assert {"cryptography"} == modules - set(sys.stdlib_module_names)

    @pytest.mark.parametrize("name", _TAMPERINGS)
    def test_tampering_is_found_at_its_position(self, bundle: Path, name: str) -> None:
        """Whatever is done to an event, a note, the key or the manifest; 0 where it belongs to no position."""
        change, position = _TAMPERINGS[name]
        change(bundle)

        assert position == _check(bundle)

    def test_an_earlier_checkpoint_of_a_rewritten_log(self, bundle: Path, made: Path, home: Path) -> None:
        """Someone with the key signs a rewritten log anew: one old note from elsewhere is enough to show it."""
        _reseal(bundle, 1)
        origin = json.loads((bundle / "manifest.json").read_text())["origin"]
        leaves = [chain.leaf_hash(event["envelope"]) for event in _events(bundle)]
        for size in (3, 5):
            note = notes.sign_checkpoint(origin, size, merkle.root_of(leaves[:size]), notes.notary_key(home))
            (bundle / "checkpoints" / f"{size}.note").write_text(note)

        assert None is _check(bundle)
        assert 3 == _check(bundle, notes=[(made / "checkpoints/3.note").read_bytes()])
        _drop_note(bundle, 3)
        assert 3 == _check(bundle, notes=[(made / "checkpoints/3.note").read_bytes()])

    def test_an_acknowledgement_knows_better(self, bundle: Path, made: Path) -> None:
        """Without checkpoints a perfect rewriting passes; one acknowledged hash shows it."""
        hashes = [event["hash"] for event in _events(made)]
        _drop_note(bundle, 3)
        _drop_note(bundle, 5)
        _reseal(bundle, 1)

        assert None is _check(bundle)
        assert 4 == _check(bundle, acknowledged={4: hashes[3]})
        assert 6 == _check(bundle, acknowledged={6: hashes[0]})

    def test_a_key_from_elsewhere_is_the_one_that_counts(self, bundle: Path) -> None:
        """A bundle that was signed by someone else altogether is of one piece, and is not ours."""
        assert 0 == _check(bundle, trusted_key=bytes(32))

    def test_what_is_wrong_is_said_in_one_line(
        self, bundle: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        """A fault is exit 1 with its position; a call that makes no sense is exit 2."""
        _swap_events(bundle)

        assert 1 == verify_bundle.main([str(bundle)])
        assert capsys.readouterr().out.startswith("NOT VERIFIED  position 2: ")
        for arguments in ([str(tmp_path / "nowhere")], [str(bundle), "--ack", "x"]):
            with pytest.raises(SystemExit, match="2"):
                verify_bundle.main(arguments)

    def test_it_agrees_with_the_other_script(self) -> None:
        """On logs with erasures, and on mutants of them, both standalone verifiers name the same position."""
        chance = random.Random(9)
        for number in range(MUTANTS):
            tenant_id = uuid.UUID(int=chance.getrandbits(128), version=4)
            rows = random_log(chance, tenant_id, chance.randint(1, 8))
            rows = mutant(chance, rows) if number % 4 else rows
            lines = [export_line(row) for row in rows]

            assert [json.loads(line) for line in export_lines(rows)] == [json.loads(line) for line in lines]
            assert _position(verify_log, lines, tenant_id) == _position(verify_bundle, lines, tenant_id)

    def test_the_folder_must_be_empty(self, signer: TenantMemory, tmp_path: Path) -> None:
        """What is there stays as it is; an empty folder is filled; nothing half-made is left beside."""
        full, file, empty = tmp_path / "full", tmp_path / "file", tmp_path / "empty"
        full.mkdir()
        (full / "kept").write_text("x")
        file.touch()
        empty.mkdir()

        for target in (full, file, tmp_path / "no" / "such"):
            with pytest.raises(InvalidInput, match="DIR"):
                signer.export(target)
        signer.export(empty)

        assert ["empty", "file", "full"] == sorted(path.name for path in tmp_path.iterdir())
        assert (["kept"], None) == ([path.name for path in full.iterdir()], _check(empty))

    def test_it_holds_one_tenant(self, signer: TenantMemory, keeper: Grandbo, tmp_path: Path, home: Path) -> None:
        """Nothing of a neighbour, and never the private key."""
        other = _filled(keeper, f"{signer.tenant.name}-other")
        other.checkpoint()
        signer.export(tmp_path / "mine")
        text = "".join(path.read_text() for path in (tmp_path / "mine").rglob("*") if path.is_file())

        assert [] == list((tmp_path / "mine" / "checkpoints").iterdir())
        assert str(other.tenant_id) not in text
        assert "PRIVATE" not in text
        assert 0o700 == (tmp_path / "mine").stat().st_mode & 0o777


def _position(script: Any, lines: list[str], tenant_id: uuid.UUID) -> int | None:
    verifier = script.Verifier(str(tenant_id))
    try:
        for line in lines:
            verifier.take(line)
        verifier.finish()
    except script.Fault as fault:
        return int(fault.position)
    return None


class TestCommands:
    def test_sign_export_verify(self, database: TestDatabase, signer: TenantMemory, home: Path, tmp_path: Path) -> None:
        """What the commands print is a note, a folder and a key that belong together."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=str(home))
        tenant = ("--tenant", signer.tenant.name)

        note, quick = cli("audit", "checkpoint", *tenant), cli("audit", "checkpoint", "--quick", *tenant, "--json")
        key = cli("audit", "key", *tenant, "--json")
        exported = cli("audit", "export", tmp_path / "out", *tenant)
        again = cli("audit", "export", tmp_path / "out", *tenant, "--json")

        assert (note.out, False) == (quick.document["note"], quick.document["created"])
        assert 3 == notes.open_checkpoint(note.out, key.document["origin"], _public(home)).size
        assert f"{key.document['public_key']}\n" == cli("audit", "key", *tenant).out
        assert key.document["verifier_key"].startswith(f"{key.document['origin']}+")
        assert (0, 2, "invalid_input") == (exported.code, again.code, again.error["code"])
        assert "3 events, 1 checkpoints" in exported.out
        assert None is _check(tmp_path / "out", trusted_key=_public(home))

    def test_verify_from_a_position(self, database: TestDatabase, signer: TenantMemory, home: Path) -> None:
        """Only what stands there and behind is checked; the position must be one of the log's."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=str(home))
        tenant = ("--tenant", signer.tenant.name, "--json")

        checked = cli("audit", "verify", "--from", 3, *tenant)
        beyond, nowhere = cli("audit", "verify", "--from", 4, *tenant), cli("audit", "verify", "--from", 2, "--json")

        assert [(1, 3, None)] == [
            (item["events"], item["head"], item["first_bad"]) for item in checked.document["tenants"]
        ]
        assert [(2, "from"), (2, "from")] == [(done.code, done.error["field"]) for done in (beyond, nowhere)]

    def test_verify_from_behind_a_fault(self, tampering: Tampering) -> None:
        """What is before the position is taken as it is; what is behind it is found."""
        memory = _filled(tampering.grandbo, f"t-{uuid.uuid4().hex[:12]}")
        rows = tampering.rows(memory)
        rows[1] = {**rows[1], "body": b"{}"}
        tampering.replace(memory, rows)

        assert 2 == (_fault(memory) or (0, ""))[0]
        assert None is memory.verify(start=3).first_bad
        tampering.conn.execute(
            "DELETE FROM grandbo.org_memory_events WHERE tenant_id = %s AND position = 2", (memory.tenant_id,)
        )
        bad = memory.verify(start=3).first_bad
        assert bad is not None
        assert 3 == bad.position
