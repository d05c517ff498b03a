"""A delivery that speaks of somebody: it waits for a person to say of whom, and nothing of it is lost or recalled."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.errors import IllegalTransition, InvalidInput, NotFound, SubjectErased
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage.embedded.install import find_install
from tests.support.cli import Cli
from tests.support.hooks import CAUSE, Tool, make_tool
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

TRAIT = "This engineer tends to skip the checklist."
ZOE = "zoe@example.com"
WORD = "Quixelbrand"


@pytest.fixture
def zoe(memory: TenantMemory) -> UUID:
    """The subject that it will be about."""
    return memory.register_subject("person", ZOE, "Zoë Nakamura").subject.subject_id


@pytest.fixture
def tool(grandbo: Grandbo, memory: TenantMemory) -> Tool:
    """A tool whose deliveries become candidates."""
    return make_tool(grandbo, memory)


def delivery_id(told: dict[str, Any]) -> UUID:
    """Of what came of a delivery."""
    return UUID(told["delivery_id"])


class TestWithoutASubject:
    def test_it_rests_where_it_is_seen_with_the_reason_and_what_to_do(self, tool: Tool) -> None:
        """Dead, counted, with its body; not one word of it is recalled, proposed or in the log."""
        told = tool.told("resolved", summary=TRAIT, cause=CAUSE)

        assert ["dead", "subject_missing", True] == [told[name] for name in ("state", "error_code", "has_body")]
        assert "speaks of a person: name the subject" in told["note"]
        assert "grandbo inbox retry ID --subject SUBJECT" in told["note"]
        assert "checklist" not in told["note"]
        assert [told["delivery_id"]] == [item["delivery_id"] for item in tool.memory.inbox(state="dead")["deliveries"]]
        assert [] == tool.memory.candidates()
        assert () == tool.memory.query_topic("which engineer tends to skip the checklist", mode="words").matches
        assert "checklist" not in json.dumps(list(tool.memory.events(bodies=True)))

    def test_the_other_deliveries_go_on(self, tool: Tool) -> None:
        """Those of other incidents, and what is told of the same one without speaking of anybody."""
        tool.told("resolved", summary=TRAIT)
        other = tool.told("resolved", "INC-2")
        later = tool.told("resolved", summary="The checklist was long.", cause=CAUSE)

        assert ["mapped", "proposed"] == [other["state"], other["outcome"]]
        assert ["mapped", "proposed"] == [later["state"], later["outcome"]]

    def test_mapped_again_as_it_is_it_rests_again(self, tool: Tool, zoe: UUID) -> None:
        """The same reason; a subject that is not there, or that was erased, is refused at once."""
        told = tool.told("resolved", summary=TRAIT)
        tool.memory.retry_delivery(delivery_id(told))
        tool.memory.map_deliveries()
        gone = tool.memory.register_subject("person", "gone@example.com", "Gone").subject.subject_id
        tool.memory.forget_subject(gone, "request")

        assert "subject_missing" == tool.memory.delivery(delivery_id(told))["error_code"]
        for subject, error in (("nobody@example.com", NotFound), (gone, SubjectErased), ("", InvalidInput)):
            with pytest.raises(error):
                tool.memory.retry_delivery(delivery_id(told), subject=subject)
        assert "dead" == tool.memory.delivery(delivery_id(told))["state"]
        tool.memory.drop_delivery(delivery_id(told))
        with pytest.raises(IllegalTransition):
            tool.memory.retry_delivery(delivery_id(told), subject=ZOE)


class TestNamed:
    def test_it_is_proposed_about_its_subject(self, tool: Tool, zoe: UUID) -> None:
        """Sealed, in the queue with whom it is about; approved it is found, and held; the rebuild is equal."""
        told = tool.told("resolved", summary=TRAIT, cause=CAUSE)
        again = tool.memory.retry_delivery(delivery_id(told), subject=ZOE)
        tool.memory.map_deliveries()
        now = tool.memory.delivery(delivery_id(told))
        (waiting,) = tool.memory.candidates()

        assert ["received", str(zoe)] == [again["state"], again["subject_id"]]
        assert ["mapped", None, "proposed"] == [now["state"], now["error_code"], now["outcomes"][0]["outcome"]]
        assert [str(zoe), True] == [waiting["subject_id"], "screen_personal" in waiting["flags"]]
        assert "checklist" not in json.dumps(list(tool.memory.events(bodies=True)))
        entry = tool.memory.approve_candidate(UUID(waiting["candidate_id"]), reason="seen").entry_id
        assert [str(entry)] == [item["entry_id"] for item in tool.memory.held(zoe)["entries"]]
        assert [] == tool.memory.check_rebuild().differences

    def test_what_is_told_later_is_about_the_same(self, tool: Tool, zoe: UUID) -> None:
        """It amends the proposal, and corrects the entry that comes of it, without anybody naming it again."""
        told = tool.told("resolved", summary=TRAIT)
        tool.memory.retry_delivery(delivery_id(told), subject=zoe)
        tool.memory.map_deliveries()
        amended = tool.told("updated", summary=f"{TRAIT} Twice.", cause=CAUSE)
        (waiting,) = tool.memory.candidates()
        entry = tool.memory.approve_candidate(UUID(waiting["candidate_id"]), reason="seen").entry_id
        corrected = tool.told("updated", summary=f"{TRAIT} Three times.", cause=CAUSE)

        assert ["amended", "correction_proposed"] == [amended["outcome"], corrected["outcome"]]
        (correction,) = tool.memory.candidates()
        assert [str(zoe), str(entry)] == [correction["subject_id"], correction["into"]]

    def test_what_was_proposed_before_about_nobody_is_proposed_anew(self, tool: Tool, zoe: UUID) -> None:
        """The one that waits in the clear is withdrawn; its place is taken by one that is sealed."""
        before = tool.told("resolved")
        told = tool.told("updated", summary=TRAIT)
        assert "subject_missing" == told["error_code"]
        tool.memory.retry_delivery(delivery_id(told), subject=zoe)
        tool.memory.map_deliveries()
        (waiting,) = tool.memory.candidates()

        assert [str(zoe), True] == [waiting["subject_id"], waiting["candidate_id"] != before["candidate_id"]]
        assert "withdrawn" == tool.memory.candidate(UUID(before["candidate_id"]))["status"]

    def test_an_entry_that_names_nobody_is_left_alone(self, grandbo: Grandbo, memory: TenantMemory, zoe: UUID) -> None:
        """What is about somebody does not go into it: it is an entry of its own, recorded by a trusted hook."""
        tool = make_tool(grandbo, memory, direct=True)
        recorded = tool.told("resolved", cause=CAUSE)
        told = tool.told("updated", summary=TRAIT, cause=CAUSE)
        memory.retry_delivery(delivery_id(told), subject=zoe)
        memory.map_deliveries()
        now = memory.delivery(delivery_id(told))["outcomes"][0]

        assert ["recorded", "subject_missing", "recorded"] == [recorded["outcome"], told["error_code"], now["outcome"]]
        assert recorded["entry_id"] != now["entry_id"]
        assert "checklist" not in json.dumps(memory.show_entry(UUID(recorded["entry_id"])))
        assert [now["entry_id"]] == [item["entry_id"] for item in memory.held(zoe)["entries"]]

    def test_mapped_twice_and_at_its_leisure_it_comes_to_the_same(self, tool: Tool, zoe: UUID) -> None:
        """Named again it is one proposal."""
        told = tool.told("resolved", summary=TRAIT)
        for _ in range(2):
            tool.memory.retry_delivery(delivery_id(told), subject=zoe)
            tool.memory.map_deliveries()

        assert 1 == len(tool.memory.candidates())


class TestForgotten:
    @pytest.mark.parametrize("how", ["mapped", "waiting", "proposed before"])
    def test_it_goes_with_its_subject(self, clone: TestDatabase, tmp_path: Path, how: str) -> None:
        """The delivery that was named, mapped or not yet, and what was proposed of it in the clear before."""
        with Grandbo.open(settings=clone.settings(home=tmp_path / "home"), embedder=words_embedder()) as opened:
            opened.create_tenant("acme")
            memory = opened.tenant("acme", principal="human:admin")
            memory.register_subject("person", ZOE, "Zoë")
            tool = make_tool(opened, memory)
            said = f"{WORD} was on call." if how == "proposed before" else f"{TRAIT} So says {WORD}."
            told = tool.told("resolved", summary=said)
            assert (how == "proposed before") == (told["state"] == "mapped")
            memory.retry_delivery(delivery_id(told), subject=ZOE)
            assert [told["delivery_id"]] == [item["delivery_id"] for item in memory.held(ZOE)["deliveries"]]
            if how != "waiting":
                memory.map_deliveries()
            dump = [str(find_install() / "bin" / "pg_dump"), clone.admin]
            before = subprocess.run(dump, check=True, capture_output=True).stdout.lower()
            done = memory.forget_subject(ZOE, "request")
            after = subprocess.run(dump, check=True, capture_output=True).stdout.lower()
            memory.map_deliveries()

            words = (WORD.lower().encode(), WORD.encode().hex().encode())
            assert any(word in before for word in words)
            assert not any(word in after for word in words)
            assert done.outcome is not None
            assert 1 == done.outcome["rows_removed"]["deliveries"]
            assert [] == memory.candidates()
            assert [] == memory.check_rebuild().differences


class TestDoors:
    def test_at_the_command_line(self, database: TestDatabase, tool: Tool, zoe: UUID) -> None:
        """The list says why, and the retry takes the subject."""
        told = tool.told("resolved", summary=TRAIT)
        cli = Cli(
            GRANDBO_DATABASE_URL=database.service,
            GRANDBO_EMBEDDER="none",
            GRANDBO_TENANT=tool.memory.tenant.name,
            GRANDBO_HOME=str(tool.grandbo.settings.home),
        )
        listed = cli("inbox", "list", "--state", "dead")
        done = cli("inbox", "retry", told["delivery_id"], "--subject", ZOE, "--now", "--json").document

        assert "subject_missing" in listed.out
        assert ["mapped", str(zoe)] == [done["state"], done["subject_id"]]

    def test_over_http_and_on_the_page(self, grandbo: Grandbo, tool: Tool, zoe: UUID) -> None:
        """The reference stands in the body, in no address; the page asks of whom."""
        told = tool.told("resolved", summary=TRAIT)
        other = tool.told("resolved", "INC-2", summary=TRAIT)
        client = client_of(grandbo, token=make_token(tool.memory, "admin", kind="human"))
        path = f"/v1/inbox/{told['delivery_id']}/subject"

        assert [404, 422, 422] == [
            client.post(path, json=body).status_code for body in ({"subject": "nobody"}, {"subject": 7}, {})
        ]
        done = client.post(path, json={"subject": ZOE})
        assert [200, str(zoe), "received"] == [done.status_code, done.json()["subject_id"], done.json()["state"]]
        page = client.get(f"/inbox/{other['delivery_id']}").text
        assert "About whom" in page
        form = {"subject": ZOE}
        sent = client.post(
            f"/inbox/{other['delivery_id']}/retry",
            data=form,
            headers={"Origin": "http://127.0.0.1"},
            follow_redirects=False,
        )
        assert 303 == sent.status_code
        assert 2 == tool.memory.map_deliveries().mapped
