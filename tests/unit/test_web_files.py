"""What the pages are made with: vendored files as the manifest has them, templates that escape, a policy that holds."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from pathlib import Path

import pytest

from grandbo.web.due import WEEKS, calendar
from grandbo.web.rendering import FOLDER, STATIC, markdown, web_link

TESTS_VENDOR = Path(__file__).parents[1] / "vendor"
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))


class TestVendored:
    @pytest.mark.parametrize("place", [STATIC / "vendor", TESTS_VENDOR], ids=["shipped", "tests"])
    def test_every_file_is_as_the_manifest_has_it_and_no_other_is_there(self, place: Path) -> None:
        """Byte by byte; scripts/vendor.py --check compares the manifest with the registry."""
        manifest = json.loads((place / "manifest.json").read_text())
        there = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}

        assert there == {item["file"] for item in manifest} | {"manifest.json"}
        for item in manifest:
            assert item["sha256"] == hashlib.sha256((place / item["file"]).read_bytes()).hexdigest(), item["file"]

    def test_versions_are_the_exact_ones_that_are_asked_for(self) -> None:
        """package.json, its lock and the manifests say the same."""
        asked = json.loads((FOLDER / "package.json").read_text())
        wanted = asked["dependencies"] | asked["devDependencies"]
        locked = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
        stated = {
            item["package"]: item["version"]
            for place in (STATIC / "vendor", TESTS_VENDOR)
            for item in json.loads((place / "manifest.json").read_text())
        }

        assert wanted == stated
        assert wanted == {name: locked[f"node_modules/{name}"]["version"] for name in wanted}

    def test_every_package_comes_with_its_licence(self) -> None:
        """Beside the files."""
        for place in (STATIC / "vendor", TESTS_VENDOR):
            packages = {path.name for path in place.iterdir() if path.is_dir()}
            assert packages == {path.parent.name for path in place.rglob("LICENSE")}


class TestTemplates:
    @pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
    def test_nothing_is_left_unescaped_and_nothing_is_inline(self, path: Path) -> None:
        """What the policy would forbid a browser to run is not there to begin with."""
        text = path.read_text(encoding="utf-8")

        assert not re.search(r"\|\s*safe|autoescape|Markup", text)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|js:", text)
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)


class TestText:
    @pytest.mark.parametrize(
        "given",
        [
            "<script>x</script>",
            "![x](https://evil.example.com/x.png)",
            "[x](javascript:alert(1))",
            "[x](data:text/html,x)",
            "<img src=x onerror=x>",
            "# <b>x</b>",
        ],
    )
    def test_stored_markdown_brings_no_markup_of_its_own(self, given: str) -> None:
        """Neither scripts nor images nor links that are not to the web."""
        made = str(markdown(given))

        assert not re.search(r"<(?:script|img|b|style|svg)\b|href=\"(?!https?://)", made)

    def test_only_an_address_of_the_web_is_a_link(self) -> None:
        """Everything else is shown as it is."""
        assert '<a href="https://a.example.com/?q=%3Cb%3E"' in web_link("https://a.example.com/?q=%3Cb%3E")
        for uri in ("javascript:alert(1)", "urn:grandbo:person:x", "data:text/html,x", "https://[", "vbscript:x"):
            assert "<a" not in web_link(uri)


def test_the_calendar_begins_with_this_week_and_counts_by_day() -> None:
    """Mondays first."""
    due = [{"review_at": "2026-12-02T00:00:00.000000Z", "expires_at": "2026-12-05T10:00:00.000000Z"}] * 2
    weeks = calendar(due, date(2026, 12, 3))

    assert WEEKS == len(weeks)
    assert "2026-11-30" == weeks[0][0]["day"]
    assert [0, 0, 2, 0, 0, 0, 0] == [day["reviews"] for day in weeks[0]]
    assert [0, 0, 0, 0, 0, 2, 0] == [day["expiries"] for day in weeks[0]]
