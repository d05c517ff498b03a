"""
What tools give: a text that stands alone, and the same facts as values, both small.

Clients join text blocks and drop the values, or hand the model both. So the text never refers to the values, and what
would make the values long is left out of them, which they then say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from grandbo.recall.answer import Answer
from grandbo.recall.block import EVIDENCE_NOT_INSTRUCTION, ContextBlock, fence, new_marker, quoted
from grandbo.recall.budget import DEFAULT_BUDGET, MAX_BUDGET, estimate_tokens, takes_at_most
from grandbo.recall.entry_block import entry_block
from grandbo.recall.layers import Layered

_SHOWN_ENTRIES = 20
_SHOWN_REVISIONS = 50
_SHOWN_MONTHS = 24


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What one call gives."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)


def answer_of_recall(answer: Answer, block: ContextBlock, budget: int) -> ToolAnswer:
    """A recall: the block, and the documented answer; its longest fields go where it would outgrow the budget."""
    document = answer.as_dict()
    omitted = _omit(document["matches"], document, max(budget, DEFAULT_BUDGET))
    shown = {name: value for name, value in block.as_dict().items() if name in ("shown", "left_out", "has_more")}
    return ToolAnswer(f"{block.text}\n{_receipt(answer)}", {**document, **shown, "omitted": omitted})


def _omit(matches: list[dict[str, Any]], document: dict[str, Any], budget: int) -> list[str]:
    """Empty one field after another of all matches, until the document fits. Each is counted once, by itself."""
    lexical: list[dict[str, Any]] = [match["lexical"] for match in matches if match["lexical"]]
    longest: tuple[tuple[str, list[dict[str, Any]], object], ...] = (
        ("summary", matches, ""),
        ("evidence", matches, []),
        ("lexical.terms", lexical, []),
    )
    kept: dict[str, list[Any]] = {}
    for name, places, empty in longest:
        key = name.rpartition(".")[2]
        kept[name] = [place[key] for place in places]
        for place in places:
            place[key] = empty
    costs = {name: _tokens(values) for name, values in kept.items()}
    whole = _tokens(document) + sum(costs.values())
    omitted = []
    for name, places, _ in longest:
        if whole > budget:
            omitted.append(name)
            whole -= costs[name]
            continue
        for place, value in zip(places, kept[name], strict=True):
            place[name.rpartition(".")[2]] = value
    return omitted


def answer_of_layers(found: Layered) -> ToolAnswer:
    """A recall in layers: the text of all, and of each the ids in their order."""
    layers = {
        name: {
            "entry_ids": [str(match.entry_id) for match in answer.matches],
            "empty_reason": answer.searched.empty_reason,
            "receipt_id": str(answer.receipt_id),
        }
        for name, answer in found.answers.items()
    }
    receipts = [f"{name}: {_receipt(answer)}" for name, answer in found.answers.items() if answer.matches]
    return ToolAnswer("\n".join([found.text, *receipts]), {"layers": layers})


def _receipt(answer: Answer) -> str:
    return f"receipt {answer.receipt_id}, for report_memory_outcome"


def entry_answer(found: dict[str, Any]) -> ToolAnswer:
    """One entry: its block, and its values; without the long texts where they alone would fill the answer."""
    block = entry_block(found, budget=MAX_BUDGET)
    omitted = []
    entry = dict(found)
    for name in ("body", "summary", "evidence"):
        if not _fits(entry, DEFAULT_BUDGET):
            entry.pop(name)
            omitted.append(name)
    return ToolAnswer("\n".join([block.text, *_relations(found)]), {"entry": entry, "omitted": omitted})


def history_text(revisions: list[dict[str, Any]]) -> str:
    """Every revision of an entry, one line each, oldest first; of a long history the last ones."""
    marker = new_marker()
    lines = [EVIDENCE_NOT_INSTRUCTION]
    if len(revisions) > _SHOWN_REVISIONS:
        lines.append(f"The last {_SHOWN_REVISIONS} of {len(revisions)} revisions.")
    for item in revisions[-_SHOWN_REVISIONS:]:
        reason = f" · reason {quoted(item['reason'], marker)}" if item["reason"] else ""
        who = item["principal"].partition(":")[0]
        gone = " · its words were erased" if item["erased"] else ""
        what = f"{item['event_type']} · {item['at']} · by {who} · {item['state']['status']}{gone}"
        lines.append(f"[{item['revision']}] {what}{reason}")
    return fence(lines, marker)


def answer_of_recurrences(found: dict[str, Any]) -> ToolAnswer:
    """Counts, one line each."""
    marker = new_marker()
    lines = [EVIDENCE_NOT_INSTRUCTION]
    if not found["entries"]:
        lines.append("Nothing recurred: no entry that you may see was seen in more than one incident.")
    for number, entry in enumerate(found["entries"][:_SHOWN_ENTRIES], start=1):
        times = "once" if entry["occurrences"] == 1 else f"{entry['occurrences']} times"
        follow_ups = f" · {entry['open_follow_ups']} follow-ups open" if entry["open_follow_ups"] else ""
        what = f"{quoted(entry['title'], marker)} · entry {entry['entry_id']}{follow_ups}"
        lines.append(f"[{number}] seen {times}, last {entry['last'][:10]} · {what}")
    if len(found["entries"]) > _SHOWN_ENTRIES:
        lines.append("More entries were seen less often.")
    if found["months"]:
        counts = ", ".join(f"{item['month']}: {item['occurrences']}" for item in found["months"][-_SHOWN_MONTHS:])
        lines.append(f"By month: {counts}")
    shown = {name: found[name] for name in ("services", "months")}
    return ToolAnswer(
        fence(lines, marker),
        {**shown, "entries": found["entries"][:_SHOWN_ENTRIES], "has_more": len(found["entries"]) > _SHOWN_ENTRIES},
    )


def _relations(found: dict[str, Any]) -> list[str]:
    """How the entry stands to others: ids and fixed words alone, so that it needs no fence."""
    lines = [f"superseded by entry {found['superseded_by']}"] if found["superseded_by"] else []
    links = found.get("links", [])[:_SHOWN_ENTRIES]
    lines += [f"{link['type']} {link['direction']} entry {link['entry_id']}" for link in links]
    return lines


def _fits(document: dict[str, Any], budget: int) -> bool:
    return takes_at_most(_json(document), budget)


def _tokens(document: object) -> int:
    return estimate_tokens(_json(document))


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, default=str)
