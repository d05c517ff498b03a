"""`grandbo recall`: a topic in, evidence out, as things stand or as they stood."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, say, tell
from grandbo.errors import InvalidInput
from grandbo.recall.answer import Answer, Match, Searched
from grandbo.recall.budget import check_budget
from grandbo.recall.citations import citation
from grandbo.recall.difference import Change, Difference
from grandbo.recall.headers import why_empty
from grandbo.types import utc_text

_Mode = Literal["hybrid", "words", "meaning"]


def register(app: typer.Typer) -> None:
    """Hang the commands in."""
    example = 'grandbo recall "pods cannot get an address after the node pool grew" --tenant acme'
    command(app, "recall", example=example)(recall)


def recall(
    call: Call,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="A sentence: the symptom, the suspected mechanism, the component.")
    ],
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", help="1 to 20; 5 unless given.")] = None,
    kinds: Annotated[list[str] | None, typer.Option("--kind", metavar="K", help="Only this kind; repeatable.")] = None,
    service: Annotated[str | None, typer.Option("--service", metavar="S", help="Only this service.")] = None,
    namespace: Annotated[str | None, typer.Option("--namespace", metavar="N", help="Only this namespace.")] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context",
            metavar="SYS=VERSION",
            help="A system you run, so that what does not apply is left out; repeatable.",
        ),
    ] = None,
    mode: Annotated[_Mode | None, typer.Option("--mode", help="By words, by meaning, or both.")] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option(
            "--status", metavar="S", help="published, archived, superseded, quarantined, disputed, expired; repeatable."
        ),
    ] = None,
    incident: Annotated[
        str | None, typer.Option("--incident", metavar="SOURCE:ID", help="What it is asked for; kept in the receipt.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="TIME", help="What was known at this time; RFC 3339 with a zone.")
    ] = None,
    as_of_position: Annotated[
        int | None, typer.Option("--as-of-position", metavar="P", help="What the log knew at this position.")
    ] = None,
    valid_at: Annotated[
        str | None, typer.Option("--valid-at", metavar="TIME", help="Judge validity at this time instead.")
    ] = None,
    role: Annotated[
        str | None, typer.Option("--as-role", metavar="R", help="As someone with this role would be answered.")
    ] = None,
    at_least: Annotated[
        int | None,
        typer.Option("--at-least", metavar="P", help="A position that a replica must have to answer."),
    ] = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="With --as-of or --as-of-position: what is different today, and why.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what was searched and why each was eligible.")
    ] = False,
    rendered: Annotated[bool, typer.Option("--render", help="Print the fenced block that an agent is given.")] = False,
    budget: Annotated[
        int | None,
        typer.Option("--budget", metavar="N", help="With --render: its tokens, 200 to 8,000; 2,000 unless given."),
    ] = None,
) -> None:
    """
    Ask what is known about a topic.

    Every match is cited as ENTRY/REVISION@POSITION. An empty answer says which kind of nothing it is.
    """
    if diff and rendered:
        raise InvalidInput("--render prints one answer, --diff compares two; give one of them.", field="diff")
    if budget is not None and not rendered:
        raise InvalidInput("--budget says how long the block of --render may be; give both.", field="budget")
    check_budget(budget)
    wanted: dict[str, Any] = {
        "limit": limit,
        "kinds": kinds or None,
        "service": service,
        "namespace": namespace,
        "context": read_context(context),
        "mode": mode,
        "statuses": statuses or None,
        "incident": None if incident is None else _incident(incident),
        "as_of": as_of,
        "as_of_position": as_of_position,
        "valid_at": valid_at,
        "as_role": role,
        "at_least": at_least,
    }
    with call.memory() as memory:
        if diff:
            found = memory.query_topic_diff(topic, **wanted)
            print_json(found.as_dict()) if call.json else _say_difference(found, explain=explain)
            return
        answer = memory.query_topic(topic, **wanted)
        block = memory.context_block(answer, topic, budget=budget) if rendered else None
    if call.json:
        print_json(answer.as_dict() | ({"rendered": block.as_dict()} if block else {}))
    elif block:
        say(block.text)
    else:
        say_answer(answer, explain=explain)


def read_context(given: list[str] | None) -> dict[str, str] | None:
    """The systems that the asker runs, from `SYSTEM=VERSION` options."""
    pairs = [item.partition("=") for item in given or ()]
    if any(not equals for _, equals, _ in pairs):
        raise InvalidInput("context: write SYSTEM=VERSION, such as --context worker=5.2.", field="context")
    if len({system.strip() for system, _, _ in pairs}) < len(pairs):
        raise InvalidInput("context: name each system once.", field="context")
    return {system.strip(): version for system, _, version in pairs} or None


def _incident(given: str) -> tuple[str, str]:
    source, colon, identifier = given.partition(":")
    if not colon:
        raise InvalidInput("incident: write SOURCE:ID, such as pager:INC-1.", field="incident")
    return source, identifier


def say_answer(answer: Answer, *, explain: bool = False) -> None:
    """An answer for people."""
    searched = answer.searched
    if not answer.matches:
        say(why_empty(searched))
    elif searched.degraded:
        say(f"By words alone: the search by meaning was not available ({searched.degraded}).", "")
    for number, match in enumerate(answer.matches, start=1):
        say(*_match_lines(number, match, explain), "")
    for number, match in enumerate(answer.floor, start=1):
        say(*(["Not matched; what the policy has given in place of nothing:"] if number == 1 else []))
        say(*_match_lines(number, match, explain), "")
    if answer.matches:
        say(f"{len(answer.matches)} of {searched.eligible} entries in scope, by {_signals(searched)}.")
    if searched.excluded.applicability:
        say(f"{searched.excluded.applicability} entries do not apply to what you run and were left out.")
    if searched.excluded.unreadable:
        systems = ", ".join(searched.excluded.unreadable)
        tell(f"No version can be read of {systems}: what depends on it was left out.")
    if searched.without_vector:
        tell(f"{searched.without_vector} entries have no vector yet and were searched by words alone.")
    if explain:
        say(*_explained(answer))


def _say_difference(found: Difference, *, explain: bool) -> None:
    say_answer(found.then, explain=explain)
    say("", f"From position {found.then.position} to {found.today.position}, today:")
    lines = [
        *(f"  + {change.now}. {_why_changed(change)}" for change in found.added),
        *(f"  - {change.then}. {_why_changed(change)}" for change in found.dropped),
        *(f"  ~ {change.then} -> {change.now}. {_why_changed(change)}" for change in found.reordered),
        *(f"  * {change.now}. {_why_changed(change)}" for change in found.revised),
    ]
    say(*(lines or ["  nothing is different"]))


def _why_changed(change: Change) -> str:
    event = f"{change.event_type} at {change.event_position}"
    cause = event if change.since else f"unchanged since {event}: time passed, or others came before or went"
    return f"{plain(change.title)} ({change.entry_id}; {cause})"


def _match_lines(number: int, match: Match, explain: bool) -> list[str]:
    facts = [match.kind, plain(match.service)]
    if match.occurred_at:
        facts.append(match.occurred_at.date().isoformat())
    facts.append(f"by {match.author_type}")
    facts += ["DISPUTED"] if match.disputed else []
    facts += ["EXPIRED"] if match.expired else []
    facts += [match.status.upper()] if match.status != "published" else []
    lines = [
        f"{number}. {plain(match.title)}",
        f"   {' · '.join(fact for fact in facts if fact)}",
        f"   cite   {citation(match)}",
        f"   why    {why_matched(match)}",
    ]
    lines += [f"   for    {plain(', '.join(match.applies_to))}"] if match.applies_to else []
    lines += [f"   source {plain(item['uri'])}" for item in match.evidence]
    if explain:
        lines.append(
            f"   scope  {match.status}, visible to {match.visibility}, expires {match.expires_at.date().isoformat()}, "
            f"confidence {match.confidence_bp / 100:g} %"
        )
    return lines


def why_matched(match: Match) -> str:
    """Why it is in the list, signal by signal, its part of the score, and the score that they add up to."""
    reasons = []
    if match.lexical:
        terms = plain(", ".join(match.lexical.terms))
        reasons.append(f"words: rank {match.lexical.rank} ({terms}), {match.lexical.part:.4f}")
    if match.semantic:
        near = f"distance {match.semantic.distance:.3f}, {match.semantic.part:.4f}"
        reasons.append(f"meaning: rank {match.semantic.rank}, {near}")
    return f"{'; '.join(reasons) or 'not matched'}; score {match.score:.4f}"


def _signals(searched: Searched) -> str:
    names = {"lexical": "words", "semantic": "meaning"}
    return " and ".join(names[signal] for signal in searched.signals) or "nothing"


def _explained(answer: Answer) -> list[str]:
    searched = answer.searched
    lines = [
        f"searched  {_signals(searched)}, {searched.eligible} entries in scope",
        f"at        position {answer.position}, {utc_text(answer.instant)}",
        f"receipt   {answer.receipt_id}",
    ]
    if searched.stamp:
        lines.append(f"space     {searched.stamp}, cutoff {searched.cutoff}")
    if searched.scan == "signatures":
        lines.append("scan      the scope is large: the nearest by signature were measured, not all")
    if searched.near_misses:
        lines.append(f"beyond    {searched.beyond} just beyond the cutoff, nearest at {searched.nearest_beyond}")
    return lines
