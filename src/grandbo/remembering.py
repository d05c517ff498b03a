"""The verbs that ask: a topic, now and as of a moment, and the receipts of what was answered."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from grandbo.errors import InvalidInput
from grandbo.memory.policy import require
from grandbo.recall import context, ledger, query
from grandbo.recall.budget import check_budget
from grandbo.recall.difference import Difference, difference
from grandbo.recall.moment import AsOf, check_as_of
from grandbo.recall.question import check_question
from grandbo.recall.recurrences import Recurrences, list_recurrences
from grandbo.recall.replay import Replay, replay_receipt
from grandbo.recall.topic import check_topic

if TYPE_CHECKING:
    from grandbo.memory.tenants import Tenant
    from grandbo.recall.answer import Answer
    from grandbo.recall.block import ContextBlock
    from grandbo.recall.meaning import Meaning
    from grandbo.recall.question import Question
    from grandbo.recall.receipts import ReceiptWriter
    from grandbo.storage.database import Database
    from grandbo.types import Clock, Principal


class Remembering:
    """Recall, the difference to today, receipts. `TenantMemory` is one of these."""

    tenant: Tenant
    principal: Principal
    _database: Database
    _meaning: Meaning
    _receipts: ReceiptWriter

    def _clock(self) -> Clock:
        raise TypeError("a TenantMemory has a clock")

    def query_topic(
        self,
        topic: str,
        *,
        limit: int | None = None,
        kinds: list[str] | None = None,
        service: str | None = None,
        mode: str | None = None,
        statuses: list[str] | None = None,
        as_of_position: int | None = None,
        as_of: datetime | str | None = None,
        valid_at: datetime | str | None = None,
        as_role: str | None = None,
    ) -> Answer:
        """
        Evidence on a topic: relevant, permitted, in date and cited, or an honest reason why there is none.

        Args:
            statuses: other statuses than `published`, by name.
            as_of_position, as_of: what would have been answered at this position, or at this time; needs the act audit,
                as do the next two.
            valid_at: judge validity at this instant instead.
            as_role: as someone with this role; never more than the caller sees now.
        """
        question = check_question(topic, limit=limit, kinds=kinds, service=service, mode=mode, statuses=statuses)
        asked = check_as_of(as_of_position=as_of_position, as_of=as_of, valid_at=valid_at, as_role=as_role)
        return self._answer(question, asked)

    def query_topic_diff(
        self,
        topic: str,
        *,
        limit: int | None = None,
        kinds: list[str] | None = None,
        service: str | None = None,
        mode: str | None = None,
        statuses: list[str] | None = None,
        as_of_position: int | None = None,
        as_of: datetime | str | None = None,
        valid_at: datetime | str | None = None,
        as_role: str | None = None,
    ) -> Difference:
        """The answer as of a moment, today's to the same role, and what lies between them, by which event."""
        question = check_question(topic, limit=limit, kinds=kinds, service=service, mode=mode, statuses=statuses)
        asked = check_as_of(as_of_position=as_of_position, as_of=as_of, valid_at=valid_at, as_role=as_role)
        if asked is None or not asked.names_a_moment:
            raise InvalidInput("diff: say since when, with as_of_position or as_of.", field="diff")
        then = self._answer(question, asked)
        today = self._answer(question, AsOf(role=asked.role))
        return difference(self._database, self.tenant.tenant_id, then, today)

    def _answer(self, question: Question, asked: AsOf | None) -> Answer:
        return query.query_topic(
            self._database,
            self._meaning,
            self._receipts,
            self.tenant.tenant_id,
            self.principal,
            question,
            asked,
            clock=self._clock(),
        )

    def context_block(self, answer: Answer, topic: str, *, budget: int | None = None) -> ContextBlock:
        """
        An answer as the fenced block that a model is given.

        Args:
            answer: what `query_topic` gave for this topic.
            budget: estimated tokens that the block may take, 200 to 8,000; 2,000 where none is given.
        """
        return context.context_block(
            self._database,
            self.tenant.tenant_id,
            self.principal,
            self.tenant.policy,
            answer,
            check_topic(topic).terms,
            budget=check_budget(budget),
        )

    def recurrences(self, *, entry_id: UUID | None = None, service: str | None = None) -> Recurrences:
        """How often an entry, or what is known of a service, was seen in incidents, and when; raises `NotFound`."""
        return list_recurrences(
            self._database,
            self.tenant.tenant_id,
            self.principal,
            self.tenant.policy,
            self._clock()(),
            entry_id=entry_id,
            service=service,
        )

    # -- receipts ------------------------------------------------------------------------------------------------------

    def receipt(self, receipt_id: UUID) -> dict[str, Any]:
        """One receipt, as plain values; raises `NotFound`."""
        self._receipts.flush()
        return ledger.show_receipt(self._database, self.tenant.tenant_id, self.principal, receipt_id)

    def receipts(
        self, *, entry_id: UUID | None = None, limit: int | None = None, after: UUID | None = None
    ) -> list[dict[str, Any]]:
        """A page of receipts, newest first; with `entry_id`, of answers that held this entry: who was told it."""
        self._receipts.flush()
        return ledger.list_receipts(
            self._database, self.tenant.tenant_id, self.principal, entry_id=entry_id, limit=limit, after=after
        )

    def replay_receipt(self, receipt_id: UUID, topic: str) -> Replay:
        """Ask the topic again where the receipt was made; equal, or what differs."""
        self._receipts.flush()
        return replay_receipt(self._database, self._meaning, self.tenant.tenant_id, self.principal, receipt_id, topic)

    def rotate_receipt_key(self) -> int:
        """Give receipts made from now on a new key; returns its epoch. Receipts of older epochs still verify."""
        require(self.principal, "administer")
        self._receipts.flush()
        return ledger.rotate_receipt_key(self._database, self.tenant.tenant_id, self.principal, clock=self._clock())
