"""One entry as it stood, and the state of the memory page by page, now and then."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from starlette.testclient import TestClient

from grandbo.errors import Forbidden, InvalidInput, MomentUnknown, NotFound
from grandbo.http import entry_schemas
from grandbo.library import Grandbo, TenantMemory
from grandbo.recall.state import Filter, page_query
from grandbo.storage.compiling import compile_statement
from grandbo.storage.tables import SCHEMA, STATE_COLUMNS
from tests.support import walls
from tests.support.cli import Cli
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.postgres import TestDatabase, TestServer

NOBODY = uuid.UUID("00000000-0000-7000-8000-000000000007")
# No instant, or none that the calendar of the log has: naive, a date, in words, a leap second where none can be.
NO_INSTANTS = ["2026-03-29T02:30:00", "2026-03-29", "yesterday", "2016-12-30T23:59:60Z"]


def as_role(memory: TenantMemory, role: str) -> TenantMemory:
    """The same tenant, seen by someone with one role."""
    return memory._grandbo.authenticate(make_token(memory, role, kind="human"))


def record(memory: TenantMemory, **fields: Any) -> uuid.UUID:
    """A new entry."""
    return memory.record_finding(make_finding(**fields)).acknowledgement.entry_id


def head(memory: TenantMemory) -> int:
    """The last position of the tenant's log."""
    return memory.verify().head


def listed(memory: TenantMemory, size: int = 200, **wanted: Any) -> list[dict[str, Any]]:
    """All entries of a listing, by pages of a size."""
    page = memory.list_entries(limit=size, **wanted)
    found = list(page.entries)
    while page.next is not None:
        page = memory.list_entries(limit=size, **{**wanted, "after": page.next})
        assert page.entries
        found += page.entries
    return found


@pytest.fixture
def entry(memory: TenantMemory) -> uuid.UUID:
    """One entry, at position 2."""
    return record(memory, title="The first title")


class TestShow:
    def test_it_is_what_was_shown_then(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """At every position of a life the state, the revision and the links are those that were shown there."""
        other, third = record(memory), record(memory)
        shown = {}
        acts: tuple[Callable[[], object], ...] = (
            lambda: memory.correct(entry, {"title": "The second title"}, reason="r"),
            lambda: memory.link(entry, "caused_by", other, reason="r"),
            lambda: memory.link(third, "duplicates", entry, reason="r"),
            lambda: memory.dispute(entry, reason="r", other=other),
            lambda: memory.unlink(entry, "caused_by", other, reason="r"),
            lambda: memory.archive(entry, reason="r"),
            lambda: memory.quarantine(entry, reason="r"),
        )
        for act in acts:
            act()
            shown[head(memory)] = memory.show_entry(entry)

        for position, before in shown.items():
            then = memory.show_entry(entry, as_of_position=position)
            assert position == then.pop("as_of")["position"]
            unlike_now = {"erased": False}
            assert {name: value for name, value in before.items() if name != "feedback"} | unlike_now == then

    def test_a_time_means_the_last_position_by_then(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """In whatever zone the time is given, across the hour that a zone has twice too."""
        between = datetime.now(UTC)
        memory.archive(entry, reason="r")
        east = between.astimezone(tz=None).isoformat()

        for stated in (between, between.isoformat(), east, between.isoformat().replace("+00:00", "Z")):
            then = memory.show_entry(entry, as_of=stated)
            assert ("published", 2) == (then["status"], then["as_of"]["position"])
        assert "archived" == memory.show_entry(entry, as_of=between + timedelta(days=1))["status"]

    def test_the_two_halves_of_a_repeated_hour_are_two_instants(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """02:30 in summer time and 02:30 in winter time lie an hour apart; the offset says which is meant."""
        summer = memory.show_entry(entry, as_of="2099-10-25T02:30:00+02:00")
        winter = memory.show_entry(entry, as_of="2099-10-25T02:30:00+01:00")

        assert ("2099-10-25T00:30:00.000000Z", "2099-10-25T01:30:00.000000Z") == (
            summer["as_of"]["instant"],
            winter["as_of"]["instant"],
        )

    @pytest.mark.parametrize("stated", NO_INSTANTS)
    def test_what_names_no_instant_is_refused_with_the_form_that_is_wanted(
        self, memory: TenantMemory, entry: uuid.UUID, stated: str
    ) -> None:
        """At either verb."""
        for ask in (lambda: memory.show_entry(entry, as_of=stated), lambda: memory.list_entries(as_of=stated)):
            with pytest.raises(InvalidInput, match="RFC 3339 with a zone, such as"):
                ask()

    @pytest.mark.parametrize("position", [0, -1, 99, 2**70])
    def test_a_position_that_the_log_does_not_have(self, memory: TenantMemory, entry: uuid.UUID, position: int) -> None:
        """Refused with those that it has."""
        for ask in (
            lambda: memory.show_entry(entry, as_of_position=position),
            lambda: memory.list_entries(as_of_position=position),
        ):
            with pytest.raises(MomentUnknown, match="positions 1 to 2"):
                ask()

    def test_a_time_before_the_log_and_two_moments_at_once(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Neither has an answer."""
        with pytest.raises(MomentUnknown, match="begins at"):
            memory.show_entry(entry, as_of="1999-12-31T23:59:59Z")
        with pytest.raises(InvalidInput, match="not both"):
            memory.show_entry(entry, as_of="2099-01-01T00:00:00Z", as_of_position=1)

    def test_where_it_was_not_there_yet_it_is_not_found(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """As one that never was, and as one of another tenant."""
        for wanted, position in ((entry, 1), (NOBODY, 2)):
            with pytest.raises(NotFound):
                memory.show_entry(wanted, as_of_position=position)

    def test_another_tenant_s_entry_is_not_there(self, memory: TenantMemory, other_memory: TenantMemory) -> None:
        """Though the position is one of its own log."""
        foreign = record(other_memory)
        record(memory)

        with pytest.raises(NotFound):
            memory.show_entry(foreign, as_of_position=2)

    @pytest.mark.parametrize("role", ["investigator", "hook"])
    def test_the_past_needs_who_may_audit(self, memory: TenantMemory, entry: uuid.UUID, role: str) -> None:
        """An investigator sees the present alone."""
        caller = as_role(memory, role)

        for ask in (
            lambda: caller.show_entry(entry, as_of_position=2),
            lambda: caller.list_entries(as_of_position=2),
        ):
            with pytest.raises(Forbidden, match="auditor"):
                ask()


class TestTiers:
    def test_the_past_shows_what_one_saw_then_and_sees_now(self, memory: TenantMemory) -> None:
        """What was above the caller then, or is above him now, is not there; nor is it counted."""
        raised, lowered, open_ = record(memory), record(memory, visibility="admin"), record(memory)
        then = head(memory)
        memory.reclassify(raised, reason="r", visibility="admin")
        memory.reclassify(lowered, reason="r", visibility="team")
        reviewer, auditor = as_role(memory, "reviewer"), as_role(memory, "auditor")

        for hidden in (raised, lowered):
            with pytest.raises(NotFound):
                reviewer.show_entry(hidden, as_of_position=then)
        assert str(open_) == reviewer.show_entry(open_, as_of_position=then)["entry_id"]
        assert [str(open_)] == [item["entry_id"] for item in listed(reviewer, as_of_position=then)]
        assert {str(lowered), str(open_)} == {item["entry_id"] for item in listed(reviewer)}
        assert 3 == len(listed(auditor, as_of_position=then))

    def test_links_and_other_sides_above_the_caller_are_left_out(self, memory: TenantMemory, entry: uuid.UUID) -> None:
        """Whether the far end stood above him then or was raised since."""
        ends = [record(memory), record(memory, visibility="admin"), record(memory)]
        for end in ends:
            memory.link(entry, "relates_to", end, reason="r")
        memory.dispute(entry, reason="r", other=ends[0])
        then = head(memory)
        memory.reclassify(ends[0], reason="r", visibility="admin")
        memory.reclassify(ends[1], reason="r", visibility="team")
        reviewer = as_role(memory, "reviewer")

        seen = reviewer.show_entry(entry, as_of_position=then)
        whole = memory.show_entry(entry, as_of_position=then)
        row = next(item for item in listed(reviewer, as_of_position=then) if item["entry_id"] == str(entry))

        assert ([str(ends[2])], None) == ([link["entry_id"] for link in seen["links"]], seen["disputed_with"])
        assert (3, str(ends[0])) == (len(whole["links"]), whole["disputed_with"])
        assert (True, None) == (row["disputed"], row["disputed_with"])

    def test_explicit_predicates_alone_hold(self, server: TestServer) -> None:
        """With row-level security switched off nothing of another tenant is listed, shown, told of or counted."""
        topic = "consumers lost their leases"
        with server.clone() as database, Grandbo.open(settings=database.settings()) as grandbo:
            for name in ("one", "two"):
                grandbo.create_tenant(name)
            one, two = (grandbo.tenant(name) for name in ("one", "two"))
            own, foreign = record(one), record(two)
            receipt = two.query_topic(topic, mode="words").receipt_id
            two.give_feedback(receipt, foreign, "wrong")
            with database.as_admin() as admin:
                walls.without_row_security(admin)

            for position in (None, 2):
                assert [str(own)] == [item["entry_id"] for item in listed(one, as_of_position=position)]
                with pytest.raises(NotFound):
                    one.show_entry(foreign, as_of_position=position)
            with pytest.raises(NotFound):
                one.give_feedback(receipt, foreign, "helped")
            assert 0 == one.show_entry(own)["feedback"]["wrong"]
            assert one.check_rebuild(until=2).ok

    def test_row_level_security_alone_holds(
        self, memory: TenantMemory, other_memory: TenantMemory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With every explicit tenant predicate taken out nothing of another tenant is listed, shown or counted."""
        foreign, own = record(other_memory), record(memory)
        memory.link(own, "relates_to", record(memory), reason="r")
        stripped = walls.without_predicates(monkeypatch)

        found = [item["entry_id"] for item in (*listed(memory), *listed(memory, as_of_position=4))]
        with pytest.raises(NotFound):
            memory.show_entry(foreign, as_of_position=2)

        assert 4 == len(found)
        assert str(foreign) not in found
        assert 1 == len(memory.show_entry(own, as_of_position=4)["links"])
        assert set() == stripped.unguarded


class TestList:
    def test_every_entry_comes_once_whatever_the_page(self, memory: TenantMemory) -> None:
        """In the order of ids, with the state that showing it gives."""
        made = sorted(str(record(memory)) for _ in range(7))

        for size in (1, 3, 7, 200):
            assert made == [item["entry_id"] for item in listed(memory, size)]
        shown = memory.show_entry(uuid.UUID(made[0]))
        besides = ("links", "feedback", "trust_bp")
        assert {name: shown[name] for name in shown if name not in besides} == listed(memory)[0]
        assert {"entry_id", "revision", "position"} <= listed(memory)[0].keys()

    def test_all_statuses_are_listed_unless_narrowed(self, memory: TenantMemory) -> None:
        """By kind, status and service, each alone and together; a filter that fits nothing lists nothing."""
        ids = {name: record(memory) for name in ("published", "archived", "quarantined", "superseded")}
        memory.archive(ids["archived"], reason="r")
        memory.quarantine(ids["quarantined"], reason="r")
        memory.supersede(ids["superseded"], ids["published"], reason="r")
        decision = record(memory, kind="decision", service="billing")

        def found(**wanted: Any) -> set[str]:
            then = listed(memory, 2, as_of_position=head(memory), **wanted)
            now = listed(memory, 2, **wanted)
            assert now == then
            return {item["entry_id"] for item in now}

        assert {str(item) for item in (*ids.values(), decision)} == found()
        assert {str(ids["archived"])} == found(statuses="archived")
        assert {str(ids["archived"]), str(ids["superseded"])} == found(statuses=["archived", "superseded"])
        assert {str(decision)} == found(kinds=["decision"]) == found(service="billing")
        assert set() == found(kinds="decision", service="checkout")
        assert set() == found(statuses=["archived"], kinds=["decision"])

    def test_pages_are_stable_while_others_write(self, memory: TenantMemory) -> None:
        """What is changed or recorded between two pages makes no entry come twice or not at all."""
        made = [str(record(memory)) for _ in range(5)]
        first = memory.list_entries(limit=2)
        memory.correct(uuid.UUID(made[0]), {"title": "Changed after its page"}, reason="r")
        memory.archive(uuid.UUID(made[4]), reason="r")
        new = str(record(memory))
        rest = listed(memory, 2, after=first.next)

        assert [*made, new] == [item["entry_id"] for item in (*first.entries, *rest)]
        assert "archived" == next(item["status"] for item in rest if item["entry_id"] == made[4])

    def test_the_state_of_a_moment_is_what_was_listed_then(self, memory: TenantMemory) -> None:
        """Every entry, field by field, at each position of a small history."""
        seen: dict[int, list[dict[str, Any]]] = {head(memory): listed(memory)}
        ids = []
        for number in range(6):
            ids.append(record(memory, visibility=("team", "admin")[number % 2]))
            seen[head(memory)] = listed(memory)
            memory.correct(ids[number // 2], {"body": f"Body {number}"}, reason="r")
            seen[head(memory)] = listed(memory)
        memory.dispute(ids[0], reason="r", other=ids[1])
        seen[head(memory)] = listed(memory)

        for position, before in seen.items():
            assert before == listed(memory, 2, as_of_position=position)
        assert {"position", "instant"} == (memory.list_entries(as_of_position=3).as_of or {}).keys()
        assert memory.list_entries().as_of is None

    def test_every_page_of_a_time_is_of_one_position(self, memory: TenantMemory) -> None:
        """A time that is not over yet would mean another position at each page."""
        made = [record(memory) for _ in range(4)]
        time = "2099-01-01T00:00:00Z"
        first = memory.list_entries(limit=2, as_of=time)
        memory.archive(made[3], reason="r")
        second = memory.list_entries(limit=2, after=first.next, as_of=time)

        assert first.as_of == second.as_of
        assert ["published"] * 2 == [item["status"] for item in second.entries]

    @pytest.mark.parametrize("limit", [0, 201, True, "5"])
    def test_a_page_has_a_size(self, memory: TenantMemory, limit: Any) -> None:
        """Refused with the sizes that there are."""
        with pytest.raises(InvalidInput, match="from 1 to 200"):
            memory.list_entries(limit=limit)

    @pytest.mark.parametrize(
        "cursor", ["", "x", "%", "A" * 300, "W10", "bnVsbA", "WzEsMiwzXQ", "eyJhIjoxfQ", "\u0661", 7, str(NOBODY)]
    )
    def test_what_is_no_cursor_is_refused(self, memory: TenantMemory, cursor: Any) -> None:
        """Whatever was written in its place."""
        with pytest.raises(InvalidInput, match="this is no cursor"):
            memory.list_entries(after=cursor)

    def test_a_cursor_belongs_to_its_listing(self, memory: TenantMemory) -> None:
        """With other filters, or at another moment, it is refused instead of giving some page."""
        for _ in range(3):
            record(memory)
        live = memory.list_entries(limit=1).next
        past = memory.list_entries(limit=1, as_of_position=3).next

        for cursor, wanted in (
            (live, {"kinds": ["finding"]}),
            (live, {"as_of_position": 3}),
            (past, {"as_of_position": 4}),
            (past, {}),
        ):
            with pytest.raises(InvalidInput, match="after"):
                memory.list_entries(after=cursor, **wanted)

    @pytest.mark.parametrize(
        ("wanted", "named"),
        [({"kinds": ["gossip"]}, "kind"), ({"statuses": "gone"}, "status"), ({"service": " "}, "service")],
    )
    def test_what_does_not_fit_is_refused_by_name(
        self, memory: TenantMemory, wanted: dict[str, Any], named: str
    ) -> None:
        """With what is allowed there."""
        with pytest.raises(InvalidInput) as refused:
            memory.list_entries(**wanted)

        assert named == refused.value.details["field"]

    def test_a_hook_may_not_list(self, memory: TenantMemory) -> None:
        """It may record and nothing else."""
        with pytest.raises(Forbidden):
            as_role(memory, "hook").list_entries()


class TestPlan:
    def test_a_page_is_found_by_its_key(self, server: TestServer) -> None:
        """
        Among many entries, under row-level security, no page of now or of then reads or sorts them all.

        Of now there is a page of each tier, and only those pages are sorted together.
        """
        with server.clone() as database, Grandbo.open(settings=database.settings()) as grandbo:
            grandbo.create_tenant("big")
            memory = grandbo.tenant("big")
            self._multiply(database, record(memory))

            for is_past in (False, True):
                plan = self._plan(database, memory.tenant_id, is_past=is_past)
                assert "Seq Scan" not in plan, plan
                assert "Sort" not in plan.rpartition("Function Scan")[2], plan
                assert "org_memory_entries_key" in plan

    @staticmethod
    def _multiply(database: TestDatabase, entry_id: uuid.UUID) -> None:
        tables = {
            "entries": ["tenant_id", "entry_id", "revision", "position", "terms"],
            "revisions": [
                "tenant_id", "entry_id", "revision", "from_position", "to_position", "event_type", "principal",
            ],
        }  # fmt: skip
        with database.as_admin() as conn:
            for table, columns in tables.items():
                names = [*columns, *STATE_COLUMNS]
                values = ", ".join("gen.id" if name == "entry_id" else f"one.{name}" for name in names)
                conn.execute(
                    f"INSERT INTO grandbo.org_memory_{table} ({', '.join(names)}) SELECT {values}"
                    f" FROM grandbo.org_memory_{table} one, (SELECT ('02900000-0000-7000-8000-' || "
                    " lpad(to_hex(n), 12, '0'))::uuid AS id FROM generate_series(1, 20000) n) gen"
                    " WHERE one.entry_id = %s",
                    (entry_id,),
                )
                conn.execute(f"ANALYZE grandbo.org_memory_{table}".encode())

    @staticmethod
    def _plan(database: TestDatabase, tenant_id: uuid.UUID, *, is_past: bool) -> str:
        compiled = compile_statement(page_query(Filter(), is_past=is_past), SCHEMA)
        tiers = ["team", "tech"]
        params = {"tenant_id": tenant_id, "after": NOBODY, "page": 51, "tiers": tiers}
        past = {"position": 2, "own_tiers": tiers} if is_past else {}
        with psycopg.connect(database.service, autocommit=False, cursor_factory=psycopg.RawCursor) as conn:
            conn.execute(f"SET LOCAL ROLE grandbo_auditor; SET LOCAL grandbo.tenant_id = '{tenant_id}'".encode())
            rows = conn.execute(f"EXPLAIN {compiled.sql}".encode(), compiled.bind({**params, **past})).fetchall()
        return "\n".join(str(row[0]) for row in rows)


class TestDoors:
    @pytest.fixture
    def cli(self, database: TestDatabase, memory: TenantMemory) -> Cli:
        """The command line in the test's own tenant, by words alone."""
        return Cli(GRANDBO_DATABASE_URL=database.service, GRANDBO_EMBEDDER="none", GRANDBO_TENANT=memory.tenant.name)

    @pytest.fixture
    def client(self, grandbo: Grandbo, memory: TenantMemory) -> TestClient:
        """Someone who may audit and sees every tier."""
        return client_of(grandbo, token=make_token(memory, "auditor", kind="human"))

    def test_each_door_shows_the_entry_of_then(
        self, memory: TenantMemory, entry: uuid.UUID, cli: Cli, client: TestClient
    ) -> None:
        """Command line and HTTP give what the library gives; HTTP gives no ETag, for nothing can be decided on it."""
        memory.archive(entry, reason="r")
        then = memory.show_entry(entry, as_of_position=2)
        answer = client.get(f"/v1/entries/{entry}", params={"as_of_position": 2})
        told = cli("entry", "show", entry, "--as-of-position", 2)

        assert then == cli("entry", "show", entry, "--as-of-position", 2, "--json").document == answer.json()
        assert "etag" not in answer.headers
        assert "as of    position 2, " in told.out
        instant = then["as_of"]["instant"]
        assert then == client.get(f"/v1/entries/{entry}", params={"as_of": instant}).json()

    def test_each_door_lists_and_goes_on(
        self, memory: TenantMemory, entry: uuid.UUID, cli: Cli, client: TestClient
    ) -> None:
        """JSON Lines with the cursor on stderr, a table for people, a page with `next` over HTTP."""
        for _ in range(3):
            record(memory)
        whole = listed(memory)
        first = cli("state", "--limit", 3, "--json")
        rest = cli("state", "--limit", 3, "--json", "--after", json.loads(first.err)["next"])
        page = client.get("/v1/entries", params={"limit": 3}).json()
        end = client.get("/v1/entries", params={"limit": 3, "after": page["next"]}).json()
        table = cli("state", "--limit", 3)

        assert whole == [*first.documents, *rest.documents] == [*page["entries"], *end["entries"]]
        assert ("", None) == (rest.err, end["next"])
        assert f"There is more: --after {json.loads(first.err)['next']}\n" == table.err
        assert [str(item["entry_id"]) for item in whole[:3]] == [line.split("\t")[0] for line in table.out.splitlines()]

    def test_each_door_lists_the_past_with_filters(
        self, memory: TenantMemory, entry: uuid.UUID, cli: Cli, client: TestClient
    ) -> None:
        """A status and a kind may be given several times."""
        memory.archive(entry, reason="r")
        record(memory, kind="decision")
        options = ["--status", "published", "--status", "archived", "--kind", "finding", "--as-of-position", "2"]
        query: dict[str, Any] = {"status": ["published", "archived"], "kind": "finding", "as_of_position": 2}

        (line,) = cli("state", *options, "--json").documents
        page = client.get("/v1/entries", params=query).json()

        assert ("published", [line], 2) == (line["status"], page["entries"], page["as_of"]["position"])

    @pytest.mark.parametrize(
        ("query", "status", "code"),
        [
            ({"as_of_position": "99"}, 422, "moment_unknown"),
            ({"as_of_position": "x"}, 422, "invalid_input"),
            ({"as_of": "2026-03-29T02:30:00"}, 422, "invalid_input"),
            ({"as_of": "2016-12-30T23:59:60Z"}, 422, "invalid_input"),
            ({"as_of": "2016-12-31T23:59:60Z"}, 422, "moment_unknown"),
        ],
    )
    def test_a_moment_that_is_none_is_refused_at_each_door(
        self, entry: uuid.UUID, client: TestClient, cli: Cli, query: dict[str, str], status: int, code: str
    ) -> None:
        """Under its code, with exit code 2."""
        (name, value), *_ = query.items()
        option = f"--{name.replace('_', '-')}"
        for path, command in ((f"/v1/entries/{entry}", ("entry", "show", entry)), ("/v1/entries", ("state",))):
            answer = client.get(path, params=query)
            assert (status, code) == (answer.status_code, answer.json()["code"])
            assert 2 == cli(*command, option, value).code

    def test_who_may_not_is_told_so_over_http(self, grandbo: Grandbo, memory: TenantMemory, entry: uuid.UUID) -> None:
        """An investigator lists the present and not the past; a hook neither; nobody without a key."""
        investigator = client_of(grandbo, token=make_token(memory, "investigator"))
        hook = client_of(grandbo, token=make_token(memory, "hook"))

        assert [200, 403, 403, 403, 401] == [
            investigator.get("/v1/entries").status_code,
            investigator.get("/v1/entries", params={"as_of_position": 1}).status_code,
            investigator.get(f"/v1/entries/{entry}", params={"as_of_position": 2}).status_code,
            hook.get("/v1/entries").status_code,
            client_of(grandbo).get("/v1/entries").status_code,
        ]

    def test_an_entry_of_any_kind_is_recorded_over_http(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """As a finding is, but that its kind has to be said; again, it is the first acknowledgement."""
        hook = client_of(grandbo, token=make_token(memory, "hook", kind="hook"))
        body = make_finding(kind="ruled_out")

        first, again = (hook.post("/v1/entries", json=body) for _ in range(2))
        unsaid = hook.post("/v1/entries", json=make_finding())
        unkeyed = hook.post("/v1/entries", json=make_finding(kind="decision", incident=...))

        assert (201, 200, first.json()) == (first.status_code, again.status_code, again.json())
        assert "ruled_out" == memory.show_entry(uuid.UUID(first.json()["entry_id"]))["kind"]
        assert (422, "kind: it is required.") == (unsaid.status_code, unsaid.json()["detail"])
        assert (400, "idempotency_key_missing") == (unkeyed.status_code, unkeyed.json()["code"])

    def test_the_described_answers_are_the_given_ones(
        self, memory: TenantMemory, entry: uuid.UUID, client: TestClient
    ) -> None:
        """Every field of a page, of an entry of now and of then, and of a difference is in the OpenAPI document."""
        memory.correct(entry, {"title": "The second title"}, reason="r")
        path = f"/v1/entries/{entry}"
        for described, answer in (
            (entry_schemas.EntriesDocument, client.get("/v1/entries")),
            (entry_schemas.EntriesDocument, client.get("/v1/entries", params={"as_of_position": 2})),
            (entry_schemas.EntryDocument, client.get(path)),
            (entry_schemas.PastEntryDocument, client.get(path, params={"as_of_position": 2})),
            (entry_schemas.RevisionDifferencesDocument, client.get(f"{path}/differences", params={"from": 1, "to": 2})),
        ):
            read = described.model_validate(answer.json())
            assert read.model_dump(by_alias=True) == answer.json()

    def test_two_revisions_are_compared_over_http(
        self, memory: TenantMemory, entry: uuid.UUID, cli: Cli, client: TestClient
    ) -> None:
        """Word by word, the same as on the command line; a revision that never was is not found."""
        memory.correct(entry, {"title": "The second title"}, reason="r")
        path = f"/v1/entries/{entry}/differences"
        answer = client.get(path, params={"from": 1, "to": 2})

        assert 200 == answer.status_code
        assert cli("entry", "history", entry, "--diff", 1, 2, "--json").document == answer.json()
        (change,) = (item for item in answer.json()["changes"] if item["field"] == "title")
        assert {"operation": "added", "text": "second"} in change["words"]
        assert (1, 2) == (answer.json()["from"], answer.json()["to"])
        assert [404, 422, 422, 404] == [
            client.get(path, params={"from": 1, "to": 9}).status_code,
            client.get(path, params={"from": 0, "to": 2}).status_code,
            client.get(path, params={"from": 1}).status_code,
            client.get(f"/v1/entries/{NOBODY}/differences", params={"from": 1, "to": 2}).status_code,
        ]

    def test_a_revision_above_the_caller_s_tiers_is_not_compared(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """It is as absent as one that never was."""
        entry = record(memory, visibility="admin")
        memory.reclassify(entry, reason="r", visibility="team")
        memory.correct(entry, {"title": "Another title"}, reason="r")
        reviewer = client_of(grandbo, token=make_token(memory, "reviewer"))
        path = f"/v1/entries/{entry}/differences"

        hidden, never, seen = (reviewer.get(path, params={"from": one, "to": 3}) for one in (1, 9, 2))

        assert (404, 404, 200) == (hidden.status_code, never.status_code, seen.status_code)
        assert hidden.json()["detail"].replace("1", "9") == never.json()["detail"]
