"""An OpenID Connect issuer for tests: keys made here, served over loopback, counted, and broken on request."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "https://memory.example.com/mcp"
CLIENT_ID = "grandbo-pages"
SIGN_IN = """<!doctype html><html lang="en"><title>Issuer</title><h1>Issuer</h1>
<form method="post" action="{action}"><button name="as" value="ada">Go on as Ada</button>
<button name="as" value="">Leave it</button></form></html>"""

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
        self.secret: str | None = None
        self.auth_methods: list[str] | None = None
        self.has_userinfo = False
        # What the ID token says besides, of whoever signs in; `...` leaves a claim out.
        self.holder: dict[str, Any] = {}
        self.told_besides: dict[str, Any] = {}
        self._codes: dict[str, dict[str, str]] = {}

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
            return json.dumps(self._document()).encode()
        if path == "/userinfo":
            return json.dumps({"sub": "ada", **self.told_besides}).encode()
        return None

    def _document(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "issuer": self.stated_issuer,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "end_session_endpoint": f"{self.url}/leave",
        }
        if self.auth_methods is not None:
            told["token_endpoint_auth_methods_supported"] = self.auth_methods
        return told | ({"userinfo_endpoint": f"{self.url}/userinfo"} if self.has_userinfo else {})

    def authorize(self, query: str, decided: bool | None) -> tuple[int, str]:
        """Its page for a sign-in, 200 and HTML; once decided, 302 and the address to go on to."""
        asked = dict(parse_qsl(query))
        if decided is None:
            return 200, SIGN_IN.format(action="/authorize?" + query.replace("&", "&amp;"))
        answer = {"state": asked["state"], "iss": self.url}
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT_ID)
        assert asked["code_challenge_method"] == "S256"
        if decided:
            answer["code"] = secrets.token_urlsafe(16)
            self._codes[answer["code"]] = asked
        else:
            answer["error"] = "access_denied"
        return 302, f"{asked['redirect_uri']}?{urlencode(answer)}"

    def redeem(self, body: str, authorization: str | None) -> tuple[int, dict[str, Any]]:
        """The token endpoint: a code once, for its own client, address and verifier."""
        self.asked.append("/token")
        if self.is_down:
            return 503, {}
        given = dict(parse_qsl(body))
        if self._secret_in(given, authorization) != self.secret:
            return 401, {"error": "invalid_client"}
        asked = self._codes.pop(given.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(given.get("code_verifier", "").encode()).digest())
        if (
            asked is None
            or given["redirect_uri"] != asked["redirect_uri"]
            or challenge.decode().rstrip("=") != asked["code_challenge"]
        ):
            return 400, {"error": "invalid_grant"}
        claims: dict[str, Any] = {"sub": "ada", "aud": CLIENT_ID, "nonce": asked["nonce"], **self.holder}
        tenant = claims.pop("tenant", "nobody's")
        token = self.token(tenant, **claims) if tenant is not ... else self.token("", **claims, tenant=...)
        return 200, {"access_token": "for-userinfo", "token_type": "Bearer", "expires_in": 300, "id_token": token}

    @staticmethod
    def _secret_in(given: dict[str, str], authorization: str | None) -> str | None:
        if authorization is None:
            return given.get("client_secret")
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        return secret if name == CLIENT_ID else None

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
            path, _, query = self.path.partition("?")
            if path == "/authorize":
                return self._send(200, issuer.authorize(query, None)[1].encode(), "text/html")
            if path == "/leave":
                return self._send(200, b"<!doctype html><html lang=en><title>Left</title><h1>Left</h1>", "text/html")
            if path == "/favicon.ico":
                return self._send(200, b"", "image/x-icon")
            if path == "/userinfo" and self.headers["Authorization"] != "Bearer for-userinfo":
                return self._send(401, b"", "application/json")
            body = issuer.answer(self.path)
            return self._send(200 if body is not None else 503, body or b"", "application/json")

        def do_POST(self) -> None:
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if path == "/authorize":
                _, where = issuer.authorize(query, "as=ada" in body)
                self.send_response(302)
                self.send_header("Location", where)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            status, answer = issuer.redeem(body, self.headers["Authorization"])
            self._send(status, json.dumps(answer).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

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
