"""Where Grandbo itself may send to: a public address over TLS, unless whoever runs it says otherwise."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from grandbo.errors import DestinationRefused
from grandbo.screening.uris import METADATA_ADDRESSES, address_of_host, uri_problem

URL_LIMIT = 2_000
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Networks that lead to an IPv4 address which the last, or the named, bits tell.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def check_destination(url: str, *, allow_internal: bool = False) -> None:
    """
    Refuse a URL that could not be sent to, or that leads inside by its own words.

    Where its name leads is checked again at each sending, by `is_outside`.

    Raises:
        DestinationRefused
    """
    if not isinstance(url, str) or len(url) > URL_LIMIT or not url.isascii() or not url.isprintable() or " " in url:
        raise DestinationRefused(f"url: it must be at most {URL_LIMIT} printable ASCII characters.", field="url")
    problem = uri_problem(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    schemes = ("https", "http") if allow_internal else ("https",)
    if not host or parts.scheme not in schemes or parts.fragment or problem in ("uri-credentials", "uri-malformed"):
        raise DestinationRefused(
            f"url: it must be {' or '.join(f'{scheme}://HOST/…' for scheme in schemes)}, without a password.",
            field="url",
        )
    address = address_of_host(host)
    is_inside = problem == "uri-host" or (address is not None and not is_outside(address))
    if is_inside and not (allow_internal and (address is None or may_be_internal(address))):
        raise DestinationRefused(field="url")


def is_outside(address: _Address) -> bool:
    """Whether it is an address of the public internet, and none at which a cloud tells its secrets."""
    real = _unwrapped(address)
    return real.is_global and not real.is_multicast and str(real) not in METADATA_ADDRESSES


def may_be_internal(address: _Address) -> bool:
    """Whether it may be sent to where internal addresses are allowed: never where a cloud tells its secrets."""
    real = _unwrapped(address)
    refused = real.is_link_local or real.is_multicast or real.is_unspecified
    return not refused and str(real) not in METADATA_ADDRESSES


def _unwrapped(address: _Address) -> _Address:
    """The IPv4 address inside one of IPv6, where it has one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
