"""qmcomm as remote readers use it: queues, contexts, cursors, ports (MS-MQMP 3.1.4.1 … 3.1.4.4, 3.1.4.24)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.names import Suffix
from msmq_fast.rpc.faults import CONTEXT_MISMATCH, RpcFault
from msmq_fast.rpc.idl.mqmq import QUEUE_FORMAT
from msmq_fast.rpc.idl.qmcomm import TRANSFER_BUFFER_V1, TRANSFER_SEND
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from msmq_fast.rpc.services.queueformat import name_of
from tests.support.rpc.dependents import NOBODY, ORDERS, DependentWorld, named, open_remote
from tests.support.rpc.peers import Reader, received

INVALID_PARAMETER, INVALID_HANDLE, QUEUE_NOT_FOUND = 0xC00E0006, 0xC00E0007, 0xC00E0003
ACCESS_DENIED, UNSUPPORTED_ACCESS_MODE = 0xC00E0025, 0xC00E0045
UNSUPPORTED_FORMATNAME_OPERATION, ILLEGAL_FORMATNAME = 0xC00E0020, 0xC00E001E
STATUS_SHARING_VIOLATION = 0xC0000043


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param)


@pytest.mark.rule("MP-020", "MP-025")
def test_a_queue_is_opened_under_one_number_that_cannot_be_guessed(remote: DependentWorld) -> None:
    peer = remote.client()
    handles = set()
    for _ in range(50):
        opened = open_remote(peer)
        assert opened.result == 0
        assert opened.pphContext is not None
        assert opened.pdwContext == opened.dwpQueue == opened.phQueue != 0
        handles.add(opened.phQueue)
    assert len(handles) == 50
    ordered = sorted(handles)
    assert all(after - before > 1 for before, after in pairwise(ordered))
    assert len(remote.world.manager.find("orders").descriptors) == 50


@pytest.mark.rule("MP-021")
@pytest.mark.parametrize(
    ("values", "result"),
    [
        ({"text": ""}, INVALID_PARAMETER),
        ({"access": 0}, UNSUPPORTED_ACCESS_MODE),
        ({"access": 2}, UNSUPPORTED_ACCESS_MODE),
        ({"access": 0x81}, UNSUPPORTED_ACCESS_MODE),
        ({"share": 2}, INVALID_PARAMETER),
        ({"text": r"DIRECT=OS:HOST\private$\nosuch"}, QUEUE_NOT_FOUND),
        ({"text": r"DIRECT=OS:OTHER\private$\orders"}, QUEUE_NOT_FOUND),
        ({"text": "MULTICAST=234.1.1.1:8001"}, UNSUPPORTED_FORMATNAME_OPERATION),
        ({"text": "DL=11111111-2222-3333-4444-555555555555"}, UNSUPPORTED_FORMATNAME_OPERATION),
        ({"text": "DIRECT=HTTP://HOST/msmq/private$/orders"}, UNSUPPORTED_FORMATNAME_OPERATION),
    ],
)
def test_what_is_wrong_opens_nothing(remote: DependentWorld, values: dict[str, object], result: int) -> None:
    opened = open_remote(remote.client(), **values)  # type: ignore[arg-type]
    assert opened.result == result
    assert (opened.pphContext, opened.pdwContext, opened.dwpQueue, opened.phQueue) == (None, 0, 0, 0)
    assert not remote.world.manager.find("orders").descriptors
    assert not list(remote.world.manager.outgoing())


@pytest.mark.rule("MP-021")
@pytest.mark.parametrize(
    "wrong",
    [
        QUEUE_FORMAT(0, 0, 0, None),
        QUEUE_FORMAT(3, 0, 0, r"OS:HOST"),
        QUEUE_FORMAT(3, 0, 0, None),
        QUEUE_FORMAT(3, 0x0F, 0, r"OS:HOST\private$\orders"),
        QUEUE_FORMAT(8, 0x81, 0, r"OS:HOST\private$\orders;sub"),
    ],
)
def test_a_queue_format_that_is_no_name(remote: DependentWorld, wrong: object) -> None:
    assert open_remote(remote.client(), pQueueFormat=wrong).result == ILLEGAL_FORMATNAME


@pytest.mark.rule("MP-026")
@pytest.mark.parametrize(
    "text",
    [
        "DL=11111111-2222-3333-4444-555555555555",
        "MULTICAST=234.1.1.7:8001",
        r"DIRECT=OS:HOST\private$\orders;sub",
    ],
)
def test_a_suffix_that_a_type_does_not_have(remote: DependentWorld, text: str) -> None:
    wrong = named(text)
    wrong.m_SuffixAndFlags = Suffix.JOURNAL
    assert open_remote(remote.client(), pQueueFormat=wrong).result == ILLEGAL_FORMATNAME


@pytest.mark.rule("MP-022")
def test_client_and_system_are_not_looked_at(remote: DependentWorld) -> None:
    for system in (0, 0x100, 0x500, 0xFFFFFFFF):
        values = {"dwMQS": system, "dwCallingProcessID": 0, "pLicGuid": NULL_GUID}
        assert open_remote(remote.client(), **values).result == 0


@pytest.mark.rule("MP-023")
def test_an_exclusive_reader_keeps_others_out(remote: DependentWorld) -> None:
    peer = remote.client()
    first = open_remote(peer, share=1)
    assert first.result == 0
    assert open_remote(remote.client()).result == STATUS_SHARING_VIOLATION
    peer.call("close_remote_queue_context", pphContext=first.pphContext)
    assert open_remote(remote.client(), share=1).result == 0


@pytest.mark.rule("MP-006")
def test_access_is_that_of_the_caller(remote: DependentWorld) -> None:
    assert open_remote(remote.client(NOBODY)).result == ACCESS_DENIED
    assert not remote.world.manager.find("orders").descriptors


@pytest.mark.rule("MP-024", "MP-030")
def test_a_context_that_is_closed_closes_the_queue_unless_somebody_reads_it(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    peer = remote.client()
    opened = open_remote(peer)
    reader = Reader(remote, remote.peer(), opened.phQueue)
    assert peer.call("close_remote_queue_context", pphContext=opened.pphContext).pphContext is None
    assert received(reader.start(0x80000000)).dwSize
    again = open_remote(peer)
    peer.call("close_remote_queue_context", pphContext=again.pphContext)
    taken = remote.peer().call(
        "open_queue",
        pLicGuid=again.pLicGuid,
        dwMQS=0,
        hQueue=0,
        pQueue=again.phQueue,
        dwpContext=again.phQueue,
    )
    assert taken.result == INVALID_PARAMETER
    assert len(remote.world.manager.find("orders").descriptors) == 1


@pytest.mark.rule("MP-031")
def test_a_context_is_closed_once_and_by_its_client(remote: DependentWorld) -> None:
    peer = remote.client()
    opened = open_remote(peer)
    with pytest.raises(RpcFault) as fault:
        remote.client().call("close_remote_queue_context", pphContext=opened.pphContext)
    assert fault.value.status == CONTEXT_MISMATCH
    assert peer.call("close_remote_queue_context", pphContext=None).pphContext is None
    assert len(remote.queues) == 1
    peer.call("close_remote_queue_context", pphContext=opened.pphContext)
    assert len(remote.queues) == 0
    with pytest.raises(RpcFault) as fault:
        peer.call("close_remote_queue_context", pphContext=opened.pphContext)
    assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("MP-211")
def test_a_client_that_is_lost_leaves_nothing_open(remote: DependentWorld) -> None:
    remote.world.send(b"one")
    peer = remote.client()
    read, unread = open_remote(peer), open_remote(peer)
    reader = Reader(remote, remote.peer(), read.phQueue)
    peer.lose()
    assert remote.queues.find(unread.phQueue) is None
    assert received(reader.start()).dwSize
    assert len(remote.world.manager.find("orders").descriptors) == 1


@pytest.mark.rule("MP-040")
def test_cursors_belong_to_the_queue_of_a_handle(remote: DependentWorld) -> None:
    for text in (b"one", b"two"):
        remote.world.send(text)
    peer = remote.client()
    opened = open_remote(peer)
    nothing = TRANSFER_BUFFER_V1(transfer=TRANSFER_SEND())
    cursors = [
        peer.call("create_remote_cursor", ptb1=nothing, hQueue=opened.phQueue).phCursor for _ in range(20)
    ]
    assert len(set(cursors)) == 20
    assert 0 not in cursors
    reader = Reader(remote, remote.peer(), opened.phQueue)
    assert received(reader.start(0x80000000, hCursor=cursors[0])).dwSize
    assert received(reader.start(0x80000001, hCursor=cursors[0])).dwSize
    missing = peer.call("create_remote_cursor", ptb1=nothing, hQueue=opened.phQueue ^ 1)
    assert (missing.result, missing.phCursor) == (INVALID_HANDLE, 0)


@pytest.mark.rule("MP-150")
def test_the_ports_that_are_served(remote: DependentWorld) -> None:
    peer = remote.client(NOBODY)
    answers = [peer.call("get_rtqm_server_port", fIP=kind).result for kind in (0, 1, 2, 3, 4, 0xFFFFFFFF)]
    assert answers == [2103, 2105, 0, 0, 0, 0]


@pytest.mark.rule("MP-010")
@pytest.mark.parametrize("enabled", [True, False])
def test_the_name_of_a_remote_queue_is_obsolete(enabled: bool) -> None:
    remote = DependentWorld(policy=DependentPolicy(enabled=enabled))
    with pytest.raises(RpcFault) as fault:
        remote.client().call("get_remote_queue_name", pQueue=1, lplpRemoteQueueName=None)
    assert fault.value.status == 0xC00E0064


@pytest.mark.rule("MP-003")
def test_remote_readers_are_served_where_dependent_clients_are_not() -> None:
    remote = DependentWorld(policy=DependentPolicy(enabled=False))
    assert open_remote(remote.client()).result == 0
    assert remote.client().call("get_rtqm_server_port", fIP=0).result == 2103


@pytest.mark.rule("MP-026")
@pytest.mark.parametrize(
    "text",
    [
        ORDERS,
        r"DIRECT=TCP:10.0.0.7\private$\orders",
        r"DIRECT=OS:HOST\private$\orders;JOURNAL",
        r"DIRECT=OS:HOST\SYSTEM$;DEADXACT",
        r"DIRECT=OS:HOST\private$\orders;sub",
        "PUBLIC=11111111-2222-3333-4444-555555555555",
        "PRIVATE=11111111-2222-3333-4444-555555555555\\0000000a;JOURNAL",
        "MACHINE=11111111-2222-3333-4444-555555555555;DEADLETTER",
        "CONNECTOR=11111111-2222-3333-4444-555555555555;XACTONLY",
        "DL=11111111-2222-3333-4444-555555555555@example.net",
        "MULTICAST=234.1.1.7:8001",
    ],
)
def test_format_names_and_queue_formats(text: str) -> None:
    given = named(text)
    assert str(name_of(given)).casefold() == text.casefold()
