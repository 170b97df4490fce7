"""qmmgmt (MS-MQMR): properties of the queue manager and of its queues, actions, and who may do what."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.outgoing.sequences import SequenceInfo, transfer_info
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.idl.mqmq import OBJECTID, PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.idl.qmmgmt import MGMT_MACHINE, MGMT_OBJECT, MGMT_QUEUE, MGMT_SESSION
from msmq_fast.rpc.services.management import values
from msmq_fast.rpc.services.management.machineproperties import MACHINE_PROPERTIES
from msmq_fast.rpc.services.management.queueproperties import QUEUE_PROPERTIES, QueueProperty
from msmq_fast.security.sddl import parse_sddl
from tests.support.clocks import WALL
from tests.support.rpc.dependents import NOBODY
from tests.support.rpc.managing import (
    BLOB,
    I4,
    I8,
    LPWSTR,
    MACHINE,
    NULL,
    UI4,
    VARIANT,
    VECTOR,
    Tool,
    queue_object,
)
from tests.support.rpc.peers import ADMIN, ALICE, RemoteWorld, caller
from tests.support.worlds.queue_manager import tell

PROPERTY, QUEUE_NOT_FOUND, QUEUE_NOT_ACTIVE = 0xC00E0002, 0xC00E0003, 0xC00E0004
INVALID_PARAMETER, ILLEGAL_FORMATNAME, ACCESS_DENIED = 0xC00E0006, 0xC00E001E, 0xC00E0025
INSUFFICIENT_RESOURCES, ILLEGAL_PROPID, UNSUPPORTED_FORMATNAME = 0xC00E0027, 0xC00E0039, 0xC00E0020
FAR = r"DIRECT=TCP:10.0.0.9\private$\there"
ORDERS = queue_object(r"DIRECT=OS:HOST\private$\orders")
STRANGER = caller()
P = QueueProperty
SESSION = MGMT_OBJECT(MGMT_SESSION, 7)
TEXTS, VARIANTS, LONGS = VECTOR | LPWSTR, VECTOR | VARIANT, VECTOR | UI4


@pytest.fixture
def tool(remote: RemoteWorld) -> Tool:
    tell(remote.world.manager)
    return Tool(remote)


def far(remote: RemoteWorld, text: str = FAR) -> OutgoingQueue:
    """An outgoing queue with one message."""
    queue = remote.world.manager.outgoing_queues.to(parse_format_name(text))
    queue.core.enqueue_packets([Message(body=b"x", sent_time=WALL).to_packet()])
    remote.world.run()
    return queue


# ---- the queue manager


@pytest.mark.rule("MR-030", "MR-031")
def test_active_and_private_queues(remote: RemoteWorld, tool: Tool) -> None:
    world = remote.world
    world.create("empty")
    world.create("ledger", transactional=True)
    public = world.create(r".\everybody")
    far(remote)
    world.send(b"x")
    opened = world.manager.open(r".\everybody", Access.PEEK)
    active, private = tool.values(MACHINE, 1, 2)
    assert active[0] == private[0] == TEXTS
    names = {r"DIRECT=OS:HOST\private$\orders", f"PUBLIC={public.guid}", FAR}
    assert set(active[1]) == names
    assert private[1] == [rf"HOST\private$\{name}" for name in ("empty", "ledger", "orders")]
    for name in active[1]:
        assert tool.values(queue_object(name), P.FORMATNAME) == [(LPWSTR, name)]
    opened.close()
    assert set(tool.values(MACHINE, 1)[0][1]) == names - {f"PUBLIC={public.guid}"}


@pytest.mark.rule("MR-032", "MR-033", "MR-034", "MR-035")
def test_the_other_properties_of_the_queue_manager(remote: RemoteWorld, tool: Tool) -> None:
    remote.world.send(b"four")
    server, connected, kind, stored = tool.values(MACHINE, 3, 4, 5, 6)
    assert server == (NULL, None)
    assert connected == (LPWSTR, "CONNECTED")
    assert kind[0] == LPWSTR
    assert kind[1].startswith("msmq-fast ")
    assert stored == (I8, sum(queue.bytes for queue in remote.world.manager.queues()))
    assert stored[1] > 4


@pytest.mark.rule("MR-025", "MR-023")
@pytest.mark.parametrize(("target", "number"), [(MACHINE, 0), (MACHINE, 7), (ORDERS, 0), (ORDERS, 28)])
def test_a_property_that_the_object_does_not_have(tool: Tool, target: Any, number: int) -> None:
    results = tool.look(target, 1, number)
    assert results.result == ILLEGAL_PROPID
    assert [each.vt for each in results.apVar] == [NULL, NULL]


@pytest.mark.rule("MR-022", "MR-023")
def test_types_that_callers_give(tool: Tool) -> None:
    for vt in (0, NULL, UI4):
        given = [PROPVARIANT(vt, 0, 0, 0, 5 if vt == UI4 else None)]
        assert tool.look(ORDERS, P.MESSAGE_COUNT, apVar=given).apVar[0]._varUnion == 0
    results = tool.look(ORDERS, P.MESSAGE_COUNT, apVar=[PROPVARIANT(I4, 0, 0, 0, 5)])
    assert (results.result, results.apVar[0].vt, results.apVar[0]._varUnion) == (PROPERTY, I4, 5)
    assert tool.look(ORDERS, P.STATE, P.STATE).result == PROPERTY


@pytest.mark.rule("MR-024", "MR-071")
def test_sessions_are_not_managed(tool: Tool) -> None:
    assert tool.look(SESSION, 1).result == INVALID_PARAMETER
    assert tool.act(SESSION, "CONNECT") == INVALID_PARAMETER


@pytest.mark.rule("MR-005")
def test_the_reserved_member_of_the_machine_is_ignored(tool: Tool) -> None:
    assert tool.values(MGMT_OBJECT(MGMT_MACHINE, 0xFFFFFFFF), 4) == [(LPWSTR, "CONNECTED")]


# ---- queues


@pytest.mark.rule("MR-040", "MR-041", "MR-042", "MR-043", "MR-044", "MR-045", "MR-050", "MR-051")
def test_what_a_local_queue_is(remote: RemoteWorld, tool: Tool) -> None:
    world = remote.world
    world.create("ledger", transactional=True)
    public = world.create(r".\everybody")
    asked = (P.PATHNAME, P.FORMATNAME, P.TYPE, P.LOCATION, P.XACT, P.FOREIGN, P.STATE)
    for text, expected in (
        (r"DIRECT=OS:HOST\private$\orders", (r"HOST\private$\orders", None, "PRIVATE", "NO")),
        (r"DIRECT=TCP:10.0.0.7\private$\ledger", (r"HOST\private$\ledger", None, "PRIVATE", "YES")),
        (f"PUBLIC={public.guid}", (r"HOST\everybody", f"PUBLIC={public.guid}", "PUBLIC", "NO")),
        (r"DIRECT=OS:HOST\SYSTEM$;DEADLETTER", (r"HOST\system$;deadletter", None, "MACHINE", "NO")),
        (f"MACHINE={world.manager.guid};DEADXACT", (r"HOST\system$;deadxact", None, "MACHINE", "YES")),
        (r"DIRECT=OS:HOST\private$\orders;JOURNAL", (r"HOST\private$\orders;JOURNAL", None, "PRIVATE", "NO")),
    ):
        path, name, kind, transactional = expected
        found = [value for _, value in tool.values(queue_object(text), *asked)]
        name = name or f"DIRECT=OS:{path}"
        assert found == [path, name, kind, "LOCAL", transactional, "NO", "LOCAL CONNECTION"], text
    assert tool.values(ORDERS, P.NEXTHOPS) == [(NULL, None)]


@pytest.mark.rule("MR-026", "MR-046", "MR-047", "MR-048", "MR-049")
def test_what_a_queue_and_its_journal_hold(remote: RemoteWorld, tool: Tool) -> None:
    world = remote.world
    for _ in range(3):
        world.send(b"x")
    asked = (P.MESSAGE_COUNT, P.BYTES_IN_QUEUE, P.JOURNAL_MESSAGE_COUNT, P.BYTES_IN_JOURNAL)
    orders = world.manager.find("orders")
    assert tool.values(ORDERS, *asked) == [(UI4, 3), (UI4, orders.bytes), (UI4, 0), (UI4, 0)]
    world.finish(world.manager.set_properties(orders, journaling=True))
    alone = world.manager.open("orders", Access.RECEIVE, Share.DENY_RECEIVE)
    world.finish(alone.receive(0).completion)
    assert orders.journal is not None
    counted = [(UI4, 2), (UI4, orders.bytes), (UI4, 1), (UI4, orders.journal.bytes)]
    assert tool.values(ORDERS, *asked) == counted  # although a program has the queue for itself
    world.finish(world.manager.set_properties(orders, journaling=False))
    assert tool.values(ORDERS, *asked)[2:] == [(UI4, 1), (UI4, 0)]


@pytest.mark.rule("MR-065", "MR-066")
def test_subqueues(remote: RemoteWorld, tool: Tool) -> None:
    world = remote.world
    assert tool.values(ORDERS, P.SUBQUEUE_COUNT, P.SUBQUEUE_NAMES) == [(UI4, 0), (TEXTS, [])]
    handles = [world.manager.open(f"orders;{name}", Access.PEEK) for name in ("retry", "held")]
    found = tool.values(ORDERS, P.SUBQUEUE_COUNT, P.SUBQUEUE_NAMES)
    assert found == [(UI4, 2), (TEXTS, ["held", "retry"])]
    subqueue = queue_object(r"DIRECT=OS:HOST\private$\orders;retry")
    assert tool.values(subqueue, P.PATHNAME, P.TYPE)[0] == (LPWSTR, r"HOST\private$\orders;retry")
    for handle in handles:
        handle.close()


@pytest.mark.rule("MR-040", "MR-041", "MR-042", "MR-043", "MR-044", "MR-050")
@pytest.mark.parametrize(
    ("text", "path", "kind"),
    [
        (FAR, r"10.0.0.9\private$\there", "PRIVATE"),
        (r"DIRECT=OS:far\there", r"far\there", "PUBLIC"),
        (r"DIRECT=OS:far\SYSTEM$;DEADXACT", r"far\SYSTEM$;DEADXACT", "MACHINE"),
        ("DIRECT=HTTP://far/msmq/private$/q", "HTTP://far/msmq/private$/q", "PRIVATE"),
        ("PRIVATE=11111111-2222-3333-4444-555555555555\\00000007", None, "PRIVATE"),
        ("PUBLIC=11111111-2222-3333-4444-555555555555", None, "PUBLIC"),
        ("MULTICAST=234.1.1.1:8001", None, "MULTICAST"),
    ],
)
def test_what_an_outgoing_queue_is(
    remote: RemoteWorld, tool: Tool, text: str, path: str | None, kind: str
) -> None:
    queue = remote.world.manager.outgoing_queues.to(parse_format_name(text))
    asked = (P.PATHNAME, P.FORMATNAME, P.TYPE, P.LOCATION, P.XACT, P.STATE, P.MESSAGE_COUNT)
    found = tool.values(queue_object(text), *asked)
    assert found[0] == ((NULL, None) if path is None else (LPWSTR, path))
    assert [value for _, value in found[1:]] == [queue.name, kind, "REMOTE", "UNKNOWN", "INACTIVE", 0]


@pytest.mark.rule("MR-050", "MR-051")
@pytest.mark.parametrize("state", list(OutgoingState))
def test_states_and_next_hops(remote: RemoteWorld, tool: Tool, state: OutgoingState) -> None:
    queue = far(remote)
    queue.next_hops = ("10.0.0.9", "fe80::1", "router")
    queue.outgoing_state = state
    shown, hops = tool.values(queue_object(FAR), P.STATE, P.NEXTHOPS)
    written = {"NEED_VALIDATION": "NEED VALIDATION", "ON_HOLD": "ONHOLD"}
    assert shown == (LPWSTR, written.get(state.name, state.name))
    transferring = state in (OutgoingState.CONNECTED, OutgoingState.WAITING)
    assert hops == ((TEXTS, ["IP=10.0.0.9", "IPv6=fe80::1", "router"]) if transferring else (NULL, None))


@pytest.mark.rule("MR-051")
def test_the_next_hop_of_a_multicast_queue_is_its_name(remote: RemoteWorld, tool: Tool) -> None:
    text = "MULTICAST=234.1.1.1:8001"
    queue = remote.world.manager.outgoing_queues.to(parse_format_name(text))
    queue.outgoing_state = OutgoingState.CONNECTED
    assert tool.values(queue_object(text), P.NEXTHOPS) == [(TEXTS, [text])]


@pytest.mark.rule(
    "MR-052",
    "MR-053",
    "MR-054",
    "MR-055",
    "MR-056",
    "MR-057",
    "MR-058",
    "MR-059",
    "MR-060",
    "MR-061",
    "MR-062",
)
def test_the_state_of_a_sequence(remote: RemoteWorld, tool: Tool) -> None:
    world = remote.world
    handle = world.manager.open(FAR, Access.SEND)
    numbers = range(P.EOD_LAST_ACK, P.EOD_RESEND_COUNT + 1)
    nothing = struct.pack("<QII", 0, 0, 0)
    transaction = world.manager.transactions.begin()
    for _ in range(3):
        TransactedQueue(handle, transaction).send(Message(body=b"x"))
    world.finish(transaction.commit())
    (queue,) = world.manager.outgoing()
    identifier = transfer_info(queue).next_sequence.sequence_id

    def place(number: int) -> bytes:
        return struct.pack("<QII", identifier, number, number - 1)

    found = dict(zip(numbers, tool.values(queue_object(FAR), *numbers), strict=True))
    assert found[P.EOD_LAST_ACK] == (BLOB, nothing)  # three wait for one, and none has come
    assert found[P.EOD_FIRST_NON_ACK] == (BLOB, place(1))
    assert found[P.EOD_LAST_NON_ACK] == (BLOB, place(3))
    assert found[P.EOD_NEXT_SEQ] == (BLOB, place(4))
    assert found[P.EOD_NO_ACK_COUNT] == (UI4, 3)
    assert tool.values(queue_object(FAR), P.XACT) == [(LPWSTR, "YES")]
    assert (found[P.EOD_LAST_ACK_TIME], found[P.EOD_RESEND_TIME]) == ((I4, 0), (I4, 0))
    zero = (P.EOD_LAST_ACK_COUNT, P.EOD_NO_READ_COUNT, P.EOD_RESEND_INTERVAL, P.EOD_RESEND_COUNT)
    assert [found[number] for number in zero] == [(UI4, 0)] * 4


@pytest.mark.rule("MR-052", "MR-055")
def test_the_place_of_a_message_is_a_sequence_info() -> None:
    place = values.blob(SequenceInfo(1 << 63 | 5, 7, 6))
    assert bytes(place._varUnion.pBlobData) == struct.pack("<QII", 1 << 63 | 5, 7, 6)


@pytest.mark.rule("MR-052", "MR-057")
def test_a_local_queue_has_no_sequence(tool: Tool) -> None:
    numbers = range(P.EOD_LAST_ACK, P.EOD_RESEND_COUNT + 1)
    assert tool.values(ORDERS, *numbers, P.CONNECTION_HISTORY) == [(NULL, None)] * (len(numbers) + 1)


@pytest.mark.rule("MR-063")
def test_the_streams_that_arrive_at_a_queue(remote: RemoteWorld, tool: Tool) -> None:
    manager = remote.world.manager
    sender = UUID("11111111-2222-3333-4444-555555555555")
    ordinal = manager.find("orders").ordinal
    name = r"DIRECT=TCP:10.0.0.7\private$\orders"
    streams = [
        IncomingTransfer(ordinal, name, sender, 5 << 32 | 6, 7, WALL, 2),
        IncomingTransfer(ordinal + 1, "another", sender, 1, 1, WALL, 0),
    ]
    manager.incoming.register(transfers=lambda: streams)
    assert tool.values(ORDERS, P.EOD_SOURCE_INFO) == [
        (
            VARIANTS,
            [
                (TEXTS, [name]),
                (VECTOR | 72, [sender]),
                (VECTOR | 21, [5 << 32 | 6]),
                (LONGS, [7]),
                (VECTOR | I4, [WALL]),
                (LONGS, [2]),
            ],
        )
    ]


@pytest.mark.rule("MR-064")
def test_the_history_of_connections(remote: RemoteWorld, tool: Tool) -> None:
    queue = far(remote)
    queue.note(ConnectionStatus.IN_PROCESS, WALL, 0, ("10.0.0.9",))
    queue.note(ConnectionStatus.PING_FAILURE, WALL + 1, 0xC00E0001, ("10.0.0.9", "10.0.0.8"))
    queue.note(ConnectionStatus.LOW_RESOURCE, WALL + 2)
    (found,) = tool.values(queue_object(FAR), P.CONNECTION_HISTORY)
    assert found == (
        VARIANTS,
        [
            (LONGS, [0, 0x80000001, 0x8000000D]),
            (VECTOR | I4, [WALL, WALL + 1, WALL + 2]),
            (VECTOR | I4, [0, 0xC00E0001 - (1 << 32), 0]),
            (VARIANTS, [(TEXTS, ["10.0.0.9"]), (TEXTS, ["10.0.0.9", "10.0.0.8"]), (TEXTS, [])]),
        ],
    )


@pytest.mark.rule("MR-020", "MR-027")
def test_every_property_at_once(remote: RemoteWorld, tool: Tool) -> None:
    far(remote)
    for target, known in (
        (MACHINE, MACHINE_PROPERTIES),
        (ORDERS, QUEUE_PROPERTIES),
        (queue_object(FAR), QUEUE_PROPERTIES),
    ):
        found = tool.values(target, *known)
        for (vt, _), (kind, _) in zip(found, known.values(), strict=True):
            assert vt in (kind, NULL)


@pytest.mark.rule("MR-006", "MR-027")
def test_names_of_no_queue(remote: RemoteWorld, tool: Tool) -> None:
    before = len(remote.world.manager.outgoing())
    for text, code in (
        (r"DIRECT=OS:HOST\private$\none", QUEUE_NOT_FOUND),
        (r"DIRECT=OS:HOST\private$\orders;none", QUEUE_NOT_FOUND),
        (f"PRIVATE={remote.world.manager.guid}\\000fffff", QUEUE_NOT_FOUND),
        (FAR, QUEUE_NOT_ACTIVE),
        ("PUBLIC=11111111-2222-3333-4444-555555555555", QUEUE_NOT_ACTIVE),
        ("DL=11111111-2222-3333-4444-555555555555", UNSUPPORTED_FORMATNAME),
    ):
        assert tool.look(queue_object(text), 1).result == code, text
        assert tool.act(queue_object(text), "PAUSE") == code, text
    for given in (
        None,
        QUEUE_FORMAT(0, 0, 0, None),
        QUEUE_FORMAT(3, 0, 0, None),
        QUEUE_FORMAT(3, 0, 0, "OS:" + "x" * 100_000),
        QUEUE_FORMAT(3, 0, 0, "no such form"),
        QUEUE_FORMAT(2, 3, 0, OBJECTID(UUID(int=1), 1)),
    ):
        code = INVALID_PARAMETER if given is None else ILLEGAL_FORMATNAME
        assert tool.look(MGMT_OBJECT(MGMT_QUEUE, given), 1).result == code
        assert tool.act(MGMT_OBJECT(MGMT_QUEUE, given), "PAUSE") == code
    assert len(remote.world.manager.outgoing()) == before


@pytest.mark.rule("MR-082")
def test_lists_are_bounded(remote: RemoteWorld, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = r"HOST\private$\orders"
    monkeypatch.setattr(values, "MOST_TEXT", len(name) + 1)
    assert tool.values(MACHINE, 2) == [(TEXTS, [name])]
    remote.world.create("more")
    results = tool.look(MACHINE, 2)
    assert (results.result, results.apVar[0].vt) == (INSUFFICIENT_RESOURCES, NULL)


# ---- actions


@pytest.mark.rule("MR-072", "MR-073", "MR-034", "MR-081")
def test_the_queue_manager_is_taken_offline_and_brought_back(
    remote: RemoteWorld, tool: Tool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "msmq_fast.audit")
    assert tool.act(MACHINE, "disconnect") == 0
    assert not remote.world.manager.outgoing_queues.connection_active
    assert tool.values(MACHINE, 4) == [(LPWSTR, "DISCONNECTED")]
    assert not far(remote).online
    assert tool.act(MACHINE, "Connect") == 0
    assert tool.values(MACHINE, 4) == [(LPWSTR, "CONNECTED")]
    assert all(queue.online for queue in remote.world.manager.outgoing())
    lines = [record.getMessage() for record in caplog.records if record.name == "msmq_fast.audit"]
    assert [line.partition(" on ")[0] for line in lines] == ["take offline", "bring online"]
    entries = remote.world.manager.audit.page(0, 10, newest_first=False).entries
    assert [(entry.operation, entry.caller) for entry in entries if entry.object == "the queue manager"] == [
        ("take offline", str(ADMIN.token)),
        ("bring online", str(ADMIN.token)),
    ]


@pytest.mark.rule("MR-074", "MR-081")
def test_tidy_removes_no_message(remote: RemoteWorld, tool: Tool) -> None:
    remote.world.send(b"x")
    assert tool.act(MACHINE, "TIDY") == 0
    assert tool.values(ORDERS, P.MESSAGE_COUNT) == [(UI4, 1)]


@pytest.mark.rule("MR-075", "MR-076", "MR-070")
def test_an_outgoing_queue_is_paused_and_resumed(remote: RemoteWorld, tool: Tool) -> None:
    far(remote)
    name = queue_object(FAR)
    for _ in range(2):
        assert tool.act(name, "Pause") == 0
    remote.world.crash()
    tell(remote.world.manager)
    again = Tool(remote)
    (queue,) = remote.world.manager.outgoing()
    assert (queue.outgoing_state, queue.held_by) == (OutgoingState.ON_HOLD, ADMIN.token.name)
    assert again.values(name, P.STATE) == [(LPWSTR, "ONHOLD")]
    assert again.act(name, "RESUME") == 0
    assert again.values(name, P.STATE) == [(LPWSTR, "INACTIVE")]


@pytest.mark.rule("MR-077")
def test_the_pending_sequence_is_sent_again(remote: RemoteWorld) -> None:
    worked: list[str] = []
    tell(remote.world.manager, lambda queue: worked.append(queue.name))
    tool = Tool(remote)
    far(remote)
    worked.clear()
    assert tool.act(queue_object(FAR), "EOD_RESEND") == 0
    assert worked == [FAR]
    assert tool.act(queue_object(FAR), "PAUSE") == 0
    assert tool.act(queue_object(FAR), "EOD_RESEND") == QUEUE_NOT_ACTIVE


@pytest.mark.rule("MR-078", "MR-079")
@pytest.mark.parametrize("action", ["PAUSE", "RESUME", "EOD_RESEND"])
def test_actions_on_queues_are_for_outgoing_ones(tool: Tool, action: str) -> None:
    for target in (ORDERS, MACHINE):
        assert tool.act(target, action) == INVALID_PARAMETER


@pytest.mark.rule("MR-078", "MR-079")
@pytest.mark.parametrize("action", ["CONNECT", "DISCONNECT", "TIDY"])
def test_actions_on_the_queue_manager_are_for_no_queue(remote: RemoteWorld, tool: Tool, action: str) -> None:
    assert tool.act(ORDERS, action) == INVALID_PARAMETER
    assert remote.world.manager.outgoing_queues.connection_active


@pytest.mark.rule("MR-070")
@pytest.mark.parametrize("action", ["", "PURGE", "CONNECT ", "x" * 500_000, "\uff30AUSE", "pau\u017fe"])
def test_unknown_actions(tool: Tool, action: str) -> None:
    for target in (MACHINE, ORDERS):
        assert tool.act(target, action) == INVALID_PARAMETER


# ---- who may do what


@pytest.mark.rule("MR-011", "MR-079", "MR-081")
@pytest.mark.parametrize("who", [STRANGER, NOBODY], ids=["alice", "nobody"])
def test_actions_are_for_administrators(
    remote: RemoteWorld, who: Any, caplog: pytest.LogCaptureFixture
) -> None:
    far(remote)
    tool = Tool(remote, who)
    for target, action in (
        (MACHINE, "DISCONNECT"),
        (MACHINE, "CONNECT"),
        (MACHINE, "TIDY"),
        (queue_object(FAR), "PAUSE"),
        (queue_object(FAR), "RESUME"),
        (queue_object(FAR), "EOD_RESEND"),
    ):
        caplog.clear()
        assert tool.act(target, action) == ACCESS_DENIED
        assert any(record.name == "msmq_fast.audit" for record in caplog.records), action
    manager = remote.world.manager
    assert manager.outgoing_queues.connection_active
    assert all(queue.may_send for queue in manager.outgoing())


@pytest.mark.rule("MR-012", "MR-023")
def test_a_caller_sees_what_its_rights_allow(remote: RemoteWorld) -> None:
    far(remote)
    manager, tool = remote.world.manager, Tool(remote, STRANGER)
    closed = "O:BAG:BAD:(A;;GA;;;BA)"
    remote.world.create("closed", security=parse_sddl(closed))
    remote.world.create("open", security=parse_sddl(f"O:BAG:BAD:(A;;GA;;;{ALICE})"))
    results = tool.look(queue_object(r"DIRECT=OS:HOST\private$\closed"), 1)
    assert (results.result, results.apVar[0].vt) == (ACCESS_DENIED, NULL)
    opened = queue_object(r"DIRECT=OS:HOST\private$\open")
    assert tool.values(opened, P.PATHNAME) == [(LPWSTR, r"HOST\private$\open")]
    names = tool.values(MACHINE, 2)[0][1]
    assert r"HOST\private$\open" in names
    assert r"HOST\private$\closed" not in names
    remote.world.finish(manager.set_security(None, parse_sddl(closed)))
    for target in (MACHINE, queue_object(FAR)):
        assert tool.look(target, 1).result == ACCESS_DENIED
    assert tool.look(opened, 1).result == 0
    assert Tool(remote).look(queue_object(FAR), 1).result == 0
    assert Tool(remote, NOBODY).look(opened, 1).result == ACCESS_DENIED


@pytest.mark.rule("MR-024", "MR-025")
def test_mistakes_are_told_before_rights_are_checked(remote: RemoteWorld) -> None:
    tool = Tool(remote, NOBODY)
    assert tool.look(MACHINE, 99).result == ILLEGAL_PROPID
    assert tool.act(SESSION, "nessus") == INVALID_PARAMETER


@pytest.mark.rule("MR-010")
def test_a_stopped_queue_manager_answers_with_an_hresult(remote: RemoteWorld, tool: Tool) -> None:
    remote.world.manager.stop()
    assert tool.look(MACHINE, 4).result == tool.act(MACHINE, "TIDY") == 0xC00E000B
