"""Looking after a memory: what is due, what has expired, what happens again, and how much all of it is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import sql

from grandbo.errors import EvidenceMissing, Forbidden, InvalidInput, NotFound
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.decide import NEVER
from grandbo.types import new_id, utc_text
from grandbo.workers.caretaker import Caretaker
from tests.support.cli import Cli, write_lines
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder
from tests.support.twins import Hands

TOPIC = "consumers lost their leases and nobody took over"


@pytest.fixture
def hands() -> Hands:
    """A clock that a test moves."""
    return Hands()


@pytest.fixture
def moving(database: TestDatabase, tenant_name: str, hands: Hands) -> Iterator[TenantMemory]:
    """A tenant of its own in a memory whose clock a test moves."""
    with Grandbo.open(settings=database.settings(), embedder=words_embedder(), clock=hands) as opened:
        opened.create_tenant(tenant_name)
        yield opened.tenant(tenant_name, principal="human:tester")


@pytest.fixture
def cli(database: TestDatabase, memory: TenantMemory) -> Cli:
    """The command line on the tenant of the test."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)


def record(memory: TenantMemory, **fields: Any) -> UUID:
    """One entry."""
    return memory.record_finding(make_finding(**fields)).acknowledgement.entry_id


def in_days(hands: Hands, days: float) -> str:
    """A time so many days from now."""
    return utc_text(hands.now + timedelta(days=days))


class TestPolicy:
    def test_guidance_is_kept_by_review(self, memory: TenantMemory) -> None:
        """A runbook and a reference do not expire unless they say so, and are due for review after 90 days."""
        for kind in ("runbook", "reference"):
            shown = memory.show_entry(record(memory, kind=kind))
            due_in = datetime.fromisoformat(shown["review_at"]) - datetime.fromisoformat(shown["recorded_at"])

            assert (utc_text(NEVER), timedelta(days=90)) == (shown["expires_at"], due_in)
        ends = memory.show_entry(record(memory, kind="runbook", expires_at="2100-01-01"))
        assert "2100-01-01T00:00:00.000000Z" == ends["expires_at"]

    def test_other_kinds_expire(self, memory: TenantMemory) -> None:
        """What happened once is valid for 90 days."""
        shown = memory.show_entry(record(memory))

        assert timedelta(days=90) == datetime.fromisoformat(shown["expires_at"]) - datetime.fromisoformat(
            shown["recorded_at"]
        )

    def test_a_tenant_decides_otherwise(self, memory: TenantMemory) -> None:
        """Review and expiry are two decisions, each by kind; null is never."""
        memory.change_policy(
            {"expiry_days": {"runbook": 30, "decision": None}, "review_days": {"runbook": 10}}, reason="r"
        )

        runbook, decision = (memory.show_entry(record(memory, kind=kind)) for kind in ("runbook", "decision"))

        since = datetime.fromisoformat(runbook["recorded_at"])
        assert (timedelta(days=30), timedelta(days=10)) == (
            datetime.fromisoformat(runbook["expires_at"]) - since,
            datetime.fromisoformat(runbook["review_at"]) - since,
        )
        assert utc_text(NEVER) == decision["expires_at"]
        verified = memory.verify_entry(UUID(runbook["entry_id"]), reason="tried").acknowledgement
        assert 2 == verified.revision
        assert memory.check_rebuild().ok


class TestDue:
    def test_each_for_its_reason(self, moving: TenantMemory, hands: Hands) -> None:
        """Overdue, due, expiring and expired are told apart; what is neither is left out."""
        overdue, due, _later = (record(moving, kind="runbook") for _ in range(3))
        moving.verify_entry(overdue, reason="r", days=1)
        moving.verify_entry(due, reason="r", days=5)
        expiring = record(moving, expires_at=in_days(hands, 6))
        expired = record(moving, expires_at=in_days(hands, 1))
        hands.now += timedelta(days=2)

        found = {UUID(item["entry_id"]): item["why"] for item in moving.due().due}

        assert {overdue: ["overdue"], due: ["due"], expiring: ["expiring"], expired: ["expired"]} == found
        assert {overdue, expired} == {UUID(item["entry_id"]) for item in moving.due(within="1h").due}

    def test_what_was_said_to_be_wrong_is_due_until_somebody_has_answered(
        self, memory: TenantMemory, grandbo: Grandbo
    ) -> None:
        """By whoever was told it; a correction, a dispute or a verification answers, what else happens does not."""
        agent = grandbo.authenticate(make_token(memory, "investigator"))
        finding = make_finding(title="The broker lost its lease after a restart")
        entry = memory.record_finding(finding).acknowledgement.entry_id

        def say(verdict: str) -> None:
            answer = agent.query_topic("the broker lost its lease after a restart", mode="words")
            agent.give_feedback(answer.receipt_id, entry, verdict)

        def why() -> list[list[str]]:
            return [item["why"] for item in memory.due().due]

        say("helped")
        assert [] == why()
        say("wrong")
        say("stale")
        assert [["wrong", "stale"]] == why()
        memory.record_finding({**finding, "incident": {"source": "pager", "id": "INC-AGAIN"}})
        assert [["wrong", "stale"]] == why()
        memory.verify_entry(entry, reason="it is right")
        assert [] == why()
        say("wrong")
        assert [["wrong"]] == why()
        memory.correct(entry, {"summary": "It lost its lease, and took it again."}, reason="so it was")
        assert [] == why()

    def test_pages_in_the_order_of_need(self, moving: TenantMemory, hands: Hands) -> None:
        """What is due longest comes first; pages have each entry once, and end."""
        ids = [record(moving, expires_at=in_days(hands, 1 + number % 3)) for number in range(7)]

        pages, after = [], None
        while True:
            page = moving.due(limit=3, after=after)
            pages.append(page.due)
            after = page.next
            if after is None:
                break

        found = [item for page in pages for item in page]
        assert [3, 3, 1] == [len(page) for page in pages]
        assert sorted(map(str, ids)) == sorted(item["entry_id"] for item in found)
        assert sorted(found, key=lambda item: (item["due_at"], item["entry_id"])) == found

    def test_only_within_ones_tiers(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What the caller may not see is not due for him either."""
        hidden = record(memory, kind="runbook", visibility="admin")
        agent = grandbo.authenticate(make_token(memory, "investigator"))

        assert [str(hidden)] == [item["entry_id"] for item in memory.due(within="20w").due]
        assert [] == agent.due(within="20w").due

    @pytest.mark.parametrize(
        "wanted",
        [
            {"within": "soon"},
            {"within": 7},
            {"within": "99999d"},
            {"limit": 0},
            {"limit": True},
            {"after": "x"},
            {"after": f"2026-13-01T00:00:00.000000Z_{UUID(int=0)}"},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, memory: TenantMemory, wanted: dict[str, Any]) -> None:
        """With the field."""
        with pytest.raises(InvalidInput):
            memory.due(**wanted)

    def test_many_at_once(self, memory: TenantMemory, grandbo: Grandbo) -> None:
        """Each row has its own result; a bad one does not stop those after it."""
        one, other = record(memory), record(memory)
        archived = record(memory)
        memory.archive(archived, reason="r")
        rows: list[object] = [
            {"entry_id": str(one), "reason": "tried", "days": 10},
            {"entry_id": str(new_id()), "reason": "not there"},
            {"entry_id": "x", "reason": "no id"},
            {"entry_id": str(archived), "reason": "put away"},
            {"entry_id": str(other), "reason": ""},
            {"entry_id": str(other), "reason": "r", "days": 0},
            {"entry_id": str(other), "reason": "r", "more": 1},
            [],
            {"entry_id": str(other), "reason": "read it"},
        ]

        results = list(memory.verify_due(rows))

        codes = [result["error"]["code"] if "error" in result else None for result in results]
        invalid = "invalid_input"
        assert [
            None,
            "not_found",
            "not_found",
            "illegal_transition",
            invalid,
            invalid,
            invalid,
            invalid,
            None,
        ] == codes
        assert list(range(1, 10)) == [result["row"] for result in results]
        assert ["tried", "read it"] == [memory.history(entry)[-1]["reason"] for entry in (one, other)]
        with pytest.raises(Forbidden):
            grandbo.authenticate(make_token(memory, "investigator")).verify_due([])


class TestSweep:
    def test_it_notes_each_expiry_once(self, moving: TenantMemory, hands: Hands) -> None:
        """An event for what has expired, none for the rest; a later expiry is noted anew; no revision is made."""
        entry = record(moving, expires_at=in_days(hands, 1))
        record(moving)
        assert 0 == moving.sweep_expired()

        hands.now += timedelta(days=2)
        assert (1, 0) == (moving.sweep_expired(), moving.sweep_expired())
        assert [] == moving.due(within="1h").due
        moving.expire(entry, in_days(hands, 1), reason="longer after all")
        hands.now += timedelta(days=2)
        assert (1, 0) == (moving.sweep_expired(), moving.sweep_expired())

        assert 2 == moving.show_entry(entry)["revision"]
        assert moving.check_rebuild().ok
        assert None is moving.verify().first_bad

    def test_no_answer_depends_on_it(self, moving: TenantMemory, hands: Hands) -> None:
        """Recall, the past, listing and entry say the same before and after a sweep."""
        entry = record(moving, expires_at=in_days(hands, 1))
        moving.embed()
        before = moving.query_topic(TOPIC)
        assert [entry] == [match.entry_id for match in before.matches]
        hands.now += timedelta(days=2)

        def answers() -> list[Any]:
            now, then = moving.query_topic(TOPIC), moving.query_topic(TOPIC, as_of_position=before.position)
            told = [[match.as_dict() for match in answer.matches] for answer in (now, then)]
            searched = [answer.searched.as_dict() for answer in (now, then)]
            return [told, searched, moving.show_entry(entry), moving.list_entries().as_dict()]

        unswept = answers()
        assert 1 == moving.sweep_expired()

        assert unswept == answers()
        assert [[], [entry]] == [[UUID(match["entry_id"]) for match in told] for told in unswept[0]]

    def test_the_caretaker_does_it_for_all(self, clone: TestDatabase, hands: Hands) -> None:
        """A round notes what has expired and compares what was not compared; the next finds nothing to do here."""
        with Grandbo.open(settings=clone.settings(), embedder=words_embedder(), clock=hands) as opened:
            for name in ("one", "two"):
                opened.create_tenant(name)
            tenants = [opened.tenant(name, principal="human:tester") for name in ("one", "two")]
            entries = [record(memory, expires_at=in_days(hands, 1)) for memory in tenants]
            for memory in tenants:
                record(memory, title="The idle timeout of the gateway is 5 seconds", kind="reference", service="gw")
                record(memory, title="The idle timeout of the gateway is 9 seconds", kind="reference", service="gw")
            hands.now += timedelta(days=2)

            assert Caretaker(opened.database, clock=hands).go_round()

            for memory, entry in zip(tenants, entries, strict=True):
                assert (0, 0) == (memory.sweep_expired(), memory.detect_contradictions().proposed)
                assert 1 == len(memory.candidates())
                assert str(entry) not in [item["entry_id"] for item in memory.due().due]


class TestTrust:
    def test_it_moves_and_the_authors_word_stays(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Support, verdicts and disputes move trust, in show and in recall, as of then too; confidence is untouched."""
        entry = record(memory, confidence_bp=5_000)
        agent = grandbo.authenticate(make_token(memory, "investigator"))
        seen: list[tuple[int, int]] = []

        def look() -> int:
            answer = memory.query_topic(TOPIC)
            (match,) = answer.matches
            shown = memory.show_entry(entry)
            assert (5_000, match.trust_bp) == (shown["confidence_bp"], shown["trust_bp"])
            assert 5_000 == match.confidence_bp
            seen.append((answer.position, match.trust_bp))
            return match.trust_bp

        assert 5_000 == look()
        memory.corroborate(entry, incident={"source": "pager", "id": "B"}, evidence=make_finding()["evidence"])
        assert 5_400 == look()
        for verdict, expected in (("helped", 5_600), ("wrong", 4_900)):
            receipt = agent.query_topic(TOPIC).receipt_id
            grandbo.receipts.flush()
            agent.give_feedback(receipt, entry, verdict)
            assert expected == look(), "one voice for each principal: the last"
        memory.dispute(entry, reason="r")
        assert 2_400 == look()
        memory.resolve(entry, reason="r")
        assert 5_200 == look()
        for position, trust in seen:
            (then,) = memory.query_topic(TOPIC, as_of_position=position).matches
            assert trust == then.trust_bp
            assert trust == memory.show_entry(entry, as_of_position=position)["trust_bp"]


class TestFold:
    def test_what_says_the_same_is_one_match(self, memory: TenantMemory, grandbo: Grandbo) -> None:
        """The better-ranked is kept with the ids of the others; its rank, score and place are what they were."""
        first = record(memory, title="The broker lost its lease", summary="Consumers wait", body="")
        again = record(memory, title="Broker lost its lease.", summary="consumers  WAIT", body="", visibility="tech")
        other = record(memory, title="Broker lost no lease", summary="consumers wait", body="", visibility="tech")

        answer = memory.query_topic("broker lost its lease while consumers wait", mode="words")

        kept = next(match for match in answer.matches if match.restated)
        assert {first, again} == {kept.entry_id, *kept.restated_ids}
        assert (1, {kept.entry_id, other}) == (kept.restated, {match.entry_id for match in answer.matches})
        receipt = memory.receipt(answer.receipt_id)
        assert [match.restated for match in answer.matches] == [item["restated"] for item in receipt["matches"]]
        assert memory.replay_receipt(answer.receipt_id, "broker lost its lease while consumers wait").equal

    @pytest.mark.parametrize(
        "change",
        [
            {"service": "search"},
            {"kind": "ruled_out"},
            {"namespace": "b"},
            {"applicability": ["worker <4"]},
            {"body": "And this besides."},
            {"summary": "Consumers do not wait"},
        ],
    )
    def test_what_says_something_else_stays(self, memory: TenantMemory, change: dict[str, Any]) -> None:
        """Another service, kind, namespace, applicability or body, or one word: it is a match of its own."""
        base = {"title": "The broker lost its lease", "summary": "Consumers wait", "body": ""}
        record(memory, **base)
        record(memory, **{**base, "visibility": "tech", **change})

        answer = memory.query_topic("broker lost its lease while consumers wait", limit=20)

        assert [0, 0] == [match.restated for match in answer.matches]

    def test_a_persons_link_folds_and_unfolds(self, memory: TenantMemory) -> None:
        """Linked as duplicates they are one match, from then on and until it is taken away; the past stays exact."""
        one, other = (record(memory) for _ in range(2))

        def found(**asked: Any) -> list[int]:
            return [match.restated for match in memory.query_topic(TOPIC, **asked).matches]

        assert [0, 0] == found()
        linked = memory.link(one, "duplicates", other, reason="r").acknowledgement.position
        assert [1] == found()
        memory.dispute(one, reason="a label must not vanish")
        assert [0, 0] == found()
        memory.resolve(one, reason="r")
        memory.unlink(one, "duplicates", other, reason="r")
        assert [0, 0] == found()
        assert [[0, 0], [1]] == [found(as_of_position=linked - 1), found(as_of_position=linked)]

    def test_the_answer_is_filled_after_folding(self, memory: TenantMemory) -> None:
        """Restatements take no place: the limit counts what says something of its own."""
        same = [record(memory) for _ in range(3)]
        for other in same[1:]:
            memory.link(same[0], "duplicates", other, reason="r")
        record(memory)

        answer = memory.query_topic(TOPIC, limit=2)

        assert [0, 2] == sorted(match.restated for match in answer.matches)

    def test_a_hidden_duplicate_does_not_show(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What the asker may not see is folded into nothing, and counted nowhere."""
        seen, hidden = record(memory), record(memory, visibility="admin")
        memory.link(seen, "duplicates", hidden, reason="r")
        agent = grandbo.authenticate(make_token(memory, "investigator"))

        assert [(seen, 0)] == [(match.entry_id, match.restated) for match in agent.query_topic(TOPIC).matches]


class TestRecurrences:
    def test_counts_by_entry_service_and_month(self, memory: TenantMemory) -> None:
        """Each incident counts once, on the day on which it happened; what happened once has not recurred."""
        again = make_finding(occurred_at="2026-01-10T00:00:00Z")
        entry = memory.record_finding(again).acknowledgement.entry_id
        for number, day in enumerate(("2026-01-20", "2026-02-03")):
            memory.record_finding({**again, "incident": {"source": "pager", "id": f"R{number}"}, "occurred_at": day})
        once = record(memory, service="search", occurred_at="2026-02-01")

        found = memory.recurrences()

        assert [(str(entry), 3, "2026-02-03T00:00:00.000000Z")] == [
            (item["entry_id"], item["occurrences"], item["last"]) for item in found["entries"]
        ]
        assert [("checkout", 3, 1), ("search", 1, 1)] == [
            (item["service"], item["occurrences"], item["entries"]) for item in found["services"]
        ]
        assert [("2026-01", 2), ("2026-02", 2)] == [(item["month"], item["occurrences"]) for item in found["months"]]
        assert [1] == [item["occurrences"] for item in memory.recurrences(entry_id=once)["entries"]]
        assert ["search"] == [item["service"] for item in memory.recurrences(service="search")["services"]]

    def test_a_recorded_finding_near_open_follow_ups(self, memory: TenantMemory) -> None:
        """An entry names those of its service near it whose follow-ups are open; a follow-up alone is no evidence."""
        to_do = {"type": "follow_up", "uri": "https://tickets.example.com/1", "label": "alert on lease age"}
        with pytest.raises(EvidenceMissing):
            record(memory, evidence=[to_do])
        before = record(memory, evidence=[*make_finding()["evidence"], to_do])
        record(memory, service="search", evidence=[*make_finding()["evidence"], to_do])

        again = memory.recurrences(entry_id=record(memory))

        assert [(str(before), 1)] == [(item["entry_id"], item["open_follow_ups"]) for item in again["near"]]
        assert [1] == [item["open_follow_ups"] for item in memory.recurrences(entry_id=before)["entries"]]
        sources = memory.show_entry(before)["evidence"]
        memory.correct(before, {"evidence": [item for item in sources if item != to_do]}, reason="the alert is there")
        assert [] == memory.recurrences(entry_id=UUID(again["entries"][0]["entry_id"]))["near"]

    def test_only_what_one_sees(self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """A higher tier, another tenant and what is not there are the same absence."""
        hidden = record(memory, visibility="admin")
        agent = grandbo.authenticate(make_token(memory, "investigator"))

        assert {"entries": [], "services": [], "months": [], "near": []} == agent.recurrences()
        for who, entry in ((agent, hidden), (other_memory, hidden), (memory, new_id())):
            with pytest.raises(NotFound):
                who.recurrences(entry_id=entry)


class TestUsage:
    def test_counts(self, memory: TenantMemory) -> None:
        """Entries by kind and status, candidates by status, recalls by day, empty ones by reason, the backlog."""
        record(memory)
        memory.archive(record(memory, kind="runbook"), reason="r")
        memory.propose(make_finding())
        memory.query_topic(TOPIC)
        memory.query_topic("zebra xylophone", mode="words")

        found = memory.usage(days=1)

        assert [
            {"kind": "finding", "status": "published", "count": 1},
            {"kind": "runbook", "status": "archived", "count": 1},
        ] == found["entries"]
        assert {"pending": 1, "approved": 0, "rejected": 0, "withdrawn": 0} == found["candidates"]
        assert (2, {"nothing_matched": {"recalls": 1, "rate_bp": 5_000}}) == (found["recalls_total"], found["empty"])
        day = datetime.now(UTC).date().isoformat()
        assert [{"day": day, "recalls": 2, "empty": {"nothing_matched": 1}}] == found["recalls"]
        assert {"pending": 2, "dead": 0} == found["backlog"]
        assert [{"day": day, "entries": 2}] == found["waited"]

    def test_what_waited_for_a_vector_is_told_by_day(self, database: TestDatabase, tenant_name: str) -> None:
        """Day by day, also of days before the first that is asked for; a text that was corrected waits anew."""
        day = datetime(2026, 3, 1, 12, tzinfo=UTC)
        now = [day]
        with Grandbo.open(settings=database.settings(), embedder=words_embedder(), clock=lambda: now[0]) as opened:
            opened.create_tenant(tenant_name)
            kept = opened.tenant(tenant_name, principal="human:tester")
            first, _ = record(kept), record(kept)
            now[0] = day + timedelta(days=1)
            kept.embed()
            now[0] = day + timedelta(days=2)
            kept.correct(first, {"title": "Told otherwise"}, reason="r")
            now[0] = day + timedelta(days=3)

            waited = {item["day"]: item["entries"] for item in kept.usage(days=4)["waited"]}
            later = kept.usage(days=1)["waited"]

        # What says something else by now is counted as what it says now.
        assert {"2026-03-01": 1, "2026-03-02": 0, "2026-03-03": 1, "2026-03-04": 1} == waited
        assert [{"day": "2026-03-04", "entries": 1}] == later

    def test_how_long_answers_took(self, memory: TenantMemory, database: TestDatabase) -> None:
        """The median and the 95th of a hundred; a receipt of before it was noted has no part in it."""
        record(memory)
        nothing = memory.usage()["latency"]
        ids = [memory.query_topic(TOPIC, mode="words").receipt_id for _ in range(5)]
        timed = memory.usage()["latency"]
        with database.as_admin() as conn:
            for receipt_id, took_us in zip(ids, (40_000, 10_000, 30_000, 20_000, None), strict=True):
                conn.execute(
                    "UPDATE grandbo.org_memory_receipts SET took_us = %s WHERE receipt_id = %s", (took_us, receipt_id)
                )

        found = memory.usage()["latency"]

        assert {"recalls": 0, "p50_us": None, "p95_us": None, "days": []} == nothing
        assert 5 == timed["recalls"]
        assert 0 < timed["p50_us"] <= timed["p95_us"]
        figures = {"recalls": 4, "p50_us": 20_000, "p95_us": 40_000}
        assert {**figures, "days": [{"day": datetime.now(UTC).date().isoformat(), **figures}]} == found

    def test_only_what_one_may_see(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """A reviewer counts his tiers, an investigator nothing at all."""
        record(memory, visibility="admin")
        memory.query_topic(TOPIC)
        reviewer = grandbo.authenticate(make_token(memory, "reviewer", kind="human"))

        found = reviewer.usage()

        assert ([], 0, {"pending": 0, "dead": 0}) == (found["entries"], found["recalls_total"], found["backlog"])
        with pytest.raises(Forbidden):
            grandbo.authenticate(make_token(memory, "investigator")).usage()

    def test_a_topic_is_stored_nowhere(self, memory: TenantMemory, database: TestDatabase) -> None:
        """A word that was only ever asked for is in no row of any table, nor in any form of one."""
        planted = "quibblethorn"
        record(memory)
        memory.embed()
        for mode in ("hybrid", "words", "meaning"):
            memory.query_topic(f"the {planted} stalled after the broker restarted", mode=mode)
        memory.usage()
        with database.as_admin() as conn:
            names = conn.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'grandbo'").fetchall()
            tables = [sql.Identifier("grandbo", str(name)) for (name,) in names]
            read = [conn.execute(sql.SQL("SELECT t::text FROM {} t").format(table)).fetchall() for table in tables]

        text = "\n".join(str(row) for rows in read for (row,) in rows)
        assert "nobody took over" in text, "the dump has what is stored"
        assert planted not in text.lower()
        assert planted.encode().hex() not in text.lower()


class TestDoors:
    def test_due_over_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The list, the rows and the sweep; too many rows are refused, and a key makes a retry one."""
        entry = record(memory, kind="runbook")
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        body = {"rows": [{"entry_id": str(entry), "reason": "tried", "days": 400}, {"entry_id": "x", "reason": "r"}]}

        listed = client.get("/v1/due", params={"within": "20w"})
        assert memory.due(within="20w").as_dict() == listed.json()
        assert 422 == client.get("/v1/due", params={"within": "x"}).status_code
        done, again = (
            client.post("/v1/due/verify", json=body, headers={"Idempotency-Key": "k"}).json() for _ in range(2)
        )
        assert (1, [True, False]) == (done["failed"], [result["ok"] for result in done["results"]])
        assert (True, False, 2) == (
            done["results"][0]["appended"],
            again["results"][0]["appended"],
            memory.show_entry(entry)["revision"],
        )
        assert 413 == client.post("/v1/due/verify", json={"rows": [{}] * 101}).status_code
        assert 422 == client.post("/v1/due/verify", json={"rows": 1}).status_code
        assert {"noted": 0} == client.post("/v1/due/sweep").json()

    def test_counts_over_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Recurrences and usage are what the library says; who may not is told so."""
        entry = record(memory)
        client = client_of(grandbo, token=make_token(memory, "admin", kind="human"))
        agent = client_of(grandbo, token=make_token(memory, "investigator"))

        assert (
            memory.recurrences(entry_id=entry) == client.get("/v1/recurrences", params={"entry_id": str(entry)}).json()
        )
        for missing in ("x", new_id()):
            assert 404 == client.get("/v1/recurrences", params={"entry_id": str(missing)}).status_code
        usage = client.get("/v1/usage", params={"days": 3}).json()
        expected = memory.usage(days=3)
        assert {**expected, "until": usage["until"]} == usage
        assert 422 == client.get("/v1/usage", params={"days": 0}).status_code
        assert 403 == agent.get("/v1/usage").status_code

    def test_due_on_the_command_line(self, cli: Cli, memory: TenantMemory, tmp_path: Any) -> None:
        """List, verify from a file with bad rows in it, sweep."""
        entry = record(memory, kind="runbook")
        rows: list[Mapping[str, Any]] = [
            {"entry_id": str(entry), "reason": "tried"},
            {"entry_id": str(new_id()), "reason": "r"},
        ]
        file = write_lines(tmp_path / "rows.jsonl", rows)
        good = json.dumps(rows[0])

        assert [str(entry)] == [item["entry_id"] for item in cli("due", "--within", "20w", "--json").documents]
        assert "overdue" not in cli("due").out
        mixed = cli("due", "verify", file, "--json")
        assert (1, [True, False]) == (mixed.code, [result["ok"] for result in mixed.documents])
        piped = cli("due", "verify", "-", "--json", stdin=f"{{\n\n{good}\n")
        assert (1, ["not_json", None]) == (
            piped.code,
            [result.get("error", {}).get("code") for result in piped.documents],
        )
        assert 0 == cli("due", "verify", "-", stdin=good).code
        assert {"noted": 0} == cli("due", "sweep", "--json").document

    def test_counts_on_the_command_line(self, cli: Cli, memory: TenantMemory) -> None:
        """`recurrences` and `usage` print what the library says."""
        entry = record(memory)

        assert memory.recurrences(entry_id=entry) == cli("recurrences", "--entry", entry, "--json").document
        assert 5 == cli("recurrences", "--entry", "x").code
        assert "checkout" in cli("recurrences", "--service", "checkout").out
        assert 1 == cli("usage", "--days", "2", "--json").document["entries"][0]["count"]
        assert "candidates" in cli("usage").out
