"""Rebuild equals live: in another process, zone, hash seed and date, after damage, and while others write."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import uuid
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from grandbo.errors import EventUnreadable
from grandbo.library import Grandbo, TenantMemory
from tests.support.factories import make_finding
from tests.support.histories import History
from tests.support.postgres import TestDatabase, TestServer, run_home
from tests.support.providers import words_embedder

ROOT = Path(__file__).parents[2]


def _fill(memory: TenantMemory) -> None:
    for _ in range(4):
        memory.record_finding(make_finding())
    finding = make_finding(summary="line\nbreak", occurred_at="1628-08-10")
    memory.record_finding({**finding, "title": "Zoë’s データ 🔥"})
    memory.record_finding(
        {**finding, "title": "Zoë’s データ 🔥", "incident": {"source": "pager", "id": "another"}, "occurred_at": None}
    )
    memory.embed()
    memory.record_finding(make_finding())


class TestReplay:
    @pytest.mark.parametrize(
        "environment",
        [
            {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "1", "LC_ALL": "C"},
            {"TZ": "America/St_Johns", "PYTHONHASHSEED": "4242", "LC_ALL": "C.UTF-8"},
        ],
        ids=["Kiritimati", "St Johns"],
    )
    def test_a_replay_elsewhere_gives_the_same_rows_and_digest(
        self, memory: TenantMemory, database: TestDatabase, environment: dict[str, str]
    ) -> None:
        """Another zone, locale, hash seed and a date before all events change no row of a replay."""
        _fill(memory)
        here = memory.check_rebuild()

        done = subprocess.run(
            [sys.executable, "-m", "tests.support.rebuild_child", database.service, memory.tenant.name],
            cwd=ROOT,
            env={**os.environ, "GRANDBO_HOME": str(run_home()), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

        assert 0 == done.returncode, done.stderr
        assert {"ok": True, "digest": here.digest, "position": here.position} == json.loads(done.stdout)

    def test_a_damaged_projection_is_named_and_repaired(self, memory: TenantMemory, database: TestDatabase) -> None:
        """A row changed behind the log's back is found with its key; a rebuild puts it right."""
        _fill(memory)
        with database.as_admin() as conn:
            conn.execute(
                "UPDATE grandbo.org_memory_entries SET title = 'forged' WHERE ctid = (SELECT ctid FROM"
                " grandbo.org_memory_entries WHERE tenant_id = %s LIMIT 1)",
                (memory.tenant_id,),
            )
            conn.execute(
                "DELETE FROM grandbo.org_memory_terms WHERE ctid = (SELECT ctid FROM"
                " grandbo.org_memory_terms WHERE tenant_id = %s LIMIT 1)",
                (memory.tenant_id,),
            )
        damaged = memory.check_rebuild()
        memory.rebuild()
        repaired = memory.check_rebuild()

        assert {("org_memory_entries", "live"), ("org_memory_entries", "replay"), ("org_memory_terms", "replay")} == {
            (difference.table, difference.side) for difference in damaged.differences
        }
        assert repaired.ok

    def test_a_check_leaves_nothing_behind(self, memory: TenantMemory, database: TestDatabase) -> None:
        """After a check the scratch schema is empty."""
        _fill(memory)
        memory.check_rebuild()

        with database.as_admin() as conn:
            counts = [
                conn.execute(f"SELECT count(*) FROM grandbo_scratch.{table}").fetchone()
                for table in ("org_memory_entries", "org_memory_revisions", "org_memory_terms", "org_memory_embeddings")
            ]
        assert [(0,)] * 4 == counts

    def test_a_check_and_a_rebuild_while_others_write_are_right(self, memory: TenantMemory) -> None:
        """Writers go on during a check and wait during a rebuild; both come out equal."""
        _fill(memory)
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                memory.record_finding(make_finding())

        writer = threading.Thread(target=write)
        writer.start()
        try:
            results = [memory.check_rebuild().ok for _ in range(3)]
            memory.rebuild()
            results.append(memory.check_rebuild().ok)
        finally:
            stop.set()
            writer.join(60)

        assert [True] * 4 == results

    def test_an_event_that_cannot_be_read_ends_the_rebuild_and_keeps_the_rows(self, server: TestServer) -> None:
        """A replay never skips: an event of the future stops it by position and type, and the old rows stay."""
        with (
            server.clone() as cloned,
            Grandbo.open(settings=cloned.settings(), embedder=words_embedder()) as opened,
        ):
            opened.create_tenant("poison")
            memory = opened.tenant("poison", principal="human:tester")
            ack = memory.record_finding(make_finding()).acknowledgement
            with cloned.as_admin() as conn:
                conn.execute("ALTER TABLE grandbo.org_memory_events DISABLE TRIGGER ALL")
                conn.execute("ALTER TABLE grandbo.org_memory_events DROP CONSTRAINT org_memory_events_envelope")
                conn.execute("UPDATE grandbo.org_memory_events SET schema_version = 99 WHERE position = 2")

            with pytest.raises(EventUnreadable, match="Position 2 holds entry_recorded version 99"):
                memory.rebuild()
            found = memory.query_topic("consumers lost their leases", mode="words").matches

        assert [ack.entry_id] == [match.entry_id for match in found]


class AnyHistory(RuleBasedStateMachine):
    """One tenant, to which anything happens; after each step its log verifies, and replayed it gives the same rows."""

    grandbo: ClassVar[Grandbo]

    def __init__(self) -> None:
        super().__init__()
        name = f"h-{uuid.uuid4().hex[:12]}"
        self.grandbo.create_tenant(name)
        self._memory = self.grandbo.tenant(name, principal="human:tester")
        self._history = History(self._memory, {"admin": self._memory}, seed=0)
        self._history.grow(8, 0)

    @rule(number=st.integers(0, 99), draws=st.randoms(use_true_random=False))
    def act(self, number: int, draws: random.Random) -> None:
        """Any verb that the library has for entries, candidates and policies, on any of them."""
        self._history.act(number, draws)

    @rule(draws=st.randoms(use_true_random=False))
    def judge(self, draws: random.Random) -> None:
        """Feedback on an answer."""
        self._history.judge(draws)

    @rule(draws=st.randoms(use_true_random=False))
    def erase(self, draws: random.Random) -> None:
        """An entry goes, or its past."""
        self._history.erase(draws)

    @rule()
    def embed(self) -> None:
        """Whatever lacks a vector is given one."""
        self._memory.embed()

    @invariant()
    def rebuild_equals_live(self) -> None:
        """Row by row, and the chain holds."""
        assert self._memory.check_rebuild().ok
        assert self._memory.verify().first_bad is None


class TestRandomHistories:
    def test_rebuild_equals_live_after_every_step(self, grandbo: Grandbo) -> None:
        """Whatever was done in whatever order, a replay gives the same rows at each moment."""
        AnyHistory.grandbo = grandbo
        run_state_machine_as_test(AnyHistory, settings=settings(max_examples=8, stateful_step_count=25, deadline=None))

    @pytest.mark.parametrize("seed", range(3, 45))
    def test_rebuild_equals_live_along_a_long_history(self, memory: TenantMemory, seed: int) -> None:
        """What happened long ago meets what happens now: entries are linked, erased and corrected over and over."""
        draws = random.Random(seed)
        history = History(memory, {"admin": memory}, seed)
        history.grow(12, 0)
        for step in range(120):
            history.act(draws.randrange(1_000), draws)
            if draws.random() < 0.15:
                memory.embed()
            if draws.random() < 0.05:
                history.erase(draws)
                history.grow(1, 0)
            if step % 10 == 9:
                assert memory.check_rebuild().ok

        assert memory.verify().first_bad is None
