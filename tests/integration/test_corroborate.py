"""Another incident supports an entry: as a verb of its own, at every door."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from grandbo.errors import CommandReused, EvidenceMissing, Forbidden, IllegalTransition, InvalidInput, NotFound
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase

INCIDENT = {"source": "pager", "id": "ANOTHER"}
EVIDENCE = [{"type": "log", "uri": "https://logs.example.com/another", "label": "broker log"}]


@pytest.fixture
def entry(memory: TenantMemory) -> uuid.UUID:
    """One entry that an incident taught."""
    finding = make_finding(incident={"source": "pager", "id": "FIRST"})
    return memory.record_finding(finding).acknowledgement.entry_id


class TestCorroborate:
    def test_it_adds_the_incident_and_its_evidence(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """As a new revision; the text, the status and all else stay, and a rebuild makes the same of it."""
        before = memory.show_entry(entry)
        changed = memory.corroborate(entry, incident=INCIDENT, evidence=EVIDENCE, expected_revision=1)
        after = memory.show_entry(entry)

        assert (True, 2, False) == (
            changed.appended,
            changed.acknowledgement.revision,
            changed.acknowledgement.created,
        )
        assert [INCIDENT] == after["supported_by"]
        assert before["trust_bp"] < after["trust_bp"]
        assert [*before["evidence"], *EVIDENCE] == after["evidence"]
        moved = {"revision", "position", "changed_at", "supported_by", "evidence", "trust_bp"}
        assert {k: v for k, v in before.items() if k not in moved} == {k: v for k, v in after.items() if k not in moved}
        last = memory.history(entry)[-1]
        assert ("entry_corroborated", None) == (last["event_type"], last["reason"])
        assert before["supported_by"] == memory.show_entry(entry, as_of_position=before["position"])["supported_by"]
        assert memory.check_rebuild().ok

    @pytest.mark.parametrize("known", ["FIRST", "ANOTHER"])
    def test_an_incident_that_supports_it_already_changes_nothing(
        self, memory: TenantMemory, entry: uuid.UUID, known: str
    ) -> None:
        """Nor does the one that taught it, whatever evidence comes along."""
        first = memory.corroborate(entry, incident=INCIDENT, evidence=EVIDENCE)
        head = memory.verify().head
        more = [{"type": "graph", "uri": "https://graphs.example.com/1"}]

        again = memory.corroborate(entry, incident={"source": "pager", "id": known}, evidence=more)

        assert (False, first.acknowledgement) == (again.appended, again.acknowledgement)
        assert head == memory.verify().head

    def test_recording_and_the_verb_know_of_each_other(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """An incident that was added by the verb records the same claim as known; and the other way round."""
        claim = make_finding(incident=INCIDENT)
        told = memory.record_finding(claim).acknowledgement.entry_id
        memory.corroborate(told, incident={"source": "pager", "id": "THIRD"}, evidence=EVIDENCE)

        again = memory.record_finding({**claim, "incident": {"source": "pager", "id": "THIRD"}})

        assert (False, told) == (again.appended, again.acknowledgement.entry_id)
        memory.record_finding({**claim, "incident": {"source": "pager", "id": "FOURTH"}})
        assert not memory.corroborate(told, incident={"source": "pager", "id": "FOURTH"}, evidence=EVIDENCE).appended

    @pytest.mark.parametrize(
        ("incident", "evidence", "error"),
        [
            (INCIDENT, [], EvidenceMissing),
            (INCIDENT, [{"type": "memory", "uri": "grandbo://entry/1"}], EvidenceMissing),
            (INCIDENT, [{"type": "memory", "uri": "GRANDBO:entry/1"}], EvidenceMissing),
            (INCIDENT, [{"type": "log", "uri": "nowhere"}], InvalidInput),
            (INCIDENT, [{"type": "log"}], InvalidInput),
            (INCIDENT, "x", InvalidInput),
            (INCIDENT, EVIDENCE * 21, InvalidInput),
            ({"source": "pager"}, EVIDENCE, InvalidInput),
            ({**INCIDENT, "more": 1}, EVIDENCE, InvalidInput),
            ("pager:1", EVIDENCE, InvalidInput),
            (None, EVIDENCE, InvalidInput),
        ],
    )
    def test_what_does_not_support_is_refused(
        self, memory: TenantMemory, entry: uuid.UUID, incident: Any, evidence: Any, error: type[Exception]
    ) -> None:
        """Memory cannot bear itself out; and nothing is written."""
        head = memory.verify().head
        with pytest.raises(error):
            memory.corroborate(entry, incident=incident, evidence=evidence)

        assert head == memory.verify().head

    def test_memory_beside_other_evidence_is_kept(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """One piece that is not memory is enough."""
        both = [{"type": "memory", "uri": f"grandbo://entry/{entry}", "label": ""}, *EVIDENCE]
        memory.corroborate(entry, incident=INCIDENT, evidence=both)

        assert both == memory.show_entry(entry)["evidence"][1:]

    def test_the_same_command_again_is_the_first_acknowledgement(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Its id with other evidence is refused."""
        command_id = uuid.UUID(int=5)
        first, again = (
            memory.corroborate(entry, incident=INCIDENT, evidence=EVIDENCE, command_id=command_id) for _ in range(2)
        )

        assert (first.acknowledgement, True) == (again.acknowledgement, again.replayed)
        with pytest.raises(CommandReused):
            memory.corroborate(entry, incident=INCIDENT, evidence=[{"type": "x", "uri": "x:y"}], command_id=command_id)

    def test_a_hook_corroborates_by_recording_and_not_by_the_verb(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """It may not govern."""
        hook = memory._grandbo.authenticate(make_token(memory, "hook", kind="hook"))
        claim = make_finding()
        told = hook.record_finding(claim).acknowledgement.entry_id

        with pytest.raises(Forbidden):
            hook.corroborate(entry, incident=INCIDENT, evidence=EVIDENCE)
        assert hook.record_finding({**claim, "incident": INCIDENT}).appended
        assert [INCIDENT] == memory.show_entry(told)["supported_by"]

    def test_what_is_not_the_caller_s_is_not_there(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """An entry of a higher tier and one of another tenant alike."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id
        reviewer = memory._grandbo.authenticate(make_token(memory, "reviewer"))

        for entry_id in (hidden, foreign):
            with pytest.raises(NotFound):
                reviewer.corroborate(entry_id, incident=INCIDENT, evidence=EVIDENCE)

    def test_only_a_published_entry_takes_it(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """An archived one is refused, with what it does allow."""
        memory.archive(entry, reason="r")
        with pytest.raises(IllegalTransition, match="corroborate is not possible"):
            memory.corroborate(entry, incident=INCIDENT, evidence=EVIDENCE)


class TestDoors:
    @pytest.fixture
    def cli(self, database: TestDatabase, memory: TenantMemory) -> Cli:
        """The command line in the test's own tenant, by words alone."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

    def test_the_command_line_takes_evidence_with_a_label(
        self, cli: Cli, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Repeatable; an id may hold a colon, a URI an equals sign; what follows a space is the label."""
        done = cli(
            "entry", "corroborate", entry, "--incident", "pager:A:1", "--expected-revision", 1, "--json",
            "--evidence", "log=https://logs.example.com/?q=1 broker log", "--evidence", "graph=https://g.example.com",
        )  # fmt: skip
        again = cli("entry", "corroborate", entry, "--incident", "pager:A:1", "--evidence", "log=https://x.example.com")
        shown = memory.show_entry(entry)

        assert (0, True, 2) == (done.code, done.document["appended"], done.document["revision"])
        assert [{"source": "pager", "id": "A:1"}] == shown["supported_by"]
        assert [
            {"type": "log", "uri": "https://logs.example.com/?q=1", "label": "broker log"},
            {"type": "graph", "uri": "https://g.example.com", "label": ""},
        ] == shown["evidence"][1:]
        assert again.out.startswith("Nothing to change")

    @pytest.mark.parametrize(
        ("options", "code", "error"),
        [
            (["--incident", "pager", "--evidence", "log=https://x.example.com"], 2, "invalid_input"),
            (["--incident", "pager:1", "--evidence", "https://x.example.com"], 2, "invalid_input"),
            (["--incident", "pager:1", "--evidence", "log=grandbo://entry/1"], 2, "evidence_missing"),
            (
                ["--incident", "pager:1", "--evidence", "log=https://x.example.com", "--expected-revision", "7"],
                6,
                "revision_stale",
            ),
        ],
    )
    def test_the_command_line_refuses_under_its_code(
        self, cli: Cli, entry: uuid.UUID, options: list[str], code: int, error: str
    ) -> None:
        """With the form that is wanted."""
        refused = cli("entry", "corroborate", entry, *options, "--json")

        assert (code, error) == (refused.code, refused.error["code"])

    def test_over_http_it_needs_if_match_and_takes_no_reason(
        self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """Like the other verbs but for the reason; memory alone is refused as no evidence."""
        client = client_of(grandbo, token=make_token(memory, "reviewer"))
        path, body = f"/v1/entries/{entry}/corroborate", {"incident": INCIDENT, "evidence": EVIDENCE}
        match = {"If-Match": '"1"'}
        memories = {**body, "evidence": [{"type": "memory", "uri": "grandbo://entry/1"}]}

        assert 428 == client.post(path, json=body).status_code
        assert 422 == client.post(path, json={**body, "reason": "because"}, headers=match).status_code
        refused = client.post(path, json=memories, headers=match)
        assert (422, "evidence_missing") == (refused.status_code, refused.json()["code"])
        done = client.post(path, json=body, headers=match)
        assert (200, '"2"', True) == (done.status_code, done.headers["etag"], done.json()["appended"])
        assert 412 == client.post(path, json=body, headers=match).status_code
