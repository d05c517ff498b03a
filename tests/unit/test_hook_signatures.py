"""Signature schemes: the vectors of the vendors' recipes, and what must never be taken for genuine."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from grandbo.hooks.signatures import SCHEMES, SECRET_HEADER, is_secret, new_secret, sign, verify
from grandbo.hooks.sources import SOURCES

SECRET = "grandbo-test-secret"
BODY = b'{"event":{"id":"e1","event_type":"incident.resolved"}}'
AT = datetime.fromtimestamp(1731705121, UTC)
PLAIN = "d27b0a0928cfeeb20d7c502f9aa6e49ffec1cc5a8d3e8ce17306f4a47cf3d730"
ROOTLY = "t=1731705121,v1=77a253b9e5c8e217e62a9d4171f56d622e5d1dfd5f430b1da5732bdb536b34a8"
INCIDENT = "t=1731705121,v1=c1557dcb087a71962f24a52f23754c0704da068fdd1e2080d658dbbb1f031e8c"
TIMED = "10f0d83415af83a3a2598ae1d3b88203f41bffee8c7380c06036653eae5de115"
SLACK = "v0=d55357be939690e027a54f1acf4e74e71130860b2f5e79747cba8077be3407d1"
SVIX_SECRET = "whsec_plJ3nmyCDGBKInavdOK15jsl"
SVIX_BODY = b'{"event_type":"ping","data":{"success":true}}'
SVIX = {
    "svix-id": "msg_loFOjxBNrRLzqYUf",
    "svix-timestamp": "1731705121",
    "svix-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
}
TIMESTAMP = "x-grafana-alerting-signature-timestamp"
VECTORS: tuple[tuple[str, dict[str, str]], ...] = (
    ("pagerduty", {"x-pagerduty-signature": f"v1={PLAIN}"}),
    ("pagerduty", {"x-pagerduty-signature": f"v1={'0' * 64}, v2=x,v1={PLAIN}"}),
    ("firehydrant", {"fh-signature": PLAIN}),
    ("sentry", {"sentry-hook-signature": PLAIN}),
    ("grafana", {"x-grafana-alerting-signature": PLAIN}),
    ("grafana", {"x-grafana-alerting-signature": TIMED, TIMESTAMP: "1731705121"}),
    ("rootly", {"x-rootly-signature": ROOTLY}),
    ("grafana-incident", {"gi-signature": INCIDENT}),
    ("slack", {"x-slack-signature": SLACK, "x-slack-request-timestamp": "1731705121"}),
    ("bearer", {"authorization": f"Bearer {SECRET}"}),
    ("bearer", {"authorization": "Basic " + base64.b64encode(f"u:{SECRET}".encode()).decode()}),
    ("bearer", {SECRET_HEADER: SECRET}),
)
DATED = ("rootly", "grafana-incident", "slack", "standard-webhooks")


def header_sets() -> st.SearchStrategy[dict[str, str]]:
    """Headers of any scheme with any text in them."""
    names = {name for _, headers in VECTORS for name in headers} | set(SVIX) | {"webhook-id", "webhook-signature"}
    return st.dictionaries(st.sampled_from(sorted(names)), st.text(max_size=60))


class TestVectors:
    @pytest.mark.parametrize(("scheme", "headers"), VECTORS)
    def test_what_the_recipe_gives_is_genuine(self, scheme: str, headers: dict[str, str]) -> None:
        """Each vector holds, with the secret as the first or the second of two, and for no other body or secret."""
        assert verify(scheme, BODY, headers, [SECRET], AT)
        assert verify(scheme, BODY, headers, ["another-secret-of-it", SECRET], AT)
        assert not verify(scheme, BODY, headers, ["another-secret-of-it"], AT)
        assert not verify(scheme, BODY, headers, [], AT)
        assert verify(scheme, BODY + b" ", headers, [SECRET], AT) is not SCHEMES[scheme].is_signed

    def test_the_published_vector_of_standard_webhooks(self) -> None:
        """Under the headers of Svix and under its own; with another signature in front of it."""
        named = {name.replace("svix", "webhook"): value for name, value in SVIX.items()}
        several = {**named, "webhook-signature": f"v1,AAAA {named['webhook-signature']}"}
        with freeze_time(AT):
            for headers in (SVIX, named, several):
                assert verify("standard-webhooks", SVIX_BODY, headers, [SVIX_SECRET], AT)
            assert not verify("standard-webhooks", SVIX_BODY + b" ", SVIX, [SVIX_SECRET], AT)
            assert not verify("standard-webhooks", SVIX_BODY, SVIX, [new_secret("standard-webhooks")], AT)

    @pytest.mark.parametrize("scheme", sorted(SCHEMES))
    def test_what_is_signed_here_is_genuine(self, scheme: str) -> None:
        """Signing and verifying are each other's inverse."""
        secret = new_secret(scheme)
        with freeze_time(AT):
            assert verify(scheme, BODY, sign(scheme, BODY, "id-1", secret, AT), [secret], AT)
        assert is_secret(scheme, secret)


class TestForgeries:
    @pytest.mark.parametrize("scheme", DATED)
    @pytest.mark.parametrize("minutes", [-6, 6, 60 * 24 * 400])
    def test_what_is_old_or_from_the_future_is_refused(self, scheme: str, minutes: int) -> None:
        """A captured delivery opens nothing later; a few minutes of skew are forgiven."""
        secret = new_secret(scheme)
        headers = sign(scheme, BODY, "id-1", secret, AT)
        for shift, expected in ((minutes, False), (4, True), (-4, True)):
            now = AT + timedelta(minutes=shift)
            with freeze_time(now):
                assert expected is verify(scheme, BODY, headers, [secret], now)

    @pytest.mark.parametrize(
        "change",
        [
            {"svix-signature": "x"},
            {"svix-signature": "v1,a,b"},
            {"svix-signature": " " + SVIX["svix-signature"]},
            {"svix-signature": "v1,AAAA  " + SVIX["svix-signature"]},
            {"svix-signature": "v1,ä"},
            {"svix-signature": ""},
            {"svix-timestamp": "1731705121.5"},
            {"svix-timestamp": "nan"},
            {"svix-timestamp": "9" * 12},
            {"svix-id": "ä"},
        ],
    )
    def test_malformed_headers_are_no_signature(self, change: Mapping[str, str]) -> None:
        """What makes the library raise is simply not genuine."""
        with freeze_time(AT):
            assert not verify("standard-webhooks", b"\xff", SVIX, [SVIX_SECRET], AT)
            assert not verify("standard-webhooks", SVIX_BODY, {**SVIX, **change}, [SVIX_SECRET], AT)

    @given(st.sampled_from(sorted(SCHEMES)), st.binary(max_size=80), header_sets())
    def test_nothing_makes_it_raise_or_open(self, scheme: str, body: bytes, headers: dict[str, str]) -> None:
        """Any headers and any body are not genuine, and no error."""
        assert not verify(scheme, body, headers, [new_secret(scheme)], AT)


class TestSecrets:
    @pytest.mark.parametrize(
        ("scheme", "text", "fits"),
        [
            ("sentry", "a" * 16, True),
            ("sentry", "a" * 15, False),
            ("sentry", "a" * 257, False),
            ("sentry", "ä" * 20, False),
            ("sentry", "with a space in it", False),
            ("standard-webhooks", SVIX_SECRET, True),
            ("standard-webhooks", "whsec_", False),
            ("standard-webhooks", "whsec_?", False),
            ("standard-webhooks", "whsec_AAAA", False),
        ],
    )
    def test_what_can_be_a_secret(self, scheme: str, text: str, fits: bool) -> None:
        """Long enough, and in the form of the scheme."""
        assert fits is is_secret(scheme, text)

    def test_every_source_has_a_scheme_that_exists(self) -> None:
        """And a name that can stand in a URL."""
        assert {source.signature for source in SOURCES.values()} <= SCHEMES.keys()
        assert all(json.dumps(name) == f'"{name}"' and name == name.lower() for name in SOURCES)
