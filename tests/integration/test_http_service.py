"""What holds for every route: problems, request ids, probes."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator

import psycopg
import pytest
import structlog
from starlette.testclient import TestClient

from grandbo.embedding import Embedder
from grandbo.errors import EmbedderTransient, GrandboError, LogDamaged, TenantBusy
from grandbo.http.app import build_app
from grandbo.http.health import REMEMBERED_SECONDS, WORKER_SILENT_SECONDS, Readiness
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import BASE_URL, Clock, client_of, make_token
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import Switchable, words_embedder

TOPIC = "consumers lost their leases after the broker restarted"
PROBLEM_FIELDS = {"type", "title", "status", "code", "detail", "request_id"}


@pytest.fixture
def failing(grandbo: Grandbo) -> TestClient:
    """An application with routes that fail in every way."""
    app = build_app(grandbo)
    failures: dict[str, Exception] = {
        "unexpected": ValueError("a secret of the row"),
        "driver": psycopg.errors.CheckViolation("DETAIL: a secret of the row"),
        "damaged": LogDamaged("position 7"),
        "busy": TenantBusy(),
        "throttled": EmbedderTransient(retry_after=7.2),
    }

    def fail(how: str) -> None:
        raise failures[how]

    app.add_api_route("/fail/{how}", fail)
    return TestClient(app, base_url=BASE_URL)


class TestProblems:
    @pytest.mark.parametrize(
        ("method", "path", "status", "code"),
        [
            ("GET", "/nothing", 404, "route_unknown"),
            ("GET", "/v1/nothing", 404, "route_unknown"),
            ("POST", "/v1/findings/", 404, "route_unknown"),
            ("POST", "/V1/findings", 404, "route_unknown"),
            ("GET", "/docs", 404, "route_unknown"),
            ("GET", "/v1/findings", 405, "method_not_allowed"),
            ("DELETE", "/v1/recall", 405, "method_not_allowed"),
            ("BREW", "/v1/recall", 405, "method_not_allowed"),
            ("POST", "/livez", 405, "method_not_allowed"),
        ],
    )
    def test_the_router_answers_in_the_same_form(
        self, grandbo: Grandbo, method: str, path: str, status: int, code: str
    ) -> None:
        """Unknown addresses and methods are problems like all others."""
        answer = client_of(grandbo).request(method, path)

        assert (status, code, "application/problem+json") == (
            answer.status_code,
            answer.json()["code"],
            answer.headers["content-type"],
        )
        assert set(answer.json()) == PROBLEM_FIELDS
        assert (status != 405) or answer.headers["allow"]

    def test_an_unexpected_failure_tells_nothing_but_its_request_id(self, failing: TestClient) -> None:
        """500; the log has type and place under that id, and no value anywhere."""
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(0))

        for how, kind in (("unexpected", "ValueError"), ("driver", "psycopg.errors.CheckViolation")):
            with structlog.testing.capture_logs() as logs:
                answer = failing.get(f"/fail/{how}")

            failed = next(line for line in logs if line["event"] == "request_failed")
            assert (500, "internal_error") == (answer.status_code, answer.json()["code"])
            assert (kind, answer.json()["request_id"]) == (failed["error"], failed["request_id"])
            assert "secret" not in answer.text + json.dumps(logs)

    @pytest.mark.parametrize(("how", "status", "wait"), [("busy", 503, "2"), ("throttled", 503, "8")])
    def test_what_is_down_says_when_to_try_again(self, failing: TestClient, how: str, status: int, wait: str) -> None:
        """503 with Retry-After, in whole seconds, rounded up."""
        answer = failing.get(f"/fail/{how}")

        assert (status, wait) == (answer.status_code, answer.headers["retry-after"])

    def test_an_error_of_ours_keeps_its_code_at_500(self, failing: TestClient) -> None:
        """A damaged log is told by its own code."""
        answer = failing.get("/fail/damaged")

        assert (500, "log_damaged") == (answer.status_code, answer.json()["code"])

    def test_every_error_class_has_a_status_and_a_code_of_its_own(self) -> None:
        """Callers tell errors apart by their codes, so no two classes share one."""
        classes: list[type[GrandboError]] = [GrandboError]
        for known in classes:
            classes.extend(known.__subclasses__())
        public = [known for known in dict.fromkeys(classes) if known.__module__.startswith("grandbo.")]

        assert len(public) == len({known.code for known in public})
        assert all(400 <= known.http_status <= 599 for known in public)


class TestRequestId:
    def test_a_sane_one_is_kept(self, grandbo: Grandbo) -> None:
        """On answers and in problems."""
        answer = client_of(grandbo).post("/v1/recall", headers={"X-Request-Id": "trace-42.a_B"})

        assert ("trace-42.a_B", "trace-42.a_B") == (answer.headers["x-request-id"], answer.json()["request_id"])

    @pytest.mark.parametrize("given", ["", "a b", "x" * 65, '"><script>', "caf\u00e9"])
    def test_any_other_is_replaced(self, grandbo: Grandbo, given: str) -> None:
        """What could break a log or a page is not repeated."""
        headers = [(b"X-Request-Id", given.encode("latin-1"))]

        answer = client_of(grandbo).get("/livez", headers=headers)

        assert str(uuid.UUID(answer.headers["x-request-id"])) == answer.headers["x-request-id"]

    def test_answers_are_kept_nowhere(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """No cache on the way stores what one principal was told."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))

        answers = [client.post("/v1/recall", json={"topic": TOPIC}), client.post("/v1/recall"), client.get("/nothing")]

        assert [("no-store", "nosniff")] * 3 == [
            (answer.headers["cache-control"], answer.headers["x-content-type-options"]) for answer in answers
        ]


class TestProbes:
    def test_a_working_service_is_live_and_ready(self, grandbo: Grandbo) -> None:
        """Without a credential; `/healthz` is another name for `/readyz`."""
        client = client_of(grandbo)

        answers = [client.get(path) for path in ("/livez", "/readyz", "/healthz")]

        assert [(200, "live"), (200, "ready"), (200, "ready")] == [
            (answer.status_code, answer.json()["status"]) for answer in answers
        ]

    def test_it_is_not_ready_while_it_ends(self, grandbo: Grandbo) -> None:
        """503 at once, though still alive."""
        readiness = Readiness(grandbo)
        client = client_of(grandbo, readiness=readiness)
        client.get("/readyz")

        readiness.stop()

        answer = client.get("/readyz")
        assert (503, "not_ready", ["shutting_down"]) == (
            answer.status_code,
            answer.json()["code"],
            answer.json()["reasons"],
        )
        assert answer.headers["retry-after"]
        assert 200 == client.get("/livez").status_code

    def test_it_is_not_ready_on_a_schema_that_does_not_fit(self, server: TestServer) -> None:
        """A database that was migrated further meanwhile is the reason; it is asked once a second, whoever probes."""
        clock = Clock()
        with server.clone() as database, Grandbo.open(settings=database.settings()) as opened:
            readiness = Readiness(opened, clock=clock)
            before = readiness.reasons()
            with database.as_admin() as admin:
                admin.execute("UPDATE grandbo.alembic_version SET version_num = 'from-the-future'")
            clock.now += REMEMBERED_SECONDS - 0.1
            remembered = readiness.reasons()
            clock.now += 0.1

            assert ([], [], ["database_newer"]) == (before, remembered, readiness.reasons())

    def test_it_is_not_ready_with_all_connections_out(self, database: TestDatabase) -> None:
        """Requests would only wait."""
        with Grandbo.open(settings=database.settings(pool_size=1)) as opened:
            readiness = Readiness(opened)
            with opened.database.pool.connection():
                exhausted = readiness.reasons()

            assert (["pool_exhausted"], []) == (exhausted, Readiness(opened).reasons())

    def test_a_worker_that_ended_is_noticed(self, server: TestServer) -> None:
        """A worker that should be there and is not is a reason; none started is not."""
        clock = Clock()
        with (
            server.clone() as database,
            Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened,
        ):
            readiness = Readiness(opened, clock=clock)
            without = readiness.reasons()
            opened.start_worker()
            (thread,) = [known for known in threading.enumerate() if known.name == "grandbo-embedding"]
            worker = opened.worker
            assert worker is not None
            worker.stop()
            thread.join(30)
            clock.now += REMEMBERED_SECONDS

            assert ([], ["worker_ended"]) == (without, readiness.reasons())

    def test_a_worker_that_fell_silent_is_noticed(self, server: TestServer) -> None:
        """A worker whose provider hangs for minutes on end is a reason; one that is merely slow is not."""
        provider = Switchable()
        with (
            server.clone() as database,
            Grandbo.open(settings=database.settings(), embedder=Embedder(provider)) as opened,
        ):
            opened.create_tenant("silent")
            opened.tenant("silent").record_finding(make_finding())
            provider.gate.clear()
            clock = Clock()
            clock.now = time.monotonic()
            readiness = Readiness(opened, clock=clock)
            opened.start_worker()
            try:
                clock.now += WORKER_SILENT_SECONDS - 1
                recent = readiness.reasons()
                clock.now += WORKER_SILENT_SECONDS

                assert ([], ["worker_silent"]) == (recent, readiness.reasons())
            finally:
                provider.gate.set()


@pytest.fixture(autouse=True)
def _structlog_as_before() -> Iterator[None]:
    """Tests that look at log lines open the filter; it is closed again."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)
