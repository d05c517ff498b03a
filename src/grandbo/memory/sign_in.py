"""
Signing in at the issuer: the authorization code flow with PKCE, state and nonce (OpenID Connect Core 3.1, RFC 7636).

A library makes the requests and the challenge, and the verifier of bearer tokens checks the ID token; what is kept
between the two halves is given to the caller, who seals it into the browser that began.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

import httpx2
import structlog

from grandbo.errors import ConfigurationError, SignInRefused, SignInStale, Unauthenticated, Unavailable
from grandbo.memory.issuer import TIMEOUT_SECONDS
from grandbo.memory.policy import ROLES
from grandbo.memory.tokens import Claims, Tokens
from grandbo.settings import Settings
from grandbo.types import Clock

if TYPE_CHECKING:
    from authlib.integrations.httpx_client import OAuth2Client

_RANDOM_BYTES = 32
# RFC 7636 asks for 43 to 128 characters.
_VERIFIER_BYTES = 48

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """What the second half of a sign-in needs of the first; secret but for the state."""

    state: str
    nonce: str
    verifier: str


class SignIn:
    """The pages as a client of the issuer. Safe to use from several threads."""

    def __init__(self, settings: Settings, tokens: Tokens, clock: Clock) -> None:
        assert settings.oidc_client_id is not None
        secret = settings.oidc_client_secret
        self._client_id = settings.oidc_client_id
        self._secret = secret.get_secret_value() if secret else None
        self._scopes = settings.oidc_scopes
        self._seconds = settings.oidc_session_minutes * 60
        self._tokens = tokens
        self._clock = clock

    @classmethod
    def of(cls, settings: Settings, tokens: Tokens | None, clock: Clock) -> Self | None:
        """None without a client id. Raises `ConfigurationError` for settings that do not go together."""
        if settings.oidc_client_id is None:
            return None
        if tokens is None:
            raise ConfigurationError("GRANDBO_OIDC_CLIENT_ID needs GRANDBO_OIDC_ISSUER and GRANDBO_OIDC_AUDIENCE.")
        if "openid" not in settings.oidc_scopes.split():
            raise ConfigurationError("GRANDBO_OIDC_SCOPES must hold `openid`: without it an issuer says nobody's name.")
        return cls(settings, tokens, clock)

    def begin(self, redirect_uri: str) -> tuple[str, Begun]:
        """
        The address at the issuer to lead to, and what to keep.

        Raises:
            Unavailable: the issuer does not say where its sign-in is.
        """
        where = self._tokens.discovery.address("authorization_endpoint")
        begun = Begun(
            secrets.token_urlsafe(_RANDOM_BYTES),
            secrets.token_urlsafe(_RANDOM_BYTES),
            secrets.token_urlsafe(_VERIFIER_BYTES),
        )
        with self._client(redirect_uri) as client:
            url, _ = client.create_authorization_url(
                where, state=begun.state, nonce=begun.nonce, code_verifier=begun.verifier
            )
        return str(url), begun

    def finish(self, begun: Begun, answer: dict[str, str], redirect_uri: str) -> Claims:
        """
        Who has signed in, until when that may be taken for granted.

        Args:
            answer: what the issuer sent the browser back with.

        Raises:
            SignInStale: it answers another sign-in.
            SignInRefused: the issuer has not let anybody in, or says too little of whom it has.
            Unavailable: the issuer does not answer.
        """
        if not hmac.compare_digest(begun.state.encode(), answer.get("state", "").encode()):
            raise SignInStale
        # RFC 9207: the answer of another issuer must not be redeemed at ours.
        if answer.get("iss", self._tokens.issuer) != self._tokens.issuer:
            raise self._refused("issuer")
        if "error" in answer or not answer.get("code"):
            raise _denied(answer.get("error", ""))
        with self._client(redirect_uri) as client:
            given = self._redeem(client, begun, answer["code"])
            try:
                claims = self._tokens.verify_id_token(str(given.get("id_token")), self._client_id, begun.nonce)
            except Unauthenticated:
                raise self._refused("id_token") from None
            if self._tokens.lacking(claims) and "userinfo_endpoint" in self._tokens.discovery.document():
                claims = {**self._told_besides(client, claims["sub"]), **claims}
        return self._holder(claims)

    def leaving(self, back: str) -> str | None:
        """Where one signs out at the issuer too, as far as it has said so; it is not asked."""
        where = self._tokens.discovery.known().get("end_session_endpoint")
        if not isinstance(where, str) or not where.startswith(("https://", "http://")):
            return None
        asked = urlencode({"client_id": self._client_id, "post_logout_redirect_uri": back})
        return f"{where}{'&' if '?' in where else '?'}{asked}"

    def _client(self, redirect_uri: str) -> OAuth2Client:
        # Here, not above: most processes never lead anybody to an issuer.
        from authlib.integrations.httpx_client import OAuth2Client

        methods = self._tokens.discovery.document().get("token_endpoint_auth_methods_supported")
        takes_basic = not isinstance(methods, list) or "client_secret_basic" in methods
        method = "none" if self._secret is None else "client_secret_basic" if takes_basic else "client_secret_post"
        return OAuth2Client(
            self._client_id,
            self._secret,
            token_endpoint_auth_method=method,
            scope=self._scopes,
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
        )

    def _redeem(self, client: OAuth2Client, begun: Begun, code: str) -> dict[str, Any]:
        from authlib.integrations.base_client import OAuthError

        where = self._tokens.discovery.address("token_endpoint")
        try:
            given: dict[str, Any] = client.fetch_token(
                where, grant_type="authorization_code", code=code, code_verifier=begun.verifier
            )
        except OAuthError as error:
            raise self._refused(_code_of(error.error)) from None
        except (httpx2.HTTPError, ValueError, TypeError, AttributeError) as error:
            log.warning("sign_in_unfinished", reason=type(error).__name__)
            raise Unavailable("The identity provider does not answer at the moment; begin the sign-in again.") from None
        return given

    def _told_besides(self, client: OAuth2Client, subject: str) -> dict[str, Any]:
        """What the issuer tells at its userinfo endpoint; some keep roles and groups out of the ID token."""
        from authlib.integrations.base_client import OAuthError

        try:
            answer = client.get(self._tokens.discovery.address("userinfo_endpoint"))
            told = answer.raise_for_status().json()
            if told["sub"] != subject:
                raise ValueError("it tells of another")
            return dict(told)
        except (OAuthError, httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            log.warning("sign_in_userinfo_unread", reason=type(error).__name__)
            return {}

    def _holder(self, claims: dict[str, Any]) -> Claims:
        lacking = self._tokens.lacking(claims)
        try:
            holder = self._tokens.claimed(claims)
        except Unauthenticated:
            holder = None
        if holder is None or not holder.roles & set(ROLES):
            log.warning("sign_in_unassigned", lacking=lacking)
            named = f"it lacks the claim {' and '.join(lacking)}" if lacking else "it names no tenant or role of ours"
            raise SignInRefused(
                f"You are signed in at the identity provider, but what it says of you opens nothing here: {named}. Ask "
                f"whoever looks after it to give you a tenant, and one of the roles {', '.join(ROLES)}."
            )
        return replace(holder, ends_at=int(self._clock().timestamp()) + self._seconds)

    def _refused(self, why: str) -> SignInRefused:
        log.warning("sign_in_refused", reason=why)
        return SignInRefused(
            "The identity provider's answer does not hold. Begin the sign-in again; if it happens again, whoever runs "
            "this service finds the reason in its log (sign_in_refused).",
            reason=why,
        )


def _denied(error: str) -> SignInRefused:
    code = _code_of(error)
    log.warning("sign_in_refused", reason=code)
    return SignInRefused(f"The identity provider did not let you in ({code}). Begin the sign-in again.", reason=code)


def _code_of(error: object) -> str:
    """An error's code, where it looks like one: it comes from outside, and goes to the page and the log."""
    code = error if isinstance(error, str) else ""
    is_code = 0 < len(code) <= 64 and code.isascii() and code.replace("_", "").isalnum()
    return code if is_code else "no reason given"
