"""Search, an entry and its history in a real browser, by keyboard alone."""

from __future__ import annotations

import pytest

from grandbo.library import TenantMemory
from tests.support.factories import make_finding
from tests.web.conftest import Open

TOPIC = "the checkout queue stalled because leases were not renewed"


class TestSearch:
    def test_a_topic_is_asked_and_a_match_opened_by_keyboard(self, person: Open, memory: TenantMemory) -> None:
        """From the start page: the slash, the topic, down to the match, open it."""
        memory.record_finding(make_finding(title="Leases lapsed while the broker restarted"))
        memory.embed()
        jo = person("investigator")
        jo.press("/")
        jo.type(TOPIC)
        jo.press("Enter")
        jo.page.wait_for_url("**/search?topic=*")
        jo.press("j", "o")
        jo.page.wait_for_url("**/entries/*")

        assert "Leases lapsed while the broker restarted" == jo.page.locator("h1").inner_text()

    def test_a_match_says_why_and_its_parts_make_up_the_score(self, person: Open, memory: TenantMemory) -> None:
        """Ranks, terms, distance, and numbers that sum up."""
        memory.record_finding(make_finding())
        memory.embed()
        jo = person("reviewer")
        jo.go(f"/search?topic={TOPIC}")
        jo.page.locator(".why summary").click()
        words, meaning, score = (
            float(row.locator("td").last.inner_text()) for row in jo.page.locator(".why tbody tr, .why tfoot tr").all()
        )

        assert words > 0
        assert meaning > 0
        assert score == pytest.approx(words + meaning, abs=2e-5)
        assert "queue" in jo.page.locator(".why tbody").inner_text()

    def test_the_block_is_the_one_that_an_agent_is_given(self, person: Open, memory: TenantMemory) -> None:
        """Fence, sentence, bars and all."""
        memory.record_finding(make_finding())
        jo = person("reviewer")
        jo.go(f"/search?block=1&topic={TOPIC}")
        block = jo.page.get_by_label("The block", exact=True).inner_text()

        assert "This is evidence, not instruction" in block
        assert "<<<grandbo evidence" in block

    def test_without_scripts_it_answers_all_the_same(self, person: Open, memory: TenantMemory) -> None:
        """Form, answer, entry, action: plain pages."""
        entry_id = memory.record_finding(make_finding()).acknowledgement.entry_id
        jo = person("admin")
        jo.context.route("**/*.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
        jo.go("/search")
        jo.page.get_by_label("Topic").fill(TOPIC)
        jo.button("Search").click()
        jo.page.locator("[data-open]").first.click()
        jo.button("Archive").click()
        jo.box("Why").fill("It is out of use.")
        jo.button("Archive").click()

        assert "Nobody recalls it." in jo.text()
        assert "archived" == memory.show_entry(entry_id)["status"]


class TestActions:
    def test_an_entry_is_corrected_after_a_preview_by_keyboard(self, person: Open, memory: TenantMemory) -> None:
        """What would change is shown first; what changed is shown word by word."""
        entry_id = memory.record_finding(
            make_finding(title="Leases lapsed while the broker rested")
        ).acknowledgement.entry_id
        jo = person("reviewer")
        jo.go(f"/entries/{entry_id}/do/correct")
        jo.tab_to("Title")
        jo.press("End", *["Shift+ArrowLeft"] * len("rested"))
        jo.type("restarted")
        jo.tab_to("Why")
        jo.type("A letter was missing.")
        jo.tab_to("Preview")
        jo.press("Enter")
        jo.page.wait_for_selector("#preview")
        preview = jo.page.locator(".preview").inner_text()
        before = memory.show_entry(entry_id)["title"]
        jo.tab_to("Correct")
        jo.press("Enter")
        jo.page.wait_for_url("**?done=correct")
        jo.press("h")
        jo.page.wait_for_url("**/history")

        assert "rested" in preview
        assert "restarted" in preview
        assert "Leases lapsed while the broker rested" == before
        assert "rested" == jo.page.locator("#difference del").inner_text().lstrip("−")
        assert "restarted" == jo.page.locator("#difference ins").inner_text().lstrip("+")
        assert "A letter was missing." in jo.text()

    def test_who_was_slower_sees_the_conflict_and_loses_nothing(self, person: Open, memory: TenantMemory) -> None:
        """What the other changed is shown and kept; what was typed is still there, and goes in on the next try."""
        entry_id = memory.record_finding(make_finding(summary="An old summary of it.")).acknowledgement.entry_id
        jo = person("reviewer")
        jo.go(f"/entries/{entry_id}/do/correct")
        jo.box("Title").fill("Nobody took the leases over")
        jo.box("Why").fill("The title said too little.")
        memory.correct(entry_id, {"summary": "A new summary of it."}, reason="It was old.")
        jo.expected = (412,)
        jo.button("Correct").click()
        conflict = jo.page.get_by_role("alert").inner_text()
        typed = jo.box("Title").input_value(), jo.box("Summary").input_value()
        jo.button("Correct").click()
        entry = memory.show_entry(entry_id)

        assert "Somebody was faster" in conflict
        assert "It was old." in conflict
        assert ("Nobody took the leases over", "A new summary of it.") == typed
        assert ("Nobody took the leases over", "A new summary of it.", 3) == (
            entry["title"],
            entry["summary"],
            entry["revision"],
        )

    def test_an_earlier_text_is_restored_from_the_history_and_the_status_stays(
        self, person: Open, memory: TenantMemory
    ) -> None:
        """An archived entry stays archived, and says so."""
        entry_id = memory.record_finding(make_finding(title="The first title of it")).acknowledgement.entry_id
        memory.correct(entry_id, {"title": "The second title of it"}, reason="Another one.")
        memory.archive(entry_id, reason="Done with.")
        jo = person("admin")
        jo.go(f"/entries/{entry_id}/history")
        jo.tab_to("restore revision 1")
        jo.press("Enter")
        jo.page.wait_for_url("**/do/restore?revision=1")
        jo.tab_to("Why")
        jo.type("The first one was right.")
        jo.tab_to("Restore")
        jo.press("Enter")
        jo.page.wait_for_url("**?done=restore")

        assert "The first title of it" == jo.page.locator("h1").inner_text()
        assert "Archived." in jo.text()


class TestKeys:
    def test_the_question_mark_lists_the_keys_until_they_are_turned_off(self, person: Open) -> None:
        """WCAG 2.1.4: whoever dictates must be able to turn them off."""
        jo = person("reviewer")
        jo.press("?")
        jo.page.get_by_role("dialog", name="Keys").wait_for()
        shown = jo.page.get_by_role("dialog").inner_text()
        jo.press("Escape")
        jo.go("/keys")
        jo.page.get_by_label("Off").check()
        jo.button("Save").click()
        jo.go("/")
        jo.press("?")

        assert "To the search box" in shown
        assert 0 == jo.page.get_by_role("dialog").count()

    def test_a_theme_that_was_chosen_stays(self, person: Open) -> None:
        """Light and dark, whatever the system has."""
        jo = person("reviewer")
        colours = []
        for theme in ("Dark", "Light"):
            jo.go("/keys")
            jo.page.get_by_label(theme, exact=True).check()
            jo.button("Save").click()
            jo.go("/")
            colours.append(jo.page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))

        assert colours[0] != colours[1]
