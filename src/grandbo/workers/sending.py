"""
One signed delivery to the outside, in bounded time, to an address that was looked at before it is connected to.

A name is resolved here, every address that it has is checked, and the connection goes to the one that was checked: a
name that leads elsewhere a moment later leads nowhere.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2

from grandbo import __version__
from grandbo.errors import DestinationRefused
from grandbo.hooks import signatures
from grandbo.memory.subscriptions import SCHEME
from grandbo.screening.destinations import check_destination, is_outside, may_be_internal

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 15.0

Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What became of a delivery.

    Attributes:
        code: None where it was taken.
        status: of the answer, where there was one.
        retry_after: seconds that the receiver asks to wait.
        is_final: the receiver wants no more of it, ever.
    """

    code: str | None
    why: str = ""
    status: int | None = None
    retry_after: float | None = None
    is_final: bool = False


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a name."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class Sender:
    """
    Sends; one per process is enough, and any thread may use it.

    Args:
        allow_internal: send to private and loopback addresses too.
        seconds: in which one delivery has to be over.
    """

    def __init__(
        self, *, allow_internal: bool = False, seconds: float = TOTAL_SECONDS, resolve: Resolve = resolve
    ) -> None:
        self._allow_internal = allow_internal
        self.seconds = seconds
        self._resolve = resolve
        # Reading the certificates of the machine takes longer than a delivery.
        self._trusted = httpx2.create_ssl_context(trust_env=False)

    def send(self, url: str, payload: dict[str, Any], message_id: str, secrets: Sequence[str], now: datetime) -> Answer:
        """Deliver once. Whatever happens is told in the answer; nothing is raised for what the receiver does."""
        body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()
        headers = {
            "content-type": "application/json",
            "user-agent": f"grandbo/{__version__}",
            **signed_by_each(body, message_id, secrets, now),
        }
        try:
            check_destination(url, allow_internal=self._allow_internal)
            address = self._address_of(url)
        except DestinationRefused as error:
            return Answer(error.code, "Its address leads inside.")
        except (OSError, UnicodeError):
            return Answer("unreachable", "Its name has no address.")
        return self._post(url, address, body, headers)

    def _address_of(self, url: str) -> str:
        parts = urlsplit(url)
        found = self._resolve(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        for item in found:
            address = ipaddress.ip_address(item.partition("%")[0])
            if not is_outside(address) and not (self._allow_internal and may_be_internal(address)):
                raise DestinationRefused
        if not found:
            raise OSError("no address")
        return found[0]

    def _post(self, url: str, address: str, body: bytes, headers: dict[str, str]) -> Answer:
        named = httpx2.URL(url)
        # No proxy of the environment, no redirect, no cookie: it goes to the address that was checked and nowhere else.
        limits = httpx2.Timeout(self.seconds, connect=min(CONNECT_SECONDS, self.seconds))
        with httpx2.Client(verify=self._trusted, trust_env=False, follow_redirects=False, timeout=limits) as client:
            # A timeout of the library is for one read; a receiver that drips would hold us for ever.
            ends = threading.Timer(self.seconds, client.close)
            ends.daemon = True
            ends.start()
            try:
                request = client.build_request(
                    "POST",
                    named.copy_with(host=address),
                    content=body,
                    headers={**headers, "host": named.netloc.decode("ascii")},
                    extensions={"sni_hostname": named.host},
                )
                response = client.send(request, stream=True)
                response.close()
            except httpx2.TimeoutException:
                return Answer("timed_out", f"It did not answer within {self.seconds:g} seconds.")
            except (httpx2.HTTPError, httpx2.InvalidURL, RuntimeError, OSError) as error:
                code = "unreachable" if ends.is_alive() else "timed_out"
                return Answer(code, f"The delivery failed with {type(error).__name__}.")
            finally:
                ends.cancel()
        return _answer_of(response)


def signed_by_each(body: bytes, message_id: str, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """The headers of Standard Webhooks with a signature of each secret, so that the receiver may have either."""
    found = [signatures.sign(SCHEME, body, message_id, secret, now) for secret in secrets]
    return {**found[0], "webhook-signature": " ".join(item["webhook-signature"] for item in found)}


def _answer_of(response: httpx2.Response) -> Answer:
    status = response.status_code
    if 200 <= status < 300:
        return Answer(None, status=status)
    stated = response.headers.get("retry-after", "")
    wait = float(stated) if stated.isdecimal() and len(stated) < 8 else None
    why = f"It answered with status {status}."
    return Answer("refused", why, status, wait, is_final=status == 410)
