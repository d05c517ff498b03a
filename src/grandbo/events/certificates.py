"""
Certificates of erasure: a signed note that says what went, by which event, and what of the log remains.

Anyone checks it with the public key alone, and with an exported bundle also that nothing of it can be read any more. It
holds ids, counts, positions and hashes, and nothing that was erased.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from grandbo.events.notes import sign

VERSION = 1
# What stays provable afterwards, and no more.
REMAINS = (
    "number, order, time and type of events",
    "opaque ids of principals and streams",
    "commitments and hashes",
)


def origin_of_certificates(tenant_id: UUID) -> str:
    """The name under which a tenant's certificates are signed."""
    return f"grandbo.local/erasure/{tenant_id}"


def sign_certificate(tenant_id: UUID, stated: Mapping[str, Any], key: Ed25519PrivateKey) -> str:
    """The certificate: the origin, one line of RFC 8785 JSON, the signature."""
    origin = origin_of_certificates(tenant_id)
    document = {"v": VERSION, "tenant_id": str(tenant_id), "remains": list(REMAINS), **stated}
    return sign(f"{origin}\n{rfc8785.dumps(document).decode()}\n", origin, key)


def ranges(positions: list[int]) -> list[list[int]]:
    """Ascending positions as ranges `[first, last]`."""
    found: list[list[int]] = []
    for position in positions:
        if found and position == found[-1][1] + 1:
            found[-1][1] = position
        else:
            found.append([position, position])
    return found
