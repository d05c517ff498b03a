"""The log as a list: by actor, type, entry and time, page by page, in three formats."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grandbo.errors import InvalidInput
from grandbo.events import listing
from grandbo.library import Grandbo, TenantMemory
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.postgres import TestDatabase

START = datetime(2026, 3, 1, tzinfo=UTC)


class Hours:
    """A clock that is an hour later at each look."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


@pytest.fixture
def clocked(database: TestDatabase) -> Iterator[Grandbo]:
    """The shared database under that clock."""
    with Grandbo.open(settings=database.settings(), clock=Hours()) as opened:
        yield opened


@pytest.fixture
def audited(clocked: Grandbo, tenant_name: str) -> TenantMemory:
    """A tenant with five events, of two people and the operator."""
    clocked.create_tenant(tenant_name)
    ada, bot = (clocked.tenant(tenant_name, principal=who) for who in ("human:ada", "agent:bot"))
    for memory in (ada, bot, ada, bot):
        memory.record_finding(make_finding())
    return ada


@pytest.fixture
def cli(database: TestDatabase, audited: TenantMemory) -> Cli:
    """The command line on that tenant."""
    return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=str(audited.tenant_id))


def _positions(memory: TenantMemory, **wanted: Any) -> list[int]:
    return [event["position"] for event in memory.events(**wanted)]


class TestEvents:
    def test_all_of_them_in_order(self, audited: TenantMemory) -> None:
        """Every event of the tenant with who, what and when, and nothing of what was written."""
        events = list(audited.events())

        assert [1, 2, 3, 4, 5] == [event["position"] for event in events]
        assert ["tenant_created", *["entry_recorded"] * 4] == [event["event_type"] for event in events]
        assert [None, "ada", "bot", "ada", "bot"] == [event["actor"] for event in events]
        assert all(tuple(event) == listing.COLUMNS for event in events)
        assert "stalled" not in json.dumps(events)

    def test_of_an_actor(self, audited: TenantMemory) -> None:
        """By name, by type and name, by reference; a name that nobody has did nothing."""
        reference = next(iter(audited.events(after=1)))["principal"]

        for actor in ("ada", "human:ada", reference, reference.upper()):
            assert [2, 4] == _positions(audited, actor=actor), actor
        for actor in ("nobody", "agent:ada", "ad", "%", "", "\x00", f"{reference}\n"):
            assert [] == _positions(audited, actor=actor), actor

    def test_of_one_who_has_no_name(self, audited: TenantMemory) -> None:
        """The operator who made the tenant is known by the reference alone."""
        assert [1] == _positions(audited, actor=next(iter(audited.events()))["principal"])

    def test_of_a_type_and_of_an_entry(self, audited: TenantMemory) -> None:
        """Both narrow, and they narrow together."""
        entry = list(audited.events())[2]["stream_id"]

        assert [1] == _positions(audited, event_type="tenant_created")
        assert [3] == _positions(audited, entry_id=entry)
        assert [] == _positions(audited, entry_id=entry, event_type="tenant_created")

    def test_of_a_time(self, audited: TenantMemory) -> None:
        """`since` is part of the range and `until` is not; a day, a zone and a time are all understood."""
        times = [event["recorded_at"] for event in audited.events()]
        there = datetime.fromisoformat(times[3]).astimezone().isoformat()

        assert [2, 3] == _positions(audited, since=times[1], until=times[3])
        assert [4, 5] == _positions(audited, since=there)
        assert ([1, 2, 3, 4, 5], []) == (_positions(audited, since="2026-03"), _positions(audited, until="2026-03-01"))
        assert [5] == _positions(audited, since=datetime.fromisoformat(times[4]))

    def test_pages_miss_and_repeat_nothing(self, audited: TenantMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        """By `after` and `limit`, and inside where one answer takes several pages."""
        monkeypatch.setattr(listing, "PAGE", 2)

        assert [1, 2, 3, 4, 5] == _positions(audited)
        assert [2, 4] == _positions(audited, actor="ada")
        assert ([2, 3, 4], [5], []) == (
            _positions(audited, after=1, limit=3),
            _positions(audited, after=4, limit=3),
            _positions(audited, after=5),
        )

    def test_it_ends_where_the_log_ended(self, audited: TenantMemory, monkeypatch: pytest.MonkeyPatch) -> None:
        """What is appended while someone reads is not part of the answer, so that every answer ends."""
        monkeypatch.setattr(listing, "PAGE", 2)
        events = audited.events()
        first = next(events)["position"]
        audited.record_finding(make_finding())

        assert (1, [2, 3, 4, 5]) == (first, [event["position"] for event in events])
        assert [6] == _positions(audited, after=5)

    def test_with_bodies(self, audited: TenantMemory) -> None:
        """What was written, when it is asked for."""
        event = next(iter(audited.events(bodies=True, after=1)))

        assert ("kept", "checkout") == (event["body_state"], event["body"]["service"])

    def test_another_tenants_events_are_not_there(self, audited: TenantMemory, clocked: Grandbo) -> None:
        """Neither by position nor by entry nor by actor."""
        clocked.create_tenant(f"{audited.tenant.name}-other")
        other = clocked.tenant(f"{audited.tenant.name}-other", principal="human:ada")
        theirs = list(audited.events())[1]

        assert [1] == _positions(other)
        assert [] == _positions(other, entry_id=theirs["stream_id"])
        assert [] == _positions(other, actor=theirs["principal"])

    @pytest.mark.parametrize(
        ("wanted", "field"),
        [
            ({"event_type": "entry_forged"}, "type"),
            ({"entry_id": "x"}, "entry"),
            ({"since": "yesterday"}, "since"),
            ({"until": "2026-03-01T00:00:00"}, "until"),
            ({"since": datetime(2026, 3, 1)}, "since"),  # noqa: DTZ001  # a naive time is what this is about
            ({"after": -1}, "after"),
            ({"after": 2**63}, "after"),
            ({"limit": 0}, "limit"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, audited: TenantMemory, wanted: dict[str, Any], field: str) -> None:
        """The error names the filter, before anything is read."""
        with pytest.raises(InvalidInput) as refused:
            audited.events(**wanted)

        assert field == refused.value.details["field"]

    def test_the_names_behind_references_are_told_and_others_are_left_out(
        self, audited: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """The operator has none, another tenant's people are nobody here, and nonsense is no reference."""
        refs = {event["principal"] for event in audited.events()}
        foreign = other_memory.principal.ref
        found = audited.names([*refs, foreign, "human:jo", "", "human:00000000-0000-4000-8000-000000000000"])

        assert {"ada", "bot"} == set(found.values())
        assert found.keys() < refs
        assert {} == audited.names([])


class TestCommand:
    def test_a_table(self, cli: Cli) -> None:
        """One line an event."""
        lines = cli("audit", "events", "--actor", "ada").out.splitlines()

        assert [["2", "ada"], ["4", "ada"]] == [[line.split("\t")[0], line.split("\t")[3]] for line in lines]

    def test_json_lines(self, cli: Cli, audited: TenantMemory) -> None:
        """`--json` and `--format jsonl` are the same, and what the library gives."""
        asked = ("audit", "events", "--type", "entry_recorded", "--after", 2, "--limit", 2, "--bodies")

        found = cli(*asked, "--json")
        assert found.out == cli(*asked, "--format", "jsonl").out
        assert list(audited.events(after=2, limit=2, bodies=True)) == found.documents

    def test_csv_in_which_nothing_is_a_formula(self, cli: Cli, clocked: Grandbo, audited: TenantMemory) -> None:
        """A name that a spreadsheet would compute comes with an apostrophe in front."""
        names = ("=1+1", "+1", "-1", "@x")
        for name in names:
            clocked.tenant(audited.tenant_id, principal=f"human:{name}").record_finding(make_finding())

        rows = list(csv.DictReader(io.StringIO(cli("audit", "events", "--format", "csv", "--bodies").out)))

        assert [*listing.COLUMNS, "body_state", "body"] == list(rows[0])
        assert [str(position) for position in range(1, 10)] == [row["position"] for row in rows]
        assert [f"'{name}" for name in names] == [row["actor"] for row in rows[5:]]
        assert "checkout" == json.loads(rows[1]["body"])["service"]

    def test_bodies_do_not_fit_a_table(self, cli: Cli) -> None:
        """The error says which formats take them; a wrong filter is a usage error too."""
        refused, wrong = cli("audit", "events", "--bodies", "--json"), cli("audit", "events", "--bodies")

        assert (0, 2) == (refused.code, wrong.code)
        assert "--format jsonl" in wrong.err
        assert 2 == cli("audit", "events", "--since", "soon").code
