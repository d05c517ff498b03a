"""
Import of JSON Lines: real incidents and runbooks, by the field names of their sources.

Every command id derives from the source's id, so an import that was cut off, or is run again, records what is missing
and leaves the rest alone. Where a line says something else under a known id, a finding is refused and a runbook is
corrected. A bad line is reported with its number and its reason and does not stop the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NoReturn
from uuid import UUID

from grandbo.documents.runbook import title_of
from grandbo.errors import CommandReused, Forbidden, GrandboError, InvalidInput, LimitExceeded, NotJSON
from grandbo.events.models import Policy
from grandbo.memory.finding import Finding, parse_finding
from grandbo.memory.record import record_findings
from grandbo.memory.reimporting import NO_SOURCE, Runbooks
from grandbo.storage.database import Database
from grandbo.types import Clock, Principal, utc_now

ImportKind = Literal["finding", "runbook"]
BATCH = 16
LINE_LIMIT_BYTES = 1024 * 1024

Progress = Callable[["ImportReport"], None]


@dataclass(slots=True)
class ImportReport:
    """What became of the lines."""

    read: int = 0
    recorded: int = 0
    corrected: int = 0
    corroborated: int = 0
    unchanged: int = 0
    refused: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    def refuse(self, line: int, error: GrandboError) -> None:
        """Note a refused line and its reason."""
        self.refused += 1
        self.errors.append({"line": line, "code": error.code, "message": error.message})

    def as_dict(self) -> dict[str, Any]:
        """Plain values, errors in order of lines."""
        return {
            "read": self.read,
            "recorded": self.recorded,
            "corrected": self.corrected,
            "corroborated": self.corroborated,
            "unchanged": self.unchanged,
            "refused": self.refused,
            "errors": sorted(self.errors, key=lambda item: item["line"]),
        }


def import_lines(
    database: Database,
    tenant_id: UUID,
    principal: Principal,
    policy: Policy,
    lines: Iterable[bytes],
    kind: ImportKind,
    *,
    progress: Progress | None = None,
    clock: Clock = utc_now,
) -> ImportReport:
    """Import lines in batches; each batch is durable when its progress is reported."""
    runbooks = Runbooks(database, tenant_id, principal, policy, clock=clock) if kind == "runbook" else None
    report = ImportReport()
    numbered = iter(enumerate(lines, start=1))
    while batch := list(islice(numbered, BATCH)):
        read = _read_batch(batch, kind, report)
        if runbooks is not None:
            read = _settle(read, runbooks, report)
        findings = [line.finding for line in read]
        outcomes = record_findings(database, tenant_id, principal, policy, findings, clock=clock)
        for line, outcome in zip(read, outcomes, strict=True):
            if isinstance(outcome, Forbidden):
                raise outcome
            if isinstance(outcome, CommandReused) and runbooks is not None and runbooks.may_correct():
                # It may be of this very batch.
                runbooks.look_up([line.document["external_id"]])
                _correct(line, runbooks, report)
            elif isinstance(outcome, GrandboError):
                report.refuse(line.number, _explained(outcome))
            elif outcome.replayed:
                report.unchanged += 1
            elif outcome.acknowledgement.created:
                report.recorded += 1
            else:
                report.corroborated += 1
        if progress:
            progress(report)
    return report


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that can be recorded: its number, what it was read as, and which fields it states."""

    number: int
    document: dict[str, Any]
    finding: Finding
    stated: frozenset[str] = frozenset()


def _read_batch(batch: Iterable[tuple[int, bytes]], kind: ImportKind, report: ImportReport) -> list[_Line]:
    read = []
    for number, raw in batch:
        if not raw.strip():
            continue
        report.read += 1
        try:
            row = _row(raw)
            document = _MAPPERS[kind](row)
            read.append(_Line(number, document, parse_finding(document), _stated(row)))
        except GrandboError as error:
            report.refuse(number, error)
    return read


def _settle(read: Sequence[_Line], runbooks: Runbooks, report: ImportReport) -> list[_Line]:
    """Those that have to be recorded, under the source by which they are known; the others are done with here."""
    runbooks.look_up({line.document["external_id"] for line in read})
    left: list[_Line] = []
    for line in read:
        incident = line.document["incident"]
        source = runbooks.source_of(incident["source"], incident["id"])
        if source != incident["source"]:
            document = {**line.document, "incident": {**incident, "source": source}}
            line = replace(line, document=document, finding=parse_finding(document))
        is_same = runbooks.says_the_same(line.document)
        if is_same:
            report.unchanged += 1
        elif is_same is False and runbooks.may_correct():
            _correct(line, runbooks, report)
        else:
            left.append(line)
    return left


def _correct(line: _Line, runbooks: Runbooks, report: ImportReport) -> None:
    try:
        is_corrected = runbooks.correct(line.document, line.stated)
    except GrandboError as error:
        report.refuse(line.number, error)
        return
    if is_corrected is None:
        report.refuse(line.number, _explained(CommandReused()))
    elif is_corrected:
        report.corrected += 1
    else:
        report.unchanged += 1


def _stated(row: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a runbook that a line says something of; of the others it leaves what there is."""
    named = {name for name in ("title", "summary", "body", "service") if row.get(name)}
    tags = {"tags"} if row.get("applies_to") is not None or row.get("tags") is not None else set()
    return frozenset({"evidence"} | named | tags)


def parse_line(raw: bytes, kind: ImportKind) -> Finding:
    """Read one line; raises a typed error that says what is wrong with it."""
    return parse_finding(_MAPPERS[kind](_row(raw)))


def _row(raw: bytes) -> dict[str, Any]:
    if len(raw) > LINE_LIMIT_BYTES:
        raise LimitExceeded(f"The line has {len(raw)} bytes, at most {LINE_LIMIT_BYTES} are allowed.")
    document = parse_json(raw)
    if not isinstance(document, dict):
        raise InvalidInput("The line is not a JSON object.")
    return document


def parse_json(raw: bytes) -> Any:
    """Read JSON; NaN, infinities, nesting beyond reason and bytes that are no UTF-8 are errors, never a guess."""

    def refuse(constant: str) -> NoReturn:
        raise NotJSON(f"{constant} is not JSON; leave the field out.")

    try:
        return json.loads(raw.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        raise NotJSON(f"The input is not UTF-8 at byte {error.start}.") from None
    except RecursionError:
        raise NotJSON("The input is nested too deeply.") from None
    except ValueError as error:
        raise NotJSON(f"The input is not JSON: {error}.") from None


def read_lines(file: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of a binary file; a byte order mark in front of the first is no part of it."""
    for number, line in enumerate(file):
        yield line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line


def _finding_document(row: dict[str, Any]) -> dict[str, Any]:
    source = _text(row, "source") or NO_SOURCE
    tags = [*_scalars(row, "tags"), *_scalars(row, "categories")]
    document: dict[str, Any] = {
        "kind": "finding",
        "title": row.get("title"),
        "summary": row.get("summary") or "",
        "body": row.get("body") or "",
        "service": row.get("service") or row.get("organization") or "",
        "tags": _distinct(tags),
        "evidence": _evidence(row, "postmortem", source),
        "incident": {"source": source, "id": row.get("id")},
        "external_id": row.get("id"),
        "occurred_at": row.get("started_at") or None,
        "ended_at": row.get("ended_at") or None,
    }
    return document | {name: row[name] for name in ("visibility", "confidence_bp") if row.get(name) is not None}


def _runbook_document(row: dict[str, Any]) -> dict[str, Any]:
    source = _text(row, "source") or NO_SOURCE
    return {
        "kind": "runbook",
        "title": row.get("title") or title_of(_text(row, "body"), _text(row, "id")),
        "summary": row.get("summary") or "",
        "body": row.get("body") or "",
        "service": row.get("service") or "",
        "tags": _distinct([*_scalars(row, "applies_to"), *_scalars(row, "tags")]),
        "evidence": _evidence(row, "runbook", source),
        # The runbook's own id takes the place of an incident's: it is what makes a second import a no-op.
        "incident": {"source": source, "id": row.get("id")},
        "external_id": row.get("id"),
    } | ({"visibility": row["visibility"]} if row.get("visibility") is not None else {})


_MAPPERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "finding": _finding_document,
    "runbook": _runbook_document,
}


def _evidence(row: dict[str, Any], kind: str, source: str) -> list[dict[str, Any]]:
    if isinstance(row.get("evidence"), list):
        return list(row["evidence"])
    uri = row.get("source_url")
    return [{"type": kind, "uri": uri, "label": source}] if uri else []


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _scalars(row: dict[str, Any], name: str) -> list[Any]:
    """A list whose members are text; a number among them (YAML makes `2147483647` one) is the text it was."""
    value = row.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{name}: it must be a list.", field=name)
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in value]


def _distinct(tags: list[Any]) -> list[Any]:
    """Each tag once; those that are told apart only by being too long are refused later, by the finding's own rule."""
    kept: list[Any] = []
    for tag in tags:
        if tag not in kept and tag != "":
            kept.append(tag)
    return kept


def _explained(error: GrandboError) -> GrandboError:
    if isinstance(error, CommandReused):
        return CommandReused("This id was imported before with other content; correct the entry instead.")
    return error
