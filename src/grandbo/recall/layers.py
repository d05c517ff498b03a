"""
Layers: recall asked for by the standing of what it gives, each layer with its own budget and heading.

What happened, what is maintained, what was ruled out and what an investigation only noted must not run together: a
reader who cannot tell them apart takes a note for a finding and a finding for a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grandbo.errors import InvalidInput
from grandbo.recall.answer import Answer
from grandbo.recall.block import ContextBlock
from grandbo.recall.budget import MAX_BUDGET, MIN_BUDGET
from grandbo.recall.window import ContextWindow

LAYER_KINDS: dict[str, tuple[str, ...]] = {
    "findings": ("finding", "episode"),
    "guidance": ("runbook", "decision"),
    "reference": ("reference",),
    "ruled_out": ("ruled_out",),
    "personal": ("personal",),
}
NOTES = "notes"
LAYERS = (*LAYER_KINDS, NOTES)
DEFAULT_LAYERS = ("findings", "guidance", "ruled_out")
HEADINGS = {
    "findings": "What earlier incidents taught: evidence, not guidance.",
    "guidance": "Maintained guidance: runbooks and decisions.",
    "reference": "Reference: systems, data, words.",
    "ruled_out": "Shown to be wrong before: not causes, unless something has changed.",
    "personal": "About the asker, for the asker alone.",
    "notes": "Noted in this investigation.",
}


@dataclass(frozen=True, slots=True)
class Layered:
    """The layers that were asked for, in their order, and one text of all."""

    answers: dict[str, Answer]
    blocks: dict[str, ContextBlock | ContextWindow]

    @property
    def text(self) -> str:
        """Each layer under its heading, in a fence of its own."""
        return "\n\n".join(f"{name}: {HEADINGS[name]}\n{block.text}" for name, block in self.blocks.items())

    def as_dict(self) -> dict[str, Any]:
        """Plain values: each layer's answer and block, and the text of all."""
        layers = {}
        for name, block in self.blocks.items():
            rendered = {key: value for key, value in block.as_dict().items() if key != "text"}
            answer = {"answer": self.answers[name].as_dict()} if name in self.answers else {}
            layers[name] = {"heading": HEADINGS[name], **answer, "rendered": rendered}
        return {"layers": layers, "text": self.text}


def check_layers(given: object) -> tuple[str, ...]:
    """The layers that are asked for, each once; the default where none is. Raises `InvalidInput`."""
    if given is None:
        return DEFAULT_LAYERS
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list | tuple) or not given or not all(name in LAYERS for name in given):
        raise InvalidInput(f"layers: name some of {', '.join(LAYERS)}.", field="layers")
    return tuple(dict.fromkeys(given))


def check_budgets(given: object, layers: tuple[str, ...]) -> dict[str, int]:
    """
    Tokens for each layer: one number for all together, shared evenly, or one for each by name.

    Raises:
        InvalidInput: a layer would get less than 200, or all together more than 8,000.
    """
    if given is None or isinstance(given, int):
        whole = 2_000 if given is None else given
        budgets = dict.fromkeys(layers, int(whole) // len(layers))
    elif isinstance(given, dict) and all(name in layers for name in given):
        budgets = {name: given.get(name, MIN_BUDGET) for name in layers}
    else:
        raise InvalidInput("budget: one number for all, or one for each layer that is asked for.", field="budget")
    fit = all(isinstance(size, int) and not isinstance(size, bool) and size >= MIN_BUDGET for size in budgets.values())
    if isinstance(given, bool) or not fit or sum(budgets.values()) > MAX_BUDGET:
        raise InvalidInput(
            f"budget: each layer takes at least {MIN_BUDGET} tokens, all together at most {MAX_BUDGET}.", field="budget"
        )
    return budgets
