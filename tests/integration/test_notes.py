"""Working notes: of one investigation, for it alone, and gone with it; and recall in layers that are kept apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grandbo.errors import Forbidden, InvalidInput, KindNotRecorded, LimitExceeded, QuotaExceeded, SubjectMissing
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory import notes
from grandbo.memory.notes import KEPT_FOR, Note, sweep_notes
from grandbo.recall.block import BAR
from grandbo.recall.budget import estimate_tokens
from grandbo.recall.layers import HEADINGS, LAYERS
from grandbo.recall.window import NOTES_NOT_MEMORY, NOTHING_NOTED, render_window
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase

TOPIC = "checkout queue stalled after the lease renewal failed"


class TestNotes:
    def test_they_are_read_back_in_their_investigation_alone(self, memory: TenantMemory) -> None:
        """In order; another investigation, and every recall, knows nothing of them."""
        first, second = (
            memory.note("INC-7", f"Maybe: {TOPIC}"),
            memory.note("INC-7", "It was the broker.", role="assistant"),
        )
        memory.embed()

        assert [first, second] == memory.notes("INC-7")
        assert [] == memory.notes("INC-8")
        for mode in ("hybrid", "words", "meaning"):
            answer = memory.query_topic(TOPIC, mode=mode)
            assert ((), 0) == (answer.matches, answer.searched.eligible)
        assert 1 == memory.verify().events

    def test_tenants_do_not_meet(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """The same id in two tenants is two investigations."""
        memory.note("INC-7", "mine")

        assert [] == other_memory.notes("INC-7")
        assert 0 == other_memory.close_investigation("INC-7")
        assert 1 == len(memory.notes("INC-7"))

    def test_nothing_comes_down_through_a_note(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Who sees fewer tiers than a note's author does not read it; the author reads what others noted."""
        low = grandbo.authenticate(make_token(memory, "investigator"))
        memory.note("INC-7", "from above")
        below = low.note("INC-7", "from below")

        assert [below] == low.notes("INC-7")
        assert 2 == len(memory.notes("INC-7"))

    def test_it_is_forgotten_when_it_is_closed(self, memory: TenantMemory) -> None:
        """At once and whole; closing it again finds nothing."""
        for number in range(3):
            memory.note("INC-7", f"note {number}")

        assert (3, 0, []) == (
            memory.close_investigation("INC-7"),
            memory.close_investigation("INC-7"),
            memory.notes("INC-7"),
        )

    def test_it_is_over_a_week_after_the_last_note(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Whether or not the sweep has run: no answer has it, its id begins anew, and the sweep removes the rest."""
        then = datetime.now(UTC) - KEPT_FOR - timedelta(hours=1)
        who = (grandbo.database, memory.tenant_id, memory.principal, memory.tenant.policy)
        notes.add_note(*who, "INC-old", "long ago", clock=lambda: then)
        notes.add_note(*who, "INC-over", "long ago", clock=lambda: then)
        notes.add_note(*who, "INC-live", "long ago", clock=lambda: then)
        notes.add_note(*who, "INC-live", "still at it", clock=lambda: then + timedelta(hours=2))

        assert ([], []) == (memory.notes("INC-old"), memory.notes("INC-over"))
        assert 2 == len(memory.notes("INC-live"))
        memory.note("INC-old", "another incident of that name")
        assert ["another incident of that name"] == [note.text for note in memory.notes("INC-old")]
        assert 1 == sweep_notes(grandbo.database, memory.tenant_id)
        assert (2, 1) == (len(memory.notes("INC-live")), len(memory.notes("INC-old")))

    @pytest.mark.parametrize("investigation", ["", " ", "a b", "-x", "x" * 129, "a\nb", None, 7])
    def test_an_id_that_is_none_is_refused(self, memory: TenantMemory, investigation: Any) -> None:
        """With what an id may hold."""
        with pytest.raises(InvalidInput):
            memory.note(investigation, "text")

    def test_what_is_no_note_is_refused(self, monkeypatch: pytest.MonkeyPatch, memory: TenantMemory) -> None:
        """Nothing, too much, another role, and one too many."""
        for text, role in (("", None), (" ", None), (None, None), ("x", "system")):
            with pytest.raises(InvalidInput):
                memory.note("INC-7", text, role=role)  # type: ignore[arg-type]
        with pytest.raises(LimitExceeded):
            memory.note("INC-7", "x" * 16_001)
        monkeypatch.setattr(notes, "NOTES_LIMIT", 2)
        memory.note("INC-7", "one")
        memory.note("INC-7", "two")
        with pytest.raises(QuotaExceeded):
            memory.note("INC-7", "three")

    def test_a_hook_reads_none(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Who may not recall may not read notes either."""
        hook = grandbo.authenticate(make_token(memory, "hook", kind="hook"))

        with pytest.raises(Forbidden):
            hook.notes("INC-7")

    @pytest.mark.parametrize(("kind", "unproposed"), [("note", KindNotRecorded), ("personal", SubjectMissing)])
    def test_they_are_no_findings(self, memory: TenantMemory, kind: str, unproposed: type[InvalidInput]) -> None:
        """Neither a note nor a memory about a person is recorded or reclassified; nor proposed, about nobody."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        with pytest.raises(KindNotRecorded):
            memory.record_finding(make_finding(kind=kind))
        with pytest.raises(unproposed):
            memory.propose(make_finding(kind=kind))
        with pytest.raises(KindNotRecorded):
            memory.reclassify(entry, kind=kind, reason="r")


class TestWindow:
    def test_the_oldest_are_dropped_first(self, memory: TenantMemory) -> None:
        """What fits is the end of the story; how much came before is said."""
        for number in range(200):
            memory.note("INC-7", f"Looked at dashboard number {number} and saw nothing of interest there.")

        window = memory.context_window("INC-7", budget=1_000)

        assert (200, True) == (window.shown + window.dropped, 5 < window.shown < 100)
        assert "number 199 " in window.text
        assert f"number {200 - window.shown} " in window.text
        assert f"number {199 - window.shown} " not in window.text
        assert f"{window.dropped} older notes are left out" in window.text
        assert NOTES_NOT_MEMORY in window.text

    def test_a_long_turn_is_clipped_with_a_mark(self, memory: TenantMemory) -> None:
        """It does not push out what led to it."""
        memory.note("INC-7", "The cause is the broker.")
        memory.note("INC-7", "log line. " * 1_500, role="tool")

        window = memory.context_window("INC-7", budget=1_000)

        assert (2, 0, 1) == (window.shown, window.dropped, window.clipped)
        assert "The cause is the broker." in window.text
        assert "(clipped: " in window.text

    def test_nothing_noted_says_so(self, memory: TenantMemory) -> None:
        """An investigation that never was is an empty one."""
        assert NOTHING_NOTED in memory.context_window("INC-never").text

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(
        st.lists(
            st.text(st.characters() | st.sampled_from("<>|\n\u200b\u202e"), min_size=1, max_size=400), max_size=12
        ),
        st.integers(200, 3_000),
    )
    def test_the_budget_holds_and_nothing_gets_out(self, texts: list[str], budget: int) -> None:
        """Whatever is noted: the estimate stays within the budget, and every stored line stands behind a bar."""
        made = [Note(new_id(), "note", "agent:x", text, datetime(2026, 1, 2, tzinfo=UTC)) for text in texts]

        window = render_window(made, budget=budget)

        lines = window.text.split("\n")
        assert estimate_tokens(window.text) <= max(budget, estimate_tokens(render_window([], budget=200).text) + 40)
        assert lines[0].startswith("<<<grandbo evidence ")
        assert lines[-1].startswith("<<<end of grandbo evidence ")
        ours = ("(note ", "(clipped: ", NOTES_NOT_MEMORY, NOTHING_NOTED)
        for line in lines[1:-1]:
            assert line.startswith((BAR, *ours)) or "left out for want of room" in line


class TestLayers:
    @pytest.fixture
    def stocked(self, memory: TenantMemory) -> dict[str, str]:
        """One entry of each layer of the organisation, and a note."""
        kinds = {"findings": "finding", "guidance": "runbook", "reference": "reference", "ruled_out": "ruled_out"}
        ids = {
            layer: str(memory.record_finding(make_finding(kind=kind)).acknowledgement.entry_id)
            for layer, kind in kinds.items()
        }
        memory.note("INC-7", "checkout queue: I am on it")
        memory.embed()
        return ids

    def test_each_gives_its_own(self, memory: TenantMemory, stocked: dict[str, str]) -> None:
        """Under its heading, in its order, and nothing of another's; the notes of the investigation alone."""
        found = memory.recall_layers(TOPIC, layers=list(LAYERS), budget=6_000, investigation_id="INC-7")

        given = {name: [str(match.entry_id) for match in answer.matches] for name, answer in found.answers.items()}
        assert {**{layer: [entry] for layer, entry in stocked.items()}, "personal": []} == given
        assert list(LAYERS) == list(found.blocks)
        places = [found.text.index(f"{name}: {HEADINGS[name]}") for name in LAYERS]
        assert sorted(places) == places
        assert "I am on it" in found.text
        assert 6_000 >= sum(block.tokens for block in found.blocks.values())

    def test_the_default_leaves_notes_and_people_out(self, memory: TenantMemory, stocked: dict[str, str]) -> None:
        """Findings, guidance and what was ruled out."""
        assert ["findings", "guidance", "ruled_out"] == list(memory.recall_layers(TOPIC).blocks)

    @pytest.mark.parametrize(
        "asked",
        [
            {"layers": []},
            {"layers": ["dreams"]},
            {"layers": ["notes"]},
            {"budget": 100},
            {"budget": 9_000},
            {"budget": True},
            {"budget": {"dreams": 500}},
            {"budget": {"findings": 100}},
        ],
    )
    def test_what_does_not_fit_is_refused(self, memory: TenantMemory, asked: dict[str, Any]) -> None:
        """With what would."""
        with pytest.raises(InvalidInput):
            memory.recall_layers(TOPIC, **asked)


class TestDoors:
    def test_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Note, read back, recall by layer, close."""
        client = client_of(grandbo, token=make_token(memory, "investigator"))
        memory.record_finding(make_finding())

        noted = client.post("/v1/investigations/INC-7/notes", json={"text": "the broker", "role": "user"})
        window = client.get("/v1/investigations/INC-7/window?budget=500").json()
        layered = client.post(
            "/v1/context", json={"topic": TOPIC, "layers": ["findings", "notes"], "investigation_id": "INC-7"}
        ).json()

        assert (201, "user") == (noted.status_code, noted.json()["role"])
        assert (1, True) == (window["shown"], "the broker" in window["text"])
        assert (1, 1) == (
            len(layered["layers"]["findings"]["answer"]["matches"]),
            layered["layers"]["notes"]["rendered"]["shown"],
        )
        assert {"investigation_id": "INC-7", "forgotten": 1} == client.delete("/v1/investigations/INC-7").json()
        for refused in (
            client.post("/v1/investigations/INC-7/notes", json={"text": 5}),
            client.post("/v1/investigations/INC-7/notes", json={"text": "x", "surprise": 1}),
            client.get("/v1/investigations/INC-7/window?budget=5"),
            client.post("/v1/context", json={"topic": TOPIC, "layers": ["dreams"]}),
            client.post("/v1/context", json={"topic": TOPIC, "kinds": ["finding"]}),
        ):
            assert 422 == refused.status_code, refused.text

    def test_cli(self, database: TestDatabase, memory: TenantMemory) -> None:
        """`note add`, `note window`, `context`, `note close`."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)
        memory.record_finding(make_finding())

        assert 0 == cli("note", "add", "INC-7", "-", stdin="the broker").code
        assert "the broker" in cli("note", "window", "INC-7").out
        assert "findings: " in cli("context", TOPIC, "--layer", "findings").out
        assert 2 == cli("context", TOPIC, "--layer", "notes").code
        assert 1 == cli("note", "close", "INC-7", "--json").document["forgotten"]
