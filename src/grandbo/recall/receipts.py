"""
Receipts: the record of each recall, written off the hot path.

What is kept of the topic is a keyed HMAC, never the topic. The queue is bounded: when the database cannot keep up,
receipts are dropped and counted, and the count is reported; a recall never waits for its receipt.
"""

from __future__ import annotations

import hashlib
import hmac
import queue
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects import postgresql as pg

from grandbo.errors import GrandboError
from grandbo.events.log import LAST_POSITION
from grandbo.recall.answer import Answer
from grandbo.storage.database import Database, Row, Transaction
from grandbo.storage.erasing import LET_RECEIPTS_IN
from grandbo.storage.tables import entries, erasures, receipt_entries, receipt_keys, receipts
from grandbo.storage.tenancy import TENANT, of_tenant

log = structlog.get_logger(__name__)

QUEUE_LIMIT = 5_000
BATCH = 200
LINGER_SECONDS = 0.2

# What all receipts of a batch have in common; whatever else a row has comes in one document, and one statement.
_COMMON = ("tenant_id", "key_epoch")
_OWN = [sa.column(column.name, column.type) for column in receipts.c if column.name not in _COMMON]
_made = (
    sa.func.jsonb_to_recordset(sa.bindparam("made", type_=pg.JSONB))
    .table_valued(*_OWN, name="made")
    .render_derived(with_types=True)
)
_INSERT = sa.insert(receipts).from_select(
    [*_COMMON, *(column.name for column in _OWN)],
    sa.select(TENANT, sa.bindparam("key_epoch", type_=sa.Integer), *_made.c),
)
_served = (
    sa.func.unnest(
        sa.bindparam("entries", type_=pg.ARRAY(sa.Uuid)),
        sa.bindparam("receipts", type_=pg.ARRAY(sa.Uuid)),
        sa.bindparam("revisions", type_=pg.ARRAY(sa.Integer)),
    )
    .table_valued("entry_id", "receipt_id", "revision")
    .render_derived()
)
# One statement for all entries that the receipts of a batch served.
_INSERT_ENTRIES = sa.insert(receipt_entries).from_select(
    ["tenant_id", "entry_id", "receipt_id", "revision"],
    sa.select(TENANT, _served.c.entry_id, _served.c.receipt_id, _served.c.revision),
)
_NEWEST_KEY = (
    sa.select(receipt_keys.c.epoch, receipt_keys.c.key)
    .where(of_tenant(receipt_keys))
    .order_by(receipt_keys.c.epoch.desc())
    .limit(1)
)

# `tombstones`: of an erasure of single revisions those that lost their text, of others null.
_ERASED = sa.select(
    erasures.c.entry_id, erasures.c.position, erasures.c.outcome["revisions"].label("tombstones")
).where(
    of_tenant(erasures),
    erasures.c.position.is_not(None),
    erasures.c.entry_id == sa.any_(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))),
)


_asked = sa.func.unnest(sa.bindparam("ids", type_=pg.ARRAY(sa.Uuid))).table_valued(sa.column("entry_id", sa.Uuid))
_asked = _asked.render_derived()
# An entry that was there goes by being erased alone, by itself or with its subject.
_GONE = sa.select(_asked.c.entry_id).where(
    sa.not_(
        sa.exists(sa.select(sa.literal_column("1")).where(of_tenant(entries), entries.c.entry_id == _asked.c.entry_id))
    )
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """One recall, as it will be kept. The topic itself ends in the HMAC. `took_us`: from question to answer."""

    tenant_id: UUID
    receipt_id: UUID
    position: int
    instant: datetime
    principal: str
    topic: str
    parameters: dict[str, Any]
    searched: dict[str, Any]
    matches: list[dict[str, Any]]
    made_at: datetime
    took_us: int


def matches_kept(answer: Answer) -> list[dict[str, Any]]:
    """
    What a receipt keeps of the matches and the floor: which, where, how near, and the label.

    Never the terms, which are topic.
    """
    return [
        {
            "entry_id": str(match.entry_id),
            "revision": match.revision,
            "position": match.position,
            "score": match.score,
            "lexical_rank": match.lexical.rank if match.lexical else None,
            "semantic_rank": match.semantic.rank if match.semantic else None,
            "distance": match.semantic.distance if match.semantic else None,
            "disputed": match.disputed,
            "restated": match.restated,
        }
        for match in (*answer.matches, *answer.floor)
    ]


def topic_hmac(key: bytes, topic: str) -> bytes:
    """What a receipt keeps of its topic."""
    return hmac.digest(key, topic.encode("utf-8", "surrogatepass"), hashlib.sha256)


class _Mark:
    """What stands in the queue beside receipts: write now what came before, say so, and perhaps end after that."""

    def __init__(self, *, is_end: bool = False) -> None:
        self.is_end = is_end
        self.written = threading.Event()


class ReceiptWriter:
    """A bounded queue and the thread that empties it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: queue.Queue[Receipt | _Mark] = queue.Queue(QUEUE_LIMIT)
        # Set where the thread shall not linger: a batch is full, or a mark waits.
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self.dropped = 0
        self.written = 0

    def put(self, receipt: Receipt) -> None:
        """Take a receipt; never waits. A full queue drops it and counts it."""
        self._ensure_thread()
        try:
            self._queue.put_nowait(receipt)
        except queue.Full:
            self.dropped += 1
            log.error("receipt_dropped", reason="queue_full", dropped=self.dropped)
        if self._queue.qsize() >= BATCH:
            self._hurry.set()

    def flush(self) -> None:
        """Wait until everything put so far is written or counted as dropped."""
        thread = self._thread
        if thread is not None:
            mark = _Mark()
            self._put_mark(mark)
            while thread.is_alive() and not mark.written.wait(1.0):
                pass  # a thread that ended will never say so

    def close(self) -> None:
        """Write what is queued and end the thread."""
        thread = self._thread
        if thread is not None:
            self._put_mark(_Mark(is_end=True))
            thread.join()
            self._thread = None

    def _put_mark(self, mark: _Mark) -> None:
        self._queue.put(mark)
        self._hurry.set()

    def _ensure_thread(self) -> None:
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="grandbo-receipts", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, mark = self._take()
            self._write(batch)
            if mark is not None:
                mark.written.set()
                ended = mark.is_end

    def _take(self) -> tuple[list[Receipt], _Mark | None]:
        """
        Wait for a receipt, then a moment longer for others, unless a mark says to write at once.

        One transaction for each recall would compete with the recalls themselves for the processor; so would a thread
        that wakes for each.
        """
        batch: list[Receipt] = []
        item = self._queue.get()
        if not isinstance(item, _Mark):
            self._hurry.wait(LINGER_SECONDS)
        # Before what it is about is taken: set again after this, it at worst cuts the next moment short.
        self._hurry.clear()
        while not isinstance(item, _Mark):
            batch.append(item)
            if len(batch) == BATCH:
                # Whatever stands behind has lingered too, a mark among it perhaps.
                self._hurry.set()
                return batch, None
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, None
        return batch, item

    def _write(self, batch: Sequence[Receipt]) -> None:
        by_tenant: defaultdict[UUID, list[Receipt]] = defaultdict(list)
        for receipt in batch:
            by_tenant[receipt.tenant_id].append(receipt)
        for tenant_id, mine in by_tenant.items():
            try:
                self._write_tenant(tenant_id, mine)
                self.written += len(mine)
            except GrandboError as error:
                self.dropped += len(mine)
                log.error("receipt_dropped", reason=error.code, count=len(mine), dropped=self.dropped)

    def _write_tenant(self, tenant_id: UUID, mine: Sequence[Receipt]) -> None:
        with self._database.transaction("writer", tenant_id) as transaction:
            keys, mine = self._prepared(transaction, tenant_id, mine)
            key = keys[0]
            made = [_row(receipt, bytes(key["key"])) for receipt in mine]
            rows = {"tenant_id": tenant_id, "key_epoch": key["epoch"], "made": made}
            transaction.batch([(_INSERT, rows), (_INSERT_ENTRIES, _entry_rows(tenant_id, mine))])

    @staticmethod
    def _prepared(
        transaction: Transaction, tenant_id: UUID, mine: Sequence[Receipt]
    ) -> tuple[list[Row], Sequence[Receipt]]:
        """The newest key; and the receipts without what was erased since their answers were given."""
        key = {"tenant_id": tenant_id}
        served = {UUID(match["entry_id"]) for receipt in mine for match in receipt.matches}
        asked = {**key, "ids": sorted(served)}
        _, keys, rows, gone = transaction.batch(
            [(LET_RECEIPTS_IN, key), (_NEWEST_KEY, key), (_ERASED, asked), (_GONE, asked)]
        )
        erased = [*rows, *({**row, "position": LAST_POSITION, "tombstones": None} for row in gone)]
        return keys, [_untold(receipt, erased) for receipt in mine] if erased else mine


def _untold(receipt: Receipt, erased: Sequence[Row]) -> Receipt:
    matches = [{"erased": True} if any(_took(row, match) for row in erased) else match for match in receipt.matches]
    return replace(receipt, matches=matches)


def _took(erasure: Row, match: Mapping[str, Any]) -> bool:
    """Whether the erasure took what was served, which is older than it."""
    if str(erasure["entry_id"]) != match["entry_id"] or match["position"] >= erasure["position"]:
        return False
    return erasure["tombstones"] is None or match["revision"] in erasure["tombstones"]


def _entry_rows(tenant_id: UUID, mine: Sequence[Receipt]) -> dict[str, Any]:
    served = [(receipt.receipt_id, match) for receipt in mine for match in receipt.matches if "entry_id" in match]
    return {
        "tenant_id": tenant_id,
        "entries": [UUID(match["entry_id"]) for _, match in served],
        "receipts": [receipt_id for receipt_id, _ in served],
        "revisions": [match["revision"] for _, match in served],
    }


def _row(receipt: Receipt, key: bytes) -> dict[str, Any]:
    return {
        "receipt_id": str(receipt.receipt_id),
        "position": receipt.position,
        "instant": receipt.instant.isoformat(),
        "principal": receipt.principal,
        "topic_hmac": f"\\x{topic_hmac(key, receipt.topic).hex()}",
        "parameters": receipt.parameters,
        "searched": receipt.searched,
        "matches": receipt.matches,
        "made_at": receipt.made_at.isoformat(),
        "took_us": receipt.took_us,
    }
