"""
Gathering: in a replay, what one event after another would do, done by few statements of many rows.

Events of different streams change different rows, so their order among themselves does not matter; within a stream it
does. So the first steps of all streams of a stretch come first, then the second ones, and of those that are the same
statement one is made, which takes its rows from arrays. It says what the projector's statement says, word for word:
each parameter is a column of what is given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.sql import visitors

from grandbo.events.log import RecordedEvent
from grandbo.projections import embeddings, entries, terms
from grandbo.projections.erasures import REACHING
from grandbo.projections.runner import steps_for
from grandbo.storage.compiling import ColumnOf, Executable
from grandbo.storage.database import Step
from grandbo.storage.tenancy import TENANT

# Statements of more events are hardly faster, and leave the server less to do while the next ones are made.
MOST_EVENTS = 250
# Fewer rows are faster one by one: a statement of many is planned each time.
FEWEST_ROWS = 6

# What nearly all of a log makes. The rest goes as it is.
_GATHERED = frozenset({terms.INSERT, entries.INSERT, entries.SNAPSHOT, embeddings.CLOSE, embeddings.INSERT})


def gathered(events: Iterable[RecordedEvent]) -> Iterator[Step]:
    """Statements that do together what the steps of the events do one by one, made when asked for."""
    for stretch in _stretches(events):
        of_stream: dict[UUID, list[Step]] = {}
        for event in stretch:
            of_stream.setdefault(event.header.stream_id, []).extend(steps_for([event]))
        for layer in zip_longest(*of_stream.values()):
            yield from _gathered_layer(step for step in layer if step is not None)


def _stretches(events: Iterable[RecordedEvent]) -> Iterator[list[RecordedEvent]]:
    """The events in order, so many at a time; one that reaches beyond its own stream is alone."""
    stretch: list[RecordedEvent] = []
    for event in events:
        reaches = isinstance(event.data, REACHING)
        if reaches or len(stretch) == MOST_EVENTS:
            yield stretch
            stretch = []
        stretch.append(event)
        if reaches:
            yield stretch
            stretch = []
    yield stretch


def _gathered_layer(layer: Iterable[Step]) -> Iterator[Step]:
    rows: dict[Executable, list[Mapping[str, Any]]] = {}
    for statement, params in layer:
        rows.setdefault(statement, []).append(params)
    for statement, given in rows.items():
        if statement in _GATHERED and len(given) >= FEWEST_ROWS:
            yield _of_many(statement).step(given)
        else:
            yield from ((statement, params) for params in given)


@dataclass(frozen=True, slots=True)
class _OfMany:
    """A statement of many rows, and how the values of each of its parameters are written."""

    statement: Executable
    written: Mapping[str, Callable[[Any], Any] | None]

    def step(self, rows: Sequence[Mapping[str, Any]]) -> Step:
        """The statement with these rows, which are of one tenant."""
        params = {name: _column((row[name] for row in rows), write) for name, write in self.written.items()}
        return self.statement, {TENANT.key: rows[0][TENANT.key], **params}


def _column(values: Iterable[Any], write: Callable[[Any], Any] | None) -> list[Any]:
    return list(values) if write is None else [None if value is None else write(value) for value in values]


@lru_cache
def _of_many(statement: sa.Insert | sa.Update) -> _OfMany:
    """The same statement with a column of what is given in the place of each parameter, the tenant's excepted."""
    parameters = {
        element.key: element.type
        for element in visitors.iterate(statement)
        if isinstance(element, sa.BindParameter) and element.required and element.key != TENANT.key
    }
    written = {name: _written(type_) for name, type_ in parameters.items()}
    types = {name: parameters[name] if write is None else sa.Text() for name, write in written.items()}
    arrays = [sa.bindparam(name, type_=ColumnOf(type_)) for name, type_ in types.items()]
    columns = [sa.column(name, type_) for name, type_ in types.items()]
    given = sa.func.unnest(*arrays).table_valued(*columns).render_derived("given")

    def column_of(element: Any, **_: Any) -> Any:
        if not isinstance(element, sa.BindParameter) or element.key not in parameters:
            return None
        column = given.c[element.key]
        return column if written[element.key] is None else sa.cast(column, element.type)

    of_many: Any = visitors.replacement_traverse(statement, {}, column_of)
    return _OfMany(of_many, written)


def _written(type_: sa.types.TypeEngine[Any]) -> Callable[[Any], str] | None:
    """An array cannot be an element of an array, a document can but only wrapped: both go as their text."""
    match type_:
        case pg.JSONB():
            return json.dumps
        case sa.ARRAY():
            return _array_text
        case _:
            return None


def _array_text(values: Sequence[str | bytes | None]) -> str:
    return "{" + ",".join(map(_element_text, values)) + "}"


def _element_text(value: str | bytes | None) -> str:
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else f"\\x{value.hex()}"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
