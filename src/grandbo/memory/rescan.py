"""
The present screen over what is stored: what an older version, or the time before there was one, let in.

It changes nothing. What has to go is proposed as a correction that a person merges or rejects; the same proposal is
made once, so that what a person rejected stays rejected until the screen or the text is another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import CommandReused, GrandboError, QuotaExceeded
from grandbo.events.models import Policy
from grandbo.memory.lifecycle import ALLOWED
from grandbo.memory.policy import DEFAULT_SCREENING, require, visible_tiers
from grandbo.memory.proposing import Candidates
from grandbo.memory.screening import Screening, screened_fields
from grandbo.screening import NOT_REDACTABLE, SCREEN_VERSION, SIGNALS, Outcome, screen, uri_problem
from grandbo.storage.database import Database, Row
from grandbo.storage.tables import candidates, entries
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now

# Who proposes what a rescan finds: nobody's credential, so that whoever ran it may decide.
SCREEN = Principal("system", derived_id("system", "screen"), "screen", frozenset({"admin"}))
FLAG = "screen"
PAGE = 200
# What a merge into the entry replaces.
_MERGED = frozenset({"title", "summary", "body", "tags", "evidence"})
_SAME = ("title", "summary", "body", "kind", "service", "tags", "evidence", "visibility", "namespace", "confidence_bp")

Progress = Callable[[int, int], None]

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
_after = sa.bindparam("after", type_=sa.Uuid)
_page = sa.bindparam("page", type_=sa.Integer)
_seen = sa.and_(of_tenant(entries), entries.c.visibility == sa.any_(_tiers))
_waiting = sa.and_(of_tenant(candidates), candidates.c.visibility == sa.any_(_tiers), candidates.c.status == "pending")
_COUNT = sa.select(
    sa.select(sa.func.count()).select_from(entries).where(_seen).scalar_subquery().label("entries"),
    sa.select(sa.func.count()).select_from(candidates).where(_waiting).scalar_subquery().label("candidates"),
)
_ENTRIES = sa.select(entries).where(_seen, entries.c.entry_id > _after).order_by(entries.c.entry_id).limit(_page)
_CANDIDATES = (
    sa.select(candidates.c.candidate_id, candidates.c.content)
    .where(_waiting, candidates.c.candidate_id > _after)
    .order_by(candidates.c.candidate_id)
    .limit(_page)
)


@dataclass(slots=True)
class Rescan:
    """
    What a rescan found.

    Attributes:
        entries, candidates: how many of each it looked at, within the tiers of who asked.
        found: in how many of them each signal was; `sources` are URIs that would be refused today.
        proposed: corrections proposed just now; `known`: proposed before, whatever became of them.
        candidates_found: candidates that wait and hold something that would have to go; amend or reject these.
        left: entries that nobody can merge a correction into as they stand, or whose proposal was refused.
        over_quota: entries that wait for room in the queue: decide on some, and run it again.
    """

    version: int = SCREEN_VERSION
    entries: int = 0
    candidates: int = 0
    found: Counter[str] = field(default_factory=Counter)
    proposed: list[UUID] = field(default_factory=list)
    known: int = 0
    candidates_found: list[UUID] = field(default_factory=list)
    left: list[UUID] = field(default_factory=list)
    over_quota: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "version": self.version,
            "entries": self.entries,
            "candidates": self.candidates,
            "found": dict(sorted(self.found.items())),
            "proposed": [str(one) for one in self.proposed],
            "known": self.known,
            "candidates_found": [str(one) for one in self.candidates_found],
            "left": [str(one) for one in self.left],
            "over_quota": self.over_quota,
        }


def rescan(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    *,
    progress: Progress | None = None,
    clock: Clock = utc_now,
) -> Rescan:
    """
    Look at every entry and every candidate that waits, within the tiers of who asks; propose what has to go.

    Args:
        progress: is told how many were looked at, of how many.

    Raises:
        Forbidden.
    """
    require(principal, "govern")
    scope = {"tenant_id": tenant_id, "tiers": list(visible_tiers(policy, principal)), "page": PAGE}
    run = _Run(database, tenant_id, policy, clock)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        (total,) = transaction.execute(_COUNT, scope)
    of_all = total["entries"] + total["candidates"]
    for rows in _pages(database, _ENTRIES, scope, "entry_id"):
        for row in rows:
            run.entry(row)
        if progress:
            progress(run.report.entries, max(of_all, run.report.entries))
    for rows in _pages(database, _CANDIDATES, scope, "candidate_id"):
        for row in rows:
            run.candidate(row)
        if progress:
            done = run.report.entries + run.report.candidates
            progress(done, max(of_all, done))
    return run.report


class _Run:
    """One rescan: what it looks with, and what it has found so far."""

    def __init__(self, database: Database, tenant_id: UUID, policy: Policy, clock: Clock) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._candidates = Candidates(database, tenant_id, SCREEN, policy, clock)
        self._policies = {is_held: _all_goes(policy, is_held=is_held) for is_held in (False, True)}
        self.report = Rescan()

    def entry(self, row: Row) -> None:
        """Look at an entry; propose what it would say without what has to go."""
        report = self.report
        report.entries += 1
        values = _values(row)
        bad_source = any(uri_problem(item["uri"]) for item in values["evidence"])
        found = screen(screened_fields(values)).findings
        report.found.update({hit.signal for hit in found})
        report.found.update({"sources"} if bad_source else ())
        screening = Screening(self._database, self._tenant_id, self._policies[row["status"] == "quarantined"])
        try:
            changed = screening.changed_values(values) if found else {}
            if changed or bad_source:
                self._propose(row, values, changed)
        except CommandReused:
            # Proposed before, when something else of the entry was another.
            report.known += 1
        except QuotaExceeded:
            report.over_quota += 1
        except GrandboError:
            report.left.append(row["entry_id"])

    def candidate(self, row: Row) -> None:
        """Look at a candidate; it waits for a person already, who is told."""
        self.report.candidates += 1
        values = row["content"]
        found = screen(screened_fields(values)).findings
        self.report.found.update({hit.signal for hit in found})
        gone = [hit for hit in found if self._policies[True].screening[hit.signal] == "redact"]
        if gone or any(uri_problem(item["uri"]) for item in values["evidence"]):
            self.report.candidates_found.append(row["candidate_id"])

    def _propose(self, row: Row, values: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        if row["status"] not in ALLOWED["correct"] or not _MERGED.intersection(changed):
            self.report.left.append(row["entry_id"])
            return
        entry_id: UUID = row["entry_id"]
        document = {**{name: row[name] for name in _SAME}, "incident": values["incident"], **changed}
        content = digest_of({name: changed[name] for name in sorted(changed)})
        decided = self._candidates.propose(
            document,
            into=entry_id,
            reason=f"The screen, version {SCREEN_VERSION}, would not let this in as it stands.",
            command_id=derived_id("rescan", str(entry_id), str(SCREEN_VERSION), content),
            flags=(FLAG,),
        )
        if decided.replayed:
            self.report.known += 1
        else:
            self.report.proposed.append(decided.candidate_id)


def _all_goes(policy: Policy, *, is_held: bool) -> Policy:
    """The policy with everything taken out that it would not let in; what is held already may say what holds it."""
    goes = ("refuse", "redact") if is_held else ("refuse", "redact", "quarantine")
    gone = {
        signal for signal in SIGNALS if policy.screening.get(signal, DEFAULT_SCREENING[signal]) in goes
    } - NOT_REDACTABLE
    screening: dict[str, Outcome] = {signal: "redact" if signal in gone else "flag" for signal in SIGNALS}
    return policy.model_copy(update={"screening": screening})


def _values(row: Row) -> dict[str, Any]:
    incident = {"source": row["incident_source"], "id": row["incident_id"]} if row["incident_source"] else None
    names = ("title", "summary", "body", "service", "tags", "evidence", "external_id", "namespace", "owner")
    return {name: row[name] for name in names} | {"incident": incident}


def _pages(database: Database, statement: sa.Select[Any], scope: dict[str, Any], key: str) -> Iterator[list[Row]]:
    after = UUID(int=0)
    while True:
        with database.transaction("auditor", scope["tenant_id"], read_only=True) as transaction:
            rows = transaction.execute(statement, {**scope, "after": after})
        if not rows:
            return
        yield rows
        after = rows[-1][key]
