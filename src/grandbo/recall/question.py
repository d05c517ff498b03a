"""What is asked: the topic, filters that only narrow, and which statuses count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grandbo.applicability import parse_context
from grandbo.errors import InvalidInput
from grandbo.memory.finding import Incident, parse_incident
from grandbo.recall.answer import MODES, Mode
from grandbo.recall.topic import Topic, check_topic
from grandbo.text import check_text
from grandbo.types import KINDS, STATUSES

DEFAULT_LIMIT = 5
MAX_LIMIT = 20
DEFAULT_STATUSES = ("published",)
PERSONAL = ("personal",)
# Besides the statuses proper: the published ones that someone disputes, and those that are out of date.
DISPUTED, EXPIRED = "disputed", "expired"
ASKABLE_STATUSES = (*STATUSES, DISPUTED, EXPIRED)


@dataclass(frozen=True, slots=True)
class Question:
    """A checked recall: the topic, filters that only narrow, and the incident it is made for, which narrows nothing."""

    topic: Topic
    limit: int
    kinds: tuple[str, ...]
    service: str | None
    mode: Mode
    statuses: tuple[str, ...]
    namespace: str | None = None
    context: tuple[tuple[str, str], ...] = ()
    incident: Incident | None = None

    @property
    def is_personal(self) -> bool:
        """Whether it asks for what is remembered about the asker's own subjects, and nothing else."""
        return self.kinds == PERSONAL

    def parameters(self) -> dict[str, Any]:
        """What a receipt keeps: everything but the topic."""
        return {
            "limit": self.limit,
            "kinds": list(self.kinds),
            "service": self.service,
            "mode": self.mode,
            "statuses": list(self.statuses),
            "namespace": self.namespace,
            "context": dict(self.context),
            "incident": self.incident and self.incident.model_dump(),
        }


def check_question(
    topic: object,
    *,
    limit: object = None,
    kinds: object = None,
    service: object = None,
    mode: object = None,
    statuses: object = None,
    namespace: object = None,
    context: object = None,
    incident: object = None,
) -> Question:
    """
    Check what was asked; None stands for a default everywhere.

    Raises:
        InvalidInput, LimitExceeded: with the field and what is allowed there.
    """
    checked = check_topic(topic)
    if limit is None:
        limit = DEFAULT_LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit: it must be a whole number from 1 to {MAX_LIMIT}.", field="limit")
    mode = "hybrid" if mode is None else mode
    chosen = next((known for known in MODES if known == mode), None)
    if chosen is None:
        raise InvalidInput(f"mode: it must be one of {', '.join(MODES)}.", field="mode")
    return Question(
        topic=checked,
        limit=limit,
        kinds=names_of(kinds, "kind", KINDS),
        service=check_name(service, "service"),
        mode=chosen,
        statuses=names_of(statuses, "status", ASKABLE_STATUSES) or DEFAULT_STATUSES,
        namespace=check_name(namespace, "namespace"),
        context=tuple(sorted(parse_context(context).items())),
        incident=None if incident is None else parse_incident(incident),
    )


def check_name(given: object, field: str) -> str | None:
    """The name of a service or a namespace; None where none is given."""
    if given is None:
        return None
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(f"{field}: it must be the name of a {field}.", field=field)
    return check_text(given, field, limit=200, single_line=True)


def names_of(given: object, field: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """One name or several, each once, in their order; nothing where nothing is given."""
    if isinstance(given, str):
        given = [given]
    if given is None:
        return ()
    if not isinstance(given, list | tuple) or not all(name in known for name in given):
        raise InvalidInput(f"{field}: it must be one of {', '.join(known)}.", field=field)
    return tuple(dict.fromkeys(given))
