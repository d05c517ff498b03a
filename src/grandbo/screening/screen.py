"""The screen: from the fields of a document to what was found in them, and from a text to what may be kept of it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from grandbo.screening.detectors import hits_in, rules_that_match
from grandbo.screening.hidden import Skeleton, visible
from grandbo.screening.rules import Signal

# Stands in every event that the screen looked at. A change of what it finds is a new version, and then `rescan`.
SCREEN_VERSION = 2

Severity = Literal["high", "medium", "low"]
Outcome = Literal["refuse", "redact", "quarantine", "flag"]

SIGNALS: tuple[Signal, ...] = get_args(Signal)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
SEVERITIES: dict[Signal, Severity] = {
    "secrets": "high",
    "instructions": "high",
    "smuggled": "high",
    "hidden": "medium",
    "entropy": "medium",
    "personal": "medium",
    "hosts": "low",
    "mixed_script": "low",
    "size": "low",
}
# What is too large has no span that could be taken out.
NOT_REDACTABLE: frozenset[Signal] = frozenset({"size"})
# Names and addresses, in which long random parts are nothing unusual.
_NO_PROSE = ("evidence.uri", "incident.id", "external_id", "incident.source", "service", "namespace")


@dataclass(frozen=True, slots=True)
class Hit:
    """Something found: in which field, what, how bad, and where. Never the value."""

    field: str
    signal: Signal
    kind: str
    severity: Severity
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ScreenResult:
    """What one version of the screen found in a document, by field and place."""

    version: int
    findings: tuple[Hit, ...]

    def of(self, *signals: Signal) -> tuple[Hit, ...]:
        """The findings of some signals."""
        return tuple(hit for hit in self.findings if hit.signal in signals)


def screen(fields: Mapping[str, str]) -> ScreenResult:
    """
    Look at all fields of a document. Pure, and the same for the same fields, always.

    Args:
        fields: text by field; of a list, each member under a name of its own, such as `tags.0`.
    """
    whole = "\n".join(fields.values())
    if not whole.isascii():
        whole = "\n".join(Skeleton(text).text for text in fields.values())
    wanted = rules_that_match(whole)
    if not wanted and whole.isascii() and len(whole) < 1_000 and _all_ascii(fields):
        return ScreenResult(SCREEN_VERSION, ())
    hits = (
        Hit(name, hit.signal, hit.kind, SEVERITIES[hit.signal], hit.start, hit.end)
        for name, text in fields.items()
        if text
        for hit in hits_in(text, wanted, is_text=not name.startswith(_NO_PROSE))
        if not (hit.signal == "hosts" and name.startswith("evidence.uri"))
    )
    return ScreenResult(SCREEN_VERSION, tuple(hits))


def redacted(text: str, hits: Iterable[Hit], key: bytes | None) -> str:
    """
    The text with each hit replaced by `[REDACTED:kind:hmac8]`; hidden characters are taken out and leave nothing.

    Args:
        key: of the tenant: the same value gives the same eight digits in one tenant and says nothing in another. None
            leaves the digits out.
    """
    hits = list(hits)
    parts: list[str] = []
    at = 0
    for start, end, kind in _merged([hit for hit in hits if hit.signal != "hidden"]):
        parts += (text[at:start], _marker(kind, text[start:end], key))
        at = end
    whole = "".join((*parts, text[at:]))
    return visible(whole) if any(hit.signal == "hidden" for hit in hits) else whole


def readable(text: str) -> str:
    """
    What may be shown of a text from before the screen, or from an older one: without secrets and hidden characters.

    Needs no key and no policy; a text of today's screen comes back as it is.
    """
    found = screen({"body": text}).of("secrets", "smuggled", "hidden")
    return redacted(text, found, None) if found else text


def _all_ascii(fields: Mapping[str, str]) -> bool:
    return all(text.isascii() for text in fields.values())


def _marker(kind: str, value: str, key: bytes | None) -> str:
    if key is None:
        return f"[REDACTED:{kind}]"
    digits = hmac.new(key, Skeleton(value).text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:8]
    return f"[REDACTED:{kind}:{digits}]"


def _merged(hits: Sequence[Hit]) -> list[tuple[int, int, str]]:
    """Spans that overlap are one, of the kind of the longest."""
    spans: list[tuple[int, int, str]] = []
    longest = 0
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        length = hit.end - hit.start
        if spans and hit.start < spans[-1][1]:
            start, end, kind = spans[-1]
            spans[-1] = (start, max(end, hit.end), hit.kind if length > longest else kind)
            longest = max(longest, length)
        else:
            spans.append((hit.start, hit.end, hit.kind))
            longest = length
    return spans
