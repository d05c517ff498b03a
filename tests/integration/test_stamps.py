"""The spaces of vectors: how complete each is, and from one to another without a gap, at every door."""

from __future__ import annotations

from typing import Any

import pytest

from grandbo.embedding import Embedder
from grandbo.errors import Forbidden, InvalidInput, NotFound, PolicyStale, StampNotReady
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import new_id
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder

TOPIC = "checkout queue stalled after the lease renewal failed"
OLD, NEW = words_embedder(), words_embedder("2")


def _under(database: TestDatabase, embedder: Embedder | None, memory: TenantMemory) -> tuple[Grandbo, TenantMemory]:
    """The same tenant in a process that embeds so."""
    settings = database.settings(embedder="none") if embedder is None else database.settings()
    opened = Grandbo.open(settings=settings, embedder=embedder)
    return opened, opened.tenant(memory.tenant.name)


@pytest.fixture
def changed(database: TestDatabase, memory: TenantMemory) -> TenantMemory:
    """A tenant with two entries, complete in two spaces, the newer one first."""
    for _ in range(2):
        memory.record_finding(make_finding())
    for embedder in (OLD, NEW):
        opened, same = _under(database, embedder, memory)
        with opened:
            same.embed()
    return memory


def _names(memory: TenantMemory) -> list[str]:
    return [item.stamp for item in memory.policy().policy.stamps]


class TestChange:
    def test_each_step_from_one_model_to_another_is_told(self, database: TestDatabase, memory: TenantMemory) -> None:
        """Filled, put into force, the old one taken out: never a moment in which recall is by words alone."""
        memory.record_finding(make_finding())
        opened, before = _under(database, OLD, memory)
        with opened:
            before.embed()
            memory.record_finding(make_finding())
            before.embed()
            told = []
            other, after = _under(database, NEW, memory)
            with other:
                worker_saw = []

                def look(_counts: object) -> None:
                    worker_saw.append([(s.stamp, s.place, s.counts.embedded) for s in before.stamps()])
                    told.append(before.query_topic(TOPIC).searched.degraded)

                after.embed(progress=look)
                told.append(after.query_topic(TOPIC).searched.degraded)
                after.retire_stamp(OLD.stamp.id, reason="No process uses it.")
                ends = after.stamps()

        assert [None] * len(told) == told
        assert [(OLD.stamp.id, 1, 2)] == worker_saw[0]
        assert [(NEW.stamp.id, 1), (OLD.stamp.id, None)] == [(space.stamp, space.place) for space in ends]
        assert [NEW.stamp.id] == _names(memory)
        assert memory.check_rebuild().ok

    def test_a_space_is_filling_until_it_is_in_force_and_not_when_it_was_taken_out(
        self, database: TestDatabase, changed: TenantMemory
    ) -> None:
        """What was taken out lacks what is newer, and nobody fills it."""
        third = words_embedder("3")
        opened, other = _under(database, third, changed)
        with opened:
            other.retire_stamp(OLD.stamp.id, reason="Old.")
            changed.record_finding(make_finding())
            filling = []
            other.embed(progress=lambda _: filling.append([s.stamp for s in changed.stamps() if s.is_filling]))

        assert [[], [third.stamp.id]] == filling[:1] + filling[-1:]
        assert [] == [space.stamp for space in changed.stamps() if space.is_filling]

    def test_one_that_was_taken_out_is_brought_back_when_it_is_complete(
        self, database: TestDatabase, changed: TenantMemory
    ) -> None:
        """Not before; and with the cutoff that it is given."""
        opened, new = _under(database, NEW, changed)
        with opened:
            new.retire_stamp(OLD.stamp.id, reason="Old.")
        changed.record_finding(make_finding())
        opened, old = _under(database, OLD, changed)
        with opened:
            with pytest.raises(StampNotReady) as refused:
                old.use_stamp(OLD.stamp.id, reason="Back.")
            old.embed()
            old.use_stamp(OLD.stamp.id, reason="Back.", cutoff_bp=4_000)
            degraded = old.query_topic(TOPIC).searched.degraded

        assert 1 == refused.value.details["lacking"]
        assert [OLD.stamp.id, NEW.stamp.id] == _names(changed)
        assert (4_000, None) == (changed.policy().policy.stamps[0].cutoff_bp, degraded)

    def test_what_would_leave_recall_to_words_is_refused(self, database: TestDatabase, changed: TenantMemory) -> None:
        """The space that this process embeds in, the last one, one that is not there."""
        opened, new = _under(database, NEW, changed)
        with opened:
            with pytest.raises(StampNotReady, match="This process embeds in it"):
                new.retire_stamp(NEW.stamp.id, reason="r")
            with pytest.raises(NotFound):
                new.retire_stamp("no/such@space/1/r", reason="r")
            with pytest.raises(NotFound):
                new.use_stamp("no/such@space/1/r", reason="r")
            new.retire_stamp(OLD.stamp.id, reason="r")
        opened, without = _under(database, None, changed)
        with opened:
            with pytest.raises(StampNotReady, match="only space"):
                without.retire_stamp(NEW.stamp.id, reason="r")
            with pytest.raises(InvalidInput, match="cutoff_bp"):
                without.use_stamp(OLD.stamp.id, reason="r")

        assert [NEW.stamp.id] == _names(changed)

    def test_a_retry_is_the_first_answer_and_a_stale_one_is_refused(
        self, database: TestDatabase, changed: TenantMemory
    ) -> None:
        """Twice, and decided on a policy that is no more."""
        command, position = new_id(), changed.policy().position
        opened, new = _under(database, NEW, changed)
        with opened:
            options: dict[str, Any] = {"reason": "r", "command_id": command, "expected_position": position}
            first = new.retire_stamp(OLD.stamp.id, **options)
            again = new.retire_stamp(OLD.stamp.id, **options)
            with pytest.raises(PolicyStale):
                new.use_stamp(OLD.stamp.id, reason="r", expected_position=position)

        assert first == again

    def test_who_may_not_administer_sees_and_changes_nothing(
        self, database: TestDatabase, changed: TenantMemory
    ) -> None:
        """Entries of every tier are counted, so an auditor of a lower one must not see it."""
        opened = Grandbo.open(settings=database.settings(), embedder=NEW)
        with opened:
            auditor = opened.tenant(changed.tenant.name, principal="human:kim", roles=("auditor",))
            with pytest.raises(Forbidden):
                auditor.stamps()
            for act in (auditor.use_stamp, auditor.retire_stamp):
                with pytest.raises(Forbidden):
                    act(OLD.stamp.id, reason="r")


class TestDoors:
    def test_http(self, database: TestDatabase, changed: TenantMemory) -> None:
        """Read, put first, taken out: on the ETag of the policy."""
        with Grandbo.open(settings=database.settings(), embedder=NEW) as opened:
            client = client_of(opened, token=make_token(changed, "admin", kind="human"))
            listed = client.get("/v1/stamps").json()["stamps"]
            etag = client.get("/v1/policy").headers["ETag"]
            wish = {"stamp": OLD.stamp.id, "reason": "r"}
            missing = client.post("/v1/stamps/use", json=wish)
            used = client.post("/v1/stamps/use", json=wish, headers={"If-Match": etag})
            stale = client.post("/v1/stamps/retire", json=wish, headers={"If-Match": etag})
            now = {"If-Match": used.headers["ETag"], "Idempotency-Key": "k1"}
            retired = [client.post("/v1/stamps/retire", json=wish, headers=now) for _ in range(2)]
            own = {"stamp": NEW.stamp.id, "reason": "r"}
            refused = client.post("/v1/stamps/retire", json=own, headers={"If-Match": retired[0].headers["ETag"]})

        assert [(NEW.stamp.id, 1, 2), (OLD.stamp.id, 2, 2)] == [
            (item["stamp"], item["place"], item["embedded"]) for item in listed
        ]
        assert [OLD.stamp.id, NEW.stamp.id] == [item["stamp"] for item in used.json()["policy"]["stamps"]]
        assert (428, 412) == (missing.status_code, stale.status_code)
        assert [200, 200] == [answer.status_code for answer in retired]
        assert retired[0].json() == retired[1].json()
        assert (409, "stamp_not_ready") == (refused.status_code, refused.json()["code"])

    def test_cli(self, database: TestDatabase, changed: TenantMemory) -> None:
        """`stamp list`, `use` and `retire`."""
        cli = Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=changed.tenant.name)
        used = cli("stamp", "use", OLD.stamp.id, "--reason", "r", "--json").document
        cli("stamp", "retire", NEW.stamp.id, "--reason", "r")

        assert [OLD.stamp.id, NEW.stamp.id] == [item["stamp"] for item in used["policy"]["stamps"]]
        assert [OLD.stamp.id] == _names(changed)
        assert NEW.stamp.id in cli("stamp", "list").out
        assert 6 == cli("stamp", "retire", OLD.stamp.id, "--reason", "r").code
