"""An OpenID Connect issuer for tests: keys made here, served over loopback, counted, and broken on request."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "https://memory.example.com/mcp"

_PRIVATE: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65_537, 2_048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
_AS_JWK: dict[str, Any] = {"RS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}
OTHER_KEY = rsa.generate_private_key(65_537, 2_048)


class Issuer:
    """What it serves, and how often it was asked."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.key_ids = {algorithm: f"{algorithm}-1" for algorithm in _PRIVATE}
        self.asked: list[str] = []
        self.is_down = False
        self.stated_issuer = self.url
        self.raw_keys: bytes | None = None

    @property
    def keys_asked(self) -> int:
        """How often the keys were asked for."""
        return self.asked.count("/keys")

    def answer(self, path: str) -> bytes | None:
        """The document at a path; None where there is none, or nothing works."""
        self.asked.append(path)
        if self.is_down:
            return None
        if path == "/keys":
            return self.raw_keys if self.raw_keys is not None else json.dumps({"keys": self._jwks()}).encode()
        if path == "/.well-known/openid-configuration":
            return json.dumps({"issuer": self.stated_issuer, "jwks_uri": f"{self.url}/keys"}).encode()
        return None

    def rotate(self) -> None:
        """Give every key a new id."""
        self.key_ids = {algorithm: f"{key_id}-next" for algorithm, key_id in self.key_ids.items()}

    def claims(self, tenant: str, /, **changes: Any) -> dict[str, Any]:
        """Claims of a good token; `...` leaves one out."""
        now = int(time.time())
        good = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "someone",
            "iat": now,
            "exp": now + 300,
            "tenant": tenant,
            "roles": ["reviewer"],
        }
        return {name: value for name, value in {**good, **changes}.items() if value is not ...}

    def token(
        self, tenant: str, /, *, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changes: Any
    ) -> str:
        """A token signed with one of the issuer's keys."""
        stated = {"kid": self.key_ids[algorithm], **(headers or {})}
        return jwt.encode(self.claims(tenant, **changes), _PRIVATE[algorithm], algorithm, headers=stated)

    def signed_by_another(self, tenant: str) -> str:
        """A token with the id of a known key, signed with a key that the issuer does not have."""
        return jwt.encode(self.claims(tenant), OTHER_KEY, "RS256", headers={"kid": self.key_ids["RS256"]})

    def confused(self, tenant: str) -> str:
        """A token whose shared secret is the issuer's public key."""
        public = (
            _PRIVATE["RS256"]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        header = {"alg": "HS256", "typ": "JWT", "kid": self.key_ids["RS256"]}
        signed = f"{_part(header)}.{_part(self.claims(tenant))}"
        mac = hmac.digest(public, signed.encode(), hashlib.sha256)
        return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"

    def unsigned(self, tenant: str, algorithm: str = "none") -> str:
        """A token that says it has no signature."""
        return f"{_part({'alg': algorithm, 'typ': 'JWT', 'kid': self.key_ids['RS256']})}.{_part(self.claims(tenant))}."

    def _jwks(self) -> list[dict[str, Any]]:
        return [
            {
                **_AS_JWK[algorithm].to_jwk(private.public_key(), as_dict=True),
                "kid": self.key_ids[algorithm],
                "alg": algorithm,
                "use": "sig",
            }
            for algorithm, private in _PRIVATE.items()
        ]


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Serve an issuer on a loopback port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = issuer.answer(self.path)
            self.send_response(200 if body is not None else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="test-issuer")
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _part(document: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()
