"""The shape of the code: imports go downwards, SQL stays below, ranked tables have few readers, modules stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "grandbo"
LONGEST_MODULE = 400

# What stands higher may import what stands lower. Of one row, the later may import the earlier.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "key_errors",
        "types",
        "text",
        "fusion",
        "applicability",
        "screening",
        "settings",
        "logs",
        "sample",
        "embedding",
        "finding_limits",
        "documents",
        "hooks",
    ),
    ("storage",),
    ("events",),
    ("projections",),
    ("memory", "recall", "workers"),
    (
        "verbs",
        "governing",
        "keeping",
        "remembering",
        "investigating",
        "proposing",
        "proving",
        "erasing",
        "people",
        "caring",
        "receiving",
        "documenting",
        "safekeeping",
        "subscribing",
        "stamping",
    ),
    ("library",),
    ("evaluation",),
    ("client",),
    ("adapters",),
    ("mcp", "web", "http", "cli"),
)
_RANK = {name: (layer, place) for layer, names in enumerate(LAYERS) for place, name in enumerate(names)}
# `grandbo` itself: its version, its folder, and its two classes, loaded at first use.
PACKAGE = "grandbo"

SQL_PLACES = {"storage"}
RANKED_TABLES = {"terms", "embeddings", "Vector"}
RANKED_READERS = {"recall", "projections", "workers", "storage"}
# What makes SQL of a string; `literal_column` is for constants such as 1 and takes no part in a statement's shape.
_SQL_MAKERS = {"sqlalchemy": {"text", "TextClause"}, "psycopg": {"sql"}, "psycopg.sql": {"SQL", "Composed"}}
_RUNNERS = {"execute", "executemany", "exec_driver_sql", "copy"}


def modules() -> list[Path]:
    """All modules of the package."""
    return sorted(SOURCE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The part of the code that a module belongs to: its package below `grandbo`, or its own name."""
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What a module imports: (module, name); the name is empty where the module itself is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def upward_imports(part: str, tree: ast.AST) -> list[str]:
    """Imports of Grandbo's own code that do not go downwards."""
    wrong = []
    for module, name in imported(tree):
        if module != PACKAGE and not module.startswith(f"{PACKAGE}."):
            continue
        target = module.removeprefix(PACKAGE).removeprefix(".").partition(".")[0] or name
        if target in ("", "__version__", part):
            continue
        if target not in _RANK or _RANK[target] > _RANK[part]:
            wrong.append(f"{part} imports {module} {name}".strip())
    return wrong


def sql_of_strings(tree: ast.AST) -> list[int]:
    """Lines on which SQL is made of a string, or a string is run as SQL."""
    lines = []
    makers = {name for module, name in imported(tree) if name in _SQL_MAKERS.get(module, set())}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        is_text = isinstance(called, ast.Attribute) and called.attr == "text" and _is_name(called.value, "sa")
        is_maker = isinstance(called, ast.Name) and called.id in makers
        is_sql = isinstance(called, ast.Attribute) and called.attr in ("SQL", "exec_driver_sql")
        runs_string = (
            isinstance(called, ast.Attribute)
            and called.attr in _RUNNERS
            and bool(node.args)
            and isinstance(node.args[0], ast.JoinedStr | ast.Constant | ast.BinOp)
        )
        if is_text or is_maker or is_sql or runs_string:
            lines.append(node.lineno)
    return lines


def ranked_tables_read(tree: ast.AST) -> set[str]:
    """Which of the ranked tables a module takes from the table definitions."""
    names = {name for module, name in imported(tree) if module == "grandbo.storage.tables"}
    whole = any(module == "grandbo.storage" and name == "tables" for module, name in imported(tree))
    return RANKED_TABLES if whole else names & RANKED_TABLES


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
class TestModule:
    def test_imports_go_downwards(self, path: Path) -> None:
        """A lower layer knows nothing of a higher one; every module has its layer."""
        part = part_of(path)

        assert part in _RANK or part == "__init__"
        if part != "__init__":
            assert [] == upward_imports(part, _parsed(path))

    def test_sql_is_not_made_of_strings(self, path: Path) -> None:
        """Outside the storage layer statements are built, so that tenant, schema and parameters cannot be forgotten."""
        if part_of(path) not in SQL_PLACES:
            assert [] == sql_of_strings(_parsed(path))

    def test_ranked_tables_have_few_readers(self, path: Path) -> None:
        """What recall ranks is read by recall alone: another reader would be a way around the scope."""
        if part_of(path) not in RANKED_READERS:
            assert set() == ranked_tables_read(_parsed(path))

    def test_it_stays_small(self, path: Path) -> None:
        """A module does one thing."""
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


class TestTheseChecks:
    """Each check is shown to see what it is there for."""

    @pytest.mark.parametrize(
        ("part", "code"),
        [
            ("storage", "from grandbo.events import log"),
            ("storage", "def f():\n    from grandbo.library import Grandbo"),
            ("memory", "from grandbo.recall.query import query_topic"),
            ("recall", "import grandbo.http.app"),
            ("errors", "from grandbo.types import Kind"),
            ("events", "from grandbo import library"),
            ("events", "from grandbo import Grandbo"),
            ("http", "from grandbo.cli import main"),
            ("library", "from grandbo.somewhere import new"),
        ],
    )
    def test_an_upward_import_is_seen(self, part: str, code: str) -> None:
        """Whatever its form, an import of a higher or an unknown part is reported."""
        assert 1 == len(upward_imports(part, ast.parse(code)))

    def test_a_downward_import_is_none(self) -> None:
        """The rule forbids nothing that the design allows."""
        code = "import grandbo\nfrom grandbo import __version__\nfrom grandbo.storage import tables\nimport json"

        assert [] == upward_imports("recall", ast.parse(code))

    @pytest.mark.parametrize(
        "code",
        [
            "sa.text('SELECT 1')",
            "from sqlalchemy import text\ntext('SELECT 1')",
            "from psycopg import sql\nsql.SQL('SELECT 1')",
            "conn.execute('SELECT 1')",
            "conn.execute(f'SELECT {x}')",
            "conn.execute('SELECT ' + x)",
            "conn.exec_driver_sql(query)",
        ],
    )
    def test_sql_of_a_string_is_seen(self, code: str) -> None:
        """Each way of running a string as SQL is reported."""
        assert [] != sql_of_strings(ast.parse(code))

    @pytest.mark.parametrize(
        "code", ["from grandbo.storage.tables import entries, terms", "from grandbo.storage import tables"]
    )
    def test_a_reader_of_ranked_tables_is_seen(self, code: str) -> None:
        """By name or with the whole module, taking a ranked table is reported."""
        assert set() != ranked_tables_read(ast.parse(code))
