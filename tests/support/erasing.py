"""Something that has to go, and where it could have stayed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

from grandbo.library import TenantMemory
from grandbo.storage.embedded.install import find_install
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase

SCRIPTS = Path(__file__).parents[2] / "scripts"
# A word that nothing else in the database holds, in any form that a dump could show it in.
SECRET = "Quixelbrand"
TOPIC = f"why did the {SECRET} queue stall after the lease renewal"


def secret_finding(**fields: Any) -> dict[str, Any]:
    """A finding that holds the secret in its title, summary, body, tags and evidence."""
    told = {
        "title": f"{SECRET} forgot the lease renewal",
        "summary": f"{SECRET} was on call.",
        "body": f"Ask {SECRET} first.",
        "tags": [SECRET],
        "evidence": [{"type": "log", "uri": f"https://logs.example.com/{SECRET}", "label": SECRET}],
    }
    return make_finding(**{**told, **fields})


def record_secret(memory: TenantMemory, **fields: Any) -> UUID:
    """An entry that holds the secret, with its vectors."""
    entry_id: UUID = memory.record_finding(secret_finding(**fields)).acknowledgement.entry_id
    memory.embed()
    return entry_id


def dump(database: TestDatabase, *options: str) -> bytes:
    """What pg_dump makes of the whole database."""
    command = [str(find_install() / "bin" / "pg_dump"), *options, database.admin]
    return subprocess.run(command, check=True, capture_output=True).stdout


def holds(data: bytes, word: str = SECRET) -> bool:
    """As text, and as the hex in which a dump shows bytes; in any case of its letters, as the words index has it."""
    return any(form in data.lower() for form in (word.lower().encode(), word.encode().hex().encode()))
