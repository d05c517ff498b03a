#!/usr/bin/env python3
"""
Check an exported bundle, offline. Python and `cryptography` are all that is needed; nothing here imports Grandbo.

    verify_bundle.py DIR [--public-key FILE] [--note FILE]... [--ack POSITION:HASH]...

A bundle is what `grandbo audit export DIR` writes:

    events.jsonl        the log, one event a line: {"envelope", "body", "salt", "prev_hash", "hash"}
    checkpoints/N.note  the signed checkpoint of size N, a C2SP signed note
    public.key          the Ed25519 key that checks them, base64
    manifest.json       {"format", "tenant_id", "origin", "events", "head", "checkpoints", "recorded_at"}

What must hold, with `+` for concatenation:

    commitment = SHA-256(0x03 + salt + body)                           in the envelope
    leaf       = SHA-256(0x00 + envelope)
    hash(n)    = SHA-256(0x02 + n as 8 bytes, big-endian + hash(n-1) + leaf)
    hash(0)    = SHA-256("grandbo/v1/genesis/" + tenant id)
    root(n)    = the RFC 6962 Merkle root over leaf(1) to leaf(n), inner nodes SHA-256(0x01 + left + right)

Every checkpoint must be signed and state the root of the log at its size, so each is a prefix of every later one.

A bundle alone proves that it is of one piece, not that it is the one that was there: its maker could have made the key
too. Bring from elsewhere what you have: the public key, notes that were sent out earlier (`--note`), and positions
with hashes that writers were given (`--ack`).

Exit status: 0 when the bundle verifies, 1 when it does not, 2 when it was called wrongly.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMATS = re.compile(r"grandbo-bundle/1")
NAMES = frozenset({"events.jsonl", "checkpoints", "public.key", "manifest.json"})
SIZE = re.compile(r"[1-9][0-9]{0,18}")
ORIGIN = re.compile(r"[^\s+]+")
KEY_BYTES = ROOT_BYTES = 32
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
HEX = re.compile(r"(?:[0-9a-f]{2})*")
DIGEST = re.compile(r"[0-9a-f]{64}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
EVENT_TYPE = re.compile(r"[a-z][a-z0-9_]{0,62}")
PRINCIPAL = re.compile(r"(?:human|agent|hook|system):[0-9a-f-]{36}")

# Every key of an envelope, and what its value looks like; `int` stands for a whole number.
ENVELOPE: dict[str, re.Pattern[str] | type[int]] = {
    "v": int,
    "tenant_id": UUID,
    "position": int,
    "event_id": UUID,
    "stream_id": UUID,
    "stream_version": int,
    "event_type": EVENT_TYPE,
    "schema_version": int,
    "principal": PRINCIPAL,
    "subject_id": UUID,
    "command_id": UUID,
    "command_index": int,
    "correlation_id": UUID,
    "causation_id": UUID,
    "occurred_at": TIME,
    "recorded_at": TIME,
    "commitment": DIGEST,
}
MANIFEST: dict[str, re.Pattern[str] | type[int]] = {
    "format": FORMATS,
    "tenant_id": UUID,
    "origin": ORIGIN,
    "events": int,
    "head": DIGEST,
    "checkpoints": int,
    "recorded_at": TIME,
}
NULLABLE = frozenset({"subject_id", "correlation_id", "causation_id"})
ERASURES = frozenset({"entry_erased", "subject_erased"})
LINE_KEYS = frozenset({"envelope", "body", "salt", "prev_hash", "hash"})
SALT_BYTES = 32


class Fault(Exception):
    """The first position at which the log is not what it must be."""

    def __init__(self, position: int, what: str) -> None:
        super().__init__(f"position {position}: {what}")
        self.position = position
        self.what = what


@dataclass(frozen=True)
class Line:
    """One exported event, decoded."""

    envelope: str
    body: bytes | None
    salt: bytes | None
    prev_hash: bytes
    hash: bytes


@dataclass(frozen=True)
class Erasure:
    """
    An erasure event: the streams whose earlier bodies it removed, the positions of its own stream at which it removed
    one, and the subject if it erased one.
    """

    position: int
    stream_id: str
    streams: frozenset[str]
    positions: frozenset[int]
    subject_id: str | None

    def covers(self, envelope: Mapping[str, Any]) -> bool:
        """Whether it may have removed the body of this event."""
        if envelope["position"] >= self.position:
            return False
        by_subject = self.subject_id is not None and envelope["subject_id"] == self.subject_id
        is_named = envelope["stream_id"] == self.stream_id and envelope["position"] in self.positions
        return by_subject or is_named or envelope["stream_id"] in self.streams


class Tree:
    """The right edge of a Merkle tree that grows leaf by leaf."""

    def __init__(self) -> None:
        self.size = 0
        self.edge: list[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Append a leaf: each pair of equal subtrees becomes one."""
        rest = self.size
        while rest % 2:
            leaf = sha256(b"\x01", self.edge.pop(), leaf)
            rest //= 2
        self.edge.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """The root of the tree as it stands."""
        root = self.edge[-1]
        for subtree in self.edge[-2::-1]:
            root = sha256(b"\x01", subtree, root)
        return root


@dataclass
class Verifier:
    """Takes the lines of one tenant's log in order and remembers what the next one has to fit."""

    tenant_id: str
    acknowledged: Mapping[int, str] = field(default_factory=dict)
    roots: Mapping[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position = 0
        self.head = sha256(b"grandbo/v1/genesis/", self.tenant_id.encode())
        self.recorded_at = ""
        self.stream_versions: dict[str, int] = {}
        self.event_ids: set[str] = set()
        self.commands: set[tuple[str, int]] = set()
        self.bodiless: list[dict[str, Any]] = []
        self.erasures: list[Erasure] = []
        self.tree = Tree()

    def take(self, raw: str) -> None:
        """Check the next line; raises `Fault`."""
        self.position += 1
        line = self.decode(raw)
        envelope = self.read_envelope(line.envelope)
        self.check_place(envelope)
        self.check_chain(line)
        self.check_body(line, envelope)
        self.check_order(envelope)
        self.check_ids(envelope)
        if self.acknowledged.get(self.position, self.head.hex()) != self.head.hex():
            self.fail("differs from what was acknowledged")

    def finish(self) -> None:
        """Check what only the whole log shows; raises `Fault`."""
        for envelope in self.bodiless:
            if not any(erasure.covers(envelope) for erasure in self.erasures):
                raise Fault(envelope["position"], "the body is missing and no erasure event accounts for it")
        if any(position > self.position for position in self.acknowledged):
            raise Fault(self.position + 1, "an acknowledged event is missing: the log ends too early")

    def fail(self, what: str) -> NoReturn:
        """Report a fault at the line in hand."""
        raise Fault(self.position, what)

    def decode(self, raw: str) -> Line:
        """From a line of the export to bytes."""
        document = self.parse(raw, "the line")
        if not isinstance(document, dict) or document.keys() != LINE_KEYS:
            self.fail(f"the line is not an object with exactly the keys {', '.join(sorted(LINE_KEYS))}")
        if not isinstance(document["envelope"], str):
            self.fail("the envelope is not text")
        prev_hash, own_hash = self.unhex(document, "prev_hash"), self.unhex(document, "hash")
        if prev_hash is None or own_hash is None:
            self.fail("a hash is missing")
        body, salt = self.unbase64(document["body"]), self.unhex(document, "salt")
        return Line(document["envelope"], body, salt, prev_hash, own_hash)

    def parse(self, text: str, what: str) -> Any:
        """JSON or a fault."""
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            self.fail(f"{what} is not JSON")

    def unhex(self, document: Mapping[str, Any], name: str) -> bytes | None:
        """Lower-case hex or null."""
        value = document[name]
        if value is None:
            return None
        if not isinstance(value, str) or not HEX.fullmatch(value):
            self.fail(f"{name} is not hex")
        return bytes.fromhex(value)

    def unbase64(self, value: object) -> bytes | None:
        """Base64 or null."""
        if value is None:
            return None
        if not isinstance(value, str):
            self.fail("body is not base64")
        try:
            return base64.b64decode(value, validate=True)
        except ValueError:
            raise Fault(self.position, "body is not base64") from None

    def read_envelope(self, text: str) -> dict[str, Any]:
        """The envelope, if it is complete, well-formed and spelled in the one canonical way."""
        document = self.parse(text, "the envelope")
        if not isinstance(document, dict) or document.keys() != ENVELOPE.keys():
            self.fail("the envelope has not exactly the keys of version 1")
        for name, shape in ENVELOPE.items():
            value = document[name]
            if value is None and name in NULLABLE:
                continue
            if not _fits(value, shape):
                self.fail(f"the envelope's {name} is malformed")
        if document["v"] != 1:
            self.fail("the envelope is of an unknown version")
        # Only whole numbers, null and plain ASCII occur, so sorted compact JSON is the RFC 8785 form.
        if json.dumps(document, sort_keys=True, separators=(",", ":")) != text:
            self.fail("the envelope is not canonical")
        return document

    def check_place(self, envelope: Mapping[str, Any]) -> None:
        """The event belongs to this tenant and to this position."""
        if envelope["tenant_id"] != self.tenant_id:
            self.fail("the event belongs to another tenant")
        if envelope["position"] != self.position:
            self.fail(f"a gap, a duplicate or a swap: the event says it stands at {envelope['position']}")

    def check_chain(self, line: Line) -> None:
        """The event continues the one before, and its hash is the hash of what it says."""
        if line.prev_hash != self.head:
            self.fail("the chain is broken: it does not continue the event before")
        leaf = sha256(b"\x00", line.envelope.encode())
        self.head = sha256(b"\x02", self.position.to_bytes(8, "big"), self.head, leaf)
        if line.hash != self.head:
            self.fail("the event was altered: its hash does not fit")
        self.tree.add(leaf)
        if self.roots.get(self.position, b"") not in (b"", self.tree.root()):
            self.fail("the log up to here is not the one that the checkpoint signed")

    def check_body(self, line: Line, envelope: dict[str, Any]) -> None:
        """The body is the one that was committed to, or both body and salt are gone."""
        if line.body is None and line.salt is None:
            self.bodiless.append(envelope)
            return
        if line.body is None or line.salt is None:
            self.fail("half of body and salt is missing")
        if len(line.salt) != SALT_BYTES or sha256(b"\x03", line.salt, line.body).hex() != envelope["commitment"]:
            self.fail("the body was altered: it does not fit its commitment")
        if envelope["event_type"] in ERASURES:
            self.erasures.append(self.read_erasure(line.body, envelope))

    def read_erasure(self, body: bytes, envelope: Mapping[str, Any]) -> Erasure:
        """What an erasure event allows to be gone."""
        try:
            document = self.parse(body.decode(), "the erasure")
        except UnicodeDecodeError:
            self.fail("the erasure is not UTF-8")
        streams = document.get("streams", []) if isinstance(document, dict) else None
        if not isinstance(streams, list) or not all(isinstance(stream, str) for stream in streams):
            self.fail("the erasure does not say which streams it removed")
        positions = document.get("positions", [])
        if not isinstance(positions, list) or not all(type(position) is int for position in positions):
            self.fail("the erasure does not say at which positions it removed bodies")
        own, erases_subject = envelope["stream_id"], envelope["event_type"] == "subject_erased"
        return Erasure(self.position, own, frozenset(streams), frozenset(positions), own if erases_subject else None)

    def check_order(self, envelope: Mapping[str, Any]) -> None:
        """Streams have no holes, and time does not run backwards."""
        stream = envelope["stream_id"]
        if envelope["stream_version"] != self.stream_versions.get(stream, 0) + 1:
            self.fail("a version of its stream is missing or repeated")
        self.stream_versions[stream] = envelope["stream_version"]
        if envelope["recorded_at"] < self.recorded_at:
            self.fail("recorded_at ran backwards")
        self.recorded_at = envelope["recorded_at"]

    def check_ids(self, envelope: Mapping[str, Any]) -> None:
        """No event and no command happened twice."""
        command = (envelope["command_id"], envelope["command_index"])
        if envelope["event_id"] in self.event_ids:
            self.fail("the event id was used before")
        if command in self.commands:
            self.fail("the command id was used before")
        self.event_ids.add(envelope["event_id"])
        self.commands.add(command)


def sha256(*parts: bytes) -> bytes:
    """Digest of the parts, one after the other."""
    return hashlib.sha256(b"".join(parts)).digest()


@dataclass
class Bundle:
    """The files of a bundle, and what was brought from elsewhere to hold them against."""

    folder: Path
    trusted_key: bytes | None = None
    notes: Sequence[bytes] = ()
    acknowledged: Mapping[int, str] = field(default_factory=dict)

    def verify(self) -> Verifier:
        """Check all of it; give the verifier, which knows the log's length and last hash. Raises `Fault`."""
        self.check_names()
        manifest = self.read_manifest()
        key = self.read_key()
        roots = self.read_notes(manifest, key)
        verifier = Verifier(manifest["tenant_id"], self.acknowledged, roots)
        for line in _lines(self.folder / "events.jsonl"):
            verifier.take(line)
        verifier.finish()
        signed = max(roots, default=0)
        if signed > verifier.position:
            raise Fault(verifier.position + 1, f"the log ends before the signed checkpoint of size {signed}")
        if manifest["events"] != verifier.position:
            missing = min(manifest["events"], verifier.position) + 1
            raise Fault(missing, f"the manifest states {manifest['events']} events, the log has {verifier.position}")
        if manifest["head"] != verifier.head.hex():
            raise Fault(verifier.position, "the manifest states another last hash")
        if manifest["recorded_at"] != verifier.recorded_at:
            raise Fault(verifier.position, "the manifest states another time of the last event")
        return verifier

    def check_names(self) -> None:
        """The bundle has the four parts, and no other."""
        found = {path.name for path in self.folder.iterdir()}
        if found != NAMES:
            wrong = ", ".join(sorted(found ^ NAMES))
            raise Fault(0, f"the bundle has a file too many or too few: {wrong}")

    def read_manifest(self) -> dict[str, Any]:
        """What the bundle states of itself."""
        try:
            manifest = json.loads((self.folder / "manifest.json").read_bytes())
        except (ValueError, RecursionError):
            raise Fault(0, "the manifest is not JSON") from None
        if not isinstance(manifest, dict) or manifest.keys() != MANIFEST.keys():
            raise Fault(0, "the manifest has not exactly the keys of its format")
        for name, shape in MANIFEST.items():
            if not _fits(manifest[name], shape):
                raise Fault(0, f"the manifest's {name} is malformed")
        if not manifest["origin"].endswith(f"/log/{manifest['tenant_id']}"):
            raise Fault(0, "the manifest's origin is the log of another tenant")
        return manifest

    def read_key(self) -> bytes:
        """The bundle's key, which must be the trusted one where that is given."""
        key = decode_key((self.folder / "public.key").read_bytes())
        if self.trusted_key is not None and key != self.trusted_key:
            raise Fault(0, "the bundle's public key is not the one that was given")
        return key

    def read_notes(self, manifest: Mapping[str, Any], key: bytes) -> dict[int, bytes]:
        """The signed roots by size, from the bundle and from elsewhere."""
        roots: dict[int, bytes] = {}
        files = sorted((self.folder / "checkpoints").iterdir())
        for file in files:
            if file.suffix != ".note" or not SIZE.fullmatch(file.stem):
                raise Fault(0, f"checkpoints/{file.name} is not named after a size")
            size, root = open_checkpoint(file.read_bytes(), manifest["origin"], key, int(file.stem))
            if size != int(file.stem):
                raise Fault(int(file.stem), f"checkpoints/{file.name} holds the checkpoint of size {size}")
            roots[size] = root
        if manifest["checkpoints"] != len(files):
            raise Fault(0, f"the manifest states {manifest['checkpoints']} checkpoints, there are {len(files)}")
        for note in self.notes:
            size, root = open_checkpoint(note, manifest["origin"], key, 0)
            if roots.setdefault(size, root) != root:
                raise Fault(size, "two signed checkpoints of this size differ: two logs were shown")
        return roots


def open_checkpoint(note: bytes, origin: str, key: bytes, place: int) -> tuple[int, bytes]:
    """Size and root that the key signed for this log; a fault at `place` where it did not."""

    def refuse(what: str) -> NoReturn:
        raise Fault(place, f"checkpoint: {what}")

    try:
        whole = note.decode()
    except UnicodeDecodeError:
        refuse("it is not UTF-8")
    body, blank, block = whole.rpartition("\n\n")
    if not blank or not block.endswith("\n"):
        refuse("it has no signature")
    text = body + "\n"
    check_signatures(text, block, origin, key, refuse)
    lines = text.split("\n")
    if len(lines) < 4 or not SIZE.fullmatch(lines[1]):
        refuse("it does not state a size and a root")
    if lines[0] != origin:
        refuse("it is of another log")
    root = _debase64(lines[2])
    if root is None or len(root) != ROOT_BYTES:
        refuse("its root is malformed")
    return int(lines[1]), root


def check_signatures(text: str, block: str, name: str, key: bytes, refuse: Callable[[str], NoReturn]) -> None:
    """The block has a signature by this key under this name, and all lines of it are well-formed."""
    wanted = sha256(name.encode(), b"\n\x01", key)[:4]
    own = []
    for line in block[:-1].split("\n"):
        parts = line.split(" ")
        signature = _debase64(parts[2]) if len(parts) == 3 and parts[0] == "\u2014" else None
        if signature is None:
            refuse("a signature line is malformed")
        if parts[1] == name and signature[:4] == wanted:
            own.append(signature[4:])
    if not own:
        refuse("it bears no signature of this key")
    for signature in own:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, text.encode())
        except InvalidSignature:
            refuse("the signature does not fit")


def decode_key(raw: bytes) -> bytes:
    """The 32 bytes of a public key file."""
    key = _debase64(raw.decode("ascii", "replace").strip())
    if key is None or len(key) != KEY_BYTES:
        raise Fault(0, "the public key is not 32 bytes in base64")
    return key


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Check an exported bundle, offline.")
    parser.add_argument("bundle", type=Path, metavar="DIR", help="the folder that `grandbo audit export` wrote")
    parser.add_argument("--public-key", type=Path, metavar="FILE", help="the notary's public key, from elsewhere")
    parser.add_argument(
        "--note", action="append", default=[], type=Path, metavar="FILE", help="a checkpoint that was kept elsewhere"
    )
    parser.add_argument(
        "--ack",
        action="append",
        default=[],
        type=_acknowledgement,
        metavar="POSITION:HASH",
        help="an acknowledgement that a writer kept; may be given many times",
    )
    given = parser.parse_args(arguments)
    acknowledged: dict[int, str] = {}
    try:
        for position, hash_ in given.ack:
            if acknowledged.setdefault(position, hash_) != hash_:
                raise Fault(position, "two acknowledgements differ: one of two logs was shown to each writer")
        trusted = decode_key(given.public_key.read_bytes()) if given.public_key else None
        notes = [path.read_bytes() for path in given.note]
        bundle = Bundle(given.bundle, trusted, notes, acknowledged)
        verifier = bundle.verify()
    except Fault as fault:
        print(f"NOT VERIFIED  {fault}")
        return 1
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    signed = max(verifier.roots, default=0)
    print(f"verified  {verifier.position} events, {len(verifier.roots)} checkpoints, signed up to {signed}")
    print(f"last hash {verifier.head.hex()}")
    if trusted is None:
        print("the key is the bundle's own: compare it with one from elsewhere, or give --public-key", file=sys.stderr)
    return 0


def _lines(path: Path) -> Iterator[str]:
    # A byte that is no UTF-8 becomes half a surrogate pair, which no envelope may hold: a fault, not a crash.
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file


def _debase64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    # The spare bits of the last character must be zero: one value, one spelling.
    return raw if base64.b64encode(raw).decode() == text else None


def _fits(value: object, shape: re.Pattern[str] | type[int]) -> bool:
    if not isinstance(shape, re.Pattern):
        return type(value) is int  # not isinstance: true and false are whole numbers to Python
    if not isinstance(value, str) or not shape.fullmatch(value):
        return False
    return shape is not TIME or _is_time(value)


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _acknowledgement(text: str) -> tuple[int, str]:
    position, colon, hash_ = text.partition(":")
    if not colon or not re.fullmatch(r"[1-9]\d{0,18}", position, re.ASCII) or not DIGEST.fullmatch(hash_.lower()):
        raise argparse.ArgumentTypeError("it must be POSITION:HASH, such as 12:5e01…, the hash in 64 hex digits")
    return int(position), hash_.lower()


if __name__ == "__main__":
    raise SystemExit(main())
