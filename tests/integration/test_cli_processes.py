"""The command line as processes: pipes, signals, and a home of its own."""

from __future__ import annotations

import json
import queue
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
import typer
from typer.testing import CliRunner

from grandbo.cli.call import Call, command
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.embedded import open_folder, remove
from tests.support.factories import make_finding
from tests.support.hooks import make_tool
from tests.support.postgres import TestDatabase, TestServer

TOPIC = "the checkout queue stalled because a lease renewal failed"
SECONDS = 60.0


@pytest.fixture
def cli(database: TestDatabase, memory: TenantMemory) -> Cli:
    """The command line on the tests' database and the test's tenant."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)


@pytest.fixture
def home() -> Iterator[Path]:
    """A home for an embedded server of one's own."""
    folder = open_folder()
    yield folder / "home"
    remove(folder, folder / "home")


def _line_with(stream: IO[bytes] | None, wanted: str) -> str:
    """Read lines until one holds what is wanted."""
    assert stream is not None
    # A thread, for a wait on the descriptor would not see the lines that the reader has taken from it already.
    lines: queue.Queue[bytes] = queue.Queue()

    def read() -> None:
        for line in iter(stream.readline, b""):
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    deadline, seen = time.monotonic() + SECONDS, [""]
    while wanted not in seen[-1]:
        try:
            seen.append(lines.get(timeout=max(0.0, deadline - time.monotonic())).decode())
        except queue.Empty:
            raise AssertionError(f"no {wanted!r} in {seen}") from None
    return seen[-1]


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    process.send_signal(number)
    process.communicate(timeout=SECONDS)
    return process.returncode


class TestPipes:
    def test_a_reader_that_leaves_early_is_no_error(self, cli: Cli, memory: TenantMemory) -> None:
        """The pipe is closed before anything is written: no traceback, no complaint, the code of SIGPIPE."""
        memory.record_finding(make_finding())
        process = cli.process("recall", TOPIC, "--json")
        assert process.stdout
        process.stdout.close()
        process.stdout = None

        _, err = process.communicate(timeout=SECONDS)

        assert (141, b"") == (process.returncode, err)

    def test_answers_go_to_stdout_and_all_else_to_stderr(self, cli: Cli, memory: TenantMemory) -> None:
        """Stdout is one JSON object, to the last byte."""
        finished = cli.run("record", "-", "--json", stdin=json.dumps(make_finding()).encode())

        assert (0, True, "") == (finished.code, finished.document["created"], finished.err)

    def test_output_is_utf_8_whatever_the_locale(self, cli: Cli, memory: TenantMemory) -> None:
        """A title in any script survives a pipe under an ASCII locale."""
        memory.record_finding(make_finding(title="Zażółć 障害 checkout queue stalled lease renewal"))
        plain = Cli(**cli.variables, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")

        assert "Zażółć 障害" in plain.run("recall", TOPIC).out

    def test_mistakes_in_options_exit_with_2(self, cli: Cli) -> None:
        """Usage text on stderr, nothing on stdout."""
        finished = cli.run("recall", TOPIC, "--mode", "guess")

        assert (2, "") == (finished.code, finished.out)
        assert "--mode" in finished.err


class TestSignals:
    # A database of its own: a worker works for all tenants, and would embed what every other test has left.
    @pytest.fixture
    def database(self, server: TestServer) -> Iterator[TestDatabase]:
        """An empty one."""
        with server.clone() as made:
            yield made

    @pytest.fixture
    def alone(self, database: TestDatabase) -> Iterator[Grandbo]:
        """An open memory on it."""
        with Grandbo.open(settings=database.settings()) as opened:
            yield opened

    @pytest.fixture
    def memory(self, alone: Grandbo, tenant_name: str) -> TenantMemory:
        """Its only tenant."""
        alone.create_tenant(tenant_name)
        return alone.tenant(tenant_name, principal="human:tester")

    def test_the_worker_embeds_and_ends_with_0_on_sigterm(self, cli: Cli, memory: TenantMemory) -> None:
        """It drains the backlog by itself, and stops after the batch in hand."""
        memory.record_finding(make_finding())
        local = Cli(**{**cli.variables, "GRANDBO_EMBEDDER": "local"})
        process = local.process("worker")
        _line_with(process.stderr, "watches the backlog")
        deadline = time.monotonic() + SECONDS
        while local("embed", "--json").document["pending"]:
            assert time.monotonic() < deadline, "the worker did not embed"

        assert 0 == _end(process, signal.SIGTERM)

    def test_the_worker_ends_with_130_on_ctrl_c(self, cli: Cli) -> None:
        """As any command that is interrupted."""
        process = Cli(**{**cli.variables, "GRANDBO_EMBEDDER": "local"}).process("worker")
        _line_with(process.stderr, "watches the backlog")

        assert 130 == _end(process, signal.SIGINT)

    def test_a_worker_without_an_embedder_does_the_rest(self, cli: Cli, alone: Grandbo, memory: TenantMemory) -> None:
        """What hooks delivered is mapped all the same; SIGTERM ends it with 0."""
        tool = make_tool(alone, memory)
        delivery = tool.tell("resolved")
        process = cli.process("worker")
        _line_with(process.stderr, "watches the backlog")
        deadline = time.monotonic() + SECONDS
        while tool.state(delivery)["state"] == "received":
            assert time.monotonic() < deadline, "the worker did not map"

        assert 0 == _end(process, signal.SIGTERM)

    def test_up_serves_and_ends_with_0_on_sigterm(self, cli: Cli) -> None:
        """It says where it listens, answers there, and leaves in good order."""
        process = cli.process("up", "--port", "0")
        url = _line_with(process.stderr, "Grandbo listens on").split()[-1]

        with urllib.request.urlopen(f"{url}/livez", timeout=SECONDS) as answer:
            assert 200 == answer.status
        assert 0 == _end(process, signal.SIGTERM)


class TestUnexpectedErrors:
    def test_a_bug_is_told_without_what_it_held(self) -> None:
        """Exit code 70 and the exception's type; its message may quote what was stored."""
        app = typer.Typer()

        @command(app, "burst")
        def burst(call: Call) -> None:
            raise LookupError("the customer's own words")

        finished = CliRunner().invoke(app, ["--json"], env={"GRANDBO_LOG_LEVEL": "INFO"})

        assert 70 == finished.exit_code
        assert "LookupError" in finished.stderr
        assert "customer" not in finished.stderr
        assert "internal_error" == json.loads(finished.stderr)["error"]["code"]

    def test_the_traceback_is_there_for_who_asks(self) -> None:
        """At GRANDBO_LOG_LEVEL=DEBUG."""
        app = typer.Typer()

        @command(app, "burst")
        def burst(call: Call) -> None:
            raise LookupError("here")

        finished = CliRunner().invoke(app, [], env={"GRANDBO_LOG_LEVEL": "DEBUG"})

        assert "Traceback" in finished.stderr


class TestOwnHome:
    def test_from_nothing_to_an_answer_and_again(self, home: Path) -> None:
        """The demo starts a server in the home, imports the sample, answers five topics; then all is unchanged."""
        cli = Cli(GRANDBO_HOME=str(home), GRANDBO_EMBEDDER="none", GRANDBO_DATABASE_URL="postgresql://ignored:9/x")

        first, second = cli.run("demo", "--json"), cli.run("demo")
        went_on = Cli(GRANDBO_HOME=str(home), GRANDBO_EMBEDDER="none", GRANDBO_TENANT="demo")
        migrated, verified = went_on.run("migrate", "--json"), went_on.run("audit", "verify", "--json")

        assert 0 == first.code, first.err
        assert (151, 0) == (first.document["import"]["recorded"], first.document["import"]["refused"])
        assert 5 == len(first.document["topics"])
        assert 0 == second.code, second.err
        assert "0 recorded, 151 unchanged" in second.err
        assert "How to go on" in second.out
        assert str(home) in second.out
        assert migrated.document["before"] == migrated.document["after"]
        assert (0, 152) == (verified.code, verified.document["tenants"][0]["events"])

    def test_migrate_makes_a_home(self, home: Path) -> None:
        """Before there was nothing; afterwards it is at the newest revision."""
        migrated = Cli(GRANDBO_HOME=str(home)).run("migrate", "--json")

        assert 0 == migrated.code, migrated.err
        assert migrated.document["before"] is None
        assert migrated.document["after"]


class TestSetupScript:
    def test_a_python_that_is_too_old_is_named_with_the_way_out(self, tmp_path: Path) -> None:
        """In a path with spaces: exit code 3, what is there, and what to install."""
        checkout, bin_folder = tmp_path / "a checkout", tmp_path / "bin"
        (checkout / "scripts").mkdir(parents=True)
        bin_folder.mkdir()
        shutil.copy(Path(__file__).parents[2] / "scripts" / "setup", checkout / "scripts")
        for tool in ("dirname", "sh"):
            found = shutil.which(tool)
            assert found
            (bin_folder / tool).symlink_to(found)
        old = bin_folder / "python3"
        old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
        old.chmod(0o755)

        finished = subprocess.run(
            [checkout / "scripts" / "setup", "demo"], capture_output=True, text=True, env={"PATH": str(bin_folder)}
        )

        assert 3 == finished.returncode, finished.stderr
        assert "Python 3.9.2" in finished.stderr
        assert "PYTHON=" in finished.stderr
