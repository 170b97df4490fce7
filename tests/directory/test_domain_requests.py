"""What a caller gets while the domain controllers do not answer: an error in time, and no change later."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.provider import LdapDirectory
from msmq_fast.directory.ldap.requests import REQUEST_S
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.store.completion import Completion
from tests.support.processes.servers import Server, until
from tests.support.worlds.activedirectory import ActiveDirectory
from tests.support.worlds.directories import WALL, machine, queue
from tests.support.worlds.domains import SEND_ONLY

T = TypeVar("T")


class Later:
    """A worker whose operations wait until `work` is called."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], None]] = []

    def submit(self, operation: Callable[[], T]) -> Completion[T]:
        done: Completion[T] = Completion()

        def perform() -> None:
            try:
                done.resolve(operation())
            except DirectoryError as error:
                done.fail(error)

        self._waiting.append(perform)
        return done

    def work(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()

    def tell(self, function: Callable[..., None], *arguments: object) -> None:
        function(*arguments)

    def give_way(self) -> None:
        """No other operation is under way."""

    def close(self) -> None:
        self._waiting.clear()


class Slow(ActiveDirectory):
    """A domain whose controller takes `takes` seconds for its first answer."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__(lambda: WALL)
        self._clock = clock
        self.takes = 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def root(self):  # type: ignore[no-untyped-def]
        self._clock[0] += self.takes
        self.meanwhile()
        return super().root()


@pytest.fixture
def clock() -> list[float]:
    return [1_000.0]


@pytest.fixture
def domain(clock: list[float]) -> Slow:
    made = Slow(clock)
    made.computer("ALPHA")
    return made


@pytest.fixture
def worker() -> Later:
    return Later()


@pytest.fixture
def directory(domain: Slow, worker: Later, clock: list[float]) -> LdapDirectory:
    made = LdapDirectory(Domain(domain), worker, lambda: clock[0])
    made.start()
    worker.work()
    made.create(machine("ALPHA"))
    worker.work()
    return made


def no_answer(done: Completion[T]) -> bool:
    error = done.exception()
    return (
        isinstance(error, DirectoryError)
        and error.result is DirectoryOperationResult.NOT_CONNECTED
        and error.detail == f"no domain controller has answered within {REQUEST_S:g} s"
    )


def queues(directory: LdapDirectory) -> int:
    return directory.count(ObjectType.QUEUE) or 0


def test_what_has_no_answer_in_time_is_not_done_later(
    directory: LdapDirectory, worker: Later, clock: list[float]
) -> None:
    new = queue(r"ALPHA\late", Security=SEND_ONLY)
    waiting = [
        directory.create(new),
        directory.write(machine("ALPHA", RoutingServer=True)),
        directory.delete(machine("ALPHA")),
        directory.machine_sid("BETA"),
    ]
    began = clock[0]
    assert directory.next_deadline() == began + REQUEST_S
    clock[0] += REQUEST_S - 0.001
    directory.expire(clock[0])
    assert not any(done.done for done in waiting)
    clock[0] += 0.001
    directory.expire(clock[0])
    assert all(map(no_answer, waiting))
    worker.work()
    assert queues(directory) == 0
    assert directory.count(ObjectType.QUEUE_MANAGER) == 1
    made = directory.create(new)
    worker.work()
    assert made.exception() is None
    assert queues(directory) == 1


def test_an_operation_that_has_begun_changes_nothing_after_its_time(
    directory: LdapDirectory, domain: Slow, worker: Later, clock: list[float]
) -> None:
    domain.takes = REQUEST_S + 1
    domain.meanwhile = lambda: directory.expire(clock[0])
    late = directory.create(queue(r"ALPHA\late", Security=SEND_ONLY))
    worker.work()
    assert no_answer(late)
    domain.takes = 0
    again = directory.create(queue(r"ALPHA\late", Security=SEND_ONLY))
    worker.work()
    assert again.exception() is None  # it would exist already


def test_a_read_before_the_first_reading_has_an_answer_in_time(
    domain: Slow, worker: Later, clock: list[float]
) -> None:
    directory = LdapDirectory(Domain(domain), worker, lambda: clock[0])
    directory.start()
    read = directory.read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", "ALPHA"),))
    clock[0] += REQUEST_S
    directory.expire(clock[0])
    assert no_answer(read)
    worker.work()
    found: Completion[DirectoryObject] = directory.read(ObjectType.ENTERPRISE)
    assert found.exception() is None


@contextlib.contextmanager
def silent(count: int) -> Iterator[list[str]]:
    """The URLs of domain controllers that accept connections and never answer."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        yield [f"ldap://127.0.0.1:{one.getsockname()[1]}" for one in listeners]


@pytest.mark.needs(modules=("ldap",))
@pytest.mark.long(seconds=25)
def test_a_server_whose_controllers_all_hang_says_so(tmp_path: Path) -> None:
    """The first command waits for a log-on that has just begun, and there are more controllers than time."""
    password = tmp_path / "password"
    password.write_text("x")
    with silent(4) as urls:
        section = {"mode": "domain", "url": ", ".join(urls), "user": "a@b", "password_file": str(password)}
        given = {f"MSMQ_FAST_DIRECTORY__{key.upper()}": value for key, value in section.items()}
        server = Server(tmp_path / "data", environment={"MSMQ_FAST_SERVER__NAME": "ALPHA", **given}).start()
        for name in (r"ALPHA\first", r"ALPHA\second"):
            began = time.monotonic()
            done = server.run("queue", "create", name)
            assert b"MQ_ERROR_NO_DS" in done.stderr, done
            assert time.monotonic() - began < REQUEST_S + 4
        until(lambda: server.ok("status")[0]["problems"], timeout=30)
        server.ok("queue", "create", "private")
        assert server.stop() == 0
