"""The verbs that prove: the log verified, listed, signed and exported, and the projections held against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from grandbo.errors import Forbidden, LogDamaged
from grandbo.events import checkpoints, export, listing, notes
from grandbo.events.verify import Verification, head_position, verify_tenant
from grandbo.memory.policy import require, require_writing, visible_tiers
from grandbo.projections import rebuild as replay
from grandbo.types import utc_text
from grandbo.verbs import Verbs

log = structlog.get_logger(__name__)


class Proving(Verbs):
    """Verify, list, sign, export, rebuild. `TenantMemory` is one of these."""

    def verify(self, *, start: int = 1, progress: Callable[[int], None] | None = None) -> Verification:
        """Check the tenant's log and its checkpoints; from a later `start` on, only the events from there."""
        require(self.principal, "audit")
        key = notes.known_public_key(self._home)
        return verify_tenant(self._database, self.tenant.tenant_id, start=start, public_key=key, progress=progress)

    def events(self, *, bodies: bool = False, **wanted: Any) -> Iterator[dict[str, Any]]:
        """
        Events of the log, oldest first: `actor`, `event_type`, `entry_id`, `since`, `until`, `after`, `limit` narrow.

        Nothing is held open between two events, so the caller may take as long as it likes. Who does not see every
        tier is given what stands in his own, without bodies.
        """
        return listing.list_events(
            self._database, self.tenant.tenant_id, self._event_filter(bodies, wanted), bodies=bodies
        )

    def page_of_events(self, *, bodies: bool = False, **wanted: Any) -> listing.EventPage:
        """
        A page of them, and the `position` up to which that is all: go on `after` it, and nothing is missed.
        """
        return listing.page_of_events(
            self._database, self.tenant.tenant_id, self._event_filter(bodies, wanted), bodies=bodies
        )

    def names(self, refs: Iterable[str]) -> dict[str, str]:
        """The names behind references of events and receipts; those without one are left out."""
        require(self.principal, "audit")
        return listing.list_names(self._database, self.tenant.tenant_id, refs)

    def head_position(self) -> int:
        """The tenant's last position."""
        require(self.principal, "audit")
        return head_position(self._database, self.tenant.tenant_id)

    def head(self) -> dict[str, Any]:
        """The end of the log: `{position, hash, recorded_at}`."""
        require(self.principal, "audit")
        return listing.show_head(self._database, self.tenant.tenant_id)

    def list_checkpoints(self, *, limit: int = 50, before: int | None = None) -> list[dict[str, Any]]:
        """A page of the checkpoints that are kept, the largest first; `before`: the size of the last one seen."""
        require(self.principal, "audit")
        return checkpoints.list_notes(self._database, self.tenant.tenant_id, limit=limit, before=before)

    def _event_filter(self, bodies: bool, wanted: dict[str, Any]) -> listing.EventFilter:
        tiers = self._tiers_short()
        if tiers is not None and bodies:
            raise Forbidden("To read what events say needs a role that sees every tier; entries show what you may see.")
        return listing.event_filter(**wanted, tiers=tiers)

    def _tiers_short(self) -> tuple[str, ...] | None:
        """The tiers of an auditor who does not see them all; None for one who does."""
        require(self.principal, "audit")
        policy = self._policy_now()
        tiers = visible_tiers(policy, self.principal)
        return None if len(tiers) == len(policy.tiers) else tiers

    def checkpoint(
        self, *, projections: bool = True, progress: Callable[[int], None] | None = None
    ) -> checkpoints.Signed:
        """
        Sign the log as it stands; the checkpoint that stands already where nothing was appended since.

        Args:
            projections: replay the log too, and put the digest of its projections into the note. One that stands
                without it is not enough then: another one of the same size is made.

        Raises:
            LogDamaged: the log or a projection is not what it must be, or not what was signed before.
        """
        require(self.principal, "audit")
        require_writing(self.principal)
        key = notes.notary_key(self._home)
        if standing := checkpoints.standing(self._database, self.tenant.tenant_id, key, full=projections):
            return standing
        lines = [f"time {utc_text(self._clock()())}"]
        size = head_position(self._database, self.tenant.tenant_id)
        if projections:
            replayed = replay.check(self._database, self.tenant.tenant_id, progress=progress)
            if not replayed.ok:
                raise LogDamaged("The projections are not what the log says; `grandbo rebuild --check` shows where.")
            size = replayed.position
            lines.insert(0, f"projections {replayed.digest}")
        signed = checkpoints.make(self._database, self.tenant.tenant_id, key, size, lines, progress=progress)
        log.info("checkpoint_signed", tenant_id=str(self.tenant.tenant_id), size=size, created=signed.created)
        return signed

    def export(self, directory: Path | str, *, progress: Callable[[int], None] | None = None) -> export.Bundle:
        """Write the log, its checkpoints and the public key into a folder that proves itself without Grandbo."""
        if self._tiers_short() is not None:
            raise Forbidden("The whole log is for a role that sees every tier.")
        key = notes.public_bytes(notes.notary_key(self._home))
        return export.export_bundle(self._database, self.tenant.tenant_id, Path(directory), key, progress=progress)

    def notary(self) -> dict[str, str]:
        """The public key that checks this tenant's checkpoints: alone, and as tools for signed notes take it."""
        require(self.principal, "audit")
        return notes.described_key(notes.notary_key(self._home), notes.origin_of(self.tenant.tenant_id))

    def rebuild(self, *, progress: Callable[[int], None] | None = None) -> int:
        """Replay the log into the projections; give the number of events."""
        require(self.principal, "administer")
        return replay.rebuild(self._database, self.tenant.tenant_id, progress=progress)

    def check_rebuild(
        self, *, until: int | None = None, progress: Callable[[int], None] | None = None
    ) -> replay.CheckResult:
        """
        Replay the log beside the projections and compare; change nothing.

        Args:
            until: to this position only; the digest is that of then, compared with the checkpoint of this size too.

        Raises:
            MomentUnknown: the log does not reach there.
        """
        require(self.principal, "audit")
        result = replay.check(self._database, self.tenant.tenant_id, until=until, progress=progress)
        if until is None:
            return result
        key = notes.known_public_key(self._home)
        return replace(result, signed=checkpoints.signed_projections(self._database, self.tenant.tenant_id, until, key))
