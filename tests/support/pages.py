"""A tenant with something on every page, and the addresses of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.hooks import Tool


@dataclass(frozen=True, slots=True)
class Furnished:
    """What there is to look at."""

    memory: TenantMemory
    entry_id: str
    addresses: tuple[str, ...]


def furnish(grandbo: Grandbo, memory: TenantMemory, text: str = "the lease renewal failed") -> Furnished:
    """Put `text` into every field that holds free text, in entries of each state, candidates, deliveries, keys."""
    told = {
        "title": f"Queue stalled: {text}"[:200],
        "summary": f"Summary: {text}",
        "body": f"## Body\n\n{text}\n\n- {text}",
    }
    named = {
        "service": f"checkout {text}"[:150],
        "tags": [text[:40]],
        "owner": f"team {text}"[:150],
        "namespace": text[:90],
    }
    evidence = [{"type": "log", "uri": "https://logs.example.com/1", "label": text[:150]}]
    other = memory.record_finding(make_finding()).acknowledgement.entry_id
    finding = make_finding(**told, **named, evidence=evidence, incident={"source": "pager", "id": f"INC {text}"[:150]})
    entry = memory.record_finding(finding).acknowledgement.entry_id
    memory.correct(entry, {"summary": f"Corrected: {text}"}, reason=f"Why: {text}")
    memory.link(entry, "caused_by", other, reason=f"Link: {text}")
    memory.corroborate(entry, incident={"source": "pager", "id": f"again {text}"[:150]}, evidence=evidence)
    memory.dispute(entry, reason=f"Dispute: {text}", other=other)
    memory.archive(memory.record_finding(make_finding()).acknowledgement.entry_id, reason=text)
    put_away = memory.record_finding(make_finding()).acknowledgement.entry_id
    memory.quarantine(put_away, reason=text)
    memory.expire(other, "2026-12-05", reason="It is short.")
    memory.embed()
    proposer = grandbo.tenant(memory.tenant_id, principal=f"agent:scout {text}"[:100])
    waiting = proposer.propose(
        make_finding(**told, **named, evidence=evidence), reason=f"Proposed: {text}"
    ).candidate_id
    decided = proposer.propose(make_finding(**{**told, "title": f"Rejected: {text}"[:200]})).candidate_id
    memory.reject_candidate(decided, reason=f"Rejected: {text}")
    answer = memory.query_topic("the checkout queue stalled since leases lapsed")
    memory.query_topic("zebras grazing quietly beneath purple moonlight")
    delivered = _deliver(grandbo, memory, text)
    memory.create_key(f"key {text}"[:100], "agent", ("investigator",))
    memory.request_erasure(put_away, "personal_data")
    subject = memory.register_subject(
        "person", f"zoe-{memory.tenant_id}@example.com", f"Zoe {text}"[:100]
    ).subject.subject_id
    memory.hold_subject(subject, f"Held: {text}")
    memory.checkpoint()
    topic = "the+checkout+queue+stalled+since+leases+lapsed"
    addresses = (
        "/",
        "/keys",
        "/sign-in",
        f"/search?topic={topic}&block=1",
        "/search?topic=zebras+grazing+quietly+beneath+purple+moonlight&mode=words",
        "/search?topic=x",
        "/entries",
        f"/entries/{entry}",
        f"/entries/{entry}?as_of_position=4",
        f"/entries/{entry}/history",
        f"/entries/{entry}/history?from=1&to=2",
        f"/entries/{entry}/do/correct",
        f"/entries/{entry}/do/reclassify",
        f"/entries/{entry}/impact",
        "/review",
        "/review?status=rejected",
        f"/review/{waiting}",
        f"/review/{decided}",
        "/due",
        "/recurrence",
        "/replay",
        f"/replay?position=4&entry={entry}",
        f"/replay?position=6&topic={topic}",
        "/audit",
        "/audit/events/3",
        "/receipts",
        f"/receipts/{answer.receipt_id}",
        "/sources/impact?uri=https://logs.example.com/1",
        "/usage",
        "/erasures",
        "/people",
        f"/people/{subject}",
        f"/people/{subject}/held",
        "/incidents",
        f"/incidents/grandbo/{delivered['incident']}",
        "/inbox",
        f"/inbox/{delivered['delivery']}",
        "/admin",
        "/admin/keys",
        "/admin/hooks",
        "/admin/tenant",
        "/admin/stamps",
        "/admin/policy",
        "/admin/policy/visibility",
        "/admin/policy/keeping",
        "/admin/policy/people",
        "/admin/policy/json",
        "/entries/00000000-0000-4000-8000-000000000000",
    )
    return Furnished(memory, str(entry), addresses)


def _deliver(grandbo: Grandbo, memory: TenantMemory, text: str) -> dict[str, str]:
    """A signed delivery of Grandbo's own format, mapped."""
    hook, secret = memory.create_hook("grandbo", f"hook {text}"[:100])
    tool = Tool(grandbo, memory, hook, secret)
    delivery = tool.tell("resolved", "INC-<9>", title=text, summary=text, cause=text)
    memory.map_deliveries()
    return {"delivery": str(delivery.delivery_id), "incident": quote("INC-<9>")}
