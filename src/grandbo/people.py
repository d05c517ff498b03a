"""The verbs about people and workspaces. `TenantMemory` is one of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from grandbo.memory import episodes, held, personal, subjects
from grandbo.memory.personal import Preview, Remembered
from grandbo.memory.subjects import Registered, Subject
from grandbo.verbs import Verbs

if TYPE_CHECKING:
    from grandbo.events.models import Policy
    from grandbo.storage.database import Database
    from grandbo.types import Principal

log = structlog.get_logger(__name__)

Named = UUID | str


class People(Verbs):
    """Register and hold subjects, and have things remembered about them."""

    def register_subject(self, kind: str, reference: str, name: str, *, principals: Sequence[str] = ()) -> Registered:
        """
        Register a `person` or a `workspace`; the same reference again is the same subject.

        Args:
            reference: what it is called elsewhere, such as an e-mail address; only its keyed digest is kept.
            name: what it is called; sealed under its own key.
            principals: `type:name` of those whose own recalls are told what is remembered about it.
        """
        who = (self._database, self.tenant.tenant_id, self.principal)
        made = subjects.register_subject(*who, kind, reference, name, principals=principals, clock=self._clock())
        log.info("subject_registered", tenant_id=str(self.tenant.tenant_id), created=made.created)
        return made

    def subjects(self) -> list[Subject]:
        """All subjects and the tombstones of those that were erased, oldest first, without their names."""
        return subjects.list_subjects(self._database, self.tenant.tenant_id, self.principal)

    def subject(self, named: Named) -> Subject:
        """One subject with its name, by its id or its reference."""
        return subjects.show_subject(self._database, self.tenant.tenant_id, self.principal, named)

    def hold_subject(self, named: Named, reason: str) -> Subject:
        """Set a legal hold: nothing about the subject is erased, nor made to expire, until it is lifted."""
        who = (self._database, self.tenant.tenant_id, self.principal)
        return subjects.hold_subject(*who, named, reason, clock=self._clock())

    def lift_hold(self, named: Named, reason: str) -> Subject:
        """Release a legal hold."""
        who = (self._database, self.tenant.tenant_id, self.principal)
        return subjects.lift_hold(*who, named, reason, clock=self._clock())

    def held(self, named: Named) -> dict[str, Any]:
        """
        All that is held about a subject: entries, revisions, who said what, until when, and to whom it was shown.

        For who administers, and for the subject's own principals. Asked again it is the same.
        """
        self._receipts.flush()
        return held.held(self._database, self.tenant.tenant_id, self.principal, named)

    # -- what is remembered --------------------------------------------------------------------------------------------

    def remember(self, document: Mapping[str, Any]) -> Preview:
        """
        Have something about a person or a workspace wait for a person's confirmation; nothing is stored yet.

        `document`: `subject` (id or reference), `memory_key` (the same again replaces it), `title`, and optionally
        `text`, `confidence_bp`, `expires_at`. The answer says what would be stored, about whom, by whom and until when,
        and has the token that a person confirms.
        """
        return personal.ask_to_remember(*self._who_now(), document, clock=self._clock())

    def remember_workspace(self, document: Mapping[str, Any]) -> Remembered | Preview:
        """Remember a fact about a workspace: at once where the tenant's policy says so, else as of a person."""
        done = personal.remember_workspace(*self._who_now(), document, clock=self._clock())
        self._changed()
        return done

    def confirm_memory(self, token: str) -> Remembered:
        """Store what waits under this token; only a person may. Confirmed again it is the first answer again."""
        done = personal.confirm_memory(*self._who_now(), token, clock=self._clock())
        log.info("memory_confirmed", tenant_id=str(self.tenant.tenant_id), position=done.acknowledgement.position)
        self._changed()
        return done

    def refuse_memory(self, token: str) -> None:
        """Drop what waits under this token."""
        personal.refuse_memory(self._database, self.tenant.tenant_id, self.principal, token)

    def record_episode(self, document: Mapping[str, Any]) -> Remembered:
        """
        Record what came of a session of work, where the tenant takes episodes in: one a session id and subject.

        `document`: `session_id`, `subject`, `title`, and what else a finding has.
        """
        done = episodes.record_episode(*self._who_now(), document, clock=self._clock())
        self._changed()
        return done

    def _who_now(self) -> tuple[Database, UUID, Principal, Policy]:
        return self._database, self.tenant.tenant_id, self.principal, self._policy_now()
