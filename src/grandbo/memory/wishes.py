"""From a caller's arguments to a `Wish`: checked, with the content that tells a retry from another use of its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from grandbo.applicability import parse_applicability
from grandbo.errors import InvalidInput, KindNotRecorded, NotFound
from grandbo.events import models
from grandbo.events.models import Policy
from grandbo.events.parts import EventBody
from grandbo.finding_limits import NAME_LIMIT
from grandbo.memory import lifecycle
from grandbo.memory.finding import Finding, parse_finding
from grandbo.memory.govern import (
    AT_REVISION,
    BEFORE_QUARANTINE,
    CURRENT,
    OPEN_LINK,
    Decide,
    Wish,
    visible_state,
)
from grandbo.memory.lifecycle import Classification, EntryState
from grandbo.memory.policy import check_visibility, visible_tiers
from grandbo.memory.screening import Screening
from grandbo.storage.database import Row, Step
from grandbo.text import check_text
from grandbo.types import KINDS, LINK_TYPES, ORGANISATION_KINDS, LinkType, Principal, parse_moment

CORRECTABLE = ("title", "summary", "body", "service", "tags", "confidence_bp", "evidence", "occurred_at", "ended_at")
CLASSIFIED = ("kind", "visibility", "namespace", "owner", "applicability")
LONGEST_REVIEW_DAYS = 3_650
LARGEST_REVISION = 2_147_483_647

_PLACEHOLDER = {"title": "-", "evidence": [{"type": "-", "uri": "about:blank", "label": ""}]}


def correct(entry_id: UUID, changes: Mapping[str, Any], reason: str, **options: Any) -> Wish:
    """Replace the named fields; null means that a field is left as it is."""
    given = {name: value for name, value in changes.items() if value is not None}
    unknown = sorted(set(given) - set(CORRECTABLE))
    if unknown or not given:
        raise InvalidInput(f"{unknown[0] if unknown else 'changes'}: name some of {', '.join(CORRECTABLE)}.")
    values = correction_values(given)
    said = {name: given[name] for name in sorted(given)}

    def prepare(screening: Screening) -> Decide:
        passed = screening.values(values)
        return lambda state, _f, _n: lifecycle.decide_correct(state, passed, reason, screening.screened)

    return Wish("correct", entry_id, reason, prepare, said, **options)


def restore(
    tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID, revision: int, reason: str, **options: Any
) -> Wish:
    """Bring the text of an earlier revision back, as a new revision; never a status."""
    if isinstance(revision, bool) or not isinstance(revision, int) or not 1 <= revision <= LARGEST_REVISION:
        raise InvalidInput(f"revision: it must be a whole number from 1 to {LARGEST_REVISION}.", field="revision")
    key = {"tenant_id": tenant_id, "entry_id": entry_id, "revision": revision}
    tiers = visible_tiers(policy, principal)

    def prepare(screening: Screening) -> Decide:
        return lambda state, found, _now: earlier_text(screening, state, found)

    def earlier_text(screening: Screening, state: EntryState, found: list[list[Row]]) -> models.EntryChanged:
        # A revision from when the entry stood in a higher tier is as absent as one that never was: its text must not
        # come down by way of a restore.
        if not found[0] or found[0][0]["visibility"] not in tiers:
            raise NotFound(f"The entry has no revision {revision}.")
        screening.check_restorable(found[0][0])
        return lifecycle.decide_restore(state, EntryState.of_row(found[0][0]), reason)

    return Wish("restore", entry_id, reason, prepare, {"revision": revision}, [(AT_REVISION, key)], **options)


def archive(entry_id: UUID, reason: str, **options: Any) -> Wish:
    """Put it away."""
    return _wish("archive", entry_id, reason, lambda s, _f, _n: lifecycle.decide_archive(s, reason), {}, options)


def unarchive(entry_id: UUID, reason: str, **options: Any) -> Wish:
    """Bring it back."""
    return _wish("unarchive", entry_id, reason, lambda s, _f, _n: lifecycle.decide_unarchive(s, reason), {}, options)


def dispute(
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    entry_id: UUID,
    other: UUID | None,
    reason: str,
    **options: Any,
) -> Wish:
    """Mark it disputed, against another entry where there is one."""
    reads = [] if other is None else [_other(tenant_id, other)]
    tiers = visible_tiers(policy, principal)

    def decide(state: EntryState, found: list[list[Row]], _now: datetime) -> models.EntryChanged:
        against = visible_state(found[0], tiers) if other is not None else None
        return lifecycle.decide_dispute(state, against, reason)

    return _wish("dispute", entry_id, reason, decide, {"other": str(other) if other else None}, options, reads)


def resolve(entry_id: UUID, reason: str, **options: Any) -> Wish:
    """Settle the dispute: the entry stands."""
    return _wish("resolve", entry_id, reason, lambda s, _f, _n: lifecycle.decide_resolve(s, reason), {}, options)


def supersede(
    tenant_id: UUID, principal: Principal, policy: Policy, entry_id: UUID, by: UUID, reason: str, **options: Any
) -> Wish:
    """Let another entry take its place."""
    tiers = visible_tiers(policy, principal)

    def decide(state: EntryState, found: list[list[Row]], _now: datetime) -> models.EntryChanged:
        return lifecycle.decide_supersede(state, visible_state(found[0], tiers), reason)

    return _wish("supersede", entry_id, reason, decide, {"by": str(by)}, options, [_other(tenant_id, by)])


def verify(entry_id: UUID, days: int | None, reason: str, policy: Policy, **options: Any) -> Wish:
    """Someone checked it; the next review is due after `days`, or after what the tenant's policy says."""
    if days is not None and (
        isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= LONGEST_REVIEW_DAYS
    ):
        raise InvalidInput(f"days: it must be a whole number from 1 to {LONGEST_REVIEW_DAYS}.", field="days")

    def decide(state: EntryState, _found: list[list[Row]], now: datetime) -> models.EntryChanged:
        return lifecycle.decide_verify(state, days or policy.review_days.get(state.kind, 90), reason, now)

    return _wish("verify", entry_id, reason, decide, {"days": days}, options)


def expire(entry_id: UUID, at: str, reason: str, **options: Any) -> Wish:
    """Set until when it is valid."""
    if not isinstance(at, str):
        raise InvalidInput("at: give a time with a zone, or a date.", field="at")
    moment = parse_moment(at, "at").at
    return _wish(
        "expire", entry_id, reason, lambda s, _f, _n: lifecycle.decide_expire(s, moment, reason), {"at": at}, options
    )


def reclassify(
    principal: Principal, policy: Policy, entry_id: UUID, changes: Mapping[str, Any], reason: str, **options: Any
) -> Wish:
    """Another kind, tier, namespace, owner or applicability; the writer must see both the old tier and the new one."""
    given = {name: value for name, value in changes.items() if value is not None}
    wanted = _classification(principal, policy, given)
    said = {name: given[name] for name in sorted(given)}
    # Both were always said; a retry from before the others came must be the same command.
    said = {"kind": None, "visibility": None, **said}

    def prepare(screening: Screening) -> Decide:
        passed = replace(wanted, **screening.changed_values({"namespace": wanted.namespace, "owner": wanted.owner}))
        return lambda state, _f, _n: lifecycle.decide_reclassify(state, passed, reason)

    return Wish("reclassify", entry_id, reason, prepare, said, **options)


def _classification(principal: Principal, policy: Policy, given: Mapping[str, Any]) -> Classification:
    if not given:
        raise InvalidInput(f"kind: name at least one of {', '.join(CLASSIFIED)}.", field="kind")
    kind = next((known for known in KINDS if known == given.get("kind")), None)
    if kind is None and "kind" in given:
        raise InvalidInput(f"kind: it must be one of {', '.join(KINDS)}.", field="kind")
    if kind is not None and kind not in ORGANISATION_KINDS:
        raise KindNotRecorded(field="kind")
    for name in ("namespace", "owner"):
        if name in given:
            if not isinstance(given[name], str):
                raise InvalidInput(f"{name}: it must be text.", field=name)
            check_text(given[name], name, limit=NAME_LIMIT, single_line=True)
    return Classification(
        kind=kind,
        visibility=check_visibility(policy, principal, given["visibility"]) if "visibility" in given else None,
        namespace=given.get("namespace"),
        owner=given.get("owner"),
        applicability=parse_applicability(given["applicability"]) if "applicability" in given else None,
    )


def quarantine(entry_id: UUID, reason: str, **options: Any) -> Wish:
    """Take it out of every answer until someone has looked at it."""
    return _wish("quarantine", entry_id, reason, lambda s, _f, _n: lifecycle.decide_quarantine(s, reason), {}, options)


def release(tenant_id: UUID, entry_id: UUID, reason: str, **options: Any) -> Wish:
    """Let it out of quarantine, with the status that it had before."""

    def decide(state: EntryState, found: list[list[Row]], _now: datetime) -> models.EntryChanged:
        # What the screen put away when it was recorded was never anything else.
        return lifecycle.decide_release(state, found[0][0]["status"] if found[0] else "published", reason)

    reads = [(BEFORE_QUARANTINE, {"tenant_id": tenant_id, "entry_id": entry_id})]
    return _wish("release", entry_id, reason, decide, {}, options, reads)


def corroborate(
    entry_id: UUID, incident: Mapping[str, Any], evidence: Sequence[Mapping[str, Any]], **options: Any
) -> Wish:
    """
    Another incident supports it, with evidence of its own; the evidence is the reason.

    Raises:
        EvidenceMissing: all of it is memory itself, which cannot bear itself out.
    """
    # The rules of a finding for both.
    checked = parse_finding({"title": "-", "incident": incident, "evidence": evidence})
    if checked.incident is None:
        raise InvalidInput("incident: name the incident that supports it, its source and its id.", field="incident")
    given = {"incident": checked.incident.model_dump(), "evidence": [item.model_dump() for item in checked.evidence]}

    def prepare(screening: Screening) -> Decide:
        passed = screening.values(given)
        ref = models.IncidentRef(**passed["incident"])
        items = tuple(models.Evidence(**item) for item in passed["evidence"])
        return lambda state, _f, _n: lifecycle.decide_corroborate(state, ref, items)

    return Wish("corroborate", entry_id, None, prepare, given, takes_reason=False, **options)


def link(
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    entry_id: UUID,
    link_type: str,
    to: UUID,
    reason: str,
    **options: Any,
) -> Wish:
    """Link it to another entry that the writer sees."""
    of_type = _link_type(link_type)
    tiers = visible_tiers(policy, principal)

    def decide(state: EntryState, found: list[list[Row]], _now: datetime) -> EventBody | None:
        other = visible_state(found[0], tiers)
        return lifecycle.decide_link(state, other, of_type, bool(found[1]), reason)

    reads = [_other(tenant_id, to), _link(tenant_id, entry_id, of_type, to)]
    return _wish("link", entry_id, reason, decide, {"type": of_type, "to": str(to)}, options, reads)


def unlink(tenant_id: UUID, entry_id: UUID, link_type: str, to: UUID, reason: str, **options: Any) -> Wish:
    """Take a link away."""
    of_type = _link_type(link_type)

    def decide(state: EntryState, found: list[list[Row]], _now: datetime) -> EventBody | None:
        return lifecycle.decide_unlink(state, to, of_type, bool(found[0]), reason)

    said = {"type": of_type, "to": str(to)}
    return _wish("unlink", entry_id, reason, decide, said, options, [_link(tenant_id, entry_id, of_type, to)])


def _link_type(text: str) -> LinkType:
    known = next((link_type for link_type in LINK_TYPES if link_type == text), None)
    if known is None:
        raise InvalidInput(f"type: it must be one of {', '.join(LINK_TYPES)}.", field="type")
    return known


def _link(tenant_id: UUID, entry_id: UUID, link_type: LinkType, to: UUID) -> Step:
    return OPEN_LINK, {"tenant_id": tenant_id, "entry_id": entry_id, "link_type": link_type, "to_entry": to}


def _wish(
    verb: str,
    entry_id: UUID,
    reason: str,
    decide: Decide,
    said: dict[str, Any],
    options: dict[str, Any],
    reads: Sequence[Step] = (),
) -> Wish:
    return Wish(verb, entry_id, reason, lambda _screening: decide, said, reads, **options)


def _other(tenant_id: UUID, entry_id: UUID) -> Step:
    return CURRENT, {"tenant_id": tenant_id, "entry_id": entry_id}


def correction_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a correction, checked, as the state has them."""
    # The rules of a finding, field by field; what is not named is filled in only to let them run.
    return _changed_values(parse_finding({**_PLACEHOLDER, **given}), given)


def _changed_values(finding: Finding, given: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in given:
        value = getattr(finding, name)
        if name == "evidence":
            values[name] = tuple(item.model_dump() for item in value)
        elif name == "occurred_at":
            values |= {"occurred_at": value.at, "occurred_precision": value.precision}
        elif name == "ended_at":
            values[name] = value.at
        else:
            values[name] = value
    return values
