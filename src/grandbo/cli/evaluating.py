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
    from collections.abc import Callable, Mapping

    from grandbo.evaluation import Interval, JudgedSet, Loaded, Report
    from grandbo.library import Grandbo

    Load = Callable[[Grandbo, Call, "_Progress"], tuple[JudgedSet, Loaded, dict[str, Any]]]

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
    topics: Annotated[Path, typer.Option(help="Topics, JSON Lines: id and text.")],
    corpus: Annotated[
        Path | None, typer.Option(help="Documents, JSON Lines: id, title, body or text.", show_default=False)
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="Judgements, TREC qrels.", show_default=False)] = None,
    from_feedback: Annotated[
        bool, typer.Option("--from-feedback", help="Judge by the verdicts given in --tenant, on what it holds.")
    ] = False,
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
    With --from-feedback nothing is brought in: the tenant's own memory is asked, and what people found helpful counts.
    Topics are asked as an investigator. Needs `pip install 'grandbo[eval]'`.
    """
    from grandbo.evaluation import Report, compare

    if from_feedback and (corpus or qrels):
        raise InvalidInput("from-feedback: it takes neither --corpus nor --qrels; both are in the tenant.")
    before = None if compare_with is None else Report.of_document(_document(compare_with))
    load = _feedback(call, topics, topic_field) if from_feedback else _corpus(corpus, topics, qrels, topic_field)
    with _opened(call, home) as grandbo:
        report = _measured(call, grandbo, load, [mode.value], explain=explain)
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
        folder = home or _passing_home(stack)
        own = {"home": folder.absolute(), "database_url": None, "admin_database_url": None}
        tell("Starting PostgreSQL …")
        yield stack.enter_context(call.open(settings.model_copy(update=own)))


def _passing_home(stack: contextlib.ExitStack) -> Path:
    """A home that is gone afterwards; root's server runs under another account, which has to get through to it."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grandbo-eval-")))
    folder.chmod(0o755)
    return folder / "home"


def _corpus(corpus: Path | None, topics: Path, qrels: Path | None, topic_field: str) -> Load:
    """A judged set from files, which is brought into the memory."""
    from grandbo.evaluation import load_corpus, read_judged_set

    if corpus is None or qrels is None:
        missing = "corpus" if corpus is None else "qrels"
        raise InvalidInput(f"{missing}: give --corpus and --qrels, or --from-feedback.", field=missing)
    judged = read_judged_set(corpus, topics, qrels, topic_field=topic_field)

    def load(grandbo: Grandbo, call: Call, progress: _Progress) -> tuple[JudgedSet, Loaded, dict[str, Any]]:
        name = call.tenant or TENANT
        if name not in {value for tenant in grandbo.tenants() for value in (tenant.name, str(tenant.tenant_id))}:
            grandbo.create_tenant(name)
        loaded = load_corpus(grandbo.tenant(name, principal=call.principal), judged, progress=progress)
        return judged, loaded, {"documents": len(judged.documents)}

    return load


def _feedback(call: Call, topics: Path, topic_field: str) -> Load:
    """A judged set from the verdicts in the caller's tenant, which holds the corpus already."""
    from grandbo.evaluation import judged_set_from_feedback, read_topics

    if call.tenant is None:
        raise InvalidInput("tenant: --from-feedback needs one, whose verdicts are the judgements.", field="tenant")
    asked = read_topics(topics, topic_field=topic_field)

    def load(grandbo: Grandbo, call: Call, _: _Progress) -> tuple[JudgedSet, Loaded, dict[str, Any]]:
        found = judged_set_from_feedback(grandbo.tenant(str(call.tenant), principal=call.principal), asked)
        return found.judged, found.loaded, {"documents": len(found.loaded.entry_of), "feedback": found.as_dict()}

    return load


def _measured(call: Call, grandbo: Grandbo, load: Load, wanted: list[str], *, explain: bool) -> Report:
    from dataclasses import replace

    from grandbo.evaluation import MODES, ask_topics, explain_losses, report_of

    progress = _Progress()
    judged, loaded, sizes = load(grandbo, call, progress)
    name = call.tenant or TENANT
    modes = list(MODES) if wanted == ["all"] else wanted
    if grandbo.embedder is None:
        modes = [mode for mode in modes if mode == "words"] or ["words"]
    investigator = grandbo.tenant(name, principal="agent:evaluation", roles=("investigator",))
    answers = ask_topics(investigator, judged, loaded, modes, progress=progress)
    sizes |= {
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
    if given := corpus.get("feedback"):
        say(
            f"Judged by {given['verdicts']} verdicts; {given['unrecognised']} more are on other topics. Not asked: "
            f"{given['unjudged']} topics without a verdict, {given['without_help']} for which nothing helped.",
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
