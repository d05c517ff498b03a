"""
Who may come in: the credential, and how often. The one way in for `/v1` and `/mcp`, before a body is read.

An address that sends too many credentials that open nothing is turned away before the database is asked. Whoever has
come in from there of late still does: behind a proxy the stranger and the regular have the same address.
"""

from __future__ import annotations

import hashlib
import ipaddress
import threading
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import HTTPConnection

from grandbo.errors import RateLimited, SignInRefused, Unauthenticated
from grandbo.http.limits import KEYS_KEPT, MovingWindow, parse_rate
from grandbo.http.metrics import Metrics
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.inbox import Delivery
from grandbo.memory.tokens import Claims
from grandbo.settings import Settings

# Whoever has one IPv6 address has all of its network.
_NETWORK_BITS = 64
_TOO_MANY = "Too many credentials that open nothing came from this address; wait as long as Retry-After says."


class Admission:
    """The limits of one application, and its memory of who came in."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        """Raises `ConfigurationError` for a limit that is none."""
        self._metrics = metrics
        self._requests = MovingWindow(parse_rate(settings.rate_limit, "GRANDBO_RATE_LIMIT"))
        self._failures = MovingWindow(parse_rate(settings.auth_failure_limit, "GRANDBO_AUTH_FAILURE_LIMIT"))
        self._deliveries = MovingWindow(parse_rate(settings.hook_rate_limit, "GRANDBO_HOOK_RATE_LIMIT"))
        self._regulars = _Regulars()

    def admit(self, grandbo: Grandbo, connection: HTTPConnection, token: str) -> TenantMemory:
        """
        The memory that the token opens; the request is named by tenant and principal from here on.

        Raises:
            Unauthenticated, Unavailable, RateLimited.
        """
        return self._admitted(connection, self._authenticated(grandbo, address_of(connection), token))

    def identify(self, grandbo: Grandbo, connection: HTTPConnection, claims: Claims) -> TenantMemory:
        """
        The same for claims that were verified before.

        Raises:
            Unauthenticated, RateLimited.
        """
        return self._admitted(connection, grandbo.identify(claims))

    def attempt(self, connection: HTTPConnection, prove: Callable[[], Claims]) -> Claims:
        """
        Let someone prove who it is, otherwise than at each request; what fails counts against the address.

        Raises:
            RateLimited, and what `prove` raises.
        """
        address = address_of(connection)
        if wait := self._failures.wait(address):
            self._metrics.limited("address")
            raise RateLimited(_TOO_MANY, retry_after=wait)
        try:
            return prove()
        except (Unauthenticated, SignInRefused):
            self._failures.take(address)
            raise

    def _admitted(self, connection: HTTPConnection, memory: TenantMemory) -> TenantMemory:
        connection.state.tenant_id = str(memory.tenant_id)
        connection.state.principal = memory.principal.ref
        if wait := self._requests.take(f"{memory.tenant_id} {memory.principal.ref}"):
            self._metrics.limited("principal")
            raise RateLimited(retry_after=wait)
        return memory

    def check_address(self, connection: HTTPConnection, hook_id: str) -> None:
        """
        Turn a delivery away, before its body is read, where its address or its hook has sent too many.

        Raises:
            RateLimited: which every tool takes for a reason to come again.
        """
        wait = self._failures.wait(address_of(connection))
        if wait and not self._regulars.know(_as_regular(hook_id)):
            self._metrics.limited("address")
            raise RateLimited(retry_after=wait)
        if wait := self._deliveries.wait(hook_id):
            self._metrics.limited("principal")
            raise RateLimited(retry_after=wait)

    def admit_delivery(self, connection: HTTPConnection, hook_id: str, receive: Callable[[], Delivery]) -> Delivery:
        """Take a delivery in, and account for it; one whose signature does not hold counts against its address."""
        try:
            delivery = receive()
        except Unauthenticated:
            self._failures.take(address_of(connection))
            raise
        self._regulars.remember(_as_regular(hook_id))
        self._deliveries.take(hook_id)
        connection.state.tenant_id = str(delivery.tenant_id)
        return delivery

    def _authenticated(self, grandbo: Grandbo, address: str, token: str) -> TenantMemory:
        wait = self._failures.wait(address)
        if wait and not self._regulars.know(token):
            self._metrics.limited("address")
            raise RateLimited(_TOO_MANY, retry_after=wait)
        try:
            memory = grandbo.authenticate(token)
        except Unauthenticated:
            self._failures.take(address)
            self._regulars.forget(token)
            raise
        self._regulars.remember(token)
        return memory


class _Regulars:
    """Digests of the tokens that opened something last. They open nothing by themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def know(self, token: str) -> bool:
        with self._lock:
            return _digest(token) in self._digests

    def remember(self, token: str) -> None:
        digest = _digest(token)
        with self._lock:
            self._digests[digest] = None
            self._digests.move_to_end(digest)
            if len(self._digests) > KEYS_KEPT:
                self._digests.popitem(last=False)

    def forget(self, token: str) -> None:
        with self._lock:
            self._digests.pop(_digest(token), None)


def _as_regular(hook_id: str) -> str:
    """A hook among the tokens; no token has a space."""
    return f"hook {hook_id}"


def address_of(connection: HTTPConnection) -> str:
    """What a client is told apart by: its address, or the network of an IPv6 one."""
    host = connection.client.host if connection.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
