"""Each screen's main task in a real browser, by keyboard alone."""

from __future__ import annotations

from datetime import timedelta
from urllib.request import Request, urlopen

import pytest

from grandbo.library import Grandbo, TenantMemory
from grandbo.sample import sample_lines
from grandbo.types import utc_now, utc_text
from tests.support.browser import Visitor
from tests.support.factories import make_finding
from tests.support.hooks import make_tool
from tests.support.http import bearer, client_of, make_token
from tests.support.postgres import TestDatabase
from tests.support.providers import words_embedder
from tests.web.conftest import Open

TOPIC = "the checkout queue stalled because leases were not renewed"


class TestFirstRun:
    def test_an_empty_tenant_offers_the_sample_and_loads_it(self, person: Open, memory: TenantMemory) -> None:
        """One button; afterwards there is something to search."""
        jo = person("reviewer")
        jo.tab_to("Load the sample incidents")
        jo.press("Enter")
        jo.page.wait_for_url("**/?done=sample**")

        assert "The sample incidents are recorded." in jo.text()
        assert 0 == jo.button("Load the sample incidents").count()
        assert memory.list_entries(limit=1).entries


class TestReview:
    def test_a_candidate_is_approved_by_keyboard(self, person: Open, grandbo: Grandbo, memory: TenantMemory) -> None:
        """Go to the queue, down, open, approve, why, send; it is recalled from then on."""
        scout = grandbo.tenant(memory.tenant_id, principal="agent:scout")
        candidate = scout.propose(make_finding(title="Leases lapsed unseen"), reason="Seen in the logs.").candidate_id
        jo = person("reviewer")
        jo.press("g", "r")
        jo.page.wait_for_url("**/review")
        jo.press("j", "o")
        jo.page.wait_for_url(f"**/review/{candidate}")
        jo.press("a")
        jo.tab_to("Why: approve")
        jo.type("It is so.")
        jo.tab_to("Approve")
        jo.press("Enter")
        jo.page.wait_for_url("**/review?done=approve**")
        decided = memory.candidate(candidate)

        assert ("approved", "It is so.") == (decided["status"], decided["decision_reason"])
        assert "Nothing waits." in jo.text()

    def test_approving_what_another_has_just_decided_shows_the_conflict_and_keeps_what_was_typed(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """Who, how and why; and the words are still there to be read."""
        scout = grandbo.tenant(memory.tenant_id, principal="agent:scout")
        candidate = scout.propose(make_finding()).candidate_id
        jo = person("reviewer")
        jo.go(f"/review/{candidate}")
        jo.press("a")
        jo.tab_to("Why: approve")
        jo.type("I have checked all of it.")
        memory.reject_candidate(candidate, reason="It is a duplicate.")
        jo.expected = (409,)
        jo.tab_to("Approve")
        jo.press("Enter")
        conflict = jo.page.get_by_role("alert").inner_text()

        assert "rejected already" in conflict
        assert "tester" in conflict
        assert "It is a duplicate." in conflict
        assert "I have checked all of it." in conflict
        assert "rejected" == memory.candidate(candidate)["status"]

    def test_an_amendment_meanwhile_voids_the_decision_and_keeps_what_was_typed(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """The form is still open, with the reason in it, on the version of now."""
        scout = grandbo.tenant(memory.tenant_id, principal="agent:scout")
        candidate = scout.propose(make_finding()).candidate_id
        jo = person("reviewer")
        jo.go(f"/review/{candidate}")
        jo.press("a")
        jo.tab_to("Why: approve")
        jo.type("Good as it is.")
        scout.amend_candidate(candidate, {"title": "Something else altogether"}, reason="It was wrong.")
        jo.expected = (412,)
        jo.tab_to("Approve")
        jo.press("Enter")
        jo.page.get_by_role("alert").wait_for()

        assert "Something else altogether" == jo.page.locator("h1").inner_text()
        assert "Good as it is." == jo.box("Why: approve").input_value()

    def test_a_second_person_has_to_approve_where_the_policy_says_so(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """The first approval is shown as one; the second lets it in."""
        memory.change_policy({"second_approval_kinds": ["finding"]}, reason="Four eyes.")
        scout = grandbo.tenant(memory.tenant_id, principal="agent:scout")
        candidate = scout.propose(make_finding()).candidate_id
        for place, name in enumerate(("jo", "kim")):
            someone = person("reviewer", name=name)
            someone.go(f"/review/{candidate}")
            assert ("a second person has to" in someone.text()) == bool(place)
            someone.press("a")
            someone.tab_to("Why: approve")
            someone.type("Yes.")
            someone.tab_to("Approve")
            someone.press("Enter")
            someone.page.wait_for_url("**done=approve**")

        assert "approved" == memory.candidate(candidate)["status"]

    def test_a_reviewer_of_a_lower_tier_sees_no_trace_of_a_higher_one(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """On no page, in no count, in no list of the log, and nothing of what it is linked to."""
        low = memory.record_finding(make_finding(title="What everybody may know")).acknowledgement.entry_id
        secret = make_finding(
            title="Zirconium whisper ledger", summary="Zirconium.", service="zirconium", tags=["zirconium"]
        )
        high = memory.record_finding({**secret, "visibility": "admin"}).acknowledgement.entry_id
        memory.link(low, "caused_by", high, reason="Zirconium again.")
        scout = grandbo.tenant(memory.tenant_id, principal="agent:scout")
        proposed = {**make_finding(title="Zirconium whisper proposal"), "visibility": "admin"}
        candidate = scout.propose(proposed).candidate_id
        memory.query_topic("the zirconium whisper ledger has come undone")
        jo = person("reviewer")
        jo.expected = (404,)
        addresses: tuple[str, ...] = (
            "/",
            "/search?topic=the+zirconium+whisper+ledger+has+come+undone",
            "/entries",
            f"/entries/{low}",
        )
        addresses += (f"/entries/{low}/history", "/review", "/due?within=52w", "/recurrence", "/replay", "/audit")
        addresses += ("/receipts", "/usage", f"/entries/{high}", f"/review/{candidate}", f"/audit?entry={high}")
        for address in addresses:
            jo.go(address)
            page = (
                jo.page.locator("main").inner_html().lower().replace("the zirconium whisper ledger has come undone", "")
            )
            found = (
                page.replace("the+zirconium+whisper", "").replace(f"entry={high}", "").replace(f'value="{high}"', "")
            )
            assert "zirconium" not in found, address
            assert str(high)[-12:] not in found, address
            assert str(candidate)[-12:] not in found, address


class TestReplay:
    def test_arrow_keys_step_one_event_and_every_position_equals_the_api(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """The slider has the focus; the address carries the position; what is listed is what /v1/entries gives."""
        first = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.record_finding(make_finding())
        memory.archive(first, reason="Done with.")
        head = memory.head()["position"]
        token = make_token(memory, "admin")
        client = client_of(grandbo, token=token)
        jo = person("admin")
        jo.press("g", "p")
        jo.page.wait_for_url("**/replay")
        jo.page.locator("#position").focus()
        for position in range(head - 1, 0, -1):
            jo.press("ArrowLeft")
            jo.page.locator(f'#answer[data-position="{position}"]').wait_for()
            listed = client.get("/v1/entries", params={"as_of_position": position}).json()["entries"]
            shown = [row.get_attribute("data-entry") for row in jo.page.locator("#answer [data-entry]").all()]

            assert f"position={position}" in jo.path()
            assert [entry["entry_id"] for entry in listed] == shown

    def test_it_plays_event_by_event_and_pauses_by_keyboard(self, person: Open, memory: TenantMemory) -> None:
        """From the first event on when it stood at the end; the address and the words go along."""
        for _ in range(4):
            memory.record_finding(make_finding())
        jo = person("admin")
        jo.page.emulate_media(reduced_motion="no-preference")
        jo.page.clock.install(time=0)
        jo.go("/replay")
        jo.page.clock.pause_at(60_000)
        jo.press("p")
        seen = []
        for position in (1, 2, 3):
            _play_until(jo, position)
            seen.append((jo.page.locator("#position-shown").inner_text(), f"position={position}" in jo.path()))
        named = jo.button("Pause").count()
        jo.press("p")
        jo.page.clock.run_for(5_000)
        stays = jo.page.locator("#answer").get_attribute("data-position")

        assert [("1", True), ("2", True), ("3", True)] == seen
        assert (1, "3") == (named, stays)
        assert 1 == jo.button("Play").count()

    def test_an_entry_is_shown_as_of_a_day_with_whether_it_was_valid_then(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """A day is enough; what is no time is said to be none, and stays."""
        entry_id = memory.record_finding(make_finding(title="Leases lapsed unseen")).acknowledgement.entry_id
        memory.expire(entry_id, utc_text(utc_now() + timedelta(days=3)), reason="It is short.")
        jo = person("admin")
        jo.expected = (422,)
        jo.go(f"/replay?entry={entry_id}")
        now = jo.page.locator("#answer").inner_text()
        jo.go(f"/replay?entry={entry_id}&valid_at={(utc_now() + timedelta(days=9)).date()}")
        later = jo.page.locator("#answer").inner_text()
        jo.go("/replay?valid_at=soon")

        assert ("not valid then" in now, "not valid then" in later) == (False, True)
        assert "valid_at: this is not a time" in jo.page.get_by_role("alert").inner_text()
        assert "soon" == jo.page.get_by_label("Valid at").input_value()

    def test_a_search_of_then_is_the_recall_as_of_then(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """The same ids in the same order."""
        memory.record_finding(make_finding())
        position = memory.record_finding(make_finding()).acknowledgement.position
        memory.record_finding(make_finding())
        token = make_token(memory, "admin")
        client = client_of(grandbo, token=token)
        answer = client.post("/v1/recall", json={"topic": TOPIC, "as_of_position": position, "limit": 10}).json()
        jo = person("admin")
        jo.go(f"/replay?position={position}&topic={TOPIC}")
        shown = [link.get_attribute("href") for link in jo.page.locator("#answer [data-open]").all()]

        assert [f"/entries/{m['entry_id']}?as_of_position={position}" for m in answer["matches"]] == shown
        assert 2 == len(shown)


def _play_until(visitor: Visitor, position: int) -> None:
    """Let the page's clock go on, less at a time than it stays at an event, until this one is shown."""
    shown = visitor.page.locator(f'#answer[data-position="{position}"]')
    for _ in range(1_000):
        if shown.count():
            return
        visitor.page.clock.run_for(50)
    raise AssertionError(f"position {position} was never shown")


class TestAudit:
    def test_the_log_is_verified_by_keyboard_and_the_badge_says_to_where(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """With progress, and the position in the end."""
        memory.record_finding(make_finding())
        jo = person("auditor")
        jo.press("g", "a")
        jo.page.wait_for_url("**/audit")
        jo.tab_to("Verify the log")
        jo.press("Enter")
        jo.page.wait_for_url("**/work/*")
        jo.page.get_by_text("Done: all is well.").wait_for()
        jo.go("/audit")
        badge = jo.page.locator('[data-verdict="good"]').inner_text()

        assert f"verified to position {memory.head()['position']}" in badge

    def test_events_are_filtered_and_exported(self, person: Open, memory: TenantMemory) -> None:
        """The export holds what the filter lets through, and no cell that a spreadsheet would run."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        memory.archive(entry, reason="Done with.")
        jo = person("auditor")
        jo.go("/audit")
        jo.page.get_by_label("Did what").select_option("entry_archived")
        jo.button("Show").press("Enter")
        jo.page.wait_for_url("**type=entry_archived**")
        address = jo.page.get_by_role("link", name="CSV").get_attribute("href")
        token = make_token(memory, "auditor")
        with urlopen(Request(f"{jo.base}{address}", headers=bearer(token)), timeout=20) as answer:
            lines = answer.read().decode().splitlines()

        assert 1 == jo.page.locator("tbody tr[data-row]").count()
        assert 2 == len(lines)
        assert "entry_archived" in lines[1]

    def test_the_log_is_signed_and_the_note_is_there(self, person: Open, memory: TenantMemory) -> None:
        """A checkpoint of the head, to be downloaded."""
        jo = person("auditor")
        jo.go("/audit")
        jo.tab_to("Sign the log as it stands")
        jo.press("Enter")
        jo.page.get_by_text("Done: all is well.").wait_for()
        offered = jo.page.get_by_role("link", name="Download the note").count()
        jo.go("/audit")

        assert 1 == offered
        assert memory.head()["position"] == memory.list_checkpoints()[0]["size"]
        assert 1 == jo.page.get_by_role("link", name="download").count()

    def test_a_quick_signature_is_there_at_once(self, person: Open, memory: TenantMemory) -> None:
        """Without the digest of the projections nothing has to be replayed."""
        jo = person("auditor")
        jo.go("/audit")
        jo.page.get_by_label("Without the digest of the projections: quick, no replay").check()
        jo.button("Sign the log as it stands").press("Enter")
        jo.page.wait_for_url("**done=checkpoint")

        assert not any("projections" in line for line in memory.list_checkpoints()[0]["extensions"])


class TestDue:
    def test_many_are_verified_at_once_and_a_row_that_fails_keeps_its_reason(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """Ticked with Space, each with its reason; one was archived meanwhile, and says so."""
        soon = utc_text(utc_now() + timedelta(days=2))
        ids = [memory.record_finding(make_finding()).acknowledgement.entry_id for _ in range(3)]
        for entry_id in ids:
            memory.expire(entry_id, soon, reason="It is short.")
        jo = person("reviewer")
        jo.press("g", "d")
        jo.page.wait_for_url("**/due")
        for entry_id in ids[:2]:
            title = memory.show_entry(entry_id)["title"]
            jo.tab_to(f"Verify {title}")
            jo.press("Space")
            jo.tab_to(f"Reason for {title}")
            jo.type(f"Looked at {title[-9:]}")
        memory.archive(ids[1], reason="Done with.")
        jo.expected = (409,)
        jo.tab_to("Verify what is ticked")
        jo.press("Enter")
        jo.page.get_by_role("alert").wait_for()

        assert memory.show_entry(ids[0])["verified_at"] is not None
        assert memory.show_entry(ids[1])["verified_at"] is None
        assert "1 row is done, 1 not" in jo.page.get_by_role("alert").inner_text()


class TestInbox:
    def test_a_delivery_is_looked_at_and_mapped_again(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """Its badge, its raw body as text, and the retry."""
        tool = make_tool(grandbo, memory)
        tool.told("resolved", title="<b>Bold</b> claim")
        jo = person("admin")
        jo.go("/inbox")
        jo.press("j", "o")
        jo.page.wait_for_url("**/inbox/*")
        body = jo.page.get_by_label("Raw body").inner_text()
        badge = jo.page.locator(".state.certified").first.inner_text()
        jo.tab_to("Map it again")
        jo.press("Enter")
        jo.page.wait_for_url("**done=retry")
        jo.go("/incidents")
        jo.press("j", "o")
        jo.page.wait_for_url("**/incidents/grandbo/INC-1")

        assert "<b>Bold</b> claim" in body
        assert "verified by" in badge
        assert "received" == memory.inbox()["deliveries"][0]["state"]
        assert "What it taught" in jo.text()


class TestAdmin:
    def test_a_key_is_made_shown_once_and_revoked_by_keyboard(self, person: Open, memory: TenantMemory) -> None:
        """The secret opens the memory, and then no more."""
        jo = person("admin")
        jo.go("/admin/keys")
        jo.tab_to("Holder")
        jo.type("the pager")
        jo.tab_to("investigator")
        jo.press("Space")
        jo.tab_to("Make it")
        jo.press("Enter")
        secret = jo.page.get_by_label("The key").inner_text()
        grandbo = memory._grandbo
        opened = grandbo.authenticate(secret).principal.name
        jo.go("/admin/keys")
        again = jo.text()
        jo.tab_to("Revoke the key of the pager")
        jo.press("Enter")
        jo.page.wait_for_url("**done=key_revoked")

        assert "the pager" == opened
        assert secret not in again
        made = [key for key in memory.keys(limit=50) if key.principal.name == "the pager"]
        assert [True] == [key.revoked_at is not None for key in made]

    def test_the_policy_is_changed_by_keyboard_after_a_preview(self, person: Open, memory: TenantMemory) -> None:
        """A section of it: what is typed and ticked is shown as a change first, by the words of the form."""
        jo = person("admin")
        jo.go("/admin/policy")
        jo.tab_to("Change expiry and review")
        jo.press("Enter")
        jo.page.wait_for_url("**/admin/policy/keeping")
        jo.tab_to("Expires after days: finding")
        jo.press("Control+a")
        jo.type("30")
        jo.tab_to("Why")
        jo.type("Findings age fast.")
        jo.tab_to("Preview")
        jo.press("Enter")
        jo.page.wait_for_selector("#preview")
        preview, before = jo.page.locator(".preview").inner_text(), memory.policy().policy.expiry_days["finding"]
        jo.tab_to("Change the policy")
        jo.press("Enter")
        jo.page.wait_for_url("**done=policy")

        assert "Expiry and review: finding, expires after days" in preview
        assert (90, 30) == (before, memory.policy().policy.expiry_days["finding"])
        assert 90 == memory.policy().policy.expiry_days["decision"]

    def test_who_was_slower_with_the_policy_sees_the_conflict_and_loses_nothing(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """What was typed stays, what was left alone follows, and the next try goes in."""
        jo = person("admin")
        jo.go("/admin/policy/ranking")
        jo.box("Core references where nothing matched").fill("2")
        jo.box("Why").fill("A floor helps.")
        memory.change_policy({"rrf_k": 30}, reason="Another one.")
        jo.expected = (412,)
        jo.button("Change the policy").press("Enter")
        conflict = jo.page.get_by_role("alert").inner_text()
        typed = [
            jo.box(label).input_value()
            for label in ("Core references where nothing matched", "Constant of the fusion", "Why")
        ]
        jo.button("Change the policy").press("Enter")
        jo.page.wait_for_url("**done=policy")

        assert "Ranking: Constant of the fusion" in conflict
        assert ["2", "30", "A floor helps."] == typed
        assert (2, 30) == (memory.policy().policy.floor, memory.policy().policy.rrf_k)

    def test_a_tier_that_is_new_is_ticked_for_a_role_before_it_is_in_force(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """The preview shows it among those to be ticked; a name that is none is refused and stays."""
        jo = person("admin")
        jo.expected = (422,)
        jo.go("/admin/policy/visibility")
        jo.box("Tiers").fill("team\noperations\ntech\nadmin\nBoard!")
        jo.button("Preview").press("Enter")
        refused = jo.page.get_by_role("alert").inner_text()
        jo.box("Tiers").fill(jo.box("Tiers").input_value().replace("Board!", "board"))
        jo.button("Preview").press("Enter")
        jo.page.locator('input[name="roles.admin"][value="board"]').check()
        jo.box("Why").fill("The board asks.")
        jo.button("Change the policy").press("Enter")
        jo.page.wait_for_url("**done=policy")

        assert "tiers: 1 to 16 names" in refused
        assert "board" in memory.policy().policy.tiers
        assert "board" in memory.policy().policy.roles["admin"]
        assert "board" not in memory.policy().policy.roles["auditor"]

    def test_json_that_is_none_says_so_and_keeps_the_text(self, person: Open, memory: TenantMemory) -> None:
        """Broken JSON says so; mended it is in force."""
        jo = person("admin")
        jo.expected = (422,)
        jo.go("/admin/policy/json")
        jo.box("The fields to replace, as JSON").fill('{"floor": 1')
        jo.box("Why").fill("A floor helps.")
        jo.button("Change the policy").press("Enter")
        jo.page.get_by_role("alert").wait_for()
        kept = jo.box("The fields to replace, as JSON").input_value(), jo.box("Why").input_value()
        jo.box("The fields to replace, as JSON").fill('{"floor": 1}')
        jo.button("Change the policy").press("Enter")
        jo.page.wait_for_url("**done=policy")

        assert ('{"floor": 1', "A floor helps.") == kept
        assert 1 == memory.policy().policy.floor

    def test_a_change_of_model_is_ended_by_keyboard(
        self, person: Open, database: TestDatabase, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """The page says where it stands; the space of before is taken out with a reason, by who is not too late."""
        memory.record_finding(make_finding())
        with Grandbo.open(settings=database.settings(), embedder=words_embedder("before")) as opened:
            opened.tenant(memory.tenant.name).embed()
        old = memory.policy().policy.stamps[0].stamp
        memory.embed()
        jo = person("admin")
        jo.go("/admin/stamps")
        stands = jo.page.locator("[aria-current=step]").inner_text()
        jo.page.get_by_text("Take it out of force").press("Enter")
        form = jo.page.locator(f'form:has(input[value="{old}"]):has(input[value="retire"])')
        form.get_by_label("Why").focus()
        jo.type("No process uses it.")
        memory.change_policy({"floor": 1}, reason="Meanwhile.")
        jo.expected = (412,)
        jo.tab_to(f"Take it out {old}")
        jo.press("Enter")
        jo.page.get_by_role("alert").wait_for()
        kept = form.get_by_label("Why").input_value()
        jo.tab_to(f"Take it out {old}")
        jo.press("Enter")
        jo.page.wait_for_url("**done=stamp_retire")

        assert "Take the old space out of force" in stands
        assert "No process uses it." == kept
        assert old not in [item.stamp for item in memory.policy().policy.stamps]

    def test_vectors_are_made_and_the_cutoff_measured_with_progress(self, person: Open, memory: TenantMemory) -> None:
        """What was measured is shown, and is the policy once somebody says so."""
        memory.import_lines(list(sample_lines())[:40], "finding")
        jo = person("admin")
        jo.go("/admin/stamps")
        jo.tab_to("Embed what lacks a vector")
        jo.press("Enter")
        jo.page.get_by_text("Done: all is well.").wait_for()
        jo.go("/admin/stamps")
        jo.tab_to("Measure the cutoff")
        jo.press("Enter")
        jo.page.get_by_role("button", name="Make the proposed cutoff the policy").press("Enter")
        jo.page.wait_for_url("**done=stamp_use")

        assert [40, 40] == [memory.backlog().entries, memory.backlog().embedded]
        assert "Measured on our own entries." in str(list(memory.events(event_type="policy_changed", bodies=True))[-1])

    def test_the_tenant_shows_itself_and_no_other(
        self, person: Open, memory: TenantMemory, other_memory: TenantMemory
    ) -> None:
        """And says where the others are made."""
        memory.record_finding(make_finding())
        jo = person("admin")
        jo.go("/admin")
        jo.page.locator("main").get_by_role("link", name=memory.tenant.name).press("Enter")
        jo.page.wait_for_url("**/admin/tenant")

        assert str(memory.tenant_id) in jo.text()
        assert "grandbo tenant create" in jo.text()
        assert other_memory.tenant.name not in jo.page.content()
        assert str(other_memory.tenant_id) not in jo.page.content()


class TestErasure:
    def test_one_asks_and_another_confirms(self, person: Open, memory: TenantMemory) -> None:
        """Who asked has no button; the other one has, and then there is a certificate."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        jo, kim = person("admin", name="jo"), person("admin", name="kim")
        jo.go(f"/erasures?entry={entry}")
        jo.button("Ask").press("Enter")
        jo.page.wait_for_url("**done=asked")
        own = jo.text()
        kim.go("/erasures")
        kim.tab_to("I am sure: nothing brings it back")
        kim.press("Space")
        kim.tab_to(f"Erase it …{str(entry)[-8:]}")
        kim.press("Enter")
        kim.page.wait_for_url("**done=erased")

        assert "Somebody else has to confirm it." in own
        assert 1 == kim.page.get_by_role("link", name="Certificate").count()
        assert ["certified"] == [item.as_dict()["state"] for item in memory.erasures()]


class TestPeople:
    def test_a_subject_is_found_reported_held_and_forgotten_by_two(self, person: Open, memory: TenantMemory) -> None:
        """What it is called elsewhere stands in no address."""
        memory.change_policy(
            {"people": {**memory.policy().policy.people.model_dump(), "second_person": True}}, reason="Two."
        )
        subject = memory.register_subject("person", "zoe@example.com", "Zoe").subject.subject_id
        jo, kim = person("admin", name="jo"), person("admin", name="kim")
        jo.go("/people")
        jo.page.locator("input[name=reference]").first.focus()
        jo.type("zoe@example.com")
        jo.press("Enter")
        jo.page.wait_for_url(f"**/people/{subject}")
        jo.go(f"/people/{subject}/held")
        report = jo.text()
        jo.go(f"/people/{subject}")
        jo.tab_to("Why it must stay")
        jo.type("Litigation 17")
        jo.press("Enter")
        jo.page.wait_for_url("**done=held")
        jo.tab_to("Why it may go")
        jo.type("Settled.")
        jo.press("Enter")
        jo.page.wait_for_url("**done=lifted")
        for someone, done in ((jo, "forget_asked"), (kim, "erased")):
            someone.go(f"/people/{subject}")
            someone.tab_to("I am sure: nothing brings it back")
            someone.press("Space", "Tab", "Enter")
            someone.page.wait_for_url(f"**done={done}")

        assert "All that is held" in report
        assert "erased" == memory.subject(subject).state


class TestNumbers:
    @pytest.mark.parametrize("path", ["/usage", "/recurrence"])
    def test_a_plot_is_drawn_from_the_table_behind_it(self, person: Open, memory: TenantMemory, path: str) -> None:
        """A canvas, and the numbers for who does not see it."""
        memory.record_finding(make_finding())
        memory.query_topic(TOPIC)
        jo = person("admin")
        jo.go(path)
        jo.page.locator(".plot canvas").first.wait_for()
        jo.page.locator("details summary", has_text="The numbers").first.press("Enter")

        assert jo.page.locator("details table tbody tr").first.is_visible()


class TestImpact:
    def test_all_that_rests_on_an_entry_is_put_away_and_let_out(self, person: Open, memory: TenantMemory) -> None:
        """By one reason, in one command each."""
        entry = memory.record_finding(make_finding()).acknowledgement.entry_id
        jo = person("admin")
        statuses = []
        for button in ("Put all of them in quarantine", "Let out what was put away so"):
            jo.go(f"/entries/{entry}/impact")
            jo.tab_to("Why")
            jo.type("The source was wrong.")
            jo.tab_to(button)
            jo.press("Enter")
            jo.page.wait_for_url("**done=**")
            statuses.append(memory.show_entry(entry)["status"])

        assert ["quarantined", "published"] == statuses
