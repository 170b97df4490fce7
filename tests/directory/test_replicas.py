"""Two domain controllers in memory, of which one has not got the latest changes of the other one."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.copy import RECENT_S
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE
from msmq_fast.directory.ldap.provider import Intervals, LdapDirectory
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from tests.support.worlds.activedirectory import DOMAIN, ActiveDirectory
from tests.support.worlds.directories import everything, machine, queue
from tests.support.worlds.domains import Inline

PLACE = f"CN=msmq,CN=ALPHA,CN=Computers,{DOMAIN}"


class TwoControllers:
    """Implements `Link`: `current` is the domain controller that answers, of `first` and `second`."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.first = self.current = ActiveDirectory(lambda: self.now)
        self.first.computer("ALPHA")
        self.second: ActiveDirectory = self.first

    def part(self) -> None:
        """From now on, changes of one controller do not come to the other one. The second one has counted
        more changes.
        """
        self.second = copy.copy(self.first)
        for name in ("_nodes", "_deleted"):
            setattr(self.second, name, copy.deepcopy(getattr(self.first, name)))
        self.second._number += 5_000

    def root(self) -> Entry:
        found = self.current.root()
        if self.current is self.first:
            return found
        name = (found.first("dsServiceName") or b"").replace(b"CN=DC1", b"CN=DC2")
        return Entry("", {**found.attributes, "dsservicename": [name]})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


class Member:
    def __init__(self) -> None:
        self.link = TwoControllers()
        self.seconds = 0.0
        self.directory = LdapDirectory(
            Domain(self.link), Inline(), lambda: self.seconds, intervals=Intervals(10.0, 100_000.0)
        )
        self.directory.start().result()
        self.directory.create(machine("ALPHA")).result()

    def look(self, seconds: float = 10.0) -> dict[str, str]:
        """Time passes; the labels of all queues by their names."""
        self.link.now += int(seconds)
        self.seconds += seconds
        self.directory.expire(self.seconds)
        found = everything(self.directory, ObjectType.QUEUE)
        return {str(item["Pathname"]).partition("\\")[2]: str(item["Label"]) for item in found}


@pytest.fixture
def member() -> Member:
    return Member()


def named(member: Member, name: str) -> Any:
    (found,) = (item for item in everything(member.directory, ObjectType.QUEUE) if name in item["Pathname"])
    return found


@pytest.mark.parametrize("by_others", [False, True])
def test_a_lagging_controller_takes_nothing_back(member: Member, by_others: bool) -> None:
    """What was created, changed and deleted at the first controller, here or by others, stays so."""
    for name in ("kept", "changed", "deleted"):
        member.directory.create(queue(rf"ALPHA\{name}", Label="old")).result()
    assert set(member.look().values()) == {"old"}
    member.link.part()
    if by_others:
        member.link.first.add(names.child("new", PLACE), {"objectClass": [b"mSMQQueue"]})
        member.link.now += 5
        member.link.first.modify(names.child("changed", PLACE), {"mSMQLabelEx": [b"new"]})
        member.link.first.delete(names.child("deleted", PLACE))
        member.look()
    else:
        member.directory.create(queue(r"ALPHA\new", Label="")).result()
        member.link.now += 5
        member.directory.write(named(member, "changed").changed({"Label": "new"}), ("Label",)).result()
        member.directory.delete(named(member, "deleted")).result()
    wanted = {"kept": "old", "changed": "new", "new": ""}
    assert member.look() == wanted
    member.link.current = member.link.second
    member.link.second.add(names.child("other", PLACE), {"objectClass": [b"mSMQQueue"]})
    member.link.now += 5
    member.link.second.modify(names.child("kept", PLACE), {"mSMQLabelEx": [b"newer"]})
    wanted |= {"other": "", "kept": "newer"}
    assert member.look() == wanted
    assert member.look() == wanted
    # A change at the second controller is later than all before.
    member.link.second.modify(names.child("changed", PLACE), {"mSMQLabelEx": [b"newest"]})
    assert member.look() == wanted | {"changed": "newest"}
    # What has not arrived after a long time will not arrive: the first controller is lost.
    assert set(member.look(RECENT_S)) == {"kept", "changed", "deleted", "other"}


def test_when_the_first_controller_is_back(member: Member) -> None:
    member.directory.create(queue(r"ALPHA\old")).result()
    member.look()
    member.link.part()
    member.link.current = member.link.second
    member.look()
    member.directory.create(queue(r"ALPHA\made-at-the-second")).result()
    member.link.current = member.link.first
    assert set(member.look()) == {"old", "made-at-the-second"}
    member.link.first = member.link.current = member.link.second  # replicated
    assert set(member.look()) == {"old", "made-at-the-second"}
    member.directory.delete(named(member, "made-at-the-second")).result()
    assert set(member.look()) == {"old"}


def test_the_members_of_a_list_in_use_are_always_known(member: Member) -> None:
    """Changes of queues and groups do not make a list unknown: programs send to it meanwhile. What has
    changed is there with the next look at the domain; while no controller answers, the old members count.
    """
    member.directory.create(queue(r"ALPHA\first")).result()
    member.look()
    memory = member.link.first
    path = f"CN=people,CN=Users,{DOMAIN}"
    memory.add(path, {"objectClass": [b"group"], "member": [names.child("first", PLACE).encode()]})
    (entry,) = memory.search(path, BASE, "(objectClass=*)", ["objectGUID"])
    identifier = entry.identifier

    def resolved() -> int:
        done = member.directory.resolve_list(identifier)
        assert done.done
        return len(done.result())

    assert resolved() == 1
    member.directory.create(queue(r"ALPHA\second")).result()
    member.look()
    asked = len(memory.searches)
    assert resolved() == 1
    assert len(memory.searches) == asked
    listed = [names.child(name, PLACE).encode() for name in ("first", "second")]
    memory.modify(path, {"member": listed})
    member.look()
    asked = len(memory.searches)
    assert resolved() == 2
    assert len(memory.searches) == asked
    member.directory.delete(named(member, "first")).result()
    memory.modify(path, {"member": listed[1:]})
    member.look()
    assert resolved() == 1
    memory.delete(path)
    member.look()
    assert isinstance(member.directory.resolve_list(identifier).exception(), DirectoryError)
