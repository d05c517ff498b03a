"""
Contradictions between two entries, by a deterministic and versioned set of rules. Pure; English.

Two statements contradict each other where they are about the same subject in the same slot and differ in polarity, in
value, in version or in owner. What could not be judged is listed with the reason, and never guessed. A finding is for a
person to look at: nothing is disputed, superseded or retired because of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grandbo.applicability import Applies, parse_applies, ranges_by_system
from grandbo.memory.statements import Place, Slot, Statement, Unread, statements_of, subject_terms

# A change of what the rules find is another version: every pair is looked at again under it.
CONTRADICTION_VERSION = 1
Rule = Literal["polarity", "value", "version", "owner", "superseding_date", "ruled_out"]
UNJUDGED_LIMIT = 20
# Kinds that tell of one incident. Two of them are of the same one only where they happened on the same day.
REPORTS = frozenset({"finding", "episode"})
# A claim with fewer words in common says too little to be the opposite of another.
LEAST_COMMON = {"claim": 2, "value": 1, "version": 1, "owner": 1}


@dataclass(frozen=True, slots=True)
class Claim:
    """As much of an entry as its contradictions rest on; times as days, `YYYY-MM-DD`, or None."""

    title: str
    summary: str
    body: str
    kind: str
    service: str
    applicability: tuple[str, ...]
    occurred_on: str | None
    valid_from: str | None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Claim:
        """From a row, or from the plain values of an entry or of a candidate's content."""
        return cls(
            title=entry["title"],
            summary=entry["summary"],
            body=entry["body"],
            kind=entry["kind"],
            service=entry["service"],
            applicability=tuple(str(item) for item in entry["applicability"]),
            occurred_on=_day(entry["occurred_at"]),
            valid_from=_day(entry["valid_from"]),
        )


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two statements that cannot both hold: `a` and `b` are what each side says, `places` where."""

    rule: Rule
    subject: str
    slot: Slot
    a: str
    b: str
    places: tuple[Place, Place]

    def as_dict(self) -> dict[str, Any]:
        """Plain values; a span is `{field, start, end}` in characters."""
        spans = [{"field": place.field, "start": place.start, "end": place.end} for place in self.places]
        return {
            "rule": self.rule,
            "subject": self.subject,
            "slot": self.slot,
            "a": self.a,
            "b": self.b,
            "spans": spans,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found between two entries, and what could not be judged: `{reason, side, span}`."""

    findings: tuple[Contradiction, ...]
    unjudged: tuple[dict[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, with the version of the rules."""
        return {
            "version": CONTRADICTION_VERSION,
            "findings": [found.as_dict() for found in self.findings],
            "unjudged": list(self.unjudged),
        }


def judge(a: Claim, b: Claim) -> Judgement:
    """Compare all that two entries say. Which is `a` and which is `b` decides nothing but the order of the answer."""
    apart = _apart(a, b)
    if apart is not None:
        return Judgement((), ({"reason": apart, "side": None, "span": None},))
    ours, unread_a = statements_of(a.title, a.summary, a.body)
    theirs, unread_b = statements_of(b.title, b.summary, b.body)
    unjudged = [*_left_out("a", unread_a), *_left_out("b", unread_b)]
    if (a.kind == "ruled_out") != (b.kind == "ruled_out"):
        return Judgement(_ruled_out(a, b), tuple(unjudged[:UNJUDGED_LIMIT]))
    contexts = (_context(a), _context(b))
    found: dict[tuple[Any, ...], Contradiction] = {}
    for one in ours:
        for other in theirs:
            rule = _rule(one, other)
            if rule is None or not _is_same_subject(one, other, *contexts):
                continue
            reason = _why_not(one, other, a, b)
            if reason is not None:
                unjudged.append({"reason": reason, "side": "a", "span": _span(one.place)})
                continue
            made = _contradiction(rule, one, other, (a, b))
            found.setdefault((made.slot, made.subject, made.a, made.b), made)
    return Judgement(_without_echoes(found.values()), tuple(unjudged[:UNJUDGED_LIMIT]))


def _apart(a: Claim, b: Claim) -> str | None:
    """Why nothing that they say can contradict: they are about different services, or other versions of a system."""
    if a.service and b.service and a.service.casefold() != b.service.casefold():
        return "other_service"
    ours, theirs = _ranges(a), _ranges(b)
    for system in ours.keys() & theirs.keys():
        pairs = ((one, other) for one in ours[system] for other in theirs[system])
        if not any(max(one[0], other[0]) < min(one[1], other[1]) for one, other in pairs):
            return "other_versions"
    return None


def _ranges(claim: Claim) -> dict[str, list[tuple[bytes, bytes]]]:
    items: list[Applies] = [parse_applies(text) for text in claim.applicability]
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for system, low, high in ranges_by_system(items):
        found.setdefault(system, []).append((low, high))
    return found


def _rule(one: Statement, other: Statement) -> Rule | None:
    """Which rule the two would break, were they about the same."""
    if one.slot != other.slot or one.dimension != other.dimension:
        return None
    if one.slot == "claim":
        differs, rule = one.polarity != other.polarity, "polarity"
    elif one.polarity and other.polarity:
        differs, rule = one.value != other.value, str(one.slot)
    else:
        # `not 30 seconds` contradicts `30 seconds` and nothing else.
        differs, rule = one.polarity != other.polarity and one.value == other.value, "polarity"
    if not differs:
        return None
    return "superseding_date" if one.since != other.since else _RULES[rule]


_RULES: dict[str, Rule] = {"polarity": "polarity", "value": "value", "version": "version", "owner": "owner"}


def _is_same_subject(one: Statement, other: Statement, context: frozenset[str], other_context: frozenset[str]) -> bool:
    """
    The same words, but for those of one side that the other's title or service supplies.

    Where both sides have words that the other lacks, they are about different things as far as anyone can tell.
    """
    common = one.subject & other.subject
    ours, theirs = one.subject - other.subject, other.subject - one.subject
    if not common:
        # The subject may be named by the title alone: `Owner: payments` below `Ledger API`.
        is_named = one.slot != "claim" and bool(context & other_context)
        return is_named and ours <= other_context and theirs <= context
    return len(common) >= LEAST_COMMON[one.slot] and ours <= other_context and theirs <= context


def _why_not(one: Statement, other: Statement, a: Claim, b: Claim) -> str | None:
    """Why two statements that differ may both hold: they are of different times."""
    if one.tense != other.tense:
        return "past_and_present"
    same_day = a.occurred_on == b.occurred_on
    if one.tense == "past" and not same_day:
        return "other_time"
    if a.kind in REPORTS and b.kind in REPORTS and (a.occurred_on is None or not same_day):
        # `Time to recovery: 10 minutes` is of the incident that the report is about, in whatever tense it is written.
        return "other_incident"
    return None


def _contradiction(rule: Rule, one: Statement, other: Statement, claims: tuple[Claim, Claim]) -> Contradiction:
    subject = " ".join(sorted(one.subject & other.subject) or sorted(one.subject | other.subject))
    said = tuple(_words(claim, statement.place) for claim, statement in zip(claims, (one, other), strict=True))
    return Contradiction(rule, subject, one.slot, said[0], said[1], (one.place, other.place))


def _without_echoes(found: Iterable[Contradiction]) -> tuple[Contradiction, ...]:
    """One finding for each pair of sentences, the most telling: a value or an owner says more than a polarity."""
    kept: dict[tuple[Place, Place], Contradiction] = {}
    for item in found:
        before = kept.get(item.places)
        if before is None or (before.slot == "claim" and item.slot != "claim"):
            kept[item.places] = item
    return tuple(sorted(kept.values(), key=lambda item: [(p.field, p.start) for p in item.places]))


def _ruled_out(a: Claim, b: Claim) -> tuple[Contradiction, ...]:
    """What one entry rules out by its kind, the other says in its title."""
    ours, theirs = subject_terms(a.title), subject_terms(b.title)
    if len(ours & theirs) < LEAST_COMMON["claim"] or (ours - theirs and theirs - ours):
        return ()
    if ours ^ theirs:
        return ()
    places = (Place("title", 0, len(a.title)), Place("title", 0, len(b.title)))
    return (Contradiction("ruled_out", " ".join(sorted(ours & theirs)), "claim", a.title, b.title, places),)


def _context(claim: Claim) -> frozenset[str]:
    return subject_terms(f"{claim.title} {claim.service}")


def _words(claim: Claim, place: Place) -> str:
    text: str = getattr(claim, place.field)
    return text[place.start : place.end]


def _left_out(side: str, unread: Iterable[Unread]) -> list[dict[str, Any]]:
    return [{"reason": item.reason, "side": side, "span": _span(item.place)} for item in unread]


def _span(place: Place) -> dict[str, Any]:
    return {"field": place.field, "start": place.start, "end": place.end}


def _day(value: Any) -> str | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else value.isoformat())[:10]
