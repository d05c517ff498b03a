"""
Signature schemes: whether a body came from whoever has the hook's secret. Over the raw bytes, in constant time.

What is malformed is not verified: no header and no body makes `verify` raise. A scheme takes several secrets, so that
one can be changed without a delivery lost.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from binascii import Error as Base64Error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from grandbo.hooks.drafts import Headers

TOLERANCE = timedelta(minutes=5)
SECRET_HEADER = "x-grandbo-hook-secret"  # noqa: S105  # the name of a header
STANDARD_PREFIX = "whsec_"
_ID_HEADERS = ("id", "timestamp", "signature")
_UNIX_SECONDS = re.compile(r"\d{1,12}")
_TEXT_SECRET = re.compile(r"[\x21-\x7e]{16,256}")

Verify = Callable[[bytes, Headers, str, datetime], bool]
Sign = Callable[[bytes, str, str, datetime], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Scheme:
    """
    How one kind of sender proves itself.

    Attributes:
        verify: body, headers with names in lower case, one secret, now.
        sign: body, id of the delivery, secret, now; gives the headers that `verify` accepts.
        is_signed: False where the secret itself is sent, which proves nothing of the body.
        is_standard: its secrets are written `whsec_` and base64.
    """

    verify: Verify
    sign: Sign
    is_signed: bool = True
    is_standard: bool = False


def verify(scheme: str, body: bytes, headers: Headers, held: Sequence[str], now: datetime) -> bool:
    """Whether one of the secrets that are held made this; each is tried, whichever fits."""
    found = [SCHEMES[scheme].verify(body, headers, secret, now) for secret in held]
    return any(found)


def sign(scheme: str, body: bytes, delivery: str, secret: str, now: datetime) -> dict[str, str]:
    """The headers that prove the body, as its sender would send them."""
    return SCHEMES[scheme].sign(body, delivery, secret, now)


def new_secret(scheme: str) -> str:
    """A secret in the form that the scheme's senders take."""
    if SCHEMES[scheme].is_standard:
        return STANDARD_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")
    return secrets.token_urlsafe(32)


def is_secret(scheme: str, text: str) -> bool:
    """Whether this can be a secret of the scheme: long enough to be one, and in its form."""
    if not SCHEMES[scheme].is_standard:
        return _TEXT_SECRET.fullmatch(text) is not None
    try:
        key = base64.b64decode(text.removeprefix(STANDARD_PREFIX), validate=True)
    except ValueError:
        return False
    return 16 <= len(key) <= 64


# -- recipes -----------------------------------------------------------------------------------------------------------


def _hmac_hex(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _is_recent(timestamp: str, now: datetime) -> bool:
    if not _UNIX_SECONDS.fullmatch(timestamp):
        return False
    return abs(int(timestamp) - now.timestamp()) <= TOLERANCE.total_seconds()


def _seconds(now: datetime) -> str:
    return str(int(now.timestamp()))


def _over_body(header: str) -> Scheme:
    """Hex of the body's HMAC, by itself in a header."""

    def verify_body(body: bytes, headers: Headers, secret: str, _now: datetime) -> bool:
        return _same(headers.get(header, ""), _hmac_hex(secret, body))

    return Scheme(verify_body, lambda body, _id, secret, _now: {header: _hmac_hex(secret, body)})


def _pagerduty() -> Scheme:
    header = "x-pagerduty-signature"

    def verify_any(body: bytes, headers: Headers, secret: str, _now: datetime) -> bool:
        expected = "v1=" + _hmac_hex(secret, body)
        return any(_same(item.strip(), expected) for item in headers.get(header, "").split(","))

    def sign_one(body: bytes, delivery: str, secret: str, _now: datetime) -> dict[str, str]:
        return {header: "v1=" + _hmac_hex(secret, body), "x-webhook-id": delivery}

    return Scheme(verify_any, sign_one)


def _dated(header: str, signed: Callable[[str, bytes], bytes]) -> Scheme:
    """`t=…,v1=…` in one header; what is signed has the time in it."""

    def verify_dated(body: bytes, headers: Headers, secret: str, now: datetime) -> bool:
        items = [item.strip().partition("=") for item in headers.get(header, "").split(",")]
        values = {name: value for name, _, value in items}
        timestamp, given = values.get("t", ""), values.get("v1", "")
        if len(items) != len(values) or not _is_recent(timestamp, now):
            return False
        return _same(given, _hmac_hex(secret, signed(timestamp, body)))

    def sign_dated(body: bytes, _id: str, secret: str, now: datetime) -> dict[str, str]:
        at = _seconds(now)
        return {header: f"t={at},v1={_hmac_hex(secret, signed(at, body))}"}

    return Scheme(verify_dated, sign_dated)


def _grafana() -> Scheme:
    """The body, or `time:body` where the contact point is set to send the time, under the name that the docs use."""
    header = "x-grafana-alerting-signature"
    timed = header + "-timestamp"

    def verify_grafana(body: bytes, headers: Headers, secret: str, now: datetime) -> bool:
        given = headers.get(header, "")
        if timed not in headers:
            return _same(given, _hmac_hex(secret, body))
        at = headers[timed]
        return _is_recent(at, now) and _same(given, _hmac_hex(secret, at.encode() + b":" + body))

    def sign_grafana(body: bytes, _id: str, secret: str, now: datetime) -> dict[str, str]:
        at = _seconds(now)
        return {header: _hmac_hex(secret, at.encode() + b":" + body), timed: at}

    return Scheme(verify_grafana, sign_grafana)


def _slack() -> Scheme:
    header, timed = "x-slack-signature", "x-slack-request-timestamp"

    def signature(at: str, body: bytes, secret: str) -> str:
        return "v0=" + _hmac_hex(secret, b"v0:" + at.encode() + b":" + body)

    def verify_slack(body: bytes, headers: Headers, secret: str, now: datetime) -> bool:
        at = headers.get(timed, "")
        return _is_recent(at, now) and _same(headers.get(header, ""), signature(at, body, secret))

    def sign_slack(body: bytes, _id: str, secret: str, now: datetime) -> dict[str, str]:
        at = _seconds(now)
        return {header: signature(at, body, secret), timed: at}

    return Scheme(verify_slack, sign_slack)


def _standard() -> Scheme:
    """Standard Webhooks, under both names of its headers. The library leaks errors on malformed ones; none gets out."""

    def verify_standard(body: bytes, headers: Headers, secret: str, _now: datetime) -> bool:
        prefix = "webhook-" if "webhook-id" in headers else "svix-"
        given = {f"webhook-{name}": headers.get(prefix + name, "") for name in _ID_HEADERS}
        # The library takes fractions of seconds, and signs without them: two spellings of one signature.
        if not _UNIX_SECONDS.fullmatch(given["webhook-timestamp"]):
            return False
        try:
            Webhook(secret).verify(body, given, json_parse=False)
        except (WebhookVerificationError, EmptyWebhookSecretError, Base64Error, ValueError):
            return False
        return True

    def sign_standard(body: bytes, delivery: str, secret: str, now: datetime) -> dict[str, str]:
        signature = Webhook(secret).sign(delivery, now, body.decode())
        return {"webhook-id": delivery, "webhook-timestamp": _seconds(now), "webhook-signature": signature}

    return Scheme(verify_standard, sign_standard, is_standard=True)


def _bearer() -> Scheme:
    """The secret itself: as a bearer token, as the password of Basic, or in a header of ours."""

    def verify_bearer(_body: bytes, headers: Headers, secret: str, _now: datetime) -> bool:
        kind, _, value = headers.get("authorization", "").partition(" ")
        given = [headers.get(SECRET_HEADER, "")]
        if kind.lower() == "bearer":
            given.append(value.strip())
        elif kind.lower() == "basic":
            given.append(_password(value.strip()))
        return any(_same(item, secret) for item in given)

    return Scheme(
        verify_bearer, lambda _body, _id, secret, _now: {"authorization": f"Bearer {secret}"}, is_signed=False
    )


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


SCHEMES: dict[str, Scheme] = {
    "pagerduty": _pagerduty(),
    "standard-webhooks": _standard(),
    "rootly": _dated("x-rootly-signature", lambda at, body: at.encode() + body),
    "firehydrant": _over_body("fh-signature"),
    "grafana": _grafana(),
    "grafana-incident": _dated(
        "gi-signature",
        lambda at, body: base64.b64encode(hashlib.sha256(body).digest()) + b":" + at.encode() + b":v1",
    ),
    "sentry": _over_body("sentry-hook-signature"),
    "slack": _slack(),
    "bearer": _bearer(),
}
