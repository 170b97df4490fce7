"""A global catalog that does not answer, such as behind a firewall: the own domain is read without it, and
what was known of other domains stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.copy import RECENT_S
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.provider import Intervals, LdapDirectory
from msmq_fast.directory.ldap.saved import SavedCopy
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from tests.support.worlds.activedirectory import DOMAIN, ActiveDirectory
from tests.support.worlds.domains import Inline

OTHER = "DC=other,DC=example"
CATALOG = "ldap://dc1.corp.example:3268"
REASON = f"{CATALOG}: Connect error"


class Unreachable:
    """What stands for the catalog while its port is blocked."""

    def __init__(self) -> None:
        self.controllers = Controllers([CATALOG])

    def root(self) -> Entry:
        self.controllers.failed(CATALOG, "Connect error")
        raise DirectoryError(DirectoryOperationResult.NOT_CONNECTED, "Connect error")

    def search(self, *arguments: Any, **more: Any) -> Any:
        raise AssertionError("a catalog that does not answer is searched")


class Forest(ActiveDirectory):
    """CORP and another domain, with a queue in each; `blocked` says that the catalog does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.other_domain(OTHER)
        self.blocked = False
        self.guids = {
            computer: self.queue(computer, domain) for computer, domain in (("NEAR", DOMAIN), ("FAR", OTHER))
        }

    def queue(self, computer: str, domain: str, name: str = "q") -> UUID:
        machine = names.child("msmq", f"CN={computer},CN=Computers,{domain}")
        if name == "q":
            self.computer(computer, domain)
            self.add(machine, {"objectClass": [b"mSMQConfiguration"]})
        self.add(names.child(name, machine), {"objectClass": [b"mSMQQueue"]})
        return UUID(bytes_le=self.shown(names.child(name, machine))["objectguid"][0])

    def catalog(self):  # type: ignore[no-untyped-def]
        return Unreachable() if self.blocked else super().catalog()


class Member:
    """A member of the domain, whose clock `wait` moves."""

    def __init__(self, world: Forest, saved: SavedCopy | None = None) -> None:
        self._now = 1_000.0
        self.domain = Domain(world)
        self.directory = LdapDirectory(
            self.domain, Inline(), lambda: self._now, intervals=Intervals(complete=3_600), saved=saved
        )
        self.directory.start()

    def wait(self, seconds: float) -> None:
        end = self._now + seconds
        while (due := self.directory.next_deadline()) is not None and due <= end:
            self._now = max(self._now, due)
            self.directory.expire(self._now)
        self._now = end

    def knows(self, guids: Sequence[UUID]) -> list[bool]:
        read = [self.directory.read(ObjectType.QUEUE, (equals("Identifier", guid),)) for guid in guids]
        return [one.exception() is None for one in read]


@pytest.fixture
def world() -> Forest:
    return Forest()


def test_the_own_domain_is_read_without_the_catalog(world: Forest) -> None:
    world.blocked = True
    member = Member(world)
    assert member.knows([world.guids["NEAR"], world.guids["FAR"]]) == [True, False]
    assert member.directory.problem == f"other domains cannot be read: {REASON}"
    assert member.domain.forest_state == f"not read: the global catalog does not answer: {REASON}"
    more = world.queue("NEAR", DOMAIN, "more")
    member.wait(10)
    assert member.knows([more]) == [True]
    world.blocked = False
    member.wait(RECENT_S)
    assert member.knows([world.guids["FAR"]]) == [True]
    assert member.directory.problem == ""
    assert member.domain.forest_state == "read from the global catalog: the forest has 2 domains"


def test_what_was_known_of_other_domains_stays(world: Forest) -> None:
    queue = f"CN=q,CN=msmq,CN=FAR,CN=Computers,{OTHER}"
    group = f"CN=list,CN=Computers,{OTHER}"
    world.add(group, {"objectClass": [b"group"], "member": [queue.encode()]})
    lists = UUID(bytes_le=world.shown(group)["objectguid"][0])
    member = Member(world)
    members = (f"PUBLIC={world.guids['FAR']}",)
    assert member.directory.resolve_list(lists).result() == members
    world.blocked = True
    world.delete(queue)
    more = world.queue("NEAR", DOMAIN, "more")
    world.delete(f"CN=q,CN=msmq,CN=NEAR,CN=Computers,{DOMAIN}")
    for seconds in (15, 10, 3_600, 3_600):
        member.wait(seconds)
        assert member.knows([more, world.guids["FAR"]]) == [True, True]
        assert member.directory.resolve_list(lists).result() == members
    assert member.knows([world.guids["NEAR"]]) == [False]
    world.blocked = False
    member.wait(RECENT_S)
    assert member.knows([more, world.guids["FAR"]]) == [True, False]
    assert member.directory.problem == ""


def test_the_saved_copy_keeps_other_domains(world: Forest, tmp_path: Path) -> None:
    def saved() -> SavedCopy:
        return SavedCopy(tmp_path / "domain.copy", ["corp"])

    Member(world, saved())
    world.blocked = True
    Member(world, saved())
    again = Member(world, saved())
    assert again.knows([world.guids["NEAR"], world.guids["FAR"]]) == [True, True]


def test_the_first_copy_is_saved_without_the_catalog(world: Forest, tmp_path: Path) -> None:
    world.blocked = True
    path = tmp_path / "domain.copy"
    Member(world, SavedCopy(path, ["corp"]))
    loaded = [item for objects, _, _ in SavedCopy(path, ["corp"]).load() for item in objects]
    assert world.guids["NEAR"] in [item.identifier for item in loaded]


def test_a_catalog_that_has_closed_its_connection_is_asked_again(world: Forest) -> None:
    """One failure is no reason to do without it."""
    member = Member(world)
    world.blocked = True
    member.wait(10)
    assert member.directory.problem == "the domain cannot be read: Connect error"
    world.blocked = False
    new = world.queue("FAR", OTHER, "new")
    member.wait(5)
    assert (member.directory.problem, member.knows([new])) == ("", [True])
