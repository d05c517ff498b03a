"""The verbs that ask: a topic, now and as of a moment, and the receipts of what was answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.memory import reading
from grandbo.memory.policy import require
from grandbo.recall import context, feedback, ledger, past, query, state
from grandbo.recall.budget import check_budget
from grandbo.recall.difference import Difference, difference
from grandbo.recall.look import Look, look_through
from grandbo.recall.moment import AsOf, check_as_of, check_at_least
from grandbo.recall.question import check_question
from grandbo.recall.replay import Replay, replay_receipt
from grandbo.recall.topic import check_topic
from grandbo.verbs import Verbs

if TYPE_CHECKING:
    from grandbo.memory.govern import Changed
    from grandbo.recall.answer import Answer
    from grandbo.recall.block import ContextBlock
    from grandbo.recall.question import Question
    from grandbo.storage.database import Database


class Asked(TypedDict, total=False):
    """
    What a recall may say besides its topic.

    The first six narrow: `limit` 1 to 20, `kinds`, `service`, `namespace`, `statuses` (others than `published`, by
    name), and `context`, the versions of the systems that the asker runs, which leaves out what does not apply to them.
    `incident`, `(source, id)`, is what it is asked for: it narrows nothing and stands in the receipt. `mode` is
    `hybrid`, `words` or `meaning`. `as_of_position` or `as_of`: what would have been answered then;
    `valid_at`: judge validity at this instant instead; `as_role`: as someone with this role, never more than the caller
    sees now. `at_least`: a position, as an acknowledgement gives it, that a replica must have to answer.
    """

    limit: int | None
    kinds: list[str] | None
    service: str | None
    namespace: str | None
    statuses: list[str] | None
    context: dict[str, str] | None
    incident: tuple[str, str] | dict[str, str] | None
    mode: str | None
    as_of_position: int | None
    as_of: datetime | str | None
    valid_at: datetime | str | None
    as_role: str | None
    at_least: int | None


def _checked(topic: str, asked: Asked) -> tuple[Question, AsOf | None, int]:
    moment = {name: asked.get(name) for name in ("as_of_position", "as_of", "valid_at", "as_role")}
    narrowed = {name: value for name, value in asked.items() if name not in (*moment, "at_least")}
    return check_question(topic, **narrowed), check_as_of(**moment), check_at_least(asked.get("at_least"))


class Remembering(Verbs):
    """Recall, the difference to today, receipts. `TenantMemory` is one of these."""

    def query_topic(self, topic: str, **asked: Unpack[Asked]) -> Answer:
        """
        Evidence on a topic: relevant, permitted, in date and cited, or an honest reason why there is none.

        Every argument of `Asked` may be left out or None. Those that name a moment or a role need the act audit.
        """
        question, moment, at_least = _checked(topic, asked)
        return self._answer(question, moment, at_least)

    def query_topic_diff(self, topic: str, **asked: Unpack[Asked]) -> Difference:
        """The answer as of a moment, today's to the same role, and what lies between them, by which event."""
        question, moment, at_least = _checked(topic, asked)
        if moment is None or not moment.names_a_moment:
            raise InvalidInput("diff: say since when, with as_of_position or as_of.", field="diff")
        then = self._answer(question, moment, at_least)
        today = self._answer(question, AsOf(role=moment.role), at_least)
        return difference(self._database, self.tenant.tenant_id, then, today)

    def _answer(self, question: Question, moment: AsOf | None, at_least: int) -> Answer:
        asker = self.principal
        if question.is_personal:
            asker = self._owner()
            question = replace(question, limit=min(question.limit, self._policy_now().people.per_answer))
        tenant_id = self.tenant.tenant_id

        def ask(database: Database, not_below: int | None) -> Answer:
            return query.query_topic(
                database,
                self._meaning,
                self._receipts,
                self._counting,
                tenant_id,
                asker,
                question,
                moment,
                at_least=at_least,
                not_below=not_below,
                scanning=self._scanning,
                clock=self._clock(),
            )

        # A moment is looked for in the whole log, of which a replica may lack the end.
        return ask(self._database, None) if moment is not None else self._readers.read(tenant_id, at_least, ask)

    def look_through(self, topic: str, depth: int, *, kinds: list[str] | None = None, mode: str | None = None) -> Look:
        """The first `depth` of both lists of a topic with their gates open: for who tunes them. Gives no text."""
        who = (self._database, self._meaning, self.tenant.tenant_id, self.principal)
        return look_through(*who, check_question(topic, kinds=kinds, mode=mode), depth=depth, clock=self._clock())

    # -- entries -------------------------------------------------------------------------------------------------------

    def show_entry(
        self, entry_id: UUID, *, as_of: datetime | str | None = None, as_of_position: int | None = None
    ) -> dict[str, Any]:
        """
        One entry as it stands, as plain values; raises `NotFound`.

        Args:
            as_of, as_of_position: as it stood at this time, or at this position; needs the act audit. The answer says
                under `as_of` which position and instant that was.
        """
        asked = check_as_of(as_of=as_of, as_of_position=as_of_position)
        who = (self._database, self.tenant.tenant_id, self._owner())
        if asked is None:
            return reading.show_entry(*who, self._policy_now(), entry_id)
        return past.entry_then(*who, entry_id, asked, clock=self._clock())

    def list_entries(
        self,
        *,
        kinds: list[str] | str | None = None,
        statuses: list[str] | str | None = None,
        service: str | None = None,
        as_of: datetime | str | None = None,
        as_of_position: int | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> state.Page:
        """
        A page of entries of every status, in the order of their ids, as they stand or as they stood.

        Args:
            as_of, as_of_position: as they stood at this time, or at this position; needs the act audit.
            limit: 1 to 200; 50 unless given.
            after: the `next` of the page before.
        """
        asked = check_as_of(as_of=as_of, as_of_position=as_of_position)
        wanted = state.check_filter(kinds=kinds, statuses=statuses, service=service, as_of=asked)
        who = (self._database, self.tenant.tenant_id, self.principal)
        return state.list_entries(*who, wanted, limit=limit, after=after, clock=self._clock())

    # -- answers for models --------------------------------------------------------------------------------------------

    def context_block(self, answer: Answer, topic: str, *, budget: int | None = None) -> ContextBlock:
        """
        An answer as the fenced block that a model is given.

        Args:
            answer: what `query_topic` gave for this topic.
            budget: estimated tokens that the block may take, 200 to 8,000; 2,000 where none is given.
        """
        is_personal = any(match.kind == "personal" for match in answer.matches)
        return context.context_block(
            self._readers,
            self.tenant.tenant_id,
            self._owner() if is_personal else self.principal,
            answer,
            check_topic(topic).terms,
            budget=check_budget(budget),
        )

    # -- receipts ------------------------------------------------------------------------------------------------------

    def receipt(self, receipt_id: UUID) -> dict[str, Any]:
        """One receipt, as plain values; raises `NotFound`."""
        self._receipts.flush()
        return ledger.show_receipt(self._database, self.tenant.tenant_id, self._owner(), receipt_id)

    def receipts(
        self, *, entry_id: UUID | None = None, limit: int | None = None, after: UUID | None = None
    ) -> list[dict[str, Any]]:
        """A page of receipts, newest first; with `entry_id`, of answers that held this entry: who was told it."""
        self._receipts.flush()
        return ledger.list_receipts(
            self._database, self.tenant.tenant_id, self._owner(), entry_id=entry_id, limit=limit, after=after
        )

    def replay_receipt(self, receipt_id: UUID, topic: str) -> Replay:
        """Ask the topic again where the receipt was made; equal, or what differs."""
        self._receipts.flush()
        return replay_receipt(self._database, self._meaning, self.tenant.tenant_id, self._owner(), receipt_id, topic)

    def give_feedback(
        self,
        receipt_id: UUID,
        entry_id: UUID,
        verdict: str,
        *,
        note: str | None = None,
        command_id: UUID | None = None,
    ) -> Changed:
        """
        Say what became of one entry of one answer: `helped`, `irrelevant`, `wrong` or `stale`.

        Of one's own answers; of anybody's for who may audit. Another verdict takes the place of the one before.
        """
        self._receipts.flush()
        who = (self._database, self.tenant.tenant_id, self._owner(), self._policy_now())
        return feedback.give_feedback(
            *who, receipt_id, entry_id, verdict, note=note, command_id=command_id, clock=self._clock()
        )

    def rotate_receipt_key(self) -> int:
        """Give receipts made from now on a new key; returns its epoch. Receipts of older epochs still verify."""
        require(self.principal, "administer")
        self._receipts.flush()
        return ledger.rotate_receipt_key(self._database, self.tenant.tenant_id, self.principal, clock=self._clock())
