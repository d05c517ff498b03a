"""What an OpenID Connect issuer says of itself: asked at first need, kept, and never pressed when it fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2
import structlog

from grandbo.errors import ConfigurationError, Unavailable

TIMEOUT_SECONDS = 3.0
# What it says of itself changes rarely; keys have their own, shorter times.
FRESH_SECONDS = 3_600.0
# So long nothing is asked of an issuer that has just failed to answer.
PAUSE_SECONDS = 5.0
_DISCOVERY = "/.well-known/openid-configuration"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

log = structlog.get_logger(__name__)


class Discovery:
    """The document of one issuer. Safe to use from several threads."""

    def __init__(self, issuer: str, clock: Callable[[], float]) -> None:
        self.issuer = issuer
        self._clock = clock
        self._lock = threading.Lock()
        self._document: dict[str, Any] | None = None
        self._read_at = 0.0
        self._paused_until = -PAUSE_SECONDS

    def document(self) -> Mapping[str, Any]:
        """
        What it says; what it said last, where it has said something and does not answer now.

        Raises:
            Unavailable: it has said nothing yet that can be believed.
        """
        with self._lock:
            now = self._clock()
            is_due = self._document is None or now - self._read_at > FRESH_SECONDS
            if is_due and now >= self._paused_until:
                try:
                    self._document, self._read_at = _read(self.issuer), now
                except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError, AttributeError) as error:
                    self._paused_until = now + PAUSE_SECONDS
                    log.warning("issuer_not_discovered", reason=type(error).__name__)
            if self._document is None:
                raise Unavailable("The identity provider does not answer at the moment; try again.")
            return self._document

    def known(self) -> Mapping[str, Any]:
        """What it has said so far, without asking it; empty where it has said nothing."""
        return self._document or {}

    def address(self, name: str) -> str:
        """
        One of its addresses.

        Raises:
            Unavailable: there is none, or none that may be used.
        """
        found = self.document().get(name)
        try:
            check_address(name, found if isinstance(found, str) else "")
        except ConfigurationError:
            log.warning("issuer_address_unusable", name=name)
            raise Unavailable(f"The identity provider names no {name} that can be used.") from None
        return str(found)


def check_address(name: str, url: str) -> None:
    """Raise `ConfigurationError` for one that anybody on the way could answer for."""
    try:
        parts = urlsplit(url)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    except ValueError:
        is_safe = False
    if not is_safe or not parts.hostname:
        raise ConfigurationError(f"{name} must be an https address (http only on this machine).")


def _read(issuer: str) -> dict[str, Any]:
    answer = httpx2.get(issuer.rstrip("/") + _DISCOVERY, timeout=TIMEOUT_SECONDS, follow_redirects=False)
    document = answer.raise_for_status().json()
    if document.get("issuer") != issuer:
        raise ValueError("it says that it is another")
    return dict(document)
