"""The API and its document are one: every operation called in every way, each answer held to what is documented."""

from __future__ import annotations

import random

import pytest
from fastapi import FastAPI

from grandbo.library import TenantMemory
from tests.support.fuzzing import PHASES, fuzz, fuzzed_app
from tests.support.postgres import TestDatabase

SEED = 20_260_102


class TestDocument:
    def test_no_answer_is_one_that_the_document_does_not_have(
        self, database: TestDatabase, memory: TenantMemory
    ) -> None:
        """No 5xx, no undocumented status, header or shape; what is not valid is refused; no way around the token."""
        with fuzzed_app(database, memory) as (app, token):
            report = fuzz(app, token, examples=2, walks=15, seed=SEED)

        assert [] == report.failures
        assert not report.errors, "\n".join(report.errors)
        assert set(PHASES) == {phase.removesuffix("_testing") for phase in report.cases}
        assert {200, 201, 204, 400, 401, 404, 409, 412, 413, 415, 422, 428} <= report.statuses.keys()
        assert memory.verify().first_bad is None

    @pytest.mark.parametrize("status", ["200", "422"])
    def test_an_undocumented_answer_would_be_found(
        self, database: TestDatabase, memory: TenantMemory, status: str
    ) -> None:
        """With one status taken out of the document."""
        with fuzzed_app(database, memory) as (app, token):
            del app.openapi()["paths"]["/v1/entries"]["get"]["responses"][status]
            report = fuzz(app, token, examples=1, walks=1, seed=SEED, phases=("coverage",), path="/v1/entries")

        assert any("status_code_conformance" in failure for failure in report.failures)

    def test_a_fault_of_the_server_would_be_found(self, database: TestDatabase, memory: TenantMemory) -> None:
        """With a route that fails."""
        with fuzzed_app(database, memory) as (app, token):
            _add_faulty_route(app)
            report = fuzz(app, token, examples=1, walks=1, seed=SEED, phases=("coverage",), path="/v1/faulty")

        assert any("not_a_server_error" in failure for failure in report.failures)

    @pytest.mark.campaign
    def test_no_answer_is_one_that_the_document_does_not_have_in_a_long_run(
        self, database: TestDatabase, memory: TenantMemory, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """The same with many more cases and another seed each time; prints the seed and what came of it."""
        seed = random.SystemRandom().randrange(2**32)
        with fuzzed_app(database, memory) as (app, token):
            report = fuzz(app, token, examples=200, walks=400, seed=seed)

        with capsys.disabled():
            print(f"\nschemathesis: seed {seed}, {report}")
        assert [] == report.failures, f"seed {seed}"
        assert [] == report.errors, f"seed {seed}"


def _add_faulty_route(app: FastAPI) -> None:
    def faulty() -> None:
        raise RuntimeError

    app.add_api_route("/v1/faulty", faulty, methods=["GET"])
    app.openapi_schema = None
