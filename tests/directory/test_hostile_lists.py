"""Distribution lists that contain each other in long chains and rings, and names that would be something else
where they are used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.lists import MAX_NESTED, MAX_STEPS, Lists
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from tests.support.worlds.directories import everything
from tests.support.worlds.domains import DomainWorld

_ALIAS = "DIRECT=TCP:10.0.0.1\\private$\\a"


class Chain:
    """A forest whose list number n contains the list n + 1, and the last one the first; each has an alias."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.searches = 0

    def _list(self, number: int) -> Entry:
        above = f"CN=l{(number - 1) % self._length}".encode()
        guid = UUID(int=number + 1).bytes_le
        return Entry(f"CN=l{number}", {"objectclass": [b"group"], "objectguid": [guid], "memberof": [above]})

    def search(self, domain: str, condition: str, attributes: Sequence[str]) -> Iterator[Entry]:
        self.searches += 1
        if "memberOf=CN=l" in condition:
            number = int(condition.partition("memberOf=CN=l")[2].partition(")")[0])
            yield self._list((number + 1) % self._length)
            yield Entry("CN=a", {"msmq-recipient-formatname": [f"{_ALIAS}{number}".encode()]})
        else:
            yield Entry("CN=a", {"memberof": [b"CN=l0"]})

    def below(
        self, base: str, domain: str, scope: int, condition: str, attributes: Sequence[str]
    ) -> Iterator[Entry]:
        self.searches += 1
        yield self._list(int(base.removeprefix("CN=l")))


def test_a_ring_has_each_name_once() -> None:
    chain, problems = Chain(20), list[str]()
    found = Lists(chain, "DC=x").all([], problems)  # type: ignore[arg-type]
    assert (len(found), problems) == (20, [])
    assert {len(members) for members in found.values()} == {20}


def test_a_ring_of_ten_thousand_lists() -> None:
    """No list is complete, and the reading goes on. It is not begun again for each of them."""
    chain, problems = Chain(10_000), list[str]()
    lists = Lists(chain, "DC=x")  # type: ignore[arg-type]
    assert lists.all([], problems) == {}
    assert problems[0] == f"the distribution list CN=l0 has more than {MAX_NESTED} lists in it"
    assert chain.searches < 3 * 10_000
    assert len(problems) < 2 + MAX_STEPS // MAX_NESTED
    with pytest.raises(DirectoryError, match="lists in it"):
        lists.members(chain._list(7))


HOSTILE = (
    "two\r\nlines", "nul\0", "q;journal", "a;b", "bell\x07", "private$\\q", "x" * 300, " ", "esc\x1b[2J",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_none_is_passed_over(name: str, caplog: pytest.LogCaptureFixture) -> None:
    world = DomainWorld()
    world.home("ALPHA")
    place = f"CN=msmq,{world.memory.computer('BETA')}"
    world.memory.add(place, {"objectClass": [b"mSMQConfiguration"]})
    short, rest = names.short_name(name)
    extension = {"mSMQQueueNameExt": [rest.encode()[:92]]} if rest else {}
    world.memory.add(names.child(short, place), {"objectClass": [b"mSMQQueue"], **extension})
    world.memory.add(names.child("good", place), {"objectClass": [b"mSMQQueue"]})
    with caplog.at_level(logging.WARNING):
        world.restart()
    shown = [str(item["Pathname"]) for item in everything(world.directory, ObjectType.QUEUE)]
    assert "beta\\good" in shown
    for path in shown:
        assert path.isprintable()
        assert ";" not in path
        assert path.count("\\") == 1
    for record in caplog.records:
        assert record.getMessage().isprintable()


def test_a_search_of_a_program_asks_no_domain_controller() -> None:
    """What a program looks for is compared here, whatever is in it."""
    world = DomainWorld()
    world.home("ALPHA")
    before = len(world.memory.searches)
    for text in ("*", ")(cn=*", "x)(|(objectClass=*", "\\2a", "CN=q,DC=corp"):
        for name in ("Label", "Pathname"):
            handle = world.directory.begin(ObjectType.QUEUE, (equals(name, text),)).result()
            assert world.directory.next(handle).exception() is not None
            world.directory.end(handle).result()
    assert len(world.memory.searches) == before
