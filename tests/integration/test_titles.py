"""Vectors of titles alone: they order what meaning lists, and let nothing in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from grandbo.embedding import Embedder
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.http import make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import WORDS_STAMP, HashedWords, Titled

TOPIC = "replication lag alert fired"
LONG = "The archive disk had no space left, segments piled up, and reads from the standby were stale by hours."


@pytest.fixture
def titled(database: TestDatabase, memory: TenantMemory) -> Iterator[TenantMemory]:
    """The tenant in a process whose model makes vectors of titles."""
    with Grandbo.open(settings=database.settings(), embedder=Embedder(Titled())) as opened:
        yield opened.tenant(memory.tenant.name)


@pytest.fixture
def plain(database: TestDatabase, memory: TenantMemory) -> Iterator[TenantMemory]:
    """The tenant in a process of before there were any."""
    with Grandbo.open(settings=database.settings(), embedder=Embedder(HashedWords())) as opened:
        yield opened.tenant(memory.tenant.name)


def record(memory: TenantMemory, title: str, body: str) -> UUID:
    finding = make_finding(title=title, summary=body, body="", tags=[], service="")
    return memory.record_finding(finding).acknowledgement.entry_id


def stored(database: TestDatabase, memory: TenantMemory) -> list[tuple[str, UUID, bool]]:
    """Stamp, entry and whether it holds, of every vector of the tenant."""
    with database.as_admin() as conn:
        rows = conn.execute(
            "SELECT stamp, entry_id, to_position IS NULL FROM grandbo.org_memory_embeddings WHERE tenant_id = %s"
            " ORDER BY stamp, entry_id, from_position",
            (memory.tenant_id,),
        ).fetchall()
    return [(str(stamp), UUID(str(entry)), bool(holds)) for stamp, entry, holds in rows]


def by_meaning(memory: TenantMemory) -> list[tuple[UUID, float]]:
    found = memory.query_topic(TOPIC, mode="meaning").matches
    assert [1 + place for place in range(len(found))] == [match.semantic and match.semantic.rank for match in found]
    return [(match.entry_id, match.semantic.distance) for match in found if match.semantic]


@pytest.fixture
def two(plain: TenantMemory) -> tuple[UUID, UUID]:
    """One entry whose title is the topic above a text about much else, one whose text is nearer; embedded, untitled."""
    by_title = record(plain, "Replication lag alert fired", LONG)
    by_text = record(plain, "Standby behind", "Replication lag alert fired: the standby was behind.")
    plain.embed()
    return by_title, by_text


class TestOrder:
    def test_of_what_is_listed_the_nearer_title_goes_first_and_its_distance_is_told(
        self, plain: TenantMemory, titled: TenantMemory, two: tuple[UUID, UUID]
    ) -> None:
        """Before there are vectors of titles, the text decides."""
        by_title, by_text = two
        before = by_meaning(titled)
        titled.embed()
        after = by_meaning(titled)

        assert [by_text, by_title] == [entry for entry, _ in before]
        assert [by_title, by_text] == [entry for entry, _ in after]
        assert pytest.approx(0, abs=1e-6) == dict(after)[by_title]
        assert dict(before)[by_text] == dict(after)[by_text]

    def test_a_process_without_them_goes_by_the_texts(
        self, plain: TenantMemory, titled: TenantMemory, two: tuple[UUID, UUID]
    ) -> None:
        """Who makes no vectors of titles does not look for them."""
        before = by_meaning(plain)
        titled.embed()

        assert before == by_meaning(plain)

    def test_a_title_alone_makes_no_match(self, titled: TenantMemory) -> None:
        """The gate asks how near the text is: an entry whose text is beyond the cutoff stays out."""
        words = " ".join(f"word{number}" for number in range(120))
        record(titled, "Replication lag alert fired", words)
        titled.embed()
        answer = titled.query_topic(TOPIC, mode="meaning")

        assert () == answer.matches
        assert answer.searched.nearest_beyond is not None
        assert answer.searched.nearest_beyond >= WORDS_STAMP.cutoff_bp / 10_000

    def test_who_may_not_see_an_entry_is_told_nothing_by_its_title(self, titled: TenantMemory) -> None:
        """A vector of a title stands in its entry's tier."""
        entry = record(titled, "Replication lag alert fired", LONG)
        titled.embed()
        titled.reclassify(entry, visibility="admin", reason="personal matters", expected_revision=1)

        investigator = titled._grandbo.authenticate(make_token(titled, "investigator", kind="human"))

        assert [entry] == [found for found, _ in by_meaning(titled)]
        assert [] == by_meaning(investigator)


class TestHistory:
    def test_every_answer_is_given_again_whatever_was_titled_since(
        self, plain: TenantMemory, titled: TenantMemory, two: tuple[UUID, UUID], database: TestDatabase
    ) -> None:
        """One of before replays by texts, one of after by titles; as of then, titles did not count yet."""
        first = titled.query_topic(TOPIC)
        of_plain = plain.query_topic(TOPIC)
        titled.embed()
        later = titled.query_topic(TOPIC)
        unknown = plain.query_topic(TOPIC)
        for memory in (titled, plain):
            memory._grandbo.receipts.flush()
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_receipts SET parameters = parameters - 'titles' WHERE receipt_id = %s",
                (unknown.receipt_id,),
            )
        then = titled.query_topic(TOPIC, as_of_position=first.position)

        for answer in (first, of_plain, later, unknown):
            assert titled.replay_receipt(answer.receipt_id, TOPIC).equal
        assert _told(first) == _told(then) != _told(later)

    def test_a_rebuild_is_equal_and_a_new_text_has_a_new_title(
        self, titled: TenantMemory, two: tuple[UUID, UUID], database: TestDatabase
    ) -> None:
        """The vector of an old title is closed with its text."""
        titled.embed()
        titled.correct(two[0], {"title": "Another title"}, reason="it misled", expected_revision=1)
        titles = WORDS_STAMP.titles.id
        held = [entry for stamp, entry, holds in stored(database, titled) if stamp == titles and holds]
        titled.embed()

        assert [two[1]] == held
        assert {two[0], two[1]} == {e for stamp, e, holds in stored(database, titled) if stamp == titles and holds}
        assert titled.check_rebuild().ok


class TestSpaces:
    def test_titles_are_no_space_that_anybody_puts_into_force(
        self, titled: TenantMemory, two: tuple[UUID, UUID]
    ) -> None:
        """They belong to the space of the texts, are made after it, and are not counted."""
        counts: list[Any] = []
        done = titled.embed(progress=counts.append)

        assert (2, 0) == (done.embedded, done.pending)
        assert 2 == counts[-1].embedded
        assert [WORDS_STAMP.id] == [space.stamp for space in titled.stamps()]
        assert [WORDS_STAMP.id] == [item.stamp for item in titled.policy().policy.stamps]
        assert titled.embed().pending == 0


def _told(answer: Any) -> list[tuple[Any, ...]]:
    return [(match.entry_id, match.score, match.semantic) for match in answer.matches]
