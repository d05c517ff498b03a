"""The bytes and hashes of the chain, held against fixed vectors that were computed elsewhere."""

from __future__ import annotations

import json
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from grandbo.events import chain
from tests.support import vectors

_ids = st.uuids()
_numbers = st.integers(1, 2**53 - 1)
_times = st.datetimes(timezones=st.just(UTC))
_headers = st.builds(
    chain.EventHeader,
    tenant_id=_ids,
    position=_numbers,
    event_id=_ids,
    stream_id=_ids,
    stream_version=_numbers,
    event_type=st.from_regex(r"[a-z][a-z0-9_]{0,62}", fullmatch=True),
    schema_version=_numbers,
    principal=st.builds("{}:{}".format, st.sampled_from(["human", "agent", "hook", "system"]), _ids),
    subject_id=st.none() | _ids,
    command_id=_ids,
    command_index=st.integers(0, 2**31 - 1),
    correlation_id=st.none() | _ids,
    causation_id=st.none() | _ids,
    occurred_at=_times,
    recorded_at=_times,
)


class TestFixedVectors:
    def test_genesis(self) -> None:
        """The hash before the first event is the published one."""
        assert vectors.GENESIS == chain.genesis(vectors.TENANT).hex()

    def test_commitments_leaves_and_hashes(self) -> None:
        """Three events, one of them ciphertext, have the published commitments, leaves and hashes."""
        rows = vectors.rows()

        assert list(vectors.COMMITMENTS) == [chain.commitment(row["salt"], row["body"]).hex() for row in rows]
        assert list(vectors.LEAVES) == [chain.leaf_hash(row["envelope"]).hex() for row in rows]
        assert list(vectors.HASHES) == [row["hash"].hex() for row in rows]

    def test_the_envelope_byte_for_byte(self) -> None:
        """The envelope is exactly the published text."""
        assert vectors.FIRST_ENVELOPE == vectors.rows()[0]["envelope"]


class TestEnvelope:
    @given(_headers, st.binary(min_size=32, max_size=32))
    def test_sorted_json_is_its_canonical_form(self, header: chain.EventHeader, commitment: bytes) -> None:
        """Anyone can check an envelope without an RFC 8785 library: here sorted, compact JSON is the same."""
        envelope = chain.envelope(header, commitment)

        assert envelope == json.dumps(json.loads(envelope), sort_keys=True, separators=(",", ":"))

    @given(_headers)
    def test_what_is_not_there_is_null(self, header: chain.EventHeader) -> None:
        """Every envelope has the same seventeen keys, so that none can be left out or slipped in."""
        keys = set(json.loads(chain.envelope(header, bytes(32))))

        assert set(chain.EventHeader.__slots__) | {"v", "commitment"} == keys
