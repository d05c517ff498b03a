"""Where evidence may point: a place for people to look it up, never a script, a file or something inside the house."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote, urlsplit

# Run, read or carry something themselves when they are opened.
REFUSED_SCHEMES = frozenset(
    {"javascript", "vbscript", "data", "file", "blob", "filesystem", "view-source", "jar", "chrome", "resource"}
    | {"ms-msdt", "search-ms", "smb", "ldap", "ldaps", "gopher", "dict", "jdbc", "php", "expect"}
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}", re.IGNORECASE)
_LOCAL_NAMES = ("localhost", "localhost.localdomain", "metadata", "metadata.google.internal", "instance-data")
# Addresses at which clouds tell a machine its credentials, besides the link-local ones.
METADATA_ADDRESSES = frozenset({"100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"})
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+", re.IGNORECASE)


def uri_problem(uri: str) -> str | None:
    """
    Why a source with this URI is refused: `uri-scheme`, `uri-credentials`, `uri-host`, `uri-malformed`; None if not.

    Private addresses and the names of one's own network are allowed: a runbook there is a source as good as any.
    """
    scheme, separator, rest = uri.partition(":")
    if not separator or not _SCHEME.fullmatch(scheme):
        return "uri-malformed"
    if scheme.lower() in REFUSED_SCHEMES:
        return "uri-scheme"
    if not rest.startswith("//"):
        return None
    try:
        parts = urlsplit(uri)
        host = unquote(parts.hostname or "").rstrip(".").lower()
        has_password = parts.password is not None
    except ValueError:
        return "uri-malformed"
    if has_password or (parts.username is not None and scheme.lower() in ("http", "https")):
        return "uri-credentials"
    return "uri-host" if _is_inside(host) else None


def _is_inside(host: str) -> bool:
    if host in _LOCAL_NAMES or host.endswith(".localhost"):
        return True
    address = address_of_host(host)
    if address is None:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return str(mapped) in METADATA_ADDRESSES or mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified


def address_of_host(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a host is, in any spelling that a client takes: `127.1`, `0x7f000001`, `2130706433`."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    pieces = host.split(".")
    if not 1 <= len(pieces) <= 4 or not all(_NUMBER.fullmatch(piece) for piece in pieces):
        return None
    try:
        numbers = [
            int(piece, 16 if piece.lower().startswith("0x") else 8 if piece[0] == "0" else 10) for piece in pieces
        ]
    except ValueError:
        return None
    *front, last = numbers
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(numbers)):
        return None
    value = sum(number << (24 - 8 * place) for place, number in enumerate(front)) + last
    return ipaddress.IPv4Address(value)
