"""`Idempotency-Key`: from the header of a request to the id of its command."""

# Annotations are evaluated: FastAPI reads them.

import re
import uuid
from typing import Annotated, Any

from fastapi import Header, Request

from grandbo.http.errors import IdempotencyKeyInvalid
from grandbo.library import TenantMemory
from grandbo.types import derived_id

_PRINTABLE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,198}[\x21-\x7e])?")

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="A UUID, or 1 to 200 printable ASCII characters; needed where the finding names no incident.",
    ),
]
REPLAYED: dict[str, Any] = {
    "headers": {
        "Idempotency-Replayed": {
            "description": "`true` where this command had been carried out before.",
            "schema": {"type": "string", "const": "true"},
        }
    }
}


def command_id_of(memory: TenantMemory, request: Request, given: str | None) -> uuid.UUID | None:
    """The command id that a request's key stands for; None where it has none. Raises `IdempotencyKeyInvalid`."""
    if given is None:
        return None
    # A structured field puts its string in quotes; with or without them it is the same key.
    key = given[1:-1] if len(given) > 2 and given[0] == given[-1] == '"' else given
    if len(request.headers.getlist("idempotency-key")) > 1 or not _PRINTABLE.fullmatch(key):
        raise IdempotencyKeyInvalid(field="Idempotency-Key")
    try:
        parsed = uuid.UUID(key)
    except ValueError:
        parsed = None
    # Version 5 is what Grandbo derives for its own commands; a caller's must not be able to take the place of one.
    if parsed is not None and str(parsed) == key.lower() and parsed.version != 5:
        return parsed
    return derived_id("idempotency_key", str(memory.tenant_id), key)
