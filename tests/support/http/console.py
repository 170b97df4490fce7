"""The web console of a running server as a browser without script sees it."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlencode

from tests.support.processes.servers import Server, command, data_directory

PASSWORD = "correct horse"  # noqa: S105
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7777*3 }}",
    "</pre><svg onload=alert(1)>",
    "javascript:alert(1)",
)


class Page(HTMLParser):
    """The tags and the text of an answer. A download has none."""

    def __init__(self, status: int, headers: dict[str, str], text: str) -> None:
        super().__init__()
        self.status, self.headers, self.html = status, headers, text
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        if headers.get("Content-Type") != "application/octet-stream":
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [str(attributes["href"]) for tag, attributes in self.tags if tag == "a"]


class Browser:
    """A client that keeps its cookie and sends the headers of a browser."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.cookie = ""

    def ask(self, method: str, path: str, form: dict[str, str] | None = None, **headers: str) -> Page:
        given = {"Host": "localhost", "Sec-Fetch-Site": "same-origin", "Cookie": self.cookie}
        given |= {name.replace("_", "-"): text for name, text in headers.items()}
        body = None
        if form is not None:
            body = urlencode(form)
            given["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self._server.host, self._server.port("admin"), timeout=30)
        with closing(connection):
            connection.request(
                method, f"/ui{path}", body, {name: text for name, text in given.items() if text}
            )
            answer = connection.getresponse()
            page = Page(answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace"))
        if page.headers.get("Set-Cookie", "").startswith("msmq="):
            self.cookie = page.headers["Set-Cookie"].partition(";")[0]
        return page

    def log_on(self, name: str, secret: str) -> Page:
        return self.ask("POST", "/login", {"how": "secret", "name": name, "secret": secret})


def add_user(data: Path, name: str, password: str, *flags: str) -> None:
    """Write a user into the users file."""
    done = command("user", "add", name, "--data", str(data), *flags, stdin=f"{password}\n".encode())
    assert done.returncode == 0, done


def boxes(page: Page) -> list[str]:
    """Return the numbers of the messages that a list offers to select."""
    return [str(one["value"]) for tag, one in page.tags if tag == "input" and one.get("name") == "id"]


def act_on(browser: Browser, url: str) -> Page:
    """Show a preview, press its button, and return the next page."""
    preview = browser.ask("GET", url)
    assert preview.status == 200
    action = next(str(one["action"]) for tag, one in preview.tags if one.get("class") == "fields card")
    done = browser.ask("POST", action.removeprefix("/ui"), {})
    return browser.ask("GET", done.headers["Location"].removeprefix("/ui"))


@contextmanager
def console_server() -> Iterator[Server]:
    """Run a server with an administrator (admin), a reader (rita) and a user without rights (bob)."""
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", PASSWORD, "--group", "administrators")
        add_user(data, "bob", PASSWORD)
        add_user(data, "rita", PASSWORD, "--group", "readers")
        running = Server(data, "--name", "ALPHA")
        try:
            yield running.start()
        finally:
            running.kill()


def log_on(server: Server, name: str = "admin") -> Browser:
    """Return a browser in which a user of `console_server` is logged on."""
    made = Browser(server)
    assert made.log_on(name, PASSWORD).status == 303
    return made
