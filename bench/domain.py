"""A domain with very many queues: `python -m bench.domain --url ldap://DC --user NAME@DOMAIN …`.

The domain has the queues already, and an account of the computer BENCH. A server joins it, starts, and reads
it completely every minute, while a program sends messages one after the other: how long those took during a
reading and between two, in the same run; how long the start and each reading took, and how much memory the
copy of the domain needs. A look-up by GUID is timed in this process, on a copy of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from bench.machine import quantile
from bench.report import Check
from bench.server import Server, ServerError
from msmq_fast import sync
from msmq_fast.client import Access, Message
from msmq_fast.config.sections.directory import DirectoryConfig
from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap.provider import LdapDirectory
from msmq_fast.directory.ldap.worker import ThreadWorker
from msmq_fast.directory.objects import IDENTIFIER
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.server.domain import domain_of

__all__ = ["Outcome", "checks", "measure"]

READ: Final = re.compile(r"^(\S+) .*: (\d+) objects of the domain were read in ([0-9.]+) s", re.MULTILINE)
READY_S, FILL_S, MEMORY_MIB, LOOKUP_US, RATIO = 3.0, 60.0, 150.0, 50.0, 1.2
_LOOKUPS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds, MiB, and milliseconds of messages during (`read_`) and between readings (`idle_`)."""

    objects: int
    ready_s: float
    fill_s: float
    memory_mib: float
    lookup_us: float
    messages: int
    read_p50: float
    read_p99: float
    idle_p50: float
    idle_p99: float

    @property
    def ratio(self) -> float:
        """What a reading costs the messages beside it, at p99."""
        return self.read_p99 / self.idle_p99


def checks(outcome: Outcome) -> list[Check]:
    """The bounds for a domain of 100,000 queues."""
    return [
        Check("start until ready", outcome.ready_s, READY_S, "s", upper=True),
        Check("first reading", outcome.fill_s, FILL_S, "s", upper=True),
        Check("memory of the copy", outcome.memory_mib, MEMORY_MIB, "MiB", upper=True),
        Check("look-up by GUID", outcome.lookup_us, LOOKUP_US, "µs", upper=True),
        Check("p99 during a reading / between", outcome.ratio, RATIO, "", upper=True),
    ]


def _settings(config: DirectoryConfig) -> str:
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
    return "\n".join([*lines, "complete_interval = 60", ""])


@contextmanager
def _sending(socket: Path) -> Iterator[list[tuple[float, float]]]:
    """(Unix seconds, milliseconds) of messages that are sent one after the other meanwhile."""
    found: list[tuple[float, float]] = []
    ended = threading.Event()

    def send() -> None:
        with sync.connect(f"unix:{socket}") as connection, connection.open("live", Access.SEND) as queue:
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


def measure(config: DirectoryConfig, directory: Path, *, readings: int = 3) -> Outcome:
    """Measure a domain: the first reading, and `readings` more beside messages, a minute apart."""
    server = Server(directory, queues=("live",), settings=_settings(config))
    server.run("domain", "join", "--config", str(server.config), "--data", str(server.data))
    with server:
        before = server.sample().rss_anon
        ready_s = server.ready_s
        first = _wait(server, 1, 600)[0]
        memory = server.sample().rss_anon - before  # before messages are kept
        with _sending(server.socket) as sent:
            spans = _wait(server, 1 + readings, readings * 120)[1:]
            time.sleep(2)
    begin, end = sent[0][0], spans[-1][1] + 2
    during = sorted(
        took for at, took in sent if any(start <= at - took / 1e3 <= stop for start, stop, _ in spans)
    )
    between = sorted(
        took
        for at, took in sent
        if begin <= at <= end and not any(start <= at and at - took / 1e3 <= stop for start, stop, _ in spans)
    )
    return Outcome(
        first[2],
        ready_s,
        first[1] - first[0],
        memory / 2**20,
        _lookup(config),
        len(sent),
        quantile(during, 0.5),
        quantile(during, 0.99),
        quantile(between, 0.5),
        quantile(between, 0.99),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 if a bound is not kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--url", action="append", required=True, help="domain controller")
    parser.add_argument("--user", required=True, metavar="NAME@DOMAIN")
    parser.add_argument("--password-file", type=Path, required=True, metavar="FILE")
    parser.add_argument("--ca-file", type=Path, metavar="FILE")
    parser.add_argument("--readings", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where the data directory is made")
    given = parser.parse_args(arguments)
    config = DirectoryConfig(
        mode="domain",
        url=tuple(given.url),
        user=given.user,
        password_file=given.password_file,
        ca_file=given.ca_file,
    )
    outcome = measure(config, given.dir, readings=given.readings)
    print(json.dumps(asdict(outcome) | {"ratio": outcome.ratio}, indent=1))
    found = checks(outcome)
    print("\n".join(map(str, found)))
    return 0 if all(check.passed for check in found) else 1


if __name__ == "__main__":
    sys.exit(main())
