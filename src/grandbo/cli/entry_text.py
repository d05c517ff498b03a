"""Entries, changes and differences as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from grandbo.cli.output import plain

if TYPE_CHECKING:
    from grandbo.memory.differences import FieldDifference, Piece, RestorePreview
    from grandbo.memory.govern import Changed

# How much of what stayed the same is shown on either side of a difference.
KEPT_SHOWN = 60

# What stands in the place of words that were erased.
ERASED = "[erased]"
_OTHERS = (("against", "disputed_with"), ("now", "superseded_by"))
_MARKS = {"kept": ("", ""), "removed": ("[-", "-]"), "added": ("{+", "+}")}


def entry_lines(found: dict[str, Any]) -> list[str]:
    """An entry as it stands."""
    facts = [found["kind"], plain(found["service"]), found["status"], "DISPUTED" if found["disputed"] else ""]
    lines = [
        plain(found["title"]) or ERASED,
        f"   {' · '.join(fact for fact in facts if fact)}",
        f"   cite     {found['entry_id']}/{found['revision']}@{found['position']}",
        f"   scope    visible to {plain(found['visibility'])}, expires {found['expires_at']}, "
        f"confidence {found['confidence_bp'] / 100:g} %",
        f"   review   due {found['review_at']}, verified {found['verified_at'] or 'never'}",
    ]
    if found["occurred_at"]:
        lines.append(f"   occurred {found['occurred_at']} (to the {found['occurred_precision']})")
    lines += [f"   {name:8} {found[field]}" for name, field in _OTHERS if found[field]]
    lines += [f"   {name:8} {plain(found[name])}" for name in ("namespace", "owner") if found[name]]
    if found["applicability"]:
        lines.append(f"   for      {', '.join(map(plain, found['applicability']))}")
    if told := {name: count for name, count in found.get("feedback", {}).items() if count}:
        lines.append(f"   feedback {', '.join(f'{name} {count}' for name, count in told.items())}")
    if then := found.get("as_of"):
        lines.append(f"   as of    position {then['position']}, {then['instant']}")
    if found["tags"]:
        lines.append(f"   tags     {', '.join(map(plain, found['tags']))}")
    lines += [f"   source   {plain(item['uri'])}" for item in found["evidence"]]
    for text in (found["summary"], found["body"]):
        if text:
            lines += ["", *(plain(line) for line in text.splitlines())]
    return lines


def change_lines(changed: Changed) -> list[str]:
    """The acknowledgement of a change."""
    acknowledged = changed.acknowledgement
    citation = f"{acknowledged.entry_id}/{acknowledged.revision}@{acknowledged.position}"
    return [f"{'Done:' if changed.appended else 'Nothing to change:'} {citation}", f"hash {acknowledged.hash}"]


def preview_lines(previewed: RestorePreview) -> list[str]:
    """What a restore would change."""
    changed = difference_lines(previewed.changes)
    return [
        f"Revision {previewed.next_revision} would have the text of revision {previewed.restored_revision}, "
        f"the entry would stay {previewed.state.status}. Nothing was written.",
        *(changed or ["The text is the same already."]),
    ]


def difference_lines(differences: Sequence[FieldDifference]) -> list[str]:
    """Field by field; of texts word by word, with a little of what stayed around it."""
    lines = []
    for difference in differences:
        if difference.words is None:
            before, after = (_value(value) for value in (difference.before, difference.after))
            shown = f"[-{before}-] {{+{after}+}}"
        else:
            shown = "".join(_pieces(difference.words))
        lines.append(f"{difference.field}: {shown}")
    return lines


def _pieces(pieces: Sequence[Piece]) -> Iterator[str]:
    for place, piece in enumerate(pieces):
        opening, closing = _MARKS[piece.operation]
        text = piece.text
        if piece.operation == "kept":
            text = _shortened(text, is_first=place == 0, is_last=place == len(pieces) - 1)
        yield f"{opening}{plain(text)}{closing}"


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    before = "" if is_first else text[:KEPT_SHOWN] + " "
    after = "" if is_last else " " + text[-KEPT_SHOWN:]
    shortened = f"{before}…{after}"
    return shortened if len(shortened) < len(text) else text


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(
            plain(item["uri"] if isinstance(item, dict) and "uri" in item else str(item)) for item in value
        )
    return "" if value is None else plain(str(value))
