"""What each tool's deliveries become: golden drafts for fixtures of ours, and no surprise for any JSON at all."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grandbo.finding_limits import BODY_LIMIT_BYTES, EVIDENCE_LIMIT, SUMMARY_LIMIT, TITLE_LIMIT
from grandbo.hooks import signatures
from grandbo.hooks.drafts import Draft, Ignored, Mapped, Unmappable
from grandbo.hooks.reading import KEY_LIMIT
from grandbo.hooks.samples import sample_of
from grandbo.hooks.sources import SOURCES, datadog, servicenow
from grandbo.memory.finding import parse_finding
from tests.support.snapshots import check_snapshot

FIXTURES = Path(__file__).parents[1] / "data" / "hooks"
CASES = sorted(path for path in FIXTURES.glob("*/*.json") if not path.name.endswith(".golden.json"))
SECRET_SIGNS = ("must not be kept", "someone@example.com", "Someone")


def _read(path: Path) -> tuple[Any, dict[str, str]]:
    case = json.loads(path.read_text(encoding="utf-8"))
    return case["payload"], case["headers"]


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _outcome(source: str, payload: Any, headers: dict[str, str]) -> dict[str, Any]:
    """What becomes of a delivery, as plain values."""
    told: dict[str, Any] = {"delivery_key": SOURCES[source].delivery_key(payload, headers)}
    try:
        mapped = SOURCES[source].map(payload, headers)
    except Unmappable as error:
        return told | {"unmappable": str(error)}
    if isinstance(mapped, Ignored):
        return told | {"ignored": mapped.why}
    drafts = [dataclasses.asdict(draft) for draft in mapped]
    return told | {"drafts": json.loads(json.dumps(drafts, default=_plain))}


def _check_storable(draft: Draft) -> None:
    """Whatever a draft says can be recorded as it is."""
    evidence = [dataclasses.asdict(item) for item in draft.evidence]
    document = {
        "title": draft.title or "untitled",
        "summary": draft.summary,
        "body": draft.body,
        "service": draft.service,
        "tags": list(draft.tags),
        "evidence": [*evidence[: EVIDENCE_LIMIT - 1], {"type": "incident", "uri": "https://example.com/1"}],
        "incident": {"source": "tool", "id": draft.incident_id},
        "occurred_at": draft.occurred_at,
        "ended_at": draft.ended_at,
    }
    assert parse_finding(document).incident is not None
    assert len(evidence) <= EVIDENCE_LIMIT
    assert len(draft.cause) <= SUMMARY_LIMIT


class TestFixtures:
    @pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
    def test_a_delivery_becomes_what_the_golden_file_says(self, path: Path) -> None:
        """Drafts, or why there are none, and the key of the delivery."""
        outcome = json.dumps(_outcome(path.parent.name, *_read(path)), indent=2, ensure_ascii=False) + "\n"

        check_snapshot(str(path.with_suffix(".golden.json")), outcome, hint="deliveries of this tool are mapped anew.")

    @pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
    def test_chat_and_people_are_not_mapped(self, path: Path) -> None:
        """What people said to each other, and who they are, is in no draft."""
        told = json.dumps(_outcome(path.parent.name, *_read(path)))

        assert [] == [sign for sign in SECRET_SIGNS if sign in told]

    @pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
    def test_a_draft_can_be_recorded_as_it_is(self, path: Path) -> None:
        """Every part is within the limits of a finding."""
        payload, headers = _read(path)
        try:
            mapped = SOURCES[path.parent.name].map(payload, headers)
        except Unmappable:
            return
        for draft in () if isinstance(mapped, Ignored) else mapped:
            _check_storable(draft)

    @pytest.mark.parametrize("source", sorted(SOURCES))
    def test_every_source_has_a_sample_that_ends_an_incident(self, source: str) -> None:
        """What `hook test` sends is signed, verified and mapped as the real thing, and nobody's name is in it."""
        sample = sample_of(source)
        body, now = json.dumps(sample).encode(), datetime.now(UTC)
        secret = signatures.new_secret(SOURCES[source].signature)
        headers = signatures.sign(SOURCES[source].signature, body, "test-1", secret, now)

        assert signatures.verify(SOURCES[source].signature, body, headers, [secret], now)
        mapped = SOURCES[source].map(sample, headers)
        assert not isinstance(mapped, Ignored)
        assert {draft.event for draft in mapped} <= {"resolved", "postmortem"}
        assert not any(draft.is_drill or draft.is_private for draft in mapped)
        assert not [sign for sign in SECRET_SIGNS if sign in json.dumps(sample)]

    def test_every_source_has_fixtures_of_each_outcome(self) -> None:
        """Drafts and an unmappable payload for each; nothing lies there for a source that is none."""
        outcomes: dict[str, set[str]] = {}
        for path in CASES:
            outcomes.setdefault(path.parent.name, set()).update(_outcome(path.parent.name, *_read(path)))

        assert SOURCES.keys() == outcomes.keys()
        assert all({"drafts", "unmappable"} <= found for found in outcomes.values())

    @pytest.mark.parametrize("name", sorted(set(SOURCES) - {"sentry"}))
    def test_a_drill_is_flagged_and_the_real_thing_is_not(self, name: str) -> None:
        """Tests, drills and maintenance are told from real incidents by the fields that say so."""
        drills = ("drill", "test", "tutorial", "scheduled", "maintenance", "test_button")
        flagged = {
            path.stem: any(draft["is_drill"] for draft in outcome["drafts"])
            for path in CASES
            if path.parent.name == name and "drafts" in (outcome := _outcome(name, *_read(path)))
        }

        assert any(flagged.values())
        assert {stem for stem, is_drill in flagged.items() if is_drill} == flagged.keys() & set(drills)

    @pytest.mark.parametrize("name", ["grandbo", "incident-io", "rootly", "grafana-incident"])
    def test_a_private_incident_is_flagged(self, name: str) -> None:
        """The tenant's policy decides about what is restricted in the tool."""
        drafts = _outcome(name, *_read(FIXTURES / name / "private.json"))["drafts"]

        assert [True] == [draft["is_private"] for draft in drafts]


class TestRetries:
    @pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
    def test_a_retry_has_the_same_key_whatever_the_order_of_its_fields(self, path: Path) -> None:
        """The key depends on what is said alone."""
        payload, headers = _read(path)
        turned = json.loads(json.dumps(payload), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
        key = SOURCES[path.parent.name].delivery_key

        assert key(payload, headers) == key(turned, headers)

    def test_a_notification_that_is_sent_again_is_told_from_one_of_other_alerts(self) -> None:
        """Alertmanager repeats itself without an id; what the group holds is its key, in whatever order."""
        payload, headers = _read(FIXTURES / "alertmanager" / "firing.json")
        turned = {**payload, "alerts": payload["alerts"][::-1]}
        fewer = {**payload, "alerts": payload["alerts"][:1]}
        key = SOURCES["alertmanager"].delivery_key

        assert key(payload, headers) == key(turned, headers)
        assert key(payload, headers) != key(fewer, headers)

    @pytest.mark.parametrize(
        ("source", "one", "other"),
        [
            ("alertmanager", "firing", "resolved"),
            ("grafana-oncall", "created", "resolve"),
            ("firehydrant", "started", "resolved"),
            ("grafana-incident", "created", "resolved"),
            ("opsgenie", "create", "close"),
            ("servicenow", "opened", "resolved"),
            ("datadog", "active", "resolved"),
        ],
    )
    def test_another_event_has_another_key(self, source: str, one: str, other: str) -> None:
        """Nothing new is taken for a retry."""
        keys = {_outcome(source, *_read(FIXTURES / source / f"{name}.json"))["delivery_key"] for name in (one, other)}

        assert 2 == len(keys - {""})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["4", "firing", "1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def _paths(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every member, at every depth."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for name, inner in members:
        found += [(*above, name), *_paths(inner, (*above, name))]
    return found


def _put(value: Any, path: tuple[Any, ...], what: Any) -> None:
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = what


def _maps_or_says_why(source: str, payload: Any, headers: dict[str, str]) -> Mapped | None:
    """A mapper gives drafts, ignores, or names what is wrong; its key is a text. Anything else fails the test."""
    key = SOURCES[source].delivery_key(payload, headers)
    assert key.isascii()
    assert key.isprintable() or not key
    assert len(key) <= KEY_LIMIT
    try:
        mapped = SOURCES[source].map(payload, headers)
    except Unmappable:
        return None
    for draft in () if isinstance(mapped, Ignored) else mapped:
        _check_storable(draft)
        assert len(draft.title) <= TITLE_LIMIT
        assert len(draft.body.encode()) <= BODY_LIMIT_BYTES
    return mapped


@pytest.mark.parametrize("source", sorted(SOURCES))
class TestAnyJson:
    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_a_fixture_with_a_part_replaced(self, source: str, data: st.DataObject) -> None:
        """Whatever stands in one or two places of a good delivery, there is no other error than `Unmappable`."""
        path = data.draw(st.sampled_from([path for path in CASES if path.parent.name == source]))
        payload, headers = _read(path)
        for _ in range(data.draw(st.integers(1, 2))):
            if paths := _paths(payload):
                _put(payload, data.draw(st.sampled_from(paths)), data.draw(JSON))

        _maps_or_says_why(source, payload, headers)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(payload=JSON, headers=st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=3))
    def test_any_json_at_all(self, source: str, payload: Any, headers: dict[str, str]) -> None:
        """Not even an object need come."""
        _maps_or_says_why(source, payload, headers)

    def test_every_field_missing_or_null_in_turn(self, source: str) -> None:
        """No field is taken for granted; without the incident's id there is no draft."""
        for path in (path for path in CASES if path.parent.name == source):
            payload, headers = _read(path)
            for place in _paths(payload):
                without = copy.deepcopy(payload)
                _put(without, place, None)
                _maps_or_says_why(source, without, headers)

    def test_texts_of_any_length_and_any_character(self, source: str) -> None:
        """What is too long is shortened and stands whole in the body; what cannot be stored is replaced."""
        for path in (path for path in CASES if path.parent.name == source):
            payload, headers = _read(path)
            for place in _paths(payload):
                for text in ("word " * 20_000, "a\x00b\ud800\r\nc"):
                    with_text = copy.deepcopy(payload)
                    _put(with_text, place, text)
                    _maps_or_says_why(source, with_text, headers)


class TestTemplates:
    def test_the_datadog_template_is_what_its_mapper_reads(self) -> None:
        """With its variables filled in it is JSON and maps."""
        template = files("grandbo").joinpath("data", "hooks", datadog.TEMPLATE).read_text()
        filled = re.sub(r'"\$[A-Z_]+"', '"active"', template)
        payload = json.loads(re.sub(r"\$INCIDENT_(FIELDS|CUSTOMER_IMPACT|ATTACHMENTS)", "{}", filled))

        drafts = _outcome("datadog", payload, {})["drafts"]

        assert ["opened"] == [draft["event"] for draft in drafts]

    def test_the_servicenow_rule_sends_every_field_that_its_mapper_reads(self) -> None:
        """The names in the script are those of the fixtures."""
        script = files("grandbo").joinpath("data", "hooks", servicenow.TEMPLATE).read_text()
        payload, _ = _read(FIXTURES / "servicenow" / "resolved.json")

        assert [] == [name for name in (*payload, *payload["record"]) if name not in script]
