"""What pages say that need no browser: a damaged log, work and its owner, tokens of an issuer, the library behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grandbo.embedding import Embedder
from grandbo.errors import EmbedderTransient, InvalidInput, NotFound, QuotaExceeded
from grandbo.library import Grandbo, TenantMemory
from grandbo.types import new_id, utc_now
from grandbo.web.jobs import AT_ONCE, Jobs, Progress
from tests.support.factories import make_finding
from tests.support.hooks import make_tool
from tests.support.http import client_of, make_token
from tests.support.issuer import AUDIENCE, running_issuer
from tests.support.postgres import TestDatabase, TestServer
from tests.support.providers import Switchable
from tests.support.tamper import disarm

OWN = {"Origin": "http://127.0.0.1"}


class TestDamagedLog:
    def test_the_badge_is_red_and_names_the_first_bad_position(self, server: TestServer, tmp_path: Path) -> None:
        """Somebody with a superuser's rights has changed an event."""
        with server.clone() as database, Grandbo.open(settings=database.settings(home=tmp_path)) as opened:
            opened.create_tenant("acme")
            memory = opened.tenant("acme", principal="human:jo")
            position = memory.record_finding(make_finding()).acknowledgement.position
            memory.record_finding(make_finding())
            with database.as_admin() as admin:
                disarm(admin)
                admin.execute(
                    "UPDATE grandbo.org_memory_events SET body = set_byte(body, 20, get_byte(body, 20) # 1) "
                    "WHERE tenant_id = %s AND position = %s",
                    (memory.tenant_id, position),
                )
            client = client_of(opened, token=make_token(memory, "auditor", kind="human"))
            begun = client.post("/audit/begin/verify", headers=OWN, follow_redirects=False)
            with client:
                pass  # its end waits for the work
            page = client.get("/audit").text

        assert 303 == begun.status_code
        assert 'data-verdict="bad"' in page
        assert f"first at position {position}" in page


class TestJobs:
    def test_the_same_work_of_a_tenant_runs_once_and_is_nobody_elses(self) -> None:
        """A second press is the first; another tenant sees nothing; too many at once are refused."""
        from threading import Event

        jobs, go = Jobs(utc_now), Event()

        def work(progress: Progress) -> dict[str, object]:
            progress(1, 2)
            assert go.wait(10)
            return {"ok": True}

        mine, theirs = new_id(), new_id()
        first = jobs.begin(mine, "human:x", "verify", work)
        again = jobs.begin(mine, "human:x", "verify", work)
        other = jobs.begin(theirs, "human:y", "verify", work)
        with pytest.raises(NotFound):
            jobs.find(theirs, first.job_id)
        with pytest.raises(QuotaExceeded):
            jobs.begin(new_id(), "human:z", "verify", work)
        go.set()
        jobs.close()

        assert 2 == AT_ONCE
        assert first is again
        assert other is not first
        assert ({"ok": True}, False) == (first.result, first.is_running)
        assert first is jobs.last(mine, "verify")

    def test_work_that_fails_says_so_and_tells_nothing_of_its_insides(self) -> None:
        """The log has type and place."""
        jobs = Jobs(utc_now)

        def work(_progress: Progress) -> dict[str, object]:
            raise RuntimeError("a secret")

        job = jobs.begin(new_id(), "human:x", "verify", work)
        jobs.close()

        assert job.error is not None
        assert "internal_error" == job.error["code"]
        assert "a secret" not in str(job.as_dict())


class TestIssuer:
    def test_a_token_of_the_issuer_signs_in(self, database: TestDatabase, tmp_path: Path) -> None:
        """As at every other door; one that is not genuine does not."""
        with running_issuer() as issuer:
            settings = database.settings(oidc_issuer=issuer.url, oidc_audience=AUDIENCE, home=tmp_path)
            with Grandbo.open(settings=settings) as opened:
                tenant = f"t-{new_id().hex[-12:]}"
                opened.create_tenant(tenant)
                client = client_of(opened)
                client.follow_redirects = False
                refused = client.post("/sign-in", data={"token": issuer.signed_by_another(tenant)}, headers=OWN)
                entered = client.post("/sign-in", data={"token": issuer.token(tenant)}, headers=OWN)
                page = client.get("/review")

        assert 401 == refused.status_code
        assert 303 == entered.status_code
        assert 200 == page.status_code
        assert tenant in page.text


class TestIncidentRecords:
    def test_incidents_come_page_by_page_the_last_changed_first(self, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Each once."""
        tool = make_tool(grandbo, memory)
        for number in range(3):
            tool.told("resolved", f"INC-{number}", title=f"Incident number {number}")
        first = memory.incidents(limit=2)
        second = memory.incidents(limit=2, after=first["next"])

        assert ["INC-2", "INC-1", "INC-0"] == [
            item["incident_id"] for page in (first, second) for item in page["incidents"]
        ]
        assert second["next"] is None
        with pytest.raises(InvalidInput):
            memory.incidents(after="nonsense")

    def test_one_has_its_deliveries_and_another_tenant_has_none_of_it(
        self, grandbo: Grandbo, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """What its source said, and what came of it."""
        tool = make_tool(grandbo, memory)
        tool.told("opened")
        tool.told("resolved", cause="The renewal job had lost its permission.")
        found = memory.incident("grandbo", "INC-1")

        assert 2 == len(found["deliveries"])
        assert "The renewal job had lost its permission." == found["said"]["cause"]
        with pytest.raises(NotFound):
            other_memory.incident("grandbo", "INC-1")


def test_checkpoints_are_listed_the_largest_first(memory: TenantMemory) -> None:
    """Each as it was signed."""
    first = memory.checkpoint()
    memory.record_finding(make_finding())
    second = memory.checkpoint()

    assert [second.note, first.note] == [item["note"] for item in memory.list_checkpoints()]
    assert [first.note] == [item["note"] for item in memory.list_checkpoints(before=second.checkpoint.size)]


class TestEmptyAnswers:
    def test_each_of_the_four_says_in_words_why_there_is_nothing(
        self, database: TestDatabase, memory: TenantMemory
    ) -> None:
        """Out of scope, about something else, near but not near enough, and with the search by meaning down."""
        provider = Switchable()
        memory.record_finding(make_finding())
        with Grandbo.open(settings=database.settings(), embedder=Embedder(provider)) as opened:
            same = opened.tenant(memory.tenant.name)
            same.embed()
            client = client_of(opened, token=make_token(memory, "admin"))

            def told(**asked: str) -> tuple[str, str]:
                page = client.get("/search", params=asked).text
                named = re.search(r'data-empty="(\w+)">\s*<p><strong>([^<]+)</strong>', page)
                assert named, page
                return named[1], named[2]

            topic = "the checkout queue stalled because leases were not renewed"
            strange = "zebras grazing quietly beneath purple moonlight"
            found = [told(topic=topic, service="nosuch"), told(topic=strange, mode="words")]
            nearest = same.query_topic(topic, mode="meaning").matches[0].semantic
            assert nearest is not None
            nearer = int(nearest.distance * 10_000) - 100
            same.use_stamp(provider.stamp.id, reason="Nearer.", cutoff_bp=nearer)
            found.append(told(topic=topic, mode="meaning"))
            provider.failure = EmbedderTransient("down")
            found.append(told(topic=f"{strange} once more"))

        assert [
            ("nothing_in_scope", "Nothing is in scope."),
            ("nothing_matched", "Nothing matched."),
            ("beyond_cutoff", "Something is near, but not near enough."),
            ("semantic_unavailable", "Nothing was found by words, and the search by meaning was not available."),
        ] == found
