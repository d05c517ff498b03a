"""Recall equals brute force on real vectors: reckoned by the same rules in plain Python, for both sizes of a scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import grandbo
from grandbo.embedding import build_embedder
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import TIERS
from grandbo.recall.scan import Scan
from tests.integration.test_large_scope import NARROW, OF_BEFORE, scanning
from tests.support.oracle import expected
from tests.support.postgres import TestDatabase

SAMPLE = Path(grandbo.__file__).parent / "data" / "sample-incidents.jsonl"

# Deep enough that the list has an end to come up to, and every frequency that can be from the sample.
SAMPLED = Scan(
    exact_up_to=0,
    survivors=20,
    depth=40,
    postings=60,
    share_bp=5_000,
    rarest=2,
    sampled_from=2,
    margin=1,
    survivors_bp=9_000,
)
TOPICS = (
    "a certificate was not renewed and clients were refused",
    "the disk of the database filled up and writes failed",
    "pods were evicted because nodes ran out of memory",
    "deployment of a new version broke sign-in for all users",
    "DNS resolution failed inside the cluster after an upgrade",
    "hub image did not start because of a dependency conflict",
    "a job queue grew without bound while workers were idle",
    "users saw errors 502 from the ingress controller",
)


@pytest.fixture(scope="module")
def real(database: TestDatabase) -> Iterator[TenantMemory]:
    """Fifty real incidents of several windows each, embedded by the local model."""
    settings = database.settings(embedder="local")
    with Grandbo.open(settings=settings, embedder=build_embedder(settings)) as opened:
        opened.create_tenant("real")
        memory = opened.tenant("real", principal="human:tester")
        lines = SAMPLE.read_bytes().splitlines(keepends=True)[1::3]
        assert 0 == memory.import_lines(lines, "finding").refused
        memory.embed()
        yield memory


class TestExact:
    @pytest.mark.parametrize("topic", TOPICS)
    def test_ids_order_ranks_and_distances_equal_a_brute_force_reckoning(
        self, real: TenantMemory, database: TestDatabase, topic: str
    ) -> None:
        """On real vectors, hybrid recall gives what a reckoning over all rows in plain Python gives."""
        answer = real.query_topic(topic, limit=20)

        assert answer.searched.stamp is not None
        assert answer.searched.cutoff is not None
        vector = real._grandbo.meaning.of(topic).vector
        with database.as_admin() as conn:
            wanted = expected(
                conn,
                real.tenant_id,
                topic,
                vector,
                stamp=answer.searched.stamp,
                cutoff=answer.searched.cutoff,
                tiers=TIERS,
                instant=answer.instant,
                limit=20,
            )
        assert wanted.ids == [match.entry_id for match in answer.matches]
        assert wanted.restated == {match.entry_id: list(match.restated_ids) for match in answer.matches}
        assert wanted.eligible == answer.searched.eligible
        for match in answer.matches:
            assert match.score == sum(found.part for found in (match.lexical, match.semantic) if found is not None)
        lexical = {match.entry_id: match.lexical.rank for match in answer.matches if match.lexical}
        assert {entry: rank for rank, entry in enumerate(wanted.lexical, 1) if entry in lexical} == lexical
        for match in answer.matches:
            if match.semantic:
                entry, distance = wanted.semantic[match.semantic.rank - 1]
                assert entry == match.entry_id
                assert distance == pytest.approx(match.semantic.distance, abs=1e-6)

    def test_the_same_topic_gives_the_same_answer(self, real: TenantMemory) -> None:
        """Two recalls at one position are equal in everything but their receipt and instant."""
        first, second = (real.query_topic(TOPICS[0]).as_dict() for _ in range(2))

        assert first["matches"] == second["matches"]
        assert first["searched"] == second["searched"]

    def test_a_topic_from_another_world_gets_an_honest_empty(self, real: TenantMemory) -> None:
        """A cake recipe is not answered with an incident that happens to contain the word party."""
        answer = real.query_topic("the best chocolate cake recipe for a birthday party")

        assert () == answer.matches
        assert answer.searched.empty_reason in ("nothing_matched", "beyond_cutoff")


class TestLargeScope:
    @pytest.mark.parametrize("scan", [NARROW, SAMPLED, replace(NARROW, **OF_BEFORE)], ids=("narrow", "sampled", "old"))
    @pytest.mark.parametrize("topic", TOPICS)
    def test_ids_order_and_ranks_equal_a_reckoning_by_the_same_rules(
        self, real: TenantMemory, database: TestDatabase, topic: str, scan: Scan
    ) -> None:
        """Signatures, survivors, sample, common terms and depth, written down again in plain Python over all rows."""
        answer = scanning(real, scan).query_topic(topic, limit=20)

        assert answer.searched.stamp is not None
        assert answer.searched.cutoff is not None
        with database.as_admin() as conn:
            wanted = expected(
                conn,
                real.tenant_id,
                topic,
                real._grandbo.meaning.of(topic).vector,
                stamp=answer.searched.stamp,
                cutoff=answer.searched.cutoff,
                tiers=TIERS,
                instant=answer.instant,
                limit=20,
                scan=scan,
            )
        assert ("signatures", wanted.eligible) == (answer.searched.scan, answer.searched.eligible)
        assert wanted.ids == [match.entry_id for match in answer.matches]
        for match in answer.matches:
            if match.lexical:
                assert match.entry_id == wanted.lexical[match.lexical.rank - 1]
            if match.semantic:
                assert match.entry_id == wanted.semantic[match.semantic.rank - 1][0]

    def test_the_nearest_by_signature_hold_nearly_all_of_the_nearest(self, real: TenantMemory) -> None:
        """Of real vectors a fifth by signature holds 0.95 of what is nearest, each at its exact distance."""
        found = wanted = 0
        for topic in TOPICS:
            exact = real.query_topic(topic, mode="meaning", limit=20)
            scanned = scanning(real, NARROW).query_topic(topic, mode="meaning", limit=20)
            distances = {match.entry_id: match.semantic.distance for match in exact.matches if match.semantic}
            wanted += len(distances)
            for match in scanned.matches:
                assert match.semantic is not None
                if match.entry_id in distances:
                    found += match.semantic.distance == distances[match.entry_id]
        assert found >= 0.95 * wanted > 0

    def test_where_everything_survives_the_answer_is_the_exact_one(self, real: TenantMemory) -> None:
        """With nothing left out, both ways give the same matches, counts and distances."""
        all_of_it = scanning(real, Scan(exact_up_to=0, survivors=10_000, depth=10_000))
        for topic in TOPICS:
            exact, scanned = real.query_topic(topic, limit=20), all_of_it.query_topic(topic, limit=20)

            assert exact.matches == scanned.matches
            assert exact.searched.as_dict() | {"scan": "signatures"} == scanned.searched.as_dict()
