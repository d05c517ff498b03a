"""`grandbo entry`: the verbs of an entry's life."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from grandbo.cli import entry_reading
from grandbo.cli.call import Call, command
from grandbo.cli.entry_reading import EntryId, entry, id_of
from grandbo.cli.entry_text import change_lines, preview_lines
from grandbo.cli.output import print_json, say
from grandbo.cli.writing import read_document
from grandbo.errors import InvalidInput
from grandbo.types import LINK_TYPES

if TYPE_CHECKING:
    from grandbo.library import TenantMemory
    from grandbo.memory.govern import Changed

Act = Callable[["TenantMemory", UUID], "Changed"]

_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the history.")]
_Expected = Annotated[
    int | None,
    typer.Option("--expected-revision", metavar="N", min=1, help="The revision this was decided on; else whichever."),
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    entry_reading.register(app)


@command(entry, "correct", example='grandbo entry correct ID --service billing --reason "wrong team" --tenant acme')
def correct(
    call: Call,
    entry_id: EntryId,
    reason: _Reason,
    title: Annotated[str | None, typer.Option("--title")] = None,
    summary: Annotated[str | None, typer.Option("--summary")] = None,
    body: Annotated[str | None, typer.Option("--body")] = None,
    service: Annotated[str | None, typer.Option("--service")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="All the tags there shall be; repeatable.")] = None,
    confidence_bp: Annotated[int | None, typer.Option("--confidence-bp", metavar="N", help="0 to 10000.")] = None,
    occurred_at: Annotated[str | None, typer.Option("--occurred-at", metavar="TIME")] = None,
    ended_at: Annotated[str | None, typer.Option("--ended-at", metavar="TIME")] = None,
    file: Annotated[
        str | None, typer.Option("--from", metavar="FILE|-", help="A JSON object of the fields, in place of options.")
    ] = None,
    expected_revision: _Expected = None,
) -> None:
    """Replace what is named and keep all else."""
    options = {
        "title": title,
        "summary": summary,
        "body": body,
        "service": service,
        "tags": tags or None,
        "confidence_bp": confidence_bp,
        "occurred_at": occurred_at,
        "ended_at": ended_at,
    }
    changes = {name: value for name, value in options.items() if value is not None}
    if file is not None:
        if changes:
            raise InvalidInput("--from takes the place of the options that name a field; give either.", field="from")
        changes = read_document(file)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.correct(found, changes, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "restore", example="grandbo entry restore ID --revision 2 --dry-run --tenant acme")
def restore(
    call: Call,
    entry_id: EntryId,
    revision: Annotated[int, typer.Option("--revision", metavar="N", help="Whose text shall be the text again.")],
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why; needed unless it is a --dry-run.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    expected_revision: _Expected = None,
) -> None:
    """Bring the text of an earlier revision back; the status stays what it is."""
    if dry_run:
        _preview(call, id_of(entry_id), revision, expected_revision)
        return
    if reason is None:
        raise InvalidInput("Say why with --reason, or look first with --dry-run.", field="reason")
    _change(
        call,
        entry_id,
        lambda memory, found: memory.restore(found, revision, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "archive")
def archive(call: Call, entry_id: EntryId, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Put an entry away: kept, and not recalled."""
    _change(
        call, entry_id, lambda memory, found: memory.archive(found, reason=reason, expected_revision=expected_revision)
    )


@command(entry, "unarchive")
def unarchive(call: Call, entry_id: EntryId, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Bring an archived entry back."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.unarchive(found, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "dispute", example='grandbo entry dispute ID --other OTHER --reason "the graphs disagree"')
def dispute(
    call: Call,
    entry_id: EntryId,
    reason: _Reason,
    other: Annotated[str | None, typer.Option("--other", metavar="ID", help="The entry that says otherwise.")] = None,
    expected_revision: _Expected = None,
) -> None:
    """Mark an entry disputed: still recalled, and labelled."""
    against = None if other is None else id_of(other)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.dispute(found, other=against, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "resolve")
def resolve(call: Call, entry_id: EntryId, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Settle a dispute: the entry stands."""
    _change(
        call, entry_id, lambda memory, found: memory.resolve(found, reason=reason, expected_revision=expected_revision)
    )


@command(entry, "supersede")
def supersede(
    call: Call,
    entry_id: EntryId,
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The entry that takes its place.")],
    reason: _Reason,
    expected_revision: _Expected = None,
) -> None:
    """Let another entry take its place."""
    successor = id_of(by)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.supersede(found, successor, reason=reason, expected_revision=expected_revision),
    )


@command(
    entry,
    "corroborate",
    example='grandbo entry corroborate ID --incident pager:INC-9 --evidence "log=https://logs.example.com/9 broker"',
)
def corroborate(
    call: Call,
    entry_id: EntryId,
    incident: Annotated[str, typer.Option("--incident", metavar="SOURCE:ID", help="The incident that supports it.")],
    evidence: Annotated[
        list[str],
        typer.Option("--evidence", metavar="TYPE=URI", help="From where; after a space a label. Repeatable."),
    ],
    expected_revision: _Expected = None,
) -> None:
    """Another incident supports an entry. It takes no reason: the evidence is it."""
    source, colon, known_as = incident.partition(":")
    if not colon:
        raise InvalidInput("incident: write SOURCE:ID, such as pager:INC-9.", field="incident")
    items = [_evidence(given) for given in evidence]
    _change(
        call,
        entry_id,
        lambda memory, found: memory.corroborate(
            found, incident={"source": source, "id": known_as}, evidence=items, expected_revision=expected_revision
        ),
    )


_LinkType = Annotated[str, typer.Option("--type", metavar="TYPE", help=f"One of {', '.join(LINK_TYPES)}.")]
_To = Annotated[str, typer.Option("--to", metavar="ID", help="The entry at the other end.")]


@command(entry, "link")
def link(
    call: Call, entry_id: EntryId, link_type: _LinkType, to: _To, reason: _Reason, expected_revision: _Expected = None
) -> None:
    """Link it to another entry; a link makes no revision."""
    other = id_of(to)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.link(found, link_type, other, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "unlink")
def unlink(
    call: Call, entry_id: EntryId, link_type: _LinkType, to: _To, reason: _Reason, expected_revision: _Expected = None
) -> None:
    """Take a link away."""
    other = id_of(to)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.unlink(
            found, link_type, other, reason=reason, expected_revision=expected_revision
        ),
    )


@command(entry, "verify")
def verify(
    call: Call,
    entry_id: EntryId,
    reason: _Reason,
    days: Annotated[
        int | None, typer.Option("--days", metavar="N", help="Until the next review; else as the policy says.")
    ] = None,
    expected_revision: _Expected = None,
) -> None:
    """Say that an entry was checked; sets its next review."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.verify_entry(found, reason=reason, days=days, expected_revision=expected_revision),
    )


@command(entry, "expire", example='grandbo entry expire ID --at 2027-01-01 --reason "the old cluster goes then"')
def expire(
    call: Call,
    entry_id: EntryId,
    at: Annotated[str, typer.Option("--at", metavar="TIME", help="RFC 3339 with a zone, or a date.")],
    reason: _Reason,
    expected_revision: _Expected = None,
) -> None:
    """Set until when an entry is valid."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.expire(found, at, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "reclassify", example='grandbo entry reclassify ID --applies-to "worker >=4,<7" --reason "fixed in 7"')
def reclassify(
    call: Call,
    entry_id: EntryId,
    reason: _Reason,
    kind: Annotated[str | None, typer.Option("--kind", metavar="K")] = None,
    visibility: Annotated[str | None, typer.Option("--visibility", metavar="TIER")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", metavar="N")] = None,
    owner: Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Who keeps it; '' for nobody.")] = None,
    applies_to: Annotated[
        list[str] | None,
        typer.Option("--applies-to", metavar="SYS RANGE", help="All it applies to, `worker >=4,<7`; repeatable."),
    ] = None,
    applies_to_all: Annotated[bool, typer.Option("--applies-to-all", help="It applies to everything.")] = False,
    expected_revision: _Expected = None,
) -> None:
    """Make an entry count as something else: kind, tier, namespace, owner, what it applies to."""
    if applies_to and applies_to_all:
        raise InvalidInput("--applies-to-all takes the place of --applies-to; give either.", field="applicability")
    changes: dict[str, Any] = {
        "kind": kind,
        "visibility": visibility,
        "namespace": namespace,
        "owner": owner,
        "applicability": [] if applies_to_all else applies_to or None,
    }
    _change(
        call,
        entry_id,
        lambda memory, found: memory.reclassify(found, reason=reason, expected_revision=expected_revision, **changes),
    )


@command(entry, "quarantine")
def quarantine(call: Call, entry_id: EntryId, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Take an entry out of every answer until someone has looked at it."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.quarantine(found, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "release")
def release(call: Call, entry_id: EntryId, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Let an entry out of quarantine, with the status it had before."""
    _change(
        call, entry_id, lambda memory, found: memory.release(found, reason=reason, expected_revision=expected_revision)
    )


def _change(call: Call, entry_id: str, act: Act) -> None:
    found = id_of(entry_id)
    with call.memory() as memory:
        changed = act(memory, found)
    if call.json:
        print_json({**changed.acknowledgement.as_dict(), "appended": changed.appended})
    else:
        say(*change_lines(changed))


def _preview(call: Call, entry_id: UUID, revision: int, expected_revision: int | None) -> None:
    from grandbo.memory.differences import restore_preview

    with call.memory() as memory:
        wish = memory.restore_wish(entry_id, revision, reason="preview", expected_revision=expected_revision)
        previewed = restore_preview(memory.history(entry_id), *memory.preview(wish))
    if call.json:
        print_json(previewed.as_dict())
    else:
        say(*preview_lines(previewed))


def _evidence(given: str) -> dict[str, str]:
    """A URI has no spaces: what follows the first one is the label."""
    kind, equals, rest = given.partition("=")
    if not equals:
        raise InvalidInput("evidence: write TYPE=URI, such as log=https://logs.example.com/9.", field="evidence")
    uri, _, label = rest.strip().partition(" ")
    return {"type": kind, "uri": uri, "label": label.strip()}
