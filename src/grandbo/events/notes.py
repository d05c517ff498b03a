"""
Signed notes and checkpoints, as C2SP defines them (`signed-note`, `tlog-checkpoint`), under Ed25519.

A checkpoint says: the log of this origin had this size and this root. Whoever kept one can show that a later log is
not the one that was signed. Existing tools for transparency logs read these texts.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from grandbo.errors import ConfigurationError
from grandbo.events.chain import sha256

KEY_FILE = "notary.key"
_DASH = "\u2014"
_ED25519 = b"\x01"
_SIZE = re.compile(r"[1-9][0-9]{0,18}")
_ROOT_BYTES = 32


class NoteRefused(ValueError):
    """The text is not a note that the key signed, or not a checkpoint."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint states, and its further lines."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @property
    def projections(self) -> str | None:
        """The digest of the projections; None of a quick one, which does not state it."""
        named = (line.removeprefix("projections ") for line in self.extensions if line.startswith("projections "))
        return next(named, None)

    @property
    def is_full(self) -> bool:
        """Whether it states the digest of the projections."""
        return self.projections is not None

    def text(self) -> str:
        """The text that is signed."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def origin_of(tenant_id: UUID) -> str:
    """The name of a tenant's log, which is also the name of its key."""
    return f"grandbo.local/log/{tenant_id}"


def public_bytes(key: Ed25519PrivateKey | Ed25519PublicKey) -> bytes:
    """The 32 bytes of the public key."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def key_id(name: str, public: bytes) -> bytes:
    """Tells which of several signatures to look at; proves nothing."""
    return sha256(name.encode(), b"\n", _ED25519, public)[:4]


def verifier_key(name: str, public: bytes) -> str:
    """The public key as other tools for signed notes take it: name, key id, key."""
    return f"{name}+{key_id(name, public).hex()}+{base64.b64encode(_ED25519 + public).decode()}"


def sign(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """The note: the text, a blank line, the signature line."""
    signature = key_id(name, public_bytes(key)) + key.sign(text.encode())
    return f"{text}\n{_DASH} {name} {base64.b64encode(signature).decode()}\n"


def open_note(note: str, name: str, public: bytes) -> str:
    """The text that this key signed under this name; raises `NoteRefused`."""
    body, blank, signatures = note.rpartition("\n\n")
    if not blank or not signatures.endswith("\n"):
        raise NoteRefused("the note has no signature")
    text, wanted = f"{body}\n", key_id(name, public)
    # All lines are read before one is believed: nothing may trail behind a good signature.
    signed = [_signature(line) for line in signatures[:-1].split("\n")]
    own = [signature for who, signature in signed if who == name and signature[:4] == wanted]
    if not own:
        raise NoteRefused("the note bears no signature of this key")
    for signature in own:
        _check_signature(public, signature[4:], text)
    return text


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the signed text of a checkpoint; raises `NoteRefused`."""
    origin, _, rest = text.partition("\n")
    lines = rest.split("\n")
    if len(lines) < 3 or lines[-1] or not _SIZE.fullmatch(lines[0]):
        raise NoteRefused("the note is not a checkpoint")
    root = _unbase64(lines[1], "the root")
    if len(root) != _ROOT_BYTES:
        raise NoteRefused("the root of the checkpoint has not 32 bytes")
    return Checkpoint(origin, int(lines[0]), root, tuple(lines[2:-1]))


def open_checkpoint(note: str, origin: str, public: bytes) -> Checkpoint:
    """The checkpoint that this key signed for this log; raises `NoteRefused`."""
    checkpoint = parse_checkpoint(open_note(note, origin, public))
    if checkpoint.origin != origin:
        raise NoteRefused("the note is of another log")
    return checkpoint


def sign_checkpoint(origin: str, size: int, root: bytes, key: Ed25519PrivateKey, extensions: Sequence[str] = ()) -> str:
    """The signed checkpoint of a log."""
    return sign(Checkpoint(origin, size, root, tuple(extensions)).text(), origin, key)


def notary_key(home: Path) -> Ed25519PrivateKey:
    """
    The key that signs checkpoints, made at first use; only its owner may read the file.

    Raises:
        ConfigurationError: the file cannot be read or written, is open to others, or holds no Ed25519 key.
    """
    path = home / KEY_FILE
    try:
        if not path.exists():
            _make_key(path)
        if path.stat().st_mode & 0o077:
            raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME is open to others: chmod 600 it, or replace it.")
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME: {error.strerror}.") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME is not a PEM file with a plain private key.") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME is not an Ed25519 key.")
    return key


def known_public_key(home: Path) -> bytes | None:
    """The notary's public key where this home has one; raises `ConfigurationError` as `notary_key` does."""
    return public_bytes(notary_key(home)) if (home / KEY_FILE).exists() else None


def described_key(key: Ed25519PrivateKey, origin: str) -> dict[str, str]:
    """The public key as plain values."""
    public = public_bytes(key)
    return {
        "public_key": base64.b64encode(public).decode(),
        "origin": origin,
        "verifier_key": verifier_key(origin, public),
    }


def _make_key(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{KEY_FILE}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: of two processes that make a key at once, the later must not replace the first one's.
        Path(path).hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        Path(draft).unlink()


def _check_signature(public: bytes, signature: bytes, text: str) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
    except InvalidSignature:
        raise NoteRefused("the signature does not fit the note") from None


def _signature(line: str) -> tuple[str, bytes]:
    dash, _, rest = line.partition(" ")
    who, _, encoded = rest.partition(" ")
    if dash != _DASH or not who:
        raise NoteRefused("a signature line of the note is malformed")
    return who, _unbase64(encoded, "the signature")


def _unbase64(text: str, what: str) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        raise NoteRefused(f"{what} is not base64") from None
    # The spare bits of the last character must be zero: one value, one spelling.
    if base64.b64encode(raw).decode() != text:
        raise NoteRefused(f"{what} is not base64")
    return raw
