"""
The bundle: a tenant's log, its checkpoints and the key that checks them, as files that prove themselves without us.

`scripts/verify_bundle.py` is the other side. A bundle is there whole or not at all.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.events.log import READ_HEAD, head_of, read_rows
from grandbo.events.notes import origin_of
from grandbo.events.verify import stored_notes
from grandbo.storage.database import Database, Row, Transaction
from grandbo.types import utc_text

FORMAT = "grandbo-bundle/1"
EVENTS, CHECKPOINTS, PUBLIC_KEY, MANIFEST = "events.jsonl", "checkpoints", "public.key", "manifest.json"

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was exported, and where to."""

    directory: Path
    manifest: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"directory": str(self.directory), **self.manifest}


def export_bundle(
    database: Database, tenant_id: UUID, directory: Path, public_key: bytes, *, progress: Progress | None = None
) -> Bundle:
    """
    Write the bundle of one moment into `directory`, which must be empty or not there.

    Raises:
        InvalidInput: there is something in it, or it cannot be written.
    """
    try:
        target = directory.resolve()
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise InvalidInput("DIR: it is not an empty folder; name one that is not there yet.", field="directory")
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        try:
            with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
                manifest = _write(transaction, tenant_id, draft, public_key, progress)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise InvalidInput(f"DIR: it cannot be written: {error.strerror}.", field="directory") from error
    return Bundle(target, manifest)


def export_line(row: Row) -> str:
    """One event of the export."""
    body, salt = row["body"], row["salt"]
    document = {
        "envelope": row["envelope"],
        "body": None if body is None else base64.b64encode(body).decode(),
        "salt": None if salt is None else salt.hex(),
        "prev_hash": row["prev_hash"].hex(),
        "hash": row["hash"].hex(),
    }
    return json.dumps(document, separators=(",", ":")) + "\n"


def _write(
    transaction: Transaction, tenant_id: UUID, folder: Path, public_key: bytes, progress: Progress | None
) -> dict[str, Any]:
    head = head_of(transaction.execute(READ_HEAD, {"tenant_id": tenant_id}))
    # Of one size the fuller one, which comes last.
    notes = {row["size"]: row["note"] for row in stored_notes(transaction, tenant_id)}
    (folder / CHECKPOINTS).mkdir()
    for size, note in notes.items():
        _save(folder / CHECKPOINTS / f"{size}.note", note)
    _save(folder / PUBLIC_KEY, base64.b64encode(public_key).decode() + "\n")
    count = 0
    with (folder / EVENTS).open("w", encoding="utf-8", newline="\n") as file:
        for row in read_rows(transaction, tenant_id):
            file.write(export_line(row))
            count += 1
            if progress and count % 1_000 == 0:
                progress(count)
        _sync(file.fileno(), file.flush)
    manifest = {
        "format": FORMAT,
        "tenant_id": str(tenant_id),
        "origin": origin_of(tenant_id),
        "events": count,
        "head": head.hash.hex(),
        "checkpoints": len(notes),
        "recorded_at": utc_text(head.recorded_at),
    }
    _save(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
    return manifest


def _save(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        _sync(file.fileno(), file.flush)


def _sync(descriptor: int, flush: Callable[[], None]) -> None:
    flush()
    os.fsync(descriptor)
