"""The corpus, brought in through the import and embedded by the worker, like anybody's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from grandbo.evaluation.inputs import JudgedSet
from grandbo.library import TenantMemory
from grandbo.memory.importing import ImportKind, ImportReport

_PAGE = 200

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of the corpus: the document of each entry, entries that no recall shows, and what was refused."""

    document_of: dict[UUID, str]
    entry_of: dict[str, UUID]
    hidden: dict[str, str]
    refused: int
    errors: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Plain values: counts, and the first refusals."""
        return {
            "stored": len(self.entry_of),
            "hidden": len(self.hidden),
            "refused": self.refused,
            "errors": self.errors[:10],
        }


def load_corpus(memory: TenantMemory, judged: JudgedSet, *, progress: Progress) -> Loaded:
    """
    Import what is not there yet and embed it; both go on where an earlier run was cut off.

    `progress` is called with a phase, how many are done, and of how many.
    """
    refused, errors = 0, []
    kinds: tuple[ImportKind, ...] = ("finding", "runbook")
    for kind in kinds:
        of_kind = [line for name, line in judged.documents.items() if (name in judged.runbooks) == (kind == "runbook")]
        if not of_kind:
            continue

        def note(so_far: ImportReport, total: int = len(of_kind)) -> None:
            progress("Importing", so_far.read, total)

        report = memory.import_lines(of_kind, kind, progress=note)
        refused += report.refused
        errors += report.errors
    if memory.embeds:
        memory.embed(progress=lambda counts: progress("Embedding", counts.embedded, counts.entries))
    rows = [(row["external_id"], row) for row in _entries(memory) if row["external_id"]]
    return _loaded(rows, refused, errors)


def loaded_already(memory: TenantMemory) -> Loaded:
    """What the tenant holds as its corpus: each entry is a document by its own id."""
    return _loaded([(str(row["entry_id"]), row) for row in _entries(memory)], 0, [])


def _loaded(rows: list[tuple[str, dict[str, Any]]], refused: int, errors: list[dict[str, Any]]) -> Loaded:
    document_of = {UUID(str(row["entry_id"])): name for name, row in rows}
    hidden = {name: row["status"] for name, row in rows if row["status"] != "published"}
    return Loaded(document_of, {name: entry for entry, name in document_of.items()}, hidden, refused, errors)


def _entries(memory: TenantMemory) -> list[dict[str, Any]]:
    page = memory.list_entries(limit=_PAGE)
    found = list(page.entries)
    while page.next is not None:
        page = memory.list_entries(limit=_PAGE, after=page.next)
        found += page.entries
    return found
