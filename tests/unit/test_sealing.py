"""Sealed bodies: fixed vectors, and every way in which one must not open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import rfc8785

from grandbo.errors import EventUnreadable
from grandbo.events import chain
from grandbo.events.sealing import open_apart, open_body, seal_apart, seal_body
from grandbo.types import from_utc_text

KEY = bytes(range(32))
NAME = {"title": "Zoë"}


def _id(number: int) -> UUID:
    return UUID(f"00000000-0000-4000-8000-{number:012d}")


HEADER = chain.EventHeader(
    tenant_id=_id(1),
    position=2,
    event_id=_id(12),
    stream_id=_id(20),
    stream_version=1,
    event_type="entry_recorded",
    schema_version=1,
    principal=f"hook:{_id(2)}",
    subject_id=_id(9),
    command_id=_id(32),
    command_index=0,
    correlation_id=None,
    causation_id=None,
    occurred_at=from_utc_text("2026-01-02T03:04:05.000006Z"),
    recorded_at=from_utc_text("2026-01-02T03:04:07.000000Z"),
)


class TestVectors:
    def test_the_body_the_commitment_and_the_leaf_are_those_of_the_reference(self) -> None:
        """Worked out by another implementation: key 00..1f, a nonce of zeros, a salt of twos."""
        body = seal_body(HEADER, rfc8785.dumps(NAME), KEY, nonce=bytes(12))
        commitment = chain.commitment(b"\x02" * 32, body)
        leaf = chain.leaf_hash(chain.envelope(HEADER, commitment))

        assert (
            "01000000000000000000000000759ec1b7c140e69f328af35adb87b3e4eaeca8a12e2751096c954c122d9da620" == body.hex()
        )
        assert "c6df8dc91bd471ce282b0697627a32ded6312a080b34e921bdf7ed32dd09f74e" == commitment.hex()
        assert "3840217f354ae863150ff776213ff56ddfb8e848fd2dbb281818fd30d2111a1c" == leaf.hex()


class TestBinding:
    @pytest.mark.parametrize("field", ["tenant_id", "stream_id", "event_id", "subject_id"])
    def test_a_body_that_was_moved_does_not_open(self, field: str) -> None:
        """Into another tenant, stream, event or subject."""
        body = seal_body(HEADER, b"{}", KEY)
        moved: dict[str, Any] = {field: _id(77)}

        assert b"{}" == open_body(HEADER, body, KEY)
        with pytest.raises(EventUnreadable):
            open_body(replace(HEADER, **moved), body, KEY)

    def test_another_key_does_not_open_it(self) -> None:
        """Nor do bytes that were changed, cut, or never sealed."""
        body = seal_body(HEADER, b"{}", KEY)
        wrong = [(body, bytes(32)), (body[:-1], KEY), (b"\x02" + body[1:], KEY), (body[:-1] + b"\x00", KEY)]

        for given, key in [*wrong, (b"", KEY), (b"{}", KEY)]:
            with pytest.raises(EventUnreadable):
                open_body(HEADER, given, key)

    def test_what_is_sealed_apart_is_bound_to_its_names(self) -> None:
        """The same bytes under another name are nothing."""
        sealed = seal_apart(b"told", KEY, _id(1), "waits")

        assert [b"told", None, None] == [
            open_apart(sealed, KEY, _id(1), "waits"),
            open_apart(sealed, KEY, _id(2), "waits"),
            open_apart(sealed, bytes(32), _id(1), "waits"),
        ]
