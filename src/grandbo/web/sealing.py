"""What a browser keeps for us and cannot read or change: sealed with AES-256-GCM under a key of GRANDBO_HOME."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import tempfile
import threading
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from grandbo.errors import ConfigurationError

KEY_FILE = "session.key"
# Browsers keep no cookie that is longer, name and attributes included.
COOKIE_LIMIT = 4_096

_NONCE_BYTES = 12


class Sealer:
    """Seals, and opens what it has sealed for the same purpose. Safe to use from several threads."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._cipher: AESGCM | None = None

    def seal(self, purpose: bytes, plain: bytes) -> str:
        """A cookie's value. Raises `ConfigurationError`: no key can be kept."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._key().encrypt(nonce, plain, purpose)
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, purpose: bytes, value: str | None) -> bytes | None:
        """What was sealed; None for what is not ours, was changed, or was sealed for another purpose."""
        if not value or len(value) > COOKIE_LIMIT:
            return None
        try:
            raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
            return self._key().decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], purpose)
        except (InvalidTag, ValueError, binascii.Error):
            return None

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
