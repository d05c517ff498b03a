"""
Row-level security, rendered in one place, in two forms.

On a plain server a policy calls its functions in scalar sub-selects, so that they run once a query instead of once a
row, and a RESTRICTIVE `tenant_wall` stands on top, so that a careless policy added later widens nothing. A distributed
server refuses the sub-selects and turns RESTRICTIVE into PERMISSIVE on its shards, so there the functions are called
plainly and the wall is left out. In both forms every PERMISSIVE policy is complete by itself.

What is rendered here was run by a migration. A change needs a new migration that renders again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Scope = Literal["tenant", "tiers", "live"]
Command = Literal["SELECT", "INSERT", "UPDATE", "DELETE", "ALL"]


@dataclass(frozen=True, slots=True)
class Policy:
    """One PERMISSIVE policy: what `roles` may do with the rows that `scope` lets through."""

    name: str
    command: Command
    roles: str
    scope: Scope = "tenant"


_LOG_READERS = "grandbo_writer, grandbo_projector, grandbo_auditor, grandbo_notary"
_WRITERS = "grandbo_writer, grandbo_projector"

LOG_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_heads": (
        Policy("head_read", "SELECT", _LOG_READERS),
        Policy("head_open", "INSERT", "grandbo_writer"),
        Policy("head_move", "UPDATE", "grandbo_writer"),
    ),
    "org_memory_events": (
        Policy("log_read", "SELECT", f"{_LOG_READERS}, grandbo_eraser"),
        Policy("log_append", "INSERT", "grandbo_writer"),
        Policy("log_remove", "UPDATE", "grandbo_eraser"),
    ),
    "org_memory_checkpoints": (
        Policy("note_read", "SELECT", "grandbo_writer, grandbo_auditor, grandbo_notary"),
        Policy("note_append", "INSERT", "grandbo_notary"),
    ),
    "org_memory_subject_keys": (
        Policy("key_all", "ALL", "grandbo_keyholder"),
        Policy("key_find", "SELECT", "grandbo_eraser"),
        Policy("key_drop", "DELETE", "grandbo_eraser"),
    ),
}

PROJECTION_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_policies": (
        Policy("policy_see", "SELECT", "grandbo_auditor"),
        Policy("policy_write", "ALL", _WRITERS),
    ),
    "org_memory_entries": (
        Policy("entry_read", "SELECT", "grandbo_reader", "live"),
        Policy("entry_see", "SELECT", "grandbo_auditor"),
        Policy("entry_write", "ALL", _WRITERS),
    ),
    "org_memory_revisions": (
        Policy("revision_read", "SELECT", "grandbo_reader", "tiers"),
        Policy("revision_see", "SELECT", "grandbo_auditor"),
        Policy("revision_write", "ALL", _WRITERS),
    ),
    "org_memory_terms": (
        Policy("term_read", "SELECT", "grandbo_reader", "tiers"),
        Policy("term_see", "SELECT", "grandbo_auditor"),
        Policy("term_write", "ALL", _WRITERS),
    ),
    "org_memory_embeddings": (
        Policy("embedding_read", "SELECT", "grandbo_reader", "live"),
        Policy("embedding_see", "SELECT", "grandbo_auditor"),
        Policy("embedding_write", "ALL", _WRITERS),
    ),
}

LINK_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_links": (
        Policy("link_see", "SELECT", "grandbo_auditor"),
        Policy("link_write", "ALL", _WRITERS),
    ),
}

CANDIDATE_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_candidates": (
        Policy("candidate_see", "SELECT", "grandbo_auditor"),
        Policy("candidate_write", "ALL", _WRITERS),
    ),
}

FEEDBACK_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_feedback": (
        Policy("feedback_see", "SELECT", "grandbo_auditor"),
        Policy("feedback_write", "ALL", _WRITERS),
    ),
}

NOTE_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_notes": (Policy("note_keep", "ALL", "grandbo_writer"),),
}

ERASURE_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_erasures": (
        Policy("erasure_keep", "ALL", "grandbo_writer"),
        Policy("erasure_see", "SELECT", "grandbo_auditor"),
    ),
}

SUBJECT_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_subjects": (
        Policy("subject_see", "SELECT", "grandbo_auditor"),
        Policy("subject_write", "ALL", _WRITERS),
    ),
}

PEPPER_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_subject_peppers": (Policy("pepper_keep", "ALL", "grandbo_keyholder"),),
}

CONFIRMATION_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_confirmations": (Policy("confirmation_keep", "ALL", "grandbo_writer"),),
}

OPERATIONAL_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_principals": (Policy("principal_keep", "ALL", "grandbo_writer"),),
    "org_memory_api_keys": (Policy("api_key_keep", "ALL", "grandbo_writer"),),
    "org_memory_embedding_attempts": (Policy("attempt_keep", "ALL", "grandbo_writer"),),
    "org_memory_receipt_keys": (Policy("receipt_key_keep", "ALL", "grandbo_writer"),),
    "org_memory_receipts": (
        Policy("receipt_keep", "ALL", "grandbo_writer"),
        Policy("receipt_see", "SELECT", "grandbo_auditor"),
    ),
}

RECEIPT_ENTRY_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_receipt_entries": (
        Policy("receipt_entry_keep", "ALL", "grandbo_writer"),
        Policy("receipt_entry_see", "SELECT", "grandbo_auditor"),
    ),
}

CARE_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_contradiction_checks": (Policy("contradiction_check_keep", "ALL", "grandbo_writer"),),
}

HOOK_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_hooks": (Policy("hook_keep", "ALL", "grandbo_writer"),),
    "org_memory_inbox": (Policy("inbox_keep", "ALL", "grandbo_writer"),),
    "org_memory_incidents": (Policy("incident_keep", "ALL", "grandbo_writer"),),
}

SUBSCRIPTION_POLICIES: dict[str, tuple[Policy, ...]] = {
    "org_memory_subscriptions": (Policy("subscription_keep", "ALL", "grandbo_writer"),),
}


def predicate(scope: Scope, *, distributed: bool = False) -> str:
    """The condition of a policy, as SQL."""

    def call(function: str) -> str:
        return f"grandbo.{function}()" if distributed else f"(SELECT grandbo.{function}())"

    conditions = [f"tenant_id = {call('current_tenant')}"]
    if scope in ("tiers", "live"):
        # The cast keeps `= ANY (sub-select)` from being read as "any row of the sub-select".
        tiers = call("current_tiers") if distributed else f"({call('current_tiers')})::text[]"
        conditions.append(f"visibility = ANY ({tiers})")
    if scope == "live":
        statuses = call("current_statuses") if distributed else f"({call('current_statuses')})::text[]"
        instant = call("current_instant")
        conditions += [f"status = ANY ({statuses})", f"valid_from <= {instant}", f"expires_at > {instant}"]
    return " AND ".join(conditions)


def wall_statements(
    schema: str, policies: dict[str, tuple[Policy, ...]], *, distributed: bool = False
) -> Iterator[str]:
    """Give the statements that wall in each table of `policies`: ENABLE, FORCE, the wall, the policies."""
    own = predicate("tenant", distributed=distributed)
    for table, table_policies in policies.items():
        name = f"{schema}.{table}"
        yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY"
        if not distributed:
            wall = f"CREATE POLICY tenant_wall ON {name} AS RESTRICTIVE FOR ALL TO PUBLIC"
            yield f"{wall} USING ({own}) WITH CHECK ({own})"
        yield from (_policy(name, policy, distributed) for policy in table_policies)


def unwall_statements(schema: str, policies: dict[str, tuple[Policy, ...]]) -> Iterator[str]:
    """Give the statements that drop all policies again, before they are rendered in the other form."""
    for table, table_policies in policies.items():
        yield f"DROP POLICY IF EXISTS tenant_wall ON {schema}.{table}"
        yield from (f"DROP POLICY {policy.name} ON {schema}.{table}" for policy in table_policies)


def scratch_policies(policies: Iterable[str]) -> dict[str, tuple[Policy, ...]]:
    """In the scratch schema of a rebuild only the projector has any business."""
    return {table: (Policy("scratch_write", "ALL", "grandbo_projector"),) for table in policies}


def _policy(table: str, policy: Policy, distributed: bool) -> str:
    condition = predicate(policy.scope, distributed=distributed)
    using = "" if policy.command == "INSERT" else f" USING ({condition})"
    check = "" if policy.command in ("SELECT", "DELETE") else f" WITH CHECK ({condition})"
    return f"CREATE POLICY {policy.name} ON {table} FOR {policy.command} TO {policy.roles}{using}{check}"


_PROJECTED = PROJECTION_POLICIES | LINK_POLICIES | CANDIDATE_POLICIES | FEEDBACK_POLICIES | SUBJECT_POLICIES
# Every table that belongs to a tenant, by schema.
WALLED: dict[str, dict[str, tuple[Policy, ...]]] = {
    "grandbo": (
        LOG_POLICIES
        | _PROJECTED
        | OPERATIONAL_POLICIES
        | RECEIPT_ENTRY_POLICIES
        | NOTE_POLICIES
        | CARE_POLICIES
        | ERASURE_POLICIES
        | PEPPER_POLICIES
        | CONFIRMATION_POLICIES
        | HOOK_POLICIES
        | SUBSCRIPTION_POLICIES
    ),
    "grandbo_scratch": scratch_policies(_PROJECTED),
}
