#!/usr/bin/env python3
"""
Check a certificate of erasure, offline. Python and `cryptography` are all that is needed; nothing here imports Grandbo.

    verify_certificate.py CERTIFICATE --public-key KEY|FILE [--bundle DIR]

The certificate is a C2SP signed note: the origin, one line of JSON, a blank line, the signature. KEY is the notary's
public key in base64, as `grandbo audit key` prints it; get it from elsewhere than the certificate.

With the bundle of an export made after the erasure it is also checked that the event of the erasure stands at its
position with its hash, that no body of the positions it names can be read any more, and that the log verifies up to the
checkpoint which the certificate holds (run verify_bundle.py for the rest).

Exit status: 0 when it holds, 1 when it does not, 2 when it was called wrongly.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

DASH = "\u2014"
ORIGIN = re.compile(r"grandbo\.[a-z0-9.-]+/erasure/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
FIELDS = {
    "v", "tenant_id", "remains", "certificate_id", "erasure_id", "reason", "requested_at", "erased_at", "position",
    "hash", "positions", "bodies_removed", "rows_removed", "checkpoint", "checks",
}  # fmt: skip
OF_ENTRY = FIELDS | {"entry_id", "keeps_current"}
OF_REVISIONS = OF_ENTRY | {"revisions", "tombstones", "still_in"}
OF_SUBJECT = FIELDS | {"subject_id", "kind", "before", "key"}


def wrong(what: str) -> NoReturn:
    """Say what does not hold, and end."""
    print(f"does not hold: {what}")
    sys.exit(1)


def opened(note: str, public: bytes) -> tuple[str, dict[str, Any]]:
    """The origin and the document that the key signed."""
    body, blank, _signatures = note.rpartition("\n\n")
    lines = f"{body}\n".split("\n")
    if not blank or len(lines) != 3 or lines[2] or not ORIGIN.fullmatch(lines[0]):
        wrong("this is no certificate of erasure")
    check_signature(note, lines[0], public)
    document = json.loads(lines[1])
    if json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False) != lines[1]:
        wrong("the document is not in its one form")
    return lines[0], document


def check_signature(note: str, name: str, public: bytes) -> str:
    """The signed text of a note; ends the run where this key did not sign it under this name."""
    body, _, signatures = note.rpartition("\n\n")
    text = f"{body}\n"
    wanted = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    for line in signatures.rstrip("\n").split("\n"):
        dash, _, rest = line.partition(" ")
        who, _, encoded = rest.partition(" ")
        if dash != DASH or who != name:
            wrong("a signature line is not of this certificate")
        raw = base64.b64decode(encoded)
        if raw[:4] != wanted:
            wrong("it was signed with another key")
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(raw[4:], text.encode())
        except InvalidSignature:
            wrong("the signature does not fit the text")
    return text


def check_document(origin: str, document: dict[str, Any], public: bytes) -> None:
    """What the document says must fit together."""
    match = ORIGIN.fullmatch(origin)
    if set(document) not in (OF_ENTRY, OF_REVISIONS, OF_SUBJECT) or document["v"] != 1:
        wrong("a field is missing, or there is one that is not known")
    if match is None or match.group(1) != document["tenant_id"]:
        wrong("origin and tenant are not the same")
    named = sum(last - first + 1 for first, last in document["positions"])
    if any(last >= document["position"] or first > last for first, last in document["positions"]):
        wrong("a position that was erased does not lie before the erasure")
    if named != document["bodies_removed"]:
        wrong("more or fewer bodies were removed than positions are named")
    if "subject_id" in document:
        if not document["key"]["destroyed"] or document["rows_removed"]["keys"] != 1:
            wrong("the key of the subject was not destroyed")
        if document["before"]["position"] != document["position"] - 1:
            wrong("the erasure does not follow the position that it names as the one before")
    if "revisions" in document:
        if not document["revisions"] or document["keeps_current"]:
            wrong("it names no revision, or the whole past besides")
        if any(item["revision"] in document["tombstones"] for item in document["still_in"]):
            wrong("a revision is said to be gone, and to hold the same words still")
    if not document["checks"]["verify_ok"]:
        wrong("the log did not verify when it was signed")
    note = document["checkpoint"]["note"]
    size = int(note.split("\n")[1])
    if size != document["checkpoint"]["size"] or size < document["position"]:
        wrong("the checkpoint does not cover the erasure")
    check_signature(note, note.split("\n")[0], public)


def check_bundle(folder: Path, document: dict[str, Any]) -> None:
    """The event stands where it should, and nothing of what was erased can be read."""
    erased = {p for first, last in document["positions"] for p in range(first, last + 1)}
    found = False
    erasure = "subject_erased" if "subject_id" in document else "entry_erased"
    before = document.get("before")
    for line in (folder / "events.jsonl").open(encoding="utf-8"):
        event = json.loads(line)
        envelope = json.loads(event["envelope"])
        position = envelope["position"]
        if envelope["tenant_id"] != document["tenant_id"]:
            wrong("the bundle is of another tenant")
        if position in erased and event["body"] is not None:
            wrong(f"the body at position {position} can still be read")
        if before and position == before["position"] and event["hash"] != before["hash"]:
            wrong("the event before the erasure is another one")
        if before and envelope["subject_id"] == document["subject_id"] and event["body"] is not None:
            wrong(f"a body about the subject, at position {position}, can still be read")
        if position == document["position"]:
            found = event["hash"] == document["hash"] and envelope["event_type"] == erasure
    if not found:
        wrong("the erasure is not at its position with its hash")


def public_key(given: str) -> bytes:
    """32 bytes from base64, or from a file that holds it."""
    path = Path(given)
    text = path.read_text(encoding="ascii").strip() if path.is_file() else given
    key = base64.b64decode(text, validate=True)
    if len(key) != 32:
        raise ValueError("an Ed25519 public key has 32 bytes")
    return key


def main() -> None:
    """Read the arguments, check, say what was erased."""
    parser = argparse.ArgumentParser(description="Check a certificate of erasure, offline.")
    parser.add_argument("certificate", type=Path)
    parser.add_argument("--public-key", required=True, help="base64, or a file that holds it")
    parser.add_argument("--bundle", type=Path, help="an export made after the erasure")
    arguments = parser.parse_args()
    try:
        public = public_key(arguments.public_key)
        note = arguments.certificate.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        parser.error(str(error))
    try:
        origin, document = opened(note, public)
        check_document(origin, document, public)
        if arguments.bundle:
            check_bundle(arguments.bundle, document)
    except (ValueError, KeyError, TypeError, IndexError, OSError) as error:
        wrong(f"it cannot be read ({type(error).__name__})")
    is_subject = "subject_id" in document
    what = f"{document['kind']} {document['subject_id']}" if is_subject else f"entry {document['entry_id']}"
    if "revisions" in document:
        what = f"revision {', '.join(map(str, document['revisions']))} of {what}"
    print(
        f"holds: {what} of tenant {document['tenant_id']} was erased at "
        f"{document['erased_at']} by the event at position {document['position']}; "
        f"{document['bodies_removed']} bodies, rows "
        + ", ".join(f"{name} {count}" for name, count in document["rows_removed"].items())
    )
    for item in document.get("still_in", []):
        print(f"revision {item['revision']} holds some of the same words still: {', '.join(item['fields'])}")


if __name__ == "__main__":
    main()
