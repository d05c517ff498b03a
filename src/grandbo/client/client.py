"""The verbs of the library, over HTTP. What they give is the documented JSON, as plain values."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from grandbo.client.asked import Asked, Document
from grandbo.client.transport import Transport

Id = uuid.UUID | str


class Client(Transport):
    """
    The memory of the tenant that the key opens.

        with Client("http://127.0.0.1:8420", api_key) as acme:
            acme.query_topic("consumers lost their leases after the broker restarted")

    A change takes `expected`, the revision or version that it was decided on; without it the client reads the present
    one first, and what came in between is not noticed.
    """

    # -- asking --------------------------------------------------------------------------------------------------------

    def query_topic(self, topic: str, **asked: Unpack[Asked]) -> Document:
        """Evidence on a topic; with `render` also as a block for a model."""
        return self._post("/v1/recall", {"topic": topic, **asked})

    def query_topic_diff(self, topic: str, **asked: Unpack[Asked]) -> Document:
        """The answer as of a moment, today's, and what lies between them."""
        return self._post("/v1/recall", {"topic": topic, **asked, "diff": True})

    def recall_layers(self, topic: str, **asked: Any) -> Document:
        """Recall by layer: `layers`, `budget`, `investigation_id`, and what narrows."""
        return self._post("/v1/context", {"topic": topic, **asked})

    def show_entry(self, entry_id: Id, *, as_of: str | None = None, as_of_position: int | None = None) -> Document:
        """One entry, now or as it stood."""
        return self._get(f"/v1/entries/{entry_id}", as_of=as_of, as_of_position=as_of_position)

    def history(self, entry_id: Id) -> list[Document]:
        """Every revision, oldest first."""
        revisions: list[Document] = self._get(f"/v1/entries/{entry_id}/history")["revisions"]
        return revisions

    def differences(self, entry_id: Id, earlier: int, later: int) -> Document:
        """What is different between two revisions, word by word."""
        return self._get(f"/v1/entries/{entry_id}/differences", **{"from": earlier, "to": later})

    def list_entries(self, **wanted: Any) -> Iterator[Document]:
        """Every entry, page by page: `kind`, `status`, `service`, `as_of`, `as_of_position` narrow."""
        return self._pages("/v1/entries", "entries", wanted)

    # -- writing -------------------------------------------------------------------------------------------------------

    def record_finding(
        self, finding: Mapping[str, Any] | None = None, *, key: str | None = None, **fields: Any
    ) -> Document:
        """
        Record a finding, as a document or as keywords. Durable when this returns.

        Args:
            key: the Idempotency-Key; without it, and without an incident, a new one for this call.
        """
        document = dict(finding or {}) | fields
        needs_key = key is not None or not document.get("incident")
        return self._post("/v1/findings", document, key=key or (_new_key() if needs_key else None))

    def change(
        self,
        entry_id: Id,
        verb: str,
        *,
        reason: str | None = None,
        expected: int | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> Document:
        """Any verb of an entry's life by its name, with its fields; the named ones below are these."""
        path = f"/v1/entries/{entry_id}"
        revision = self._get(path)["revision"] if expected is None else expected
        body = {"reason": reason, **fields} if reason is not None else fields
        return self._post(f"{path}/{verb}", body, key=key or _new_key(), expected=revision)

    def correct(self, entry_id: Id, changes: Mapping[str, Any], *, reason: str, **options: Any) -> Document:
        """Replace the named fields and keep all else."""
        return self.change(entry_id, "correct", reason=reason, changes=dict(changes), **options)

    def restore(self, entry_id: Id, revision: int, *, reason: str, **options: Any) -> Document:
        """Bring the text of an earlier revision back; the status stays what it is."""
        return self.change(entry_id, "restore", reason=reason, revision=revision, **options)

    def archive(self, entry_id: Id, *, reason: str, **options: Any) -> Document:
        """Put it away."""
        return self.change(entry_id, "archive", reason=reason, **options)

    def unarchive(self, entry_id: Id, *, reason: str, **options: Any) -> Document:
        """Bring it back."""
        return self.change(entry_id, "unarchive", reason=reason, **options)

    def dispute(self, entry_id: Id, *, reason: str, other: Id | None = None, **options: Any) -> Document:
        """Mark it disputed, against another entry where there is one."""
        against: dict[str, Any] = {} if other is None else {"other": str(other)}
        return self.change(entry_id, "dispute", reason=reason, **against, **options)

    def supersede(self, entry_id: Id, by: Id, *, reason: str, **options: Any) -> Document:
        """Let another entry take its place."""
        return self.change(entry_id, "supersede", reason=reason, by=str(by), **options)

    def verify_entry(self, entry_id: Id, *, reason: str, days: int | None = None, **options: Any) -> Document:
        """Say that someone checked it; sets the next review."""
        due: dict[str, Any] = {} if days is None else {"days": days}
        return self.change(entry_id, "verify", reason=reason, **due, **options)

    def link(self, entry_id: Id, link_type: str, to: Id, *, reason: str, **options: Any) -> Document:
        """Link it to another entry."""
        return self.change(entry_id, "link", reason=reason, type=link_type, to=str(to), **options)

    # -- candidates ----------------------------------------------------------------------------------------------------

    def propose(
        self,
        candidate: Mapping[str, Any],
        *,
        origin: Mapping[str, str] | None = None,
        into: Id | None = None,
        reason: str = "",
        key: str | None = None,
    ) -> Document:
        """Propose an entry; it waits for a person."""
        body = {
            "candidate": dict(candidate),
            "origin": origin and dict(origin),
            "into": into and str(into),
            "reason": reason,
        }
        return self._post("/v1/candidates", body, key=key or _new_key())

    def candidates(self, **wanted: Any) -> Iterator[Document]:
        """The queue, page by page: `status`, `kind`, `mine` narrow."""
        return self._pages("/v1/candidates", "candidates", wanted)

    def candidate(self, candidate_id: Id) -> Document:
        """One candidate with all that a reviewer needs."""
        return self._get(f"/v1/candidates/{candidate_id}")

    def decide(
        self,
        candidate_id: Id,
        verb: str,
        *,
        reason: str,
        expected: int | None = None,
        key: str | None = None,
        **fields: Any,
    ) -> Document:
        """`amend`, `approve`, `merge`, `reject`, `withdraw` or `reopen` a candidate."""
        path = f"/v1/candidates/{candidate_id}"
        version = self._get(path)["version"] if expected is None else expected
        return self._post(f"{path}/{verb}", {"reason": reason, **fields}, key=key or _new_key(), expected=version)

    # -- receipts and proof --------------------------------------------------------------------------------------------

    def receipts(self, **wanted: Any) -> Iterator[Document]:
        """Receipts, newest first; with `entry` those that served it."""
        return self._pages("/v1/receipts", "receipts", wanted)

    def receipt(self, receipt_id: Id) -> Document:
        """One receipt."""
        return self._get(f"/v1/receipts/{receipt_id}")

    def replay_receipt(self, receipt_id: Id, topic: str) -> Document:
        """Ask the topic again where the receipt was made; equal, or what differs."""
        return self._post(f"/v1/receipts/{receipt_id}/replay", {"topic": topic})

    def give_feedback(
        self, receipt_id: Id, entry_id: Id, verdict: str, *, note: str | None = None, key: str | None = None
    ) -> Document:
        """Say what became of one entry of one answer: `helped`, `irrelevant`, `wrong` or `stale`."""
        body = {"entry_id": str(entry_id), "verdict": verdict, "note": note}
        return self._post(f"/v1/receipts/{receipt_id}/feedback", body, key=key or _new_key())

    def events(self, **wanted: Any) -> Iterator[Document]:
        """Events of the log, oldest first: `actor`, `type`, `entry`, `since`, `until`, `bodies` narrow."""
        return self._pages("/v1/events", "events", wanted)

    def verify(self, *, start: int = 1) -> Document:
        """Whether the log is what was written."""
        return self._get("/v1/audit/verify", **{"from": start})

    # -- an investigation ----------------------------------------------------------------------------------------------

    def note(self, investigation_id: str, text: str, *, role: str = "note") -> Document:
        """Note something down. Sent once: a note has no key, and twice would be two notes."""
        body = {"text": text, "role": role}
        return self._document(
            self.call("POST", f"/v1/investigations/{investigation_id}/notes", body=body, repeatable=False)
        )

    def context_window(self, investigation_id: str, *, budget: int | None = None) -> Document:
        """The last notes within a budget of tokens."""
        return self._get(f"/v1/investigations/{investigation_id}/window", budget=budget)

    def close_investigation(self, investigation_id: str) -> Document:
        """Forget the notes."""
        return self._document(self.call("DELETE", f"/v1/investigations/{investigation_id}"))

    # -- shared --------------------------------------------------------------------------------------------------------

    def _get(self, path: str, **params: Any) -> Document:
        return self._document(self.call("GET", path, params=params))

    def _post(
        self, path: str, body: Mapping[str, Any], *, key: str | None = None, expected: int | None = None
    ) -> Document:
        headers = {} if key is None else {"Idempotency-Key": key}
        if expected is not None:
            headers["If-Match"] = f'"{expected}"'
        return self._document(self.call("POST", path, body=body, headers=headers))

    def _pages(self, path: str, name: str, wanted: Mapping[str, Any]) -> Iterator[Document]:
        after = wanted.get("after")
        while True:
            page = self._get(path, **{**wanted, "after": after})
            yield from page[name]
            after = page["next"]
            if after is None:
                return

    @staticmethod
    def _document(answer: Any) -> Document:
        document: Document = answer
        return document


def _new_key() -> str:
    return str(uuid.uuid4())
