"""The console in Chromium: pages that notice dialogs, breaches of the policy, errors, foreign requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.http.console import add_user
from tests.support.processes.servers import Server, data_directory

SHOTS = Path("build/screenshots")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""


@dataclass
class Watched:
    """A page, and what happened in it that must not: `wrong` is empty at the end of a test."""

    page: Any
    wrong: list[str] = field(default_factory=list)

    def check(self, where: str = "") -> None:
        """Fail if a script of others ran, or the policy stopped something."""
        found = self.wrong + self.page.evaluate("window.violations")
        assert found == [], (where or self.page.url, found)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a profile."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def watched(browser: Any, server: Server, theme: str = "light", **options: Any) -> Watched:
    """A new page, in a context of its own, that watches what it shows."""
    base = f"http://localhost:{server.port('admin')}"
    context = browser.new_context(color_scheme=theme, base_url=base, **options)
    page = context.new_page()
    found = Watched(page)

    def on_dialog(dialog: Any) -> None:
        found.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def on_request(request: Any) -> None:
        if not request.url.startswith(base):
            found.wrong.append(f"request to {request.url}")

    page.add_init_script(WATCH)
    page.on("dialog", on_dialog)
    page.on("request", on_request)
    page.on("pageerror", lambda error: found.wrong.append(f"error {error}"))
    return found


def shot_name(path: str) -> str:
    """Return the name of the picture of a page, without the theme and the extension."""
    return re.sub(r"\W+", "-", path).strip("-")[:60]


def log_on(page: Any, name: str, secret: str) -> None:
    """Enter a name and a password, and wait for the first page."""
    page.goto("/ui/login")
    page.fill("#name", name)
    page.fill("#secret", secret)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/queues")


@contextmanager
def shown_server() -> Iterator[Server]:
    """Run a server with something to show: a message, and one for a computer that does not answer. Its
    administrator is `admin` with the password `secret`.
    """
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", "secret", "--group", "administrators")
        running = Server(data, "--name", "ALPHA")
        try:
            running.start()
            running.ok("queue", "create", "orders", "--label", "Incoming orders", "--journal")
            running.ok("send", ".\\private$\\orders", "--label", "one", "--body", "<a><b>1</b></a>")
            running.ok("send", "DIRECT=TCP:127.0.0.9\\private$\\far", "--body", "x")
            add_user(data, "rita", "secret", "--group", "readers")
            yield running
        finally:
            running.kill()
