"""Topics that are asked at once go to the provider together, and none has to pay for another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from grandbo.embedding.provider import Vectors
from grandbo.embedding.together import Together
from grandbo.errors import EmbedderRefused, EmbedderTransient


class Slow:
    """A provider whose first call lasts until it is let go."""

    def __init__(self, answer: Callable[[list[str]], Vectors] | None = None) -> None:
        self.calls: list[list[str]] = []
        self.go_on = threading.Event()
        self.begun = threading.Event()
        self._answer = answer or _numbers

    def embed(self, texts: list[str]) -> Vectors:
        self.calls.append(texts)
        if len(self.calls) == 1:
            self.begun.set()
            assert self.go_on.wait(20)
        return self._answer(texts)


def _numbers(texts: list[str]) -> Vectors:
    return np.array([[float(text)] for text in texts], np.float32)


@contextmanager
def _asked(together: Together, slow: Slow, texts: list[str]) -> Iterator[list[Future[Vectors]]]:
    """The first is on its way and all others wait; the provider goes on when the block begins."""
    with ThreadPoolExecutor(len(texts)) as threads:
        first = threads.submit(together.vector, texts[0])
        assert slow.begun.wait(20)
        others = [threads.submit(together.vector, text) for text in texts[1:]]
        while len(together._waiting) < len(others):
            threading.Event().wait(0.001)
        slow.go_on.set()
        yield [first, *others]


def test_those_that_come_while_it_is_busy_go_together() -> None:
    slow = Slow()
    together = Together(slow.embed, most=16, lanes=1)

    with _asked(together, slow, [str(number) for number in range(9)]) as asked:
        assert [float(number) for number in range(9)] == [one.result(20)[0] for one in asked]

    assert [1, 8] == [len(call) for call in slow.calls]


def test_no_call_has_more_than_the_most() -> None:
    slow = Slow()
    together = Together(slow.embed, most=3, lanes=1)

    with _asked(together, slow, [str(number) for number in range(8)]) as asked:
        assert [float(number) for number in range(8)] == [one.result(20)[0] for one in asked]

    assert [1, 3, 3, 1] == [len(call) for call in slow.calls]


def test_where_a_lane_is_free_nobody_waits() -> None:
    slow = Slow()
    together = Together(slow.embed, most=16, lanes=2)

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(together.vector, "1")
        assert slow.begun.wait(20)
        assert together.vector("2")[0] == 2.0
        slow.go_on.set()
        assert first.result(20)[0] == 1.0
    assert together._free == 2


def test_a_text_that_is_refused_keeps_none_of_the_others_from_theirs() -> None:
    def refusing(texts: list[str]) -> Vectors:
        if "13" in texts:
            raise EmbedderRefused("Not this one.", index=texts.index("13"))
        return _numbers(texts)

    slow = Slow(refusing)
    together = Together(slow.embed, most=16, lanes=1)

    with _asked(together, slow, ["1", "2", "13", "4"]) as asked:
        assert [1.0, 2.0, 4.0] == [asked[place].result(20)[0] for place in (0, 1, 3)]
        with pytest.raises(EmbedderRefused):
            asked[2].result(20)


def test_a_provider_that_is_down_is_down_for_all_and_asked_once() -> None:
    def failing(texts: list[str]) -> Vectors:
        if len(texts) > 1:
            raise EmbedderTransient
        return _numbers(texts)

    slow = Slow(failing)
    together = Together(slow.embed, most=16, lanes=1)

    with _asked(together, slow, ["1", "2", "3"]) as asked:
        assert asked[0].result(20)[0] == 1.0
        for one in asked[1:]:
            with pytest.raises(EmbedderTransient):
                one.result(20)
    assert len(slow.calls) == 2
    assert together.vector("4")[0] == 4.0


def test_an_interrupt_of_the_one_that_takes_others_along_leaves_none_waiting() -> None:
    def interrupted(texts: list[str]) -> Vectors:
        if len(texts) > 1:
            raise KeyboardInterrupt
        return _numbers(texts)

    slow = Slow(interrupted)
    together = Together(slow.embed, most=16, lanes=1)

    with _asked(together, slow, ["1", "2", "3"]) as asked:
        outcomes = [one.exception(20) for one in asked[1:]]

    assert {KeyboardInterrupt, EmbedderTransient} == {type(outcome) for outcome in outcomes}
    assert together.vector("4")[0] == 4.0


def test_an_interrupt_of_one_that_waits_leaves_the_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    together = Together(slow.embed, most=16, lanes=1)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(together.vector, "1")
        assert slow.begun.wait(20)
        last = None

        def break_off(*_: object) -> bool:
            # Promoted meanwhile, with somebody to take along.
            nonlocal last
            monkeypatch.undo()
            last = threads.submit(together.vector, "3")
            while len(together._waiting) < 2:
                threading.Event().wait(0.001)
            slow.go_on.set()
            first.result(20)
            raise KeyboardInterrupt

        monkeypatch.setattr(threading.Event, "wait", break_off)
        with pytest.raises(KeyboardInterrupt):
            together.vector("2")
        assert last is not None
        assert last.result(20)[0] == 3.0
    assert together._free == 1
