"""A real Chromium, and one page of it with all that it complains about written down."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    sync_playwright,
)

AXE = Path(__file__).parents[1] / "vendor" / "axe-core" / "axe.min.js"
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TIMEOUT_MS = 10_000


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """Start Debian's Chromium, or the one that CHROMIUM names; one that cannot start fails the tests."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert path, "Chromium is not there; scripts/setup test says how to install it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_FLAGS), timeout=60_000)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Visitor:
    """Someone at a browser: a page, and what the browser said of it."""

    page: Page
    context: BrowserContext
    base: str
    complaints: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    # Statuses of pages that are meant to be refused: the browser notes each on its console.
    expected: tuple[int, ...] = ()

    def is_expected(self, message: str) -> bool:
        """Whether it only says that a page had one of the expected statuses."""
        return any(f"responded with a status of {status} " in message for status in self.expected)

    def go(self, path: str) -> None:
        """Open an address of the site."""
        self.page.goto(self.base + path)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.page.keyboard.type(text)

    def tab_to(self, name: str, *, most: int = 120) -> None:
        """Press Tab until what is called so has the focus."""
        for _ in range(most):
            self.press("Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"{name!r} is not reached with Tab")

    def box(self, label: str) -> Locator:
        """The field that is called so."""
        return self.page.get_by_role("textbox", name=label, exact=True)

    def button(self, name: str) -> Locator:
        """The button, or the link that looks like one."""
        return self.page.get_by_role("button", name=name, exact=True)

    def focused(self) -> str:
        """What the focused element is called: its label, or its text."""
        return str(self.page.evaluate(_NAME_OF_FOCUSED))

    def path(self) -> str:
        """The address, without the site."""
        return self.page.url.removeprefix(self.base)

    def text(self) -> str:
        """All that is to be read on the page."""
        return self.page.locator("main").inner_text()

    def axe(self, *rules: str) -> list[str]:
        """What axe finds wrong; by these rules alone where some are named."""
        if not self.page.evaluate("() => typeof window.axe === 'object'"):
            # Through the debugger, as an extension would: the page's own policy lets no script of others in.
            self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate(
            "(runOnly) => axe.run(document, {runOnly, resultTypes: ['violations']})",
            {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": _RULES},
        )
        return [
            f"{item['id']}: {node['html'][:200]} {node['failureSummary'][:200]}"
            for item in found["violations"]
            for node in item["nodes"]
        ]


_NAME_OF_FOCUSED = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return '';
  const label = element.labels && element.labels[0];
  const named = element.getAttribute('aria-label');
  const own = (node) => [...node.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent).join(' ');
  const said = named || (label ? own(label) : '') || element.innerText || element.name || '';
  return said.trim().replace(/\\s+/g, ' ');
}"""


@contextmanager
def visiting(browser: Browser, base: str, **options: Any) -> Iterator[Visitor]:
    """A fresh profile at the site, as a person would have it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    visitor = Visitor(page, context, base)

    def asked(request: Request) -> None:
        if not request.url.startswith((base + "/", "data:")):
            visitor.strangers.append(request.url)

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not visitor.is_expected(message.text):
            visitor.complaints.append(f"{message.type}: {message.text}")

    def asked_back(dialog: Dialog) -> None:
        visitor.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("request", asked)
    page.on("pageerror", lambda error: visitor.complaints.append(f"error: {error}"))
    page.on("console", said)
    page.on("dialog", asked_back)
    try:
        yield visitor
    finally:
        context.close()


def sign_in(visitor: Visitor, token: str) -> None:
    """Sign in by the form."""
    visitor.go("/sign-in")
    visitor.page.get_by_label("API key").fill(token)
    visitor.page.get_by_role("button", name="Sign in").click()
    visitor.page.wait_for_url(visitor.base + "/")
