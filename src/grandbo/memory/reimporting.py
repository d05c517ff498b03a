"""
Runbooks that are imported again. A runbook is maintained: a line that says something else under an id that is known
corrects the entry that was made of it, and never makes a second one.

What a line leaves out, or leaves empty, stays as it is. A line that names no source goes by the id alone, and so does
an entry that was made of such a line: an earlier edition of a file may not say yet where it came from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.events.models import Policy
from grandbo.memory import wishes
from grandbo.memory.govern import carry_out
from grandbo.memory.policy import may, visible_tiers
from grandbo.memory.sourced import Known, command_id, corrections, mark_of, marked
from grandbo.storage.database import Database
from grandbo.storage.tables import entries
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Clock, Principal

NO_SOURCE = "import"
CHANGED = "It was imported again, and says something else."

_tiers = sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))
_KNOWN = (
    sa.select(
        entries.c.entry_id,
        entries.c.revision,
        entries.c.status,
        entries.c.title,
        entries.c.visibility,
        entries.c.incident_source,
        entries.c.incident_id,
        entries.c.evidence,
    )
    .where(
        of_tenant(entries),
        entries.c.kind == "runbook",
        entries.c.external_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Text))),
        entries.c.incident_id == entries.c.external_id,
        entries.c.visibility == sa.any_(_tiers),
    )
    .order_by(entries.c.recorded_at, entries.c.entry_id)
)


class Runbooks:
    """What is known of the runbooks of some lines, for one principal of one tenant."""

    def __init__(
        self, database: Database, tenant_id: UUID, principal: Principal, policy: Policy, *, clock: Clock
    ) -> None:
        self._who = (database, tenant_id, principal, policy)
        self._clock = clock
        self._known: dict[str, dict[str, tuple[Known, str]]] = {}

    def look_up(self, ids: Collection[str]) -> None:
        """Forget what was known, and see what there is under these ids, within the caller's tiers."""
        database, tenant_id, principal, policy = self._who
        wanted = {"tenant_id": tenant_id, "ids": sorted(ids), "tiers": list(visible_tiers(policy, principal))}
        with database.transaction("auditor", tenant_id, read_only=True) as transaction:
            rows = transaction.execute(_KNOWN, wanted)
        self._known = {}
        for row in reversed(rows):
            found = Known(row["entry_id"], row["revision"], row["status"], row["title"], tuple(row["evidence"]))
            self._known.setdefault(row["incident_id"], {})[row["incident_source"]] = (found, row["visibility"])

    def source_of(self, source: str, own_id: str) -> str:
        """The source under which this id is known; the one that is given where it is not."""
        sources = self._known.get(own_id, {})
        if source in sources or not sources:
            return source
        if source == NO_SOURCE:
            return next(iter(sources)) if len(sources) == 1 else source
        return NO_SOURCE if NO_SOURCE in sources else source

    def says_the_same(self, document: Mapping[str, Any]) -> bool | None:
        """Whether the last line of this id said this; None where it has not been corrected by one."""
        known = self._of(document)
        return known[0].mark == mark_of(document) if known and known[0].mark else None

    def may_correct(self) -> bool:
        """Whether the caller may: to record is not to govern."""
        return may(self._who[2], "govern")

    def correct(self, document: Mapping[str, Any], stated: Collection[str]) -> bool | None:
        """
        Correct the entry of this id by what the line states; None where there is none that the caller sees.

        Gives whether this call did it: of two imports at once the other may have.

        Raises:
            IllegalTransition and what else refuses a correction.
        """
        found = self._of(document)
        if found is None:
            return None
        known, visibility = found
        changes = corrections(marked(document), known)
        kept = {name: value for name, value in changes.items() if name in stated}
        own_id = command_id("correct", document, visibility, known)
        wish = wishes.correct(known.id, kept, CHANGED, command_id=own_id)
        return carry_out(*self._who, wish, clock=self._clock).appended

    def _of(self, document: Mapping[str, Any]) -> tuple[Known, str] | None:
        incident = document["incident"]
        return self._known.get(incident["id"], {}).get(incident["source"])
