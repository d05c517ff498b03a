"""Recall as of a moment: exactly what was answered then, to whom, and what lies between then and today."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest

from grandbo.errors import Forbidden, InvalidInput, MomentUnknown
from grandbo.library import TenantMemory
from tests.support.factories import make_finding
from tests.support.histories import History, told

TOPIC = "consumers lost their leases after the broker restarted"


def as_role(memory: TenantMemory, role: str) -> TenantMemory:
    """The same tenant, seen by someone with one role."""
    token = memory.create_key(f"{role}-{uuid.uuid4().hex[:6]}", "human", (role,))[1]
    return memory._grandbo.authenticate(token)


def grown(memory: TenantMemory, seed: int, steps: int, recalls: int) -> History:
    """A random history with two askers."""
    history = History(memory, {role: as_role(memory, role) for role in ("investigator", "admin")}, seed)
    history.grow(steps, recalls)
    return history


def check_exact(auditor: TenantMemory, history: History) -> int:
    """Ask each recall again as of its position and instant; give how many matches were compared."""
    compared = 0
    for asked in history.asked:
        again = auditor.query_topic(
            **asked.question,
            as_of_position=asked.answer.position,
            valid_at=asked.answer.instant,
            as_role=asked.role,
        )
        assert told(asked.answer) == told(again), asked.question
        compared += len(again.matches)
    return compared


def ids(answer: Any) -> list[uuid.UUID]:
    """The ids of an answer, in order."""
    return [match.entry_id for match in answer.matches]


@pytest.fixture
def entry(memory: TenantMemory) -> uuid.UUID:
    """One embedded entry."""
    entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
    memory.embed()
    return entry_id


class TestExact:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_every_answer_comes_again_as_of_its_moment(self, memory: TenantMemory, seed: int) -> None:
        """Ids, order, ranks, terms, distances, scores, labels and counts of random recalls in a random history."""
        history = grown(memory, seed, steps=160, recalls=160)

        assert check_exact(as_role(memory, "auditor"), history) > 200

    def test_a_rebuild_changes_no_answer_of_the_past(self, memory: TenantMemory) -> None:
        """The past is in the log: rows made anew from it give the same answers."""
        history = grown(memory, 3, steps=60, recalls=40)
        memory.rebuild()

        assert check_exact(memory, history) > 40

    @pytest.mark.campaign
    @pytest.mark.parametrize("seed", range(10, 16))
    def test_campaign(self, memory: TenantMemory, seed: int) -> None:
        """Several thousand recalls."""
        history = grown(memory, seed, steps=700, recalls=1_000)

        assert check_exact(as_role(memory, "auditor"), history) > 2_000


class TestMoment:
    def test_what_was_known_at_a_position(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Before a correction and an archive the entry is as it was, and cited as that revision."""
        before = memory.query_topic(TOPIC)
        memory.correct(entry, {"title": "Something else entirely"}, reason="r")
        memory.archive(entry, reason="r")

        answer = memory.query_topic(TOPIC, as_of_position=before.position)

        assert told(before)["matches"] == told(answer)["matches"]
        assert [] == ids(memory.query_topic(TOPIC))
        recorded = datetime.fromisoformat(memory.history(entry)[0]["at"])
        assert before.position == answer.position
        assert recorded <= answer.instant < before.instant

    def test_what_was_known_at_a_time(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """The last position recorded by then, also where the time is written in another zone."""
        before = memory.query_topic(TOPIC)
        memory.archive(entry, reason="r")
        for _ in range(5):
            memory.record_finding(make_finding())
        archived = datetime.fromisoformat(memory.history(entry)[1]["at"])
        just_before = archived - timedelta(microseconds=1)

        assert before.position == memory.query_topic(TOPIC, as_of=just_before).position
        assert before.position + 1 == memory.query_topic(TOPIC, as_of=archived).position
        # Two spellings of one instant, on either side of the hour that a clock change repeats.
        spelled = [f"{archived + shift:%Y-%m-%dT%H:%M:%S.%f}{zone}"
                   for shift, zone in ((timedelta(hours=2), "+02:00"), (timedelta(hours=1), "+01:00"))]  # fmt: skip
        assert [before.position + 1] * 2 == [memory.query_topic(TOPIC, as_of=text).position for text in spelled]
        assert before.position + 6 == memory.query_topic(TOPIC, as_of="2999-01-01T00:00:00Z").position

    def test_what_was_valid_at_an_instant(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Knowledge and validity are asked for apart: what is known now of what was valid then."""
        memory.expire(entry, "2026-03-01", reason="r")

        assert [] == ids(memory.query_topic(TOPIC))
        answer = memory.query_topic(TOPIC, valid_at="2026-02-28T23:59:59Z", as_of_position=memory.verify().head)
        assert "2026-02-28T23:59:59+00:00" == answer.instant.isoformat()

    @pytest.mark.parametrize("position", [0, -1, 999_999, 10**30])
    def test_a_position_that_the_log_does_not_have(self, memory: TenantMemory, position: int) -> None:
        """The error says which there are; positions of other tenants are none."""
        with pytest.raises(MomentUnknown, match=r"the positions 1 to 1\."):
            memory.query_topic(TOPIC, as_of_position=position)

    def test_a_time_before_the_log(self, memory: TenantMemory) -> None:
        """The error says when the log begins."""
        with pytest.raises(MomentUnknown, match="begins at"):
            memory.query_topic(TOPIC, as_of="1999-12-31T23:59:59Z")

    @pytest.mark.parametrize("field", ["as_of", "valid_at"])
    @pytest.mark.parametrize(
        "time",
        ["2026-03-29T02:30:00", "2026-03-29", "yesterday", "2016-12-30T23:59:60Z", 5, datetime(2026, 3, 29)],  # noqa: DTZ001
    )
    def test_a_time_that_names_no_instant(self, memory: TenantMemory, field: str, time: Any) -> None:
        """Without a zone, or no time at all: refused with the form that is wanted."""
        with pytest.raises(InvalidInput, match="RFC 3339 with a zone, such as"):
            memory.query_topic(TOPIC, **{field: time})

    @pytest.mark.parametrize(
        "wanted",
        [
            {"as_of_position": 1, "as_of": "2026-01-01T00:00:00Z"},
            {"as_of_position": "1"},
            {"as_of_position": True},
            {"as_role": "hook"},
            {"as_role": "nobody"},
            {"statuses": ["gone"]},
        ],
    )
    def test_what_does_not_fit(self, memory: TenantMemory, wanted: dict[str, Any]) -> None:
        """Refused with what is allowed."""
        with pytest.raises(InvalidInput, match=r"not both|whole number|must be one of"):
            memory.query_topic(TOPIC, **wanted)


class TestPermission:
    @pytest.mark.parametrize(
        "wanted",
        [
            {"as_of_position": 1},
            {"as_of": "2999-01-01T00:00:00Z"},
            {"valid_at": "2026-01-01T00:00:00Z"},
            {"as_role": "admin"},
        ],
    )
    def test_the_past_needs_who_may_audit(self, memory: TenantMemory, wanted: dict[str, Any]) -> None:
        """An investigator asks as himself, now."""
        with pytest.raises(Forbidden, match="admin, auditor, reviewer"):
            as_role(memory, "investigator").query_topic(TOPIC, **wanted)

    def test_another_role_never_shows_more_than_the_caller_s(self, memory: TenantMemory) -> None:
        """A reviewer who asks as an admin sees his own tiers; nothing above them is counted either."""
        memory.record_finding(make_finding(visibility="admin"))
        reviewer = as_role(memory, "reviewer")

        assert 0 == reviewer.query_topic(TOPIC, as_role="admin").searched.eligible
        assert 1 == memory.query_topic(TOPIC, as_role="admin").searched.eligible
        assert 0 == memory.query_topic(TOPIC, as_role="reviewer").searched.eligible

    def test_what_was_raised_above_the_caller_is_gone_from_the_past_too(
        self, memory: TenantMemory, entry: uuid.UUID
    ) -> None:
        """It was for all to see then; who may not see it now does not see it as of then."""
        position = memory.query_topic(TOPIC).position
        memory.reclassify(entry, reason="r", visibility="admin")

        hidden = as_role(memory, "reviewer").query_topic(TOPIC, as_of_position=position)
        seen = memory.query_topic(TOPIC, as_of_position=position, as_role="reviewer")

        assert ("nothing_in_scope", 0) == (hidden.searched.empty_reason, hidden.searched.eligible)
        assert [entry] == ids(seen)


class TestStatuses:
    @pytest.mark.parametrize(
        ("verb", "status"), [("archive", "archived"), ("quarantine", "quarantined"), ("supersede", "superseded")]
    )
    def test_what_was_put_away_is_found_by_name(
        self, memory: TenantMemory, entry: uuid.UUID, verb: str, status: str
    ) -> None:
        """By both signals, with its status; still only in the caller's tiers."""
        hidden, other = (
            memory.record_finding(make_finding(visibility="admin")).acknowledgement.entry_id for _ in range(2)
        )
        memory.embed()
        more = (other,) if verb == "supersede" else ()
        for one in (entry, hidden):
            getattr(memory, verb)(one, *more, reason="r")
        # What is in quarantine is asked for by who may audit alone.
        low = as_role(memory, "auditor" if status == "quarantined" else "investigator")
        memory.change_policy({"roles": {"auditor": ["team", "operations", "tech"]}}, reason="not all tiers")

        for mode in ("words", "meaning"):
            (match,) = low.query_topic(TOPIC, statuses=[status], mode=mode).matches
            assert (entry, status) == (match.entry_id, match.status)
        assert [] == ids(low.query_topic(TOPIC))
        assert {entry, hidden} == set(ids(memory.query_topic(TOPIC, statuses=[status])))


class TestDifference:
    def test_what_today_adds_drops_and_revises(self, memory: TenantMemory) -> None:
        """Each with the event that did it."""
        kept, gone = (memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(2))
        position = memory.query_topic(TOPIC).position
        archived = memory.archive(gone, reason="r").acknowledgement.position
        verified = memory.verify_entry(kept, reason="r").acknowledgement.position
        new = memory.record_finding(make_finding(title=TOPIC, summary=TOPIC)).acknowledgement

        found = memory.query_topic_diff(TOPIC, as_of_position=position, mode="words")

        assert [(new.entry_id, None, 1, "entry_recorded", new.position, True)] == [
            (c.entry_id, c.then, c.now, c.event_type, c.event_position, c.since) for c in found.added
        ]
        assert [(gone, "entry_archived", archived)] == [
            (c.entry_id, c.event_type, c.event_position) for c in found.dropped
        ]
        moved = found.reordered + found.revised
        assert [(kept, "entry_verified", verified)] == [(c.entry_id, c.event_type, c.event_position) for c in moved]

    def test_what_only_time_took_away(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """No event since then: the difference says so."""
        expired = memory.expire(entry, "2026-02-01", reason="r").acknowledgement.position

        found = memory.query_topic_diff(TOPIC, as_of_position=expired, valid_at=_while_valid(memory, entry))

        assert [(entry, expired, False)] == [(c.entry_id, c.event_position, c.since) for c in found.dropped]

    def test_nothing_is_different(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Four empty lists; both answers hold the entry."""
        found = memory.query_topic_diff(TOPIC, as_of_position=memory.verify().head)

        assert [entry] == ids(found.then) == ids(found.today)
        assert () == found.added + found.dropped + found.reordered + found.revised

    def test_it_needs_a_moment(self, memory: TenantMemory) -> None:
        """Today against today is no question."""
        with pytest.raises(InvalidInput, match="as_of_position or as_of"):
            memory.query_topic_diff(TOPIC, as_role="admin")


def _while_valid(memory: TenantMemory, entry: uuid.UUID) -> datetime:
    return datetime.fromisoformat(memory.show_entry(entry)["valid_from"])
