"""The tools that write: a proposal, what became of an answer, a working note."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from mcp.server.mcpserver.exceptions import ToolError

from grandbo.library import TenantMemory
from grandbo.mcp.answers import ToolAnswer
from grandbo.mcp.entries import entry_id_of
from grandbo.types import derived_id

WAITS = "It waits for a person and is not part of the memory yet: do not treat it as known."


def propose_memory(memory: TenantMemory, given: dict[str, Any]) -> ToolAnswer:
    """Propose what was learned; the same idempotency_key with the same content is the same proposal."""
    document: dict[str, Any] = {
        "title": given["title"],
        "summary": given["summary"],
        "body": given["body"],
        "kind": given["kind"],
        "service": given["service"],
        "evidence": [
            {"type": "link", "uri": uri.strip(), "label": ""}
            for uri in given["evidence_urls"].splitlines()
            if uri.strip()
        ],
    }
    document |= {name: given[name] for name in ("subject", "memory_key", "session_id") if given[name]}
    if given["incident_ref"]:
        source, colon, incident = given["incident_ref"].partition(":")
        if not colon:
            raise ToolError("incident_ref: write SOURCE:ID, such as pager:INC-7.")
        document["incident"] = {"source": source, "id": incident}
    origin = {"type": "conversation", "ref": given["conversation"]} if given["conversation"] else None
    if not document["evidence"] and origin is None and given["kind"] != "episode":
        raise ToolError("evidence_urls: give a link that shows it, or name the conversation where it was noticed.")
    key = given["idempotency_key"]
    command_id = derived_id("mcp_proposal", str(memory.tenant_id), memory.principal.ref, key) if key else None
    decided = memory.propose(document, origin=origin, command_id=command_id)
    text = f"Proposed as candidate {decided.candidate_id}. {WAITS}"
    return ToolAnswer(text, {"candidate_id": str(decided.candidate_id), "status": decided.status})


def report_memory_outcome(memory: TenantMemory, given: dict[str, Any]) -> ToolAnswer:
    """Say what became of one entry of one answer."""
    try:
        receipt = UUID(given["receipt_id"].strip())
    except ValueError:
        raise ToolError("receipt_id: it must be the id of a receipt; query_org_memory gives it at its end.") from None
    entry = entry_id_of(given["entry_id"])
    changed = memory.give_feedback(receipt, entry, given["outcome"], note=given["note"] or None)
    said = "Noted" if changed.appended else "Known already"
    return ToolAnswer(
        f"{said}: entry {entry} was {given['outcome']}.", {"entry_id": str(entry), "outcome": given["outcome"]}
    )


def note_working_memory(memory: TenantMemory, given: dict[str, Any]) -> ToolAnswer:
    """Note something down in an investigation, and read its last notes back."""
    if given["text"]:
        memory.note(given["investigation_id"], given["text"])
    window = memory.context_window(given["investigation_id"])
    return ToolAnswer(window.text, {"shown": window.shown, "dropped": window.dropped, "clipped": window.clipped})
