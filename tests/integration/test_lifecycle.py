"""The life of an entry: every verb, every state, and what recall makes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, ClassVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grandbo.errors import CommandReused, Forbidden, IllegalTransition, InvalidInput, NotFound, RevisionStale
from grandbo.events.log import LOCK_HEAD, CommandContext, Event, head_of, seal_events, stream_versions
from grandbo.events.models import EntryChanged, EntryRevisionRestored, EntryUnarchived
from grandbo.events.registry import parse_body
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.lifecycle import ALLOWED, accepted
from grandbo.projections.runner import append
from grandbo.screening.hidden import hidden_pieces
from grandbo.types import STATUSES, digest_of, new_id, utc_now
from tests.support.factories import make_finding

TOPIC = "consumers lost their leases"


def _found(memory: TenantMemory, topic: str = TOPIC) -> list[UUID]:
    return [match.entry_id for match in memory.query_topic(topic, limit=20).matches]


@pytest.fixture
def entry(memory: TenantMemory) -> UUID:
    """One embedded entry."""
    entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
    memory.embed()
    return entry_id


class _UnarchivedOfBefore(EntryChanged):
    """Version 1 of the event."""

    EVENT_TYPE: ClassVar[str] = EntryUnarchived.EVENT_TYPE


def _append_as_before(memory: TenantMemory, event: Event) -> None:
    """Append an event as an earlier release wrote it, and project it as it is read now."""
    key = {"tenant_id": memory.tenant_id}
    with memory._grandbo.database.transaction("writer", memory.tenant_id) as transaction:
        head = head_of(transaction.execute(LOCK_HEAD, key))
        context = CommandContext(memory.tenant_id, memory.principal, new_id(), digest_of([]))
        versions = stream_versions(transaction, memory.tenant_id, [event.stream_id])
        (sealed,) = seal_events(context, head, [event], versions, utc_now())
        assert sealed.body is not None
        header = sealed.header
        data = parse_body(header.event_type, header.schema_version, sealed.body, position=sealed.position)
        append(transaction, [replace(sealed, data=data)])


def _act(memory: TenantMemory, verb: str, entry_id: UUID, other: UUID) -> None:
    verbs: dict[str, Any] = {
        "correct": lambda: memory.correct(entry_id, {"title": "Another title altogether"}, reason="r"),
        "restore": lambda: memory.restore(entry_id, 1, reason="r"),
        "archive": lambda: memory.archive(entry_id, reason="r"),
        "unarchive": lambda: memory.unarchive(entry_id, reason="r"),
        "dispute": lambda: memory.dispute(entry_id, reason="r"),
        "resolve": lambda: memory.resolve(entry_id, reason="r"),
        "supersede": lambda: memory.supersede(entry_id, other, reason="r"),
        "verify": lambda: memory.verify_entry(entry_id, reason="r"),
        "expire": lambda: memory.expire(entry_id, "2100-01-01", reason="r"),
        "reclassify": lambda: memory.reclassify(entry_id, reason="r", kind="decision"),
        "quarantine": lambda: memory.quarantine(entry_id, reason="r"),
        "release": lambda: memory.release(entry_id, reason="r"),
        "corroborate": lambda: memory.corroborate(
            entry_id,
            incident={"source": "pager", "id": "ANOTHER"},
            evidence=[{"type": "log", "uri": "https://logs.example.com/another"}],
        ),
        "link": lambda: memory.link(entry_id, "relates_to", other, reason="r"),
        "unlink": lambda: memory.unlink(entry_id, "relates_to", other, reason="r"),
    }
    verbs[verb]()


def _entry_in(memory: TenantMemory, status: str, other: UUID, *, disputed: bool = False, linked: bool = False) -> UUID:
    """A new entry in this state, which has an earlier revision."""
    entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
    memory.verify_entry(entry_id, reason="so that there is an earlier revision")
    into = {"archived": "archive", "superseded": "supersede", "quarantined": "quarantine"}
    verbs = [
        *(["dispute"] if disputed else []),
        *(["link"] if linked else []),
        *([into[status]] if status in into else []),
    ]
    for verb in verbs:
        _act(memory, verb, entry_id, other)
    return entry_id


class TestTable:
    @pytest.mark.parametrize("verb", sorted(ALLOWED))
    def test_each_state_accepts_what_the_table_says_and_refuses_the_rest_by_name(
        self, memory: TenantMemory, verb: str
    ) -> None:
        """Disputed or not, for a reviewer; a verb that is refused is told those that are not, and writes nothing."""
        reviewer = memory._grandbo.authenticate(memory.create_key("rev", "human", ("reviewer",))[1])
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        for status, disputed in product(STATUSES, (False, True)):
            entry = _entry_in(memory, status, other, disputed=disputed, linked=verb == "unlink")
            possible = accepted(status, disputed=disputed)
            before = memory.head_position()

            if verb in possible:
                _act(reviewer, verb, entry, other)
            else:
                with pytest.raises(IllegalTransition, match=", ".join(possible)) as caught:
                    _act(reviewer, verb, entry, other)
                assert (status, possible) == (caught.value.details["entry_status"], caught.value.details["allowed"])
            assert before + (verb in possible) == memory.head_position(), (status, disputed)
        assert memory.check_rebuild().ok

    def test_only_who_governs_may_change_an_entry(self, memory: TenantMemory) -> None:
        """Every other role is told which may, whatever the state."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        entries = [_entry_in(memory, status, other) for status in STATUSES]
        before = memory.head_position()
        for role in ("auditor", "investigator", "companion", "hook"):
            caller = memory._grandbo.authenticate(memory.create_key(role, "agent", (role,))[1])
            for verb, entry in product(ALLOWED, entries):
                with pytest.raises(Forbidden, match="admin, reviewer"):
                    _act(caller, verb, entry, other)

        assert before == memory.head_position()

    def test_a_stale_wish_names_both_revisions(self, memory: TenantMemory, entry: UUID) -> None:
        """In its message too: on the command line nothing else is read."""
        with pytest.raises(RevisionStale, match="on revision 7, and the entry is at 1") as caught:
            memory.archive(entry, reason="r", expected_revision=7)
        assert (7, 1) == (caught.value.details["expected"], caught.value.details["current"])

    def test_an_entry_above_one_s_tiers_is_as_absent_as_none(self, memory: TenantMemory) -> None:
        """A reviewer who does not see the tier gets the very answer that he gets for an id that never was."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        reviewer = memory._grandbo.authenticate(memory.create_key("rev", "human", ("reviewer",))[1])
        refusals = []
        for entry_id in (hidden, UUID(int=7)):
            with pytest.raises(NotFound) as caught:
                reviewer.archive(entry_id, reason="r")
            refusals.append(caught.value.as_dict())

        assert refusals[0] == refusals[1]


class TestCorrect:
    def test_it_answers_for_the_new_text_and_not_for_the_old_one(self, memory: TenantMemory, entry: UUID) -> None:
        """From the next statement on, the old words find nothing, the old vector is gone, the new words find it."""
        memory.correct(
            entry,
            {"title": "Zookeeper quorum broke", "summary": "Fsync stalls", "body": "Slow disks", "tags": ["zookeeper"]},
            reason="wrong incident",
        )

        assert () == memory.query_topic(TOPIC, mode="meaning").matches
        assert [entry] == _found(memory, "zookeeper quorum")
        assert 1 == memory.backlog().pending
        memory.embed()
        assert [entry] == [m.entry_id for m in memory.query_topic("zookeeper quorum broke", mode="meaning").matches]

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        changes=st.fixed_dictionaries(
            {},
            optional={
                "title": st.sampled_from(["One title", "Another title"]),
                # What the screen takes out of a text is another test's.
                "summary": st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20).filter(
                    lambda text: not any(hidden_pieces(text))
                ),
                "body": st.sampled_from(["", "A body", "Another body"]),
                "service": st.sampled_from(["", "checkout", "billing"]),
                "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True),
                "confidence_bp": st.integers(0, 10_000),
                "occurred_at": st.sampled_from(["2020", "2021-02-03", "2022-01-01T00:00:00Z"]),
            },
        )
    )
    def test_it_replaces_what_it_names_and_keeps_all_else(self, memory: TenantMemory, changes: dict[str, Any]) -> None:
        """Whatever fields a correction names, every other one is exactly what it was."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        before = memory.show_entry(entry_id)
        if not changes:
            with pytest.raises(InvalidInput):
                memory.correct(entry_id, changes, reason="r")
            return
        memory.correct(entry_id, changes, reason="r")
        after = memory.show_entry(entry_id)

        moved = {"revision", "position", "changed_at", "occurred_precision", "trust_bp"} | set(changes)
        assert {k: v for k, v in before.items() if k not in moved} == {k: v for k, v in after.items() if k not in moved}
        for name in set(changes) - {"occurred_at"}:
            assert changes[name] == after[name]

    def test_one_that_changes_nothing_appends_nothing(self, memory: TenantMemory, entry: UUID) -> None:
        """The text that is there already is no event."""
        head = memory.verify().head

        changed = memory.correct(entry, {"service": "checkout"}, reason="r")

        assert (False, head) == (changed.appended, memory.verify().head)

    def test_a_stale_one_is_refused_with_both_revisions(self, memory: TenantMemory, entry: UUID) -> None:
        """Who decided on an old revision is shown both; a vector that arrived does not make it stale."""
        memory.correct(entry, {"service": "billing"}, reason="r", expected_revision=1)
        memory.embed()
        with pytest.raises(RevisionStale) as caught:
            memory.correct(entry, {"service": "search"}, reason="r", expected_revision=1)

        assert {"expected": 1, "current": 2} == caught.value.details
        assert memory.correct(entry, {"service": "search"}, reason="r", expected_revision=2).appended

    def test_the_same_command_again_is_the_first_acknowledgement(self, memory: TenantMemory, entry: UUID) -> None:
        """A retry writes nothing; the id with another wish is refused."""
        command_id = UUID(int=5)
        first = memory.archive(entry, reason="r", command_id=command_id)
        again = memory.archive(entry, reason="r", command_id=command_id)

        assert (first.acknowledgement, True) == (again.acknowledgement, again.replayed)
        with pytest.raises(CommandReused):
            memory.unarchive(entry, reason="r", command_id=command_id)


class TestRestore:
    def test_a_restore_of_an_archived_entry_stays_archived(self, memory: TenantMemory, entry: UUID) -> None:
        """Text comes back as a new revision; the status does not, whatever it was at that revision."""
        memory.correct(entry, {"title": "A worse title"}, reason="r")
        memory.archive(entry, reason="r")
        title = memory.show_entry(entry)["title"]

        memory.restore(entry, 1, reason="it was right")
        after = memory.show_entry(entry)

        assert ("A worse title", "archived", 4) == (title, after["status"], after["revision"])
        assert "A worse title" != after["title"]
        assert [] == _found(memory)

    def test_a_preview_writes_nothing(self, memory: TenantMemory, entry: UUID) -> None:
        """What a restore would do is shown first."""
        memory.correct(entry, {"title": "A worse title"}, reason="r")
        head = memory.verify().head

        state, would = memory.preview(memory.restore_wish(entry, 1, reason="r"))

        assert isinstance(would, EntryRevisionRestored)
        assert ("A worse title", 3) == (state.title, would.revision)
        assert head == memory.verify().head

    def test_the_current_revision_and_one_that_never_was_are_refused(self, memory: TenantMemory, entry: UUID) -> None:
        """Only an earlier revision can come back."""
        with pytest.raises(InvalidInput):
            memory.restore(entry, 1, reason="r")
        with pytest.raises(NotFound):
            memory.restore(entry, 9, reason="r")

    def test_text_from_a_higher_tier_does_not_come_down_by_a_restore(self, memory: TenantMemory) -> None:
        """A revision from when the entry stood above the caller's tiers is as absent to him as one that never was."""
        entry = memory.record_finding(
            make_finding(title="The secret title", visibility="admin")
        ).acknowledgement.entry_id
        memory.correct(entry, {"title": "A harmless title"}, reason="r")
        memory.reclassify(entry, reason="r", visibility="team")
        reviewer = memory._grandbo.authenticate(memory.create_key("rev", "human", ("reviewer",))[1])

        with pytest.raises(NotFound) as hidden:
            reviewer.restore(entry, 1, reason="r")
        with pytest.raises(NotFound) as never:
            reviewer.restore(entry, 9, reason="r")
        assert hidden.value.code == never.value.code
        assert "A harmless title" == reviewer.show_entry(entry)["title"]


class TestRecall:
    def test_what_is_put_away_is_not_recalled_until_it_is_back(self, memory: TenantMemory, entry: UUID) -> None:
        """Archived and quarantined entries leave every answer, and return with what undoes it."""
        seen = [_found(memory)]
        for verb in ("archive", "unarchive", "quarantine", "release"):
            _act(memory, verb, entry, entry)
            seen.append(_found(memory))

        assert [[entry], [], [entry], [], [entry]] == seen

    def test_a_release_gives_back_the_status_of_before(self, memory: TenantMemory, entry: UUID) -> None:
        """An archived entry that was quarantined is archived again, not published."""
        memory.archive(entry, reason="r")
        memory.quarantine(entry, reason="r")
        memory.release(entry, reason="r")

        assert "archived" == memory.show_entry(entry)["status"]

    def test_a_superseded_entry_makes_way(self, memory: TenantMemory, entry: UUID) -> None:
        """Recall gives the entry that took its place."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.supersede(entry, other, reason="r")

        assert [other] == _found(memory)
        assert str(other) == memory.show_entry(entry)["superseded_by"]

    def test_one_that_is_let_out_again_is_superseded_no_longer(self, memory: TenantMemory, entry: UUID) -> None:
        """As long as it is put away it still is, and the past keeps by what."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.supersede(entry, other, reason="r")
        memory.archive(entry, reason="r")
        put_away = memory.head_position()
        memory.unarchive(entry, reason="r")

        assert {entry, other} == set(_found(memory))
        assert str(other) == memory.show_entry(entry, as_of_position=put_away)["superseded_by"]
        assert memory.show_entry(entry)["superseded_by"] is None
        assert memory.check_rebuild().ok
        assert memory.check_rebuild(until=put_away).ok

    def test_one_that_was_let_out_before_that_was_said_stays_as_it_was(self, memory: TenantMemory, entry: UUID) -> None:
        """Version 1 of the event left it called superseded, and a replay gives just that."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.supersede(entry, other, reason="r")
        memory.archive(entry, reason="r")
        _append_as_before(memory, Event(entry, _UnarchivedOfBefore(revision=4, reason="r")))

        shown = memory.show_entry(entry)
        assert ("published", str(other)) == (shown["status"], shown["superseded_by"])
        assert memory.check_rebuild().ok
        assert memory.verify().first_bad is None
        memory.archive(entry, reason="r")
        memory.unarchive(entry, reason="r")
        assert memory.show_entry(entry)["superseded_by"] is None

    def test_a_disputed_entry_comes_labelled_with_the_other_side(self, memory: TenantMemory, entry: UUID) -> None:
        """It is still recalled, and says that it is disputed and by what."""
        other = memory.record_finding(make_finding(title="Nothing was wrong at all")).acknowledgement.entry_id
        memory.dispute(entry, reason="r", other=other)
        labelled = {m.entry_id: (m.disputed, m.disputed_with) for m in memory.query_topic(TOPIC).matches}
        memory.resolve(entry, reason="r")
        settled = {m.entry_id: m.disputed for m in memory.query_topic(TOPIC).matches}

        assert (True, other) == labelled[entry]
        assert not settled[entry]

    def test_the_other_side_is_named_only_to_those_who_see_its_tier(self, memory: TenantMemory, entry: UUID) -> None:
        """A dispute with an entry of a higher tier shows below it as a dispute, and with what is not shown."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        memory.dispute(entry, reason="r", other=hidden)
        reviewer = memory._grandbo.authenticate(memory.create_key("rev", "human", ("reviewer",))[1])

        seen = {m.entry_id: (m.disputed, m.disputed_with) for m in memory.query_topic(TOPIC).matches}
        below = {m.entry_id: (m.disputed, m.disputed_with) for m in reviewer.query_topic(TOPIC).matches}
        shown = (reviewer.show_entry(entry)["disputed_with"], reviewer.history(entry)[-1]["state"]["disputed_with"])

        assert ((True, hidden), (True, None)) == (seen[entry], below[entry])
        assert (None, None) == shown

    def test_an_expiry_that_passed_ends_it(self, memory: TenantMemory, entry: UUID) -> None:
        """An entry that expired is out of scope, and a later expiry brings it back."""
        memory.expire(entry, "2026-02-01", reason="r")
        gone = _found(memory)
        memory.expire(entry, "2100-01-01", reason="r")

        assert ([], [entry]) == (gone, _found(memory))

    def test_a_higher_tier_hides_it_from_lower_ones(self, memory: TenantMemory, entry: UUID) -> None:
        """A reclassified entry is found by those who see its new tier, by both signals, and by no one else."""
        memory.reclassify(entry, reason="r", visibility="admin")
        low = memory._grandbo.authenticate(memory.create_key("low", "agent", ("investigator",))[1])

        assert [entry] == _found(memory)
        assert "nothing_in_scope" == low.query_topic(TOPIC).searched.empty_reason
        memory.reclassify(entry, reason="r", visibility="team")
        assert [entry] == [match.entry_id for match in low.query_topic(TOPIC, mode="words").matches]
        assert [entry] == [match.entry_id for match in low.query_topic(TOPIC, mode="meaning").matches]


class TestLinks:
    def test_a_link_is_seen_from_both_ends_and_gone_when_it_is_taken_away(
        self, memory: TenantMemory, entry: UUID
    ) -> None:
        """It makes no revision; a second one like it appends nothing, nor does taking away what is not there."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        linked = memory.link(entry, "caused_by", other, reason="same broker")
        again = memory.link(entry, "caused_by", other, reason="same broker")
        seen = [memory.show_entry(one)["links"] for one in (entry, other)]
        gone = memory.unlink(entry, "caused_by", other, reason="it was not")
        never = memory.unlink(entry, "caused_by", other, reason="it was not")

        assert (1, True, False) == (linked.acknowledgement.revision, linked.appended, again.appended)
        assert [("to", str(other)), ("from", str(entry))] == [(ls[0]["direction"], ls[0]["entry_id"]) for ls in seen]
        assert (True, False) == (gone.appended, never.appended)
        assert [] == memory.show_entry(entry)["links"]
        assert memory.check_rebuild().ok

    def test_a_link_to_what_the_reader_may_not_see_is_not_there(self, memory: TenantMemory, entry: UUID) -> None:
        """The far end's tier decides who sees a link, and who can make one."""
        hidden = memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id
        memory.link(entry, "contradicts", hidden, reason="r")
        reviewer = memory._grandbo.authenticate(memory.create_key("rev", "human", ("reviewer",))[1])

        assert [] == reviewer.show_entry(entry)["links"]
        with pytest.raises(NotFound):
            reviewer.link(entry, "relates_to", hidden, reason="r")

    @pytest.mark.parametrize("link_type", ["", "causes", "CAUSED_BY"])
    def test_an_unknown_type_and_a_link_to_itself_are_refused(
        self, memory: TenantMemory, entry: UUID, link_type: str
    ) -> None:
        """The error names the types."""
        other = memory.record_finding(make_finding()).acknowledgement.entry_id
        with pytest.raises(InvalidInput, match="mitigated_by"):
            memory.link(entry, link_type, other, reason="r")
        with pytest.raises(InvalidInput, match="itself"):
            memory.link(entry, "relates_to", entry, reason="r")


class TestHistory:
    def test_it_names_who_what_when_and_why(self, memory: TenantMemory, entry: UUID) -> None:
        """Each revision says by which event it came to be, by whom, and for what reason."""
        memory.correct(entry, {"title": "A better title"}, reason="typo")
        memory.archive(entry, reason="old")

        history = memory.history(entry)

        assert ["entry_recorded", "entry_corrected", "entry_archived"] == [item["event_type"] for item in history]
        assert [None, "typo", "old"] == [item["reason"] for item in history]
        assert {memory.principal.ref} == {item["principal"] for item in history}
        assert [1, 2, 3] == [item["revision"] for item in history]


_verbs = st.lists(st.tuples(st.sampled_from([*sorted(ALLOWED), "embed"]), st.integers(0, 2)), min_size=1, max_size=14)


class TestRandomLives:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=_verbs)
    def test_rebuild_equals_live_after_every_step(self, grandbo: Grandbo, steps: list[tuple[str, int]]) -> None:
        """Whatever is done to three entries in whatever order, a replay gives the same rows."""
        import uuid

        name = f"l-{uuid.uuid4().hex[:12]}"
        grandbo.create_tenant(name)
        memory = grandbo.tenant(name, principal="human:tester")
        ids = [memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(3)]
        for verb, which in steps:
            if verb == "embed":
                memory.embed()
                continue
            try:
                _act(memory, verb, ids[which], ids[(which + 1) % 3])
            except (IllegalTransition, InvalidInput):
                continue
            assert memory.check_rebuild().ok
        assert memory.verify().first_bad is None
