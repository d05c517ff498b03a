"""From the stored bytes of any version ever written to today's models."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from grandbo.errors import EventUnreadable
from grandbo.events import candidates, erasures, feedback, models, subjects
from grandbo.events.parts import EventBody

Document = dict[str, Any]
Upcaster = Callable[[Document], Document]

EVENT_TYPES: dict[str, type[EventBody]] = {
    model.EVENT_TYPE: model
    for model in (
        models.TenantCreated,
        models.PolicyChanged,
        models.EntryRecorded,
        models.EntryCorroborated,
        models.EntryCorrected,
        models.EntryRevisionRestored,
        models.EntryArchived,
        models.EntryUnarchived,
        models.EntryDisputed,
        models.EntryDisputeResolved,
        models.EntrySuperseded,
        models.EntryVerified,
        models.EntryExpirySet,
        models.EntryExpired,
        models.EntryReclassified,
        models.EntryQuarantined,
        models.EntryReleased,
        models.EntryLinked,
        models.EntryUnlinked,
        models.EntryEmbedded,
        candidates.CandidateProposed,
        candidates.CandidateAmended,
        candidates.CandidateApproved,
        candidates.CandidateRejected,
        candidates.CandidateWithdrawn,
        candidates.CandidateReopened,
        feedback.FeedbackGiven,
        erasures.EntryErased,
        erasures.EntryKept,
        erasures.EntryRedacted,
        subjects.SubjectRegistered,
        subjects.SubjectHeld,
        subjects.SubjectHoldLifted,
        subjects.SubjectErased,
    )
}


def _unclassified(document: Document) -> Document:
    """Before there were namespaces, owners and applicability, no entry had any."""
    return {**document, "namespace": "", "owner": None, "applicability": []}


def _unscreened(document: Document) -> Document:
    """Before there was a screen, nothing was looked at."""
    return {**document, "screened": None}


def _recorded_of_before(document: Document) -> Document:
    """An entry was published, whatever it said."""
    return {**_unscreened(_unclassified(document)), "status": "published"}


def _policy_of_before(document: Document) -> Document:
    """
    Before a policy could say more, recall took the space of its process and gave no floor, and one approved.

    What expired was due for review when it did.
    """
    later = {
        "review_days": document["policy"]["expiry_days"],
        "stamps": [],
        "floor": 0,
        "second_approval_kinds": [],
        "second_approval_tiers": [],
        "pending_candidates": 200,
        "screening": {
            "secrets": "redact",
            "instructions": "quarantine",
            "smuggled": "quarantine",
            "hidden": "redact",
            "entropy": "quarantine",
            "personal": "flag",
            "hosts": "flag",
            "mixed_script": "flag",
            "size": "flag",
        },
    }
    return {**document, "policy": {**document["policy"], **later}}


def _without_people(document: Document) -> Document:
    """Before there were subjects, nothing about people was decided: what a new tenant begins with."""
    people = {
        "quota": 200,
        "per_answer": 5,
        "shared_with": [],
        "second_person": False,
        "workspace_unconfirmed": False,
        "episodes": False,
    }
    return {**document, "policy": {**document["policy"], "people": people}}


def _by_rank_alone(document: Document) -> Document:
    """Before there was an emphasis, ranks alone were fused: what was answered then is answered so again."""
    return {**document, "policy": {**document["policy"], "rrf_emphasis": 0}}


def _first_scan(document: Document) -> Document:
    """Before a policy said how a large scope is scanned, the program did: by the first set, beyond 10,000 entries."""
    return {**document, "policy": {**document["policy"], "exact_up_to": 10_000, "scan": 1}}


def _whole_streams(document: Document) -> Document:
    """Before single revisions could be erased, streams went whole."""
    return {**document, "positions": []}


def _still_superseded(document: Document) -> Document:
    """What had taken its place was left standing beside it: a replay gives what there was."""
    return {**document, "no_longer_superseded": False}


# One pure step from version n to n + 1, keyed by (event type, n). Stored rows are never rewritten.
UPCASTERS: dict[tuple[str, int], Upcaster] = {
    ("tenant_created", 1): _policy_of_before,
    ("tenant_created", 2): _without_people,
    ("tenant_created", 3): _by_rank_alone,
    ("tenant_created", 4): _first_scan,
    ("policy_changed", 1): _without_people,
    ("policy_changed", 2): _by_rank_alone,
    ("policy_changed", 3): _first_scan,
    ("entry_recorded", 1): _recorded_of_before,
    ("entry_corrected", 1): _unscreened,
    ("entry_reclassified", 1): _unclassified,
    ("entry_unarchived", 1): _still_superseded,
    ("entry_erased", 1): _whole_streams,
}


def check_upcasters() -> None:
    """Fail at import when a version that was ever written cannot reach today's model."""
    for event_type, model in EVENT_TYPES.items():
        missing = [v for v in range(1, model.SCHEMA_VERSION) if (event_type, v) not in UPCASTERS]
        if missing:
            raise RuntimeError(f"{event_type}: no upcaster from version {missing[0]}")
    unknown = [key for key in UPCASTERS if key[0] not in EVENT_TYPES or key[1] >= EVENT_TYPES[key[0]].SCHEMA_VERSION]
    if unknown:
        raise RuntimeError(f"upcaster {unknown[0]} leads nowhere")


def upcast(event_type: str, schema_version: int, document: Document) -> Document:
    """Bring a stored document to the current version of its type."""
    for version in range(schema_version, EVENT_TYPES[event_type].SCHEMA_VERSION):
        document = UPCASTERS[event_type, version](document)
    return document


def parse_body(event_type: str, schema_version: int, body: bytes, *, position: int) -> EventBody:
    """
    Read the stored bytes of an event.

    Raises:
        EventUnreadable: unknown type, a version of the future, or bytes that do not fit the model. Replay stops there;
            it never skips.
    """
    model = EVENT_TYPES.get(event_type)
    if model is None or schema_version > model.SCHEMA_VERSION:
        raise EventUnreadable(
            f"Position {position} holds {event_type} version {schema_version}, which this Grandbo does not know; "
            "upgrade it.",
            position=position,
            event_type=event_type,
        )
    try:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise ValueError("not an object")
        return model.model_validate(upcast(event_type, schema_version, document))
    except (ValidationError, ValueError, KeyError) as error:
        raise EventUnreadable(
            f"Position {position} holds a {event_type} that does not fit its model.",
            position=position,
            event_type=event_type,
        ) from error


check_upcasters()
