"""YAML as plain values: nothing is constructed, nothing is expanded, a time stays the text that it is."""

from __future__ import annotations

from typing import Any

import yaml

from grandbo.errors import InvalidInput

_WANTED = "it takes plain values, without tags and aliases"


class _PlainLoader(yaml.SafeLoader):
    """A few lines of aliases can stand for gigabytes, and documents of this kind need none."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


# `2015-10-21` would become a date and lose how it was written; `1628-08-10T15:00:00Z` too.
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_all(text: str) -> list[Any]:
    """
    All documents of a YAML text.

    Raises:
        InvalidInput: with the line, never with what stands there.
    """
    try:
        return list(yaml.load_all(text, Loader=_PlainLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise InvalidInput(f"The YAML cannot be read{where}; {_WANTED}.", field="file") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, AttributeError):
        # Values that only look like numbers end in errors of the constructors' own.
        raise InvalidInput(f"The YAML cannot be read; {_WANTED}.", field="file") from None
    except RecursionError:
        raise InvalidInput("The YAML is nested too deeply.", field="file") from None
