"""What this server changes in the domain while it reads the domain: the reading has found what was before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.provider import Intervals, LdapDirectory
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from tests.support.worlds.activedirectory import ActiveDirectory
from tests.support.worlds.directories import machine, queue
from tests.support.worlds.domains import SEND_ONLY, Inline


class Paged(ActiveDirectory):
    """A domain that answers by pages: a page is older than what is done before its end is decoded."""

    def search(self, *arguments: Any, **more: Any) -> Iterator[Entry]:
        return iter(list(super().search(*arguments, **more)))


class Between(Inline):
    """A worker that performs `operation` once, when the first queue has been decoded."""

    operation: Callable[[], None] | None = None
    queues: Callable[[], bool] = staticmethod(lambda: False)

    def give_way(self) -> None:
        if self.operation is not None and self.queues():
            perform, self.operation = self.operation, None
            perform()


def test_the_reading_does_not_take_back_what_was_changed_meanwhile() -> None:
    clock = [1_000.0]
    domain, worker = Paged(), Between()
    domain.computer("ALPHA")
    directory = LdapDirectory(Domain(domain), worker, lambda: clock[0], intervals=Intervals(complete=60))
    directory.start()
    directory.create(machine("ALPHA")).result()
    for name in ("a", "b", "c", "d"):
        directory.create(queue(rf"ALPHA\{name}", Security=SEND_ONLY)).result()

    def label(name: str) -> str | None:
        found = [item for item in everything(directory) if item["Pathname"] == rf"alpha\{name}"]
        return str(found[0]["Label"]) if found else None

    def change() -> None:
        directory.delete(named(directory, "b")).result()
        directory.write(named(directory, "c").changed({"Label": "new"})).result()
        directory.create(queue(r"ALPHA\e", Security=SEND_ONLY)).result()

    worker.operation = change
    worker.queues = lambda: "mSMQQueue" in domain.searches[-1][2]
    clock[0] += 3_600
    directory.expire(clock[0])
    assert worker.operation is None, "nothing happened during the reading"
    assert {name: label(name) for name in "abcde"} == {"a": "", "b": None, "c": "new", "d": "", "e": ""}
    clock[0] += 3_600
    directory.expire(clock[0])  # and the next one finds the same
    assert {name: label(name) for name in "abcde"} == {"a": "", "b": None, "c": "new", "d": "", "e": ""}


def everything(directory: LdapDirectory) -> list[DirectoryObject]:
    handle = directory.begin(ObjectType.QUEUE).result()
    found = [directory.next(handle).result() for _ in range(directory.count(ObjectType.QUEUE) or 0)]
    directory.end(handle)
    return found


def named(directory: LdapDirectory, name: str) -> DirectoryObject:
    return directory.read(ObjectType.QUEUE, (equals("Pathname", rf"alpha\{name}"),)).result()
