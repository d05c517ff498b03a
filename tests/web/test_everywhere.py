"""What holds for every page: axe finds nothing in either theme, nothing is complained about, nobody else is asked."""

from __future__ import annotations

from grandbo.library import Grandbo, TenantMemory
from tests.support.browser import Visitor
from tests.support.pages import furnish
from tests.web.conftest import Open

HOSTILE = (
    "<script>window.hit=1</script><img src=x onerror=window.hit=2><svg onload=window.hit=3>"
    "\"'><a href=javascript:window.hit=4>{{7*7}}${7*7}</textarea></title>[x](javascript:window.hit=5)"
    "![i](https://evil.example.com/i.png)<style>*{display:none}</style>"
)
REFUSED = (404, 422)


class TestEveryPage:
    def test_axe_finds_nothing_in_both_themes_and_it_fits_a_telephone(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """WCAG 2.2 AA as far as a machine can tell, by all its rules in either theme."""
        jo = person("admin")
        jo.expected = REFUSED
        jo.page.emulate_media(reduced_motion="reduce", color_scheme="light")
        found = []
        for place, address in enumerate(furnish(grandbo, memory).addresses):
            jo.page.set_viewport_size({"width": 390 if place % 2 else 1280, "height": 900})
            jo.go(address)
            found += [f"{address}, light: {problem}" for problem in jo.axe()]
            jo.page.emulate_media(color_scheme="dark")
            found += [f"{address}, dark: {problem}" for problem in jo.axe()]
            jo.page.emulate_media(color_scheme="light")
            jo.page.set_viewport_size({"width": 390, "height": 800})
            if jo.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{address}: wider than 390 pixels")

        assert [] == found, "\n".join(found)

    def test_stored_scripts_and_markup_are_inert_in_every_field(
        self, person: Open, grandbo: Grandbo, memory: TenantMemory
    ) -> None:
        """What hooks, agents and people have written is text: nothing of it runs, loads, hides or becomes a link."""
        memory.change_policy(
            {"screening": {"secrets": "flag", "instructions": "flag", "hosts": "flag"}}, reason="Let in."
        )
        furnished = furnish(grandbo, memory, HOSTILE)
        jo = person("admin")
        jo.expected = REFUSED
        for address in furnished.addresses:
            jo.go(address)
            assert jo.page.evaluate("window.hit") is None, address
            assert [] == _strange(jo), address
        jo.go(f"/entries/{furnished.entry_id}")

        assert HOSTILE[:30] in jo.text()


def _strange(visitor: Visitor) -> list[str]:
    """Elements that no template of ours makes, and addresses that are none of ours."""
    strange: list[str] = visitor.page.evaluate(
        """() => [...document.querySelectorAll('main script, main style, main img, main iframe, [onerror], [onload],'
          + ' main a[href^="javascript:" i], main a[href^="data:" i]')].map((element) => element.outerHTML)"""
    )
    return strange
