"""
Two tenants with twin memories: the same hostile names, ids and texts, told apart by canaries alone.

Every stored text carries `canary` + tenant + tier. What one of the two is told is searched for the other's canaries,
for canaries of tiers that the asking principal does not see, and for entries that are no longer in date.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from grandbo.errors import GrandboError
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import TIERS
from grandbo.types import Principal

# Names that some layer or other might read as a pattern, a quote, a path, a format, a list or a setting.
HOSTILE = (
    "%",
    "_",
    "\\",
    "a_b%c",
    "' OR tenant_id IS NOT NULL --",
    '"; DROP TABLE entries; --',
    "{team,admin}",
    "svc/../../etc:8420",
    "$1 %s %(tenant_id)s :tenant_id",
    "grandbo.tenant_id",
    "NULL",
    "\u202egnp.evil",
)
# Names that a loose comparison would take for each other.
TENANT_NAMES = {"a": "twin_one", "b": "Twin.One"}
LONG_AGO = timedelta(days=200)

Told = list[tuple[str, str]]


class Hands:
    """A clock whose hands a test moves."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


class Twins:
    """The two tenants of one open memory."""

    def __init__(self, grandbo: Grandbo, hands: Hands) -> None:
        self.grandbo = grandbo
        self.hands = hands
        self.memories: dict[str, TenantMemory] = {}
        self.tokens: dict[str, str] = {}
        self.key_ids: dict[str, str] = {}

    def settle(self, side: str) -> None:
        """Make one of the tenants and fill its memory."""
        present = self.hands.now
        self.hands.now = present - LONG_AGO
        self.grandbo.create_tenant(TENANT_NAMES[side])
        memory = self.grandbo.tenant(TENANT_NAMES[side], principal=f"human:{HOSTILE[4]}")
        memory.record_finding(finding(side, "expired", 0))
        self.hands.now = present
        for number, tier in enumerate(TIERS * 3):
            memory.record_finding(finding(side, tier, number, visibility=tier))
        memory.embed()
        # Without a vector, so that both kinds of row are there.
        memory.record_finding(finding(side, "team", 99))
        key, token = memory.create_key(HOSTILE[6], "agent", ("investigator",))
        self.memories[side], self.tokens[side], self.key_ids[side] = memory, token, key.key_id

    def observe(self, side: str, *, brief: bool = False) -> Told:
        """Everything that reading tells this tenant: whole answers and errors, by what was asked."""
        told: Told = []
        for who, memory in self.readers(side).items():
            for label, ask in questions(memory, brief=brief):
                told.append((f"{side} {who} {label}", said(ask)))
        memory = self.memories[side]
        told += [
            (f"{side} admin backlog", said(memory.backlog)),
            (f"{side} admin verify", said(memory.verify)),
            (f"{side} admin check", said(memory.check_rebuild)),
            (f"{side} admin keys", said(memory.keys)),
            (f"{side} admin recurrences", said(memory.recurrences)),
        ]
        return told

    def act(self, side: str) -> Told:
        """Everything that writing tells this tenant, and that misuse of the other's ids does."""
        memory, other = self.memories[side], "b" if side == "a" else "a"
        again = finding(side, "team", 0, visibility="team")
        lines = [json.dumps(imported(side, number)).encode() for number in range(4)]
        lines += [b"\xff", b"{", b"[]", json.dumps({**imported(side, 9), "title": ""}).encode()]
        acts: list[tuple[str, Callable[[], Any]]] = [
            ("record", lambda: memory.record_finding(finding(side, "team", 500))),
            ("replay", lambda: memory.record_finding(again)),
            ("reuse", lambda: memory.record_finding({**again, "summary": "another text under the same id"})),
            ("corroborate", lambda: memory.record_finding({**again, "incident": incident("team", 501)})),
            ("no tier", lambda: memory.record_finding({**again, "visibility": HOSTILE[6]})),
            ("import", lambda: memory.import_lines(lines, "finding")),
            ("import again", lambda: memory.import_lines(lines, "finding")),
            ("import runbooks", lambda: memory.import_lines(lines, "runbook")),
            ("receipts", lambda: {"receipts": memory.receipts(limit=5)}),
            ("impact", lambda: memory.source_impact(source_of(side, "team", 0))),
            ("impact of the other's source", lambda: memory.source_impact(source_of(other, "team", 0))["members"]),
            ("quarantine", lambda: memory.quarantine_impact(source_of(side, "team", 0), reason="forged")),
            ("release", lambda: memory.release_impact(source_of(side, "team", 0), reason="it was not")),
            ("embed", memory.embed),
            ("rebuild", memory.rebuild),
            ("revoke the other's key", lambda: memory.revoke_key(self.key_ids[other])),
            ("revoke no key", lambda: memory.revoke_key("0" * 48)),
            ("half another's token", lambda: self.grandbo.authenticate(self.crossed_token(side, other))),
            ("no token", lambda: self.grandbo.authenticate("gbk_" + "0" * 48 + "_" + "A" * 43)),
        ]
        return [(f"{side} admin {label}", said(act)) for label, act in acts]

    def crossed_token(self, side: str, other: str) -> str:
        """The other's key id with one's own secret."""
        secret = self.tokens[side].split("_", 2)[2]
        return f"gbk_{self.key_ids[other]}_{secret}"

    def readers(self, side: str) -> dict[str, TenantMemory]:
        """Who asks: someone with all roles, and an agent by its token, who does not see the tier `admin`."""
        return {"admin": self.memories[side], "agent": self.grandbo.authenticate(self.tokens[side])}

    def tenant_id(self, side: str) -> UUID:
        """Id of one of the two."""
        return self.memories[side].tenant_id


def canary(side: str, tier: str) -> str:
    """One word, searchable, that only this tenant's texts of this tier have."""
    return f"canary{side}{tier}"


def source_of(side: str, tier: str, number: int) -> str:
    """Where a finding of one of the twins comes from."""
    return f"https://logs.example.com/{canary(side, tier)}/{number}"


def incident(tier: str, number: int) -> dict[str, str]:
    """The same in both tenants, so that the ids that derive from it are the same too."""
    return {"source": HOSTILE[number % len(HOSTILE)], "id": f"{tier}-{number}-{HOSTILE[(number + 5) % len(HOSTILE)]}"}


def finding(side: str, tier: str, number: int, **changes: Any) -> dict[str, Any]:
    """A finding of one of the twins; but for the canary, the other has the same."""
    word, name = canary(side, tier), HOSTILE[number % len(HOSTILE)]
    return {
        "title": f"Queue {name} stalled after lease renewal failed, {word}",
        "summary": f"Consumers of partition {number} lost their leases and nobody took over. {word}",
        "body": f"The broker restarted; renewals timed out. {name} {word}",
        "service": name,
        "tags": [name, "queue", word],
        "evidence": [{"type": "log", "uri": source_of(side, tier, number), "label": word}],
        "incident": incident(tier, number),
        "external_id": f"{name}-{tier}-{number}",
        **changes,
    }


def imported(side: str, number: int) -> dict[str, Any]:
    """A line of an import file of one of the twins."""
    word = canary(side, "team")
    return {
        "id": f"imported-{number}-{HOSTILE[number]}",
        "title": f"Imported queue incident {number} {word}",
        "summary": f"A lease was lost again, {word}.",
        "source": HOSTILE[number],
        "source_url": f"https://example.com/{word}",
        "tags": [word, HOSTILE[number]],
    }


def questions(memory: TenantMemory, *, brief: bool = False) -> list[tuple[str, Callable[[], Any]]]:
    """Topics, modes and filters, the other tenant's words among them; `brief` leaves the filters out."""
    topics = (
        "consumers lost their leases after the broker restarted",
        "what happened to canaryateam canarybteam canaryaadmin canarybadmin canaryaexpired canarybexpired queue",
        "' OR tenant_id IS NOT NULL -- queue stalled",
        "an unrelated matter of certificate expiry in the mesh",
        "%",
    )
    asked: list[tuple[str, Callable[[], Any]]] = []
    for topic in topics:
        for mode in ("hybrid", "words", "meaning"):
            filters: tuple[dict[str, Any], ...] = (
                {"limit": 20},
                {"limit": 1},
                {"limit": 20, "kinds": ["finding"]},
                {"kinds": ["runbook"]},
                {"limit": 20, "service": HOSTILE[0]},
                {"service": HOSTILE[4]},
            )
            for given in filters[:1] if brief else filters:
                asked.append((f"{mode} {given} {topic}", _asking(memory, topic, mode, given)))
    return asked


def _asking(memory: TenantMemory, topic: str, mode: str, given: dict[str, Any]) -> Callable[[], Any]:
    return lambda: memory.query_topic(topic, mode=mode, **given)


def said(verb: Callable[[], Any]) -> str:
    """The whole answer of a verb as text, an error with all its details, without what must differ each time."""
    try:
        answer = verb()
    except GrandboError as error:
        return json.dumps({"error": error.as_dict()}, default=str, sort_keys=True)
    if isinstance(answer, list):
        document: Any = [item.as_dict() for item in answer]
    elif hasattr(answer, "as_dict"):
        document = answer.as_dict()
    else:
        document = dataclasses.asdict(answer) if dataclasses.is_dataclass(answer) else answer  # type: ignore[arg-type]
    if isinstance(document, dict):
        document = {name: value for name, value in document.items() if name not in ("instant", "receipt_id")}
    return json.dumps(document, default=_plain, sort_keys=True, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Principal):
        return value.ref
    return sorted(value) if isinstance(value, frozenset) else str(value)


def leaks(told: Told, secrets: dict[str, UUID]) -> list[str]:
    """What of it should not have been said: canaries and ids of the other tenant, of higher tiers, of the past."""
    found: list[str] = []
    for label, text in told:
        side, who = label.split(" ")[:2]
        other = "b" if side == "a" else "a"
        hidden = [f"canary{other}", str(secrets[other]), canary(side, "expired")]
        if who == "agent":
            hidden.append(canary(side, "admin"))
        found += [f"{label}: {word}" for word in hidden if word in text.lower()]
    return found
