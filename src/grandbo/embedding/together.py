"""
Texts that several callers want embedded at once go to the provider in one call, which costs less than one call each.

Nobody waits for company: where a lane is free, a text goes at once and alone. Those that come while all lanes are taken
go together when the next one is free.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from grandbo.embedding.provider import Vectors
from grandbo.errors import EmbedderError, EmbedderRefused, EmbedderTransient


class _Asked:
    """One text on its way: its vector or error, or the batch that its caller is to take along."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.settled = threading.Event()
        self.batch: list[_Asked] | None = None
        self.vector: Vectors | None = None
        self.error: EmbedderError | None = None

    def outcome(self) -> Vectors:
        if self.error is not None:
            raise self.error
        assert self.vector is not None
        return self.vector


class Together:
    """Safe to share between threads."""

    def __init__(self, embed: Callable[[list[str]], Vectors], *, most: int, lanes: int) -> None:
        """
        Args:
            embed: gives one row a text, in order, or raises an `EmbedderError`.
            most: texts in one call at most.
            lanes: calls at once at most.
        """
        self._embed = embed
        self._most = most
        self._free = lanes
        self._waiting: deque[_Asked] = deque()
        self._lock = threading.Lock()

    def vector(self, text: str) -> Vectors:
        """The vector of one text. A text that is refused keeps none of the others from theirs."""
        asked = _Asked(text)
        with self._lock:
            if self._free:
                self._free -= 1
                asked.batch = [asked]
            else:
                self._waiting.append(asked)
        if asked.batch is None:
            try:
                asked.settled.wait()
            except BaseException:
                self._leave(asked)
                raise
        if asked.batch is not None:
            self._carry_out(asked.batch)
        return asked.outcome()

    def _leave(self, asked: _Asked) -> None:
        """Somebody is interrupted while waiting: those that he was to take along must not wait for him."""
        with self._lock:
            if asked in self._waiting:
                self._waiting.remove(asked)
            others = (asked.batch or [])[1:]
            self._waiting.extendleft(reversed(others))
        if asked.batch is not None:
            self._hand_on()

    def _carry_out(self, batch: list[_Asked]) -> None:
        try:
            self._settle(batch)
        finally:
            for asked in batch:
                if asked.vector is None and asked.error is None:
                    # The caller who took it along was interrupted.
                    asked.error = EmbedderTransient()
                asked.settled.set()
            self._hand_on()

    def _settle(self, batch: list[_Asked]) -> None:
        try:
            rows = self._embed([asked.text for asked in batch])
        except EmbedderRefused as error:
            if len(batch) == 1:
                batch[0].error = error
                return
            for asked in batch:
                self._settle([asked])
        except EmbedderError as error:
            for asked in batch:
                asked.error = error
        else:
            for asked, row in zip(batch, rows, strict=True):
                asked.vector = row

    def _hand_on(self) -> None:
        """Let one of those who wait take the others along; the lane is free where nobody does."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            batch = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            batch[0].batch = batch
        batch[0].settled.set()
