"""
What people found of answers, as judgements of topics: the verdicts on receipts, brought together by topic.

No receipt holds its topic, so the topics come from whoever kept them; a receipt is recognised by its keyed HMAC.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import InvalidInput
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.told import WITHIN_TIERS, tier_params
from grandbo.recall.receipts import topic_hmac
from grandbo.recall.topic import check_topic
from grandbo.storage.database import Database
from grandbo.storage.tables import entries, feedback, receipt_keys, receipts
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal

_KEYS = sa.select(receipt_keys.c.epoch, receipt_keys.c.key).where(of_tenant(receipt_keys))
_VERDICTS = (
    sa.select(receipts.c.key_epoch, receipts.c.topic_hmac, feedback.c.entry_id, feedback.c.verdict)
    .join(
        receipts,
        sa.and_(receipts.c.tenant_id == feedback.c.tenant_id, receipts.c.receipt_id == feedback.c.receipt_id),
    )
    .join(
        entries,
        sa.and_(entries.c.tenant_id == feedback.c.tenant_id, entries.c.entry_id == feedback.c.entry_id),
    )
    .where(
        of_tenant(feedback),
        of_tenant(receipts),
        of_tenant(entries),
        feedback.c.to_position.is_(None),
        WITHIN_TIERS,
        entries.c.visibility == sa.any_(sa.bindparam("tiers", type_=pg.ARRAY(sa.Text))),
    )
)


@dataclass(frozen=True, slots=True)
class Judgements:
    """
    By topic, how often each entry was found to be what (`helped`, `irrelevant`, `wrong`, `stale`).

    `unrecognised`: verdicts on answers to topics that were not among those given.
    """

    verdicts: dict[str, dict[UUID, Counter[str]]]
    unrecognised: int

    def relevant(self) -> dict[str, frozenset[UUID]]:
        """By topic, the entries that helped more often than not. A topic for which none did is left out."""
        helped = {
            name: frozenset(entry for entry, said in of_topic.items() if 2 * said["helped"] > said.total())
            for name, of_topic in self.verdicts.items()
        }
        return {name: ids for name, ids in helped.items() if ids}


def judged_by_feedback(
    database: Database, tenant_id: UUID, principal: Principal, policy: Policy, topics: Mapping[str, str]
) -> Judgements:
    """
    Bring the verdicts in force together with the topics, given by any id, that they were given on.

    Of verdicts on receipts and entries within the caller's tiers; needs the act audit, because they are others'. What
    recall would refuse as no topic has no receipt, and so no verdict.
    """
    require(principal, "audit")
    texts = {name: asked for name, text in topics.items() if (asked := _as_asked(text)) is not None}
    own = visible_tiers(policy, principal)
    params = {**tier_params(tenant_id, policy, own), "tiers": list(own)}
    # The one role that reads the keys of receipts; nothing is written.
    with database.transaction("writer", tenant_id, read_only=True, snapshot=True) as transaction:
        keys, given = transaction.batch([(_KEYS, params), (_VERDICTS, params)])
    known = {(key["epoch"], topic_hmac(bytes(key["key"]), text)): name for key in keys for name, text in texts.items()}
    found: defaultdict[str, defaultdict[UUID, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    unrecognised = 0
    for row in given:
        name = known.get((row["key_epoch"], bytes(row["topic_hmac"])))
        if name is None:
            unrecognised += 1
        else:
            found[name][row["entry_id"]][row["verdict"]] += 1
    return Judgements({name: dict(of_topic) for name, of_topic in found.items()}, unrecognised)


def _as_asked(text: str) -> str | None:
    try:
        return check_topic(text).text
    except InvalidInput:
        return None
