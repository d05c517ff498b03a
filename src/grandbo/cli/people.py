"""`grandbo subject`, `grandbo episode`: people and workspaces, and what is remembered about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.erasing import say_erasure
from grandbo.cli.output import plain, print_json, print_table, say, tell
from grandbo.cli.writing import read_document

if TYPE_CHECKING:
    from grandbo.memory.personal import Preview, Remembered
    from grandbo.memory.subjects import Subject

subject = typer.Typer(help="People and workspaces that something is remembered about.", no_args_is_help=True)
episode = typer.Typer(help="What came of a session of work, where the tenant takes it in.", no_args_is_help=True)

_Named = Annotated[str, typer.Argument(metavar="SUBJECT", help="The id, or the reference it was registered under.")]
_Kind = Literal["person", "workspace"]
_Format = Literal["json", "markdown", "html"]
_Reason = Annotated[str, typer.Option("--reason", metavar="WHY", help="It stands in the history, and in the refusal.")]
_File = Annotated[str, typer.Argument(metavar="FILE|-", help="A JSON object; `-` for standard input.")]
_Token = Annotated[str, typer.Argument(metavar="TOKEN", help="What the preview gave.")]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    app.add_typer(subject, name="subject")
    app.add_typer(episode, name="episode")


@command(subject, "register", example="grandbo subject register person zoe@example.com --name Zoe --owner human:zoe")
def register_(
    call: Call,
    kind: Annotated[_Kind, typer.Argument(metavar="KIND", help="person or workspace.")],
    reference: Annotated[str, typer.Argument(metavar="REFERENCE", help="What it is called elsewhere; not kept.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What it is called; sealed under its own key.")],
    principals: Annotated[
        list[str] | None,
        typer.Option("--owner", metavar="[TYPE:]NAME", help="Whose own recalls are told about it; repeatable."),
    ] = None,
) -> None:
    """Register a person or a workspace. The same reference again is the same subject."""
    with call.memory() as memory:
        made = memory.register_subject(kind, reference, name, principals=principals or ())
    if call.json:
        print_json(made.as_dict())
    else:
        say(f"{'Registered' if made.created else 'Known already:'} {made.subject.subject_id}")


@command(subject, "list")
def list_(call: Call) -> None:
    """List subjects, and the tombstones of those that were erased; without names."""
    with call.memory() as memory:
        found = [item.as_dict() for item in memory.subjects()]
    if call.json:
        for item in found:
            print_json(item)
        return
    rows = [
        (item["subject_id"], item["kind"], item["state"], item["registered_at"], "on hold" if item["hold"] else "")
        for item in found
    ]
    print_table(("subject_id", "kind", "state", "registered_at", "hold"), rows)


@command(subject, "show", example="grandbo subject show zoe@example.com --tenant acme")
def show(call: Call, named: _Named) -> None:
    """Show one subject with its name."""
    with call.memory() as memory:
        _say(call, memory.subject(named))


@command(subject, "held", example="grandbo subject held zoe@example.com --output zoe.md --tenant acme")
def held(
    call: Call,
    named: _Named,
    form: Annotated[_Format | None, typer.Option("--format", help="json; markdown or html for people.")] = None,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
) -> None:
    """
    Show all that is held about a subject: revisions, who said what, until when, and to whom it was shown.

    For who administers. Asked again it is the same.
    """
    from grandbo.memory.held_page import render_held_page
    from grandbo.memory.held_report import render_held

    with call.memory() as memory:
        document = memory.held(named)
    if form == "json" or (form is None and call.json):
        text = json.dumps(document, ensure_ascii=False) + "\n"
    else:
        text = render_held_page(document) if form == "html" else render_held(document)
    if output is None:
        typer.echo(text, nl=False)
        return
    output.touch(mode=0o600)
    output.write_text(text, encoding="utf-8")
    tell(f"Written to {output}.")


@command(subject, "forget", example="grandbo subject forget zoe@example.com --reason personal_data --tenant acme")
def forget(
    call: Call,
    named: _Named,
    reason: Annotated[
        str, typer.Option("--reason", metavar="CODE", help="personal_data, secret, legal or request; never words.")
    ],
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Write the certificate there.")
    ] = None,
) -> None:
    """
    Erase all that is held about a subject, for good.

    Prints what went, store by store. Where the tenant's policy wants a second person, it waits for `grandbo erasure
    confirm`. The certificate can be checked by anyone with scripts/verify_certificate.py.
    """
    with call.memory() as memory:
        done = memory.forget_subject(named, reason)
    if certificate is not None and done.certificate is not None:
        certificate.write_text(done.certificate, encoding="utf-8")
    say_erasure(call, done)
    if done.position is None:
        tell(f"A second person has to confirm it: grandbo erasure confirm {done.erasure_id}")


@command(subject, "hold", example="grandbo subject hold zoe@example.com --reason 'Litigation 17' --tenant acme")
def hold(call: Call, named: _Named, reason: _Reason) -> None:
    """Set a legal hold: nothing about the subject is erased, changed or made to expire."""
    with call.memory() as memory:
        _say(call, memory.hold_subject(named, reason))


@command(subject, "lift-hold")
def lift_hold(call: Call, named: _Named, reason: _Reason) -> None:
    """Release a legal hold."""
    with call.memory() as memory:
        _say(call, memory.lift_hold(named, reason))


@command(subject, "remember", example="grandbo subject remember fact.json --tenant acme")
def remember(
    call: Call,
    file: _File,
    workspace: Annotated[
        bool, typer.Option("--workspace", help="About a workspace: stored at once where the policy says so.")
    ] = False,
) -> None:
    """
    Have something remembered: shows what would be stored, and gives a token.

    A JSON object with `subject`, `memory_key`, `title`, and optionally `text`, `confidence_bp`, `expires_at`. Nothing
    is stored until a person confirms the token.
    """
    document = read_document(file)
    with call.memory() as memory:
        done = memory.remember_workspace(document) if workspace else memory.remember(document)
    _say_remembered(call, done)


@command(subject, "confirm", example="grandbo subject confirm TOKEN --as human:zoe --tenant acme")
def confirm(call: Call, token: _Token) -> None:
    """Store what waits under a token. Only a person may; again it is the first answer."""
    with call.memory() as memory:
        _say_remembered(call, memory.confirm_memory(token))


@command(subject, "refuse")
def refuse(call: Call, token: _Token) -> None:
    """Drop what waits under a token."""
    with call.memory() as memory:
        memory.refuse_memory(token)
    print_json({"refused": True}) if call.json else say("Dropped.")


@command(episode, "record", example="grandbo episode record episode.json --tenant acme")
def record_episode(call: Call, file: _File) -> None:
    """
    Record what came of a session: one a session id and subject, told again it is a correction.

    A JSON object with `session_id`, `subject`, `title`, and what else a finding has.
    """
    document = read_document(file)
    with call.memory() as memory:
        _say_remembered(call, memory.record_episode(document))


def _say(call: Call, item: Subject) -> None:
    document = item.as_dict()
    if call.json:
        print_json(document)
        return
    say(f"{document['kind']} {document['subject_id']}, {document['state']}")
    if document["name"] is not None:
        say(f"  name   {plain(document['name'])}")
    if document["hold"] is not None:
        say(f"  hold   since {document['hold']['since']}: {plain(document['hold']['reason'])}")


def _say_remembered(call: Call, done: Preview | Remembered) -> None:
    document: dict[str, Any] = done.as_dict()
    if call.json:
        print_json(document)
    elif document["stored"]:
        what = "Stored" if document["appended"] else "Known already:"
        say(f"{what} {document['entry_id']}/{document['revision']}@{document['position']}")
    else:
        author = "an inference" if document["is_inference"] else "a person's statement"
        say(
            f"Not stored yet. About {plain(document['about']['name'] or document['about']['subject_id'])}, {author}:",
            f"  {plain(document['title'])}",
            f"  {plain(document['text'])}",
            f"  kept until {document['expires_at']}",
            f"token  {document['token']}",
        )
        tell(f"A person stores it with `grandbo subject confirm TOKEN`, until {document['waits_until']}.")
