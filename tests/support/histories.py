"""Random histories for tests of the past: all that can happen to entries, and what was answered meanwhile."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from grandbo.errors import Conflict, Forbidden, InvalidInput, NotFound
from grandbo.library import TenantMemory
from grandbo.recall.answer import Answer
from grandbo.types import LINK_TYPES, VERDICTS
from tests.support.factories import make_finding

# fmt: off
_WORDS = (
    "broker", "lease", "consumer", "partition", "leader", "renewal", "certificate", "disk", "memory", "queue",
    "timeout", "retry", "ingress", "node", "pod", "zookeeper", "quorum", "failover", "replica", "checkpoint",
    "backlog", "throttle", "deadlock", "schema", "rollout", "canary", "probe", "token",
)
# fmt: on
_TIERS = ("team", "operations", "tech", "admin")
_EVIDENCE = [{"type": "log", "uri": "https://logs.example.com/again", "label": "again"}]
_KINDS = ("finding", "runbook", "reference", "decision", "ruled_out")
_SERVICES = ("checkout", "search", "billing")
_STATUSES = (
    None,
    None,
    None,
    ["archived"],
    ["published", "superseded", "quarantined"],
    ["disputed"],
    ["expired", "archived"],
)
_SOMEBODY = "somebody@example.com"
_RANGES = ("worker <4", "worker >=4,<7", "worker >=6", "broker ==2.*")
_CONTEXTS = (None, None, {"worker": "5"}, {"worker": "6.1", "broker": "3"}, {"worker": "latest"})
_NAMESPACES = ("", "payments", "search")
_POLICIES: tuple[dict[str, Any], ...] = (
    {"rrf_k": 20},
    {"rrf_k": 60},
    {"rrf_emphasis": 0},
    {"rrf_emphasis": 2},
    {"candidates": 4},
    {"candidates": 25},
    {"exact_up_to": 0},
    {"exact_up_to": 10_000},
    {"floor": 2},
    {"floor": 0},
    {"lexical_floor_bp": 2_000},
    {"lexical_floor_bp": 200},
    {"default_visibility": "operations"},
    {"roles": {"investigator": ["team"]}},
    {"roles": {"investigator": ["team", "operations", "tech"]}},
)


@dataclass(frozen=True)
class Asked:
    """A recall that was answered live: by which role, what, and what it was told."""

    role: str
    question: dict[str, Any]
    answer: Answer


def told(answer: Answer) -> dict[str, Any]:
    """All of an answer but its receipt."""
    document = answer.as_dict()
    del document["receipt_id"]
    return document


class History:
    """Grows one tenant's log at random, and asks it at random moments."""

    def __init__(self, memory: TenantMemory, callers: dict[str, TenantMemory], seed: int) -> None:
        self._memory = memory
        self._callers = callers
        self._random = random.Random(seed)
        self._ids: list[UUID] = []
        self.asked: list[Asked] = []
        grandbo = memory._grandbo
        self._proposer = grandbo.tenant(memory.tenant.name, principal="agent:scout", roles=("investigator",))
        self._second = grandbo.tenant(memory.tenant.name, principal="human:second", roles=("investigator",))
        self._confirmer = grandbo.tenant(memory.tenant.name, principal="human:confirmer")
        self._about: list[UUID] = []

    def act(self, number: int, draws: random.Random) -> None:
        """The verb of this number, as the draws have it."""
        self._random = draws
        verbs = [*self._verbs(), *[lambda _one: self._propose_about_somebody()] * 2, *[self._erase_a_revision] * 2]
        self._try(verbs[number % len(verbs)])

    def erase(self, draws: random.Random) -> None:
        """Two people erase an entry, or what it said before."""
        self._random = draws
        self._try(self._erase_an_entry)

    def judge(self, draws: random.Random) -> None:
        """Ask, and say what came of the best of the answer."""
        self._random = draws
        self._ask()
        answer = self.asked[-1].answer
        for match in answer.matches[:1]:
            self._memory.give_feedback(answer.receipt_id, match.entry_id, draws.choice(VERDICTS))

    def grow(self, steps: int, recalls: int) -> None:
        """Take steps, and spread the recalls over them."""
        for step in range(steps):
            self._step()
            for _ in range(recalls * (step + 1) // steps - recalls * step // steps):
                self._ask()

    def _sentence(self, words: int) -> str:
        return " ".join(self._random.sample(_WORDS, words))

    def _incident(self) -> dict[str, str]:
        return {"source": "pager", "id": f"SUPPORT-{self._random.randrange(3)}"}

    def _step(self) -> None:
        if len(self._ids) < 8 or self._random.random() < 0.25:
            self._record()
            return
        if self._random.random() < 0.12:
            self._memory.embed()
            return
        self._try(self._random.choice(self._verbs()))

    def _try(self, verb: Callable[[UUID], object]) -> None:
        # A state refuses the verbs that do not fit it: then nothing happens, and the history goes on.
        with contextlib.suppress(Conflict, Forbidden, InvalidInput, NotFound):
            verb(self._random.choice(self._ids))

    def _record(self) -> None:
        finding = make_finding(
            title=self._sentence(5),
            summary=self._sentence(4),
            body=self._sentence(8),
            kind=self._random.choice(_KINDS),
            service=self._random.choice(_SERVICES),
            visibility=self._random.choice(_TIERS),
            valid_from=self._random.choice((..., ..., "2020-01-01", "2099-01-01")),
            expires_at="2100-01-01",
            tags=self._random.choice(([], ["core"], ["queue"])),
            namespace=self._random.choice(_NAMESPACES),
            applicability=self._random.sample(_RANGES, self._random.choice((0, 0, 1, 2))),
        )
        self._ids.append(self._memory.record_finding(finding).acknowledgement.entry_id)
        if self._random.random() < 0.2:
            again = {**finding, "incident": {"source": "pager", "id": f"AGAIN-{len(self._ids)}"}}
            self._memory.record_finding(again)

    def _verbs(self) -> list[Callable[[UUID], object]]:
        memory, pick = self._memory, self._random.choice
        return [
            lambda one: memory.correct(one, {"title": self._sentence(5)}, reason="r"),
            lambda one: memory.correct(one, {"confidence_bp": self._random.randrange(10_000)}, reason="r"),
            lambda one: memory.correct(one, {"service": pick(_SERVICES), "body": self._sentence(6)}, reason="r"),
            lambda one: memory.restore(one, self._random.randint(1, 3), reason="r"),
            lambda one: memory.archive(one, reason="r"),
            lambda one: memory.unarchive(one, reason="r"),
            lambda one: memory.dispute(one, reason="r", other=pick([None, *self._ids])),
            lambda one: memory.resolve(one, reason="r"),
            lambda one: memory.supersede(one, pick(self._ids), reason="r"),
            lambda one: memory.verify_entry(one, reason="r"),
            lambda one: memory.expire(one, pick(("2026-02-01", "2100-01-01")), reason="r"),
            lambda one: memory.reclassify(one, reason="r", visibility=pick(_TIERS)),
            lambda one: memory.reclassify(one, reason="r", kind=pick(_KINDS)),
            lambda one: memory.reclassify(one, reason="r", applicability=self._random.sample(_RANGES, pick((0, 1, 2)))),
            lambda one: memory.reclassify(one, reason="r", namespace=pick(_NAMESPACES), owner=pick(("", "ops"))),
            lambda one: memory.link(one, pick(LINK_TYPES), pick(self._ids), reason="r"),
            lambda one: memory.unlink(one, pick(LINK_TYPES), pick(self._ids), reason="r"),
            lambda _one: memory.change_policy(pick(_POLICIES), reason="r"),
            lambda one: self._propose_and_decide(one),
            lambda one: memory.quarantine_impact(one, reason="r"),
            lambda one: memory.release_impact(one, reason="r"),
            lambda one: memory.quarantine(one, reason="r"),
            lambda one: memory.release(one, reason="r"),
            lambda one: memory.link(one, "duplicates", pick(self._ids), reason="r"),
            lambda one: memory.link(one, "duplicates", pick(self._ids), reason="r"),
            lambda one: memory.unlink(one, "duplicates", pick(self._ids), reason="r"),
            lambda one: memory.corroborate(one, incident=self._incident(), evidence=_EVIDENCE),
        ]

    def _propose_and_decide(self, one: UUID) -> None:
        """Somebody else proposes; it is approved, merged, rejected, or approved and undone."""
        made = self._proposer.propose(
            make_finding(title=self._sentence(5), body=self._sentence(6), expires_at="2100-01-01")
        )
        decide = self._random.choice(("approve", "merge", "reject", "reopen"))
        if decide == "merge":
            self._memory.merge_candidate(made.candidate_id, into=one, reason="r")
        elif decide == "reject":
            self._memory.reject_candidate(made.candidate_id, reason="r")
        else:
            self._ids += (
                [entry] if (entry := self._memory.approve_candidate(made.candidate_id, reason="r").entry_id) else []
            )
        if decide == "reopen":
            self._memory.reopen_candidate(made.candidate_id, reason="r")

    def _erase_an_entry(self, one: UUID) -> None:
        asked = self._memory.request_erasure(one, "request", keeps_current=self._random.random() < 0.3)
        self._confirmer.confirm_erasure(asked.erasure_id)

    def _erase_a_revision(self, one: UUID) -> None:
        """Two people take the words out of some revision."""
        revisions = self._memory.history(one)
        number = self._random.choice(revisions)["revision"]
        asked = self._memory.request_erasure(one, "request", revisions=[number])
        self._confirmer.confirm_erasure(asked.erasure_id)

    def _propose_about_somebody(self) -> None:
        """Somebody without people of their own: who administers decides, as above, or all about them is forgotten."""
        pick, memory = self._random.choice, self._memory
        known = memory.register_subject("person", _SOMEBODY, "Somebody", principals=["agent:theirs"]).subject
        told = {"kind": "personal", "subject": _SOMEBODY, "memory_key": pick("ab"), "title": self._sentence(3)}
        origin = {"type": "conversation", "ref": "ops-42"}
        one = pick((self._proposer, self._proposer, self._second)).propose(told, origin=origin).candidate_id
        decide = pick(("approve", "approve", "merge", "reject", "reopen", "forget"))
        if decide == "forget":
            memory.forget_subject(known.subject_id, "request")
        elif decide == "reject":
            memory.reject_candidate(one, reason="r")
        elif decide == "merge":
            memory.merge_candidate(one, into=pick(self._about or self._ids), reason="r")
        else:
            entry = memory.approve_candidate(one, reason="r").entry_id
            self._about += [entry] if entry else []
            if decide == "reopen":
                memory.reopen_candidate(one, reason="r")

    def _ask(self) -> None:
        pick = self._random.choice
        role = pick(sorted(self._callers))
        question: dict[str, Any] = {
            "topic": self._sentence(self._random.randint(2, 5)),
            "limit": pick((None, 3, 20)),
            "kinds": pick((None, None, ["finding", "runbook"])),
            "service": pick((None, None, "checkout")),
            "mode": pick((None, None, "words", "meaning")),
            "statuses": pick([s for s in _STATUSES if role != "investigator" or "quarantined" not in (s or ())]),
            "context": pick(_CONTEXTS),
            "namespace": pick((None, None, None, "payments")),
        }
        self.asked.append(Asked(role, question, self._callers[role].query_topic(**question)))
