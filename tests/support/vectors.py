"""The fixed vectors: three events of tenant 1, whose every byte is known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from grandbo.events import chain
from tests.support.chains import LogRow, fixed_id, sealed

TENANT = fixed_id(1)
GENESIS = "0a9ae854959403d4dd820c98ca50ef9e3d8f97d66a2d8d8e404f60b5bacc0aa4"
COMMITMENTS = (
    "eaba4c3847895233cfa0e0ebc1ac5b0445f47aac56d827797a6dfc64633b7f09",
    "c6df8dc91bd471ce282b0697627a32ded6312a080b34e921bdf7ed32dd09f74e",
    "007edbd7e8d21e230ba22be60559979c5cd70ef098b4e037f330ad03258815e2",
)
LEAVES = (
    "a80bc4ce6ecbffe211ff8e07944f0afaa5f7f33b948b2868c219353b1c8492ba",
    "3840217f354ae863150ff776213ff56ddfb8e848fd2dbb281818fd30d2111a1c",
    "4d79c3a56a387f942c07fe42694ab20b46b4f8765381d27d9891c1d9dd2b2dd8",
)
HASHES = (
    "5e01c85a43ef8e7e6507e3a7d0d061a77662d8f4c4af306072e8f1d01de58d58",
    "2e50a1b7ba8c6b4b7a4469e12adf1400336597553f0ecff923c2e6ded47cc0c8",
    "38fdef027d3b29292f06f984cf6b5372c9c61da521d74ef7f691aa2b9c4f5974",
)
FIRST_ENVELOPE = (
    '{"causation_id":null,"command_id":"00000000-0000-4000-8000-000000000031","command_index":0,'
    '"commitment":"eaba4c3847895233cfa0e0ebc1ac5b0445f47aac56d827797a6dfc64633b7f09","correlation_id":null,'
    '"event_id":"00000000-0000-4000-8000-000000000011","event_type":"entry_recorded",'
    '"occurred_at":"2026-01-02T03:04:05.000006Z","position":1,'
    '"principal":"hook:00000000-0000-4000-8000-000000000002","recorded_at":"2026-01-02T03:04:06.000000Z",'
    '"schema_version":1,"stream_id":"00000000-0000-4000-8000-000000000010","stream_version":1,"subject_id":null,'
    '"tenant_id":"00000000-0000-4000-8000-000000000001","v":1}'
)
BODIES = (
    b'{"confidence_bp":8000,"tags":["queue"],"title":"Queue stalls"}',
    # Ciphertext under the key of subject 9.
    bytes.fromhex("01000000000000000000000000759ec1b7c140e69f328af35adb87b3e4eaeca8a12e2751096c954c122d9da620"),
    b'{"reason":"request","streams":["00000000-0000-4000-8000-000000000010"]}',
)


def rows() -> list[LogRow]:
    """The three rows, sealed by the code under test."""
    first = _row(1, GENESIS, event=11, stream=10, command=31, principal="hook")
    second = _row(2, first["hash"].hex(), event=12, stream=20, command=32, principal="hook", subject_id=fixed_id(9))
    third = _row(
        3,
        second["hash"].hex(),
        event=13,
        stream=10,
        command=33,
        principal="human",
        stream_version=2,
        event_type="entry_erased",
    )
    return [first, second, third]


def _row(
    position: int, prev_hash: str, *, event: int, stream: int, command: int, principal: str, **changes: Any
) -> LogRow:
    row: LogRow = {
        "tenant_id": TENANT,
        "position": position,
        "event_id": fixed_id(event),
        "stream_id": fixed_id(stream),
        "stream_version": 1,
        "event_type": "entry_recorded",
        "schema_version": 1,
        "principal": f"{principal}:{fixed_id(2)}",
        "subject_id": None,
        "command_id": fixed_id(command),
        "command_index": 0,
        "correlation_id": None,
        "causation_id": None,
        "occurred_at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "recorded_at": datetime(2026, 1, 2, 3, 4, 5 + position, tzinfo=UTC),
        "body": BODIES[position - 1],
        "salt": bytes([position]) * chain.SALT_BYTES,
        "prev_hash": bytes.fromhex(prev_hash),
    }
    return sealed(row, **changes)
