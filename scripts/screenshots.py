#!/usr/bin/env python3
"""
Every page at 1280 and 390 pixels, in both themes, as pictures to be looked at: scripts/screenshots [FOLDER].

On a server of its own, with the sample incidents and something on every page. Not committed, but for the two that the
README shows, which `--readme` writes to docs/images.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.browser import Visitor, running_chromium, sign_in, visiting  # noqa: E402
from tests.support.http import running_http  # noqa: E402
from tests.support.pages import furnish  # noqa: E402
from tests.support.postgres import running_server  # noqa: E402

from grandbo.library import Grandbo  # noqa: E402
from grandbo.sample import TOPICS, sample_lines  # noqa: E402

WIDTHS = (1280, 390)
CANDIDATE: dict[str, Any] = {
    "title": "The token-signing certificate ran out and nobody could sign in",
    "summary": "Users could not sign in through ADFS: its token signing certificate had expired in the night.",
    "body": "The certificate rolls over by itself, and the relying parties were never told of the new one.",
    "service": "identity",
    "evidence": [{"type": "ticket", "uri": "https://tickets.example.com/INC-2031", "label": "INC-2031"}],
    "incident": {"source": "pager", "id": "INC-2031"},
    "confidence_bp": 7_000,
}
README = ROOT / "docs" / "images"


def main() -> int:
    """Write the pictures; give 0, or 1 where the browser complained."""
    for_readme = sys.argv[1:] == ["--readme"]
    folder = README if for_readme else Path(sys.argv[1] if sys.argv[1:] else "/tmp/grandbo-screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with running_server() as server, tempfile.TemporaryDirectory() as home:
        settings = server.at("grandbo").settings(home=home, embedder="local")
        with Grandbo.open(settings=settings) as grandbo:
            grandbo.create_tenant("acme")
            memory = grandbo.tenant("acme", principal="human:jo")
            memory.import_lines(sample_lines(), "finding")
            furnished = furnish(grandbo, memory)
            memory.embed()
            _, token = memory.create_key("jo", "human", ("admin",))
            with (
                running_http(grandbo) as site,
                running_chromium() as browser,
                visiting(browser, f"http://127.0.0.1:{site.port}") as visitor,
            ):
                visitor.expected = (404, 422)
                sign_in(visitor, token)
                if for_readme:
                    scout = grandbo.tenant("acme", principal="agent:scout")
                    candidate = scout.propose(CANDIDATE, reason="Told by the close of INC-2031.").candidate_id
                    take_for_readme(visitor, candidate, folder)
                else:
                    take_all(visitor, furnished.addresses, folder)
                print("\n".join(visitor.complaints), file=sys.stderr)
                return 1 if visitor.complaints or visitor.strangers else 0


def take_all(visitor: Visitor, addresses: tuple[str, ...], folder: Path) -> None:
    """Each address at each width and in each theme."""
    for number, address in enumerate(addresses):
        name = address.partition("?")[0].strip("/").replace("/", "_")[:50] or "start"
        visitor.go(address)
        for theme in ("light", "dark"):
            visitor.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            for width in WIDTHS:
                visitor.page.set_viewport_size({"width": width, "height": 900})
                visitor.page.wait_for_timeout(200)  # plots are drawn anew at another width
                visitor.page.screenshot(path=folder / f"{number:02}-{name}-{theme}-{width}.png", full_page=True)


def take_for_readme(visitor: Visitor, candidate: UUID, folder: Path) -> None:
    """A search with its reasons, and a candidate with what is near it."""
    visitor.page.set_viewport_size({"width": 1100, "height": 760})
    visitor.go(f"/search?topic={TOPICS[0]}")
    visitor.page.locator(".why summary").first.click()
    visitor.page.screenshot(path=folder / "search.png")
    visitor.go(f"/review/{candidate}")
    visitor.page.locator("h2:text-is('Nearest entries') ~ details summary").first.click()
    visitor.page.screenshot(path=folder / "review.png")


if __name__ == "__main__":
    sys.exit(main())
