"""Every event ever written can be read, and reads as what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785

from grandbo.errors import EventUnreadable
from grandbo.events.registry import EVENT_TYPES, UPCASTERS, parse_body
from tests.support.events import FOLDER, FORMS, golden_body, golden_path
from tests.support.snapshots import check_snapshot

VERSIONS = [(event_type, n) for event_type, model in EVENT_TYPES.items() for n in range(1, model.SCHEMA_VERSION + 1)]
CURRENT = [(event_type, model.SCHEMA_VERSION) for event_type, model in EVENT_TYPES.items()]


def _values(document: Any) -> list[Any]:
    if isinstance(document, dict):
        return [value for item in document.values() for value in _values(item)]
    if isinstance(document, list):
        return [value for item in document for value in _values(item)]
    return [document]


class TestGoldenFiles:
    def test_each_version_has_its_files(self) -> None:
        """Both forms of each version are there, and a schema of each current model; no file is without a model."""
        expected = {golden_path(event_type, n, form).name for event_type, n in VERSIONS for form in FORMS}
        expected |= {golden_path(event_type, n, "schema").name for event_type, n in VERSIONS}

        assert expected == {path.name for path in FOLDER.iterdir()}

    @pytest.mark.parametrize(("event_type", "version"), VERSIONS)
    @pytest.mark.parametrize("form", FORMS)
    def test_it_can_be_read(self, event_type: str, version: int, form: str) -> None:
        """A body of any version becomes today's model."""
        body = parse_body(event_type, version, golden_body(event_type, version, form), position=1)

        assert isinstance(body, EVENT_TYPES[event_type])

    @pytest.mark.parametrize(("event_type", "version"), CURRENT)
    @pytest.mark.parametrize("form", FORMS)
    def test_it_is_written_as_it_was_read(self, event_type: str, version: int, form: str) -> None:
        """A body of the current version comes back byte for byte."""
        stored = golden_body(event_type, version, form)

        assert stored == rfc8785.dumps(parse_body(event_type, version, stored, position=1).document())

    @pytest.mark.parametrize(("event_type", "version"), VERSIONS)
    def test_the_full_form_leaves_nothing_out(self, event_type: str, version: int) -> None:
        """Every field has a value in it, no list is empty, and no number is a float."""
        document = json.loads(golden_path(event_type, version, "full").read_text())
        values = _values(document)

        assert None not in values
        assert [] == [value for value in values if isinstance(value, float)]
        assert all(document.values())

    @pytest.mark.parametrize(("event_type", "version"), CURRENT)
    def test_the_model_is_the_one_that_was_shipped(self, event_type: str, version: int) -> None:
        """A change of an event's shape is a new version with an upcaster, never a silent edit."""
        schema = EVENT_TYPES[event_type].model_json_schema()

        check_snapshot(
            str(golden_path(event_type, version, "schema").relative_to(FOLDER.parent)),
            f"{json.dumps(schema, indent=2, sort_keys=True)}\n",
            hint="bump SCHEMA_VERSION and add an upcaster",
        )


class TestStrictness:
    @pytest.mark.parametrize(("event_type", "version"), CURRENT)
    def test_an_unknown_field_is_refused(self, event_type: str, version: int) -> None:
        """A field that the model does not know is not dropped: the event is unreadable, and says where."""
        document = json.loads(golden_body(event_type, version, "full")) | {"surprise": 1}

        with pytest.raises(EventUnreadable) as refused:
            parse_body(event_type, version, rfc8785.dumps(document), position=7)

        assert {"position": 7, "event_type": event_type} == refused.value.details

    @pytest.mark.parametrize(("event_type", "version"), CURRENT)
    def test_a_missing_field_is_refused(self, event_type: str, version: int) -> None:
        """Every field but the digest of the command must be there: a default would be invented history."""
        document = json.loads(golden_body(event_type, version, "full"))
        for name in document.keys() - {"command_digest"}:
            without = {key: value for key, value in document.items() if key != name}

            with pytest.raises(EventUnreadable):
                parse_body(event_type, version, rfc8785.dumps(without), position=1)

    @pytest.mark.parametrize(
        ("event_type", "version", "body"),
        [
            pytest.param("entry_imagined", 1, b"{}", id="unknown type"),
            pytest.param("entry_recorded", 99, b"{}", id="version of the future"),
            pytest.param("entry_recorded", 1, b"not JSON", id="not JSON"),
            pytest.param("entry_recorded", 1, b"\xff", id="not UTF-8"),
            pytest.param("entry_recorded", 1, b"[]", id="not an object"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, event_type: str, version: int, body: bytes) -> None:
        """A replay stops there with the position; it never skips."""
        with pytest.raises(EventUnreadable) as refused:
            parse_body(event_type, version, body, position=3)

        assert 3 == refused.value.details["position"]

    def test_no_upcaster_is_missing(self) -> None:
        """From every version that was ever written a path leads to today's."""
        steps = {(event_type, n) for event_type, n in VERSIONS if n < EVENT_TYPES[event_type].SCHEMA_VERSION}

        assert steps == set(UPCASTERS)
