"""Signing in at an issuer and back: who gets in, what is kept of it, and what is said to whom it does not let in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from starlette.testclient import TestClient

from grandbo.errors import ConfigurationError
from grandbo.library import Grandbo, TenantMemory
from grandbo.memory.identities import principal_id_of
from grandbo.types import utc_now
from grandbo.web.session import LIFE
from grandbo.web.signing_in import BEGUN_SECONDS
from tests.support.factories import make_finding
from tests.support.http import BASE_URL, client_of
from tests.support.issuer import AUDIENCE, CLIENT_ID, Issuer, running_issuer
from tests.support.postgres import TestDatabase

OWN = {"Origin": BASE_URL, "Sec-Fetch-Site": "same-origin"}
WANTED = "/entries?status=archived"


class WallClock:
    """The time, moved on as a test wants."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> Any:
        return utc_now() + self.ahead


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def issuer(memory: TenantMemory) -> Iterator[Issuer]:
    """An issuer that knows Ada of this tenant, and no other test."""
    with running_issuer() as started:
        started.holder = {"tenant": memory.tenant.name, "roles": ["reviewer"], "preferred_username": "ada"}
        yield started


def _open(database: TestDatabase, issuer: Issuer, clock: WallClock | None = None, **more: Any) -> Grandbo:
    chosen = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "oidc_client_id": CLIENT_ID, **more}
    return Grandbo.open(settings=database.settings(**chosen), clock=clock or utc_now)


@pytest.fixture
def client(database: TestDatabase, issuer: Issuer, clock: WallClock) -> Iterator[TestClient]:
    """A browser of sorts at pages that know the issuer."""
    with _open(database, issuer, clock) as opened:
        yield _browser(opened)


def _browser(grandbo: Grandbo) -> TestClient:
    made = client_of(grandbo)
    made.follow_redirects = False
    return made


def _begin(client: TestClient, wanted: str = WANTED) -> str:
    """Leave for the issuer; gives the address there."""
    sent = client.get(f"/sign-in/issuer?{urlencode({'next': wanted})}")
    assert 303 == sent.status_code, sent.text
    return sent.headers["location"]


def _consent(where: str, *, agrees: bool = True) -> str:
    """Be Ada at the issuer; gives the address back, without the site."""
    # Without certificates, which take longer to load than all else here.
    answer = httpx2.post(where, data={"as": "ada" if agrees else ""}, verify=False)
    assert 302 == answer.status_code
    return answer.headers["location"].removeprefix(BASE_URL)


def _sign_in(client: TestClient, wanted: str = WANTED) -> Any:
    return client.get(_consent(_begin(client, wanted)))


class TestFlow:
    def test_one_is_led_to_the_issuer_and_back_to_what_was_wanted(
        self, client: TestClient, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """As the tenant, the roles and the name that the issuer says, and the same principal as by a token."""
        form = client.get(f"/sign-in?{urlencode({'next': WANTED})}").text
        lead = re.search(r'href="(/sign-in/issuer\?[^"]+)"', form)
        assert lead
        back = _sign_in(client)
        page = client.get(WANTED)

        assert {"next": [WANTED]} == parse_qs(urlsplit(lead[1]).query)
        assert (303, WANTED) == (back.status_code, back.headers["location"])
        assert 200 == page.status_code
        assert memory.tenant.name in page.text
        assert f"oidc:ada#{principal_id_of(issuer.url, 'ada').hex[:16]}" in page.text

    def test_what_is_asked_for_holds_a_challenge_a_state_and_a_nonce_of_its_own(
        self, client: TestClient, issuer: Issuer
    ) -> None:
        """The code flow and no other; nothing secret of ours is in the address."""
        asked = [parse_qs(urlsplit(_begin(client)).query) for _ in range(2)]

        assert [["code"], ["code"]] == [found["response_type"] for found in asked]
        assert [["S256"], ["S256"]] == [found["code_challenge_method"] for found in asked]
        assert [[f"{BASE_URL}/sign-in/callback"]] * 2 == [found["redirect_uri"] for found in asked]
        for name in ("state", "nonce", "code_challenge"):
            assert len(asked[0][name][0]) >= 43, name
            assert asked[0][name] != asked[1][name], name

    @pytest.mark.parametrize("methods", [None, ["client_secret_basic"], ["client_secret_post"]])
    def test_a_client_with_a_secret_shows_it_to_the_issuer_alone(
        self, database: TestDatabase, issuer: Issuer, methods: list[str] | None
    ) -> None:
        """In the way that the issuer takes; a wrong one opens nothing."""
        issuer.secret, issuer.auth_methods = "s3cret-of-pages", methods
        with _open(database, issuer, oidc_client_secret=issuer.secret) as opened:
            assert WANTED == _sign_in(_browser(opened)).headers["location"]
        with _open(database, issuer, oidc_client_secret="another") as opened:
            refused = _sign_in(_browser(opened))

        assert 403 == refused.status_code
        assert "s3cret" not in refused.text

    def test_two_that_are_begun_at_once_both_end_well(self, client: TestClient, issuer: Issuer) -> None:
        """In two tabs of one browser, the later one first."""
        first, second = _begin(client, "/due"), _begin(client, "/review")

        assert ["/review", "/due"] == [client.get(_consent(at)).headers["location"] for at in (second, first)]

    def test_roles_that_stand_at_the_userinfo_alone_are_found_there(
        self, client: TestClient, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """And what the ID token says goes before it."""
        issuer.has_userinfo = True
        issuer.holder["roles"] = ...
        issuer.told_besides = {"roles": ["auditor"], "tenant": "another"}
        _sign_in(client)

        assert 200 == client.get("/audit").status_code
        assert 403 == client.get("/admin").status_code

    def test_userinfo_of_another_is_not_believed(self, client: TestClient, issuer: Issuer) -> None:
        """OpenID Connect Core 5.3.2."""
        issuer.has_userinfo = True
        issuer.holder["roles"] = ...
        issuer.told_besides = {"roles": ["admin"], "sub": "mallory"}

        assert 403 == _sign_in(client).status_code

    def test_the_session_ends_in_time_and_the_issuer_is_asked_anew(self, client: TestClient, clock: WallClock) -> None:
        """An hour, unless it is set; nobody asks the issuer in between."""
        _sign_in(client)
        clock.ahead = timedelta(minutes=59)
        before = client.get("/entries").status_code
        clock.ahead = timedelta(minutes=61)

        assert (200, 303) == (before, client.get("/entries").status_code)

    def test_signing_out_forgets_the_session_and_shows_the_way_out_of_the_issuer(
        self, client: TestClient, issuer: Issuer
    ) -> None:
        """There one is still signed in."""
        _sign_in(client)
        out = client.post("/sign-out", headers=OWN).headers["location"]
        page = client.get(out).text

        assert 303 == client.get("/entries").status_code
        assert f"{issuer.url}/leave?client_id={CLIENT_ID}&amp;post_logout_redirect_uri=" in page

    def test_a_session_of_one_issuer_opens_nothing_where_another_is_trusted(
        self, database: TestDatabase, client: TestClient, issuer: Issuer
    ) -> None:
        """Sealed by the same key, and of no use."""
        _sign_in(client)
        with running_issuer() as another, _open(database, another) as opened:
            elsewhere = _browser(opened)
            elsewhere.cookies = client.cookies
            assert 303 == elsewhere.get("/entries").status_code

    def test_what_was_typed_waits_in_its_tab(self, client: TestClient, issuer: Issuer, memory: TenantMemory) -> None:
        """The issuer's page opens in another one; come back, and it is sent by a button."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        typed = {"reason": "Nobody runs <this> any more", "expected_revision": "1", "step": "commit"}
        asked = client.post(f"/entries/{entry_id}/do/archive", data=typed, headers=OWN)
        carried = {f"carried.{name}": value for name, value in typed.items()}
        go_on = {"step": "go_on", "next": f"/entries/{entry_id}/do/archive", **carried}
        too_early = client.post("/sign-in", data=go_on, headers=OWN)
        there = _sign_in(client, "/sign-in/other-tab").headers["location"]
        again = client.post("/sign-in", data=go_on, headers=OWN)

        assert 401 == asked.status_code == too_early.status_code
        assert 'target="_blank"' in asked.text
        assert "Nobody runs &lt;this&gt; any more" in too_early.text
        assert "waits in the other tab" in client.get(there).text
        assert (200, "published") == (again.status_code, memory.show_entry(entry_id)["status"])
        assert "Nobody runs &lt;this&gt; any more" in again.text

    def test_an_address_too_long_for_a_cookie_waits_in_its_tab_too(self, client: TestClient) -> None:
        """It is not cut, nor lost."""
        long = f"/search?topic={'lease+' * 500}"
        page = client.get(f"/sign-in?{urlencode({'next': long})}").text

        assert 'target="_blank"' in page
        assert f'name="next" value="{long}"' in page


class TestRefused:
    def test_another_browsers_sign_in_opens_nothing(
        self, database: TestDatabase, client: TestClient, issuer: Issuer
    ) -> None:
        """Somebody sends the address of a sign-in of theirs: no session, nothing asked of the issuer."""
        stolen = _consent(_begin(client))
        with _open(database, issuer) as opened:
            victim = _browser(opened)
            refused = victim.get(stolen)
            after = victim.get("/entries").status_code

        assert (400, 303) == (refused.status_code, after)
        assert "begin it again" in refused.text
        assert "/token" not in issuer.asked

    def test_a_state_that_was_changed_opens_nothing(self, client: TestClient, issuer: Issuer) -> None:
        """Though the cookie of the sign-in is there."""
        back = _consent(_begin(client))
        state = parse_qs(urlsplit(back).query)["state"][0]

        assert 400 == client.get(back.replace(state, state[:-1] + ("A" if state[-1] != "A" else "B"))).status_code
        assert "/token" not in issuer.asked

    def test_an_answer_is_good_once(self, client: TestClient, issuer: Issuer) -> None:
        """Going back in the browser does not sign in again."""
        back = _consent(_begin(client))

        assert [303, 400] == [client.get(back).status_code for _ in range(2)]

    def test_who_takes_too_long_begins_again(self, client: TestClient, clock: WallClock) -> None:
        """The cookie says when, whatever the browser does with it."""
        back = _consent(_begin(client))
        clock.ahead = timedelta(seconds=BEGUN_SECONDS + 5)

        assert 400 == client.get(back).status_code

    def test_a_code_of_another_sign_in_is_refused_by_its_challenge(self, client: TestClient, issuer: Issuer) -> None:
        """A code that was slipped in is worth nothing without the verifier it was made for."""
        codes = [parse_qs(urlsplit(_consent(_begin(client))).query)["code"][0] for _ in range(1)]
        back = _consent(_begin(client))
        own = parse_qs(urlsplit(back).query)["code"][0]
        refused = client.get(back.replace(own, codes[0]))

        assert 403 == refused.status_code
        assert 303 == client.get("/entries").status_code

    def test_an_answer_of_another_issuer_is_not_redeemed(self, client: TestClient, issuer: Issuer) -> None:
        """RFC 9207: it says who it is."""
        back = _consent(_begin(client))
        changed = back.replace(urlencode({"iss": issuer.url}), urlencode({"iss": "https://evil.example.com"}))

        assert back != changed
        assert 403 == client.get(changed).status_code
        assert "/token" not in issuer.asked

    def test_who_says_no_at_the_issuer_is_told_so_and_can_begin_again(self, client: TestClient) -> None:
        """With what was wanted still in the way in."""
        refused = client.get(_consent(_begin(client), agrees=False))

        assert 403 == refused.status_code
        assert "did not let you in (access_denied)" in refused.text
        assert urlencode({"next": WANTED}) in refused.text

    @pytest.mark.parametrize(
        "wrong",
        [
            {"nonce": "another"},
            {"nonce": ...},
            {"aud": "another-client"},
            {"aud": AUDIENCE},
            {"aud": [CLIENT_ID, "another"], "azp": "another"},
            {"iss": "https://evil.example.com"},
            {"exp": 1_000_000_000},
            {"sub": ...},
        ],
        ids=lambda wrong: " ".join(f"{name}={value}" for name, value in wrong.items()).replace("Ellipsis", "none"),
    )
    def test_an_id_token_that_does_not_hold_opens_nothing(
        self, client: TestClient, issuer: Issuer, wrong: dict[str, Any]
    ) -> None:
        """Of another sign-in, client, issuer or time."""
        issuer.holder |= wrong
        refused = _sign_in(client)

        assert 403 == refused.status_code
        assert "does not hold" in refused.text
        assert 303 == client.get("/entries").status_code

    @pytest.mark.parametrize(
        ("holder", "said"),
        [
            ({"tenant": ...}, "it lacks the claim tenant"),
            ({"roles": ...}, "it lacks the claim roles"),
            ({"roles": ["staff"]}, "it names no tenant or role of ours"),
            ({"tenant": "not-here"}, "it names a tenant that is not here"),
        ],
    )
    def test_who_has_no_tenant_or_role_is_told_whom_to_ask(
        self, client: TestClient, issuer: Issuer, holder: dict[str, Any], said: str
    ) -> None:
        """They are known at the issuer, so this is no secret from them."""
        issuer.holder |= holder
        refused = _sign_in(client)

        assert 403 == refused.status_code
        assert said in refused.text
        assert 303 == client.get("/entries").status_code

    def test_an_issuer_that_is_down_is_said_to_be_and_a_key_still_opens(
        self, client: TestClient, issuer: Issuer, memory: TenantMemory
    ) -> None:
        """At either half of the way; the form stays."""
        back = _consent(_begin(client))
        issuer.is_down = True
        late = client.get(back)
        token = memory.create_key("jo", "human", ("reviewer",))[1]

        assert (503, True) == (late.status_code, "does not answer" in late.text)
        assert 303 == client.post("/sign-in", data={"token": token}, headers=OWN).status_code

    def test_before_anything_is_known_of_an_issuer_that_is_down_the_form_says_so(
        self, database: TestDatabase, issuer: Issuer
    ) -> None:
        """And leads there again."""
        issuer.is_down = True
        with _open(database, issuer) as opened:
            client = _browser(opened)
            form, refused = client.get("/sign-in"), client.get("/sign-in/issuer?next=/due")

        assert (200, 503) == (form.status_code, refused.status_code)
        assert "does not answer at the moment" in refused.text
        assert "/sign-in/issuer?next=%2Fdue" in refused.text

    @pytest.mark.parametrize("wanted", ["https://evil.example.com", "//evil.example.com", "/\\evil.example.com"])
    def test_the_way_back_leads_nowhere_else(self, client: TestClient, wanted: str) -> None:
        """Not even after a genuine sign-in."""
        assert "/" == _sign_in(client, wanted).headers["location"]

    def test_a_flood_of_bad_answers_is_turned_away_before_the_issuer_is_asked(
        self, database: TestDatabase, issuer: Issuer
    ) -> None:
        """They count as refused credentials of the address."""
        with _open(database, issuer, auth_failure_limit="2/minute") as opened:
            client = _browser(opened)
            answers = []
            for _ in range(4):
                back = _consent(_begin(client))
                code = parse_qs(urlsplit(back).query)["code"][0]
                answers.append(client.get(back.replace(code, "guessed")).status_code)

        assert [403, 403, 429, 429] == answers
        assert 2 == issuer.asked.count("/token")


class TestPasted:
    def test_a_token_longer_than_a_cookie_opens_a_session_until_it_ends(
        self, client: TestClient, issuer: Issuer, memory: TenantMemory, clock: WallClock
    ) -> None:
        """Who it is stays in the cookie, and nothing of the token."""
        token = issuer.token(memory.tenant.name, filler="x" * 4_500)
        entered = client.post("/sign-in", data={"token": token, "next": WANTED}, headers=OWN)
        before = client.get("/entries").status_code
        clock.ahead = timedelta(seconds=302)

        assert len(token) > 6_000
        assert (303, WANTED) == (entered.status_code, entered.headers["location"])
        assert len(entered.headers["set-cookie"]) < 1_000
        assert (200, 303) == (before, client.get("/entries").status_code)

    def test_a_token_that_is_none_is_refused_on_the_form(self, client: TestClient, issuer: Issuer) -> None:
        """And counts against the address, as it does everywhere."""
        refused = client.post("/sign-in", data={"token": issuer.unsigned("acme")}, headers=OWN)

        assert 401 == refused.status_code
        assert "missing, malformed, expired" in refused.text


class TestSettings:
    def test_without_a_client_id_nobody_is_led_anywhere(self, grandbo: Grandbo) -> None:
        """No such addresses, and the form of before."""
        client = _browser(grandbo)

        assert [404, 404, 404] == [
            client.get(path).status_code for path in ("/sign-in/issuer", "/sign-in/callback", "/sign-in/other-tab")
        ]
        assert "/sign-in/issuer" not in client.get("/sign-in").text

    @pytest.mark.parametrize(
        "wrong",
        [
            {"oidc_client_id": CLIENT_ID},
            {"oidc_client_id": CLIENT_ID, "oidc_issuer": "https://i.example", "oidc_audience": "a", "oidc_scopes": "x"},
        ],
    )
    def test_settings_that_do_not_go_together_end_the_start(
        self, database: TestDatabase, wrong: dict[str, str]
    ) -> None:
        """They say which."""
        with pytest.raises(ConfigurationError, match="GRANDBO_OIDC"):
            Grandbo.open(settings=database.settings(**wrong)).close()

    def test_behind_a_proxy_the_way_back_is_the_public_address(self, database: TestDatabase, issuer: Issuer) -> None:
        """And cookies are for that host alone, over https alone."""
        with _open(database, issuer, public_url="https://memory.example.com/") as opened:
            client = _browser(opened)
            sent = client.get("/sign-in/issuer")
            asked = parse_qs(urlsplit(sent.headers["location"]).query)

        assert ["https://memory.example.com/sign-in/callback"] == asked["redirect_uri"]
        assert sent.headers["set-cookie"].startswith("__Host-grandbo_sign_in_")
        assert "Secure" in sent.headers["set-cookie"]
        assert LIFE.total_seconds() > BEGUN_SECONDS
