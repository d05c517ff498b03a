"""
Who has signed in, in a cookie that the browser keeps and cannot read. There is no table of sessions.

A key is opened anew at each request, so that one that is revoked, or has expired, ends every session that was begun
with it, at once. Of a token, or a sign-in at the issuer, the cookie holds what was verified: who, tenant, roles, and
when it ends. So its length does not matter, and nobody asks the issuer until then.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from grandbo.memory.policy import ROLES
from grandbo.memory.tokens import Claims
from grandbo.types import Clock
from grandbo.web.sealing import Sealer

LIFE = timedelta(hours=12)

_OF_KEY = b"grandbo session of a key 1"
_OF_CLAIMS = b"grandbo session of claims 1"
_SKEW_SECONDS = 60


class Sessions:
    """Seals who has signed in, and opens what it has sealed. Safe to use from several threads."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._sealer = Sealer(home)
        self._clock = clock

    def of_key(self, token: str) -> tuple[str, int]:
        """The cookie's value for an API key, and the seconds that it is good for."""
        return self._sealed(_OF_KEY, {"token": token}, self._now() + int(LIFE.total_seconds()))

    def of_claims(self, claims: Claims) -> tuple[str, int]:
        """The same for what an issuer's token claims; it ends with the token, but not later than any other."""
        ends = min(claims.ends_at, self._now() + int(LIFE.total_seconds()))
        kept = {
            "issuer": claims.issuer,
            "subject": claims.subject,
            "tenant": claims.tenant,
            # Those that do not exist grant nothing, and some houses have hundreds.
            "roles": sorted(claims.roles & set(ROLES)),
            "type": claims.type,
            "name": claims.name,
        }
        return self._sealed(_OF_CLAIMS, kept, ends)

    def open(self, value: str | None) -> str | Claims | None:
        """The key or the claims in a cookie; None for one that is not ours, was changed or has ended."""
        if (kept := self._opened(_OF_KEY, value)) is not None:
            return str(kept["token"])
        if (kept := self._opened(_OF_CLAIMS, value)) is not None:
            return Claims(**{**kept, "roles": frozenset(kept["roles"])})
        return None

    def _sealed(self, purpose: bytes, kept: dict[str, Any], ends_at: int) -> tuple[str, int]:
        plain = json.dumps({**kept, "ends_at": ends_at}, ensure_ascii=False, separators=(",", ":"))
        return self._sealer.seal(purpose, plain.encode()), max(ends_at - self._now(), 0)

    def _opened(self, purpose: bytes, value: str | None) -> dict[str, Any] | None:
        plain = self._sealer.open(purpose, value)
        if plain is None:
            return None
        kept: dict[str, Any] = json.loads(plain)
        left = kept["ends_at"] - self._now()
        return kept if 0 <= left <= LIFE.total_seconds() + _SKEW_SECONDS else None

    def _now(self) -> int:
        return int(self._clock().timestamp())
