"""`/v1/entries/{id}`: reading with an ETag, and every verb of an entry's life with If-Match."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from grandbo.http import entry_schemas
from grandbo.http.entry_verbs import VERBS
from grandbo.http.openapi import install_document
from grandbo.http.schemas import DOCUMENTS
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.lifecycle import ALLOWED
from grandbo.memory.reading import HIDDEN
from grandbo.memory.wishes import CORRECTABLE
from grandbo.storage.tables import STATE_COLUMNS
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token, post_raw

NOBODY = "00000000-0000-7000-8000-000000000007"
# A link makes no revision and every state accepts it: what is said of every other verb is not said of these two.
LINKING = ("link", "unlink")
# Its evidence is its reason.
UNREASONED = ("corroborate",)
EVERY_VERB = pytest.mark.parametrize("verb", [verb.name for verb in VERBS if verb.name not in LINKING])


@pytest.fixture
def client(grandbo: Grandbo, memory: TenantMemory) -> TestClient:
    """Someone who may change entries up to the tier `tech`."""
    return client_of(grandbo, token=make_token(memory, "reviewer", kind="human"))


@pytest.fixture
def entry(memory: TenantMemory) -> str:
    """One entry at revision 2, so that there is one to go back to."""
    entry_id = memory.record_finding(make_finding(title="The first title")).acknowledgement.entry_id
    memory.correct(entry_id, {"title": "The second title"}, reason="it was wrong")
    return str(entry_id)


def _body(verb: str, other: str) -> dict[str, Any]:
    more: dict[str, dict[str, Any]] = {
        "correct": {"changes": {"service": "billing"}},
        "restore": {"revision": 1},
        "dispute": {"other": other},
        "supersede": {"by": other},
        "link": {"type": "caused_by", "to": other},
        "unlink": {"type": "caused_by", "to": other},
        "verify": {"days": 30},
        "expire": {"at": "2100-01-01"},
        "corroborate": {
            "incident": {"source": "pager", "id": "ANOTHER"},
            "evidence": [{"type": "log", "uri": "https://logs.example.com/another", "label": None}],
        },
        "reclassify": {"kind": "decision", "visibility": "operations"},
    }
    reason = {} if verb in UNREASONED else {"reason": "because"}
    return {**reason, **more.get(verb, {})}


def _post(client: TestClient, entry_id: str, verb: str, body: Any, revision: int | None = 2, **headers: str) -> Any:
    stated = {} if revision is None else {"If-Match": f'"{revision}"'}
    return client.post(f"/v1/entries/{entry_id}/{verb}", json=body, headers={**stated, **headers})


def _make_ready(memory: TenantMemory, entry_id: str, verb: str) -> None:
    """Bring the entry into a state that accepts the verb."""
    found = uuid.UUID(entry_id)
    if verb == "unarchive":
        memory.archive(found, reason="r")
    if verb == "resolve":
        memory.dispute(found, reason="r")
    if verb == "release":
        memory.quarantine(found, reason="r")


class TestLinks:
    def test_a_link_is_made_seen_and_taken_away(self, client: TestClient, memory: TenantMemory, entry: str) -> None:
        """It is acknowledged at the entry's own revision, needs If-Match like every change, and a retry is the same."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        key = {"Idempotency-Key": "link-1"}

        made = _post(client, entry, "link", _body("link", other), 2, **key)
        retried = _post(client, entry, "link", _body("link", other), 2, **key)
        shown = client.get(f"/v1/entries/{entry}").json()["links"]
        stale = _post(client, entry, "unlink", _body("unlink", other), 1)
        bare = _post(client, entry, "unlink", _body("unlink", other), None)
        gone = _post(client, entry, "unlink", _body("unlink", other))

        assert (200, 2) == (made.status_code, made.json()["revision"]), made.text
        assert {**made.json(), "appended": False} == retried.json()
        assert [("caused_by", "to", other)] == [(link["type"], link["direction"], link["entry_id"]) for link in shown]
        assert (412, 428, 200) == (stale.status_code, bare.status_code, gone.status_code)
        assert [] == client.get(f"/v1/entries/{entry}").json()["links"]


class TestReading:
    def test_an_entry_is_shown_with_its_revision_as_etag(
        self, client: TestClient, memory: TenantMemory, entry: str
    ) -> None:
        """It is what the library shows."""
        answer = client.get(f"/v1/entries/{entry}")

        assert (200, '"2"') == (answer.status_code, answer.headers["etag"])
        assert memory.show_entry(uuid.UUID(entry)) == answer.json()

    @pytest.mark.parametrize(
        ("held", "status"),
        [('"2"', 304), ('W/"2"', 304), ('"1", "2"', 304), ("*", 304), ('"1"', 200), ("2", 200), ("", 200), (',"', 200)],
    )
    def test_who_has_it_already_is_told_so(self, client: TestClient, entry: str, held: str, status: int) -> None:
        """304 without a body where one of the ETags is the current one."""
        answer = client.get(f"/v1/entries/{entry}", headers={"If-None-Match": held})

        assert (status, '"2"', status == 304) == (answer.status_code, answer.headers["etag"], not answer.content)

    def test_the_history_names_who_what_when_and_why(
        self, client: TestClient, memory: TenantMemory, entry: str
    ) -> None:
        """It is what the library gives, and each revision can be had by its number."""
        history = client.get(f"/v1/entries/{entry}/history").json()
        second = client.get(f"/v1/entries/{entry}/revisions/2").json()

        assert {"entry_id": entry, "revisions": memory.history(uuid.UUID(entry))} == history
        assert history["revisions"][1] == second
        assert ("entry_corrected", "it was wrong", memory.principal.ref) == (
            second["event_type"],
            second["reason"],
            second["principal"],
        )

    def test_a_preview_shows_the_words_and_writes_nothing(
        self, client: TestClient, memory: TenantMemory, entry: str
    ) -> None:
        """What a restore would change, with the ETag that makes sure it is done to what was seen."""
        head = memory.verify().head

        answer = client.get(f"/v1/entries/{entry}/restore-preview?revision=1")
        (change,) = answer.json()["changes"]

        assert (200, '"2"', head) == (answer.status_code, answer.headers["etag"], memory.verify().head)
        assert (entry, 2, 1, 3, "published") == tuple(
            answer.json()[name] for name in ("entry_id", "revision", "restored_revision", "next_revision", "status")
        )
        assert ("title", "The second title", "The first title") == tuple(
            change[name] for name in ("field", "before", "after")
        )
        assert [("kept", "The "), ("removed", "second"), ("added", "first"), ("kept", " title")] == [
            (piece["operation"], piece["text"]) for piece in change["words"]
        ]
        done = _post(client, entry, "restore", {"reason": "r", "revision": 1}, int(answer.headers["etag"].strip('"')))
        assert answer.json()["next_revision"] == done.json()["revision"]

    @pytest.mark.parametrize(
        ("stated", "status"),
        [("1", 200), ("2", 422), ("3", 404), ("0", 422), ("-1", 422), ("x", 422), ("", 422), ("9" * 40, 422)],
    )
    def test_a_preview_is_of_an_earlier_revision(
        self, client: TestClient, entry: str, stated: str, status: int
    ) -> None:
        """The current one, one that never was, and what is no number are refused."""
        assert status == client.get(f"/v1/entries/{entry}/restore-preview", params={"revision": stated}).status_code

    @pytest.mark.parametrize("stated", ["3", "0", "-1", "x", "1.0", "9" * 40, "%00", "١"])
    def test_a_revision_that_never_was_is_not_found(self, client: TestClient, entry: str, stated: str) -> None:
        """Whatever was written in its place."""
        answer = client.get(f"/v1/entries/{entry}/revisions/{stated}")

        assert (404, "not_found") == (answer.status_code, answer.json()["code"])


class TestChange:
    @EVERY_VERB
    def test_it_is_done_and_acknowledged(self, client: TestClient, memory: TenantMemory, entry: str, verb: str) -> None:
        """The acknowledgement, the new ETag, and an event at that position; with the reason in the history."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        _make_ready(memory, entry, verb)
        before = memory.show_entry(uuid.UUID(entry))["revision"]

        answer = _post(client, entry, verb, _body(verb, other), before)

        assert 200 == answer.status_code, answer.text
        acknowledged = answer.json()
        assert {"entry_id", "revision", "position", "hash", "created", "appended"} == acknowledged.keys()
        assert (entry, before + 1, False, True) == tuple(
            acknowledged[name] for name in ("entry_id", "revision", "created", "appended")
        )
        assert f'"{before + 1}"' == answer.headers["etag"]
        last = memory.history(uuid.UUID(entry))[-1]
        reason = None if verb in UNREASONED else "because"
        assert (reason, acknowledged["position"]) == (last["reason"], last["position"])

    def test_what_is_offered_is_what_there_is(self) -> None:
        """Each verb of the table of states has a route that takes it."""
        assert {verb.name for verb in VERBS} <= ALLOWED.keys()
        assert {"link", "unlink"} >= ALLOWED.keys() - {verb.name for verb in VERBS}

    def test_what_changes_nothing_is_told_as_such(self, client: TestClient, memory: TenantMemory, entry: str) -> None:
        """The entry's own acknowledgement, and nothing is appended."""
        head = memory.verify().head

        answer = _post(client, entry, "correct", {"reason": "r", "changes": {"service": "checkout"}})

        assert (200, 2, False) == (answer.status_code, answer.json()["revision"], answer.json()["appended"])
        assert ('"2"', head) == (answer.headers["etag"], memory.verify().head)

    @EVERY_VERB
    def test_without_if_match_it_is_428(self, client: TestClient, memory: TenantMemory, entry: str, verb: str) -> None:
        """Nobody changes what he has not looked at."""
        head = memory.verify().head

        answer = _post(client, entry, verb, _body(verb, entry), None)

        assert (428, "precondition_required") == (answer.status_code, answer.json()["code"])
        assert "application/problem+json" == answer.headers["content-type"]
        assert head == memory.verify().head

    @EVERY_VERB
    def test_a_stale_one_is_412_with_both_revisions(
        self, client: TestClient, memory: TenantMemory, entry: str, verb: str
    ) -> None:
        """The one it was decided on and the one there is; nothing is written."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        head = memory.verify().head

        answer = _post(client, entry, verb, _body(verb, other), 1)

        assert (412, "revision_stale", 1, 2) == (
            answer.status_code,
            *(answer.json()[name] for name in ("code", "expected", "current")),
        )
        assert head == memory.verify().head

    @pytest.mark.parametrize(
        "stated",
        ["", "2", '"two"', '"0"', '"02"', '"-2"', 'W/"2"', '"2", "3"', "*", '"' + "2" * 40 + '"', '"٢"'],
    )
    def test_a_malformed_if_match_is_400(self, client: TestClient, entry: str, stated: str) -> None:
        """What names no single revision is not guessed at."""
        answer = client.post(
            f"/v1/entries/{entry}/archive", json={"reason": "r"}, headers=[(b"If-Match", stated.encode())]
        )

        assert (400, "if_match_invalid") == (answer.status_code, answer.json()["code"])

    def test_two_of_them_are_400(self, client: TestClient, entry: str) -> None:
        """Even where they say the same."""
        headers = [("If-Match", '"2"'), ("If-Match", '"2"')]

        answer = client.post(f"/v1/entries/{entry}/archive", json={"reason": "r"}, headers=headers)

        assert (400, "if_match_invalid") == (answer.status_code, answer.json()["code"])

    @EVERY_VERB
    def test_a_state_that_does_not_allow_it_is_409_with_what_it_allows(
        self, client: TestClient, memory: TenantMemory, entry: str, verb: str
    ) -> None:
        """The problem names the state, and the verbs that it accepts where there are some."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        into = {"release": "archive", "resolve": "archive", "unarchive": "quarantine", "quarantine": "quarantine"}
        wrong = {"restore": "supersede", "expire": "supersede", "reclassify": "supersede"}
        state = {**into, **wrong}.get(verb, "archive")
        _post(client, entry, state, _body(state, other))

        answer = _post(client, entry, verb, _body(verb, other), 3)

        assert (409, "illegal_transition") == (answer.status_code, answer.json()["code"]), answer.text
        is_what = "not disputed" if verb == "resolve" else memory.show_entry(uuid.UUID(entry))["status"]
        assert f"The entry is {is_what}" in answer.json()["detail"]

    @EVERY_VERB
    def test_a_retry_is_the_first_acknowledgement_again(
        self, client: TestClient, memory: TenantMemory, entry: str, verb: str
    ) -> None:
        """Though the revision has moved on by itself; the same key for something else is 409."""
        other = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        _make_ready(memory, entry, verb)
        revision = memory.show_entry(uuid.UUID(entry))["revision"]
        header = {"Idempotency-Key": "a key of the caller's own"}

        first = _post(client, entry, verb, _body(verb, other), revision, **header)
        again = _post(client, entry, verb, _body(verb, other), revision, **header)
        another = {"evidence": [{"type": "x", "uri": "x:y"}]} if verb in UNREASONED else {"reason": "another"}
        reused = _post(client, entry, verb, {**_body(verb, other), **another}, revision, **header)

        assert {**first.json(), "appended": False} == again.json()
        assert (True, None, "true") == (
            first.json()["appended"],
            first.headers.get("idempotency-replayed"),
            again.headers.get("idempotency-replayed"),
        )
        assert first.headers["etag"] == again.headers["etag"]
        assert (409, "command_reused") == (reused.status_code, reused.json()["code"])
        assert first.json()["position"] == memory.verify().head


class TestWalls:
    def test_foreign_absent_and_higher_entries_are_one_and_the_same(
        self, client: TestClient, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """Every route answers 404 with the same problem, to the letter; so does what is no id at all."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id
        mine = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        paths = ["", "/history", "/revisions/1", "/restore-preview?revision=1"]
        answers: dict[str, set[str]] = {path: set() for path in [*paths, *(verb.name for verb in VERBS)]}
        for named in (hidden, foreign, NOBODY, "x", "%00", "1", f"{{{NOBODY}}}"):
            for path in paths:
                answers[path].add(_without_id(client.get(f"/v1/entries/{named}{path}")))
            for verb in VERBS:
                answers[verb.name].add(_without_id(_post(client, str(named), verb.name, _body(verb.name, mine), 1)))

        assert {1} == {len(seen) for seen in answers.values()}, answers
        assert {"404"} == {text[:3] for seen in answers.values() for text in seen}

    @pytest.mark.parametrize("verb", ["dispute", "supersede"])
    def test_the_other_side_cannot_be_probed_either(
        self, client: TestClient, memory: TenantMemory, other_memory: TenantMemory, entry: str, verb: str
    ) -> None:
        """Naming a foreign, a hidden or an absent entry gives the same refusal."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id

        seen = {_without_id(_post(client, entry, verb, _body(verb, str(named)))) for named in (hidden, foreign, NOBODY)}

        assert 1 == len(seen)
        assert {"404"} == {text[:3] for text in seen}

    def test_a_revision_of_a_higher_tier_is_neither_shown_nor_previewed(
        self, client: TestClient, memory: TenantMemory
    ) -> None:
        """What was written when the entry stood above the caller stays there, text and number."""
        found = memory.record_finding(make_finding(title="A secret title", visibility="admin")).acknowledgement
        memory.correct(found.entry_id, {"title": "A title for all"}, reason="r")
        memory.reclassify(found.entry_id, reason="r", visibility="team")
        path = f"/v1/entries/{found.entry_id}"

        history, one, preview = (
            client.get(f"{path}{rest}") for rest in ("/history", "/revisions/1", "/restore-preview?revision=1")
        )

        assert [3] == [item["revision"] for item in history.json()["revisions"]]
        assert (404, 404) == (one.status_code, preview.status_code)
        assert "secret" not in history.text + one.text + preview.text

    @pytest.mark.parametrize("role", ["investigator", "auditor", "hook"])
    def test_only_those_who_govern_may_change(
        self, grandbo: Grandbo, memory: TenantMemory, entry: str, role: str
    ) -> None:
        """403 for every verb and for the preview, before anything about the entry is told; reading takes recall."""
        low = client_of(grandbo, token=make_token(memory, role))

        statuses = {_post(low, entry, verb.name, _body(verb.name, entry), 1).status_code for verb in VERBS}
        preview = low.get(f"/v1/entries/{entry}/restore-preview?revision=1").status_code

        assert ({403}, 403) == (statuses, preview)
        assert (403 if role == "hook" else 200) == low.get(f"/v1/entries/{entry}").status_code

    def test_nobody_comes_in_without_a_key(self, grandbo: Grandbo, entry: str) -> None:
        """401 before anything else is looked at."""
        nobody = client_of(grandbo)

        assert 401 == nobody.get(f"/v1/entries/{entry}").status_code
        assert 401 == nobody.post(f"/v1/entries/{entry}/archive", content=b"{").status_code

    def test_nobody_moves_an_entry_to_a_tier_above_his_own(self, client: TestClient, entry: str) -> None:
        """403, as for a finding."""
        answer = _post(client, entry, "reclassify", {"reason": "r", "visibility": "admin"})

        assert (403, "forbidden") == (answer.status_code, answer.json()["code"])


class TestBodies:
    @pytest.mark.parametrize(
        ("verb", "body", "status", "field"),
        [
            ("archive", {}, 422, "reason"),
            ("archive", {"reason": None}, 422, "reason"),
            ("archive", {"reason": "  "}, 422, "reason"),
            ("archive", {"reason": 3}, 422, "reason"),
            ("archive", {"reason": "x" * 1_001}, 413, "reason"),
            ("archive", {"reason": "r\u0000"}, 422, "reason"),
            ("archive", {"reason": "r", "revision": 1}, 422, "revision"),
            ("correct", {"reason": "r"}, 422, "changes"),
            ("correct", {"reason": "r", "changes": []}, 422, "changes"),
            ("correct", {"reason": "r", "changes": {"title": ""}}, 422, "title"),
            ("correct", {"reason": "r", "changes": {"title": "x" * 201}}, 413, "title"),
            ("correct", {"reason": "r", "changes": {"confidence_bp": 10_001}}, 422, "confidence_bp"),
            ("correct", {"reason": "r", "changes": {"evidence": []}}, 422, "evidence"),
            ("restore", {"reason": "r"}, 422, "revision"),
            ("restore", {"reason": "r", "revision": "1"}, 422, "revision"),
            ("restore", {"reason": "r", "revision": True}, 422, "revision"),
            ("restore", {"reason": "r", "revision": 2}, 422, "revision"),
            ("restore", {"reason": "r", "revision": 10**30}, 422, "revision"),
            ("dispute", {"reason": "r", "other": "x"}, 422, "other"),
            ("supersede", {"reason": "r"}, 422, "by"),
            ("supersede", {"reason": "r", "by": 1}, 422, "by"),
            ("verify", {"reason": "r", "days": 0}, 422, "days"),
            ("verify", {"reason": "r", "days": 1.5}, 422, "days"),
            ("expire", {"reason": "r"}, 422, "at"),
            ("expire", {"reason": "r", "at": "2030-01-01T00:00:00"}, 422, "at"),
            ("expire", {"reason": "r", "at": 5}, 422, "at"),
            ("expire", {"reason": "r", "at": "1990"}, 422, "expires_at"),
            ("reclassify", {"reason": "r"}, 422, "kind"),
            ("reclassify", {"reason": "r", "kind": ["note"]}, 422, "kind"),
            ("reclassify", {"reason": "r", "visibility": "nobody"}, 422, "visibility"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_its_field(
        self,
        client: TestClient,
        memory: TenantMemory,
        entry: str,
        verb: str,
        body: dict[str, Any],
        status: int,
        field: str,
    ) -> None:
        """And nothing is written."""
        head = memory.verify().head

        answer = _post(client, entry, verb, body)

        assert (status, field) == (answer.status_code, answer.json()["field"]), answer.text
        assert head == memory.verify().head

    @pytest.mark.parametrize("changes", [{}, {"title": None}, {"kind": "note"}, {"status": "archived"}])
    def test_a_correction_names_what_can_be_corrected(
        self, client: TestClient, entry: str, changes: dict[str, Any]
    ) -> None:
        """Nothing, or what other verbs are for, is refused with the fields there are."""
        answer = _post(client, entry, "correct", {"reason": "r", "changes": changes})

        assert (422, "invalid_input") == (answer.status_code, answer.json()["code"])
        assert "confidence_bp" in answer.json()["detail"]

    @pytest.mark.parametrize("body", [[], "archive", 3, None, True])
    def test_what_is_no_object_is_refused(self, client: TestClient, entry: str, body: Any) -> None:
        """With the fields that are wanted."""
        answer = post_raw(client, f"/v1/entries/{entry}/supersede", body, {"If-Match": '"2"'})

        assert (422, "invalid_input") == (answer.status_code, answer.json()["code"])
        assert "reason, by" in answer.json()["detail"]

    def test_what_is_not_json_is_refused(self, client: TestClient, entry: str) -> None:
        """400 for bytes, 415 for what does not say that it is JSON."""
        path, stated = f"/v1/entries/{entry}/archive", {"If-Match": '"2"'}

        broken = post_raw(client, path, b"{", stated)
        unsaid = client.post(path, content=b"{}", headers=stated)

        assert (400, "not_json") == (broken.status_code, broken.json()["code"])
        assert (415, "unsupported_media_type") == (unsaid.status_code, unsaid.json()["code"])


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from([NOBODY, "2030"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
_FIELDS = ("reason", "changes", "revision", "other", "by", "days", "at", "kind", "visibility", "\x00")


class TestFuzz:
    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        verb=st.sampled_from([verb.name for verb in VERBS]),
        changes=st.dictionaries(st.sampled_from(_FIELDS), _anything, max_size=3),
        corrections=st.dictionaries(st.sampled_from(CORRECTABLE), _anything, max_size=2),
    )
    def test_a_body_of_anything_is_carried_out_or_refused(
        self,
        client: TestClient,
        memory: TenantMemory,
        verb: str,
        changes: dict[str, Any],
        corrections: dict[str, Any],
    ) -> None:
        """In a state that accepts the verb: the server never fails."""
        entry = str(memory.record_finding(make_finding()).acknowledgement.entry_id)
        memory.verify_entry(uuid.UUID(entry), reason="so that there is an earlier revision")
        _make_ready(memory, entry, verb)
        revision = memory.show_entry(uuid.UUID(entry))["revision"]
        body = {**_body(verb, NOBODY), **({"changes": corrections} if verb == "correct" else {}), **changes}

        answer = post_raw(client, f"/v1/entries/{entry}/{verb}", body, {"If-Match": f'"{revision}"'})

        assert answer.status_code in (200, 400, 403, 404, 409, 413, 422), answer.text
        assert answer.status_code < 400 or "application/problem+json" == answer.headers["content-type"]


class TestOpenAPI:
    @pytest.fixture
    def document(self, grandbo: Grandbo) -> dict[str, Any]:
        """The document as it is served."""
        served: dict[str, Any] = client_of(grandbo).get("/openapi.json").json()
        return served

    def test_every_change_requires_a_patterned_if_match_and_describes_its_body(self, document: dict[str, Any]) -> None:
        """So that a client that goes by the document is never refused for its form."""
        for verb in VERBS:
            operation = document["paths"][f"/v1/entries/{{entry_id}}/{verb.name}"]["post"]
            headers = {item["name"]: item for item in operation["parameters"] if item["in"] == "header"}
            assert {"If-Match", "Idempotency-Key"} == headers.keys()
            assert (True, '^"[1-9][0-9]{0,18}"$') == (
                headers["If-Match"]["required"],
                headers["If-Match"]["schema"]["pattern"],
            )
            assert "ETag" in operation["responses"]["200"]["headers"]
            assert {"404", "409", "412", "422", "428"} <= operation["responses"].keys()
            (name,) = {operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]}
            required = document["components"]["schemas"][name]["required"]
            assert ("evidence" if verb.name in UNREASONED else "reason") in required

    def test_the_described_answers_are_the_given_ones(
        self, client: TestClient, document: dict[str, Any], entry: str
    ) -> None:
        """Field by field, of each kind of answer."""
        path = f"/v1/entries/{entry}"
        answers = {
            "Entry": client.get(path).json(),
            "History": client.get(f"{path}/history").json(),
            "Revision": client.get(f"{path}/revisions/1").json(),
            "State": client.get(f"{path}/revisions/1").json()["state"],
            "RestorePreview": client.get(f"{path}/restore-preview?revision=1").json(),
            "FieldDifference": client.get(f"{path}/restore-preview?revision=1").json()["changes"][0],
            "Change": _post(client, entry, "archive", {"reason": "r"}).json(),
        }

        for name, answer in answers.items():
            assert document["components"]["schemas"][name]["properties"].keys() == answer.keys(), name
        assert set(CORRECTABLE) == set(entry_schemas.ChangesDocument.model_fields)
        assert set(STATE_COLUMNS) - HIDDEN == set(entry_schemas.StateDocument.model_fields)

    def test_no_body_takes_the_name_of_another(self, grandbo: Grandbo) -> None:
        """What the other routes describe is described as before."""
        app = client_of(grandbo).app
        assert isinstance(app, FastAPI)
        alone = FastAPI()
        install_document(alone, DOCUMENTS)

        before, after = alone.openapi()["components"]["schemas"], app.openapi()["components"]["schemas"]

        assert before == {name: after[name] for name in before}

    def test_statuses_that_occur_are_declared(self, client: TestClient, document: dict[str, Any], entry: str) -> None:
        """Each with its media type."""
        operation = document["paths"]["/v1/entries/{entry_id}/archive"]["post"]
        answers = [
            _post(client, entry, "archive", {"reason": "r"}, None),
            _post(client, entry, "archive", {"reason": "r"}, 1),
            _post(client, entry, "archive", {}),
            _post(client, NOBODY, "archive", {"reason": "r"}),
            _post(client, entry, "archive", {"reason": "r"}),
            _post(client, entry, "archive", {"reason": "r"}, 3),
        ]

        assert [428, 412, 422, 404, 200, 409] == [answer.status_code for answer in answers]
        for answer in answers:
            declared = operation["responses"][str(answer.status_code)]["content"]
            assert answer.headers["content-type"].partition(";")[0] in declared


def _without_id(answer: Any) -> str:
    """Status and problem, without what is of this one request."""
    document = {name: value for name, value in answer.json().items() if name != "request_id"}
    return f"{answer.status_code} {sorted(document.items())}"
