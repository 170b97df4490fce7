"""Queues that dependent clients open: handles, contexts, cursors, names (MS-MQMP 3.1.4.17 … 3.1.4.23)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, RpcFault
from msmq_fast.rpc.idl.qmcomm import CREATE_REMOTE_CURSOR
from msmq_fast.rpc.services.dependent.queues import RESERVED_CURSOR
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from msmq_fast.security.sddl import parse_sddl
from tests.support.rpc.dependents import NOBODY, ORDERS, DependentWorld, sent, wanted
from tests.support.rpc.peers import caller

INVALID_PARAMETER, INVALID_HANDLE, QUEUE_NOT_FOUND = 0xC00E0006, 0xC00E0007, 0xC00E0003
ACCESS_DENIED, UNSUPPORTED_ACCESS_MODE, SHARING_VIOLATION = 0xC00E0025, 0xC00E0045, 0xC00E0009
UNSUPPORTED_FORMATNAME_OPERATION, ILLEGAL_OPERATION = 0xC00E0020, 0xC00E0064
REMOTE_MACHINE_NOT_AVAILABLE, INSUFFICIENT_RESOURCES = 0xC00E0069, 0xC00E0027
OPERATION_CANCELLED, FORMATNAME_BUFFER_TOO_SMALL, NO_DS = 0xC00E0008, 0xC00E001F, 0xC00E0013
ELSEWHERE = r"DIRECT=OS:OTHER\private$\far"
PEEK_CURRENT, PEEK_NEXT = 0x80000000, 0x80000001


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param)


# ---- opening


@pytest.mark.rule("MP-110", "MP-113", "MP-114")
def test_a_queue_is_opened_under_a_number_that_cannot_be_guessed(remote: DependentWorld) -> None:
    client = remote.dependent()
    contexts = set()
    for number in range(20):
        opened = client.open(
            dwRemoteProtocol=number,
            lpClientName=f"C{number}" if number else "",
            pLicGuid=UUID(int=number),
            lplpRemoteQueueName="IGNORED",
        )
        assert opened.result == 0
        assert opened.phQueue is not None
        assert opened.lplpRemoteQueueName is None
        contexts.add(opened.pdwQMContext)
    assert len(contexts) == 20
    assert all(after - before > 1 for before, after in pairwise(sorted(contexts)))


@pytest.mark.rule("MP-111", "MP-007")
@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"access": 0}, UNSUPPORTED_ACCESS_MODE),
        ({"access": 3}, UNSUPPORTED_ACCESS_MODE),
        ({"access": 4}, UNSUPPORTED_ACCESS_MODE),
        ({"share": 2}, INVALID_PARAMETER),
        ({"access": 2, "share": 1}, UNSUPPORTED_ACCESS_MODE),
        ({"text": r"DIRECT=OS:HOST\private$\orders;sub", "access": 2}, UNSUPPORTED_ACCESS_MODE),
        ({"text": r"DIRECT=OS:HOST\private$\orders;journal", "access": 2}, UNSUPPORTED_ACCESS_MODE),
        ({"text": r"DIRECT=OS:HOST\SYSTEM$;DEADLETTER", "access": 2}, UNSUPPORTED_ACCESS_MODE),
        ({"text": "MULTICAST=234.1.1.1:8001"}, UNSUPPORTED_FORMATNAME_OPERATION),
        ({"text": r"DIRECT=OS:HOST\private$\nosuch"}, QUEUE_NOT_FOUND),
        ({"text": r"DIRECT=OS:HOST\private$\nosuch", "access": 2}, QUEUE_NOT_FOUND),
        ({"dwpRemoteContext": 1}, INVALID_PARAMETER),
    ],
)
def test_what_is_wrong_opens_nothing(values: dict[str, Any], result: int) -> None:
    remote = DependentWorld()
    opened = remote.dependent().open(**values)
    assert opened.result == result
    assert opened.result >> 31
    assert (opened.phQueue, opened.pdwQMContext, opened.lplpRemoteQueueName) == (None, 0, None)
    assert len(remote.server.queues) == 0
    assert not remote.world.manager.find("orders").descriptors


@pytest.mark.rule("MP-111")
def test_share_modes(remote: DependentWorld) -> None:
    client = remote.dependent()
    alone = client.opened(share=1)
    assert client.open().result == SHARING_VIOLATION
    assert client.open(access=2).result == 0
    client.call("close_handle", phQueue=alone.phQueue)
    assert client.open().result == 0


@pytest.mark.rule("MP-111")
def test_system_queues_and_journals_are_read(remote: DependentWorld) -> None:
    client = remote.dependent()
    for text in (r"DIRECT=OS:HOST\SYSTEM$;DEADXACT", r"DIRECT=OS:HOST\private$\orders;journal"):
        for access in (1, 0x20):
            client.opened(text, access)


@pytest.mark.rule("MP-006", "MP-111")
def test_opening_asks_for_the_right(remote: DependentWorld) -> None:
    remote.world.create("closed", security=parse_sddl("O:BAG:BAD:(A;;DC;;;WD)"))
    text = r"DIRECT=OS:HOST\private$\closed"
    client = remote.dependent(caller())
    assert [client.open(text, access).result for access in (1, 2, 0x20)] == [
        ACCESS_DENIED,
        ACCESS_DENIED,
        0,
    ]
    assert client.open(ELSEWHERE, 0x81).result in (ACCESS_DENIED, QUEUE_NOT_FOUND)


@pytest.mark.rule("MP-112")
def test_an_outgoing_queue_is_opened_by_administrators(remote: DependentWorld) -> None:
    client = remote.dependent()
    assert client.open(ELSEWHERE, 0xA0).result == QUEUE_NOT_FOUND
    client.send(client.opened(ELSEWHERE, 2), sent(b"far"))
    assert remote.dependent(caller()).open(ELSEWHERE, 0xA0).result == ACCESS_DENIED
    peeking = client.opened(ELSEWHERE, 0xA0)
    assert client.body(peeking, PEEK_CURRENT) == b"far"
    assert client.receive(peeking).result == ACCESS_DENIED
    assert client.body(client.opened(ELSEWHERE, 0x81)) == b"far"


# ---- other computers


@pytest.mark.rule("MP-110", "MP-115")
@pytest.mark.parametrize(
    "values",
    [
        {"text": ELSEWHERE},
        {"text": ELSEWHERE, "access": 0x20},
        {"text": r"DIRECT=TCP:192.0.2.99\private$\far"},
        {"text": "PRIVATE=11111111-2222-3333-4444-555555555555\\1"},
        {"text": ELSEWHERE, "hRemoteQueue": 7, "dwpQueue": 7, "dwpRemoteContext": 7},
        {"text": ORDERS, "hRemoteQueue": 7, "dwpQueue": 7, "dwpRemoteContext": 7},
    ],
)
def test_nothing_is_read_from_other_computers(values: dict[str, Any]) -> None:
    remote = DependentWorld()
    opened = remote.dependent().open(**values)
    assert opened.result == REMOTE_MACHINE_NOT_AVAILABLE
    assert (opened.phQueue, opened.lplpRemoteQueueName) == (None, None)
    assert not list(remote.world.manager.outgoing())


@pytest.mark.rule("MP-115")
def test_who_has_no_name_sends_to_no_other_computer() -> None:
    remote = DependentWorld()
    client = remote.dependent(NOBODY)
    for text in (ELSEWHERE, r"DIRECT=TCP:192.0.2.99\private$\far"):
        assert client.open(text, 2).result == ACCESS_DENIED
    assert not list(remote.world.manager.outgoing())
    assert client.open(access=2).result == 0
    assert remote.dependent(caller()).open(ELSEWHERE, 2).result == 0
    allowed = DependentWorld(policy=DependentPolicy(anonymous_outgoing=True))
    assert allowed.dependent(NOBODY).open(ELSEWHERE, 2).result == 0


@pytest.mark.rule("MP-115")
def test_names_of_other_computers_are_bounded(remote: DependentWorld) -> None:
    remote.world.manager.answer_queues.most = 3
    client = remote.dependent()
    results = [client.open(rf"DIRECT=OS:O{number}\private$\far", 2).result for number in range(5)]
    assert results == [0, 0, 0, INSUFFICIENT_RESOURCES, INSUFFICIENT_RESOURCES]
    assert client.open(r"DIRECT=OS:O1\private$\far", 2).result == 0
    assert len(list(remote.world.manager.outgoing())) == 3


# ---- closing


@pytest.mark.rule("MP-120")
def test_a_handle_is_closed_once(remote: DependentWorld) -> None:
    client = remote.dependent()
    opened = client.opened()
    waiting = client.begin_receive(opened, wanted(timeout=0xFFFFFFFF))
    closed = client.call("close_handle", phQueue=opened.phQueue)
    assert (closed.result, closed.phQueue) == (0, None)
    assert waiting.results.result == OPERATION_CANCELLED
    assert client.receive(opened).result == INVALID_HANDLE
    assert len(remote.server.queues) == 0
    assert not remote.world.manager.find("orders").descriptors
    with pytest.raises(RpcFault) as fault:
        client.call("close_handle", phQueue=opened.phQueue)
    assert fault.value.status == CONTEXT_MISMATCH
    assert client.call("close_handle", phQueue=None).result == INVALID_HANDLE


@pytest.mark.rule("MP-114")
def test_handles_and_contexts_are_good_for_their_client_only(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    client, other = remote.dependent(), remote.dependent()
    opened = client.opened()
    assert other.receive(opened).result == INVALID_HANDLE
    for name, values in (
        ("close_handle", {"phQueue": opened.phQueue}),
        ("purge_queue", {"hQueue": opened.phQueue}),
        ("close_cursor", {"hQueue": opened.phQueue, "hCursor": 1}),
    ):
        with pytest.raises(RpcFault) as fault:
            other.call(name, **values)
        assert fault.value.status == CONTEXT_MISMATCH
    assert client.body(opened) == b"one"


@pytest.mark.rule("MP-210")
def test_a_client_that_is_lost_leaves_nothing_open(remote: DependentWorld) -> None:
    client = remote.dependent()
    client.cursor(client.opened())
    waiting = client.begin_receive(client.opened(), wanted(timeout=0xFFFFFFFF))
    client.lose()
    assert waiting.results is None
    assert len(remote.server.queues) == 0
    assert not remote.world.manager.find("orders").descriptors
    remote.world.send(b"one")
    assert remote.world.bodies() == [b"one"]


# ---- cursors


@pytest.mark.rule("MP-205", "MP-125")
def test_a_cursor_of_a_queue(remote: DependentWorld) -> None:
    for text in (b"one", b"two", b"three"):
        remote.world.send(text)
    client = remote.dependent()
    opened = client.opened()
    cursor, other = client.cursor(opened), client.cursor(opened)
    assert cursor != other
    assert client.body(opened, PEEK_CURRENT, cursor=cursor) == b"one"
    assert client.body(opened, PEEK_NEXT, cursor=cursor) == b"two"
    assert client.body(opened, cursor=cursor) == b"two"
    assert client.body(opened, PEEK_CURRENT, cursor=other) == b"one"

    def close(queue: Any, number: int) -> int:
        return int(client.call("close_cursor", hQueue=queue.phQueue, hCursor=number).result)

    assert close(client.opened(), cursor) == INVALID_HANDLE
    assert close(opened, cursor) == 0
    assert close(opened, cursor) == INVALID_HANDLE
    assert client.receive(opened, wanted(PEEK_CURRENT, cursor=cursor)).result == INVALID_HANDLE


@pytest.mark.rule("MP-126")
def test_no_cursor_has_the_reserved_handle(remote: DependentWorld) -> None:
    client = remote.dependent()
    opened = client.opened()
    numbers = [client.cursor(opened) for _ in range(20)]
    assert RESERVED_CURSOR == 0x0B
    assert RESERVED_CURSOR not in numbers
    for _ in range(2):
        results = client.call("close_cursor", hQueue=opened.phQueue, hCursor=RESERVED_CURSOR)
        assert results.result == 0
    assert client.receive(opened, wanted(PEEK_CURRENT, cursor=numbers[0])).result == 0xC00E001B


@pytest.mark.rule("MP-205")
def test_cursors_where_there_can_be_none(remote: DependentWorld) -> None:
    client = remote.dependent()
    opened = client.opened(access=2)
    results = client.qmcomm2.call("create_cursor_ex", hQueue=opened.phQueue, pcc=CREATE_REMOTE_CURSOR())
    assert (results.result, results.pcc.hCursor) == (ACCESS_DENIED, 0)


@pytest.mark.rule("MP-130")
def test_properties_of_cursors_are_obsolete(remote: DependentWorld) -> None:
    client = remote.dependent()
    opened = client.opened()
    results = client.call(
        "set_cursor_properties", hProxy=opened.phQueue, hCursor=client.cursor(opened), hRemoteCursor=1
    )
    assert results.result == ILLEGAL_OPERATION


# ---- the rest


def name_of(client: Any, opened: Any, room: int, length: int | None = None) -> Any:
    """rpc_ACHandleToFormatName."""
    return client.call(
        "handle_to_format_name",
        hQueue=opened.phQueue,
        dwFormatNameRPCBufferLen=room,
        lpwcsFormatName=bytes(2 * room) if room else None,
        pdwLength=room if length is None else length,
    )


@pytest.mark.rule("MP-135", "MP-136", "MP-137")
def test_the_format_name_of_a_handle(remote: DependentWorld) -> None:
    client = remote.dependent()
    opened = client.opened()
    whole = ORDERS + "\0"
    found = name_of(client, opened, 100)
    assert (found.result, found.pdwLength) == (0, len(whole))
    assert found.lpwcsFormatName == whole.encode("utf-16-le").ljust(200, b"\0")
    assert name_of(client, opened, len(whole)).result == 0
    for room in (len(whole) - 1, 10, 1):
        short = name_of(client, opened, room)
        assert (short.result, short.pdwLength) == (FORMATNAME_BUFFER_TOO_SMALL, len(whole))
        assert short.lpwcsFormatName == (whole[: room - 1] + "\0").encode("utf-16-le")
    none = name_of(client, opened, 0)
    assert (none.result, none.pdwLength) == (FORMATNAME_BUFFER_TOO_SMALL, len(whole))
    assert none.lpwcsFormatName is None
    for length in (9, 11, 100):
        assert name_of(client, opened, 10, length).result == INVALID_PARAMETER


@pytest.mark.rule("MP-135")
def test_the_format_name_of_what_is_sent_to(remote: DependentWorld) -> None:
    client = remote.dependent()
    found = name_of(client, client.opened(ELSEWHERE, 2), 100)
    name = str(parse_format_name(ELSEWHERE))
    assert found.lpwcsFormatName.decode("utf-16-le").rstrip("\0") == name
    assert found.pdwLength == len(name) + 1


@pytest.mark.rule("MP-140")
def test_a_purge_is_for_good(remote: DependentWorld) -> None:
    for text in (b"one", b"two"):
        remote.world.send(text)
    client = remote.dependent()
    assert client.call("purge_queue", hQueue=client.opened(access=0x20).phQueue).result == ACCESS_DENIED
    assert client.call("purge_queue", hQueue=client.opened(access=2).phQueue).result == ACCESS_DENIED
    assert client.call("purge_queue", hQueue=client.opened().phQueue).result == 0
    remote.world.crash()
    assert remote.world.bodies() == []


@pytest.mark.rule("MP-140")
def test_the_answer_to_a_purge_waits_for_the_disk(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    client = remote.dependent()
    queue = client.opened()
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = client.qmcomm.begin("purge_queue", hQueue=queue.phQueue)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert call.results.result == 0


@pytest.mark.rule("MP-145")
def test_what_the_registry_says(remote: DependentWorld) -> None:
    client = remote.dependent()

    def ask(kind: int) -> tuple[int, str | None]:
        found = client.call("query_qm_registry_internal", dwQueryType=kind)
        return found.result, found.lplpMQISServer

    assert ask(0) == (0, "")
    assert ask(1) == (0, "345600")
    assert ask(2) == (NO_DS, None)
    code, version = ask(3)
    assert code == 0
    assert version is not None
    assert [part.isdigit() and len(part) <= 4 for part in version.split(".")] == [True] * 3
    assert ask(4) == (0, str(remote.world.manager.guid))
    assert ask(5) == (INVALID_PARAMETER, None)


@pytest.mark.rule("MP-003")
def test_nothing_of_this_without_dependent_clients() -> None:
    remote = DependentWorld(policy=DependentPolicy(enabled=False))
    client = remote.dependent()
    assert client.open().result == ILLEGAL_OPERATION
    assert client.call("query_qm_registry_internal", dwQueryType=4).result == ILLEGAL_OPERATION
    nothing = bytes(4) + bytes(range(16))
    for name, values in (
        ("close_handle", {"phQueue": nothing}),
        ("close_cursor", {"hQueue": nothing, "hCursor": 1}),
        ("set_cursor_properties", {"hProxy": nothing, "hCursor": 1, "hRemoteCursor": 1}),
        ("purge_queue", {"hQueue": nothing}),
        ("handle_to_format_name", {"hQueue": nothing}),
    ):
        assert client.call(name, **values).result == ILLEGAL_OPERATION
