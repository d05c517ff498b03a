"""The Merkle tree and signed notes: fixed vectors, every size, every corruption of a proof."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from grandbo.errors import ConfigurationError
from grandbo.events import merkle, notes
from tests.support import vectors

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = notes.public_bytes(KEY)
ORIGIN = f"grandbo.example/log/{vectors.TENANT}"
LEAVES = [bytes.fromhex(leaf) for leaf in vectors.LEAVES]
ROOT_2 = "59e2a24da50ef7df42dca0235f6ace6b320362fae510d0a59acce396c5699237"
ROOT_3 = "9a324be2861785163202210361e903b86e7a9c2ce345475b4aac53f69b5cdde1"
NOTE = """grandbo.example/log/00000000-0000-4000-8000-000000000001
3
mjJL4oYXhRYyAiEDYekDuG56nCzjRUdbSqxT9ptc3eE=

\u2014 grandbo.example/log/00000000-0000-4000-8000-000000000001 \
24TQPW/eN/rLwmCkn0NEiOyB+abQR1MkmbFnnfCqxiwnYoFk9Szypb/zAF+s276HsWkqOGz4arVtDFeYvurfEYmXTQQ=
"""
MOST = 64
_ALL = [hashlib.sha256(bytes([number])).digest() for number in range(MOST)]
_ROOTS = [merkle.root_of(_ALL[:size]) for size in range(MOST + 1)]


def _naive_root(leaves: list[bytes]) -> bytes:
    """The definition of RFC 6962, word by word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\x01" + _naive_root(leaves[:split]) + _naive_root(leaves[split:])).digest()


def _corrupted(proof: list[bytes]) -> list[list[bytes]]:
    """The proof with one thing wrong, in every way that there is."""
    flipped = [[*proof[:at], bytes([proof[at][0] ^ 1]) + proof[at][1:], *proof[at + 1 :]] for at in range(len(proof))]
    dropped = [[*proof[:at], *proof[at + 1 :]] for at in range(len(proof))]
    swapped = [
        [*proof[:at], proof[at + 1], proof[at], *proof[at + 2 :]]
        for at in range(len(proof) - 1)
        if proof[at] != proof[at + 1]
    ]
    return [*flipped, *dropped, *swapped, [*proof, bytes(32)], [bytes(32), *proof]]


class TestFixedVectors:
    def test_roots(self) -> None:
        """Two and three events have the published roots."""
        assert (ROOT_2, ROOT_3) == (merkle.root_of(LEAVES[:2]).hex(), merkle.root_of(LEAVES).hex())

    def test_proofs(self) -> None:
        """The inclusion of event 2 in 3 and the consistency of 2 with 3 are the published paths."""
        assert [LEAVES[0], LEAVES[2]] == merkle.inclusion_proof(LEAVES, 1)
        assert [LEAVES[2]] == merkle.consistency_proof(LEAVES, 2)

    def test_the_checkpoint_byte_for_byte(self) -> None:
        """Key, key id and note of size 3 are the published ones."""
        assert "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8" == PUBLIC.hex()
        assert "db84d03d" == notes.key_id(ORIGIN, PUBLIC).hex()
        assert NOTE == notes.sign_checkpoint(ORIGIN, 3, bytes.fromhex(ROOT_3), KEY)

    def test_the_checkpoint_opens(self) -> None:
        """The published note gives its size and its root."""
        opened = notes.open_checkpoint(NOTE, ORIGIN, PUBLIC)

        assert notes.Checkpoint(ORIGIN, 3, bytes.fromhex(ROOT_3)) == opened


class TestTree:
    def test_the_frontier_is_the_definition(self) -> None:
        """Leaf by leaf, the root is the one that the RFC defines, from the empty tree on."""
        frontier = merkle.Frontier()
        for size in range(MOST + 1):
            assert (size, _naive_root(_ALL[:size])) == (frontier.size, frontier.root())
            frontier.add(_ALL[size % MOST])

    def test_every_leaf_is_shown_to_be_included(self) -> None:
        """For all sizes and all leaves the proof holds, and holds for no other leaf, index, size or root."""
        for size in range(1, MOST + 1):
            for index in range(size):
                proof = merkle.inclusion_proof(_ALL[:size], index)

                assert merkle.is_included(_ALL[index], index, size, proof, _ROOTS[size])
                assert not merkle.is_included(bytes(32), index, size, proof, _ROOTS[size])
                assert not merkle.is_included(_ALL[index], index, size, proof, _ROOTS[size - 1])
                assert not merkle.is_included(_ALL[index], size, size, proof, _ROOTS[size])
                assert size == 1 or not merkle.is_included(_ALL[index], (index + 1) % size, size, proof, _ROOTS[size])

    def test_every_older_tree_is_shown_to_be_a_prefix(self) -> None:
        """For all pairs of sizes the proof holds, and holds for no other root on either side."""
        for new in range(1, MOST + 1):
            for old in range(1, new + 1):
                proof = merkle.consistency_proof(_ALL[:new], old)

                assert merkle.is_consistent(old, new, proof, _ROOTS[old], _ROOTS[new])
                assert not merkle.is_consistent(old, new, proof, _ROOTS[old - 1], _ROOTS[new])
                assert not merkle.is_consistent(old, new, proof, _ROOTS[old], _ROOTS[new - 1])
                assert old == new or not merkle.is_consistent(old, new, proof, bytes(32), bytes(32))

    @settings(max_examples=150, deadline=None)
    @given(st.integers(1, MOST), st.data())
    def test_no_corrupted_proof_holds(self, size: int, data: st.DataObject) -> None:
        """A proof with a bit flipped, a hash dropped, swapped or added shows nothing."""
        index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
        included, prefix = merkle.inclusion_proof(_ALL[:size], index), merkle.consistency_proof(_ALL[:size], old)

        for proof in _corrupted(included):
            assert not merkle.is_included(_ALL[index], index, size, proof, _ROOTS[size])
        for proof in _corrupted(prefix):
            assert not merkle.is_consistent(old, size, proof, _ROOTS[old], _ROOTS[size])

    @settings(max_examples=100, deadline=None)
    @given(st.integers(2, MOST), st.data())
    def test_a_rewritten_past_has_no_proof(self, size: int, data: st.DataObject) -> None:
        """When a leaf of the older tree changed, the honest proof of the new tree does not fit the old root."""
        old = data.draw(st.integers(1, size))
        changed = data.draw(st.integers(0, old - 1))
        rewritten = [*_ALL[:changed], bytes(32), *_ALL[changed + 1 : size]]
        proof = merkle.consistency_proof(rewritten, old)

        assert not merkle.is_consistent(old, size, proof, _ROOTS[old], merkle.root_of(rewritten))

    @pytest.mark.parametrize("index", [-1, 3])
    def test_what_is_not_there_has_no_proof(self, index: int) -> None:
        """Outside the tree there is nothing to prove."""
        with pytest.raises(IndexError):
            merkle.inclusion_proof(LEAVES, index)
        with pytest.raises(IndexError):
            merkle.consistency_proof(LEAVES, 0 if index < 0 else 4)


class TestNotes:
    @settings(max_examples=300, deadline=None)
    @given(st.integers(0, len(NOTE.encode()) - 1), st.integers(0, 7))
    def test_no_flipped_bit_goes_unseen(self, at: int, bit: int) -> None:
        """Whichever bit of a note is flipped, it does not open as another checkpoint."""
        raw = bytearray(NOTE.encode())
        raw[at] ^= 1 << bit

        with pytest.raises(ValueError):  # noqa: PT011  # not UTF-8 any more, or refused
            notes.open_checkpoint(raw.decode(), ORIGIN, PUBLIC)

    @pytest.mark.parametrize(
        "note",
        ["", "\n\n", NOTE[:-1], NOTE + "\n", NOTE.replace("\n\n", "\n"), f"{NOTE}x\n", NOTE.replace("\u2014", "-")],
    )
    def test_what_is_no_note_is_refused(self, note: str) -> None:
        """Cut, padded or of another form: refused, with a reason."""
        with pytest.raises(notes.NoteRefused):
            notes.open_checkpoint(note, ORIGIN, PUBLIC)

    @pytest.mark.parametrize("size", ["0", "-1", "03", "3 ", "\u0663", "x", ""])
    def test_a_signed_text_that_is_no_checkpoint_is_refused(self, size: str) -> None:
        """A signature does not make a size of what is none."""
        note = notes.sign(f"{ORIGIN}\n{size}\n{NOTE.splitlines()[2]}\n", ORIGIN, KEY)

        with pytest.raises(notes.NoteRefused):
            notes.open_checkpoint(note, ORIGIN, PUBLIC)

    def test_a_checkpoint_of_another_log_is_refused(self) -> None:
        """Signed under one name, about another log: not this log's."""
        text = notes.Checkpoint(f"{ORIGIN}9", 3, bytes(32)).text()

        with pytest.raises(notes.NoteRefused):
            notes.open_checkpoint(notes.sign(text, ORIGIN, KEY), ORIGIN, PUBLIC)

    def test_a_second_signature_does_no_harm(self) -> None:
        """A witness may add its line before or behind ours."""
        witness = notes.sign(NOTE.partition("\n\n")[0] + "\n", "witness.example", Ed25519PrivateKey.generate())
        line = witness.rpartition("\n\n")[2]
        text, _, own = NOTE.partition("\n\n")

        for block in (own + line, line + own):
            assert 3 == notes.open_checkpoint(f"{text}\n\n{block}", ORIGIN, PUBLIC).size

    def test_extension_lines_are_signed_and_kept(self) -> None:
        """What stands below the root comes back in order."""
        note = notes.sign_checkpoint(ORIGIN, 3, bytes(32), KEY, ("projections ab", "time t"))

        assert ("projections ab", "time t") == notes.open_checkpoint(note, ORIGIN, PUBLIC).extensions


class TestKey:
    def test_it_is_made_once_for_its_owner_alone(self, tmp_path: Path) -> None:
        """The first use makes it, in a folder that need not be there; the next one reads it."""
        home = tmp_path / "home"

        first, second = notes.notary_key(home), notes.notary_key(home)

        assert notes.public_bytes(first) == notes.public_bytes(second) == notes.known_public_key(home)
        assert (0o600, [notes.KEY_FILE]) == (
            (home / notes.KEY_FILE).stat().st_mode & 0o777,
            [path.name for path in home.iterdir()],
        )

    def test_none_is_made_by_looking(self, tmp_path: Path) -> None:
        """Where no key is, verification makes none."""
        assert None is notes.known_public_key(tmp_path)
        assert [] == list(tmp_path.iterdir())

    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        """The message says what to do."""
        notes.notary_key(tmp_path)
        (tmp_path / notes.KEY_FILE).chmod(0o640)

        with pytest.raises(ConfigurationError, match="chmod 600"):
            notes.notary_key(tmp_path)

    @pytest.mark.parametrize("content", ["garbage", "encrypted", "elliptic"])
    def test_what_is_no_such_key_is_refused(self, tmp_path: Path, content: str) -> None:
        """Garbage, a key under a password, a key of another kind: a setting is wrong, and it is named."""
        plain, pkcs8 = NoEncryption(), PrivateFormat.PKCS8
        raw = {
            "garbage": b"\xff\x00",
            "encrypted": KEY.private_bytes(Encoding.PEM, pkcs8, BestAvailableEncryption(b"x")),
            "elliptic": generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, pkcs8, plain),
        }[content]
        path = tmp_path / notes.KEY_FILE
        path.write_bytes(raw)
        path.chmod(0o600)

        with pytest.raises(ConfigurationError, match=r"notary\.key"):
            notes.notary_key(tmp_path)

    def test_a_home_that_cannot_be_written_is_named(self, tmp_path: Path) -> None:
        """A file where the folder should be is the configuration's fault, not a crash."""
        (tmp_path / "home").touch()

        with pytest.raises(ConfigurationError, match="GRANDBO_HOME"):
            notes.notary_key(tmp_path / "home")
