"""`grandbo review`: candidates, from the proposal to the decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, print_table, say, tell_more
from grandbo.cli.writing import read_document
from grandbo.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from grandbo.library import TenantMemory
    from grandbo.memory.candidacy import Decided

Act = Callable[["TenantMemory", UUID], "Decided"]

review = typer.Typer(help="Candidates: what waits for a person before it is recalled.", no_args_is_help=True)

_Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the candidate.")]
_Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stands in the history.")]
_Expected = Annotated[
    int | None,
    typer.Option("--expected-version", metavar="N", min=1, help="The version this was decided on; else whichever."),
]
_Changes = Annotated[
    str | None,
    typer.Option("--from", metavar="FILE|-", help="A JSON object of the fields to set, such as kind, title, owner."),
]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(review, name="review")


@command(review, "propose", example="grandbo review propose finding.json --as agent:scout --tenant acme")
def propose(
    call: Call,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="A finding as JSON; its evidence may be missing. Of kind personal: subject, memory_key, title, "
            "text; of kind episode: subject, session_id.",
        ),
    ],
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin", metavar="TYPE:REF", help="conversation:REF or person:REF, where there is no evidence."
        ),
    ] = None,
    into: Annotated[str | None, typer.Option("--into", metavar="ID", help="The entry that it would correct.")] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT")] = "",
) -> None:
    """Propose an entry; it waits until a person has approved it."""
    document = read_document(file)
    target = _id(into, "entry") if into is not None else None
    with call.memory() as memory:
        _say(call, memory.propose(document, origin=_origin(origin), into=target, reason=reason))


@command(review, "list")
def list_(
    call: Call,
    status: Annotated[
        str, typer.Option("--status", metavar="S", help="pending, approved, rejected or withdrawn.")
    ] = "pending",
    kind: Annotated[str | None, typer.Option("--kind", metavar="K")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only what the caller proposed.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="1 to 500; 50 unless given.")] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="Go on behind a page; it says with what.")
    ] = None,
) -> None:
    """List candidates: the riskiest first, of these the oldest."""
    from grandbo.memory.reviewing import cursor_behind, read_cursor

    with call.memory() as memory:
        found = memory.candidates(status=status, kind=kind, mine=mine, limit=limit, after=read_cursor(after))
    if call.json:
        for item in found:
            print_json(item)
    else:
        columns = ("candidate_id", "risk", "kind", "title", "author_type", "proposed_at", "flags")
        print_table(columns, [[_cell(item[name]) for name in columns] for item in found])
    if more := cursor_behind(found, limit):
        tell_more(more, as_json=call.json)


@command(review, "detect", example="grandbo review detect --tenant acme")
def detect(call: Call) -> None:
    """Compare entries that were not compared yet; what contradicts waits as a candidate, and nothing else happens."""
    with call.memory() as memory:
        found = memory.detect_contradictions().as_dict()
    if call.json:
        print_json(found)
    else:
        say(
            f"{found['compared']} entries compared, {found['proposed']} disputes wait, {found['pending']} entries left."
        )


@command(review, "show")
def show(call: Call, candidate_id: _Id) -> None:
    """Show a candidate with its evidence and flags, and the nearest entries with what is different in them."""
    with call.memory() as memory:
        found = memory.candidate(_id(candidate_id))
    if call.json:
        print_json(found)
    else:
        say(*_lines(found))


@command(review, "amend", example="grandbo review amend ID --from changes.json --reason clearer --tenant acme")
def amend(
    call: Call,
    candidate_id: _Id,
    reason: _Reason,
    changes: _Changes = None,
    into: Annotated[str | None, typer.Option("--into", metavar="ID", help="The entry that it would correct.")] = None,
    expected_version: _Expected = None,
) -> None:
    """Replace fields of a candidate; approvals that it had are void."""
    given = read_document(changes) if changes else {}
    target = _id(into, "entry") if into is not None else None
    if not given and target is None:
        raise InvalidInput("Say what to change, with --from or --into.", field="changes")
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.amend_candidate(
            found, given, into=target, reason=reason, expected_version=expected_version
        ),
    )


@command(review, "approve", example="grandbo review approve ID --reason checked --as human:kim --tenant acme")
def approve(
    call: Call, candidate_id: _Id, reason: _Reason, changes: _Changes = None, expected_version: _Expected = None
) -> None:
    """Let a candidate in as an entry of its own. Nobody approves their own."""
    given = read_document(changes) if changes else {}
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.approve_candidate(
            found, reason=reason, changes=given, expected_version=expected_version
        ),
    )


@command(review, "merge", example="grandbo review merge ID --into ENTRY --reason same --as human:kim --tenant acme")
def merge(
    call: Call,
    candidate_id: _Id,
    reason: _Reason,
    into: Annotated[
        str | None, typer.Option("--into", metavar="ENTRY", help="Else the one the proposal names.")
    ] = None,
    changes: _Changes = None,
    expected_version: _Expected = None,
    expected_revision: Annotated[int | None, typer.Option("--expected-revision", metavar="N", min=1)] = None,
) -> None:
    """Let a candidate in as a correction of an entry."""
    given = read_document(changes) if changes else {}
    target = _id(into, "entry") if into is not None else None
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.merge_candidate(
            found,
            reason=reason,
            into=target,
            changes=given,
            expected_version=expected_version,
            expected_revision=expected_revision,
        ),
    )


@command(review, "reject")
def reject(call: Call, candidate_id: _Id, reason: _Reason, expected_version: _Expected = None) -> None:
    """Decide against a candidate."""
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.reject_candidate(found, reason=reason, expected_version=expected_version),
    )


@command(review, "withdraw")
def withdraw(call: Call, candidate_id: _Id, reason: _Reason, expected_version: _Expected = None) -> None:
    """Take one's own proposal back."""
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.withdraw_candidate(found, reason=reason, expected_version=expected_version),
    )


@command(review, "reopen")
def reopen(call: Call, candidate_id: _Id, reason: _Reason, expected_version: _Expected = None) -> None:
    """Undo a decision, and what it put into the memory; the candidate waits again."""
    _act(
        call,
        candidate_id,
        lambda memory, found: memory.reopen_candidate(found, reason=reason, expected_version=expected_version),
    )


def _act(call: Call, candidate_id: str, act: Act) -> None:
    found = _id(candidate_id)
    with call.memory() as memory:
        _say(call, act(memory, found))


def _say(call: Call, decided: Decided) -> None:
    if call.json:
        print_json(decided.as_dict())
        return
    say(f"{'Done' if decided.appended else 'Nothing to change'}: candidate {decided.candidate_id} is {decided.status}")
    if decided.entry_id is not None:
        say(f"{decided.outcome}: entry {decided.entry_id}")


def _id(given: str, what: str = "candidate") -> UUID:
    """What is no id is nothing that is there: the same answer as for one that is not."""
    try:
        return UUID(given)
    except ValueError:
        raise NotFound(f"There is no such {what} in this tenant.") from None


def _origin(given: str | None) -> dict[str, str] | None:
    if given is None:
        return None
    kind, _, ref = given.partition(":")
    return {"type": kind, "ref": ref}


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else plain(str(value))


def _lines(found: dict[str, Any]) -> list[str]:
    content = found["content"]
    lines = [
        plain(content["title"]),
        f"   {content['kind']} · {found['status']} · by {found['author_type']} {found['proposed_by']}",
        f"   risk     {found['risk']} ({', '.join(found['flags']) or 'no flags'})",
        f"   version  {found['version']}, visible to {plain(content['visibility'])}",
    ]
    lines += [f"   about    {found['subject_id']}"] if found["subject_id"] else []
    lines += [f"   key      {plain(content[own])}" for own in ("memory_key", "session_id") if own in content]
    lines += [f"   source   {plain(item['uri'])}" for item in content["evidence"]]
    lines += (
        [f"   decided  {found['outcome'] or ''} {plain(found['decision_reason'] or '')}"] if found["decided_by"] else []
    )
    lines += [f"   related  {item['entry_id']} {plain(item['title'])}" for item in found["related"]]
    if found["dispute"] is not None:
        lines.append(f"   against  {found['disputes']} {plain(found['dispute']['title'])}")
        lines += _contradiction_lines(found["dispute"]["contradictions"])
    for item in found["nearest"]:
        lines.append(f"   nearest  {item['entry_id']} {plain(item['title'])}{_near_marks(item)}")
        lines += _contradiction_lines(item["contradictions"])
    lines += [
        f"   recurs   {item['entry_id']} has {item['open_follow_ups']} follow-ups open" for item in found["recurrence"]
    ]
    for text in (content["summary"], content["body"]):
        lines += ["", *(plain(line) for line in text.splitlines())] if text else []
    return lines


def _near_marks(item: dict[str, Any]) -> str:
    return " (near duplicate)" if item["near_duplicate"] else ""


def _contradiction_lines(judgement: dict[str, Any]) -> list[str]:
    lines = []
    for found in judgement["findings"]:
        lines += [f"      {found['rule']} of {plain(found['subject'])}:"]
        lines += [f"        - {plain(found[side])}" for side in ("a", "b")]
    if judgement["unjudged"]:
        reasons = sorted({item["reason"] for item in judgement["unjudged"]})
        lines.append(f"      not judged: {', '.join(reasons)}")
    return lines
