"""API keys: their end, keys that only read, who may grant what, and keys over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grandbo.errors import Forbidden, GrandboError, InvalidInput, NotFound, Unauthenticated
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import ROLES, WRITING_ACTS, may
from grandbo.memory.principals import parse_life
from tests.support.factories import make_finding
from tests.support.http import client_of, make_token
from tests.support.mcp import talk
from tests.support.postgres import TestDatabase

TOPIC = "consumers lost their leases after the broker restarted"


class TestExpiry:
    def test_a_key_opens_nothing_from_its_end_on(self, database: TestDatabase, memory: TenantMemory) -> None:
        """At the instant itself neither; the answer is that of a revoked key."""
        now = datetime.now(UTC)
        with Grandbo.open(settings=database.settings(), clock=lambda: now) as opened:
            admin = opened.tenant(memory.tenant.name)
            key, token = admin.create_key("guest", "agent", ("investigator",), expires_in=timedelta(hours=1))
            revoked, revoked_token = admin.create_key("leaver", "agent", ("investigator",))
            admin.revoke_key(revoked.key_id)
            assert memory.tenant_id == opened.authenticate(token).tenant_id
            now += timedelta(minutes=59, seconds=59)
            assert memory.tenant_id == opened.authenticate(token).tenant_id
            now += timedelta(seconds=1)

            told = {_message(opened, token), _message(opened, revoked_token), _message(opened, "gbk_nothing")}

        assert 1 == len(told)
        assert now == key.expires_at

    def test_without_an_end_it_works_until_it_is_revoked(self, memory: TenantMemory) -> None:
        """As keys did before there was an end."""
        assert memory.create_key("forever", "agent", ("investigator",))[0].expires_at is None

    @pytest.mark.parametrize(
        ("text", "hours"), [("1h", 1), ("12h", 12), ("90d", 2_160), ("4w", 672), ("3650d", 87_600)]
    )
    def test_how_long_is_written_in_hours_days_or_weeks(self, text: str, hours: int) -> None:
        """Up to ten years."""
        assert timedelta(hours=hours) == parse_life(text)

    @pytest.mark.parametrize("text", ["", "0d", "-1d", "1", "d", "1m", "1.5d", "3651d", "99999w", "1d ", "１d"])
    def test_anything_else_is_refused(self, text: str) -> None:
        """With what to write."""
        with pytest.raises(InvalidInput, match="90d"):
            parse_life(text)


def _message(opened: Grandbo, token: str) -> str:
    with pytest.raises(Unauthenticated) as raised:
        opened.authenticate(token)
    return raised.value.message


class TestReadOnly:
    @pytest.fixture
    def reader(self, grandbo: Grandbo, memory: TenantMemory) -> TenantMemory:
        """Someone with every role, by a key that only reads."""
        return grandbo.authenticate(memory.create_key("looker", "human", ROLES, read_only=True)[1])

    def test_no_act_that_writes_is_left(self, reader: TenantMemory) -> None:
        """Whatever the roles allow."""
        left = {
            act
            for act in ("record", "recall", "propose", "remember", "govern", "audit", "administer")
            if may(reader.principal, act)
        }

        assert {"recall", "audit"} == left
        assert {"record", "propose", "remember", "govern", "administer"} == WRITING_ACTS

    def test_every_verb_that_writes_is_refused_and_none_that_reads(
        self, memory: TenantMemory, reader: TenantMemory
    ) -> None:
        """And the log is as it was."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        answer = memory.query_topic(TOPIC)
        before = memory.verify().head
        writes: list[Callable[[], Any]] = [
            lambda: reader.record_finding(make_finding()),
            lambda: reader.archive(entry_id, reason="a reason", expected_revision=1),
            lambda: reader.propose(make_finding(), reason="a reason"),
            lambda: reader.give_feedback(answer.receipt_id, entry_id, "helped"),
            lambda: reader.change_policy({"floor": 1}, reason="a reason"),
            lambda: reader.create_key("another", "agent", ("investigator",)),
            lambda: reader.checkpoint(),
            lambda: reader.rebuild(),
            lambda: reader.rotate_receipt_key(),
            lambda: reader.quarantine_impact(entry_id, reason="a reason"),
        ]
        for write in writes:
            with pytest.raises(Forbidden):
                write()

        assert before == memory.verify().head
        assert reader.query_topic(TOPIC).position == before
        assert reader.show_entry(entry_id)["revision"] == 1
        assert reader.verify().first_bad is None

    def test_agents_are_offered_no_tool_that_writes(self, memory: TenantMemory, reader: TenantMemory) -> None:
        """As if the server itself were read-only."""

        async def names(client: Any) -> set[str]:
            return {tool.name for tool in (await client.list_tools()).tools if not tool.annotations.read_only_hint}

        assert set() == talk(reader, names)


class TestGranting:
    def test_nobody_grants_what_he_may_not_do(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Whose roles do not administer makes no key at all."""
        for role in ROLES:
            holder = grandbo.authenticate(make_token(memory, role))
            if role == "admin":
                assert holder.create_key("next", "agent", ROLES)[0].principal.roles == frozenset(ROLES)
            else:
                with pytest.raises(Forbidden):
                    holder.create_key("next", "agent", (role,))

    def test_nobody_grants_a_tier_that_he_does_not_see(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Where the policy lets auditors see what admins do not, an admin makes no key for an auditor."""
        memory.change_policy({"roles": {"admin": ["team"]}}, reason="admins need not see everything")
        admin = grandbo.authenticate(make_token(memory, "admin"))

        with pytest.raises(Forbidden, match="auditor"):
            admin.create_key("auditor", "human", ("auditor",))
        assert 1 == len(admin.create_key("peer", "human", ("admin",))[0].principal.roles)


class TestOverHTTP:
    def test_a_key_is_made_listed_and_revoked(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """The secret is in the first answer and in no other; the key works, then it does not."""
        client = client_of(grandbo, token=make_token(memory, "admin"))
        wanted = {
            "principal": "helper",
            "type": "agent",
            "roles": ["investigator"],
            "expires_in": "90d",
            "read_only": True,
        }
        answer = client.post("/v1/keys", json=wanted)
        made = answer.json()
        opened = client_of(grandbo, token=made["secret"])
        listed = client.get("/v1/keys").json()["keys"]
        status = opened.post("/v1/recall", json={"topic": TOPIC}).status_code

        revoked = [client.delete(f"/v1/keys/{made['key_id']}") for _ in range(2)]

        assert (201, 200) == (answer.status_code, status)
        assert [{**made, "secret": ...}] == [
            {**key, "secret": ...} for key in listed if key["key_id"] == made["key_id"]
        ]
        assert made["secret"] not in repr(listed)
        assert [(204, b""), (204, b"")] == [(item.status_code, item.content) for item in revoked]
        assert 401 == opened.post("/v1/recall", json={"topic": TOPIC}).status_code

    def test_pages_show_each_key_once(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Oldest first, whatever is made meanwhile; null at the end."""
        token = make_token(memory, "admin")
        for number in range(6):
            memory.create_key(f"holder-{number}", "agent", ("investigator",))
        client = client_of(grandbo, token=token)
        seen: list[str] = []
        after = None
        for _ in range(10):
            page = client.get("/v1/keys", params={"limit": 2, **({"after": after} if after else {})}).json()
            seen += [key["key_id"] for key in page["keys"]]
            after = page["next"]
            if after is None:
                break

        every = memory.keys()
        assert [key.key_id for key in every] == seen
        assert 7 == len(seen)

    @pytest.mark.parametrize(
        "wrong",
        [
            "text",
            [],
            {},
            {"principal": "", "type": "agent", "roles": ["hook"]},
            {"principal": "a\0b", "type": "agent", "roles": ["hook"]},
            {"principal": "oidc:ada", "type": "agent", "roles": ["hook"]},
            {"principal": "x", "type": "system", "roles": ["hook"]},
            {"principal": "x", "type": "agent", "roles": []},
            {"principal": "x", "type": "agent", "roles": ["root"]},
            {"principal": "x", "type": "agent", "roles": "hook"},
            {"principal": "x", "type": "agent", "roles": ["hook"], "expires_in": "soon"},
            {"principal": "x", "type": "agent", "roles": ["hook"], "expires_in": "9999w"},
            {"principal": "x", "type": "agent", "roles": ["hook"], "read_only": "yes"},
            {"principal": "x", "type": "agent", "roles": ["hook"], "tenant": "other"},
        ],
        ids=repr,
    )
    def test_a_body_that_does_not_fit_makes_no_key(self, grandbo: Grandbo, memory: TenantMemory, wrong: Any) -> None:
        """422 that names the field."""
        client = client_of(grandbo, token=make_token(memory, "admin"))

        answer = client.post("/v1/keys", json=wrong)

        assert (422, "invalid_input") == (answer.status_code, answer.json()["code"])
        assert 1 == len(memory.keys())

    def test_keys_of_others_look_absent(
        self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """A foreign id, an unknown one and what is no id get one answer, and the foreign key goes on working."""
        foreign, token = other_memory.create_key("theirs", "agent", ("investigator",))
        client = client_of(grandbo, token=make_token(memory, "admin"))
        answers = [client.delete(f"/v1/keys/{key_id}") for key_id in (foreign.key_id, "0" * 48, "x", "a%00b")]

        assert {404} == {answer.status_code for answer in answers}
        assert 1 == len({answer.json()["detail"] for answer in answers})
        assert other_memory.tenant_id == grandbo.authenticate(token).tenant_id
        assert foreign.key_id not in client.get("/v1/keys").text

    def test_only_who_may_administer_sees_keys(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """For everybody else the three routes are forbidden."""
        for role in set(ROLES) - {"admin"}:
            client = client_of(grandbo, token=make_token(memory, role))
            body = {"principal": "x", "type": "agent", "roles": [role]}
            answers = [client.get("/v1/keys"), client.post("/v1/keys", json=body), client.delete("/v1/keys/x")]
            assert [403] * 3 == [answer.status_code for answer in answers], role

    def test_a_credential_is_told_its_own_tenant(
        self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """Id and name; whatever its role."""
        for role in ROLES:
            for tenant in (memory, other_memory):
                answer = client_of(grandbo, token=make_token(tenant, role)).get("/v1/tenant")
                assert (200, tenant.tenant.as_dict()) == (answer.status_code, answer.json())

    @pytest.mark.parametrize("after", ["x", "a\0b", "0" * 47])
    def test_a_cursor_that_is_none_is_refused(self, memory: TenantMemory, after: str) -> None:
        """Rather than taken for the end."""
        with pytest.raises(InvalidInput, match="after"):
            memory.keys(limit=2, after=after)

    def test_an_unknown_key_is_not_found(self, memory: TenantMemory) -> None:
        """By the library as by HTTP."""
        errors: list[type[GrandboError]] = []
        for key_id in ("0" * 48, "x"):
            with pytest.raises(NotFound) as raised:
                memory.revoke_key(key_id)
            errors.append(type(raised.value))

        assert [NotFound] * 2 == errors
