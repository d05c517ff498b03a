"""
The library: `Grandbo.open()` wires settings, database, embedder and workers; `tenant()` gives the verbs.

Every other door is a thin layer over this one, so all of them answer alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import structlog

from grandbo.caring import Caring
from grandbo.documenting import Documenting
from grandbo.embedding import Embedder, build_embedder
from grandbo.erasing import Erasing
from grandbo.errors import Unauthenticated
from grandbo.events import notes
from grandbo.events.models import Policy
from grandbo.governing import Governing
from grandbo.investigating import Investigating
from grandbo.keeping import Keeping
from grandbo.logs import quiet_unless_configured
from grandbo.memory import (
    hooks,
    identities,
    importing,
    inbox,
    policies,
    principals,
    reading,
    record,
    restoring,
    tenants,
)
from grandbo.memory.finding import Finding, parse_finding
from grandbo.memory.policy import check_roles, require
from grandbo.memory.sign_in import SignIn
from grandbo.memory.tenants import Tenant
from grandbo.memory.tokens import Claims, Tokens
from grandbo.people import People
from grandbo.proposing import Proposing
from grandbo.recall.counting import Counting
from grandbo.recall.meaning import Meaning
from grandbo.recall.receipts import ReceiptWriter
from grandbo.receiving import Receiving
from grandbo.remembering import Remembering
from grandbo.safekeeping import Safekeeping
from grandbo.settings import Settings, warn_of_removed
from grandbo.stamping import Stamping
from grandbo.storage.database import Database
from grandbo.storage.key_providers import build_key_provider, give_keys
from grandbo.storage.keyring import KeyProvider
from grandbo.storage.opening import OpenDatabase, open_database
from grandbo.storage.readers import Readers
from grandbo.subscribing import Subscribing
from grandbo.types import Clock, Principal, derived_id, utc_now
from grandbo.workers.background import Background
from grandbo.workers.embedding import EmbeddingWorker

log = structlog.get_logger(__name__)

# Who makes tenants on the machine itself, before any tenant has principals of its own.
OPERATOR = Principal("system", derived_id("system", "operator"), "operator")


class Grandbo(Safekeeping):
    """An open memory: one database, one embedder. Close it, or use it in a `with`."""

    def __init__(self, settings: Settings, opened: OpenDatabase, embedder: Embedder | None, clock: Clock = utc_now):
        self.settings = settings
        self.embedder = embedder
        self.database: Database = opened.database
        self.readers = Readers(opened.database, opened.replica)
        self.receipts = ReceiptWriter(opened.database)
        self.meaning = Meaning(embedder)
        self.counting = Counting()
        self.tokens = Tokens(settings) if settings.oidc_issuer or settings.oidc_audience else None
        self.sign_in = SignIn.of(settings, self.tokens, clock)
        self._opened = opened
        self._clock = clock
        self.background: Background | None = None

    @classmethod
    def open(
        cls,
        *,
        home: Path | str | None = None,
        database_url: str | None = None,
        embedder: Embedder | None = None,
        settings: Settings | None = None,
        clock: Clock = utc_now,
        check_erasures: bool = True,
        key_provider: KeyProvider | None = None,
    ) -> Self:
        """
        Open with settings from the environment; what is given here goes before them.

        Args:
            check_erasures: refuse a database that has again what was erased; false only to mend that.
            key_provider: what wraps the keys of subjects; else what the settings name.

        Raises:
            ConfigurationError, DatabaseUnsafe, DatabaseBehind, DatabaseNewer, DatabaseUnavailable,
            EmbeddedServerError, ErasureMissing.
        """
        quiet_unless_configured()
        settings = settings or Settings.load(home=home, database_url=database_url)
        warn_of_removed()
        opened = open_database(settings)
        try:
            give_keys(opened.database, key_provider or build_key_provider(settings))
            opened.database.wait()
            if check_erasures:
                restoring.refuse_unerased(opened.database, settings.home, notes.known_public_key(settings.home))
            return cls(settings, opened, embedder or build_embedder(settings), clock)
        except BaseException:
            opened.close()
            raise

    def close(self) -> None:
        """Stop the worker, write the receipts that are queued, close the pool, let the embedded server go."""
        self.stop_worker()
        self.receipts.close()
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- tenants -------------------------------------------------------------------------------------------------------

    def create_tenant(self, name: str) -> Tenant:
        """Make a tenant; raises `TenantExists`."""
        made, _ = tenants.create_tenant(self.database, name, OPERATOR, clock=self._clock)
        log.info("tenant_created", tenant_id=str(made.tenant_id))
        return made

    def tenants(self) -> list[Tenant]:
        """All tenants, by name."""
        return tenants.list_tenants(self.database)

    def tenant(
        self,
        name_or_id: str | UUID,
        *,
        principal: Principal | str = "human:local",
        roles: tuple[str, ...] | None = None,
    ) -> TenantMemory:
        """
        The memory of one tenant, for one principal.

        Args:
            principal: from a credential; or `[type:]name` for someone who works on this machine, with all roles.
            roles: for a principal by name, these roles alone.

        Raises:
            TenantUnknown
        """
        found = tenants.find_tenant(self.database, str(name_or_id))
        if isinstance(principal, str):
            principal = principals.local_principal(self.database, found.tenant_id, principal, clock=self._clock)
            if roles is not None:
                principal = replace(principal, roles=check_roles(roles))
        return TenantMemory(self, found, principal)

    def authenticate(self, token: str) -> TenantMemory:
        """
        The memory that a bearer token opens: an API key or, where an issuer is configured, one of its JWTs.

        Raises:
            Unauthenticated: the caller cannot tell why.
            Unavailable: the issuer's keys are needed and cannot be had.
        """
        if self.tokens is None or principals.looks_like_key(token):
            tenant, principal = principals.authenticate(self.database, token, clock=self._clock)
        else:
            return self.identify(self.tokens.verify(token))
        return TenantMemory(self, tenant, principal)

    def identify(self, claims: Claims) -> TenantMemory:
        """
        The memory that verified claims of the configured issuer open.

        Raises:
            Unauthenticated: they are another issuer's, or name a tenant that is not there.
        """
        if self.tokens is None or claims.issuer != self.tokens.issuer:
            raise Unauthenticated
        tenant, principal = identities.identify(self.database, claims, clock=self._clock)
        return TenantMemory(self, tenant, principal)

    def receive(self, source: str, hook_id: str, headers: Mapping[str, str], body: bytes) -> inbox.Delivery:
        """
        Take in what a tool delivers to one of its hooks; durable when this returns, mapped later.

        Args:
            headers: by their names in lower case; one that was sent twice is left out.

        Raises:
            Unauthenticated: no such hook, or not from whoever has its secret; the caller cannot tell which.
        """
        hook = hooks.authenticate_delivery(self.database, source, hook_id, headers, body, clock=self._clock)
        delivery = inbox.store_delivery(self.database, hook, headers, body, clock=self._clock)
        if delivery.is_new and self.background is not None:
            self.background.caretaker.wake()
        return delivery

    # -- the worker ----------------------------------------------------------------------------------------------------

    def start_worker(self) -> None:
        """Look after all tenants in the background of this process, and embed where there is an embedder."""
        if self.background is None:
            self.background = Background(self.database, self.settings, self._clock)
            self.background.start()
            if self.embedder is not None:
                self.background.embed(self.embedder)

    def stop_worker(self) -> None:
        """Let what runs in the background finish what it has in hand, and end it."""
        if self.background is not None:
            self.background.stop()
            self.background = None

    @property
    def worker(self) -> EmbeddingWorker | None:
        """The embedding worker of this process, if one runs."""
        return self.background.worker if self.background else None

    @property
    def worker_is_alive(self) -> bool:
        """Whether the worker that was started still runs; True where none was started."""
        return self.background is None or self.background.embeds_still

    def wake_worker(self) -> None:
        """Tell what runs in this process that something was appended."""
        if self.background is not None:
            self.background.appended()

    @property
    def clock(self) -> Clock:
        """The clock of the write side."""
        return self._clock


class TenantMemory(
    Governing,
    Keeping,
    Remembering,
    Investigating,
    Proposing,
    Erasing,
    People,
    Caring,
    Receiving,
    Documenting,
    Subscribing,
    Stamping,
):
    """The verbs, bound to one tenant and one principal."""

    def __init__(self, grandbo: Grandbo, tenant: Tenant, principal: Principal) -> None:
        self._grandbo = grandbo
        self._database = grandbo.database
        self._readers = grandbo.readers
        self._meaning = grandbo.meaning
        self._receipts = grandbo.receipts
        self._counting = grandbo.counting
        self.tenant = tenant
        self.principal = principal

    @property
    def tenant_id(self) -> UUID:
        return self.tenant.tenant_id

    @property
    def _home(self) -> Path:
        return self._grandbo.settings.home

    @property
    def _settings(self) -> Settings:
        return self._grandbo.settings

    @property
    def _embedder_or_none(self) -> Embedder | None:
        return self._grandbo.embedder

    def _clock(self) -> Clock:
        return self._grandbo.clock

    def _policy_now(self) -> Policy:
        self.tenant = tenants.find_tenant(self._database, str(self.tenant_id))
        return self.tenant.policy

    def _changed(self) -> None:
        self._grandbo.wake_worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held open between verbs."""

    # -- writing -------------------------------------------------------------------------------------------------------

    def record_finding(
        self, finding: Finding | dict[str, Any] | None = None, *, command_id: UUID | None = None, **fields: Any
    ) -> record.Recorded:
        """
        Record a finding: a `Finding`, a document, or its fields as keywords.

        Durable when this returns. The same finding of the same incident again is the first acknowledgement again.
        """
        if finding is not None and fields:
            raise TypeError("give the finding or its fields, not both")
        parsed = finding if isinstance(finding, Finding) else parse_finding(fields if finding is None else finding)
        recorded = record.record_finding(
            self._database,
            self.tenant_id,
            self.principal,
            self.tenant.policy,
            parsed,
            command_id=command_id,
            clock=self._grandbo.clock,
        )
        log.info(
            "finding_recorded",
            tenant_id=str(self.tenant_id),
            principal=self.principal.ref,
            position=recorded.acknowledgement.position,
            created=recorded.acknowledgement.created,
            replayed=recorded.replayed,
        )
        self._grandbo.wake_worker()
        return recorded

    def import_lines(
        self,
        lines: Iterable[bytes],
        kind: importing.ImportKind,
        *,
        progress: Callable[[importing.ImportReport], None] | None = None,
    ) -> importing.ImportReport:
        """Import JSON Lines; resumable, bad lines are reported and do not stop the rest."""
        require(self.principal, "record")
        report = importing.import_lines(
            self._database,
            self.tenant_id,
            self.principal,
            self.tenant.policy,
            lines,
            kind,
            progress=progress,
            clock=self._grandbo.clock,
        )
        self._grandbo.wake_worker()
        return report

    # -- reading -------------------------------------------------------------------------------------------------------

    def history(self, entry_id: UUID) -> list[dict[str, Any]]:
        """Every revision of an entry with its event, author and reason, oldest first; raises `NotFound`."""
        return reading.entry_history(self._database, self.tenant_id, self._owner(), self._policy_now(), entry_id)

    # -- policy --------------------------------------------------------------------------------------------------------

    def policy(self, *, position: int | None = None) -> policies.PolicyInForce:
        """The tenant's policy in force, or the one that was at a position."""
        return policies.show_policy(self._database, self.tenant_id, self.principal, position=position)

    def preview_policy(
        self, changes: dict[str, Any], *, expected_position: int | None = None
    ) -> tuple[policies.PolicyInForce, Policy | None]:
        """The policy in force and what it would become, None for no other; nothing is written."""
        return policies.preview_policy(
            self._database, self.tenant_id, self.principal, changes, expected_position=expected_position
        )

    def change_policy(self, changes: dict[str, Any], *, reason: str, **options: Any) -> policies.PolicyInForce:
        """
        Replace the named fields of the policy and keep all else; `expected_position` and `command_id` as options.

        From here on this memory works under the new policy; others that are open take it at their next opening.
        """
        changed = policies.change_policy(
            self._database, self.tenant_id, self.principal, changes, reason, clock=self._grandbo.clock, **options
        )
        self.tenant = replace(self.tenant, policy=changed.policy)
        return changed
