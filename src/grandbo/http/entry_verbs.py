"""The verbs of an entry's life as HTTP has them: the body that each takes, and the verb of the library."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from grandbo.errors import InvalidInput
from grandbo.http.entry_schemas import (
    CorrectionDocument,
    CorroborationDocument,
    DisputeDocument,
    ExpiryDocument,
    NewLinkDocument,
    ReasonDocument,
    ReclassificationDocument,
    RestoreDocument,
    SupersedeDocument,
    VerificationDocument,
)
from grandbo.library import TenantMemory
from grandbo.memory.govern import Changed

_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

Act = Callable[[TenantMemory, UUID, dict[str, Any], dict[str, Any]], Changed]


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that may be done to an entry: the body that it takes, and the verb of the library."""

    name: str
    summary: str
    document: type[BaseModel]
    act: Act


VERBS = (
    Verb(
        "correct",
        "Replace what is named and keep all else",
        CorrectionDocument,
        lambda memory, entry_id, given, options: memory.correct(
            entry_id, _object(given.pop("changes"), "changes"), **given, **options
        ),
    ),
    Verb(
        "archive",
        "Put it away",
        ReasonDocument,
        lambda memory, entry_id, given, options: memory.archive(entry_id, **given, **options),
    ),
    Verb(
        "unarchive",
        "Bring it back",
        ReasonDocument,
        lambda memory, entry_id, given, options: memory.unarchive(entry_id, **given, **options),
    ),
    Verb(
        "restore",
        "Bring the text of an earlier revision back; the status stays",
        RestoreDocument,
        lambda memory, entry_id, given, options: memory.restore(entry_id, given.pop("revision"), **given, **options),
    ),
    Verb(
        "dispute",
        "Mark it disputed",
        DisputeDocument,
        lambda memory, entry_id, given, options: memory.dispute(
            entry_id, other=_reference(given.pop("other", None), "other"), **given, **options
        ),
    ),
    Verb(
        "resolve",
        "Settle the dispute: the entry stands",
        ReasonDocument,
        lambda memory, entry_id, given, options: memory.resolve(entry_id, **given, **options),
    ),
    Verb(
        "supersede",
        "Let another entry take its place",
        SupersedeDocument,
        lambda memory, entry_id, given, options: memory.supersede(
            entry_id, _required_reference(given.pop("by"), "by"), **given, **options
        ),
    ),
    Verb(
        "corroborate",
        "Another incident supports it",
        CorroborationDocument,
        lambda memory, entry_id, given, options: memory.corroborate(entry_id, **given, **options),
    ),
    Verb(
        "link",
        "Link it to another entry",
        NewLinkDocument,
        lambda memory, entry_id, given, options: memory.link(
            entry_id, given.pop("type"), _required_reference(given.pop("to"), "to"), **given, **options
        ),
    ),
    Verb(
        "unlink",
        "Take a link away",
        NewLinkDocument,
        lambda memory, entry_id, given, options: memory.unlink(
            entry_id, given.pop("type"), _required_reference(given.pop("to"), "to"), **given, **options
        ),
    ),
    Verb(
        "verify",
        "Say that it was checked; sets the next review",
        VerificationDocument,
        lambda memory, entry_id, given, options: memory.verify_entry(entry_id, **given, **options),
    ),
    Verb(
        "expire",
        "Set until when it is valid",
        ExpiryDocument,
        lambda memory, entry_id, given, options: memory.expire(entry_id, given.pop("at"), **given, **options),
    ),
    Verb(
        "reclassify",
        "Make it count as something else: kind, tier, namespace, owner, applicability",
        ReclassificationDocument,
        lambda memory, entry_id, given, options: memory.reclassify(entry_id, **given, **options),
    ),
    Verb(
        "quarantine",
        "Take it out of every answer until someone has looked at it",
        ReasonDocument,
        lambda memory, entry_id, given, options: memory.quarantine(entry_id, **given, **options),
    ),
    Verb(
        "release",
        "Let it out of quarantine, with the status of before",
        ReasonDocument,
        lambda memory, entry_id, given, options: memory.release(entry_id, **given, **options),
    ),
)


def fields_of(verb: Verb, document: object) -> dict[str, Any]:
    """The named fields of a body; what they may hold is for the verb to say."""
    return fields_in(verb.document, f"To {verb.name}", document)


def fields_in(model: type[BaseModel], what: str, document: object) -> dict[str, Any]:
    """The fields of a body that a model names; `what` begins the sentence about a body that has none."""
    known = model.model_fields
    if not isinstance(document, dict):
        required = ", ".join(name for name, field in known.items() if field.is_required())
        raise InvalidInput(f"{what} takes an object with at least {required}.")
    for name in document:
        if name not in known:
            raise InvalidInput(f"{name[:100]}: there is no such field; known are {', '.join(known)}.", field=name)
    given = {name: value for name, value in document.items() if value is not None}
    for name, field in known.items():
        if field.is_required() and name not in given:
            raise InvalidInput(f"{name}: it is required.", field=name)
    return given


def _object(value: object, field: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{field}: it must be an object of the fields to replace.", field=field)
    return value


def _reference(value: object, field: str) -> UUID | None:
    return None if value is None else _required_reference(value, field)


def _required_reference(value: object, field: str) -> UUID:
    found = parse_id(value)
    if found is None:
        raise InvalidInput(f"{field}: it must be the id of an entry, a UUID.", field=field)
    return found


def parse_id(value: object) -> UUID | None:
    """An id in its one usual spelling; None for anything else."""
    return UUID(value) if isinstance(value, str) and _ID.fullmatch(value) else None
