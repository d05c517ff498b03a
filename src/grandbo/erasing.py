"""The verbs that erase: two people, one transaction, a certificate that anyone can check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog

from grandbo.events import notes
from grandbo.events.certificates import ranges, sign_certificate
from grandbo.events.checkpoints import Signed
from grandbo.events.verify import verify_tenant
from grandbo.key_errors import KeyUnavailable
from grandbo.memory import erasing
from grandbo.memory.erasing import Erasure
from grandbo.memory.erasure_list import Listed, append_listed
from grandbo.proving import Proving
from grandbo.types import new_id, utc_text

log = structlog.get_logger(__name__)


class Erasing(Proving):
    """Ask, confirm, list, finish. `TenantMemory` is one of these."""

    def request_erasure(
        self, entry_id: UUID, reason: str, *, keeps_current: bool = False, revisions: Sequence[int] = ()
    ) -> Erasure:
        """
        Ask for an entry to be erased; a second person has to confirm it.

        Args:
            reason: a code, `personal_data`, `secret`, `legal` or `request`: words could hold what is to go.
            keeps_current: erase its past alone, and keep what it says now; to take something out of a text, correct it
                first.
            revisions: erase these alone, each of which leaves a tombstone; `still_in` of the answer says in which
                others some of the same words stand.
        """
        who = (self._database, self.tenant.tenant_id, self.principal, self._policy_now())
        how: dict[str, Any] = {"keeps_current": keeps_current, "revisions": revisions, "clock": self._clock()}
        return erasing.request_erasure(*who, entry_id, reason, **how)

    def confirm_erasure(self, erasure_id: UUID) -> Erasure:
        """
        Erase, for good, and give the certificate. Confirmed again it gives the same.

        In one transaction: the event, every derived row, what receipts said of it, and the bodies in the log.
        """
        self._receipts.flush()
        who = (self._database, self.tenant.tenant_id, self.principal, self._policy_now())
        return self._erased(erasing.confirm_erasure(*who, erasure_id, clock=self._clock()))

    def _erased(self, done: Erasure) -> Erasure:
        if done.position is None:
            return done
        if done.subject_id is not None:
            self._database.keys.forget(self.tenant.tenant_id, done.subject_id)
        self._changed()
        what = "entry_erased" if done.subject_id is None else "subject_erased"
        log.info(what, tenant_id=str(self.tenant.tenant_id), position=done.position)
        finished = self._finish(done)
        # What a crash has left unlisted would be brought back by a restore: this is the next occasion.
        self.finish_erasures()
        return finished

    def forget_subject(self, named: UUID | str, reason: str) -> Erasure:
        """
        Erase all that is held about a person or a workspace, for good, and give the certificate.

        In one transaction: the key, every derived row, what waits, what receipts said of it, the bodies in the log.
        Where the tenant's policy wants a second person, it waits for `confirm_erasure`. Asked again it is the same.

        Args:
            reason: a code, `personal_data`, `secret`, `legal` or `request`.
        """
        self._receipts.flush()
        who = (self._database, self.tenant.tenant_id, self.principal, self._policy_now())
        return self._erased(erasing.forget_subject(*who, named, reason, clock=self._clock()))

    def cancel_erasure(self, erasure_id: UUID) -> None:
        """Take a request back that was not confirmed yet."""
        erasing.cancel_erasure(self._database, self.tenant.tenant_id, self.principal, erasure_id)

    def erasures(self) -> list[Erasure]:
        """All requests and what became of them, oldest first."""
        return erasing.list_erasures(self._database, self.tenant.tenant_id, self.principal)

    def finish_erasures(self) -> list[Erasure]:
        """List and certify what was erased and is not yet; where a crash came in between, this makes up for it."""
        return [self._finish(item) for item in self.erasures() if item.position is not None and not item.certificate]

    def _finish(self, done: Erasure) -> Erasure:
        """The list first, then the certificate: a certificate says that a restore will not bring it back."""
        if done.certificate is not None or done.position is None or done.hash is None or done.outcome is None:
            return done
        key = notes.notary_key(self._home)
        tenant_id = self.tenant.tenant_id
        streams = tuple(map(UUID, done.outcome["streams"]))
        listed = Listed(tenant_id, done.erasure_id, done.position, done.hash, streams, done.subject_id)
        if done.revisions is not None:
            gone = tuple(map(UUID, done.outcome["events"]))
            tombstones = tuple(done.outcome["revisions"])
            listed = replace(listed, entry_id=done.entry_id, revisions=tombstones, events=gone)
        append_listed(self._home, listed, key)
        certificate = sign_certificate(tenant_id, self._stated(done, done.outcome), key)
        erasing.keep_certificate(self._database, tenant_id, done.erasure_id, certificate)
        return next(item for item in self.erasures() if item.erasure_id == done.erasure_id)

    def _stated(self, done: Erasure, outcome: dict[str, Any]) -> dict[str, Any]:
        signed = self._checkpoint_after()
        verified = verify_tenant(self._database, self.tenant.tenant_id)
        assert done.erased_at is not None
        return {
            "certificate_id": str(new_id()),
            "erasure_id": str(done.erasure_id),
            **self._what(done, outcome),
            "reason": done.reason,
            "requested_at": utc_text(done.requested_at),
            "erased_at": utc_text(done.erased_at),
            "position": done.position,
            "hash": done.hash,
            "positions": ranges(outcome["positions"]),
            "bodies_removed": outcome["bodies_removed"],
            "rows_removed": outcome["rows_removed"],
            "checkpoint": {"size": signed.checkpoint.size, "note": signed.note},
            "checks": {"verify_ok": verified.first_bad is None, "events": verified.events},
        }

    def _what(self, done: Erasure, outcome: dict[str, Any]) -> dict[str, Any]:
        if done.revisions is not None:
            return {
                "entry_id": str(done.entry_id),
                "keeps_current": done.keeps_current,
                "revisions": list(done.revisions),
                "tombstones": outcome["revisions"],
                "still_in": done.still_in,
            }
        if done.subject_id is None:
            return {"entry_id": str(done.entry_id), "keeps_current": done.keeps_current}
        return {
            "subject_id": str(done.subject_id),
            "kind": outcome["kind"],
            "before": outcome["before"],
            "key": {"provider": self._database.keys.provider.name, "destroyed": outcome["rows_removed"]["keys"] == 1},
        }

    def _checkpoint_after(self) -> Signed:
        """With the digest of what remains; without it where another subject's key cannot be had."""
        try:
            return self.checkpoint()
        except KeyUnavailable:
            return self.checkpoint(projections=False)
