"""Context blocks under test: answers made of nothing but values, and a reader that knows only what is documented."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from grandbo.recall.answer import Answer, Lexical, Match, Searched
from grandbo.recall.block import BAR, ContextBlock, render_block
from grandbo.recall.budget import DEFAULT_BUDGET

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MARKER = "7" * 32
MATCH = Match(
    entry_id=UUID(int=1),
    revision=3,
    position=812,
    kind="finding",
    title="Queue stalled",
    summary="Leases were lost.",
    service="checkout",
    status="published",
    disputed=False,
    disputed_with=None,
    confidence_bp=8_000,
    author_type="agent",
    occurred_at=AT,
    verified_at=None,
    expires_at=AT,
    evidence=({"type": "log", "uri": "https://logs.example.com/1", "label": ""},),
    external_id=None,
    visibility="team",
    score=0.03,
    lexical=Lexical(1, ("queue",), 0.03),
    semantic=None,
)
SEARCHED = Searched(
    signals=("lexical", "semantic"),
    degraded=None,
    stamp="s",
    cutoff=0.65,
    eligible=9,
    without_vector=0,
    near_misses=2,
    nearest_beyond=0.671,
    empty_reason=None,
)
_CITE = re.compile(r"\((?:cite|excerpt(?:, cut within a sentence)?, cite) ([0-9a-f-]{36})/(\d+)#(\d+)-(\d+)\)")


@dataclass(frozen=True, slots=True)
class Read:
    """A block as a reader takes it apart: the two fences, the lines of the product, and what each citation quotes."""

    first: str
    last: str
    own: list[str]
    quotes: list[tuple[UUID, int, int, int, list[str]]]


def answer_of(*matches: Match, **searched: Any) -> Answer:
    """An answer with these matches."""
    return Answer(matches, replace(SEARCHED, **searched), 2_210, AT, UUID(int=2))


def match_of(number: int, **fields: Any) -> Match:
    """A match with an id of its own."""
    return replace(MATCH, **{"entry_id": UUID(int=number), **fields})


def block_of(
    *matches: Match,
    bodies: Sequence[str] = (),
    terms: Sequence[str] = (),
    budget: int = DEFAULT_BUDGET,
    marker: str = MARKER,
    **searched: Any,
) -> ContextBlock:
    """The block of an answer with these matches, the first of which have these bodies."""
    filled = [*bodies, *[""] * len(matches)]
    texts = {
        (match.entry_id, match.revision): (match.title, match.summary, filled[number])
        for number, match in enumerate(matches)
    }
    return render_block(answer_of(*matches, **searched), texts, terms, budget=budget, make_marker=lambda: marker)


def read_block(text: str) -> Read:
    """Take a block apart, by every notion of a line's end."""
    first, *inside, last = text.splitlines()
    own: list[str] = []
    quotes: list[tuple[UUID, int, int, int, list[str]]] = []
    for line in inside:
        if line.startswith(BAR):
            quotes[-1][4].append(line.removeprefix(BAR))
            continue
        own.append(line)
        if cited := _CITE.fullmatch(line):
            entry, *numbers = cited.groups()
            quotes.append((UUID(entry), *map(int, numbers), []))  # type: ignore[arg-type]  # three numbers
    return Read(first, last, own, quotes)
