"""The policy as forms: sections, what each control is called and helps to decide, and the changes that were typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from grandbo.errors import InvalidInput
from grandbo.memory.policies import LONGEST_DAYS, MOST_EXACT
from grandbo.memory.policy import LAST_SCAN, ROLES
from grandbo.screening import NOT_REDACTABLE, OUTCOMES, SIGNALS
from grandbo.types import KINDS
from grandbo.web.call import Values, raw_text

ControlKind = Literal["number", "choice", "many", "lines", "switch"]
# What stands in a control: the text of a number, a choice or lines, what is ticked, or whether a switch is on.
Typed = str | list[str] | bool
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Control:
    """
    One value of the policy.

    Attributes:
        path: where it stands in the policy.
        choices: what may be chosen, given the tiers that are typed.
    """

    path: tuple[str, ...]
    label: str
    kind: ControlKind = "number"
    hint: str = ""
    choices: Callable[[list[str]], tuple[str, ...]] = lambda _tiers: ()

    @property
    def name(self) -> str:
        """The name of its field."""
        return ".".join(self.path)

    def value(self, document: Document) -> Any:
        """Its value in a policy; None for what the policy does not name."""
        found: Any = document
        for part in self.path:
            found = found.get(part) if isinstance(found, Mapping) else None
        return found

    def shown(self, document: Document) -> Typed:
        """Its value as it stands in the form."""
        value = self.value(document)
        if self.kind == "switch":
            return bool(value)
        if self.kind == "many":
            return sorted(value or ())
        return "\n".join(value or ()) if self.kind == "lines" else str(value)

    def typed(self, values: Values) -> Typed:
        """What was typed."""
        if self.kind == "switch":
            return bool(values.get(self.name))
        return sorted(set(values.getlist(self.name))) if self.kind == "many" else raw_text(values, self.name).strip()

    def meant(self, typed: Typed) -> Any:
        """The value that was typed. Raises `InvalidInput`."""
        if self.kind == "lines":
            return [line.strip() for line in str(typed).split("\n") if line.strip()]
        if self.kind == "number":
            given = str(typed)
            if not given.isascii() or not given.isdigit() or len(given) > 15:
                raise InvalidInput(f"{self.label}: it must be a whole number.", field=self.path[0])
            return int(given)
        return typed


@dataclass(frozen=True, slots=True)
class Section:
    """Controls that are decided on together; `rows` is a table with the controls of each row in its columns."""

    name: str
    title: str
    about: str
    controls: tuple[Control, ...] = ()
    rows: tuple[tuple[str, tuple[Control, ...]], ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def all_controls(self) -> tuple[Control, ...]:
        """Those of the rows too."""
        return (*self.controls, *(control for _, row in self.rows for control in row))


def _tiers(tiers: list[str]) -> tuple[str, ...]:
    return tuple(tiers)


_SIGNALS = {
    "secrets": "Tokens, passwords, keys",
    "instructions": "Words that instruct whoever reads them",
    "smuggled": "Hidden characters that carry a message",
    "hidden": "Characters that nobody sees",
    "entropy": "Long opaque words without a name",
    "personal": "E-mail addresses, phone numbers and the like",
    "hosts": "IP addresses and host names of the house",
    "mixed_script": "Words that mix look-alike scripts",
    "size": "Very long words and texts",
}


def _outcomes(signal: str) -> Callable[[list[str]], tuple[str, ...]]:
    given = tuple(outcome for outcome in OUTCOMES if outcome != "redact" or signal not in NOT_REDACTABLE)
    return lambda _tiers: given


SECTIONS: tuple[Section, ...] = (
    Section(
        "visibility",
        "Tiers and roles",
        "An entry stands in one tier. A role sees the tiers that are ticked for it, and nothing of the others.",
        (
            Control(
                ("tiers",),
                "Tiers",
                "lines",
                "One a line: small letters, digits, underscores. Preview to tick a new one.",
            ),
            Control(("default_visibility",), "Tier of what names none", "choice", choices=_tiers),
            *(Control(("roles", role), f"What the role {role} sees", "many", choices=_tiers) for role in ROLES),
        ),
    ),
    Section(
        "keeping",
        "Expiry and review",
        f"Days, up to {LONGEST_DAYS:,}. What has expired is recalled no more; what is due for review is recalled and "
        f"listed as due. For runbooks, references and decisions 0 means that they never expire.",
        rows=tuple(
            (
                kind,
                (
                    Control(("expiry_days", kind), "Expires after days"),
                    Control(("review_days", kind), "Review after days"),
                ),
            )
            for kind in KINDS
        ),
        columns=("Kind", "Expires after days", "Review after days"),
    ),
    Section(
        "approval",
        "Approval",
        "Candidates wait for a person. What is ticked here needs two.",
        (
            Control(("second_approval_kinds",), "Kinds that two people approve", "many", choices=lambda _tiers: KINDS),
            Control(("second_approval_tiers",), "Tiers that two people approve", "many", choices=_tiers),
            Control(("pending_candidates",), "Proposals of one principal that may wait", hint="1 to 100,000"),
        ),
    ),
    Section(
        "screening",
        "Screening",
        "What becomes of a text in which this is found. It holds for what is written from now on.",
        rows=tuple(
            (_SIGNALS[signal], (Control(("screening", signal), "Outcome", "choice", choices=_outcomes(signal)),))
            for signal in SIGNALS
        ),
        columns=("What is found", "Outcome"),
    ),
    Section(
        "people",
        "People",
        "Memories of people and workspaces, which their owners alone are told.",
        (
            Control(("people", "quota"), "Memories that one subject may have at once"),
            Control(("people", "per_answer"), "Memories of people in one answer", hint="1 to 20"),
            Control(
                ("people", "shared_with"), "Roles that are told everyone's", "many", choices=lambda _tiers: tuple(ROLES)
            ),
            Control(("people", "second_person"), "Forgetting somebody takes two people", "switch"),
            Control(("people", "workspace_unconfirmed"), "Facts about workspaces need no confirmation", "switch"),
            Control(("people", "episodes"), "Task summaries are taken in", "switch"),
        ),
    ),
    Section(
        "ranking",
        "Ranking",
        "How recall finds and orders. Try a change on topics whose answer you know; the past keeps its own parameters.",
        (
            Control(("rrf_k",), "Constant of the fusion", hint="1 to 1,000; larger: the first places count for less"),
            Control(
                ("rrf_emphasis",),
                "Emphasis on what stands out of its list",
                hint="0 to 4; 0: ranks decide alone",
            ),
            Control(("candidates",), "Entries of each list that are fused", hint="1 to 200"),
            Control(
                ("exact_up_to",),
                "Entries in scope up to which everything is measured",
                hint=f"0 to {MOST_EXACT:,}; beyond, the nearest by signature",
            ),
            Control(
                ("scan",),
                "Set of numbers by which a large scope is scanned",
                hint=f"1 to {LAST_SCAN}, the newest",
            ),
            Control(
                ("lexical_floor_bp",),
                "Least share of the topic's weight, found by words and meaning",
                hint="Basis points: 200 are 2 %",
            ),
            Control(
                ("lexical_alone_floor_bp",),
                "Least share of it, found by words alone",
                hint="Basis points: 5000 are 50 %",
            ),
            Control(
                ("floor",), "Core references where nothing matched", hint="0 to 3; a reference is core by its tag core"
            ),
        ),
    ),
)
BY_NAME = {section.name: section for section in SECTIONS}


def changes_in(section: Section, values: Values, begun_on: Document) -> dict[str, Any]:
    """What was typed and is not what stood there, as `change_policy` takes it. Raises `InvalidInput`."""
    changes: dict[str, Any] = {}
    for control in section.all_controls:
        typed = control.typed(values)
        if typed == control.shown(begun_on):
            continue
        meant = control.meant(typed)
        if meant == control.value(begun_on):
            continue
        if len(control.path) == 1:
            changes[control.path[0]] = meant
        else:
            changes.setdefault(control.path[0], {})[control.path[1]] = meant
    return changes


def differences(before: Document, after: Document) -> list[dict[str, Any]]:
    """What is other, control by control, and the spaces of vectors, which have a page of their own."""
    found = [
        {"field": f"{section.title}: {_called(section, control)}", "before": old, "after": new, "words": None}
        for section in SECTIONS
        for control in section.all_controls
        if (old := control.value(before)) != (new := control.value(after))
    ]
    if before["stamps"] != after["stamps"]:
        found.append({"field": "Vectors", "before": before["stamps"], "after": after["stamps"], "words": None})
    return found


def _called(section: Section, control: Control) -> str:
    row = next((title for title, controls in section.rows if control in controls), None)
    return f"{row.replace('_', ' ')}, {control.label.lower()}" if row else control.label
