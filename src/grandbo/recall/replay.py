"""
Replay a receipt: ask again what was asked, where it was asked, and compare with what was answered.

No model is asked but for the topic's vector, and nothing is rebuilt: history costs a where clause.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import ReceiptBeyondTiers, ReceiptNotReplayable, TopicMismatch, Unavailable
from grandbo.events.models import Policy
from grandbo.memory.policy import require, visible_tiers
from grandbo.memory.restating import FOLD_VERSION
from grandbo.recall.answer import Answer
from grandbo.recall.ledger import read_receipt, receipt_key
from grandbo.recall.meaning import Meaning, TopicVector
from grandbo.recall.query import Setting, answer_in, policy_at, scope_of
from grandbo.recall.question import Question, check_question
from grandbo.recall.receipts import matches_kept, topic_hmac
from grandbo.recall.scan import Scan
from grandbo.recall.scope import Shape, in_scope
from grandbo.recall.topic import check_topic
from grandbo.recall.view import View, held
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.tables import entries, revisions
from grandbo.storage.tenancy import of_tenant
from grandbo.types import Principal

# What bears on an entry that the caller may not see now must not be told by a difference.
_BEYOND: sa.Select[Any] = (
    sa.select(sa.literal_column("1").label("one"))
    .select_from(revisions.join(entries, entries.c.entry_id == revisions.c.entry_id))
    .where(
        in_scope(revisions, Shape()),
        held(View.AS_OF, revisions),
        of_tenant(entries),
        entries.c.visibility != sa.all_(sa.bindparam("own_tiers", type_=pg.ARRAY(sa.Text))),
    )
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Replay:
    """Whether a receipt's recall gives the same again, and each place in which it does not."""

    receipt_id: UUID
    differences: tuple[dict[str, Any], ...]

    @property
    def equal(self) -> bool:
        """Nothing differs."""
        return not self.differences

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "receipt_id": str(self.receipt_id),
            "equal": self.equal,
            "differences": list(self.differences),
        }


def replay_receipt(
    database: Database, meaning: Meaning, tenant_id: UUID, principal: Principal, receipt_id: UUID, topic: object
) -> Replay:
    """
    Ask the topic again at the receipt's position, instant, parameters, tiers and cutoff.

    Raises:
        NotFound: no such receipt, or one made for tiers above the caller's.
        TopicMismatch: another topic.
        ReceiptNotReplayable: its vectors' space is not the present one.
        ReceiptBeyondTiers: it rests on what now stands above the caller's tiers.
        Unavailable: the topic cannot be embedded at the moment.
    """
    require(principal, "audit")
    asked = check_topic(topic)
    with database.transaction("auditor", tenant_id, read_only=True) as transaction:
        row, _ = read_receipt(transaction, tenant_id, principal, receipt_id)
    key = receipt_key(database, tenant_id, row["key_epoch"])
    if not hmac.compare_digest(topic_hmac(key, asked.text), bytes(row["topic_hmac"])):
        raise TopicMismatch(field="topic")
    question = _question(asked.text, row["parameters"])
    vector = _vector(meaning, asked.text, row["searched"], row["parameters"].get("titles"))
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        row, own = read_receipt(transaction, tenant_id, principal, receipt_id)
        setting = _setting(question, tenant_id, row, policy_at(transaction, tenant_id, row["position"]))
        _refuse_beyond(transaction, setting, own)
        answer = answer_in(transaction, question, vector, setting)
    return Replay(receipt_id, tuple(_differences(row, answer)))


def _question(topic: str, parameters: dict[str, Any]) -> Question:
    names = ("limit", "kinds", "service", "mode", "statuses", "namespace", "context")
    return check_question(topic, **{name: parameters.get(name) for name in names})


def _vector(meaning: Meaning, topic: str, searched: dict[str, Any], titles: str | None) -> TopicVector:
    """
    The topic's vector with the receipt's cutoff; none where there was none, for the reason that there was.

    Titles count where they did: a receipt of before names no space of them.
    """
    if searched["stamp"] is None:
        return TopicVector(degraded=searched["degraded"])
    vector = meaning.of(topic)
    if vector.degraded not in (None, "embedder_none"):
        raise Unavailable(f"The topic cannot be embedded at the moment ({vector.degraded}); try again.")
    if vector.stamp != searched["stamp"]:
        present = vector.stamp or "none: GRANDBO_EMBEDDER is `none`"
        raise ReceiptNotReplayable(
            f"The receipt was made in the space {searched['stamp']}, the present one is {present}; "
            "replay it where its embedder is set.",
            stamp=searched["stamp"],
        )
    return replace(vector, cutoff=searched["cutoff"], titles=titles)


def _setting(question: Question, tenant_id: UUID, row: Row, policy: Policy) -> Setting:
    parameters = row["parameters"]
    if "tiers" in parameters:
        tiers = tuple(parameters["tiers"])
    else:  # receipts of before they named them
        asker = Principal("system", tenant_id, roles=frozenset(parameters["roles"]))
        tiers = visible_tiers(policy, asker)
    as_of = parameters.get("as_of") or {"seen_at": row["position"], "seen_tiers": tiers}
    scope = scope_of(question, tenant_id, tiers, row["instant"])
    folds = parameters.get("fold") == FOLD_VERSION
    seen_at, seen_tiers = as_of["seen_at"], tuple(as_of["seen_tiers"])
    scan = Scan.of_receipt(parameters)
    return Setting(View.AS_OF, row["position"], scope, policy, seen_at, seen_tiers, scan, folds)


def _refuse_beyond(transaction: Transaction, setting: Setting, own: tuple[str, ...]) -> None:
    params = {**setting.scope.params(), "position": setting.position, "own_tiers": list(own)}
    if transaction.execute(_BEYOND, params):
        raise ReceiptBeyondTiers


def _differences(row: Row, answer: Answer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    _compare(found, "searched", row["searched"], answer.searched.as_dict())
    then, now = row["matches"], matches_kept(answer)
    for place in range(max(len(then), len(now))):
        where = f"matches[{place}]"
        ours = now[place] if place < len(now) else None
        theirs = then[place] if place < len(then) else None
        if theirs is not None and theirs.get("erased"):
            found.append({"what": f"{where}.erased", "then": True, "now": ours and ours["entry_id"]})
        elif ours is None or theirs is None or ours["entry_id"] != theirs["entry_id"]:
            ids = (item and item["entry_id"] for item in (theirs, ours))
            found.append(dict(zip(("what", "then", "now"), (f"{where}.entry_id", *ids), strict=True)))
        else:
            _compare(found, where, theirs, ours)
    return found


def _compare(found: list[dict[str, Any]], where: str, then: dict[str, Any], now: dict[str, Any]) -> None:
    """What the receipt kept, against what came again; what it did not keep yet cannot differ."""
    for name, value in then.items():
        if value != now.get(name):
            found.append({"what": f"{where}.{name}", "then": value, "now": now.get(name)})
