"""A projector is a function of the event alone: no clock, no chance, no ids, no environment, no model."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import sqlalchemy as sa

from grandbo.events.erasures import EntryRedacted
from grandbo.events.log import RecordedEvent
from grandbo.events.registry import EVENT_TYPES
from grandbo.projections.erasures import REACHING
from grandbo.projections.runner import PROJECTORS
from grandbo.storage.tables import policies
from tests.support.events import FORMS, golden_event

PROJECTIONS = Path(__file__).parents[2] / "src" / "grandbo" / "projections"

# `datetime` and `uuid` for their types would be no harm, but no projector needs them, and their other half is.
FORBIDDEN_MODULES = {
    "datetime",
    "time",
    "random",
    "secrets",
    "uuid",
    "uuid_utils",
    "os",
    "platform",
    "socket",
    "threading",
    "psycopg",
    "grandbo.settings",
    "grandbo.embedding",
    "grandbo.memory",
    "grandbo.recall",
    "grandbo.workers",
}
FORBIDDEN_NAMES = {"new_id", "utc_now", "Database", "Transaction"}
FORBIDDEN_FUNCTIONS = {"now", "clock_timestamp", "current_timestamp", "random", "gen_random_uuid", "next_value"}


def projectors() -> list[Path]:
    """The modules that define a projector."""
    return [
        path
        for path in sorted(PROJECTIONS.glob("*.py"))
        if any(
            isinstance(node, ast.FunctionDef) and node.name == "project" for node in ast.parse(path.read_text()).body
        )
    ]


def impurities(source: str) -> list[str]:
    """What in a module could make two replays differ."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if _is_forbidden(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found += [module] if _is_forbidden(module) else []
            found += [alias.name for alias in node.names if alias.name in FORBIDDEN_NAMES]
            found += [alias.name for alias in node.names if _is_forbidden(f"{module}.{alias.name}")]
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_FUNCTIONS:
            found.append(node.attr)
        elif isinstance(node, ast.Name) and node.id == "hash":
            found.append("hash")  # salted: another in every process
    return found


def _is_forbidden(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in FORBIDDEN_MODULES)


def _plain(steps: list[tuple[Any, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return [(id(statement), {name: _value(value) for name, value in params.items()}) for statement, params in steps]


def _value(value: object) -> object:
    return value.tobytes() if isinstance(value, np.ndarray) else value


EVENTS = [
    pytest.param(golden_event(event_type, form), id=f"{event_type} {form}")
    for event_type in EVENT_TYPES
    for form in FORMS
]


class TestProjectors:
    @pytest.mark.parametrize("path", projectors(), ids=lambda path: path.stem)
    def test_it_has_nothing_but_the_event(self, path: Path) -> None:
        """Nothing that a projector module imports or calls could differ between two replays."""
        assert [] == impurities(path.read_text())

    def test_all_of_them_run(self) -> None:
        """Every projector that is defined is one that the runner runs, in append and replay alike."""
        defined = {importlib.import_module(f"grandbo.projections.{path.stem}").project for path in projectors()}

        assert defined == set(PROJECTORS)

    @pytest.mark.parametrize("event", EVENTS)
    def test_the_same_event_gives_the_same_steps(self, event: RecordedEvent) -> None:
        """Twice the same event is twice the same statements with the same values."""
        first = [_plain(projector(event)) for projector in PROJECTORS]
        second = [_plain(projector(event)) for projector in PROJECTORS]

        assert first == second
        # What is left of other events is read in their place before any projector sees them.
        assert any(first) is not (event.header.event_type == EntryRedacted.EVENT_TYPE)

    @pytest.mark.parametrize("event", EVENTS)
    def test_an_erased_body_projects_to_nothing(self, event: RecordedEvent) -> None:
        """An event whose body is gone leaves no row behind, and is no error."""
        erased = RecordedEvent(event.header, "", None, None, event.prev_hash, event.hash, None)

        assert [[]] * len(PROJECTORS) == [projector(erased) for projector in PROJECTORS]

    @pytest.mark.parametrize("event", EVENTS)
    def test_each_step_is_of_the_stream_of_its_event(self, event: RecordedEvent) -> None:
        """A replay may take events of different streams in another order, unless it knows them to reach further."""
        if isinstance(event.data, REACHING):
            return
        steps = [step for projector in PROJECTORS for step in projector(event)]
        strange = [statement for statement, params in steps if event.header.stream_id not in params.values()]

        # A tenant has one policy, and one stream of it.
        assert all(cast(sa.Insert | sa.Update, statement).table is policies for statement in strange)


class TestThisCheck:
    @pytest.mark.parametrize(
        "source",
        [
            "import time",
            "from datetime import datetime",
            "from uuid import uuid4",
            "import os.path",
            "from grandbo.types import new_id",
            "from grandbo import settings",
            "from grandbo.embedding import Embedder",
            "from grandbo.storage.database import Step, Transaction",
            "sa.func.now()",
            "sa.func.gen_random_uuid()",
            "hash('x')",
        ],
    )
    def test_an_impurity_is_seen(self, source: str) -> None:
        """Each way to a clock, to chance or to the outside is reported."""
        assert [] != impurities(source)
