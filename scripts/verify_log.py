#!/usr/bin/env python3
"""
Check one tenant's exported log, offline. Standard library only; nothing here imports Grandbo.

    verify_log.py LOG.jsonl --tenant ID [--ack POSITION:HASH]...

The export has one JSON object a line, in order of position:

    {"envelope": text, "body": base64 or null, "salt": hex or null, "prev_hash": hex, "hash": hex}

What must hold, with `+` for concatenation:

    commitment = SHA-256(0x03 + salt + body)                           in the envelope
    leaf       = SHA-256(0x00 + envelope)
    hash(n)    = SHA-256(0x02 + n as 8 bytes, big-endian + hash(n-1) + leaf)
    hash(0)    = SHA-256("grandbo/v1/genesis/" + tenant id)

A log proves nothing about its own end, nor against someone who can rewrite all of it. Acknowledgements do: every
writer was given the position and the hash of what it wrote. Give some of them with `--ack`; the log must hold each.

Exit status: 0 when the log verifies, 1 when it does not, 2 when it was called wrongly.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

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


@dataclass
class Verifier:
    """Takes the lines of one tenant's log in order and remembers what the next one has to fit."""

    tenant_id: str
    acknowledged: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position = 0
        self.head = sha256(b"grandbo/v1/genesis/", self.tenant_id.encode())
        self.recorded_at = ""
        self.stream_versions: dict[str, int] = {}
        self.event_ids: set[str] = set()
        self.commands: set[tuple[str, int]] = set()
        self.bodiless: list[dict[str, Any]] = []
        self.erasures: list[Erasure] = []

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


def verify_lines(lines: Iterable[str], tenant_id: str, acknowledged: Mapping[int, str] | None = None) -> Verifier:
    """Check a whole log; give the verifier, which knows its length and its last hash. Raises `Fault`."""
    verifier = Verifier(tenant_id, acknowledged or {})
    for line in lines:
        verifier.take(line)
    verifier.finish()
    return verifier


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Check one tenant's exported log, offline.")
    parser.add_argument("log", type=Path, metavar="LOG.jsonl", help="the export, one event a line; - for stdin")
    parser.add_argument("--tenant", required=True, metavar="ID", type=_tenant, help="the tenant's UUID")
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
        verifier = verify_lines(_read(given.log), given.tenant, acknowledged)
    except Fault as fault:
        print(f"NOT VERIFIED  {fault}")
        return 1
    except OSError as error:
        parser.error(f"{given.log}: {error.strerror}")
    print(f"verified  {verifier.position} events, last hash {verifier.head.hex()}")
    return 0


def _read(path: Path) -> Iterator[str]:
    # A byte that is no UTF-8 becomes half a surrogate pair, which no envelope may hold: a fault, not a crash.
    if str(path) == "-":
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")  # type: ignore[union-attr]
        yield from sys.stdin
        return
    with path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        yield from file


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


def _tenant(text: str) -> str:
    if not UUID.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError("it must be a UUID")
    return text.lower()


def _acknowledgement(text: str) -> tuple[int, str]:
    position, colon, hash_ = text.partition(":")
    if not colon or not re.fullmatch(r"[1-9]\d{0,18}", position, re.ASCII) or not DIGEST.fullmatch(hash_.lower()):
        raise argparse.ArgumentTypeError("it must be POSITION:HASH, such as 12:5e01…, the hash in 64 hex digits")
    return int(position), hash_.lower()


if __name__ == "__main__":
    raise SystemExit(main())
