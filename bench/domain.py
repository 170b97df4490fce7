"""A domain with very many queues: `python -m bench.domain`, as root.

It makes a domain of Samba with `--queues` queues, written into its files directly. With `--url ldap://DC
--user NAME@DOMAIN …` it uses a domain that has the queues already, and an account of the computer BENCH.
With `--replay`, the answers that the server got in its first reading are given again in the others
(bench.replay), so that the controller does not work beside the messages.

A server joins the domain, starts, and reads it completely every `--interval` seconds, while a program sends
recoverable messages one after the other: how long those took during a reading and in the time before it, in
pairs of the same run. Elsewhere the controller is another machine; here its work delays messages as well. So
`ldapsearch` reads the same queues once between two readings: what messages take then is the controller's
part. Also measured: how long the start took with and without the domain, how long the first reading, and how
much memory the copy of the domain needs. A look-up by GUID is timed in this process, on a copy of its own.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.machine import quantile
from bench.report import Check
from bench.server import Server, ServerError
from msmq_fast import sync
from msmq_fast.client import Access, Message
from msmq_fast.config.sections.directory import DirectoryConfig
from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap.provider import LdapDirectory
from msmq_fast.directory.ldap.schema import wanted_attributes
from msmq_fast.directory.ldap.worker import ThreadWorker
from msmq_fast.directory.objects import IDENTIFIER
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.server.domain import domain_of
from tests.support.processes.bulkqueues import add_queues
from tests.support.processes.samba import DomainController

__all__ = ["Outcome", "checks", "domain_config", "domain_of_queues", "measure"]

READ: Final = re.compile(r"^(\S+) .*: (\d+) objects of the domain were read in ([0-9.]+) s", re.MULTILINE)
DELAY_S, FILL_S, MEMORY_MIB, LOOKUP_US, RATIO = 0.3, 60.0, 150.0, 50.0, 1.2
_SERVER, _OTHER, _NOBODY = "server", "ldapsearch", ""
_LOOKUPS: Final = 2_000
INTERVAL_S: Final = 180.0
"""Seconds between two readings: `ldapsearch` reads 100,000 queues in 68 s on slow cores, and in 100 s beside
other work.
"""
_ADDRESS: Final = "127.0.19.10"
_STARTS: Final = 3
_QUEUE: Final = "live"


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which the server or `ldapsearch` read the domain, or neither: the messages that were sent in
    it, and their milliseconds.
    """

    reader: str
    messages: int
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds, MiB, µs, and the windows of messages in the order of their times.

    `plain_ready_s` is the start of a server that has its directory in its own store.
    """

    objects: int
    plain_ready_s: float
    ready_s: float
    fill_s: float
    memory_mib: float
    lookup_us: float
    windows: tuple[Window, ...]

    @property
    def delay_s(self) -> float:
        """By how much the domain delays `ready`."""
        return self.ready_s - self.plain_ready_s

    @property
    def ratio(self) -> float:
        """What a reading costs the messages beside it, the work of the domain controller included."""
        return self._p99(_SERVER) / self._p99(_NOBODY)

    @property
    def own_ratio(self) -> float:
        """The part of `ratio` that is not the controller's."""
        return self._p99(_SERVER) / self._p99(_OTHER)

    def _p99(self, reader: str) -> float:
        """The median of the p99 of the windows of one reader."""
        return statistics.median(window.p99 for window in self.windows if window.reader == reader)


def checks(outcome: Outcome) -> list[Check]:
    """The bounds for a domain of 100,000 queues."""
    return [
        Check("ready, later than without domain", outcome.delay_s, DELAY_S, "s", upper=True),
        Check("first reading", outcome.fill_s, FILL_S, "s", upper=True),
        Check("memory of the copy", outcome.memory_mib, MEMORY_MIB, "MiB", upper=True),
        Check("look-up by GUID", outcome.lookup_us, LOOKUP_US, "µs", upper=True),
        Check("p99 during a reading / between", outcome.ratio, RATIO, "", upper=True),
        Check("p99 during a reading / that of ldapsearch", outcome.own_ratio, RATIO, "", upper=True),
    ]


def _settings(config: DirectoryConfig, interval: float) -> str:
    lines = [
        "[server]",
        'name = "BENCH"',
        "[directory]",
        'mode = "domain"',
        f"url = {json.dumps(list(config.url))}",
    ]
    lines += [f'user = "{config.user}"', f'password_file = "{config.password_file}"']
    if config.ca_file is not None:
        lines.append(f'ca_file = "{config.ca_file}"')
    return "\n".join([*lines, f"complete_interval = {interval:g}", ""])


@contextmanager
def _sending(socket: Path) -> Iterator[list[tuple[float, float]]]:
    """(Unix seconds, milliseconds) of messages that are sent one after the other meanwhile."""
    found: list[tuple[float, float]] = []
    ended = threading.Event()

    def send() -> None:
        with sync.connect(f"unix:{socket}") as connection, connection.open(_QUEUE, Access.SEND) as queue:
            message = Message(b"x" * 100, delivery=1)
            while not ended.is_set():
                begun = time.perf_counter()
                queue.send(message)
                found.append((time.time(), (time.perf_counter() - begun) * 1e3))

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield found
    finally:
        ended.set()
        sending.join()


def _readings(log: Path) -> list[tuple[float, float, int]]:
    """(begin, end, objects) of each complete reading; times in Unix seconds."""
    found = []
    for stamp, objects, seconds in READ.findall(log.read_text()):
        end = datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()
        found.append((end - float(seconds), end, int(objects)))
    return found


def _wait(server: Server, count: int, timeout: float) -> list[tuple[float, float, int]]:
    deadline = time.monotonic() + timeout
    while len(found := _readings(server.log)) < count:
        if time.monotonic() > deadline:
            raise ServerError(f"no reading of the domain within {timeout:g} s:\n{server.log_tail()}")
        time.sleep(0.2)
    return found


def _lookup(config: DirectoryConfig) -> float:
    """Microseconds of a look-up by GUID, the median of many."""
    directory = LdapDirectory(
        domain_of(config), ThreadWorker(lambda function, *given: function(*given)), time.monotonic
    )
    read = threading.Event()
    directory.start().add_done_callback(lambda _: read.set())
    if not read.wait(600):
        raise ServerError("the domain was not read within 600 s")
    handle = directory.begin(ObjectType.QUEUE).result()
    guids = [directory.next(handle).result()[IDENTIFIER] for _ in range(min(_LOOKUPS, _count(directory)))]
    directory.end(handle)
    times = []
    for guid in guids:
        begun = time.perf_counter()
        directory.read(ObjectType.QUEUE, (equals(IDENTIFIER, guid),)).result()
        times.append((time.perf_counter() - begun) * 1e6)
    directory.close()
    return statistics.median(times)


def _count(directory: LdapDirectory) -> int:
    return directory.count(ObjectType.QUEUE) or 0


def _ready_s(*servers: Server) -> list[float]:
    """Seconds of a start of each server, in turns, the least of several: other work only adds to it."""
    taken: list[list[float]] = [[] for _ in servers]
    for _ in range(_STARTS):
        for server, found in zip(servers, taken, strict=True):
            server.start()
            found.append(server.ready_s)
            server.stop()
    return list(map(min, taken))


def _window(sent: Sequence[tuple[float, float]], begin: float, end: float, reader: str) -> Window:
    """The messages that were sent and kept between two times."""
    found = sorted(took for at, took in sent if begin <= at - took / 1e3 and at <= end)
    if not found:
        raise ServerError(f"no message was kept within {end - begin:.3f} s")
    return Window(reader, len(found), quantile(found, 0.5), quantile(found, 0.99))


def _read_elsewhere(config: DirectoryConfig) -> tuple[float, float]:
    """Let `ldapsearch` read all queues as the server does. Returns the begin and the end in Unix seconds."""
    environment = os.environ | ({"LDAPTLS_CACERT": str(config.ca_file)} if config.ca_file else {})
    flags = base64.b64encode(bytes((0x30, 3, 2, 1, 7))).decode()
    words = ["ldapsearch", "-x", "-H", config.url[0], "-D", config.user, "-y", str(config.password_file)]
    words += ["-ZZ"] if config.url[0].startswith("ldap:") else []
    words += ["-E", "pr=1000/noprompt", "-E", f"!1.2.840.113556.1.4.801=::{flags}"]
    domain = ",".join(f"DC={part}" for part in config.user.partition("@")[2].split("."))
    words += ["-b", domain, "(objectClass=mSMQQueue)", *wanted_attributes(ObjectType.QUEUE)]
    begin = time.time()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
    return begin, time.time()


def measure(
    config: DirectoryConfig,
    directory: Path,
    *,
    readings: int = 3,
    interval: float = INTERVAL_S,
    asked: DirectoryConfig | None = None,
) -> Outcome:
    """Measure a domain: the first reading, and `readings` more beside messages, `interval` seconds apart, in
    which `ldapsearch` has to end. `asked` is how the server reaches it, if not as `ldapsearch` does.
    """
    plain = Server(directory, queues=(_QUEUE,), settings='[server]\nname = "BENCH"\n')
    server = Server(directory, queues=(_QUEUE,), settings=_settings(asked or config, interval))
    try:
        server.run("domain", "join", "--config", str(server.config), "--data", str(server.data))
        plain_ready_s, ready_s = _ready_s(plain, server)
    except BaseException:
        server.remove()
        raise
    finally:
        plain.remove()
    (server.data / "domain.copy").unlink(missing_ok=True)  # a start may have been long enough for a reading
    earlier = len(_readings(server.log))
    with server:
        before = server.sample().rss_anon
        first = _wait(server, earlier + 1, 600)[earlier]
        memory = server.sample().rss_anon - before  # before messages are kept
        with _sending(server.socket) as sent:
            others = []
            for number in range(readings):
                others.append(_read_elsewhere(config))
                spans = _wait(server, earlier + 2 + number, interval + 240)[earlier + 1 :]
            time.sleep(2)
    windows = []
    for other, (begin, end, _objects) in zip(others, spans, strict=True):
        if begin < other[1]:
            raise ServerError("the server began to read before ldapsearch had ended")
        windows.append(_window(sent, *other, _OTHER))
        windows.append(_window(sent, other[1], begin, _NOBODY))
        windows.append(_window(sent, begin, end, _SERVER))
    return Outcome(
        first[2],
        plain_ready_s,
        ready_s,
        first[1] - first[0],
        memory / 2**20,
        _lookup(config),
        tuple(windows),
    )


def domain_config(controller: DomainController) -> DirectoryConfig:
    """How a server reaches a domain of Samba."""
    return DirectoryConfig(
        mode="domain",
        url=(controller.url,),
        user=controller.administrator,
        password_file=controller.password_file,
        ca_file=controller.ca_file,
    )


@contextmanager
def domain_of_queues(folder: Path, address: str, queues: int) -> Iterator[DomainController]:
    """A domain of Samba with very many queues, and an account of the computer BENCH."""
    controller = DomainController(folder, address)
    controller.provision()
    begun = time.monotonic()
    add_queues(controller, queues)
    print(f"{queues} queues in the files of the domain after {time.monotonic() - begun:.0f} s", flush=True)
    controller.computer("BENCH")
    controller.start()
    try:
        yield controller
    finally:
        controller.kill()


@contextmanager
def _replayed(config: DirectoryConfig) -> Iterator[DirectoryConfig]:
    """How a server reaches a domain whose controller works for its first reading only."""
    controller = urlsplit(config.url[0]).hostname or ""
    with tempfile.TemporaryDirectory(prefix="msmq-replay-") as folder:
        words = [sys.executable, "-m", "bench.replay", controller, str(config.ca_file), folder]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                url = process.stdout.readline().strip()
                if not url:
                    raise ServerError("bench.replay has not started")
                yield replace(config, url=(url,), ca_file=Path(folder) / "replay.pem")
            finally:
                process.kill()


def _measured(config: DirectoryConfig, given: argparse.Namespace) -> int:
    with _replayed(config) if given.replay else nullcontext(config) as asked:
        found = measure(config, given.dir, readings=given.readings, interval=given.interval, asked=asked)
    return _report(found)


def _report(outcome: Outcome) -> int:
    print(json.dumps(asdict(outcome) | {"ratio": outcome.ratio, "own_ratio": outcome.own_ratio}, indent=1))
    found = checks(outcome)
    print("\n".join(map(str, found)))
    return 0 if all(check.passed for check in found) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queues", type=int, default=100_000, help="of a domain of Samba; default: 100000")
    parser.add_argument("--address", default=_ADDRESS, help=f"of its controller; default: {_ADDRESS}")
    parser.add_argument("--url", action="append", help="controller of a domain that has the queues already")
    parser.add_argument("--user", metavar="NAME@DOMAIN")
    parser.add_argument("--password-file", type=Path, metavar="FILE")
    parser.add_argument("--ca-file", type=Path, metavar="FILE")
    parser.add_argument("--readings", type=int, default=3)
    parser.add_argument(
        "--interval",
        type=float,
        default=INTERVAL_S,
        help="seconds between two readings; default: %(default)g",
    )
    parser.add_argument("--replay", action="store_true", help="the controller works for one reading only")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where the data directory is made")
    given = parser.parse_args(arguments)
    if given.url is None:
        with (
            tempfile.TemporaryDirectory(prefix="msmq-bench-") as folder,
            domain_of_queues(Path(folder) / "dc", given.address, given.queues) as controller,
        ):
            return _measured(domain_config(controller), given)
    if given.user is None or given.password_file is None:
        parser.error("--url needs --user and --password-file")
    config = DirectoryConfig(
        mode="domain",
        url=tuple(given.url),
        user=given.user,
        password_file=given.password_file,
        ca_file=given.ca_file,
    )
    return _measured(config, given)


if __name__ == "__main__":
    sys.exit(main())
