"""
What the keys of subjects are wrapped with: an epoch key from a provider, never in the database.

`local-file` keeps the epoch keys in a file in GRANDBO_HOME that only its owner may read. `aws-kms` leaves them in AWS
KMS. To rotate is to wrap the keys of the subjects anew; no event is touched.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from grandbo.errors import ConfigurationError
from grandbo.key_errors import KeyEpochGone, KeyLost, KeyWrong

KEYRING_FILE = "keyring.json"
KEY_BYTES = 32
_VERSION = 1
REMEMBERED = 2_000
REMEMBERED_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class KeyContext:
    """Whose key it is, and in which epoch it is wrapped."""

    tenant_id: UUID
    subject_id: UUID
    epoch: int


class KeyProvider(Protocol):
    """Wraps and unwraps keys of 32 bytes; raises `KeyUnavailable` where it cannot."""

    @property
    def name(self) -> str:
        """`local-file` or `aws-kms`."""

    def epoch(self, highest: int) -> int:
        """The epoch in which a new key is wrapped; `highest` is the highest that the tenant's keys are in, or 0."""

    def next_epoch(self, highest: int) -> int:
        """Begin a new epoch for all keys to be wrapped in."""

    def wrap(self, context: KeyContext, key: bytes) -> bytes:
        """The key, wrapped."""

    def unwrap(self, context: KeyContext, wrapped: bytes) -> bytes:
        """The key that was wrapped."""


class OpenedKeys:
    """The provider, and the keys that it opened a short while ago. One for each open database."""

    def __init__(self, provider: KeyProvider | None) -> None:
        self._provider = provider
        self._lock = threading.Lock()
        self._known: dict[tuple[UUID, UUID, bytes], tuple[bytes, float]] = {}
        self._peppers: dict[UUID, tuple[bytes, float]] = {}

    @property
    def provider(self) -> KeyProvider:
        """Raises `KeyLost` where this process has none."""
        if self._provider is None:
            raise KeyLost("This process was opened without a provider of keys.")
        return self._provider

    def opened(self, context: KeyContext, wrapped: bytes) -> bytes:
        """The key behind these bytes; raises `KeyUnavailable`."""
        name = (context.tenant_id, context.subject_id, wrapped)
        with self._lock:
            known = self._known.get(name)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        key = self.provider.unwrap(context, wrapped)
        self.remember(context, wrapped, key)
        return key

    def remember(self, context: KeyContext, wrapped: bytes, key: bytes) -> None:
        """Remember for a while what these bytes open to."""
        with self._lock:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            name = (context.tenant_id, context.subject_id, wrapped)
            self._known[name] = (key, time.monotonic() + REMEMBERED_SECONDS)

    def recall(self, tenant_id: UUID) -> bytes | None:
        """The tenant's pepper, if it was kept a short while ago."""
        with self._lock:
            known = self._peppers.get(tenant_id)
        return known[0] if known is not None and known[1] > time.monotonic() else None

    def keep(self, tenant_id: UUID, pepper: bytes) -> None:
        """Keep a tenant's pepper for a while."""
        with self._lock:
            self._peppers[tenant_id] = (pepper, time.monotonic() + REMEMBERED_SECONDS)

    def forget(self, tenant_id: UUID, subject_id: UUID) -> None:
        """Remember nothing of a subject's key any more."""
        with self._lock:
            for name in [name for name in self._known if name[:2] == (tenant_id, subject_id)]:
                del self._known[name]


class LocalKeyring:
    """
    The keyring file: `{v, current, epochs: {"1": base64}}`, mode 0600.

    It is read anew whenever it has changed, so that a rotation by another process is seen.
    """

    name = "local-file"

    def __init__(self, home: Path) -> None:
        self.path = home / KEYRING_FILE
        self._lock = threading.Lock()
        self._read_at: tuple[int, int, int] | None = None
        self._known: tuple[int, dict[int, bytes]] = (0, {})

    @property
    def exists(self) -> bool:
        """Whether there is a keyring."""
        return self.path.exists()

    def create(self) -> None:
        """Make the keyring with its first epoch; the first of several that start at once makes it."""
        if not self.exists:
            _write(self.path, _document(1, {1: secrets.token_bytes(KEY_BYTES)}), replaces=False)

    def epoch(self, highest: int) -> int:  # noqa: ARG002  # the file knows
        """The current epoch."""
        return self._keys()[0]

    def next_epoch(self, highest: int) -> int:
        """Add an epoch and make it the current one; one that the database names is never made again."""
        with self._changing():
            current, keys = self._keys()
            new = max(current, highest) + 1
            _write(self.path, _document(new, {**keys, new: secrets.token_bytes(KEY_BYTES)}), replaces=True)
        return new

    def forget_before(self, epoch: int) -> list[int]:
        """Destroy the epochs before this one; gives which. What is still wrapped in them can never be read again."""
        with self._changing():
            current, keys = self._keys()
            gone = sorted(number for number in keys if number < epoch)
            kept = {number: key for number, key in keys.items() if number >= epoch}
            _write(self.path, _document(current, kept), replaces=True)
        return gone

    def wrap(self, context: KeyContext, key: bytes) -> bytes:
        """AES key wrap (RFC 3394) under the epoch's key."""
        return aes_key_wrap(self._epoch_key(context.epoch), key)

    def unwrap(self, context: KeyContext, wrapped: bytes) -> bytes:
        """Unwrap; raises `KeyLost`, `KeyEpochGone`, `KeyWrong`."""
        try:
            return aes_key_unwrap(self._epoch_key(context.epoch), wrapped)
        except InvalidUnwrap:
            raise KeyWrong(epoch=context.epoch) from None

    def described(self) -> dict[str, Any]:
        """Provider, current epoch and the epochs that there are; no key."""
        current, keys = self._keys()
        return {"provider": self.name, "epoch": current, "epochs": sorted(keys)}

    def exported(self) -> str:
        """The file as it stands, keys and all."""
        self._keys()
        return self.path.read_text(encoding="ascii")

    def restore(self, text: str) -> None:
        """Put a keyring that was exported in the place of one that is missing; an existing one is never replaced."""
        current, keys = _parse(text)
        if self.exists:
            raise ConfigurationError(f"{KEYRING_FILE} in GRANDBO_HOME exists already; move it away first.")
        _write(self.path, _document(current, keys), replaces=False)

    def _epoch_key(self, epoch: int) -> bytes:
        key = self._keys()[1].get(epoch)
        if key is None:
            raise KeyEpochGone(epoch=epoch)
        return key

    def _keys(self) -> tuple[int, dict[int, bytes]]:
        with self._lock:
            try:
                found = self.path.stat()
                read_at = (found.st_mtime_ns, found.st_ino, found.st_size)
                if read_at != self._read_at:
                    if found.st_mode & 0o077:
                        raise ConfigurationError(f"{KEYRING_FILE} in GRANDBO_HOME is open to others: chmod 600 it.")
                    self._known, self._read_at = _parse(self.path.read_text(encoding="ascii")), read_at
            except FileNotFoundError:
                raise KeyLost from None
            except OSError as error:
                raise ConfigurationError(f"{KEYRING_FILE} in GRANDBO_HOME: {error.strerror}.") from error
            return self._known

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Two processes that change the file at once do it one after the other."""
        with (self.path.parent / f".{KEYRING_FILE}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _document(current: int, keys: Mapping[int, bytes]) -> str:
    epochs = {str(number): base64.b64encode(keys[number]).decode() for number in sorted(keys)}
    return json.dumps({"v": _VERSION, "current": current, "epochs": epochs}, indent=1) + "\n"


def _parse(text: str) -> tuple[int, dict[int, bytes]]:
    try:
        document = json.loads(text)
        keys = {int(number): base64.b64decode(key, validate=True) for number, key in document["epochs"].items()}
        current = document["current"]
        is_whole = document["v"] == _VERSION and current in keys and all(len(k) == KEY_BYTES for k in keys.values())
    except (ValueError, KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise ConfigurationError(f"{KEYRING_FILE} in GRANDBO_HOME is no keyring; bring it back from its export.")
    return current, keys


def _write(path: Path, text: str, *, replaces: bool) -> None:
    """Whole or not at all, and durable; without `replaces` a file that is there stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{KEYRING_FILE}.")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replaces:
            Path(draft).replace(path)
            return
        # A link, not a rename: of two that make a keyring at once, the later must not replace the first one's.
        Path(path).hardlink_to(draft)
    except FileExistsError:
        return
    finally:
        Path(draft).unlink(missing_ok=True)
