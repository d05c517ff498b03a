"""Getting in: sessions, origins, roles, and what a page says to those who have none."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from grandbo.errors import ConfigurationError
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.policy import ROLES
from grandbo.memory.tokens import SUBJECT_LIMIT, Claims
from grandbo.types import utc_now
from grandbo.web.guarding import CONTENT_SECURITY_POLICY
from grandbo.web.sealing import COOKIE_LIMIT, KEY_FILE, Sealer
from grandbo.web.session import LIFE, Sessions
from grandbo.web.signing_in import local_path
from tests.support.factories import make_finding
from tests.support.http import bearer, client_of, make_token

OWN = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def client(grandbo: Grandbo) -> TestClient:
    """A browser of sorts: it keeps cookies, and follows nothing by itself."""
    made = client_of(grandbo)
    made.follow_redirects = False
    return made


def signed_in(client: TestClient, memory: TenantMemory, *roles: str) -> str:
    """Sign in with a fresh key of these roles; gives the token."""
    token = make_token(memory, *(roles or ("admin",)), kind="human")
    assert 303 == client.post("/sign-in", data={"token": token}, headers=OWN).status_code
    return token


class TestSignIn:
    def test_without_a_session_a_page_leads_to_the_sign_in_and_back(
        self, client: TestClient, memory: TenantMemory
    ) -> None:
        """The address that was wanted goes along."""
        sent = client.get("/entries?status=archived")
        token = make_token(memory, "admin", kind="human")
        entered = client.post("/sign-in", data={"token": token, "next": "/entries?status=archived"}, headers=OWN)

        assert (303, "/sign-in?next=%2Fentries%3Fstatus%3Darchived") == (sent.status_code, sent.headers["location"])
        assert (303, "/entries?status=archived") == (entered.status_code, entered.headers["location"])

    def test_the_cookie_is_out_of_reach_of_scripts_and_does_not_hold_the_key(
        self, client: TestClient, memory: TenantMemory
    ) -> None:
        """HttpOnly, SameSite, and sealed."""
        token = make_token(memory, "admin", kind="human")
        set_cookie = client.post("/sign-in", data={"token": token}, headers=OWN).headers["set-cookie"]

        assert "HttpOnly" in set_cookie
        assert "SameSite=lax" in set_cookie
        assert token not in set_cookie
        assert token.split("_", 2)[2] not in set_cookie

    def test_a_key_that_opens_nothing_is_refused_on_the_form(self, client: TestClient) -> None:
        """With the reason, and without the key in the page."""
        refused = client.post("/sign-in", data={"token": "gbk_nonsense"}, headers=OWN)

        assert 401 == refused.status_code
        assert "missing, malformed, expired" in refused.text
        assert "gbk_nonsense" not in refused.text

    def test_a_revoked_key_ends_its_sessions_at_once(self, client: TestClient, memory: TenantMemory) -> None:
        """The credential is asked for again at every page."""
        signed_in(client, memory)
        before = client.get("/").status_code
        memory.revoke_key(memory.keys(limit=1)[0].key_id)

        assert (200, 303) == (before, client.get("/").status_code)

    def test_signing_out_forgets_the_session(self, client: TestClient, memory: TenantMemory) -> None:
        """The cookie is gone."""
        signed_in(client, memory)
        client.post("/sign-out", headers=OWN)

        assert 303 == client.get("/").status_code

    def test_what_was_typed_survives_a_session_that_ended(self, client: TestClient, memory: TenantMemory) -> None:
        """It goes along to the sign-in, is shown again, and is sent by a button."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        typed = {"reason": "Nobody runs <this> any more", "expected_revision": "1", "step": "commit"}
        asked = client.post(f"/entries/{entry_id}/do/archive", data=typed, headers=OWN)
        token = make_token(memory, "admin", kind="human")
        carried = {f"carried.{name}": value for name, value in typed.items()}
        again = client.post(
            "/sign-in", data={"token": token, "next": f"/entries/{entry_id}/do/archive", **carried}, headers=OWN
        )

        assert 401 == asked.status_code
        assert "Nobody runs &lt;this&gt; any more" in asked.text
        assert 200 == again.status_code
        assert "Nobody runs &lt;this&gt; any more" in again.text
        assert f'action="/entries/{entry_id}/do/archive"' in again.text
        assert "published" == memory.show_entry(entry_id)["status"]

    @pytest.mark.parametrize(
        "given",
        [
            "//evil.example.com",
            "https://evil.example.com",
            "/\\evil.example.com",
            "\\evil",
            "javascript:alert(1)",
            "",
            "/a\n",
        ],
    )
    def test_the_sign_in_leads_nowhere_else(self, given: str) -> None:
        """An address of another site is the start page."""
        assert "/" == local_path(given)


class TestOrigin:
    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Origin": "https://evil.example.com"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"},
            {"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example.com"},
        ],
        ids=lambda headers: " ".join(headers.values()) or "nothing",
    )
    def test_what_another_site_sends_does_nothing(
        self, client: TestClient, memory: TenantMemory, headers: dict[str, str]
    ) -> None:
        """Though the browser sends our cookie along."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        signed_in(client, memory)
        form = {"reason": "x", "expected_revision": "1", "step": "commit"}
        refused = client.post(f"/entries/{entry_id}/do/archive", data=form, headers=headers)

        assert 403 == refused.status_code
        assert "published" == memory.show_entry(entry_id)["status"]

    @pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1"}, {"Sec-Fetch-Site": "same-origin"}])
    def test_a_browser_that_says_one_of_the_two_is_let_in(
        self, client: TestClient, memory: TenantMemory, headers: dict[str, str]
    ) -> None:
        """Older ones know no Sec-Fetch-Site."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        signed_in(client, memory)
        form = {"reason": "x", "expected_revision": "1", "step": "commit"}

        assert 303 == client.post(f"/entries/{entry_id}/do/archive", data=form, headers=headers).status_code


class TestHeaders:
    def test_every_page_has_the_policy_and_may_not_be_framed(self, client: TestClient) -> None:
        """Without any exception in the policy."""
        answer = client.get("/sign-in")

        assert CONTENT_SECURITY_POLICY == answer.headers["content-security-policy"]
        assert "unsafe" not in CONTENT_SECURITY_POLICY
        assert "DENY" == answer.headers["x-frame-options"]
        assert "no-store" == answer.headers["cache-control"]

    def test_what_pages_are_made_with_may_be_kept_by_browsers(self, client: TestClient) -> None:
        """Its address changes with its content."""
        page = client.get("/sign-in").text
        address = re.search(r'href="(/static/app\.css\?v=[0-9a-f]{16})"', page)
        assert address
        kept = client.get(address[1])

        assert (200, "public, max-age=31536000, immutable") == (kept.status_code, kept.headers["cache-control"])
        assert "no-store" == client.get("/static/app.css").headers["cache-control"]

    @pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/nothing", "/static/"])
    def test_nothing_else_of_the_package_is_served(self, client: TestClient, path: str) -> None:
        """Neither code nor templates."""
        assert 404 == client.get(path).status_code


class TestTwins:
    def test_a_page_has_the_same_as_json(self, client: TestClient, memory: TenantMemory) -> None:
        """By cookie as by key."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        token = signed_in(client, memory)
        by_cookie = client.get(f"/entries/{entry_id}.json").json()
        client.cookies.clear()
        by_key = client.get(f"/entries/{entry_id}.json", headers=bearer(token)).json()

        assert by_cookie == by_key
        assert memory.show_entry(entry_id) == by_key["entry"]

    def test_an_error_is_one_in_json_too(self, client: TestClient) -> None:
        """With its code, and no page around it."""
        answer = client.get("/entries.json")

        assert (401, "unauthenticated") == (answer.status_code, answer.json()["code"])


class TestRoles:
    def test_what_a_role_may_not_do_is_neither_offered_nor_done(self, client: TestClient, memory: TenantMemory) -> None:
        """An investigator reads; a form sent all the same is refused."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        signed_in(client, memory, "investigator")
        page = client.get(f"/entries/{entry_id}").text
        form = {"reason": "x", "expected_revision": "1", "step": "commit"}

        assert "/do/archive" not in page
        assert 403 == client.get(f"/entries/{entry_id}/do/archive").status_code
        assert 403 == client.post(f"/entries/{entry_id}/do/archive", data=form, headers=OWN).status_code

    def test_an_entry_of_another_tenant_is_as_absent_as_none(
        self, client: TestClient, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """The same page, letter by letter, but for the request."""
        foreign = other_memory.record_finding(make_finding()).acknowledgement.entry_id
        signed_in(client, memory)
        there, nowhere = (
            client.get(f"/entries/{which}") for which in (foreign, "00000000-0000-4000-8000-000000000000")
        )

        assert 404 == there.status_code == nowhere.status_code
        assert there.text.replace(str(foreign), "") == nowhere.text.replace("00000000-0000-4000-8000-000000000000", "")


def _claims(**changes: object) -> Claims:
    known: dict[str, Any] = {
        "issuer": "https://id.example.com",
        "subject": "ada",
        "tenant": "acme",
        "roles": frozenset({"reviewer", "a group of another service"}),
        "type": "human",
        "name": "Ada",
        "ends_at": int(utc_now().timestamp()) + 300,
    }
    return Claims(**{**known, **changes})


class TestSessions:
    def test_a_session_ends_by_itself(self, tmp_path: Path) -> None:
        """After its life, whoever keeps the cookie."""
        now = utc_now()
        sealed, seconds = Sessions(tmp_path, lambda: now).of_key("gbk_x")

        assert LIFE.total_seconds() == seconds
        assert "gbk_x" == Sessions(tmp_path, lambda: now + LIFE - timedelta(seconds=1)).open(sealed)
        assert Sessions(tmp_path, lambda: now + LIFE + timedelta(seconds=1)).open(sealed) is None

    def test_a_session_of_claims_ends_with_the_token_and_keeps_the_roles_that_exist(self, tmp_path: Path) -> None:
        """Nothing else of the token is in it; one of a long life ends like any other."""
        now = utc_now()
        sessions = Sessions(tmp_path, lambda: now)
        ends_at = int(now.timestamp()) + 300
        sealed, seconds = sessions.of_claims(_claims(ends_at=ends_at))
        _, longest = sessions.of_claims(_claims(ends_at=ends_at + 10**9))

        assert (300, LIFE.total_seconds()) == (seconds, longest)
        assert _claims(ends_at=ends_at, roles=frozenset({"reviewer"})) == sessions.open(sealed)
        assert Sessions(tmp_path, lambda: now + timedelta(seconds=302)).open(sealed) is None

    def test_a_cookie_of_another_key_or_a_changed_one_opens_nothing(self, tmp_path: Path) -> None:
        """Each single character of it counts."""
        sessions = Sessions(tmp_path / "one", utc_now)
        sealed, _ = sessions.of_key("gbk_x")

        assert Sessions(tmp_path / "two", utc_now).open(sealed) is None
        for place in range(len(sealed) - 1):
            other = "A" if sealed[place] != "A" else "B"
            assert sessions.open(sealed[:place] + other + sealed[place + 1 :]) is None
        for nonsense in (None, "", "ä", "x" * 10_000, "AAAA"):
            assert sessions.open(nonsense) is None

    def test_what_was_sealed_for_another_purpose_is_no_session(self, tmp_path: Path) -> None:
        """Whatever it says."""
        sealed = Sealer(tmp_path).seal(b"another", b'{"token": "gbk_x", "ends_at": 99999999999}')

        assert Sessions(tmp_path, utc_now).open(sealed) is None

    def test_the_longest_names_fit_a_cookie(self, tmp_path: Path) -> None:
        """Each character of four bytes."""
        long = "\U0001f511" * SUBJECT_LIMIT
        claims = _claims(subject=long, name=long, tenant="\U0001f511" * 64, roles=frozenset(ROLES))

        assert len(Sessions(tmp_path, utc_now).of_claims(claims)[0]) < COOKIE_LIMIT - 150

    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        """It would open every session."""
        Sessions(tmp_path, utc_now).of_key("gbk_x")
        (tmp_path / KEY_FILE).chmod(0o644)

        with pytest.raises(ConfigurationError):
            Sessions(tmp_path, utc_now).of_key("gbk_x")


def test_a_form_that_is_none_is_refused(client: TestClient, memory: TenantMemory) -> None:
    """JSON, multipart and broken UTF-8 get an answer that says so."""
    signed_in(client, memory)
    for content, kind in (
        (json.dumps({"a": 1}).encode(), "application/json"),
        (b"%ff=%fe", "application/x-www-form-urlencoded"),
        (b"\xff", "application/x-www-form-urlencoded"),
    ):
        answer = client.post("/preferences", content=content, headers={**OWN, "Content-Type": kind})
        assert 422 == answer.status_code
