"""`grandbo recall`: a topic in, evidence out."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, say, tell
from grandbo.recall.answer import Answer, Match, Searched
from grandbo.recall.render import citation, render, why_empty

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
    mode: Annotated[_Mode | None, typer.Option("--mode", help="By words, by meaning, or both.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what was searched and why each was eligible.")
    ] = False,
    rendered: Annotated[bool, typer.Option("--render", help="Print the fenced block that an agent is given.")] = False,
) -> None:
    """
    Ask what is known about a topic.

    Every match is cited as ENTRY/REVISION@POSITION. An empty answer says which kind of nothing it is.
    """
    with call.memory() as memory:
        answer = memory.query_topic(topic, limit=limit, kinds=kinds or None, service=service, mode=mode)
    if call.json:
        print_json(answer.as_dict())
    elif rendered:
        say(render(answer))
    else:
        say_answer(answer, explain=explain)


def say_answer(answer: Answer, *, explain: bool = False) -> None:
    """An answer for people."""
    searched = answer.searched
    if not answer.matches:
        say(why_empty(searched))
    elif searched.degraded:
        say(f"By words alone: the search by meaning was not available ({searched.degraded}).", "")
    for number, match in enumerate(answer.matches, start=1):
        say(*_match_lines(number, match, explain), "")
    if answer.matches:
        say(f"{len(answer.matches)} of {searched.eligible} entries in scope, by {_signals(searched)}.")
    if searched.without_vector:
        tell(f"{searched.without_vector} entries have no vector yet and were searched by words alone.")
    if explain:
        say(*_explained(answer))


def _match_lines(number: int, match: Match, explain: bool) -> list[str]:
    facts = [match.kind, plain(match.service)]
    if match.occurred_at:
        facts.append(match.occurred_at.date().isoformat())
    facts.append(f"by {match.author_type}")
    facts += ["DISPUTED"] if match.disputed else []
    lines = [
        f"{number}. {plain(match.title)}",
        f"   {' · '.join(fact for fact in facts if fact)}",
        f"   cite   {citation(match)}",
        f"   why    {why_matched(match)}",
    ]
    lines += [f"   source {plain(item['uri'])}" for item in match.evidence]
    if explain:
        lines.append(
            f"   scope  {match.status}, visible to {match.visibility}, expires {match.expires_at.date().isoformat()}, "
            f"confidence {match.confidence_bp / 100:g} %"
        )
    return lines


def why_matched(match: Match) -> str:
    """Why it is in the list, signal by signal, and the score that the ranks add up to."""
    reasons = []
    if match.lexical:
        reasons.append(f"words: rank {match.lexical.rank} ({plain(', '.join(match.lexical.terms))})")
    if match.semantic:
        reasons.append(f"meaning: rank {match.semantic.rank}, distance {match.semantic.distance:.3f}")
    return f"{'; '.join(reasons)}; score {match.score:.4f}"


def _signals(searched: Searched) -> str:
    names = {"lexical": "words", "semantic": "meaning"}
    return " and ".join(names[signal] for signal in searched.signals) or "nothing"


def _explained(answer: Answer) -> list[str]:
    searched = answer.searched
    lines = [
        f"searched  {_signals(searched)}, {searched.eligible} entries in scope",
        f"at        position {answer.position}, {answer.instant.isoformat()}",
        f"receipt   {answer.receipt_id}",
    ]
    if searched.stamp:
        lines.append(f"space     {searched.stamp}, cutoff {searched.cutoff}")
    if searched.near_misses:
        lines.append(f"beyond    {searched.near_misses} just beyond the cutoff, nearest at {searched.nearest_beyond}")
    return lines
