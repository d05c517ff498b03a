"""One request for a page: who asks, what for, and the three things that may come of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

from starlette.datastructures import ImmutableMultiDict

from grandbo.errors import InvalidInput, NotFound
from grandbo.memory.policy import Act, may

if TYPE_CHECKING:
    from grandbo.library import TenantMemory
    from grandbo.web.jobs import Jobs

Values = ImmutableMultiDict[str, str]

_SHORT_TIME = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)(?:[T ](?P<time>\d\d:\d\d(?::\d\d)?))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class View:
    """
    A page.

    Attributes:
        data: what its `.json` twin gives, plain values.
        shown: what only the page needs besides.
        refresh: seconds after which the page asks for itself again; None for one that stays.
    """

    template: str
    data: Mapping[str, Any]
    shown: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    refresh: int | None = None


@dataclass(frozen=True, slots=True)
class Redirect:
    """Go on there: what was sent has been done."""

    to: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file; `content` is its text."""

    name: str
    media_type: str
    content: str


Answer = View | Redirect | Download


@dataclass(frozen=True, slots=True)
class Call:
    """What was asked, by whom. `form` is empty but where a form was sent."""

    memory: TenantMemory
    jobs: Jobs
    path: Mapping[str, Any]
    query: Values
    form: Values = field(default_factory=lambda: ImmutableMultiDict([]))

    def may(self, act: Act) -> bool:
        """Whether the one who asks may do this."""
        return may(self.memory.principal, act)

    @property
    def entry_id(self) -> UUID:
        """The entry in the address; what is no id is no entry."""
        return self.id_in_path("entry_id")

    def id_in_path(self, name: str) -> UUID:
        """An id in the address. Raises `NotFound`."""
        found = id_of(self.path[name])
        if found is None:
            raise NotFound
        return found

    def number_in_path(self, name: str) -> int:
        """A position in the address. Raises `NotFound`."""
        given = str(self.path[name])
        if not given.isascii() or not given.isdigit() or len(given) > 18 or given.startswith("0"):
            raise NotFound
        return int(given)


Handler = Callable[[Call], Answer]


@dataclass(frozen=True, slots=True)
class Page:
    """An address: what is shown there, and what may be sent there."""

    path: str
    show: Handler | None = None
    send: Handler | None = None


def text(values: Values, name: str) -> str | None:
    """A value without the blanks around it; None where it is empty or not there."""
    return (values.get(name) or "").strip() or None


def raw_text(values: Values, name: str) -> str:
    """A value as it was typed, with the line ends that we keep; a form sends others."""
    return (values.get(name) or "").replace("\r\n", "\n").replace("\r", "\n")


def number(values: Values, name: str) -> int | None:
    """A whole number; None where none is given. Raises `InvalidInput`."""
    given = text(values, name)
    if given is None:
        return None
    if not given.lstrip("-").isascii() or not given.lstrip("-").isdigit() or len(given) > 18:
        raise InvalidInput(f"{name}: it must be a whole number.", field=name)
    return int(given)


def moment(values: Values, name: str) -> str | None:
    """A time that was typed; without a zone it is in UTC, as all times of the pages are, and a day is its beginning."""
    given = text(values, name)
    if given is None or not (short := _SHORT_TIME.fullmatch(given)):
        return given
    return f"{short['day']}T{short['time'] or '00:00'}Z"


def ticked(values: Values, name: str) -> bool:
    """Whether a box was ticked."""
    return bool(text(values, name))


def chosen(values: Values, name: str) -> list[str] | None:
    """All values of a name, without empty ones; None where there are none."""
    return [value for value in values.getlist(name) if value.strip()] or None


def id_of(given: object) -> UUID | None:
    """An id, given as itself or as the address of its page; None for anything else."""
    if not isinstance(given, str):
        return None
    last = given.strip().rstrip("/").rpartition("/")[2]
    try:
        return UUID(last) if len(last) == 36 else None
    except ValueError:
        return None


def id_field(values: Values, name: str) -> UUID | None:
    """An id that was typed; None where none was. Raises `InvalidInput`."""
    given = text(values, name)
    found = id_of(given)
    if given is not None and found is None:
        raise InvalidInput(f"{name}: give the id of an entry, or the address of its page.", field=name)
    return found


def json_object(given: str, field: str) -> dict[str, Any]:
    """An object that was written as JSON. Raises `InvalidInput`."""
    try:
        read = json.loads(given)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{field}: this is not JSON.", field=field) from None
    if not isinstance(read, dict):
        raise InvalidInput(f"{field}: it must be an object.", field=field)
    return read


def address(path: str, **query: object) -> str:
    """An address with its query; what is None or empty is left out."""
    given = {name: value for name, value in query.items() if value not in (None, "", [], False)}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
