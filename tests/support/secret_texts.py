"""Secrets of every kind, made when they are asked for: no scanner of repositories finds one, for there is none."""

from __future__ import annotations

import base64
import random
import string

_LETTERS = string.ascii_letters
_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE32 = string.ascii_uppercase + "234567"


class Maker:
    """A source of secrets; the same seed, the same secrets."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def some(self, alphabet: str, length: int) -> str:
        """Random characters, digits and capitals among them where the alphabet has any."""
        return (
            "".join(self._random.choice(alphabet) for _ in range(length - 3)) + alphabet[-1] + alphabet[0] + "7Q"[0:1]
        )

    def shapes(self) -> list[tuple[str, str, str]]:
        """Kind, the text around it, the secret itself."""
        some = self.some
        jwt = f"{'eyJ'}{some(_ALNUM, 24)}.{'eyJ'}{some(_ALNUM, 40)}.{some(_ALNUM, 43)}"
        key = "\n".join(some(_ALNUM, 64) for _ in range(4))
        pem = f"-----BEGIN {'PRIVATE'} KEY-----\n{key}\n-----END {'PRIVATE'} KEY-----"
        rsa = f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{key}\n-----END RSA {'PRIVATE'} KEY-----"
        hard = f"{some(_ALNUM, 6)}!x9"
        aws_id = "AK" + "IA" + "".join(self._random.choice(_BASE32) for _ in range(16))
        token = "gh" + "p_" + some(_ALNUM, 36)
        coded = base64.b64encode(f"the token was {token} then".encode()).decode()
        basic = base64.b64encode(f"deploy:{some(_ALNUM, 14)}".encode()).decode()
        return [
            ("aws-access-key-id", f"the key {aws_id} was in the log", aws_id),
            ("aws-access-key-id", f"rotated {aws_id.replace('AKIA', 'ASIA')}.", aws_id.replace("AKIA", "ASIA")),
            *self._made("aws-secret", "aws_secret_access_key = {}", some(_ALNUM, 40)),
            *self._made("github", "git push with {} failed", token),
            *self._made("github", "seen: {}", "gh" + "s_" + some(_ALNUM, 36)),
            *self._made("github", "url https://x:{}", "github" + "_pat_" + some(_ALNUM, 22) + "_" + some(_ALNUM, 59)),
            *self._made("gitlab", "the runner used {}", "gl" + "pat-" + some(_ALNUM, 20)),
            *self._made("gitlab", "deploy {} leaked", "gl" + "dt-" + some(_ALNUM, 22)),
            *self._made("jwt", "cookie session={}; path=/", jwt),
            *self._made(
                "slack-webhook",
                "posted to https://{} twice",
                "hooks.slack" + ".com/services/T" + some(_BASE32, 9) + "/B" + some(_BASE32, 9) + "/" + some(_ALNUM, 24),
            ),
            *self._made("slack-token", "bot {} revoked", "xo" + "xb-123456789012-" + some(_ALNUM, 24)),
            *self._made("slack-token", "user {}", "xo" + "xp-123456789012-123456789012-" + some(_ALNUM, 32)),
            *self._made("stripe", "charge with {}", "sk" + "_live_" + some(_ALNUM, 24)),
            *self._made("stripe", "restricted {}", "rk" + "_test_" + some(_ALNUM, 24)),
            *self._made("google-api-key", "maps key {}", "AI" + "za" + some(_ALNUM, 35)),
            *self._made("sendgrid", "mail via {}", "SG" + "." + some(_ALNUM, 22) + "." + some(_ALNUM, 43)),
            *self._made("twilio", "account {}", "A" + "C" + self._hex(32)),
            *self._made("npm", "publish {}", "np" + "m_" + some(_ALNUM, 36)),
            *self._made("pypi", "upload {}", "py" + "pi-AgE" + some(_ALNUM, 60)),
            *self._made(
                "openai", "model key {}", "s" + "k-proj-" + some(_ALNUM, 24) + "T3Blbk" + "FJ" + some(_ALNUM, 24)
            ),
            *self._made("anthropic", "model key {}", "s" + "k-ant-api03-" + some(_ALNUM, 90)),
            *self._made(
                "huggingface", "hub {}", "h" + "f_" + "".join(self._random.choice(_LETTERS) for _ in range(34))
            ),
            *self._made("vault", "vault {}", "hv" + "s." + some(_ALNUM, 28)),
            *self._made("age-key", "age {}", "AGE-SECRET" + "-KEY-1" + self._age(58)),
            *self._made("grandbo", "our own {}", "gb" + "k_" + self._hex(32) + "_" + some(_ALNUM, 43)),
            *self._made("telegram", "bot {}", "1234567890:A" + "A" + some(_ALNUM, 33)),
            *self._made("otpauth", "otpauth://totp/ops:kim?secret={}&issuer=x", "".join(self._base32(20))),
            *self._made("azure-account-key", "DefaultEndpoints;AccountKey={};Suffix", some(_ALNUM, 84)),
            *self._made("aws-session", "session {}", "IQoJ" + "b3JpZ2lu" + some(_ALNUM, 80)),
            ("pem", f"the volume held\n{pem}\nin clear", pem),
            ("pem", f"config: {rsa}", rsa),
            *self._made("pem", "cut off: {}", f"-----BEGIN OPENSSH {'PRIVATE'} KEY-----\n{key}"),
            *self._made("url-credentials", "postgres://app:{}@db.example.com:5432/main", hard),
            *self._made("url-credentials", "redis://:{}@cache.example.com/0", some(_ALNUM, 16)),
            *self._made("url-credentials", "amqp://svc:{}@mq.example.com", some(_ALNUM, 12)),
            *self._made("url-credentials", "mongodb+srv://u:{}@c0.example.net/db", some(_ALNUM, 12)),
            *self._made("password-kv", "PGPASSWORD={} psql", hard),
            *self._made("password-kv", '{{"password": "{}"}}', hard),
            *self._made("password-kv", "passphrase: {}", hard),
            *self._made("password-prose", "the root password was {} until noon", hard),
            *self._made("password-prose", "password for admin is {}", hard),
            *self._made("keyed-hex", "api_key={}", self._hex(32)),
            *self._made("keyed-hex", "the access token: {}", self._hex(40)),
            *self._made("keyed-opaque", "client_secret = {}", some(_ALNUM, 32)),
            *self._made("keyed-opaque", "session token is {}", some(_ALNUM, 28)),
            *self._made("http-authorization", "Authorization: Bearer {}", some(_ALNUM, 40)),
            *self._made("http-authorization", "header was Basic {}", basic),
            ("github@b64", f"payload {coded} in the queue", coded),
        ]

    def _made(self, kind: str, text: str, secret: str) -> list[tuple[str, str, str]]:
        return [(kind, text.format(secret), secret)]

    def _hex(self, length: int) -> str:
        return "".join(self._random.choice(_HEX) for _ in range(length))

    def _base32(self, length: int) -> str:
        return "".join(self._random.choice(_BASE32) for _ in range(length))

    def _age(self, length: int) -> str:
        return "".join(self._random.choice("02346789ACDEFGHJKLMNPQRSTUVWXYZ") for _ in range(length))


# What an incident memory is full of, and nothing in it is a secret.
BENIGN = (
    "request 3f2504e0-4f89-11d3-9a0c-0305e82c3301 timed out",
    "deployed 8c7e1f0b9d2a4c6e8f0a1b2c3d4e5f60718293a4 to production",
    "image sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    'integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"',
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7",
    "traceparent 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "pod checkout-7d9f8b6c5d-x2x7k restarted 14 times",
    "arn:aws:iam::123456789012:role/service-role/checkout-lambda-execution",
    'etag "33a64df551425fcc55e4d42a148795d9f25f89d4"',
    "version 1.2.3-rc.4+build.20260102 rolled back",
    "cron 0 */6 * * * ran twice at 2026-01-02T03:04:05Z",
    "password=<redacted> in the config",
    "the password is required for the console",
    "password: ${DB_PASSWORD}",
    "password: changeme was refused by the linter",
    "set token: your-token-here-please-and-more",
    "the password was rotated after the incident",
    "AWS documents AKIAIOSFODNN7EXAMPLE as the sample key",
    "bearer tokens expired and basic authentication was off",
    "basic infrastructure-as-code checks were missing",
    "the token authentication-service-deployment was renamed",
    "secret rotation took 40 minutes; the secretsmanager-rotation-lambda failed",
    "see /var/lib/postgresql/data/base/16384/2619 and pg_stat_statements_reset",
    "SELECT count(*) FROM sessions WHERE token IS NULL",
    "the api gateway returned 502 for /v1/tokens/refresh/callback/handler",
    "http://user@host.example.com/path had no password in it",
    "partition __consumer_offsets-37 lost its leader broker-4",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI host key changed",
    "the key was `kubernetes.io/service-account.name`",
    "commit a1b2c3d fixed it, see PR #48213",
    "mean 0.0031415926535897932384626433832795 over the window",
    "heap 0x00007f3a4c0012d0 corrupted in libssl.so.1.1",
)
