"""What the web console costs with many queues: `python -m bench.console [paint|tab|traffic]`.

`paint`: first contentful paint of the list of queues and of the overview in Chromium, from the navigation on.
`tab`: the share of a core that the server uses for one open tab, less what it uses without, in windows that
alternate. `traffic`: programs send and receive recoverable messages at a fixed rate, in windows that
alternate between without and with an open tab; times run from when a message was due to its delivery. The
tab of `tab` and `traffic` is a process that follows the stream of the page as the browser does: a browser
takes a core of its own, which elsewhere is that of another machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from bench import appload
from bench.appload import AppLoad
from bench.measure import Figures
from bench.report import Check
from bench.server import Server
from msmq_fast import client

__all__ = ["PAGES", "Cost", "Paint", "Window", "checks", "paints", "ratio", "tab_costs", "traffic"]

PAINT_MS: Final = 1000
TAB_SHARE: Final = 0.02
P99_RATIO: Final = 1.1
PAGES: Final = ("/ui/queues", "/ui/queues?sort=messages&order=down", "/ui/overview")
_LIVE: Final = "live"
_AT_ONCE: Final = 200  # queues that are created at once
_HEADERS: Final = {"Host": "localhost", "Sec-Fetch-Site": "same-origin"}
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Milliseconds from the navigation to the answer, and to the first contentful paint."""

    page: str
    answer: float
    paint: float


@dataclass(frozen=True, slots=True)
class Cost:
    """Cores of the server in one window, with or without an open tab."""

    tab: bool
    cores: float
    events: int


@dataclass(frozen=True, slots=True)
class Window:
    """Milliseconds from when a message was due to its delivery."""

    tab: bool
    in_per_s: float
    p50: float
    p99: float


async def _create(server: Server, queues: int) -> None:
    async with await client.connect(f"unix:{server.socket}") as connection:
        for first in range(0, queues, _AT_ONCE):
            await asyncio.gather(
                *(
                    connection.admin.queues.create(f"orders-{number:05}")
                    for number in range(first, min(queues, first + _AT_ONCE))
                )
            )


@contextmanager
def _serving(directory: Path, queues: int) -> Iterator[Server]:
    with Server(directory, queues=(_LIVE,)) as server:
        asyncio.run(_create(server, queues))
        yield server


def _ask(port: int, method: str, path: str, cookie: str = "", body: str | None = None) -> tuple[str, bytes]:
    headers = {**_HEADERS, "Cookie": cookie} | (_FORM if body else {})
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status}")
        return answer.getheader("Set-Cookie", ""), content


def _cookie(port: int) -> str:
    """Log on as the user of this machine."""
    return _ask(port, "POST", "/ui/login", body="how=local")[0].partition(";")[0]


def _follow(port: int, page: str, events: Any, begun: Event, ended: Event) -> None:
    """In a process of its own, at the lowest priority: open a page and follow its stream."""
    os.nice(19)
    cookie = _cookie(port)
    _ask(port, "GET", page, cookie)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        target = f"/ui/live?page={quote(page)}&since={int(time.time())}"
        connection.request("GET", target, headers={**_HEADERS, "Cookie": cookie})
        answer = connection.getresponse()
        if answer.getheader("Content-Type", "").partition(";")[0] != "text/event-stream":
            raise RuntimeError(f"{target}: {answer.status}, no stream")
        while not ended.is_set():
            line = answer.readline()
            if line.startswith(b"data:"):
                events.value += 1
                begun.set()


class _Tab:
    """A process that has a page open, while it is entered."""

    def __init__(self, server: Server, page: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._events = spawn.Value("q", 0)
        self._begun, self._ended = spawn.Event(), spawn.Event()
        arguments = (server.admin_port, page, self._events, self._begun, self._ended)
        self._process = spawn.Process(target=_follow, args=arguments, daemon=True)

    @property
    def events(self) -> int:
        return int(self._events.value)

    def __enter__(self) -> _Tab:
        self._process.start()
        if not self._begun.wait(60):
            raise RuntimeError("the stream sends nothing")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


@contextmanager
def _tab(server: Server, page: str, *, wanted: bool) -> Iterator[_Tab | None]:
    if wanted:
        with _Tab(server, page) as tab:
            yield tab
    else:
        yield None


def paints(directory: Path, *, queues: int, rounds: int) -> Iterator[Paint]:
    """Load each page `rounds` times in Chromium, without its cache of pages."""
    from playwright.sync_api import sync_playwright

    with _serving(directory, queues) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        tab = browser.new_context(base_url=f"http://localhost:{server.admin_port}").new_page()
        tab.goto("/ui/login")
        tab.click("text=Enter as the user of this computer")
        tab.wait_for_url("**/ui/queues")
        for number in range(rounds + 1):
            for page in PAGES:
                tab.goto(page)
                tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
                answer, paint = tab.evaluate(
                    "[performance.getEntriesByType('navigation')[0].responseEnd,"
                    " performance.getEntriesByName('first-contentful-paint')[0].startTime]"
                )
                if number:  # the first round fills the cache of files
                    yield Paint(page, answer, paint)
        browser.close()


def tab_costs(directory: Path, *, queues: int, rate: float, seconds: float, windows: int) -> Iterator[Cost]:
    """Pairs of windows, without and with an open tab, beside traffic so that the page changes."""
    load = AppLoad(rate=rate, window=4096, seconds=seconds, warmup=1, max_bytes=0)
    with _serving(directory, queues) as server:
        for number in range(windows):
            for wanted in (False, True) if number % 2 == 0 else (True, False):
                with _tab(server, PAGES[0], wanted=wanted) as tab:
                    before = 0 if tab is None else tab.events
                    figures: Figures = appload.on_server(load, _LIVE)(server)
                    events = 0 if tab is None else tab.events - before
                yield Cost(wanted, figures["server_cores"], events)


def traffic(directory: Path, *, queues: int, load: AppLoad, windows: int) -> Iterator[Window]:
    """Pairs of windows, without and with an open tab, in an order that turns around from pair to pair."""
    with _serving(directory, queues) as server:
        appload.unwatched(server, load, _LIVE)  # warms up
        for number in range(windows):
            for wanted in (False, True) if number % 2 == 0 else (True, False):
                with _tab(server, PAGES[0], wanted=wanted):
                    figures = appload.unwatched(server, load, _LIVE)
                p50, p99 = figures["end_to_end_p50_us"] / 1e3, figures["end_to_end_p99_us"] / 1e3
                yield Window(wanted, figures["in_per_s"], p50, p99)


def ratio(windows: Sequence[Window]) -> float:
    """The median p99 with a tab by that without."""
    with_tab = [window.p99 for window in windows if window.tab]
    without = [window.p99 for window in windows if not window.tab]
    return statistics.median(with_tab) / statistics.median(without)


def _share(costs: Sequence[Cost]) -> float:
    """The median cores with a tab, less those without."""
    with_tab = [cost.cores for cost in costs if cost.tab]
    without = [cost.cores for cost in costs if not cost.tab]
    return statistics.median(with_tab) - statistics.median(without)


def checks(what: str, found: Sequence[Any]) -> list[Check]:
    """The bounds of a measurement."""
    if what == "tab":
        return [Check("cores for an open tab", _share(found), TAB_SHARE, "", upper=True)]
    if what == "traffic":
        return [Check("p99 with a tab by p99 without, medians", ratio(found), P99_RATIO, "", upper=True)]
    return [
        Check(
            f"first paint of {page}",
            statistics.median(one.paint for one in found if one.page == page),
            PAINT_MS,
            "ms",
            upper=True,
        )
        for page in PAGES
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures and the verdicts; 1 if one is a miss."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=["paint", "tab", "traffic"], default="paint")
    parser.add_argument("--queues", type=int, default=10_000)
    parser.add_argument("--rate", type=float, help="messages a second (tab 100, traffic 5,000)")
    parser.add_argument("--express", action="store_true", help="messages that need no disk")
    parser.add_argument("--seconds", type=float, default=10, help="of a window (10)")
    parser.add_argument("--windows", type=int, default=6, help="pairs of windows, rounds of paint (6)")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="for data directories")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    common: dict[str, Any] = {"queues": options.queues}
    found: Iterator[Any]
    if options.what == "paint":
        found = paints(options.dir, rounds=options.windows, **common)
    elif options.what == "tab":
        rate = options.rate or 100
        found = tab_costs(options.dir, rate=rate, seconds=options.seconds, windows=options.windows, **common)
    else:
        load = AppLoad(
            rate=options.rate or 5000,
            recoverable=not options.express,
            window=4096,
            seconds=options.seconds,
            max_bytes=0,
        )
        found = traffic(options.dir, load=load, windows=options.windows, **common)
    results = []
    for one in found:
        results.append(one)
        if not options.json:
            print(*(f"{name}={value if isinstance(value, str | bool) else round(value, 4)}"
                    for name, value in asdict(one).items()), flush=True)  # fmt: skip
    verdicts = checks(options.what, results)
    if options.json:
        figures = {check.name: check.value for check in verdicts}
        print(json.dumps({"results": [asdict(one) for one in results], "figures": figures}, indent=1))
    else:
        print(*verdicts, sep="\n")
    return 0 if all(check.passed for check in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
