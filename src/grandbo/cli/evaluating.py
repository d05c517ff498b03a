"""`grandbo eval`: how well recall finds, on a judged corpus."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grandbo.cli.call import Call, command
from grandbo.cli.output import plain, print_json, print_table, say, tell
from grandbo.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grandbo.evaluation import Interval, Report
    from grandbo.library import Grandbo

TENANT = "evaluation"
_STEPS = 4


class Mode(StrEnum):
    """What is measured."""

    words = "words"
    meaning = "meaning"
    hybrid = "hybrid"
    all = "all"


def register(app: typer.Typer) -> None:
    """Hang the command in."""
    example = "grandbo eval --corpus corpus.jsonl --topics topics.jsonl --qrels qrels.tsv --explain"
    command(app, "eval", example=example)(evaluate)


def evaluate(
    call: Call,
    corpus: Annotated[Path, typer.Option(help="Documents, JSON Lines: id, title, body or text.")],
    topics: Annotated[Path, typer.Option(help="Topics, JSON Lines: id and text.")],
    qrels: Annotated[Path, typer.Option(help="Judgements, TREC qrels.")],
    mode: Annotated[Mode, typer.Option(help="What to measure.")] = Mode.all,
    topic_field: Annotated[str, typer.Option(help="The field that holds a topic's text.")] = "text",
    home: Annotated[
        Path | None, typer.Option(help="Keep the database here: a second run embeds nothing again.", show_default=False)
    ] = None,
    compare_with: Annotated[
        Path | None, typer.Option("--compare", help="Compare with a saved run.", show_default=False)
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write this run here.", show_default=False)] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say where the answers of lost topics stood.")] = False,
) -> None:
    """
    Measure recall on a judged corpus: recall, nDCG, MRR, how often it answers, and how often it should not have.

    The corpus goes into a database of its own that is removed again, or, with --tenant, into that tenant of yours.
    Topics are asked as an investigator. Needs `pip install 'grandbo[eval]'`.
    """
    from grandbo.evaluation import Report, compare, read_judged_set

    before = None if compare_with is None else Report.of_document(_document(compare_with))
    judged = read_judged_set(corpus, topics, qrels, topic_field=topic_field)
    with _opened(call, home) as grandbo:
        report = _measured(call, grandbo, judged, [mode.value], explain=explain)
    against = {} if before is None else compare(report, before)
    if save is not None:
        _keep(report, save)
    if call.json:
        shown = {name: value for name, value in report.as_dict().items() if name != "scores"}
        print_json({**shown, "compared": _plain(against)})
    else:
        _say(report, against)


@contextlib.contextmanager
def _opened(call: Call, home: Path | None) -> Iterator[Grandbo]:
    """The memory to measure in: the caller's own where he names a tenant, else one that nobody works with."""
    settings = call.settings(bulk=True)
    if call.tenant is not None:
        if home is not None:
            raise InvalidInput("home: give it or --tenant, not both.", field="home")
        with call.open(settings) as grandbo:
            yield grandbo
        return
    with contextlib.ExitStack() as stack:
        folder = home or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grandbo-eval-")))
        own = {"home": folder.absolute(), "database_url": None, "admin_database_url": None}
        tell("Starting PostgreSQL …")
        yield stack.enter_context(call.open(settings.model_copy(update=own)))


def _measured(call: Call, grandbo: Grandbo, judged: Any, wanted: list[str], *, explain: bool) -> Report:
    from dataclasses import replace

    from grandbo.evaluation import MODES, ask_topics, explain_losses, load_corpus, report_of

    name = call.tenant or TENANT
    if name not in {value for tenant in grandbo.tenants() for value in (tenant.name, str(tenant.tenant_id))}:
        grandbo.create_tenant(name)
    progress = _Progress()
    loaded = load_corpus(grandbo.tenant(name, principal=call.principal), judged, progress=progress)
    modes = list(MODES) if wanted == ["all"] else wanted
    if grandbo.embedder is None:
        modes = [mode for mode in modes if mode == "words"] or ["words"]
    investigator = grandbo.tenant(name, principal="agent:evaluation", roles=("investigator",))
    answers = ask_topics(investigator, judged, loaded, modes, progress=progress)
    sizes = {
        "documents": len(judged.documents),
        "topics": len(judged.topics),
        "answerable": len(judged.relevant),
        "stamp": None if grandbo.embedder is None else grandbo.embedder.stamp.id,
    }
    report = report_of(judged, answers, {**sizes, **loaded.as_dict()})
    if not explain:
        return report
    losses = {mode: explain_losses(investigator, judged, loaded, of_mode, mode) for mode, of_mode in answers.items()}
    return replace(report, losses=losses)


class _Progress:
    """A line on stderr for each quarter of each phase."""

    def __init__(self) -> None:
        self._phase, self._quarter = "", -1

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self._phase, self._quarter = phase, -1
        if total and (reached := done * _STEPS // total) > self._quarter:
            self._quarter = reached
            tell(f"{phase}: {done} of {total}")


def _keep(report: Report, path: Path) -> None:
    try:
        path.write_text(json.dumps(report.as_dict()) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"save: {path.name} cannot be written ({type(error).__name__}).", field="save") from None


def _document(path: Path) -> object:
    from grandbo.evaluation.inputs import read_file
    from grandbo.memory.importing import parse_json

    return parse_json(read_file(path))


def _plain(table: Mapping[str, Mapping[str, Interval | None]]) -> dict[str, Any]:
    return {
        mode: {name: None if found is None else found.as_dict() for name, found in row.items()}
        for mode, row in table.items()
    }


def _say(report: Report, against: Mapping[str, Mapping[str, Interval | None]]) -> None:
    corpus = report.corpus
    say(
        f"{corpus['stored']} of {corpus['documents']} documents stored, {corpus['hidden']} of them hidden, "
        f"{corpus['refused']} refused. {corpus['topics']} topics, {corpus['answerable']} with an answer here.",
        "",
    )
    _table("", report.summary(), signed=False)
    for title, table in (("hybrid minus", report.gains()), ("now minus before", against)):
        if table:
            say("", title)
            _table(title, table, signed=True)
    for mode, lost in report.losses.items():
        say("", f"{mode}: {len(lost)} topics lost")
        print_table(
            ("topic", "document", "why", "answered at", "words", "meaning", "distance"),
            (
                (
                    topic,
                    place.document,
                    place.why,
                    place.answered_at,
                    place.lexical_rank,
                    place.semantic_rank,
                    None if place.distance is None else f"{place.distance:.3f}",
                )
                for topic, places in lost.items()
                for place in places
            ),
        )


def _table(title: str, table: Mapping[str, Mapping[str, Interval | None]], *, signed: bool) -> None:
    names = list(next(iter(table.values())))
    form = "+.3f" if signed else ".3f"
    print_table(
        (plain(title) or "mode", *names),
        ((mode, *(_cell(row[name], form) for name in names)) for mode, row in table.items()),
    )


def _cell(found: Interval | None, form: str) -> str:
    if found is None:
        return "-"
    return f"{found.mean:{form}} [{found.low:{form}}, {found.high:{form}}]"
