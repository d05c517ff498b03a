"""What the README shows is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Cli, write_lines
from tests.support.postgres import TestServer

README = (Path(__file__).parents[2] / "README.md").read_text()


def _block(language: str, containing: str) -> str:
    """The code block of the README that holds this."""
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return next(block for block in blocks if containing in block)


class TestReadme:
    def test_the_python_example_records_and_finds(self, server: TestServer) -> None:
        """As a script of its own, as a reader would run it; it prints the match that it promises."""
        with server.clone() as database:
            cli = Cli(GRANDBO_DATABASE_URL=database.service)
            finished = subprocess.run(
                [sys.executable, "-W", "error", "-c", _block("python", "Grandbo.open")],
                capture_output=True,
                text=True,
                env=cli.environment(),
            )

        assert 0 == finished.returncode, finished.stderr
        assert "Checkout stalled after the lease renewal failed" in finished.stdout

    def test_the_tour_works_from_top_to_bottom(
        self, server: TestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every command of it, in order, with the local model."""
        row = {"id": "1", "title": "Signing certificate expired", "summary": "Nobody could log in.", "source": "wiki"}
        write_lines(tmp_path / "incidents.jsonl", [{**row, "source_url": "https://example.com/1"}])
        monkeypatch.chdir(tmp_path)
        outputs = []
        with server.clone() as database:
            cli = Cli(GRANDBO_DATABASE_URL=database.service)
            for line in _block("sh", "grandbo tenant create").splitlines():
                words = re.findall(r'"[^"]*"|\S+', line)
                finished = cli(*(word.strip('"') for word in words[1:]))
                assert 0 == finished.code, (line, finished.err)
                outputs.append(finished.out)

        assert "1. Signing certificate expired" in outputs[3]
        assert "meaning: rank 1" in outputs[3]
        assert "rebuild equals live" in outputs[-1]
