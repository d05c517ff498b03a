"""The verbs that keep the API keys of a tenant."""

from __future__ import annotations

from datetime import timedelta

import structlog

from grandbo.memory import principals
from grandbo.memory.policy import require
from grandbo.types import PrincipalType
from grandbo.verbs import Verbs

log = structlog.get_logger(__name__)


class Keeping(Verbs):
    """Making, listing and revoking keys. `TenantMemory` is one of these."""

    def create_key(
        self,
        name: str,
        kind: PrincipalType,
        roles: tuple[str, ...],
        *,
        expires_in: timedelta | None = None,
        read_only: bool = False,
    ) -> tuple[principals.ApiKey, str]:
        """
        Make an API key; its token is given this once.

        Args:
            expires_in: how long it works; without it, until it is revoked.
            read_only: it writes nothing, whatever its roles allow.

        Raises:
            Forbidden: a role may do or see what the caller may not.
        """
        require(self.principal, "administer")
        made, token = principals.create_key(
            self._database,
            self.tenant.tenant_id,
            self.principal,
            name,
            kind,
            roles,
            expires_in=expires_in,
            read_only=read_only,
            clock=self._clock(),
        )
        log.info("key_created", tenant_id=str(self.tenant.tenant_id), principal=self.principal.ref, key_id=made.key_id)
        return made, token

    def keys(self, *, limit: int | None = None, after: str | None = None) -> list[principals.ApiKey]:
        """Keys without their secrets, oldest first: all, or a page of `limit` behind the key `after`."""
        require(self.principal, "administer")
        return principals.list_keys(self._database, self.tenant.tenant_id, limit=limit, after=after)

    def revoke_key(self, key_id: str) -> None:
        """Revoke a key; raises `NotFound`."""
        require(self.principal, "administer")
        principals.revoke_key(self._database, self.tenant.tenant_id, key_id, clock=self._clock())
        log.info("key_revoked", tenant_id=str(self.tenant.tenant_id), principal=self.principal.ref, key_id=key_id)
