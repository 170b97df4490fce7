"""A queue that the domain controller has created, and whose creator got no answer: to create it once more
takes it over. A queue of others is not taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.objects import IDENTIFIER
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.protocol.errors import NoDirectory
from tests.support.worlds.activedirectory import DOMAIN, ActiveDirectory
from tests.support.worlds.directories import machine, queue
from tests.support.worlds.domains import SEND_ONLY, DomainWorld
from tests.support.worlds.queue_manager import World

PATH = r"ALPHA\orders"
LOST = DirectoryError(DirectoryOperationResult.NOT_CONNECTED, "Can't contact LDAP server")


class Losing(ActiveDirectory):
    """A domain whose controller falls silent before or after it adds a queue, once."""

    before = after = False

    def add(self, path: str, attributes: Mapping[str, list[bytes]]) -> None:
        if self.before:
            self.before = False
            raise LOST
        super().add(path, attributes)
        if self.after:
            self.after = False
            raise LOST


@pytest.fixture
def world() -> Losing:
    made = Losing()
    made.computer("ALPHA")
    return made


@pytest.fixture
def domain(world: Losing) -> Domain:
    made = Domain(world)
    made.load()
    made.create(machine("ALPHA"))
    return made


def refused(call: Callable[[], object]) -> DirectoryOperationResult:
    with pytest.raises(DirectoryError) as error:
        call()
    return error.value.result


def test_a_queue_whose_creation_had_no_answer_is_taken_over(world: Losing, domain: Domain) -> None:
    world.after = True
    first = queue(PATH, Label="first", Security=SEND_ONLY)
    assert refused(lambda: domain.create(first)) is DirectoryOperationResult.NOT_CONNECTED
    (there,) = [item for item in domain.load().objects if item.get("Pathname") == r"alpha\orders"]
    made = domain.create(queue(PATH, Label="second", Security=SEND_ONLY))
    assert (made[IDENTIFIER], made["Label"]) == (there[IDENTIFIER], "second")
    # from now on, it is there
    assert refused(lambda: domain.create(first)) is DirectoryOperationResult.OBJECT_ALREADY_EXISTS


def test_the_take_over_may_fail_and_be_repeated(world: Losing, domain: Domain) -> None:
    world.after = True
    wanted = queue(PATH, Label="x", Security=SEND_ONLY)
    assert refused(lambda: domain.create(wanted)) is DirectoryOperationResult.NOT_CONNECTED
    world.before = True
    assert refused(lambda: domain.create(wanted)) is DirectoryOperationResult.NOT_CONNECTED
    assert domain.create(wanted)["Label"] == "x"


def test_a_queue_that_cannot_become_the_wanted_one_is_not_taken_over(world: Losing, domain: Domain) -> None:
    world.after = True
    assert refused(lambda: domain.create(queue(PATH, Security=SEND_ONLY))) is (
        DirectoryOperationResult.NOT_CONNECTED
    )
    other = queue(PATH, Transactional=True, Security=SEND_ONLY)
    assert refused(lambda: domain.create(other)) is DirectoryOperationResult.OBJECT_ALREADY_EXISTS


def test_a_queue_of_others_is_not_taken_over(domain: Domain) -> None:
    domain.create(queue(PATH, Label="theirs", Security=SEND_ONLY))
    mine = queue(PATH, Label="mine", Security=SEND_ONLY)
    for _ in range(2):
        assert refused(lambda: domain.create(mine)) is DirectoryOperationResult.OBJECT_ALREADY_EXISTS
    (there,) = [item for item in domain.load().objects if item.get("Pathname") == r"alpha\orders"]
    assert there["Label"] == "theirs"


def test_a_queue_that_was_made_too_late_for_its_creator_is_taken_over(domain: Domain) -> None:
    overdue = iter([False, True])

    def proceed() -> None:
        if next(overdue):
            raise LOST

    wanted = queue(PATH, Label="late", Security=SEND_ONLY)
    assert refused(lambda: domain.create(wanted, proceed)) is DirectoryOperationResult.NOT_CONNECTED
    assert domain.create(wanted)["Label"] == "late"


def test_a_queue_manager_has_the_queue_in_the_end() -> None:
    """With the GUID of the object that the domain has."""
    found = DomainWorld()
    found.link = found.memory = memory = Losing()
    found.restart()
    found.home("HOST")
    own = World().manager.guid  # of each queue manager of these tests, which has joined the domain
    memory.damage(f"CN=msmq,CN=HOST,CN=Computers,{DOMAIN}", "objectGUID", own.bytes_le)
    found.restart()
    manager = World(provider=found.directory).manager
    memory.after = True
    lost = manager.queue_admin.create(r"HOST\orders")
    with pytest.raises(NoDirectory, match="Can't contact LDAP server"):
        lost.result()
    done = manager.queue_admin.create(r"HOST\orders", label="again")
    there = memory.shown(f"CN=orders,CN=msmq,CN=HOST,CN=Computers,{DOMAIN}")
    assert (done.result().guid.bytes_le, b"again") == (there["objectguid"][0], there["msmqlabelex"][0])
