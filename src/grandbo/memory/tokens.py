"""
JWTs of an OpenID Connect issuer as bearer tokens: whether one is genuine, and what it claims.

Default deny: signatures by listed asymmetric algorithms alone, with a key of the issuer's own set; issuer, audience and
times are checked; what a token does not say is not assumed. Nothing that a token names is ever fetched.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import structlog
from jwt import PyJWK, PyJWKClient, PyJWKSet
from jwt.exceptions import PyJWKClientConnectionError, PyJWTError

from grandbo.errors import ConfigurationError, Unauthenticated, Unavailable
from grandbo.memory.issuer import PAUSE_SECONDS, TIMEOUT_SECONDS, Discovery, check_address
from grandbo.settings import Settings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
# A token of another purpose, such as a logout token, says so in its type.
_TYPES = (None, "jwt", "at+jwt", "application/at+jwt")
_ID_TOKEN_TYPES = (None, "jwt")
LEEWAY_SECONDS = 30
TOKEN_LIMIT = 8_192
# It comes from the issuer itself, and may list every group of a large house.
ID_TOKEN_LIMIT = 65_536
SUBJECT_LIMIT = 255
FRESH_SECONDS = 300.0
# Unknown key ids ask the issuer at most this often, however many there are: what a new key may have to wait.
REFRESH_SECONDS = 15.0
# So long the last keys serve where the issuer does not answer.
STALE_SECONDS = 3_600.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Claims:
    """
    What a genuine token says of its holder; as it was sent, but for the types.

    Attributes:
        ends_at: the second, since 1970, at which the token ends.
    """

    issuer: str
    subject: str
    tenant: str
    roles: frozenset[str]
    type: str
    name: str
    ends_at: int


class Tokens:
    """Verifies the tokens of one issuer. Safe to use from several threads."""

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `ConfigurationError`: an issuer without an audience, an address that is neither https nor here."""
        if not settings.oidc_issuer or not settings.oidc_audience:
            raise ConfigurationError("GRANDBO_OIDC_ISSUER and GRANDBO_OIDC_AUDIENCE go together; set both or neither.")
        self.issuer = settings.oidc_issuer
        self._audience = settings.oidc_audience
        self._claims = (settings.oidc_tenant_claim, settings.oidc_roles_claim, settings.oidc_type_claim)
        check_address("GRANDBO_OIDC_ISSUER", self.issuer)
        if settings.oidc_jwks_url is not None:
            check_address("GRANDBO_OIDC_JWKS_URL", settings.oidc_jwks_url)
        self.discovery = Discovery(self.issuer, clock)
        self._keys = _Keys(self.discovery, settings.oidc_jwks_url, clock)

    def verify(self, token: str) -> Claims:
        """
        What the token claims.

        Raises:
            Unauthenticated: for whatever reason; the caller cannot tell which.
            Unavailable: the issuer's keys are needed and cannot be had.
        """
        return self.claimed(self._decoded(token, self._audience, _TYPES, TOKEN_LIMIT))

    def verify_id_token(self, token: str, client_id: str, nonce: str) -> dict[str, Any]:
        """
        All that an ID token says, which was made for this client and for this sign-in.

        Raises:
            Unauthenticated, Unavailable.
        """
        claims = self._decoded(token, client_id, _ID_TOKEN_TYPES, ID_TOKEN_LIMIT)
        said = claims.get("nonce")
        if not isinstance(said, str) or not hmac.compare_digest(said.encode(), nonce.encode()):
            raise Unauthenticated
        if claims.get("azp", client_id) != client_id:
            raise Unauthenticated
        return claims

    def lacking(self, claims: Mapping[str, Any]) -> list[str]:
        """Which of the claims that tell tenant and roles are not there."""
        return [name for name in self._claims[:2] if _claim(claims, name) is None]

    def _decoded(self, token: str, audience: str, types: Collection[str | None], limit: int) -> dict[str, Any]:
        try:
            return self._decode(token, audience, types, limit)
        except (PyJWTError, ValueError, TypeError, RecursionError):
            # Without the cause: its text may hold parts of the token.
            raise Unauthenticated from None

    def _decode(self, token: str, audience: str, types: Collection[str | None], limit: int) -> dict[str, Any]:
        if len(token) > limit:
            raise Unauthenticated
        header = jwt.get_unverified_header(token)
        kind, key_id = header.get("typ"), header.get("kid")
        # Before a key is looked for: what cannot be genuine must not make us ask the issuer.
        if header.get("alg") not in ALGORITHMS or not isinstance(key_id, str) or not 0 < len(key_id) <= 256:
            raise Unauthenticated
        if (kind.lower() if isinstance(kind, str) else kind) not in types:
            raise Unauthenticated
        unverified = jwt.decode(token, options={"verify_signature": False})
        if unverified.get("iss") != self.issuer:
            raise Unauthenticated
        return jwt.decode(
            token,
            self._keys.key(key_id),
            algorithms=list(ALGORITHMS),
            audience=audience,
            issuer=self.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )

    def claimed(self, claims: Mapping[str, Any]) -> Claims:
        """What verified claims say of their holder; raises `Unauthenticated` where they do not say enough."""
        tenant, roles, kind = (_claim(claims, name) for name in self._claims)
        subject = claims["sub"]
        if not isinstance(tenant, str) or not 0 < len(tenant) <= 64 or not 0 < len(subject) <= SUBJECT_LIMIT:
            raise Unauthenticated
        kind = "human" if kind is None else kind
        if kind not in ("human", "agent"):
            raise Unauthenticated
        named = roles.split() if isinstance(roles, str) else roles if isinstance(roles, list) else []
        return Claims(
            issuer=self.issuer,
            subject=subject,
            tenant=tenant,
            roles=frozenset(role for role in named if isinstance(role, str)),
            type=kind,
            name=str(claims.get("preferred_username") or subject)[:SUBJECT_LIMIT],
            ends_at=int(claims["exp"]),
        )


class _Keys:
    """The issuer's keys: found at first need, kept, and asked for again in bounded measure."""

    def __init__(self, discovery: Discovery, url: str | None, clock: Callable[[], float]) -> None:
        self._discovery = discovery
        self._url = url
        self._clock = clock
        self._client: _Client | None = None
        self._lock = threading.Lock()

    def key(self, key_id: str) -> PyJWK:
        """The signing key; raises `PyJWKClientError` where the issuer has none of this id, `Unavailable`."""
        try:
            return self._found().get_signing_key(key_id)
        except PyJWKClientConnectionError:
            raise Unavailable("The issuer's keys cannot be read at the moment; try again.") from None

    def _found(self) -> _Client:
        with self._lock:
            if self._client is None:
                self._client = _Client(self._url or self._discovery.address("jwks_uri"), self._clock)
            return self._client


class _Client(PyJWKClient):
    """The library's client, which does not press an issuer that fails, and goes on with the last keys for a while."""

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        super().__init__(url, lifespan=FRESH_SECONDS, timeout=TIMEOUT_SECONDS, cooldown_duration=REFRESH_SECONDS)
        self._clock = clock
        self._paused_until = -PAUSE_SECONDS
        self._kept: PyJWKSet | None = None
        self._kept_at = 0.0

    def get_jwk_set(self, refresh: bool = False) -> PyJWKSet:
        try:
            return super().get_jwk_set(refresh)
        except PyJWKClientConnectionError:
            # A key that is not among those kept may be a new one: whether it is, only the issuer can say.
            if refresh or self._kept is None or self._clock() - self._kept_at > STALE_SECONDS:
                raise
            return self._kept

    def fetch_data(self) -> Any:
        if self._clock() < self._paused_until:
            raise PyJWKClientConnectionError
        try:
            found = super().fetch_data()
            self._kept = PyJWKSet.from_dict(found)
        except (PyJWTError, ValueError, OSError) as error:
            self._paused_until = self._clock() + PAUSE_SECONDS
            log.warning("issuer_keys_unread", reason=type(error).__name__)
            raise PyJWKClientConnectionError from None
        self._kept_at = self._clock()
        return found


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or, where no claim has it, by the path that its dots make: `realm_access.roles`."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
