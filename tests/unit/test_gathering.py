"""Gathering: what may be done together is, and what came after something still does."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
import sqlalchemy as sa

from grandbo.events.log import RecordedEvent
from grandbo.projections.gathering import FEWEST_ROWS, MOST_EVENTS, gathered
from grandbo.projections.runner import steps_for
from grandbo.storage.database import Step
from tests.support.events import golden_event

MANY = list(range(11, 11 + FEWEST_ROWS))


def _recorded(*streams: int) -> list[RecordedEvent]:
    return [
        golden_event("entry_recorded", "full", position=position, stream=stream)
        for position, stream in enumerate(streams, 1)
    ]


def _said(events: list[RecordedEvent]) -> list[tuple[str, Any]]:
    """Of each statement the table, and the entries that its rows are of."""
    said = []
    for statement, params in gathered(events):
        entries = params.get("entry_id", params.get("ids"))
        rows = entries if isinstance(entries, list) else [entries]
        table = cast(sa.Insert, statement).table
        said.append((table.name.removeprefix("org_memory_"), [uuid.UUID(str(row)).int for row in rows]))
    return said


def _key(step: Step) -> tuple[str, str]:
    statement, params = step
    return str(statement), str(params)


class TestGathering:
    def test_events_of_different_streams_are_done_together_step_by_step(self) -> None:
        """One statement for the first steps of all, one for the second ones, in the order that a single event has."""
        assert [("terms", MANY), ("entries", MANY), ("revisions", MANY)] == _said(_recorded(*MANY))

    def test_a_stream_that_comes_again_goes_on_after_what_it_had(self) -> None:
        """No statement has two events of one stream, and the later one comes after all of the earlier one."""
        assert [
            *(("terms", MANY), ("entries", MANY), ("revisions", MANY)),
            *(("terms", [11]), ("entries", [11]), ("revisions", [11])),
        ] == _said(_recorded(11, *MANY[1:], 11))

    @pytest.mark.parametrize("erasure", ["entry_erased", "subject_erased"])
    def test_an_erasure_stands_alone(self, erasure: str) -> None:
        """What is erased was made before, and what comes after is not erased."""
        first, last = _recorded(11, 12)
        alone = golden_event(erasure, "full", position=9, stream=13)

        assert [*steps_for([first]), *steps_for([alone]), *steps_for([last])] == list(gathered([first, alone, last]))

    def test_a_few_events_are_done_one_by_one(self) -> None:
        """Where there is little to gather, the statements are the projectors' own."""
        few = _recorded(*MANY[1:])

        assert sorted(map(_key, steps_for(few))) == sorted(map(_key, gathered(few)))

    def test_no_statement_grows_without_bounds(self) -> None:
        """Of very many events each statement has so many and no more."""
        rows = [len(entries) for _, entries in _said(_recorded(*range(MOST_EVENTS * 2 + 1)))]

        assert [MOST_EVENTS] * 6 + [1] * 3 == rows
