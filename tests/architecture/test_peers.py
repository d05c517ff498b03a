"""What Grandbo is measured against stays outside it: no part of it imports a peer, and no installation brings one."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.test_imports import imported, modules

ROOT = Path(__file__).parents[2]
# What the peers are imported as. `langchain_core` and `langgraph.store.base` are interfaces that an adapter fits.
PEERS = (
    "langgraph.store.postgres",
    "langgraph.checkpoint.postgres",
    "langchain",
    "langchain_postgres",
    "llama_index",
    "pghybrid",
    "mem0",
    "memgres",
    "eventsourcing",
)
INTERFACES = {"langchain-core"}


def peers_imported(tree: ast.AST) -> set[str]:
    """The peers that a module imports."""
    names = {f"{module}.{name}".rstrip(".") for module, name in imported(tree)}
    return {peer for peer in PEERS for name in names if name == peer or name.startswith(f"{peer}.")}


def locked(name: str) -> set[str]:
    """The packages of a lock."""
    return set(re.findall(r"^([a-z0-9.-]+)(?:\[.*\])?==", (ROOT / "requirements" / f"{name}.lock").read_text(), re.M))


class TestPeers:
    def test_no_part_of_grandbo_imports_one(self) -> None:
        """The package works, and is tested, without any of them."""
        found = {str(path): peers_imported(ast.parse(path.read_text())) for path in modules()}

        assert {} == {path: peers for path, peers in found.items() if peers}

    @pytest.mark.parametrize("lock", ["runtime", "dev"])
    def test_no_installation_brings_one(self, lock: str) -> None:
        """They are in a lock of their own, and neither in what serves nor in what the tests install."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        named = {
            re.split(r"[\[<>=]", wanted)[0]
            for wanted in project["dependency-groups"]["peers"]
            if "psycopg" not in wanted
        }

        assert named <= locked("peers")
        assert set() == (named - INTERFACES) & locked(lock)

    @pytest.mark.parametrize(
        "code",
        ["import mem0", "from llama_index.core import VectorStoreIndex", "from langgraph.store import postgres"],
    )
    def test_an_import_of_one_is_seen(self, code: str) -> None:
        """Whatever its form."""
        assert 1 == len(peers_imported(ast.parse(code)))
