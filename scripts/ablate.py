"""
What a change of the ranking would find: every variant on every judged set, against what is in use, in pairs.

Reckoned outside the database from what each set's tenant stores: terms, weights, vectors, cutoff. Nothing is folded;
what is quarantined is left out. The tenants are made where they are not there yet, which embeds the corpus once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.ablate_corpus import Corpus, read_corpus
from scripts.ablate_reckoning import Reckoner
from scripts.ablate_third import Order
from scripts.ablate_tokens import LateInteraction, TokenVectors
from scripts.ablate_variants import orders

from grandbo.embedding.local import LocalProvider
from grandbo.evaluation import Interval, JudgedSet, load_corpus, read_judged_set
from grandbo.evaluation.asking import DEPTH, Asked
from grandbo.evaluation.measures import MEASURES, Scores, difference, scores_of
from grandbo.library import Grandbo

OfVariant = dict[str, Scores]
Table = dict[str, OfVariant]
_CHOSEN_BY = ("recall@5", "ndcg@10")


def main() -> None:
    """Reckon and print."""
    parser = argparse.ArgumentParser(prog="scripts/ablate", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="Where the tenants of the sets are kept.")
    parser.add_argument(
        "--set",
        dest="sets",
        nargs=4,
        action="append",
        required=True,
        metavar=("NAME", "CORPUS", "TOPICS", "QRELS"),
        help="A judged set, as `grandbo eval` reads it; NAME is its tenant.",
    )
    parser.add_argument("--tokens", type=Path, help="A file for token vectors: late interaction is tried too. Slow.")
    parser.add_argument("--json", action="store_true", help="Scores of every variant, by set, measure and topic.")
    given = parser.parse_args()
    tables: dict[str, Table] = {}
    with Grandbo.open(home=given.home) as grandbo:
        for name, *files in given.sets:
            judged = read_judged_set(*map(Path, files))
            tables[name] = _table(_corpus(grandbo, name, judged), judged, grandbo, given.tokens)
    if given.json:
        print(json.dumps(tables))
        return
    _print(tables)
    _print_chosen(tables, "k = ", "k = 60, emphasis 0")
    _print_chosen(tables, "late interaction", next(iter(next(iter(tables.values())))))


def _corpus(grandbo: Grandbo, name: str, judged: JudgedSet) -> Corpus:
    if name not in {tenant.name for tenant in grandbo.tenants()}:
        grandbo.create_tenant(name)
    memory = grandbo.tenant(name)
    load_corpus(memory, judged, progress=lambda phase, done, total: _tell(f"{name}: {phase} {done} of {total}"))
    return read_corpus(grandbo, memory, judged)


def _table(corpus: Corpus, judged: JudgedSet, grandbo: Grandbo, file: Path | None) -> Table:
    assert grandbo.embedder is not None
    reckoner = Reckoner(corpus)
    tokens = None if file is None else LateInteraction(reckoner, TokenVectors(file, LocalProvider()))
    found = {}
    for variant, order in orders(reckoner, grandbo.embedder, tokens):
        _tell(variant)
        found[variant] = _scores(corpus, order, judged.relevant)
    return found


def _scores(corpus: Corpus, order: Order, relevant: Mapping[str, frozenset[str]]) -> OfVariant:
    answers = {
        name: Asked(tuple(corpus.documents[entry] for entry in order(name)[:DEPTH]), True, None) for name in relevant
    }
    scores = scores_of(answers, relevant)
    return {measure: scores[measure] for measure in MEASURES}


def _print(tables: dict[str, Table]) -> None:
    """A row for each variant: Recall@5, nDCG@10, and what it has over what is in use."""
    first = next(iter(tables.values()))
    in_use = next(iter(first))
    print(f"| variant | {' | '.join(tables)} |")
    print("|---|" + "---|" * len(tables))
    for variant in first:
        cells = [_cell(table[variant], None if variant == in_use else table[in_use]) for table in tables.values()]
        print(f"| {variant} | {' | '.join(cells)} |")


def _cell(scores: OfVariant, base: OfVariant | None) -> str:
    shown = []
    for measure in _CHOSEN_BY:
        values = scores[measure]
        text = f"{statistics.fmean(values.values()):.3f}"
        if base is not None:
            text += f" ({_signed(difference(values, base[measure]))})"
        shown.append(text)
    return " / ".join(shown)


def _signed(found: Interval | None) -> str:
    assert found is not None
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def _print_chosen(tables: dict[str, Table], kind: str, base: str) -> None:
    """For each set, the variant of a kind that is best on the others, and what it does on this one."""
    grid = [variant for variant in next(iter(tables.values())) if kind in variant]
    if not grid:
        return
    print(f"\n| set | best on the others | there | over {base} |\n|---|---|---|---|")
    for name, table in tables.items():
        others = [other for other_name, other in tables.items() if other_name != name]
        if not others:
            return
        best = max(grid, key=lambda variant: sum(_worth(other[variant]) for other in others))
        gains = " / ".join(_signed(difference(table[best][measure], table[base][measure])) for measure in _CHOSEN_BY)
        print(f"| {name} | {best} | {_cell(table[best], None)} | {gains} |")


def _worth(scores: OfVariant) -> float:
    return sum(statistics.fmean(scores[measure].values()) for measure in _CHOSEN_BY)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
