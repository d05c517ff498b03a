"""Reading a payload that may be anything: what is not there, or is not as expected, is empty and never an error."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from grandbo.hooks.drafts import Headers, Unmappable

KEY_LIMIT = 200

_CAUSES = re.compile(r"(?:root[ _-]?)?causes?|contributing[ _-](?:factors?|causes?)", re.IGNORECASE)
# Of fields that say what sort of incident it is; a title may speak of maintenance and be about a real one.
_DRILLS = re.compile(
    r"(?<![a-z])(?:drills?|exercises?|game ?days?|tabletop|tests?|tutorials?|maintenance|simulations?)(?![a-z])"
)
_FALSE = frozenset({"", "false", "no", "none", "0", "off"})


def at(value: object, path: str) -> object:
    """What stands at a path such as `event.data.id`; None where nothing does."""
    for name in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text(value: object, path: str) -> str:
    """The text at a path; a whole number is its digits, whatever else is empty."""
    found = at(value, path)
    if isinstance(found, str):
        return found.strip()
    return _digits(found) if isinstance(found, int) and not isinstance(found, bool) else ""


def first_text(value: object, *paths: str) -> str:
    """The first of several texts that is not empty."""
    return next((found for path in paths if (found := text(value, path))), "")


def needed(value: object, path: str, *, within: str = "") -> str:
    """
    The text at a path, which has to be there.

    Args:
        within: where in the payload the value itself stands.

    Raises:
        Unmappable: it names the whole path.
    """
    found = text(value, path)
    if not found:
        raise Unmappable(f"{within}{'.' if within else ''}{path} is missing or is no text.")
    return found


def key(*parts: str) -> str:
    """The parts as the key of a delivery: short and plain whatever they hold; empty where one of them is."""
    if not all(parts):
        return ""
    joined = "/".join(parts)
    if len(joined) <= KEY_LIMIT and joined.isascii() and joined.isprintable():
        return joined
    return f"sha256:{hashlib.sha256(joined.encode('utf-8', errors='surrogatepass')).hexdigest()}"


def needed_object(value: object, path: str) -> dict[str, Any]:
    """The object at a path, which has to be there; raises `Unmappable` naming the path."""
    found = at(value, path)
    if not isinstance(found, dict):
        raise Unmappable(f"{path} is missing or is no object.")
    return found


def items(value: object, path: str) -> list[dict[str, Any]]:
    """The objects of the list at a path."""
    found = at(value, path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: object, path: str) -> list[str]:
    """The texts of the list at a path, in order."""
    found = at(value, path)
    return [item.strip() for item in found if isinstance(item, str)] if isinstance(found, list) else []


def named(value: object, path: str, name: str = "name") -> str:
    """The names of the objects of a list, joined by commas; of texts, the texts."""
    return ", ".join(filter(None, [*(text(item, name) for item in items(value, path)), *texts(value, path)]))


def pairs(value: object, path: str) -> Iterator[tuple[str, str]]:
    """The members of an object whose values are texts or whole numbers, sorted by name."""
    found = at(value, path)
    if isinstance(found, dict):
        for name in sorted(found):
            if said := text({"": found[name]}, ""):
                yield name, said


def is_true(value: object, path: str) -> bool:
    """Whether a flag is set; tools write `true`, `"true"` and `1`."""
    found = at(value, path)
    return found is True or (not isinstance(found, bool) and text(value, path).lower() not in _FALSE)


def header(headers: Headers, name: str) -> str:
    """A header by its name in whatever case."""
    return next((value.strip() for given, value in headers.items() if given.lower() == name), "")


def is_cause(name: str) -> bool:
    """Whether a field of this name states a cause."""
    return _CAUSES.fullmatch(name.strip()) is not None


def names_a_drill(*said: str) -> bool:
    """Whether a type, a kind or a label says that nothing really happened."""
    return any(_DRILLS.search(word.replace("_", " ").replace("-", " ").lower()) for word in said)


def labels_say_drill(labels: object) -> bool:
    """Whether labels mark a test: `drill: true`, or the `TestAlert` of a test button."""
    marks = ("drill", "is_drill", "test", "is_test", "maintenance")
    return any(is_true(labels, mark) for mark in marks) or text(labels, "alertname") == "TestAlert"


def _digits(number: int) -> str:
    return str(number) if abs(number) < 10**40 else ""
