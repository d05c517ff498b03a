"""
Who has signed in, in a cookie that the browser keeps and cannot read: the credential, sealed, with when it was given.

There is no table of sessions. Each request opens the credential anew, so that a key that is revoked, or has expired,
ends every session that was begun with it, at once.
"""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import tempfile
import threading
from datetime import timedelta
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grandbo.errors import ConfigurationError, LimitExceeded
from grandbo.types import Clock

KEY_FILE = "session.key"
LIFE = timedelta(hours=12)
# Browsers keep no cookie that is longer than 4,096 bytes, name and attributes included.
TOKEN_LIMIT = 2_900

_PURPOSE = b"grandbo session 1"
_NONCE_BYTES = 12
_TIME_BYTES = 8


class Sessions:
    """Seals credentials, and opens what it has sealed. Safe to use from several threads."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock
        self._lock = threading.Lock()
        self._cipher: AESGCM | None = None

    def seal(self, token: str) -> str:
        """
        The cookie's value for a credential.

        Raises:
            LimitExceeded: it is longer than a cookie can carry. ConfigurationError: no key can be kept.
        """
        if len(token) > TOKEN_LIMIT:
            raise LimitExceeded(
                f"This token has more than {TOKEN_LIMIT} characters, which no cookie holds; sign in with an API key.",
                field="token",
                limit=TOKEN_LIMIT,
                length=len(token),
            )
        now = int(self._clock().timestamp()).to_bytes(_TIME_BYTES, "big")
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._key().encrypt(nonce, now + token.encode(), _PURPOSE)
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, value: str | None) -> str | None:
        """The credential in a cookie; None for one that is not ours, was changed or is too old."""
        if not value or len(value) > 2 * TOKEN_LIMIT:
            return None
        try:
            raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
            plain = self._key().decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _PURPOSE)
        except (InvalidTag, ValueError, binascii.Error):
            return None
        age = int(self._clock().timestamp()) - int.from_bytes(plain[:_TIME_BYTES], "big")
        return plain[_TIME_BYTES:].decode() if -60 <= age <= LIFE.total_seconds() else None

    def _key(self) -> AESGCM:
        with self._lock:
            if self._cipher is None:
                self._cipher = AESGCM(session_key(self._home))
            return self._cipher


def session_key(home: Path) -> bytes:
    """
    The 32 bytes that seal sessions, made at first use; only their owner may read the file.

    Raises:
        ConfigurationError: the file cannot be read or written, is open to others, or holds something else.
    """
    path = home / KEY_FILE
    try:
        if not path.exists():
            _make_key(path)
        if path.stat().st_mode & 0o077:
            raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME is open to others: chmod 600 it, or remove it.")
        key = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME: {error.strerror}.") from error
    if len(key) != 32:
        raise ConfigurationError(f"{KEY_FILE} in GRANDBO_HOME is no session key; remove it, and all sign in again.")
    return key


def _make_key(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{KEY_FILE}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: of two processes that make a key at once, the later must not replace the first one's.
        path.hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        Path(draft).unlink()
