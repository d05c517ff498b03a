"""`grandbo entry`: an entry, its history, and the verbs of its life."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.entry_text import change_lines, difference_lines, entry_lines, preview_lines
from grandbo.cli.output import print_json, print_table, say
from grandbo.cli.writing import read_document
from grandbo.errors import InvalidInput, NotFound
from grandbo.types import LINK_TYPES

if TYPE_CHECKING:
    from grandbo.library import TenantMemory
    from grandbo.memory.govern import Changed

Act = Callable[["TenantMemory", UUID], "Changed"]

entry = typer.Typer(help="One entry: what it says, how it came to, what is done to it.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the entry.")]
_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the history.")]
_Expected = Annotated[
    int | None,
    typer.Option("--expected-revision", metavar="N", min=1, help="The revision this was decided on; else whichever."),
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(entry, name="entry")


@command(entry, "show")
def show(call: Call, entry_id: _Id) -> None:
    """Show an entry as it stands."""
    with call.memory() as memory:
        found = memory.show_entry(_id(entry_id))
    if call.json:
        print_json(found)
    else:
        say(*entry_lines(found))


@command(entry, "history", example="grandbo entry history ID --diff 1 3 --tenant acme")
def history(
    call: Call,
    entry_id: _Id,
    diff: Annotated[
        tuple[int, int] | None, typer.Option("--diff", metavar="A B", help="Only what is different from A to B.")
    ] = None,
) -> None:
    """
    Show every revision: what, who, when, why.

    With --diff it is the difference of two revisions, word by word: [-gone-] {+new+}.
    """
    from grandbo.memory.differences import revision_differences

    found = _id(entry_id)
    with call.memory() as memory:
        revisions = memory.history(found)
    if diff is not None:
        differences = revision_differences(revisions, *diff)
        if call.json:
            changes = [difference.as_dict() for difference in differences]
            print_json({"entry_id": str(found), "from": diff[0], "to": diff[1], "changes": changes})
        else:
            say(*(difference_lines(differences) or [f"Revisions {diff[0]} and {diff[1]} say the same."]))
    elif call.json:
        for item in revisions:
            print_json(item)
    else:
        columns = ("revision", "at", "event_type", "principal", "reason", "position")
        print_table(columns, [[item[name] for name in columns] for item in revisions])


@command(entry, "correct", example='grandbo entry correct ID --service billing --reason "wrong team" --tenant acme')
def correct(
    call: Call,
    entry_id: _Id,
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
    entry_id: _Id,
    revision: Annotated[int, typer.Option("--revision", metavar="N", help="Whose text shall be the text again.")],
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Why; needed unless it is a --dry-run.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
    expected_revision: _Expected = None,
) -> None:
    """Bring the text of an earlier revision back; the status stays what it is."""
    if dry_run:
        _preview(call, _id(entry_id), revision, expected_revision)
        return
    if reason is None:
        raise InvalidInput("Say why with --reason, or look first with --dry-run.", field="reason")
    _change(
        call,
        entry_id,
        lambda memory, found: memory.restore(found, revision, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "archive")
def archive(call: Call, entry_id: _Id, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Put an entry away: kept, and not recalled."""
    _change(
        call, entry_id, lambda memory, found: memory.archive(found, reason=reason, expected_revision=expected_revision)
    )


@command(entry, "unarchive")
def unarchive(call: Call, entry_id: _Id, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Bring an archived entry back."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.unarchive(found, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "dispute", example='grandbo entry dispute ID --other OTHER --reason "the graphs disagree"')
def dispute(
    call: Call,
    entry_id: _Id,
    reason: _Reason,
    other: Annotated[str | None, typer.Option("--other", metavar="ID", help="The entry that says otherwise.")] = None,
    expected_revision: _Expected = None,
) -> None:
    """Mark an entry disputed: still recalled, and labelled."""
    against = None if other is None else _id(other)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.dispute(found, other=against, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "resolve")
def resolve(call: Call, entry_id: _Id, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Settle a dispute: the entry stands."""
    _change(
        call, entry_id, lambda memory, found: memory.resolve(found, reason=reason, expected_revision=expected_revision)
    )


@command(entry, "supersede")
def supersede(
    call: Call,
    entry_id: _Id,
    by: Annotated[str, typer.Option("--by", metavar="ID", help="The entry that takes its place.")],
    reason: _Reason,
    expected_revision: _Expected = None,
) -> None:
    """Let another entry take its place."""
    successor = _id(by)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.supersede(found, successor, reason=reason, expected_revision=expected_revision),
    )


_LinkType = Annotated[str, typer.Option("--type", metavar="TYPE", help=f"One of {', '.join(LINK_TYPES)}.")]
_To = Annotated[str, typer.Option("--to", metavar="ID", help="The entry at the other end.")]


@command(entry, "link")
def link(
    call: Call, entry_id: _Id, link_type: _LinkType, to: _To, reason: _Reason, expected_revision: _Expected = None
) -> None:
    """Link it to another entry; a link makes no revision."""
    other = _id(to)
    _change(
        call,
        entry_id,
        lambda memory, found: memory.link(found, link_type, other, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "unlink")
def unlink(
    call: Call, entry_id: _Id, link_type: _LinkType, to: _To, reason: _Reason, expected_revision: _Expected = None
) -> None:
    """Take a link away."""
    other = _id(to)
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
    entry_id: _Id,
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
    entry_id: _Id,
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
    entry_id: _Id,
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
def quarantine(call: Call, entry_id: _Id, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Take an entry out of every answer until someone has looked at it."""
    _change(
        call,
        entry_id,
        lambda memory, found: memory.quarantine(found, reason=reason, expected_revision=expected_revision),
    )


@command(entry, "release")
def release(call: Call, entry_id: _Id, reason: _Reason, expected_revision: _Expected = None) -> None:
    """Let an entry out of quarantine, with the status it had before."""
    _change(
        call, entry_id, lambda memory, found: memory.release(found, reason=reason, expected_revision=expected_revision)
    )


def _change(call: Call, entry_id: str, act: Act) -> None:
    found = _id(entry_id)
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


def _id(given: str) -> UUID:
    """What is no id is no entry: the same answer as for one that is not there."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound from None
