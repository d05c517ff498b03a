"""Blast radius: what rests on an entry or a source and why, who was told, and nothing of what is not the caller's."""

from __future__ import annotations

import uuid
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import EvidenceMissing, Forbidden, InvalidInput, LimitExceeded, NotFound
from grandbo.library import TenantMemory
from grandbo.memory import impact
from grandbo.types import LINK_TYPES
from tests.support.factories import make_finding
from tests.support.impacts import TOPIC, citing, members, record, someone

INCIDENT = {"source": "pager", "id": "INC-IMPACT"}


def seed_of(entry_id: UUID) -> tuple[str, str]:
    """The reason of the entry that it begins at."""
    return ("seed", str(entry_id))


class TestEvidence:
    def test_what_cites_it_rests_on_it_and_so_on(self, memory: TenantMemory) -> None:
        """A chain is followed to its end, whatever the spelling of the URI; what is cited by it is not in."""
        before = record(memory)
        one = record(memory, evidence=citing(before))
        two = record(memory, evidence=citing(one))
        three = record(memory, evidence=citing(f"GRANDBO://entries/{str(two).upper()}/revisions/1"))
        record(memory, evidence=citing(f"grandbo://entries/{one}0", "grandbo://entries/", "grandbo:x"))

        assert {
            str(one): {seed_of(one)},
            str(two): {("evidence", str(one))},
            str(three): {("evidence", str(two))},
        } == members(memory.entry_impact(one))

    def test_cycles_end_and_every_reason_is_told(self, memory: TenantMemory) -> None:
        """Two entries that cite each other; the seed says both that it is one and what it rests on."""
        one, two = record(memory), record(memory)
        memory.correct(one, {"evidence": citing(two, one)}, reason="r")
        memory.correct(two, {"evidence": citing(one)}, reason="r")

        assert {
            str(one): {seed_of(one), ("evidence", str(two))},
            str(two): {("evidence", str(one))},
        } == members(memory.entry_impact(one))

    def test_what_came_by_corroboration_says_so(self, memory: TenantMemory) -> None:
        """Evidence that another incident brought; what the entry had of its own is told apart."""
        one = record(memory)
        finding = make_finding()
        supported = memory.record_finding(finding).acknowledgement.entry_id
        memory.record_finding({**finding, "incident": INCIDENT, "evidence": citing(one)})

        assert {("corroboration", str(one))} == members(memory.entry_impact(one))[str(supported)]

    def test_what_no_longer_cites_it_does_not_rest_on_it(self, memory: TenantMemory) -> None:
        """The evidence as it stands counts."""
        one = record(memory)
        two = record(memory, evidence=citing(one))
        memory.correct(two, {"evidence": citing()}, reason="r")

        assert {str(one)} == members(memory.entry_impact(one)).keys()

    @pytest.mark.parametrize("status", ["archived", "quarantined", "superseded"])
    def test_a_member_counts_in_every_status(self, memory: TenantMemory, status: str) -> None:
        """What is put away carries on what rests on it, and says where it stands."""
        one = record(memory)
        two = record(memory, evidence=citing(one))
        three = record(memory, evidence=citing(two))
        {
            "archived": lambda: memory.archive(two, reason="r"),
            "quarantined": lambda: memory.quarantine(two, reason="r"),
            "superseded": lambda: memory.supersede(two, record(memory), reason="r"),
        }[status]()

        found = memory.entry_impact(one)

        assert {str(one): "published", str(two): status, str(three): "published"} == {
            member["entry_id"]: member["status"] for member in found["members"]
        }


class TestMemoryCannotCorroborate:
    @pytest.mark.parametrize("uri", ["grandbo://entries/1", "GRANDBO://entries/1", "GrandBo:anything"])
    def test_by_no_path(self, memory: TenantMemory, uri: str) -> None:
        """Not in recording, not in supporting what is recorded, not in a correction; nothing is written."""
        alone = [{"type": "memory", "uri": uri, "label": ""}] * 2
        finding = make_finding()
        entry = memory.record_finding(finding).acknowledgement.entry_id
        head = memory.verify().head

        for attempt in (
            lambda: memory.record_finding(make_finding(evidence=alone)),
            lambda: memory.record_finding({**finding, "incident": INCIDENT, "evidence": alone}),
            lambda: memory.correct(entry, {"evidence": alone}, reason="r"),
        ):
            with pytest.raises(EvidenceMissing):
                attempt()
        assert head == memory.verify().head

    def test_beside_other_evidence_it_may_stand(self, memory: TenantMemory) -> None:
        """Then it is what the blast radius follows."""
        one = record(memory)

        assert 2 == len(memory.show_entry(record(memory, evidence=citing(one)))["evidence"])


class TestLinks:
    @pytest.mark.parametrize("link_type", LINK_TYPES)
    def test_by_type_and_direction(self, memory: TenantMemory, link_type: str) -> None:
        """A link to a member makes a member; only duplicates count from either side, and contradicts from none."""
        one, two = record(memory), record(memory)
        memory.link(two, link_type, one, reason="r")
        reason = {(f"link:{link_type}", str(one))}

        found, back = members(memory.entry_impact(one)), members(memory.entry_impact(two))

        assert (reason if link_type != "contradicts" else None) == found.get(str(two))
        both = {(f"link:{link_type}", str(two))} if link_type == "duplicates" else None
        assert both == back.get(str(one))

    def test_a_link_that_was_taken_away_does_not_count(self, memory: TenantMemory) -> None:
        """Only open ones do."""
        one, two = record(memory), record(memory)
        memory.link(two, "caused_by", one, reason="r")
        memory.unlink(two, "caused_by", one, reason="r")

        assert {str(one)} == members(memory.entry_impact(one)).keys()


class TestRecordedAfter:
    def test_what_was_recorded_for_the_incident_after_being_told(self, memory: TenantMemory) -> None:
        """By the same principal, for the same incident, later: each of the three is needed."""
        agent, other = someone(memory, "investigator", "hook"), someone(memory, "investigator", "hook")
        early = record(agent, incident=INCIDENT)
        told = record(memory)
        receipt = agent.query_topic(TOPIC, incident=("pager", "INC-IMPACT")).receipt_id
        after = record(agent, incident=INCIDENT)
        elsewhere = record(agent, incident={"source": "pager", "id": "another"})
        stranger = record(other, incident=INCIDENT)

        found = memory.entry_impact(told)

        assert {str(told): {seed_of(told)}, str(after): {("recorded_after", str(told))}} == members(found)
        assert str(receipt) == found["members"][1]["reasons"][0]["receipt_id"]
        assert not {str(early), str(elsewhere), str(stranger)} & members(found).keys()
        assert 0 == found["possibly_affected"]["total"]

    def test_what_was_supported_after_being_told(self, memory: TenantMemory) -> None:
        """A corroboration for the incident, by who was told; one for another incident is none."""
        agent = someone(memory, "investigator", "hook")
        first, second = make_finding(), make_finding()
        supported, other = (memory.record_finding(one).acknowledgement.entry_id for one in (first, second))
        told = record(memory)
        agent.query_topic(TOPIC, limit=20, incident=INCIDENT)
        agent.record_finding({**first, "incident": INCIDENT})
        agent.record_finding({**second, "incident": {"source": "pager", "id": "another"}})

        found = members(memory.entry_impact(told))

        assert {("recorded_after", str(told))} == found[str(supported)]
        assert str(other) not in found

    def test_what_was_recorded_after_being_told_and_supported_by_the_incident(self, memory: TenantMemory) -> None:
        """The author was told for an incident that by now supports what he recorded."""
        agent = someone(memory, "investigator", "hook")
        told = record(memory)
        agent.query_topic(TOPIC, incident=INCIDENT)
        finding = make_finding()
        recorded = agent.record_finding(finding).acknowledgement.entry_id
        memory.record_finding({**finding, "incident": INCIDENT})

        assert {("recorded_after", str(told))} == members(memory.entry_impact(told))[str(recorded)]

    def test_the_closure_goes_on_from_there_over_every_kind_of_edge(self, memory: TenantMemory) -> None:
        """Link, evidence, being told, evidence, being told again: from one end to the other."""
        agent = someone(memory, "investigator", "hook")
        one = record(memory, title="The first about certificates that ran out")
        two = record(memory)
        memory.link(two, "relates_to", one, reason="r")
        three = record(memory, title="A zebra in the xylophone", summary="", body="", evidence=citing(two))
        agent.query_topic("zebra xylophone", mode="words", incident=INCIDENT)
        four = record(agent, incident=INCIDENT)
        five = record(memory, title="Unicorns sing in the harmonica", summary="", body="", evidence=citing(four))
        agent.query_topic("unicorns harmonica", mode="words", incident={"source": "pager", "id": "second"})
        six = record(agent, incident={"source": "pager", "id": "second"})

        assert {
            str(one): {seed_of(one)},
            str(two): {("link:relates_to", str(one))},
            str(three): {("evidence", str(two))},
            str(four): {("recorded_after", str(three))},
            str(five): {("evidence", str(four))},
            str(six): {("recorded_after", str(five))},
        } == members(memory.entry_impact(one))

    def test_told_for_no_incident_is_possibly_affected_and_no_member(self, memory: TenantMemory) -> None:
        """What such a principal recorded later is listed, with the receipt, and is not put away."""
        agent = someone(memory, "investigator", "hook")
        told = record(memory)
        receipt = agent.query_topic(TOPIC).receipt_id
        agent.query_topic(TOPIC)
        later = record(agent)

        found = memory.entry_impact(told)
        memory.quarantine_impact(told, reason="r")

        assert {str(told)} == members(found).keys()
        assert {
            "total": 1,
            "items": [
                {
                    "entry_id": str(later),
                    "title": memory.show_entry(later)["title"],
                    "principal": agent.principal.ref,
                    "receipt_id": str(receipt),
                }
            ],
            "has_more": False,
        } == found["possibly_affected"]
        assert "published" == memory.show_entry(later)["status"]

    def test_who_asked_about_the_past_was_told_when_he_asked(self, memory: TenantMemory) -> None:
        """What he recorded between the moment that he asked about and his asking cannot rest on the answer."""
        told = record(memory)
        position = memory.verify().head
        between = record(memory, incident=INCIDENT)
        answer = memory.query_topic(TOPIC, as_of_position=position, incident=INCIDENT)
        after = record(memory, incident=INCIDENT)

        found = members(memory.entry_impact(told))

        assert str(told) in {str(match.entry_id) for match in answer.matches}
        assert {str(told), str(after)} == found.keys()
        assert str(between) not in found


class TestSource:
    def test_it_begins_at_all_that_names_the_uri_exactly(self, memory: TenantMemory) -> None:
        """Own evidence and support alike; a longer URI is another one."""
        uri = "https://logs.example.com/forged"
        one = record(memory, evidence=citing(uri))
        finding = make_finding()
        two = memory.record_finding(finding).acknowledgement.entry_id
        memory.record_finding({**finding, "incident": INCIDENT, "evidence": citing(uri)})
        three = record(memory, evidence=citing(two))
        record(memory, evidence=citing(uri + "/more"))

        found = memory.source_impact(uri)

        assert {"uri": uri} == found["seed"]
        assert {
            str(one): {("seed", uri)},
            str(two): {("seed", uri)},
            str(three): {("evidence", str(two))},
        } == members(found)

    def test_a_source_that_nothing_names_has_no_impact(self, memory: TenantMemory) -> None:
        """Nothing is found, and nothing is done."""
        head = memory.verify().head
        found = memory.source_impact("https://logs.example.com/nobody")
        contained = memory.quarantine_impact("https://logs.example.com/nobody", reason="r")

        assert ([], 0) == (found["members"], found["receipts"]["total"])
        assert (False, head) == (contained.appended, memory.verify().head)

    @pytest.mark.parametrize("uri", ["", "no-scheme", 5, None, "https://x/\u0000", "https://x/\ud800"])
    def test_what_is_no_uri_is_refused(self, memory: TenantMemory, uri: Any) -> None:
        """With the field."""
        with pytest.raises(InvalidInput) as refused:
            memory.source_impact(uri)
        assert "uri" == refused.value.details["field"]

    def test_a_uri_has_a_length(self, memory: TenantMemory) -> None:
        """No longer than evidence may be."""
        with pytest.raises(LimitExceeded):
            memory.source_impact("https://" + "x" * 2_000)


class TestReceipts:
    def test_who_was_told_any_member_newest_first(self, memory: TenantMemory) -> None:
        """Id, principal, time, position, incident, and which members; other answers are not there."""
        one = record(memory)
        two = record(memory, evidence=citing(one))
        agent = someone(memory, "investigator")
        first = agent.query_topic(TOPIC, limit=20, incident=INCIDENT)
        memory.query_topic("zebra xylophone", mode="words")
        second = memory.query_topic(TOPIC, limit=20)

        found = memory.entry_impact(one)["receipts"]

        assert (2, False) == (found["total"], found["has_more"])
        assert [
            (str(second.receipt_id), memory.principal.ref, second.position, None),
            (str(first.receipt_id), agent.principal.ref, first.position, INCIDENT),
        ] == [(item["receipt_id"], item["principal"], item["position"], item["incident"]) for item in found["items"]]
        assert [sorted([str(one), str(two)])] * 2 == [item["entries"] for item in found["items"]]

    def test_all_are_counted_and_the_newest_shown(self, memory: TenantMemory) -> None:
        """Past the page `has_more` says that there are others."""
        one = record(memory)
        made = [str(memory.query_topic(TOPIC).receipt_id) for _ in range(impact.SHOWN + 2)]

        found = memory.entry_impact(one)["receipts"]

        assert (impact.SHOWN + 2, True) == (found["total"], found["has_more"])
        assert made[:1:-1] == [item["receipt_id"] for item in found["items"]]


class TestWalls:
    def test_what_stands_above_the_caller_is_absent_and_leads_nowhere(self, memory: TenantMemory) -> None:
        """Neither as a member, nor in a count, nor as a way to others; who sees all tiers finds all of it."""
        one = record(memory)
        hidden = record(memory, evidence=citing(one), visibility="admin")
        behind = record(memory, evidence=citing(hidden))
        linked = record(memory, visibility="admin")
        memory.link(linked, "caused_by", one, reason="r")
        memory.link(behind, "caused_by", linked, reason="r")
        reviewer = someone(memory, "reviewer", kind="human")
        investigator = someone(memory, "investigator")
        above = memory.query_topic(TOPIC, limit=20).receipt_id
        within = investigator.query_topic(TOPIC, limit=20).receipt_id

        seen, whole = reviewer.entry_impact(one), memory.entry_impact(one)

        assert {str(one): {seed_of(one)}} == members(seen)
        assert {str(one), str(hidden), str(behind), str(linked)} == members(whole).keys()
        assert (1, [str(within)]) == (
            seen["receipts"]["total"],
            [item["receipt_id"] for item in seen["receipts"]["items"]],
        )
        assert [str(within), str(above)] == [item["receipt_id"] for item in whole["receipts"]["items"]]
        for text in (hidden, linked, behind, above):
            assert str(text) not in str(seen)
        reviewer.quarantine_impact(one, reason="r")
        assert "published" == memory.show_entry(hidden)["status"] == memory.show_entry(behind)["status"]

    def test_a_receipt_made_above_the_caller_leads_nowhere(self, memory: TenantMemory) -> None:
        """What someone recorded after an answer that the caller may not know of is not there by it."""
        one = record(memory)
        memory.query_topic(TOPIC, incident=INCIDENT)
        memory.query_topic(TOPIC)
        after = record(memory, incident=INCIDENT)
        reviewer = someone(memory, "reviewer", kind="human")

        found = reviewer.entry_impact(one)

        assert ({str(one)}, 0) == (set(members(found)), found["possibly_affected"]["total"])
        assert str(after) in members(memory.entry_impact(one))

    def test_a_hidden_seed_looks_absent(self, memory: TenantMemory) -> None:
        """By every verb, as an id that never was; a source begins only at what the caller sees."""
        uri = "https://logs.example.com/hidden"
        hidden = record(memory, visibility="admin", evidence=citing(uri))
        reviewer = someone(memory, "reviewer", kind="human")

        for named in (hidden, uuid.uuid4()):
            for verb in (
                reviewer.entry_impact,
                lambda one: reviewer.quarantine_impact(one, reason="r"),
                lambda one: reviewer.release_impact(one, reason="r"),
            ):
                with pytest.raises(NotFound) as refused:
                    verb(named)
                assert {} == refused.value.details
        assert [] == reviewer.source_impact(uri)["members"]
        assert not reviewer.quarantine_impact(uri, reason="r").appended

    def test_another_tenant_s_are_not_there(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """The same URI, a citation across, the same incident: each tenant finds its own."""
        uri = "https://logs.example.com/both"
        one, theirs = (record(side, evidence=citing(uri)) for side in (memory, other_memory))
        record(other_memory, evidence=citing(one))
        for side in (memory, other_memory):
            side.query_topic(TOPIC, incident=INCIDENT)

        assert {str(one)} == members(memory.source_impact(uri)).keys() == members(memory.entry_impact(one)).keys()
        assert 1 == memory.entry_impact(one)["receipts"]["total"]
        with pytest.raises(NotFound):
            other_memory.entry_impact(one)
        memory.quarantine_impact(uri, reason="r")
        assert "published" == other_memory.show_entry(theirs)["status"]
        assert [] == list(other_memory.release_impact(uri, reason="r").changed)

    def test_it_needs_the_act(self, memory: TenantMemory) -> None:
        """To look: who may audit. To put away and let out: who may govern."""
        one = record(memory)
        auditor, investigator = someone(memory, "auditor"), someone(memory, "investigator")

        assert 1 == len(auditor.entry_impact(one)["members"])
        for refused in (
            lambda: investigator.entry_impact(one),
            lambda: investigator.source_impact("https://logs.example.com/1"),
            lambda: auditor.quarantine_impact(one, reason="r"),
            lambda: auditor.release_impact(one, reason="r"),
        ):
            with pytest.raises(Forbidden):
                refused()
