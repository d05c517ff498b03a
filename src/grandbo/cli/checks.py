"""The checks of `grandbo doctor`: what is looked at, when it is fine, and how to mend it when it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from grandbo.errors import ConfigurationError, DatabaseBehind, GrandboError
from grandbo.settings import REMOVED

if TYPE_CHECKING:
    from grandbo.library import Grandbo
    from grandbo.settings import Settings
    from grandbo.storage.inspection import ServerFacts

State = Literal["ok", "warn", "fail"]

OLDEST_SERVER = 15
OLDEST_VECTOR = (0, 8)
# The releases that fix the known ways in which any database user runs code as the server's account.
SERVER_FLOORS = {18: 180007, 17: 170012, 16: 160016, 15: 150020}
VECTOR_FLOOR = (0, 8, 7)
TOLERATED_SKEW = timedelta(seconds=2)
WHOLE_LOG = 20_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    mend: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"check": self.name, "state": self.state, "found": self.found, "mend": self.mend or None}


def check_environment(settings: Settings) -> Iterator[Check]:
    """Are there variables that nobody reads? A mistyped name silently leaves the default in force."""
    known = {f"GRANDBO_{name.upper()}" for name in type(settings).model_fields}
    strange = sorted(name for name in os.environ if name.startswith("GRANDBO_") and name not in known)
    if strange:
        mend = dict.fromkeys(REMOVED.get(name, "See `grandbo config show` for the names.") for name in strange)
        yield Check("settings", "warn", f"not read: {', '.join(strange)}", " ".join(mend))
    else:
        yield Check("settings", "ok", f"{len(settings.model_fields_set)} set")


def check_server(facts: ServerFacts) -> Iterator[Check]:
    """Server and extension: old enough to be refused, or old enough to be warned of."""
    major = facts.version_num // 10_000
    floor = SERVER_FLOORS.get(major)
    if major < OLDEST_SERVER:
        yield Check("server", "fail", f"PostgreSQL {facts.version}", "Move to PostgreSQL 15 or newer.")
    elif floor is not None and facts.version_num < floor:
        reason = "below the fixes of CVE-2026-6460 and CVE-2026-120141: a database user may run code as the server"
        mend = f"Upgrade to {floor // 10_000}.{floor % 10_000} or newer; expose the server to nobody but Grandbo."
        yield Check("server", "warn", f"PostgreSQL {facts.version}, {reason}", mend)
    else:
        yield Check("server", "ok", f"PostgreSQL {facts.version}")
    yield _vector(facts.vector_version)


def _vector(version: str | None) -> Check:
    if version is None:
        return Check("pgvector", "fail", "not installed", "Install pgvector 0.8 or newer, then `grandbo migrate`.")
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    if numbers[:2] < OLDEST_VECTOR:
        return Check("pgvector", "fail", f"pgvector {version}", "Upgrade to pgvector 0.8 or newer.")
    if numbers < VECTOR_FLOOR:
        reason = "below 0.8.7, which fixes an overflow; Grandbo makes none of the indexes concerned"
        return Check("pgvector", "warn", f"pgvector {version}, {reason}", "Upgrade pgvector when you can.")
    return Check("pgvector", "ok", f"pgvector {version}")


def check_vacuum(facts: ServerFacts) -> Iterator[Check]:
    """Are tables vacuumed and analysed by themselves? Indexes answer alone, and plans fit, where they are."""
    if facts.vacuums:
        yield Check("vacuum", "ok", "tables are vacuumed and analysed by themselves")
    else:
        found = "off: recall slows down with every write, and the log is never frozen"
        yield Check("vacuum", "warn", found, "Set autovacuum and track_counts to on.")


def check_login(facts: ServerFacts) -> Iterator[Check]:
    """Does row-level security bind the login, and is every tenant table walled in?"""
    faults = {
        "is a superuser": facts.is_superuser,
        "has BYPASSRLS": facts.bypasses_rls,
        "owns the tables": facts.owns_tables,
    }
    wrong = [what for what, is_so in faults.items() if is_so]
    mend = "Connect as an ordinary login; `grandbo migrate` with GRANDBO_ADMIN_DATABASE_URL sets one up."
    if wrong:
        yield Check("login", "fail", f"{facts.login} {', '.join(wrong)}", mend)
    else:
        yield Check("login", "ok", f"{facts.login} is bound by row-level security")
    if facts.unwalled_tables:
        found = f"without enabled and forced row-level security: {', '.join(facts.unwalled_tables)}"
        yield Check("walls", "fail", found, "Restore ENABLE and FORCE ROW LEVEL SECURITY and the policies on them.")
    else:
        yield Check("walls", "ok", "row-level security is enabled and forced on every tenant table")


def check_schema(facts: ServerFacts) -> Iterator[Check]:
    """Do database and code fit each other?"""
    from grandbo.storage.migrate import check_revision

    try:
        check_revision(facts.revision)
    except ConfigurationError as error:
        mend = "Run `grandbo migrate`." if isinstance(error, DatabaseBehind) else "Upgrade Grandbo."
        yield Check("schema", "fail", error.message, mend)
    else:
        yield Check("schema", "ok", f"revision {facts.revision}")


def check_clock(facts: ServerFacts) -> Iterator[Check]:
    """Do both clocks agree? What is valid is decided by ours, what is recorded never runs backwards."""
    skew = facts.clock_ahead
    if abs(skew) > TOLERATED_SKEW:
        found = f"the database's clock is {skew.total_seconds():+.1f} s off ours"
        yield Check("clock", "warn", found, "Let both machines keep time, with NTP for instance.")
    else:
        yield Check("clock", "ok", "database and host agree")


def check_embedder(grandbo: Grandbo) -> Iterator[Check]:
    """Does the model load and give vectors of the length that its stamp says?"""
    if grandbo.embedder is None:
        yield Check("embedder", "warn", "none: recall goes by words alone", "Unset GRANDBO_EMBEDDER for the local one.")
        return
    try:
        stamp = grandbo.embedder.stamp
        length = grandbo.embedder.embed(["a probe of the embedding provider"], "document").shape[1]
    except GrandboError as error:
        yield Check("embedder", "fail", error.message, "Until then recall goes by words alone.")
        return
    yield Check("embedder", "ok", f"{stamp.id}, {length} dimensions, cutoff {stamp.cutoff_bp / 10_000:g}")


def check_tenants(grandbo: Grandbo, only: str | None) -> Iterator[Check]:
    """For each tenant: what waits for a vector, whether its log verifies, and whether its policy can be gone by."""
    from grandbo.memory.tenants import find_tenant
    from grandbo.storage.tenancy import all_tenants
    from grandbo.workers.backlog import count_backlog

    ids = [find_tenant(grandbo.database, only).tenant_id] if only else all_tenants(grandbo.database)
    if not ids:
        yield Check("tenants", "warn", "there are none", "Run `grandbo tenant create NAME`.")
    for tenant_id in ids:
        yield _log(grandbo, tenant_id)
        yield from _policy(grandbo, tenant_id)
        yield from _hooks(grandbo, tenant_id)
        if grandbo.embedder is None:
            continue
        try:
            counts = count_backlog(grandbo.database, tenant_id, grandbo.embedder.stamp.id)
        except GrandboError as error:
            yield Check(f"backlog {tenant_id}", "fail", error.message)
            continue
        found = f"{counts.embedded} embedded, {counts.pending} pending, {counts.dead} given up"
        if counts.dead:
            yield Check(f"backlog {tenant_id}", "warn", found, "Run `grandbo embed --wait --retry-dead --tenant …`.")
        else:
            yield Check(f"backlog {tenant_id}", "ok", found)


def _policy(grandbo: Grandbo, tenant_id: UUID) -> Iterator[Check]:
    """Does it name what only a newer version has?"""
    from grandbo.memory.tenants import find_tenant
    from grandbo.recall.scan import ScanUnknown, scan_of

    try:
        scan_of(find_tenant(grandbo.database, str(tenant_id)).policy)
    except ScanUnknown as error:
        yield Check(f"policy {tenant_id}", "fail", error.message, "Until then it is not recalled from.")


def _hooks(grandbo: Grandbo, tenant_id: UUID) -> Iterator[Check]:
    """Which hooks prove nothing of what they deliver, what the inbox has given up on, and who is told nothing more."""
    from grandbo.memory.hooks import list_hooks
    from grandbo.memory.inbox import count_inbox
    from grandbo.memory.subscriptions import list_subscriptions

    found = list_hooks(grandbo.database, tenant_id)
    unsigned = [f"{hook.hook_id} ({hook.source}: {hook.name})" for hook in found if not hook.is_signed]
    if unsigned:
        what = f"without a signature, by a secret that is sent along: {', '.join(unsigned)}"
        yield Check(f"hooks {tenant_id}", "warn", what, "Let them deliver over TLS alone, and rotate their secrets.")
    elif found:
        yield Check(f"hooks {tenant_id}", "ok", f"{len(found)}, all of them signed")
    if dead := count_inbox(grandbo.database, tenant_id)["dead"]:
        mend = "See `grandbo inbox list --state dead`; then retry or drop them."
        yield Check(f"inbox {tenant_id}", "warn", f"{dead} deliveries could not be mapped", mend)
    for item in list_subscriptions(grandbo.database, tenant_id):
        if item.state == "dead" or item.attempts:
            found_out = f"{item.state}, {item.attempts} attempts in vain: {item.error_code}"
            mend = f"Mend its receiver, then `grandbo subscription resume {item.subscription_id}`."
            yield Check(f"subscription {tenant_id}", "warn", found_out, mend)


def _log(grandbo: Grandbo, tenant_id: UUID) -> Check:
    from grandbo.events.verify import head_position, verify_tenant

    name = f"log {tenant_id}"
    head = head_position(grandbo.database, tenant_id)
    if head > WHOLE_LOG:
        return Check(
            name, "ok", f"{head} events, not verified here", f"Run `grandbo audit verify --tenant {tenant_id}`."
        )
    result = verify_tenant(grandbo.database, tenant_id)
    if result.first_bad is not None:
        found = f"position {result.first_bad.position}: {result.first_bad.what}"
        return Check(name, "fail", found, "Write nothing, keep a copy, run `grandbo audit verify`.")
    return Check(name, "ok", f"{result.events} of {result.head} events verified")
