"""`grandbo import-postmortem`, `import-runbooks`, `sync`: what people wrote elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grandbo.cli.call import CHECK_FAILED, Call, command
from grandbo.cli.output import plain, print_json, say, tell
from grandbo.cli.progress import progress
from grandbo.cli.writing import opened_input

if TYPE_CHECKING:
    from grandbo.documenting import PostMortemReport
    from grandbo.memory.following import FollowReport

SHOWN = 20

_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would become of it; change nothing.")]
_Visibility = Annotated[str | None, typer.Option("--visibility", metavar="TIER", help="Else the tenant's default.")]
_Collection = Annotated[
    str, typer.Option("--collection", metavar="NAME", help="Keeps folders apart; else the folder's own name.")
]
_BaseUri = Annotated[
    str, typer.Option("--base-uri", metavar="URI", help="Before a path, the address at which people read the file.")
]
_Archive = Annotated[
    bool, typer.Option("--archive-vanished", help="Put away the entries whose document is gone; else they are listed.")
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    command(app, "import-postmortem", example="grandbo import-postmortem outage.md --dry-run --tenant acme")(postmortem)
    command(app, "import-runbooks", example="grandbo import-runbooks runbooks/ --tenant acme")(runbooks)
    command(app, "sync", example="grandbo sync runbooks/ --archive-vanished --tenant acme")(sync)


def postmortem(
    call: Call,
    file: Annotated[
        str, typer.Argument(metavar="FILE|DIR|-", help="Markdown, HTML or PDF, a folder; `-` for standard input.")
    ],
    uri: Annotated[str, typer.Option("--uri", metavar="URI", help="Where it stands; else its front matter says.")] = "",
    record: Annotated[
        bool, typer.Option("--record", help="Record a finding instead of proposing a candidate.")
    ] = False,
    visibility: _Visibility = None,
    dry_run: _DryRun = False,
) -> None:
    """
    Take in a post-mortem: as a candidate that a person decides on, or with --record as a finding.

    Its headings tell its parts, whichever of the common templates it follows. The same document again changes nothing;
    a changed one amends the candidate, or corrects the entry, that it made. Of a folder, --uri is the address that its
    paths are put behind.
    """
    from grandbo.documents.pdf import PDF_LIMIT_BYTES

    if file != "-" and Path(file).is_dir():
        sync(call, file, postmortems=True, record=record, base_uri=uri, visibility=visibility, dry_run=dry_run)
        return
    with opened_input(file) as source:
        raw = source.read(PDF_LIMIT_BYTES + 1)
    name = "" if file == "-" else Path(file).name
    with call.memory() as memory:
        report = memory.import_postmortem(raw, name, uri=uri, record=record, visibility=visibility, dry_run=dry_run)
    if call.json:
        print_json(report.as_dict())
        return
    _say_outcomes(report, dry_run)
    if dry_run:
        say(*_preview_lines(report))


def runbooks(
    call: Call,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files or folders.")],
    collection: _Collection = "",
    base_uri: _BaseUri = "",
    service: Annotated[str, typer.Option("--service", metavar="S", help="Of those that name none.")] = "",
    visibility: _Visibility = None,
    archive_vanished: _Archive = False,
    dry_run: _DryRun = False,
) -> None:
    """
    Take in runbooks: Markdown, HTML, YAML, and Prometheus rule files.

    A file's path is its identity: the same file again changes nothing, a changed one corrects the entry that it made.
    Exits with 1 when every document was refused.
    """
    with call.memory() as memory, progress("Importing", None, shown=not call.json) as update:
        report = memory.import_runbooks(
            [Path(path) for path in paths],
            collection=collection,
            base_uri=base_uri,
            service=service,
            visibility=visibility,
            archive_vanished=archive_vanished,
            dry_run=dry_run,
            progress=lambda done, _total: update(done),
        )
    _finish(call, report, dry_run)


def sync(
    call: Call,
    path: Annotated[str, typer.Argument(metavar="DIR", help="A folder, such as a checkout.")],
    postmortems: Annotated[bool, typer.Option("--postmortems", help="It holds post-mortems, not runbooks.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Post-mortems become findings, not candidates.")] = False,
    collection: _Collection = "",
    base_uri: _BaseUri = "",
    visibility: _Visibility = None,
    archive_vanished: _Archive = False,
    dry_run: _DryRun = False,
) -> None:
    """
    Bring the memory to what a folder holds.

    What is new goes in, what changed is corrected, what is gone is listed and put away only with --archive-vanished.
    Safe to run again and again. Exits with 1 when every document was refused.
    """
    with call.memory() as memory, progress("Syncing", None, shown=not call.json) as update:
        report = memory.sync(
            Path(path),
            postmortems=postmortems,
            record=record,
            collection=collection,
            base_uri=base_uri,
            visibility=visibility,
            archive_vanished=archive_vanished,
            dry_run=dry_run,
            progress=lambda done, _total: update(done),
        )
    _finish(call, report, dry_run)


def _finish(call: Call, report: FollowReport, dry_run: bool) -> None:
    if call.json:
        print_json(report.as_dict())
    else:
        _say_outcomes(report, dry_run)
    if report.errors and not report.documents:
        raise typer.Exit(CHECK_FAILED)


def _say_outcomes(report: FollowReport, dry_run: bool) -> None:
    counted = ", ".join(f"{count} {name}" for name, count in sorted(report.counts.items()) if count)
    say(f"{'Would be: ' if dry_run else ''}{counted or 'nothing'}, {len(report.errors)} refused.")
    told = [item for item in report.documents if item["action"] != "unchanged"]
    say(*(_outcome(item) for item in told[:SHOWN]))
    if len(told) > SHOWN:
        say(f"… and {len(told) - SHOWN} more; --json lists them all.")
    tell(*(f"{plain(item['document'])} [{item['code']}] {item['message']}" for item in report.errors[:SHOWN]))
    if len(report.errors) > SHOWN:
        tell(f"… and {len(report.errors) - SHOWN} more refused; --json lists them all.")


def _outcome(item: dict[str, Any]) -> str:
    return f"   {item['action']:<12} {item.get('id', '')} {plain(item['title'])} ({plain(item['document'])})"


def _preview_lines(report: PostMortemReport) -> list[str]:
    lines = [f"   heading      {plain(item['heading'] or '')} → {item['part'] or 'body'}" for item in report.headings]
    for document in report.preview:
        lines += [f"   title        {plain(document['title'])}", f"   service      {plain(document['service'])}"]
        lines += [f"   {item['type']:<12} {plain(item['uri'])} {plain(item['label'])}" for item in document["evidence"]]
        lines += ["", *(plain(line) for line in document["summary"].splitlines())]
    return lines
