"""A quick look at the end of a log: cheap at any size. `verify_tenant` is the proof; this is the smoke detector."""

from __future__ import annotations

from uuid import UUID

from grandbo.events import chain
from grandbo.events.log import READ_HEAD, read_rows
from grandbo.events.verify import Fault, Verification
from grandbo.storage.database import Database, Row


def verify_tail(database: Database, tenant_id: UUID, length: int) -> Verification:
    """
    Check the last `length` events and the head: positions, links, hashes, commitments.

    The event in front of them is taken as it is; `events` counts those that were checked.
    """
    with database.transaction("auditor", tenant_id, read_only=True, snapshot=True) as transaction:
        heads = transaction.execute(READ_HEAD, {"tenant_id": tenant_id})
        if not heads:
            return Verification(tenant_id, 0, 0, Fault(0, "the tenant has no head"))
        head = int(heads[0]["position"])
        after = max(0, head - length)
        position, last = after, chain.genesis(tenant_id) if after == 0 else None
        for row in read_rows(transaction, tenant_id, after=after):
            what = _fault_of(row, position + 1, last)
            if what is not None:
                return Verification(tenant_id, position - after, head, Fault(position + 1, what))
            position, last = row["position"], bytes(row["hash"])
    fault = None
    if (position, last) != (head, bytes(heads[0]["hash"])):
        fault = Fault(min(position, head) + 1, "the head does not name the last event")
    return Verification(tenant_id, position - after, head, fault)


def _fault_of(row: Row, position: int, last: bytes | None) -> str | None:
    if row["position"] != position:
        return "gap, duplicate or reorder"
    if last is not None and bytes(row["prev_hash"]) != last:
        return "chain broken: does not continue the event before"
    if bytes(row["hash"]) != chain.link(position, bytes(row["prev_hash"]), chain.leaf_hash(row["envelope"])):
        return "event altered: its hash does not fit"
    body, salt = row["body"], row["salt"]
    if body is not None and f'"{chain.commitment(bytes(salt), bytes(body)).hex()}"' not in row["envelope"]:
        return "body altered: it does not fit its commitment"
    return None
