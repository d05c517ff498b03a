"""
The embedding worker: gives every entry a vector in the current space, whatever happened before; then each title one.

It asks which entries lack one, calls the provider with no transaction open, and appends `entry_embedded`. So a crash
at any moment loses nothing: what was not appended is still missing, and is found again. Two workers that embed the same
text at once do double work and store it once, because the command id derives from entry, revision, text and stamp.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
import numpy.typing as npt
import structlog

from grandbo.embedding import Embedder, Window, windows
from grandbo.errors import EmbedderError, EmbedderMisconfigured, EmbedderTransient, GrandboError
from grandbo.events.log import CommandContext, Event
from grandbo.events.models import EmbeddedWindow, EntryEmbedded, StampInForce
from grandbo.memory.commands import Command, run_commands
from grandbo.memory.policies import adopt_stamp
from grandbo.storage.database import Database, Row
from grandbo.storage.tenancy import all_tenants
from grandbo.types import Clock, Principal, derived_id, digest_of, utc_now
from grandbo.workers.backlog import TEXT_NOW, BacklogCounts, RunningCounts, count_backlog, note_attempts
from grandbo.workers.pending import Pending

log = structlog.get_logger(__name__)

WORKER = Principal("system", derived_id("system", "embedding-worker"), "embedding-worker")
BATCH = 8
POLL_SECONDS = 1.0
LONGEST_PAUSE = 30.0

# Titles are short.
TITLES_BATCH = 64

Progress = Callable[[BacklogCounts], None]


@dataclass(frozen=True, slots=True)
class _Space:
    """Where vectors are made, of what of an entry, and of how many entries at once."""

    stamp: str
    windows: Callable[[Row], list[Window]]
    at_once: int


@dataclass(frozen=True, slots=True)
class _Prepared:
    row: Row
    windows: list[Window]


class EmbeddingWorker:
    """Drains the backlog of all tenants, and goes on watching it."""

    def __init__(self, database: Database, embedder: Embedder, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._embedder = embedder
        self._texts = _Space(embedder.stamp.id, _windows, BATCH)
        titles = embedder.titles
        self._titles = titles and _Space(titles.id, _title, TITLES_BATCH)
        self._clock = clock
        self._wake = threading.Event()
        self._stopped = False
        self._failures = 0
        self.last_pass_at: float | None = None
        self._adopted: set[UUID] = set()
        self._pending: dict[tuple[UUID, str], Pending] = {}

    def run(self) -> None:
        """Work until `stop`; a failure of the provider or the database pauses the work and never ends it."""
        while not self._stopped:
            worked, failure = self._pass_over_tenants()
            if failure is None:
                self._failures = 0
                pause = 0.0 if worked else POLL_SECONDS
            else:
                pause = self._pause_after(failure)
            if pause and self._wake.wait(pause):
                self._wake.clear()

    def stop(self) -> None:
        """End `run` after the batch in hand."""
        self._stopped = True
        self._wake.set()

    def wake(self) -> None:
        """A hint that there may be work; never needed for it to be found."""
        self._wake.set()

    def drain(
        self, tenant_id: UUID, *, progress: Progress | None = None, deadline: float | None = None
    ) -> BacklogCounts:
        """
        Embed what the tenant lacks until nothing is pending, or until `deadline` (monotonic seconds).

        The texts first, and it is their counts that are given; then the titles.

        Raises:
            EmbedderMisconfigured: waiting would not help.
        """
        counts = self._drain(self._texts, tenant_id, progress, deadline)
        if not counts.pending:
            self._adopt_if_complete(tenant_id, counts)
            if self._titles:
                self._drain(self._titles, tenant_id, progress, deadline)
        return counts

    def _drain(
        self, space: _Space, tenant_id: UUID, progress: Progress | None, deadline: float | None
    ) -> BacklogCounts:
        running = RunningCounts(lambda: count_backlog(self._database, tenant_id, space.stamp))
        counts = running.counts
        failures = 0
        while True:
            if progress:
                progress(counts)
            if not counts.pending:
                return counts
            if deadline is not None and time.monotonic() > deadline:
                return running.counted()
            try:
                done = self._embed_batch(space, tenant_id, space.at_once)
                failures = 0
            except EmbedderTransient as error:
                done, failures = 0, failures + 1
                log.warning("embedding_paused", code=error.code)
            if not done:
                time.sleep(min(0.2 * 2**failures, 5.0))
            counts = running.after(done)

    def embed_batch(self, tenant_id: UUID, *, at_most: int = BATCH) -> int:
        """
        Embed some entries that are due; give how many.

        Raises:
            EmbedderTransient: the provider serves no entry at all.
            EmbedderMisconfigured: it never will, as it is set up.
        """
        done = self._embed_batch(self._texts, tenant_id, at_most)
        if done or not self._titles:
            return done
        return self._embed_batch(self._titles, tenant_id, self._titles.at_once)

    def _embed_batch(self, space: _Space, tenant_id: UUID, at_most: int) -> int:
        pending = self._pending_of(space, tenant_id)
        rows = pending.due(self._clock(), at_most)
        if not rows:
            if space is self._texts and tenant_id not in self._adopted and not pending.is_left_over():
                self._adopt_if_complete(tenant_id, count_backlog(self._database, tenant_id, space.stamp))
            return 0
        prepared = [_Prepared(row, space.windows(row)) for row in rows]
        try:
            vectors = [(item, vector) for item, vector in zip(prepared, self._embed(prepared), strict=True)]
        except EmbedderMisconfigured:
            raise
        except EmbedderError as error:
            vectors = self._embed_singly(space, tenant_id, prepared, error)
        done = self._append(space, tenant_id, vectors)
        pending.settled([item.row for item, _ in vectors])
        return done

    def _pending_of(self, space: _Space, tenant_id: UUID) -> Pending:
        key = (tenant_id, space.stamp)
        if key not in self._pending:
            self._pending[key] = Pending(self._database, *key)
        return self._pending[key]

    def _adopt_if_complete(self, tenant_id: UUID, counts: BacklogCounts) -> None:
        """The change of a model ends here: once every entry has its vectors in the new space, recall may use it."""
        if tenant_id in self._adopted or not counts.entries or counts.embedded < counts.entries:
            return
        in_force = StampInForce(stamp=self._texts.stamp, cutoff_bp=self._embedder.stamp.cutoff_bp)
        command_id = derived_id("stamp_in_force", str(tenant_id), self._texts.stamp)
        adopt_stamp(self._database, tenant_id, WORKER, in_force, command_id, self._clock)
        self._adopted.add(tenant_id)

    def _embed_singly(
        self, space: _Space, tenant_id: UUID, prepared: Sequence[_Prepared], error: EmbedderError
    ) -> list[tuple[_Prepared, npt.NDArray[np.float32]]]:
        """
        Find out which entry spoils the batch. An outage must not use up the attempts of an entry: a transient failure
        counts against it only when the provider served another one in the same pass.
        """
        served: list[tuple[_Prepared, npt.NDArray[np.float32]]] = []
        failed: list[tuple[Row, str]] = []
        refused = False
        for item in prepared:
            try:
                served.append((item, self._embed([item])[0]))
            except EmbedderMisconfigured:
                raise
            except EmbedderError as failure:
                refused = refused or not isinstance(failure, EmbedderTransient)
                failed.append((item.row, failure.code))
                if not served and len(failed) >= 2 and not refused:
                    break
        if not served and not refused:
            raise error
        kept = [(row, code) for row, code in failed if served or code != EmbedderTransient.code]
        note_attempts(self._database, tenant_id, space.stamp, kept, self._clock())
        return served

    def _embed(self, prepared: Sequence[_Prepared]) -> list[npt.NDArray[np.float32]]:
        texts = [window.text for item in prepared for window in item.windows]
        vectors = self._embedder.embed(texts, "document")
        ends = np.cumsum([len(item.windows) for item in prepared])
        return np.split(vectors, ends[:-1])

    def _append(
        self, space: _Space, tenant_id: UUID, vectors: Sequence[tuple[_Prepared, npt.NDArray[np.float32]]]
    ) -> int:
        commands = [_command(tenant_id, space.stamp, item, found) for item, found in vectors]
        outcomes = run_commands(self._database, tenant_id, commands, clock=self._clock) if commands else []
        failed = [
            (item.row, outcome.code)
            for (item, _), outcome in zip(vectors, outcomes, strict=True)
            if isinstance(outcome, GrandboError)
        ]
        if failed:
            note_attempts(self._database, tenant_id, space.stamp, failed, self._clock())
        return len(outcomes) - len(failed)

    def _pass_over_tenants(self) -> tuple[bool, Exception | None]:
        """
        One batch for each tenant, so that a large backlog of one does not starve the others; nor does a failure of one.

        Gives whether anything was done, and the last failure.
        """
        worked = False
        failure: Exception | None = None
        for tenant_id in self._tenants():
            if self._stopped:
                break
            try:
                worked = bool(self.embed_batch(tenant_id)) or worked
            except GrandboError as error:
                failure = error
                log.warning("embedding_failed", code=error.code, tenant_id=str(tenant_id))
            except Exception as error:
                # What nobody foresaw must not end the worker: vectors would be missing from then on, without a word.
                failure = error
                log.exception("embedding_failed", code="unexpected", tenant_id=str(tenant_id))
            self.last_pass_at = time.monotonic()
        self.last_pass_at = time.monotonic()
        return worked, failure

    def _tenants(self) -> list[UUID]:
        try:
            return all_tenants(self._database)
        except GrandboError as error:
            log.warning("embedding_failed", code=error.code)
            self._wake.wait(POLL_SECONDS)
            return []

    def _pause_after(self, error: Exception) -> float:
        self._failures = min(self._failures + 1, 16)
        asked = error.retry_after if isinstance(error, EmbedderTransient) else None
        return min(asked if asked is not None else 0.25 * 2**self._failures, LONGEST_PAUSE)


def _windows(row: Row) -> list[Window]:
    return windows(row["title"], f"{row['summary']}\n\n{row['body']}" if row["body"] else str(row["summary"]))


def _title(row: Row) -> list[Window]:
    return windows(row["title"], "")


def _command(tenant_id: UUID, stamp: str, item: _Prepared, vectors: npt.NDArray[np.float32]) -> Command:
    row = item.row
    entry_id: UUID = row["entry_id"]
    digest: str = row["text_digest"].hex()
    body = EntryEmbedded(
        stamp=stamp,
        text_digest=digest,
        native_dimensions=vectors.shape[1],
        windows=tuple(
            EmbeddedWindow.of(window.index, window.start, window.end, vector)
            for window, vector in zip(item.windows, vectors, strict=True)
        ),
    )

    def decide(found: list[list[Row]], _now: datetime) -> Sequence[Event]:
        # The text may have been replaced while the provider was at work; its vector is worth nothing then.
        still_there = any(now_row["text_digest"] == row["text_digest"] for now_row in found[0])
        return [Event(entry_id, body)] if still_there else []

    context = CommandContext(
        tenant_id=tenant_id,
        principal=WORKER,
        # The revision tells the text: a digest of it in an id, which outlives the text, would let it be guessed.
        command_id=derived_id("embed", str(entry_id), stamp, str(row["revision"])),
        # Not the vectors: another machine's may differ in the last bit, and the first ones stored are as good.
        command_digest=digest_of([str(entry_id), digest, stamp]),
    )
    return Command(context, [(TEXT_NOW, {"tenant_id": tenant_id, "entry_id": entry_id})], decide)
