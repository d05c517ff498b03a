"""A check of the projections as of a position: the digest of then, the rows of then, and what was signed then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grandbo.errors import Forbidden, LogDamaged, MomentUnknown
from grandbo.events import checkpoints, notes
from grandbo.library import Grandbo, TenantMemory
from grandbo.storage.tables import PROJECTIONS
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.histories import History
from tests.support.http import make_token
from tests.support.postgres import TestDatabase


@pytest.fixture
def own(clone: TestDatabase, tmp_path: Path) -> Iterator[TenantMemory]:
    """A memory on it, in a tenant of its own, with an entry at position 2 that is archived at 3."""
    with Grandbo.open(settings=clone.settings(home=tmp_path)) as grandbo:
        grandbo.create_tenant("acme")
        memory = grandbo.tenant("acme")
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.archive(entry, reason="r")
        yield memory


def damage(database: TestDatabase, statement: str) -> None:
    """Change rows behind the log's back."""
    with database.as_admin() as conn:
        conn.execute(statement.encode())


class TestDigest:
    @pytest.mark.parametrize("seed", [1, 2])
    def test_it_is_the_digest_that_a_check_gave_there(self, memory: TenantMemory, seed: int) -> None:
        """At each of many positions of a random history, and nothing differs from what the live tables say of then."""
        history = History(memory, {"admin": memory}, seed)
        then: dict[int, str] = {}
        for _ in range(12):
            history.grow(8, 2)
            checked = memory.check_rebuild()
            assert checked.ok
            then[checked.position] = checked.digest
        answer = history.asked[-1].answer
        for match in answer.matches[:1]:
            memory.give_feedback(answer.receipt_id, match.entry_id, "helped")
            memory.give_feedback(answer.receipt_id, match.entry_id, "wrong")
            checked = memory.check_rebuild()
            then[checked.position] = checked.digest
        memory.record_finding(make_finding())

        assert len(then) > 5
        for position, digest in then.items():
            again = memory.check_rebuild(until=position)
            assert (position, digest, [], None) == (again.position, again.digest, again.differences, again.signed)

    def test_a_table_without_rows_that_came_later_is_in_no_digest(self, own: TenantMemory, clone: TestDatabase) -> None:
        """So the digest of a log that has none of its events is still the one that was signed before the table came."""
        before = own.check_rebuild().digest
        later = PROJECTIONS[6:]
        assert {"org_memory_feedback"} <= {table.name for table in later}
        receipt = own.query_topic("consumers lost their leases", mode="words", statuses=["archived"])
        own.give_feedback(receipt.receipt_id, receipt.matches[0].entry_id, "helped")

        assert before != own.check_rebuild().digest
        assert before == own.check_rebuild(until=3).digest

    @pytest.mark.parametrize("position", [0, -1, 99])
    def test_a_position_that_the_log_does_not_have(self, memory: TenantMemory, position: int) -> None:
        """Refused with those that it has."""
        with pytest.raises(MomentUnknown, match="positions 1 to 1"):
            memory.check_rebuild(until=position)

    def test_it_needs_who_may_audit(self, memory: TenantMemory) -> None:
        """As a check of now does."""
        with pytest.raises(Forbidden):
            memory._grandbo.authenticate(make_token(memory, "investigator")).check_rebuild(until=1)


class TestRows:
    @pytest.mark.parametrize(
        ("statement", "table", "sides"),
        [
            (
                "UPDATE grandbo.org_memory_revisions SET title = 'forged' WHERE revision = 1",
                "org_memory_revisions",
                {"live", "replay"},
            ),
            (
                "UPDATE grandbo.org_memory_revisions SET to_position = 2 WHERE revision = 1",
                "org_memory_revisions",
                {"live", "replay"},
            ),
            ("DELETE FROM grandbo.org_memory_terms", "org_memory_terms", {"replay"}),
            (
                "INSERT INTO grandbo.org_memory_links SELECT tenant_id, entry_id, 'caused_by', entry_id, 2, 3,"
                " 'human:x', 'r', recorded_at FROM grandbo.org_memory_entries",
                "org_memory_links",
                {"live"},
            ),
        ],
    )
    def test_what_the_live_tables_say_of_then_is_compared(
        self, own: TenantMemory, clone: TestDatabase, statement: str, table: str, sides: set[str]
    ) -> None:
        """A row that began by then and is not what the log says is found; the digest is the replay's all the same."""
        sound = own.check_rebuild(until=2)
        damage(clone, statement)
        found = own.check_rebuild(until=2)

        assert (True, False, sound.digest) == (sound.ok, found.ok, found.digest)
        assert {(table, side) for side in sides} == {(item.table, item.side) for item in found.differences}

    def test_what_came_later_is_not(self, own: TenantMemory, clone: TestDatabase) -> None:
        """A row that began after the position, or was closed after it, says nothing of then."""
        damage(clone, "UPDATE grandbo.org_memory_revisions SET title = 'forged' WHERE revision = 2")
        damage(clone, "UPDATE grandbo.org_memory_entries SET title = 'forged'")

        assert (True, False) == (own.check_rebuild(until=2).ok, own.check_rebuild(until=3).ok)


class TestCheckpoint:
    def test_the_digest_of_an_old_checkpoint_is_computed_again(self, own: TenantMemory, clone: TestDatabase) -> None:
        """Equal, and said so; a size that was never signed has nothing to compare with."""
        signed = own.checkpoint()
        own.record_finding(make_finding())

        found, none = own.check_rebuild(until=3), own.check_rebuild(until=2)

        assert f"projections {found.digest}" in signed.checkpoint.extensions
        assert (True, found.digest, None) == (found.ok, found.signed, none.signed)

    def test_a_quick_checkpoint_states_no_digest(self, own: TenantMemory) -> None:
        """There is nothing to compare with."""
        own.checkpoint(projections=False)

        assert own.check_rebuild(until=3).signed is None

    def test_an_altered_checkpoint_is_found(self, own: TenantMemory, clone: TestDatabase) -> None:
        """Where the notary's key is known, a note with another digest is not taken for what was signed."""
        own.checkpoint()
        damage(clone, "ALTER TABLE grandbo.org_memory_checkpoints DISABLE TRIGGER USER")
        damage(
            clone,
            "UPDATE grandbo.org_memory_checkpoints SET note = replace(note, 'projections ', 'projections 0')",
        )

        with pytest.raises(LogDamaged, match="size 3"):
            own.check_rebuild(until=3)


class TestCommandLine:
    @pytest.fixture
    def cli(self, own: TenantMemory, clone: TestDatabase) -> Cli:
        """The command line on the database."""
        home = str(own._grandbo.settings.home)
        return Cli(GRANDBO_DATABASE_URL=clone.service, GRANDBO_EMBEDDER="none", GRANDBO_HOME=home)

    def test_it_says_what_was_signed_and_what_is(self, cli: Cli, own: TenantMemory) -> None:
        """Digest, differences, and the checkpoint of that size or none."""
        own.checkpoint()
        own.record_finding(make_finding())
        options = ("rebuild", "--check", "--tenant", "acme")
        signed, unsigned = (cli(*options, "--until", position, "--json") for position in (3, 2))

        digest = own.check_rebuild(until=3).digest
        assert (0, True, 3, digest, []) == (
            signed.code,
            *(signed.document[name] for name in ("ok", "position", "digest", "differences")),
        )
        assert {"digest": digest, "equal": True} == signed.document["checkpoint"]
        assert signed.document["digest"] != unsigned.document["digest"]
        assert unsigned.document["checkpoint"] is None
        assert "it is the digest that the checkpoint of size 3 states" in cli(*options, "--until", 3).out
        assert "no checkpoint of size 2 states a digest" in cli(*options, "--until", 2).out
        assert "checkpoint" not in cli(*options, "--json").document

    def test_a_digest_that_is_not_the_signed_one_fails_the_check(self, cli: Cli, own: TenantMemory) -> None:
        """With exit code 1, and both digests."""
        key = notes.notary_key(own._grandbo.settings.home)
        checkpoints.make(own._database, own.tenant_id, key, 3, [f"projections {'0' * 64}"])
        own.record_finding(make_finding())

        failed = cli("rebuild", "--check", "--tenant", "acme", "--until", 3, "--json")
        told = cli("rebuild", "--check", "--tenant", "acme", "--until", 3)

        assert (1, False, False) == (failed.code, failed.document["ok"], failed.document["checkpoint"]["equal"])
        assert "0" * 64 == failed.document["checkpoint"]["digest"]
        assert "it is NOT the digest that the checkpoint of size 3 states" in told.out

    @pytest.mark.parametrize(
        ("options", "code", "says"),
        [
            (["--until", "2", "--tenant", "acme"], 2, "--until goes with --check alone"),
            (["--check", "--until", "2"], 2, "name it with --tenant"),
            (["--check", "--until", "0", "--tenant", "acme"], 2, "positions 1 to 3"),
            (["--check", "--until", "4", "--tenant", "acme"], 2, "positions 1 to 3"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, cli: Cli, options: list[str], code: int, says: str) -> None:
        """With the way out."""
        refused = cli("rebuild", *options)

        assert code == refused.code
        assert says in refused.err

    def test_all_tenants_are_checked_with_the_digest_of_each(self, cli: Cli, own: TenantMemory) -> None:
        """Where none is named."""
        own._grandbo.create_tenant("other")
        found = cli("rebuild", "--check", "--json").document

        assert found["ok"]
        assert {
            str(memory.tenant_id): memory.check_rebuild().digest for memory in (own, own._grandbo.tenant("other"))
        } == {item["tenant_id"]: item["digest"] for item in found["tenants"]}
