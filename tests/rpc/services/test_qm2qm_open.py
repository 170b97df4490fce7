"""qm2qm: opening and closing queues and cursors, ports, versions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from msmq_fast.protocol.errors import AccessDenied, SharingViolation
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, OP_RANGE, RpcFault
from msmq_fast.rpc.interface import Interface
from msmq_fast.rpc.services.qm2qm import HandledRead
from msmq_fast.rpc.services.reads import RemoteQueue
from tests.support.rpc.peers import ADMIN, CLIENT, Peer, Reader, RemoteWorld, caller, received

INVALID_PARAMETER = 0xC00E0006
INVALID_HANDLE = 0xC00E0007
CANCELED_BY_CLIENT = 0x400E03E9
DEAD_LETTERS = r"DIRECT=OS:HOST\system$;deadletter"


def open_queue(peer: Peer, handle: int, **values: int) -> int:
    parameters = {"dwMQS": 0, "hQueue": handle, "pQueue": handle, "dwpContext": handle} | values
    results = peer.call("open_queue", pLicGuid=CLIENT, **parameters)
    assert (results.phContext is None) == bool(results.result)
    return int(results.result)


def only(remote: RemoteWorld) -> RemoteQueue:
    (queue,) = remote.queues
    return queue


@pytest.mark.rule("QP-023", "QP-036", "QP-037")
def test_an_open_queue_belongs_to_the_association_that_was_told_of_it(remote: RemoteWorld) -> None:
    handle = remote.opened()
    peer = remote.peer()
    assert not only(remote).ready
    assert open_queue(peer, handle) == 0
    entry = only(remote)
    assert (entry.handle, entry.client) == (handle, CLIENT)
    assert remote.queues.owned(handle, peer.association) is entry
    assert remote.queues.owned(handle, remote.peer().association) is None


@pytest.mark.rule("QP-031")
def test_handles_that_are_zero_are_refused(remote: RemoteWorld) -> None:
    handle = remote.opened()
    peer = remote.peer()
    assert open_queue(peer, handle, pQueue=0) == INVALID_PARAMETER
    assert open_queue(peer, handle, dwpContext=0) == INVALID_PARAMETER
    assert open_queue(peer, handle, pQueue=0, dwpContext=0) == INVALID_PARAMETER
    assert open_queue(peer, handle) == 0


@pytest.mark.rule("QP-032")
def test_the_two_handles_have_to_be_one(remote: RemoteWorld) -> None:
    handle, other = remote.opened(), remote.opened()
    assert open_queue(remote.peer(), handle, pQueue=other) == INVALID_PARAMETER


@pytest.mark.rule("QP-033", "QP-034", "QP-035")
@pytest.mark.parametrize(("queue", "mqs"), [(0, 0), (0xDEADBEEF, 1), (1, 16)])
def test_what_is_not_looked_at(remote: RemoteWorld, queue: int, mqs: int) -> None:
    assert open_queue(remote.peer(), remote.opened(), hQueue=queue, dwMQS=mqs) == 0


@pytest.mark.rule("QP-039")
def test_a_handle_that_nobody_has_is_refused(remote: RemoteWorld) -> None:
    handle = remote.opened()
    assert open_queue(remote.peer(), handle ^ 1) == INVALID_PARAMETER
    only(remote).opened.close()
    assert open_queue(remote.peer(), handle) == INVALID_PARAMETER


@pytest.mark.rule("QP-039")
def test_a_queue_is_taken_over_once(remote: RemoteWorld) -> None:
    reader = remote.reader()
    assert open_queue(remote.peer(), reader.handle) == INVALID_PARAMETER
    assert open_queue(reader.peer, reader.handle) == INVALID_PARAMETER


@pytest.mark.rule("QP-038")
def test_who_opened_a_queue_does_not_close_it_any_more_when_it_was_taken_over(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    reader = remote.reader()
    remote.queues.release(only(remote))
    assert received(reader.start()).dwSize
    unread = remote.opened()
    entry = remote.queues.find(unread)
    assert entry is not None
    remote.queues.release(entry)
    assert open_queue(remote.peer(), unread) == INVALID_PARAMETER


@pytest.mark.rule("QP-024", "QP-025")
def test_handles_are_numbers_that_nobody_can_guess(remote: RemoteWorld) -> None:
    queues = remote.queues
    handles = [remote.opened() for _ in range(2_000)]
    assert len(set(handles)) == len(handles)
    assert all(0 < handle < 1 << 32 for handle in handles)
    steps = {second - first for first, second in pairwise(handles)}
    assert len(steps) > 1_990
    entry = queues.find(handles[0])
    assert entry is not None
    cursors = [queues.new_cursor(entry) for _ in range(1_000)]
    assert len(set(cursors)) == len(cursors)
    assert all(0 < cursor < 1 << 32 for cursor in cursors)
    assert len({second - first for first, second in pairwise(cursors)}) > 900


@pytest.mark.rule("QP-024", "QP-025")
def test_a_number_that_is_in_use_is_not_given_again(
    remote: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter((7, 7, 0, 8, 9, 9, 0, 10))
    monkeypatch.setattr(
        remote.world.manager, "random_bytes", lambda size: next(numbers).to_bytes(size, "little")
    )
    handles = [remote.opened() for _ in range(2)]
    assert handles == [7, 8]
    entries = [remote.queues.find(handle) for handle in handles]
    assert [remote.queues.new_cursor(entry) for entry in entries if entry is not None] == [9, 10]


@pytest.mark.rule("QP-040")
def test_nothing_can_be_done_before_the_queue_is_open(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    reader = remote.reader()
    reader.handle = remote.opened()
    call = reader.start()
    assert call.results.result == INVALID_PARAMETER
    assert reader.start0().results.result == INVALID_PARAMETER
    assert reader.look_up(0x40000011, 0).results.result == INVALID_PARAMETER
    assert reader.cancel() == INVALID_HANDLE
    assert reader.peer.begin("purge_queue", hQueue=reader.handle).fault_status == INVALID_HANDLE
    entry = remote.queues.find(reader.handle)
    assert entry is not None
    cursor = remote.queues.new_cursor(entry)
    closed = reader.peer.call("close_cursor", hQueue=reader.handle, hCursor=cursor)
    assert closed.result == INVALID_HANDLE


def test_the_handle_of_another_client_is_of_no_use(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    reader = remote.reader()
    thief = Reader(remote, remote.peer(), remote.opened())
    waiting = reader.start(timeout=1000, hCursor=0, action=0x80000000)
    received(waiting)
    thief.handle = reader.handle
    assert thief.start().results.result == INVALID_PARAMETER
    assert thief.cancel() == INVALID_HANDLE
    assert thief.peer.begin("purge_queue", hQueue=reader.handle).fault_status == INVALID_HANDLE
    cursor = reader.cursor()
    stolen = thief.peer.call("close_cursor", hQueue=reader.handle, hCursor=cursor)
    assert stolen.result == INVALID_HANDLE
    with pytest.raises(RpcFault) as fault:
        thief.peer.call("close_queue", pphContext=reader.session)
    assert fault.value.status == CONTEXT_MISMATCH
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-130")
def test_a_null_handle_cannot_be_closed(remote: RemoteWorld) -> None:
    results = remote.peer().call("close_queue", pphContext=None)
    assert (results.result, results.pphContext) == (INVALID_HANDLE, None)


@pytest.mark.rule("QP-131")
def test_closing_a_queue_ends_its_reads(remote: RemoteWorld) -> None:
    reader = remote.reader()
    waiting = [
        reader.start(request=1, timeout=0xFFFFFFFF),
        reader.start(0x80000000, request=2, timeout=60_000),
    ]
    assert not any(call.done for call in waiting)
    assert reader.close() == 0
    assert [call.results.result for call in waiting] == [CANCELED_BY_CLIENT] * 2
    assert [call.results.pphContext for call in waiting] == [None] * 2
    assert len(remote.queues) == 0
    assert not remote.world.manager.find("orders").descriptors
    assert reader.start().results.result == INVALID_PARAMETER
    with pytest.raises(RpcFault) as fault:
        reader.close()
    assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("QP-133")
def test_closing_a_queue_closes_its_cursors(remote: RemoteWorld) -> None:
    reader = remote.reader()
    cursor = reader.cursor()
    reader.close()
    assert not remote.world.manager.find("orders").descriptors
    other = remote.reader()
    assert other.start(hCursor=cursor).results.result == 0xC000000D
    closed = other.peer.call("close_cursor", hQueue=other.handle, hCursor=cursor)
    assert closed.result == INVALID_HANDLE


@pytest.mark.rule("QP-133")
def test_the_numbers_of_cursors_are_free_when_their_queue_is_closed(
    remote: RemoteWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter((7, 9, 8, 9))
    manager = remote.world.manager
    monkeypatch.setattr(manager, "random_bytes", lambda size: next(numbers).to_bytes(size, "little"))
    for _ in range(2):
        reader = remote.reader()
        assert reader.cursor() == 9
        reader.close()


@pytest.mark.rule("QP-134")
def test_closing_a_queue_puts_back_what_was_delivered(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    reader = remote.reader()
    context = reader.start().results.pphContext
    other = remote.reader()
    assert other.start().results.result == 0xC00E001B
    reader.close()
    assert received(other.start(0x80000000)).dwSize
    with pytest.raises(RpcFault) as fault:
        reader.end(context)
    assert fault.value.status == CONTEXT_MISMATCH
    assert remote.world.bodies() == [b"one"]
    assert len(reader.peer.association.handles) == 0


@pytest.mark.rule("QP-135")
def test_closing_a_queue_gives_back_its_share_mode(remote: RemoteWorld) -> None:
    handle = remote.opened(share=Share.DENY_RECEIVE)
    reader = Reader(remote, remote.peer(), handle)
    with pytest.raises(SharingViolation):
        remote.opened()
    reader.close()
    remote.opened(share=Share.DENY_RECEIVE)


@pytest.mark.rule("QP-180", "QP-186")
def test_a_client_that_is_gone_has_closed_everything(remote: RemoteWorld) -> None:
    remote.world.send(b"one")
    handle = remote.opened(share=Share.DENY_RECEIVE)
    reader = Reader(remote, remote.peer(), handle)
    cursor = reader.cursor()
    assert received(reader.start(hCursor=cursor)).dwSize
    waiting = reader.start(request=2, timeout=0xFFFFFFFF)
    reader.peer.lose()
    assert not waiting.done
    assert len(remote.queues) == 0
    assert remote.world.bodies() == [b"one"]
    assert received(Reader(remote, remote.peer(), remote.opened(share=Share.DENY_RECEIVE)).start()).dwSize


@pytest.mark.rule("QP-181", "QP-185", "QP-186")
@pytest.mark.parametrize("start", ["start0", "start", "look_up"])
def test_a_read_is_run_down_before_its_queue(
    remote: RemoteWorld, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    remote.world.send(b"one")
    reader = remote.reader()
    open_then: list[int] = []
    put_back = HandledRead.put_back

    def noted(read: HandledRead) -> None:
        open_then.append(len(remote.queues))
        put_back(read)

    monkeypatch.setattr(HandledRead, "put_back", noted)
    call = reader.look_up(0x40000021, 0) if start == "look_up" else getattr(reader, start)()
    assert received(call).dwSize
    reader.peer.lose()
    assert open_then[0] == 1
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("QP-140", "QP-141")
def test_cursors_are_closed_once(remote: RemoteWorld) -> None:
    reader = remote.reader()
    cursor = reader.cursor()

    def close(queue: int, handle: int) -> int:
        return int(reader.peer.call("close_cursor", hQueue=queue, hCursor=handle).result)

    assert close(reader.handle ^ 1, cursor) == INVALID_HANDLE
    assert close(reader.handle, cursor ^ 1) == INVALID_HANDLE
    assert close(reader.handle, cursor) == 0
    assert close(reader.handle, cursor) == INVALID_HANDLE
    assert reader.start(0x80000000, hCursor=cursor).results.result == 0xC000000D


@pytest.mark.rule("QP-142")
def test_a_read_of_a_cursor_ends_with_it(remote: RemoteWorld) -> None:
    reader = remote.reader()
    cursor = reader.cursor()
    waiting = reader.start(timeout=0xFFFFFFFF, hCursor=cursor)
    reader.peer.call("close_cursor", hQueue=reader.handle, hCursor=cursor)
    assert waiting.results.result == 0xC00E0008
    assert not only(remote).pending


@pytest.mark.rule("QP-003", "QP-160", "QP-161")
def test_the_port_methods_tell_the_ports_of_ip_only(remote: RemoteWorld) -> None:
    peer = remote.peer()
    ports = [peer.call("get_port", dwPortType=kind).result for kind in range(4)]
    assert ports == [2103, 2105, 0, 0]


@pytest.mark.rule("QP-170", "QP-171")
def test_the_version_is_one_from_which_clients_call_start_receive2(remote: RemoteWorld) -> None:
    results = remote.peer().call("get_version")
    assert (results.pMajor, results.pMinor) == (6, 1)
    assert results.pBuildNumber >= 6531
    stub = remote.qm2qm.table.op("get_version").encode_response(results, ndr64=remote.ndr64)
    assert bytes(stub) == bytes((6, 1)) + int(results.pBuildNumber).to_bytes(2, "little")


@pytest.mark.rule("QP-001", "QP-015")
def test_the_interface_and_its_numbers(remote: RemoteWorld) -> None:
    interface = Interface(remote.qm2qm)
    assert str(interface.syntax.uuid) == "1088a980-eae5-11d0-8d9b-00a02453c337"
    assert (interface.syntax.major, interface.syntax.minor) == (1, 0)
    assert [interface.operation(opnum).opnum for opnum in range(11)] == list(range(11))
    with pytest.raises(RpcFault) as fault:
        interface.operation(11)
    assert fault.value.status == OP_RANGE


@pytest.mark.rule("QP-007", "QP-010", "QP-011")
def test_who_may_call(remote: RemoteWorld) -> None:
    policy = remote.qm2qm.policy
    assert all(policy.allows(opnum, level=1, anonymous=True) for opnum in range(11))
    strict = replace(policy, minimum_level=5, anonymous=False)
    allowed = [opnum for opnum in range(11) if strict.allows(opnum, level=1, anonymous=True)]
    assert allowed == [7]
    assert not strict.refuse_by_fault


def test_who_may_not_open_a_queue_does_not_get_a_handle(remote: RemoteWorld) -> None:
    with pytest.raises(AccessDenied):
        remote.queues.open(DEAD_LETTERS, Access.RECEIVE, Share.DENY_NONE, caller())
    remote.queues.open(DEAD_LETTERS, Access.RECEIVE, Share.DENY_NONE, ADMIN)
    assert len(remote.queues) == 1
