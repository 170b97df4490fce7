"""What takes which right: queues and the queue manager, asked by callers who have it or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmq_fast.protocol.errors import AccessDenied, IllegalPropertyValue
from msmq_fast.qm.access import Access
from msmq_fast.qm.queues.queue import NOBODY
from msmq_fast.security.defaults import DefaultAcl, DefaultPolicy
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.sid import ADMINISTRATORS, EVERYONE, Sid, sid
from msmq_fast.security.token import ANONYMOUS_TOKEN, Privilege, Token
from tests.support.worlds.queue_manager import World

ALICE, BOB = sid("S-1-5-21-1-2-3-1000"), sid("S-1-5-21-1-2-3-1001")
ROOT = sid("S-1-22-1-0")


def token(account: Sid, *groups: Sid) -> Token:
    privileges = Privilege.SECURITY | Privilege.TAKE_OWNERSHIP if ADMINISTRATORS in groups else Privilege.NONE
    return Token(account, frozenset((account, EVERYONE, *groups)), privileges=privileges)


alice, bob, root = token(ALICE), token(BOB), token(ROOT, ADMINISTRATORS)

OF_QUEUES = 0xF003F
OF_MACHINES = 0xF00F7

ON_QUEUE: dict[str, tuple[int, Callable[[World], object]]] = {
    "receive": (0x3, lambda world: world.manager.open("orders", Access.RECEIVE, token=alice)),
    "peek": (0x2, lambda world: world.manager.open("orders", Access.PEEK, token=alice)),
    "move": (0x2, lambda world: world.manager.guard.open(alice, world.manager.find("orders"), Access.MOVE)),
    "send": (0x4, lambda world: world.manager.open("orders", Access.SEND, token=alice)),
    "purge": (0x3, lambda world: world.manager.open("orders", Access.RECEIVE, token=alice).purge()),
    "set properties": (
        0x10,
        lambda world: world.manager.set_properties(world.manager.find("orders"), token=alice, label="new"),
    ),
    "get properties": (
        0x20,
        lambda world: world.manager.guard.read_properties(alice, world.manager.find("orders")),
    ),
    "delete": (0x10000, lambda world: world.manager.delete_queue("orders", token=alice)),
    "get permissions": (
        0x20000,
        lambda world: world.manager.guard.read_permissions(alice, world.manager.find("orders")),
    ),
    "change permissions": (
        0x40000,
        lambda world: world.manager.set_properties(
            world.manager.find("orders"), token=alice, security=parse_sddl("D:(A;;CC;;;WD)")
        ),
    ),
    "take ownership": (
        0x80000,
        lambda world: world.manager.set_properties(
            world.manager.find("orders"), token=alice, security=parse_sddl(f"O:{ALICE}")
        ),
    ),
}

ON_MACHINE: dict[str, tuple[int, Callable[[World], object]]] = {
    "create": (0x4, lambda world: world.manager.create_queue("fresh", token=alice)),
    "dead letters": (
        0x3,
        lambda world: world.manager.open(".\\system$;deadletter", Access.RECEIVE, token=alice),
    ),
    "see dead letters": (
        0x2,
        lambda world: world.manager.open(".\\system$;deadxact", Access.PEEK, token=alice),
    ),
    "journal": (0xC0, lambda world: world.manager.open(".\\system$;journal", Access.RECEIVE, token=alice)),
    "see journal": (0x80, lambda world: world.manager.open(".\\system$;journal", Access.PEEK, token=alice)),
    "outgoing": (0x10, lambda world: world.manager.open("DIRECT=OS:far\\q", Access.PEEK_ADMIN, token=alice)),
    "get permissions": (0x20000, lambda world: world.manager.guard.read_permissions(alice, None)),
    "change permissions": (
        0x40000,
        lambda world: world.manager.guard.change_permissions(alice, None, parse_sddl("D:(A;;CC;;;WD)")),
    ),
}


def only(mask: int) -> str:
    """A list that gives `mask` to Alice, who owns nothing."""
    return f"O:{BOB}G:{BOB}D:(A;;0x{mask:x};;;{ALICE})"


def bits(mask: int) -> list[int]:
    return [1 << place for place in range(32) if mask >> place & 1]


@pytest.fixture
def world() -> World:
    world = World()
    world.create("orders")
    # An outgoing queue, for administrators.
    world.manager.open("DIRECT=OS:far\\q", Access.SEND).close()
    world.run()
    return world


@pytest.mark.rule("X-42", "DM-085")
@pytest.mark.parametrize("operation", ON_QUEUE)
def test_on_a_queue(world: World, operation: str) -> None:
    right, do = ON_QUEUE[operation]
    queue = world.manager.find("orders")
    for bit in bits(right):
        queue.security = parse_sddl(only(OF_QUEUES & ~bit))
        with pytest.raises(AccessDenied):
            do(world)
    queue.security = parse_sddl(only(right))
    do(world)
    assert world.manager.guard.authorizer.audit.total == len(bits(right))


@pytest.mark.rule("X-42", "X-20", "X-21", "X-22")
@pytest.mark.parametrize("operation", ON_MACHINE)
def test_on_the_queue_manager(world: World, operation: str) -> None:
    right, do = ON_MACHINE[operation]
    for bit in bits(right):
        world.manager.guard.machine = parse_sddl(only(OF_MACHINES & ~bit))
        with pytest.raises(AccessDenied):
            do(world)
    world.manager.guard.machine = parse_sddl(only(right))
    do(world)


@pytest.mark.rule("DM-085", "DM-087")
def test_a_refused_open_leaves_nothing_behind_and_the_queue_manager_is_not_asked(world: World) -> None:
    queue = world.manager.find("orders")
    queue.security = NOBODY
    with pytest.raises(AccessDenied):
        world.manager.open("orders", Access.RECEIVE, token=root)
    with pytest.raises(AccessDenied):
        world.manager.open("orders;new", Access.RECEIVE, token=root)
    assert not queue.active
    assert not queue.subqueues
    world.manager.open("orders", Access.RECEIVE).close()


def test_whoever_may_talk_to_us_may_send_to_others(world: World) -> None:
    world.manager.guard.machine = NOBODY
    world.manager.open("DIRECT=OS:other\\q", Access.SEND, token=ANONYMOUS_TOKEN).close()


@pytest.mark.rule("DM-046", "DM-047")
def test_descriptors_of_new_queues(world: World) -> None:
    world.manager.guard.machine = parse_sddl("D:(A;;GA;;;WD)")
    mine = world.finish(world.manager.create_queue("mine", token=alice))
    assert mine.security.owner == ALICE
    supplied = parse_sddl("D:P(0x7F;0x00;01020304)(A;;CC;;;WD)")
    given = world.finish(world.manager.create_queue("given", token=alice, security=supplied))
    assert to_sddl(given.security) == f"O:{ALICE}G:{ALICE}D:P(0x7F;0x00;01020304)(A;;CC;;;WD)"
    before = to_sddl(mine.security), given.security.encoded
    world.crash()
    assert (
        to_sddl(world.manager.find("mine").security),
        world.manager.find("given").security.encoded,
    ) == before


@pytest.mark.rule("X-40")
def test_the_descriptor_of_the_queue_manager_is_kept(world: World) -> None:
    with pytest.raises(AccessDenied):
        world.manager.create_queue("fresh", token=alice)
    new = world.manager.guard.change_permissions(root, None, parse_sddl("D:(A;;GA;;;WD)"))
    world.finish(world.manager.set_security(None, new))
    world.crash()
    world.manager.create_queue("fresh", token=alice)


@pytest.mark.rule("DU-17")
def test_a_change_is_kept(world: World) -> None:
    changed = parse_sddl("D:(A;;CC;;;WD)")
    world.finish(world.manager.set_properties(world.manager.find("orders"), security=changed))
    kept = world.manager.find("orders").security.encoded
    world.crash()
    assert world.manager.find("orders").security.encoded == kept


def test_nobody_gives_ownership_away(world: World) -> None:
    queue = world.manager.find("orders")
    queue.security = parse_sddl(only(OF_QUEUES))
    with pytest.raises(AccessDenied, match="owner"):
        world.manager.set_properties(queue, token=alice, security=parse_sddl(f"O:{ROOT}"))
    world.manager.set_properties(queue, token=alice, security=parse_sddl(f"O:{ALICE}"))
    assert queue.security.owner == ALICE
    world.manager.guard.machine = parse_sddl("D:(A;;GA;;;WD)")
    with pytest.raises(AccessDenied, match="owner"):
        world.manager.create_queue("fresh", token=alice, security=parse_sddl(f"O:{BOB}"))
    assert world.manager.guard.authorizer.audit.counts["change permissions"] == 2


def test_an_administrator_gets_in_by_taking_ownership(world: World) -> None:
    queue = world.manager.find("orders")
    queue.security = parse_sddl(f"O:{BOB}G:{BOB}D:(D;;GA;;;WD)")
    with pytest.raises(AccessDenied):
        world.manager.set_properties(queue, token=root, security=parse_sddl("D:(A;;GA;;;BA)"))
    world.manager.set_properties(queue, token=root, security=parse_sddl(f"O:{ROOT}"))
    world.manager.set_properties(queue, token=root, security=parse_sddl("D:(A;;GA;;;BA)"))
    world.manager.open("orders", Access.RECEIVE, token=root).close()


def test_a_change_that_is_none_needs_the_right_all_the_same(world: World) -> None:
    queue = world.manager.find("orders")
    queue.security = parse_sddl(only(0x3F))
    with pytest.raises(AccessDenied):
        world.manager.set_properties(queue, token=alice, security=queue.security)


def test_a_list_that_is_too_large_changes_nothing(world: World) -> None:
    queue = world.manager.find("orders")
    before = queue.security
    large = parse_sddl("D:" + "(A;;CC;;;WD)" * 3000)
    large = large.with_dacl(type(large.dacl)(large.dacl.aces * 2))  # type: ignore[union-attr, call-arg]
    with pytest.raises(IllegalPropertyValue):
        world.manager.set_properties(queue, security=large, label="new")
    assert (queue.security, queue.label) == (before, "")


def test_the_audit_list_takes_a_privilege(world: World) -> None:
    queue = world.manager.find("orders")
    queue.security = parse_sddl(f"O:{BOB}G:{BOB}D:(A;;GA;;;WD)")
    audited = parse_sddl("S:(AU;FA;GR;;;WD)")
    with pytest.raises(AccessDenied):
        world.manager.set_properties(queue, token=alice, security=audited)
    world.manager.set_properties(queue, token=root, security=audited)
    assert to_sddl(queue.security).endswith("S:(AU;FA;GR;;;WD)")


def test_queues_of_stores_without_descriptors_get_the_default(world: World) -> None:
    queue = world.manager.find("orders")
    record = queue.record()
    del record["security"]
    world.finish(world.manager.records.unit(lambda: world.manager.records.set_queue(queue.ordinal, record)))
    world.crash()
    assert to_sddl(world.manager.find("orders").security).startswith(
        "O:BAG:BAD:(A;;CCDCLCSWRPWPSDRCWDWO;;;WD)"
    )


def test_the_restrictive_default_keeps_others_out(world: World) -> None:
    world.manager.guard.policy = DefaultPolicy(DefaultAcl.RESTRICTIVE)
    world.manager.guard.machine = parse_sddl("D:(A;;GA;;;WD)")
    world.finish(world.manager.create_queue("mine", token=alice))
    world.manager.open("mine", Access.SEND, token=bob).close()
    for who in (alice, root):
        world.manager.open("mine", Access.RECEIVE, token=who).close()
    with pytest.raises(AccessDenied):
        world.manager.open("mine", Access.RECEIVE, token=bob)
