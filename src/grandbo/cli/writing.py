"""`grandbo record`, `import`, `embed`: what goes into the memory."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import print_json, say, tell
from grandbo.cli.progress import progress
from grandbo.errors import InvalidInput

SHOWN_ERRORS = 20

_File = Annotated[str, typer.Argument(metavar="FILE|-", help="A file, or `-` for standard input.")]
_ImportKind = Literal["finding", "runbook"]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "record", example="grandbo record finding.json --tenant acme")(record)
    command(app, "import", example="grandbo import incidents.jsonl --tenant acme")(import_)
    command(app, "embed", example="grandbo embed --wait --tenant acme")(embed)


def record(call: Call, file: _File) -> None:
    """
    Record one finding.

    It is a JSON object with at least title and evidence. Durable once the acknowledgement is printed. The same finding
    of the same incident again changes nothing.
    """
    document = read_document(file)
    with call.memory() as memory:
        recorded = memory.record_finding(document)
    acknowledged = recorded.acknowledgement
    if call.json:
        print_json(acknowledged.as_dict())
    else:
        what = "Recorded" if acknowledged.created else "Corroborated" if recorded.appended else "Known already:"
        citation = f"{acknowledged.entry_id}/{acknowledged.revision}@{acknowledged.position}"
        say(f"{what} {citation}", f"hash {acknowledged.hash}")


def import_(
    call: Call,
    file: _File,
    kind: Annotated[_ImportKind, typer.Option("--kind", help="What the lines are.")] = "finding",
) -> None:
    """
    Import JSON Lines of findings or runbooks.

    A bad line is reported with its number and reason and does not stop the rest. An import that is run again records
    what is missing, and corrects the runbooks that say something else. Exits with 1 when lines were refused and nothing
    at all went in or was there already.
    """
    from grandbo.memory.importing import ImportReport, read_lines

    with call.memory() as memory, opened_input(file) as source:
        total = None if file == "-" else _count_lines(file)
        with progress("Importing", total, shown=not call.json) as update:

            def note(report: ImportReport) -> None:
                update(report.read)

            report = memory.import_lines(read_lines(source), kind, progress=note)
    if call.json:
        print_json(report.as_dict())
    else:
        say(
            f"{report.read} read: {report.recorded} recorded, {report.corrected} corrected, "
            f"{report.corroborated} corroborated, "
            f"{report.unchanged} unchanged, {report.refused} refused."
        )
        shown = report.as_dict()["errors"][:SHOWN_ERRORS]
        tell(*(f"line {item['line']} [{item['code']}] {item['message']}" for item in shown))
        if report.refused > len(shown):
            tell(f"… and {report.refused - len(shown)} more; --json lists them all.")
    if report.refused and report.refused == report.read:
        raise typer.Exit(CHECK_FAILED)


def embed(
    call: Call,
    wait: Annotated[bool, typer.Option("--wait", help="Embed until nothing is pending.")] = False,
    retry_dead: Annotated[bool, typer.Option("--retry-dead", help="Try those again that were given up.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0, help="Stop waiting after so many seconds.")
    ] = None,
) -> None:
    """
    Show or drain what lacks a vector.

    With --wait it exits with 1 when something is still pending at the timeout, or was given up.
    """
    from grandbo.workers.backlog import BacklogCounts

    if not wait and (retry_dead or timeout is not None):
        raise InvalidInput("--retry-dead and --timeout go with --wait.", field="wait")
    with call.memory(call.settings(bulk=wait)) as memory:
        before = memory.backlog()
        if not wait:
            _print_counts(call, before)
            return
        with progress("Embedding", before.entries, shown=not call.json) as update:

            def note(counts: BacklogCounts) -> None:
                update(counts.embedded)

            deadline = None if timeout is None else time.monotonic() + timeout
            counts = memory.embed(retry_dead=retry_dead, progress=note, deadline=deadline)
    _print_counts(call, counts)
    if counts.dead and not call.json:
        tell(
            "Some entries were given up after repeated failures; `grandbo embed --wait --retry-dead` tries them again."
        )
    if counts.pending or counts.dead:
        raise typer.Exit(CHECK_FAILED)


def _print_counts(call: Call, counts: object) -> None:
    shown = {name: getattr(counts, name) for name in ("pending", "embedded", "dead")}
    if call.json:
        print_json(shown)
    else:
        say(", ".join(f"{count} {name}" for name, count in shown.items()))


@contextlib.contextmanager
def opened_input(file: str) -> Iterator[IO[bytes]]:
    """The bytes of a file or of standard input; a file that cannot be read is a mistake in the call."""
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115  # closed below; opened apart, so that only this is explained
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.", field="file") from None
    with source:
        yield source


def _count_lines(file: str) -> int:
    with opened_input(file) as source:
        return sum(1 for line in source if line.strip())


def read_document(file: str) -> dict[str, Any]:
    """One JSON object from a file or standard input."""
    from grandbo.memory.importing import LINE_LIMIT_BYTES, parse_json

    with opened_input(file) as source:
        raw = source.read(LINE_LIMIT_BYTES + 1)
    if len(raw) > LINE_LIMIT_BYTES:
        raise InvalidInput(f"The input has more than {LINE_LIMIT_BYTES} bytes, which is all that is read.")
    document = parse_json(raw.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(document, dict):
        raise InvalidInput("The input must be one JSON object.")
    return document
