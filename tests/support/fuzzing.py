"""The whole HTTP API under Schemathesis, in process: boundary values, random ones, and calls that follow each other."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import schemathesis
from fastapi import FastAPI
from hypothesis.errors import HypothesisDeprecationWarning
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.python import asgi

from grandbo.http.app import build_app
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import bearer
from tests.support.issuer import AUDIENCE, running_issuer
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

TOPIC = "consumers lost their leases after the broker restarted"
PHASES = ("examples", "coverage", "fuzzing", "stateful")
# What says no here beside what the tool expects: a limit is a 413, a state that has moved on a 412, none named a 428.
_REFUSALS = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "428", "429"]
_FAR_AWAY = 4_000_000_000

Change = Callable[[FastAPI], None]


@dataclass(slots=True)
class Report:
    """What came of a run."""

    cases: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"cases {dict(self.cases)}, statuses {dict(sorted(self.statuses.items()))}"


@contextmanager
def fuzzed_app(database: TestDatabase, memory: TenantMemory) -> Iterator[tuple[FastAPI, str]]:
    """
    An application with something in it, and a token that may do everything.

    The token is an issuer's: a key would sooner or later be among those that the run revokes.
    """
    for _ in range(3):
        memory.record_finding(make_finding())
    memory.propose(make_finding(), reason="seen in a postmortem")
    memory.query_topic(TOPIC)
    with running_issuer() as issuer:
        settings = database.settings(
            rate_limit="off", auth_failure_limit="off", oidc_issuer=issuer.url, oidc_audience=AUDIENCE
        )
        with Grandbo.open(settings=settings, embedder=words_embedder()) as opened:
            token = issuer.token(memory.tenant.name, roles=["admin"], exp=_FAR_AWAY)
            yield build_app(opened, allowed_hosts=[asgi.HOST]), token


def fuzz(
    app: FastAPI,
    token: str,
    *,
    examples: int,
    walks: int,
    seed: int,
    phases: tuple[str, ...] = PHASES,
    path: str | None = None,
) -> Report:
    """
    Call every operation that the document has, in every way that the tool knows; each answer is held to the document.

    Args:
        examples: random cases for each operation.
        walks: sequences of calls in which one takes what another gave.
        path: this path alone.
    """
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, config=_config(token, examples, walks, seed, phases))
    report = Report()
    # The tool's own strategies draw from `random`; that is for it to mend.
    warnings.filterwarnings("ignore", "Do not use the `random` module", HypothesisDeprecationWarning)
    for event in from_schema(schema.include(path=path) if path else schema).execute():
        if isinstance(event, events.ScenarioFinished):
            _note(event, report)
        elif isinstance(event, events.NonFatalError):
            # What Hypothesis calls flaky holds what failed, and says nothing of it itself.
            inside = [repr(error)[:2_000] for error in getattr(event.value, "exceptions", ())]
            report.errors.append("; ".join([f"{event.label}: {event.value!r}"[:500], *inside]))
        elif isinstance(event, events.FatalError):
            report.errors.append(repr(event.exception)[:500])
    return report


def _config(token: str, examples: int, walks: int, seed: int, phases: tuple[str, ...]) -> SchemathesisConfig:
    chosen: dict[str, Any] = {name: {"enabled": name in phases} for name in PHASES}
    chosen["stateful"]["generation"] = {"max-examples": walks}
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "headers": bearer(token),
            "workers": 1,
            "continue-on-failure": True,
            "generation": {"max-examples": examples, "database": "none"},
            "phases": chosen,
            "checks": {
                # Not all that a body must be can be said in a schema: that a topic is a sentence, that ids exist.
                "positive_data_acceptance": {"enabled": False},
                "negative_data_rejection": {"expected-statuses": _REFUSALS},
                "missing_required_header": {"expected-statuses": ["400", "401", "403", "404", "415", "422", "428"]},
            },
        }
    )


def _note(event: events.ScenarioFinished, report: Report) -> None:
    recorder = event.recorder
    for interaction in recorder.interactions.values():
        report.cases[event.phase.name.lower()] += 1
        if interaction.response is not None:
            report.statuses[interaction.response.status_code] += 1
    for case_id, checks in recorder.checks.items():
        for check in checks:
            if check.failure_info is None:
                continue
            response = recorder.interactions[case_id].response
            label = recorder.cases[case_id].value.operation.label
            told = check.failure_info.failure.message.replace("\n", " ")[:300]
            sent = check.failure_info.code_sample[:3_000]
            status = response.status_code if response is not None else None
            report.failures.append(f"{label}: {check.name}: {status}: {told}: {sent}")
