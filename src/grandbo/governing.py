"""The verbs of an entry's life, as the library has them. `TenantMemory` is one of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from grandbo.memory import containment, impact, wishes
from grandbo.memory.containment import Contained
from grandbo.memory.govern import Changed, Wish, carry_out, preview
from grandbo.memory.impact import Seed, as_seed
from grandbo.memory.lifecycle import EntryState
from grandbo.verbs import Verbs

if TYPE_CHECKING:
    from grandbo.events.parts import EventBody


class Governing(Verbs):
    """
    Correct, restore, archive, dispute and the rest. Each but `corroborate` takes `reason`, and optionally
    `expected_revision` (the revision that the wish was formed on; `RevisionStale` when the entry has moved on) and
    `command_id`.
    """

    def govern(self, wish: Wish) -> Changed:
        """Carry a wish out."""
        changed = carry_out(
            self._database, self.tenant.tenant_id, self.principal, self._policy_now(), wish, clock=self._clock()
        )
        self._changed()
        return changed

    def preview(self, wish: Wish) -> tuple[EntryState, EventBody | None]:
        """What a wish would do to the entry as it stands; None where it would change nothing."""
        return preview(
            self._database, self.tenant.tenant_id, self.principal, self._policy_now(), wish, clock=self._clock()
        )

    def correct(self, entry_id: UUID, changes: dict[str, Any], *, reason: str, **options: Any) -> Changed:
        """Replace the named fields and keep all else."""
        return self.govern(wishes.correct(entry_id, changes, reason, **options))

    def restore(self, entry_id: UUID, revision: int, *, reason: str, **options: Any) -> Changed:
        """Bring the text of an earlier revision back; the status stays what it is."""
        return self.govern(self.restore_wish(entry_id, revision, reason=reason, **options))

    def restore_wish(self, entry_id: UUID, revision: int, *, reason: str, **options: Any) -> Wish:
        """The wish behind `restore`, for `preview`."""
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return wishes.restore(*who, entry_id, revision, reason, **options)

    def archive(self, entry_id: UUID, *, reason: str, **options: Any) -> Changed:
        """Put it away."""
        return self.govern(wishes.archive(entry_id, reason, **options))

    def unarchive(self, entry_id: UUID, *, reason: str, **options: Any) -> Changed:
        """Bring it back."""
        return self.govern(wishes.unarchive(entry_id, reason, **options))

    def dispute(self, entry_id: UUID, *, reason: str, other: UUID | None = None, **options: Any) -> Changed:
        """Mark it disputed; it is still recalled, labelled, with the other side's id."""
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return self.govern(wishes.dispute(*who, entry_id, other, reason, **options))

    def resolve(self, entry_id: UUID, *, reason: str, **options: Any) -> Changed:
        """Settle the dispute: the entry stands."""
        return self.govern(wishes.resolve(entry_id, reason, **options))

    def supersede(self, entry_id: UUID, by: UUID, *, reason: str, **options: Any) -> Changed:
        """Let another entry take its place."""
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return self.govern(wishes.supersede(*who, entry_id, by, reason, **options))

    def verify_entry(self, entry_id: UUID, *, reason: str, days: int | None = None, **options: Any) -> Changed:
        """Say that someone checked it; sets the next review."""
        return self.govern(wishes.verify(entry_id, days, reason, self._policy_now(), **options))

    def expire(self, entry_id: UUID, at: str, *, reason: str, **options: Any) -> Changed:
        """Set until when it is valid."""
        return self.govern(wishes.expire(entry_id, at, reason, **options))

    def reclassify(
        self,
        entry_id: UUID,
        *,
        reason: str,
        kind: str | None = None,
        visibility: str | None = None,
        namespace: str | None = None,
        owner: str | None = None,
        applicability: list[str] | None = None,
        **options: Any,
    ) -> Changed:
        """
        Make it count as something else; what is None stays as it is.

        Args:
            owner: who keeps it; empty for nobody.
            applicability: all that it applies to, such as `worker >=4,<7`; empty for everything.
        """
        changes = {
            "kind": kind,
            "visibility": visibility,
            "namespace": namespace,
            "owner": owner,
            "applicability": applicability,
        }
        return self.govern(wishes.reclassify(self.principal, self._policy_now(), entry_id, changes, reason, **options))

    def quarantine(self, entry_id: UUID, *, reason: str, **options: Any) -> Changed:
        """Take it out of every answer until someone has looked at it."""
        return self.govern(wishes.quarantine(entry_id, reason, **options))

    def release(self, entry_id: UUID, *, reason: str, **options: Any) -> Changed:
        """Let it out of quarantine, with the status that it had before."""
        return self.govern(wishes.release(self.tenant.tenant_id, entry_id, reason, **options))

    def corroborate(
        self, entry_id: UUID, *, incident: dict[str, Any], evidence: list[dict[str, Any]], **options: Any
    ) -> Changed:
        """
        Another incident, `{source, id}`, supports it; takes no reason, the evidence is it.

        The incident that taught it, or one that supports it already, changes nothing.
        """
        return self.govern(wishes.corroborate(entry_id, incident, evidence, **options))

    def link(self, entry_id: UUID, link_type: str, to: UUID, *, reason: str, **options: Any) -> Changed:
        """Link it to another entry: `caused_by`, `duplicates`, `contradicts`, `supersedes`, … ."""
        who = (self.tenant.tenant_id, self.principal, self._policy_now())
        return self.govern(wishes.link(*who, entry_id, link_type, to, reason, **options))

    def unlink(self, entry_id: UUID, link_type: str, to: UUID, *, reason: str, **options: Any) -> Changed:
        """Take a link away."""
        return self.govern(wishes.unlink(self.tenant.tenant_id, entry_id, link_type, to, reason, **options))

    # -- blast radius --------------------------------------------------------------------------------------------------

    def entry_impact(self, entry_id: UUID) -> dict[str, Any]:
        """
        All that rests on an entry and why, who was told any of it, and what may be affected.

        Returns:
            `{seed, position, correlation_id, members, receipts, possibly_affected}`; of the last two, `total` counts
            all, `items` holds the newest, and `has_more` says whether that is all.

        Raises:
            Forbidden, NotFound, ImpactTooLarge.
        """
        return self.impact(Seed(entry_id))

    def source_impact(self, uri: str) -> dict[str, Any]:
        """The same of everything whose evidence, its own or by corroboration, names exactly this URI."""
        return self.impact(Seed.source(uri))

    def impact(self, seed: Seed) -> dict[str, Any]:
        """The impact of a seed."""
        self._receipts.flush()
        return impact.look(self._database, self.tenant.tenant_id, self.principal, self.tenant.policy, seed)

    def quarantine_impact(self, seed: Seed | UUID | str, *, reason: str, command_id: UUID | None = None) -> Contained:
        """Put every member of an impact away, in one command: of an entry by its id, of a source by its URI."""
        self._receipts.flush()
        return self._contain(containment.quarantine_impact, seed, reason, command_id)

    def release_impact(self, seed: Seed | UUID | str, *, reason: str, command_id: UUID | None = None) -> Contained:
        """Let out exactly what `quarantine_impact` of the same seed put away, with the statuses of before."""
        return self._contain(containment.release_impact, seed, reason, command_id)

    def _contain(
        self, act: Callable[..., Contained], seed: Seed | UUID | str, reason: str, command_id: UUID | None
    ) -> Contained:
        who = (self._database, self.tenant.tenant_id, self.principal, self._policy_now())
        contained = act(*who, as_seed(seed), reason, command_id=command_id, clock=self._clock())
        self._changed()
        return contained
