"""What the documents say is so: settings, errors, options, words, links, licences."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.main import get_command

import grandbo.client
import grandbo.http.errors  # noqa: F401  # so that the errors of that door are known too
from grandbo.cli.main import app
from grandbo.errors import GrandboError
from grandbo.memory.policy import ROLE_ACTS
from grandbo.recall.answer import EmptyReason
from grandbo.sample import sample_lines
from grandbo.settings import Settings
from grandbo.types import KINDS

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
DATA = ROOT / "src" / "grandbo" / "data"


def _rows(page: str) -> dict[str, list[str]]:
    """The table rows of a page whose first cell is code: that code, and all cells."""
    rows = {}
    for line in (ROOT / page).read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if cells and (named := re.fullmatch(r"`([\w-]+)`", cells[0])):
            rows[named.group(1)] = cells
    return rows


def _errors(kind: type[GrandboError] = GrandboError) -> Iterator[type[GrandboError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _errors(narrower)


def _examples() -> list[str]:
    """Every `grandbo …` line in the shell blocks of all pages."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL):
            found += [line for line in block.splitlines() if line.startswith("grandbo ")]
    return found


class TestSettings:
    def test_every_setting_is_documented_and_no_other(self) -> None:
        """The page and the model name the same variables."""
        assert {f"GRANDBO_{name.upper()}" for name in Settings.model_fields} == _rows("docs/settings.md").keys()

    def test_the_defaults_are_the_documented_ones(self) -> None:
        """Where the default is a plain value, the page has it."""
        rows = _rows("docs/settings.md")
        for name, field in Settings.model_fields.items():
            if isinstance(field.default, str | int | float) and not isinstance(field.default, SecretStr):
                shown = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
                assert shown == rows[f"GRANDBO_{name.upper()}"][1].strip("`"), name


class TestErrors:
    def test_every_error_is_documented_with_its_status_and_exit_code(self) -> None:
        """The page and the classes agree, code by code."""
        rows = _rows("docs/errors.md")
        own = {kind.code: kind for kind in _errors() if kind.__module__.startswith("grandbo.")}

        assert own.keys() == rows.keys()
        for code, kind in own.items():
            assert [str(kind.http_status), str(kind.exit_code)] == rows[code][1:3], code


class TestCommandLine:
    @pytest.mark.parametrize("line", _examples())
    def test_every_example_is_a_command_that_exists(self, line: str) -> None:
        """Its command, arguments and options are accepted; nothing is run."""
        words = shlex.split(line, comments=True)[1:]
        group = get_command(app)
        context = group.make_context("grandbo", words)
        while context._protected_args or context.args or not getattr(group, "invoke_without_command", False):
            name, group, words = group.resolve_command(  # type: ignore[attr-defined]
                context, [*context._protected_args, *context.args]
            )
            context = group.make_context(name, words, parent=context)
            if not hasattr(group, "commands"):
                break

        assert {"tenant", "principal", "as_json"} <= context.params.keys()

    def test_every_command_is_documented(self) -> None:
        """`docs/cli.md` has an example of each."""
        text = (ROOT / "docs" / "cli.md").read_text()
        for name, found in get_command(app).commands.items():  # type: ignore[attr-defined]
            for full in [f"{name} {inner}" for inner in getattr(found, "commands", ())] or [name]:
                assert f"grandbo {full}" in text, full

    def test_the_roles_are_documented(self) -> None:
        """The page and the policy name the same roles."""
        assert ROLE_ACTS.keys() <= _rows("docs/cli.md").keys()


class TestPages:
    def test_the_first_screen_has_exactly_two_commands(self) -> None:
        """What it is, then `scripts/demo` and `scripts/test`."""
        blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

        assert ["scripts/demo", "scripts/test"] == [line.split()[0] for line in blocks[0].splitlines()]

    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
    def test_links_lead_somewhere(self, page: Path) -> None:
        """Every relative link is a file of the checkout."""
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), target

    def test_kinds_and_empty_reasons_are_explained(self) -> None:
        """The words that an answer uses are on the pages."""
        glossary, recall = (ROOT / "docs" / name for name in ("glossary.md", "recall.md"))

        assert all(f"`{kind}`" in glossary.read_text() for kind in KINDS)
        assert set(EmptyReason.__args__) <= _rows("docs/recall.md").keys()  # type: ignore[attr-defined]
        assert "evidence, not instruction" in recall.read_text()


class TestSample:
    def test_only_licences_that_allow_it(self) -> None:
        """MIT, BSD and Apache, nothing else."""
        licences = {json.loads(line)["license"] for line in sample_lines()}

        assert {"MIT", "BSD-3-Clause", "Apache-2.0"} == licences

    def test_every_source_is_attributed_with_its_licence(self) -> None:
        """The notice names each repository, how many rows come from it, and a licence text that is there."""
        notice = (DATA / "NOTICE.md").read_text()
        rows = re.findall(r"^\| (\d+) \| https://github\.com/(\S+) \| .*\(licenses/(\S+)\) \|$", notice, re.MULTILINE)

        counted = Counter(json.loads(line)["source"] for line in sample_lines())
        assert counted == {source: int(count) for count, source, _ in rows}
        assert all((DATA / "licenses" / text).stat().st_size > 500 for _, _, text in rows)

    def test_the_licence_is_the_whole_text(self) -> None:
        """Apache 2.0, from its title to its appendix."""
        text = (ROOT / "LICENSE").read_text()

        assert "Apache License" in text
        assert "END OF TERMS AND CONDITIONS" in text
