"""
Bodies of events about a subject: AES-256-GCM under the subject's key, bound to their event. Pure.

    body = 0x01 + nonce(12) + ciphertext and tag        associated data: tenant, stream, event, subject

A body that was moved to another tenant, stream, event or subject does not open. One key is looked up by the subject's
id and tried; never several.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grandbo.errors import EventUnreadable
from grandbo.events.chain import EventHeader

_FORM = b"\x01"
_NONCE_BYTES = 12

Keys = Mapping[UUID, bytes]
NO_KEYS: Keys = {}


def seal_body(header: EventHeader, plain: bytes, key: bytes, *, nonce: bytes | None = None) -> bytes:
    """The body as it is stored. `nonce` is for fixed vectors alone: the same twice under one key gives both away."""
    nonce = nonce or secrets.token_bytes(_NONCE_BYTES)
    return _FORM + nonce + AESGCM(key).encrypt(nonce, plain, _bound(header))


def open_body(header: EventHeader, body: bytes, key: bytes) -> bytes:
    """The plain bytes; raises `EventUnreadable` where this key did not seal them for this event."""
    nonce, sealed = body[1 : 1 + _NONCE_BYTES], body[1 + _NONCE_BYTES :]
    try:
        if body[:1] != _FORM:
            raise InvalidTag
        return AESGCM(key).decrypt(nonce, sealed, _bound(header))
    except (InvalidTag, ValueError):
        raise EventUnreadable(
            f"Position {header.position} holds a body that its subject's key does not open.",
            position=header.position,
            event_type=header.event_type,
        ) from None


def seal_apart(plain: bytes, key: bytes, *names: object) -> bytes:
    """Seal what is no event under a subject's key, bound to these names."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return _FORM + nonce + AESGCM(key).encrypt(nonce, plain, _names(names))


def open_apart(sealed: bytes, key: bytes, *names: object) -> bytes | None:
    """What was sealed apart; None where this key and these names do not open it."""
    try:
        return AESGCM(key).decrypt(sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :], _names(names))
    except (InvalidTag, ValueError):
        return None


def _bound(header: EventHeader) -> bytes:
    return f"grandbo/v1/body|{header.tenant_id}|{header.stream_id}|{header.event_id}|{header.subject_id}".encode()


def _names(names: tuple[object, ...]) -> bytes:
    return "|".join(("grandbo/v1/apart", *map(str, names))).encode()
