"""kill -9 of the writer, the worker and the server at random moments: acknowledged = stored, and nothing is stuck."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from grandbo.library import Grandbo, TenantMemory
from grandbo.settings import Settings
from tests.support.providers import words_embedder
from tests.support.receiver import Receiver, listening

ROOT = Path(__file__).parents[2]
TENANT = "crash"


class Child:
    """A process under test and the acknowledgements that it got out before it died."""

    def __init__(self, role: str, home: Path) -> None:
        self.role = role
        self.ready = threading.Event()
        self.acknowledged: list[dict[str, Any]] = []
        self._unreadable: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.crash_child", role, str(home), TENANT],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line == "ready\n":
                self.ready.set()
            elif line.endswith("\n"):
                try:
                    self.acknowledged.append(json.loads(line))
                except ValueError:
                    # Told by who kills it: an error in this thread would not say what the line was.
                    self._unreadable.append(line)

    def wait_until_ready(self) -> None:
        """Wait for the process to have opened the memory; fail with its own words if it ended instead."""
        deadline = time.monotonic() + 60
        while not self.ready.wait(0.05):
            assert self._process.poll() is None, self._process.stderr.read() if self._process.stderr else ""
            assert time.monotonic() < deadline, f"the {self.role} did not come up"

    def kill(self) -> None:
        """kill -9, and collect what it had said."""
        died_by_itself = self._process.poll() is not None
        self._process.kill()
        self._process.wait(30)
        self._reader.join(30)
        assert not died_by_itself, self._process.stderr.read() if self._process.stderr else ""
        assert [] == self._unreadable
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


@contextmanager
def _home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="grandbo-crash-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "home"


def _kill_postmaster(home: Path) -> bool:
    try:
        pid = int((home / "pg" / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError):
        return False
    return True


def _campaign(kills: int, seed: int) -> dict[str, int]:
    """Kill `kills` times; then check everything that was acknowledged. Give the figures."""
    rng = random.Random(seed)
    with _home() as home:
        settings = Settings.load(home=home, embedder="none")
        with Grandbo.open(settings=settings, embedder=words_embedder()) as grandbo:
            grandbo.create_tenant(TENANT)
        children = {role: Child(role, home) for role in ("writer", "worker")}
        acknowledged: list[dict[str, Any]] = []
        killed = {"writer": 0, "worker": 0, "server": 0}
        while sum(killed.values()) < kills:
            for child in children.values():
                child.wait_until_ready()
            # Not a wait for anything: the moment of the kill is what is random here.
            threading.Event().wait(rng.uniform(0.01, 0.5))
            victim = rng.choice(sorted(killed))
            if victim == "server":
                killed["server"] += _kill_postmaster(home)
            else:
                children[victim].kill()
                acknowledged += children[victim].acknowledged
                killed[victim] += 1
                children[victim] = Child(victim, home)
        for child in children.values():
            child.wait_until_ready()
            child.kill()
            acknowledged += child.acknowledged
        with Grandbo.open(settings=settings, embedder=words_embedder()) as grandbo:
            return {**killed, **_check(grandbo, acknowledged)}


def _check(grandbo: Grandbo, acknowledged: list[dict[str, Any]]) -> dict[str, int]:
    memory = grandbo.tenant(TENANT, principal="human:tester")
    verification = memory.verify()
    assert verification.first_bad is None
    assert verification.events == verification.head
    stored = _hashes(grandbo, memory.tenant_id)
    lost = [ack for ack in acknowledged if stored.get(ack["position"]) != ack["hash"]]
    assert lost == []
    counts = memory.embed()
    assert (counts.pending, counts.dead) == (0, 0)
    assert memory.check_rebuild().ok
    return {"acknowledged": len(acknowledged), "events": verification.events, "lost": len(lost)}


def _hashes(grandbo: Grandbo, tenant_id: Any) -> dict[int, str]:
    from grandbo.events.log import read_rows

    with grandbo.database.transaction("auditor", tenant_id, read_only=True) as transaction:
        return {row["position"]: row["hash"].hex() for row in read_rows(transaction, tenant_id)}


def _ways_campaign(kills: int, seed: int) -> dict[str, int]:
    """Kill who delivers, who maps and tells, and the server; then nothing is lost, doubled or out of order."""
    rng = random.Random(seed)
    with _home() as home, listening() as receiver:
        settings = Settings.load(home=home, embedder="none", send_internal=True)
        with Grandbo.open(settings=settings) as grandbo:
            grandbo.create_tenant(TENANT)
            memory = grandbo.tenant(TENANT)
            hook, secret = memory.create_hook("grandbo", "crash", direct=True)
            subscription, _ = memory.create_subscription(receiver.url, "bus", event_types=["entry_recorded"])
        roles = {"tool": f"tool {hook.hook_id} {secret}", "worker": "worker"}
        children = {name: Child(role, home) for name, role in roles.items()}
        delivered: list[str] = []
        for _ in range(kills):
            for child in children.values():
                child.wait_until_ready()
            # Not a wait for anything: the moment of the kill is what is random here.
            threading.Event().wait(rng.uniform(0.05, 0.6))
            victim = rng.choice(["server", *sorted(roles)])
            if victim == "server":
                _kill_postmaster(home)
            else:
                children[victim].kill()
                delivered += [item["delivery_id"] for item in children[victim].acknowledged]
                children[victim] = Child(roles[victim], home)
        for child in children.values():
            child.wait_until_ready()
            child.kill()
            delivered += [item["delivery_id"] for item in child.acknowledged]
        later = datetime.now(UTC) + timedelta(minutes=10)
        with Grandbo.open(settings=settings, clock=lambda: later) as grandbo:
            memory = grandbo.tenant(TENANT)
            while memory.map_deliveries().total:
                pass
            memory.resume_subscription(subscription.subscription_id)
            memory.deliver_events()
            return _check_ways(memory, delivered, receiver)


def _check_ways(memory: TenantMemory, delivered: list[str], receiver: Receiver) -> dict[str, int]:
    outcomes = [memory.delivery(UUID(one))["outcomes"][0] for one in delivered]
    assert {"recorded"} == {one["outcome"] for one in outcomes}
    assert len({one["entry_id"] for one in outcomes}) == len(set(delivered))
    recorded = [event["position"] for event in memory.events(event_type="entry_recorded")]
    assert len(recorded) >= len(set(delivered))
    first_told = list(dict.fromkeys(receiver.positions))
    assert recorded == first_told
    assert memory.verify().first_bad is None
    repeated = len(receiver.positions) - len(first_told)
    return {"delivered": len(delivered), "entries": len(recorded), "told": len(first_told), "repeated": repeated}


class TestKill:
    def test_a_few_kills_lose_nothing_that_was_acknowledged(self) -> None:
        """Six kills at random moments: every acknowledgement is in the log with its hash, and the backlog drains."""
        figures = _campaign(6, seed=20260102)

        assert figures["acknowledged"] > 0
        assert 0 == figures["lost"]

    def test_what_tools_deliver_and_subscriptions_are_told_survives_kills(self) -> None:
        """Kills between store, map, append and telling: each delivery is one entry, each event is told, in order."""
        figures = _ways_campaign(4, seed=20260103)

        assert figures["delivered"] > 0
        assert figures["told"] > 0

    @pytest.mark.campaign
    def test_many_kills_on_the_ways_in_and_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The same over many more; the figures are printed."""
        figures = _ways_campaign(int(os.environ.get("GRANDBO_CAMPAIGN_KILLS", "60")), seed=int(time.time()))

        with capsys.disabled():
            print(f"\nkill -9 campaign, ways in and out: {figures}")

    @pytest.mark.campaign
    def test_many_kills_lose_nothing_that_was_acknowledged(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The same over at least sixty kills; the figures are printed."""
        figures = _campaign(int(os.environ.get("GRANDBO_CAMPAIGN_KILLS", "60")), seed=int(time.time()))

        with capsys.disabled():
            print(f"\nkill -9 campaign: {figures}")
        assert 0 == figures["lost"]
