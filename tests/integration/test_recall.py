"""Recall: honest when empty, narrow when filtered."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import grandbo
from grandbo.errors import EmbedderTransient, GrandboError, InvalidInput, LimitExceeded, TopicIsSlug, TopicTooShort
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.receipts import BATCH, Receipt
from grandbo.types import new_id
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase
from tests.support.providers import Switchable, words_embedder

SAMPLE = Path(grandbo.__file__).parent / "data" / "sample-incidents.jsonl"


class TestEmptyAnswers:
    def test_nothing_in_scope(self, memory: TenantMemory) -> None:
        """An empty memory says that there is nothing in scope."""
        assert "nothing_in_scope" == memory.query_topic("consumers lost their leases").searched.empty_reason

    def test_nothing_matched(self, memory: TenantMemory) -> None:
        """A memory without anything on the topic says that nothing matched, or how near the nearest was."""
        memory.record_finding(make_finding())
        memory.embed()

        answer = memory.query_topic("zebra xylophone", mode="words")

        assert "nothing_matched" == answer.searched.empty_reason
        assert 1 == answer.searched.eligible

    def test_beyond_the_cutoff(self, database: TestDatabase) -> None:
        """When the nearest lies just beyond the cutoff, the answer counts it and says how far it is."""
        with Grandbo.open(settings=database.settings(), embedder=words_embedder()) as opened:
            opened.create_tenant("beyond")
            memory = opened.tenant("beyond")
            memory.record_finding(make_finding(title="alpha beta gamma delta", summary="", body=""))
            memory.embed()
            near = memory.query_topic("alpha beta", mode="meaning").matches[0].semantic
            assert near is not None
            stamp = memory.query_topic("alpha beta").searched.stamp
            # The same space, with a cutoff a hair before the entry.
            cutoff = {"stamp": stamp, "cutoff_bp": int(near.distance * 10_000) - 100}
            memory.change_policy({"stamps": [cutoff]}, reason="nearer")

            answer = memory.query_topic("alpha beta", mode="meaning")

        assert "beyond_cutoff" == answer.searched.empty_reason
        assert (1, near.distance) == (answer.searched.near_misses, answer.searched.nearest_beyond)

    def test_semantic_side_unavailable(self, database: TestDatabase) -> None:
        """While the provider is down the answer is keyword-only and says so, and an empty one says why it is empty."""
        provider = Switchable()
        from grandbo.embedding import Embedder

        with Grandbo.open(settings=database.settings(), embedder=Embedder(provider)) as opened:
            opened.create_tenant("provider-down")
            memory = opened.tenant("provider-down")
            ack = memory.record_finding(make_finding()).acknowledgement
            provider.failure = EmbedderTransient()

            found = memory.query_topic("consumers lost their leases")
            calls = provider.calls
            empty = memory.query_topic("zebra xylophone")

        assert [ack.entry_id] == [match.entry_id for match in found.matches]
        assert (("lexical",), "embedder_transient") == (found.searched.signals, found.searched.degraded)
        assert "semantic_unavailable" == empty.searched.empty_reason
        assert calls == provider.calls, "the second recall did not wait for a provider known to be down"


class TestFilters:
    def test_filters_only_narrow(self, memory: TenantMemory) -> None:
        """A kind or a service keeps a part of the unfiltered answer and adds nothing to it."""
        memory.record_finding(make_finding(service="checkout"))
        memory.record_finding(make_finding(service="billing"))
        memory.record_finding(make_finding(service="billing", kind="runbook"))
        memory.embed()
        topic = "consumers lost their leases"
        every = {match.entry_id for match in memory.query_topic(topic, limit=20).matches}

        billing = {match.entry_id for match in memory.query_topic(topic, service="billing").matches}
        runbooks = {match.entry_id for match in memory.query_topic(topic, kinds=["runbook"]).matches}
        both = {m.entry_id for m in memory.query_topic(topic, kinds=["runbook"], service="checkout").matches}

        assert (3, 2, 1, 0) == (len(every), len(billing), len(runbooks), len(both))
        assert billing | runbooks <= every

    def test_expired_entries_are_out_of_scope(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """What has expired is neither ranked nor counted."""
        from datetime import timedelta

        from grandbo.types import utc_now

        memory.record_finding(make_finding())
        memory.embed()
        later = type(grandbo)(
            grandbo.settings, grandbo._opened, grandbo.embedder, clock=lambda: utc_now() + timedelta(days=91)
        )
        answer = TenantMemory(later, memory.tenant, memory.principal).query_topic("consumers lost their leases")
        later.receipts.close()

        assert (0, "nothing_in_scope") == (answer.searched.eligible, answer.searched.empty_reason)

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"topic": "leases"}, TopicTooShort),
            ({"topic": "svc-name_v2"}, TopicIsSlug),
            ({"topic": "   "}, TopicTooShort),
            ({"topic": "🔥 🔥 🔥"}, TopicTooShort),
            ({"topic": "a \x00 b"}, InvalidInput),
            ({"topic": "half \ud800 pair"}, InvalidInput),
            ({"topic": "x y " * 3000}, LimitExceeded),
            ({"topic": 7}, InvalidInput),
            ({"topic": "two words", "limit": 0}, InvalidInput),
            ({"topic": "two words", "limit": 21}, InvalidInput),
            ({"topic": "two words", "limit": True}, InvalidInput),
            ({"topic": "two words", "kinds": ["incident"]}, InvalidInput),
            ({"topic": "two words", "service": " "}, InvalidInput),
            ({"topic": "two words", "mode": "both"}, InvalidInput),
        ],
    )
    def test_a_bad_question_is_refused_with_its_own_error(
        self, memory: TenantMemory, arguments: dict[str, Any], error: type[GrandboError]
    ) -> None:
        """Every argument that does not fit has a typed error; nothing is guessed."""
        with pytest.raises(error):
            memory.query_topic(**arguments)


class TestScripts:
    @pytest.mark.parametrize(
        ("title", "topic"),
        [
            ("データベースの接続が切断された", "データベースの接続が切断された"),
            ("数据库连接池耗尽导致服务中断", "数据库连接池耗尽导致服务中断"),
            ("데이터베이스 연결이 끊어졌습니다", "데이터베이스 연결이 끊어졌습니다"),
            ("ฐานข้อมูลหยุดทำงานเพราะดิสก์เต็ม", "ฐานข้อมูลหยุดทำงานเพราะดิสก์เต็ม"),
            ("تعطلت قاعدة البيانات بسبب امتلاء القرص", "تعطلت قاعدة البيانات بسبب امتلاء القرص"),
            ("svc-name_v2 fails with E1234", "what is E1234 in svc-name_v2"),
            ("OOMKilled in getUserById", "why was getUserById OOMKilled"),
            ("/var/lib/docker is full", "disk /var/lib/docker full again"),
        ],
    )
    def test_text_in_any_script_is_found_by_its_words(self, memory: TenantMemory, title: str, topic: str) -> None:
        """An entry's own words, in any script, rank it first by words alone."""
        for _ in range(3):
            memory.record_finding(make_finding())
        ack = memory.record_finding(make_finding(title=title, summary="", body="")).acknowledgement

        answer = memory.query_topic(topic, mode="words")

        assert ack.entry_id == answer.matches[0].entry_id

    def test_a_long_sentence_finds_the_entry_that_shares_two_rare_words(self, memory: TenantMemory) -> None:
        """Thirty common words around them do not hide two rare ones."""
        for _ in range(5):
            memory.record_finding(make_finding())
        ack = memory.record_finding(
            make_finding(title="Quorum lost in zookeeper", summary="Fsync stalls", body="")
        ).acknowledgement
        topic = (
            "since the upgrade of this morning we see that requests are slow from time to time and somebody said "
            "it could have to do with zookeeper and its quorum but nobody is sure about it"
        )

        assert ack.entry_id == memory.query_topic(topic, mode="words").matches[0].entry_id


def _receipt_of(memory: TenantMemory, topic: str) -> Receipt:
    """The receipt of a recall, which is kept from being written."""
    made: list[Receipt] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(memory._grandbo.receipts, "put", made.append)
        memory.query_topic(topic)
    return made[0]


class TestReceipts:
    def test_a_receipt_is_kept_without_the_topic(self, memory: TenantMemory, database: TestDatabase) -> None:
        """Each recall leaves its position, parameters and ranks, and of the topic nothing but a keyed HMAC."""
        memory.record_finding(make_finding())
        answer = memory.query_topic("consumers lost their leases")
        memory._grandbo.receipts.flush()

        with database.as_admin() as conn:
            row = conn.execute(
                "SELECT to_jsonb(r) FROM grandbo.org_memory_receipts r WHERE receipt_id = %s", (answer.receipt_id,)
            ).fetchone()
        assert row is not None
        document: Any = row[0]
        assert answer.position == document["position"]
        assert [str(match.entry_id) for match in answer.matches] == [m["entry_id"] for m in document["matches"]]
        assert "leases" not in json.dumps(document)

    def test_a_receipt_is_kept_as_it_was_made(self, memory: TenantMemory, database: TestDatabase) -> None:
        """To the last digit of a score and the last microsecond of a time, on its way through a document."""
        memory.record_finding(make_finding())
        made = _receipt_of(memory, "consumers lost their leases")
        memory._grandbo.receipts.put(made)
        memory._grandbo.receipts.flush()

        with database.as_admin() as conn:
            row = conn.execute(
                "SELECT position, instant, principal, parameters, searched, matches, made_at, took_us"
                " FROM grandbo.org_memory_receipts WHERE receipt_id = %s",
                (made.receipt_id,),
            ).fetchone()
        kept = (made.position, made.instant, made.principal, made.parameters, made.searched, made.matches)
        assert (*kept, made.made_at, made.took_us) == row

    def test_receipts_of_many_at_once_are_each_kept_once(self, memory: TenantMemory, database: TestDatabase) -> None:
        """More than two batches from four threads, each of which has what it put written now and then."""
        memory.record_finding(make_finding())
        receipts, made = memory._grandbo.receipts, _receipt_of(memory, "consumers lost their leases")
        ids = [[new_id() for _ in range(BATCH // 2 + 30)] for _ in range(4)]

        def put(mine: list[UUID]) -> None:
            for number, receipt_id in enumerate(mine):
                receipts.put(replace(made, receipt_id=receipt_id))
                if number % 50 == 0:
                    receipts.flush()
            receipts.flush()

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(put, ids))

        with database.as_admin() as conn:
            rows = conn.execute(
                "SELECT receipt_id FROM grandbo.org_memory_receipts WHERE tenant_id = %s", (memory.tenant_id,)
            ).fetchall()
        assert sorted(str(each) for mine in ids for each in mine) == sorted(str(row[0]) for row in rows)


class TestByName:
    def test_each_state_is_found_by_its_name_alone(self, memory: TenantMemory) -> None:
        """Default recall has the published, the disputed among them; each of the others is asked for by name."""
        states = ("published", "disputed", "archived", "superseded", "quarantined", "expired")
        ids = {state: memory.record_finding(make_finding()).acknowledgement.entry_id for state in states}
        memory.embed()
        memory.dispute(ids["disputed"], other=ids["published"], reason="r")
        memory.archive(ids["archived"], reason="r")
        memory.supersede(ids["superseded"], ids["published"], reason="r")
        memory.quarantine(ids["quarantined"], reason="r")
        memory.expire(ids["expired"], "2026-02-01", reason="r")
        topic = "checkout queue stalled after the lease renewal failed"

        def found(*names: str, mode: str = "hybrid") -> set[str]:
            answer = memory.query_topic(topic, limit=20, mode=mode, statuses=list(names) or None)
            known = {entry: state for state, entry in ids.items()}
            assert len(answer.matches) == answer.searched.eligible
            return {known[match.entry_id] for match in answer.matches}

        for mode in ("hybrid", "words", "meaning"):
            assert {"published", "disputed"} == found(mode=mode)
            for state in states[1:]:
                assert {state} == found(state, mode=mode)
        assert {"published", "disputed", "expired", "archived"} == found("published", "expired", "archived")

    def test_labels_tell_them_apart(self, memory: TenantMemory) -> None:
        """Disputed with the other side's id; out of date as such, in the answer and in the block."""
        one, other = (memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(2))
        memory.dispute(one, other=other, reason="r")
        memory.expire(other, "2026-02-01", reason="r")
        topic = "checkout queue stalled after the lease renewal failed"

        disputed, expired = memory.query_topic(topic), memory.query_topic(topic, statuses=["expired"])

        assert [(one, True, other, False)] == [
            (match.entry_id, match.disputed, match.disputed_with, match.expired) for match in disputed.matches
        ]
        assert [(other, True)] == [(match.entry_id, match.expired) for match in expired.matches]
        assert "EXPIRED" in memory.context_block(expired, topic).text
        assert memory.replay_receipt(expired.receipt_id, topic).equal
