"""
The erasure list: every erasure, kept outside the database, so that a restored backup cannot bring anything back.

One signed note a line. It holds ids, positions and hashes alone. A line is written after the erasure was
committed; where a crash came in between it is written at the next occasion, from what the database says.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grandbo.errors import ConfigurationError
from grandbo.events.notes import NoteRefused, open_note, sign

LIST_FILE = "erasures.jsonl"
ORIGIN = "grandbo.local/erasure-list"


@dataclass(frozen=True, slots=True)
class Listed:
    """One erasure of the list."""

    tenant_id: UUID
    erasure_id: UUID
    position: int
    hash: str
    streams: tuple[UUID, ...]
    # Of an erasure that is a subject's.
    subject_id: UUID | None = None
    # Of one of single revisions: the entry, those that lost their text, and the events that lost their bodies.
    entry_id: UUID | None = None
    revisions: tuple[int, ...] = ()
    events: tuple[UUID, ...] = ()

    def text(self) -> str:
        """What is signed."""
        document: dict[str, Any] = {
            "tenant_id": str(self.tenant_id),
            "erasure_id": str(self.erasure_id),
            "position": self.position,
            "hash": self.hash,
            "streams": [str(stream) for stream in self.streams],
        }
        if self.subject_id is not None:
            document["subject_id"] = str(self.subject_id)
        if self.entry_id is not None:
            document["entry_id"] = str(self.entry_id)
            document["revisions"] = list(self.revisions)
            document["events"] = [str(event) for event in self.events]
        return f"{ORIGIN}\n{rfc8785.dumps(document).decode()}\n"


def append_listed(home: Path, listed: Listed, key: Ed25519PrivateKey) -> bool:
    """Add an erasure that is not on the list yet; durable when this returns. Gives whether it was added."""
    path = home / LIST_FILE
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        path.chmod(0o600)
        # Two processes that finish the same erasure must not list it twice.
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if any(known.erasure_id == listed.erasure_id for known in _read(file, public=None)):
            return False
        file.write(json.dumps({"note": sign(listed.text(), ORIGIN, key)}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return True


def read_list(home: Path, public: bytes | None) -> list[Listed]:
    """
    The list, oldest first; empty where there is none.

    Raises:
        ConfigurationError: a line is not what was signed.
    """
    path = home / LIST_FILE
    if not path.exists():
        return []
    with path.open(encoding="ascii") as file:
        return list(_read(file, public))


def _read(lines: Iterator[str], public: bytes | None) -> Iterator[Listed]:
    for number, line in enumerate(lines, start=1):
        try:
            note = json.loads(line)["note"]
            text = open_note(note, ORIGIN, public) if public else note.rpartition("\n\n")[0] + "\n"
            document = json.loads(text.split("\n")[1])
            yield Listed(
                tenant_id=UUID(document["tenant_id"]),
                erasure_id=UUID(document["erasure_id"]),
                position=document["position"],
                hash=document["hash"],
                streams=tuple(map(UUID, document["streams"])),
                subject_id=UUID(document["subject_id"]) if "subject_id" in document else None,
                entry_id=UUID(document["entry_id"]) if "entry_id" in document else None,
                revisions=tuple(document.get("revisions", ())),
                events=tuple(map(UUID, document.get("events", ()))),
            )
        except (NoteRefused, ValueError, KeyError, IndexError, TypeError) as error:
            raise ConfigurationError(
                f"{LIST_FILE} in GRANDBO_HOME: line {number} is not what was signed; bring the list back from its copy."
            ) from error
