"""Transactions of dependent clients (MS-MQMP 3.1.4.12 … 3.1.4.16, 3.1.7.3)."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.rpc.faults import CONTEXT_MISMATCH, RpcFault
from msmq_fast.rpc.services.dependent.server import DependentPolicy
from tests.support.rpc.dependents import Dependent, DependentWorld, sent, wanted

TRANSACTION_SEQUENCE, TRANSACTION_USAGE, DTC_CONNECT = 0xC00E0051, 0xC00E0050, 0xC00E004C
INVALID_HANDLE, ILLEGAL_OPERATION, OPERATION_CANCELLED = 0xC00E0007, 0xC00E0064, 0xC00E0008
UOW, OTHER = bytes(range(16)), bytes(range(16, 32))


@pytest.fixture(params=[False, True], ids=["ndr", "ndr64"])
def remote(request: pytest.FixtureRequest) -> DependentWorld:
    return DependentWorld(ndr64=request.param, transactional=True)


def fill(client: Dependent, *bodies: bytes) -> None:
    """Send messages, each alone in a transaction."""
    queue = client.opened(access=2)
    for number, body in enumerate(bodies):
        uow = bytes([number + 100]) * 16
        handle = client.enlist(uow).phIntXact
        assert client.send(queue, sent(body, pUow=uow)).result == 0
        assert client.call("commit_transaction", phIntXact=handle).result == 0


@pytest.mark.rule("MP-095", "MP-100", "MP-176")
def test_what_is_sent_is_there_with_the_commit(remote: DependentWorld) -> None:
    client = remote.dependent()
    queue = client.opened(access=2)
    begun = client.enlist()
    assert begun.result == 0
    assert begun.phIntXact is not None
    assert remote.world.manager.transactions.find(UUID(bytes_le=UOW))
    for body in (b"one", b"two"):
        results = client.send(queue, sent(body, pUow=UOW))
        assert results.result == 0
        assert results.pMessageID.Uniquifier
    assert remote.world.bodies() == []
    ended = client.call("commit_transaction", phIntXact=begun.phIntXact)
    assert (ended.result, ended.phIntXact) == (0, None)
    remote.world.crash()
    assert remote.world.bodies() == [b"one", b"two"]


@pytest.mark.rule("MP-100")
def test_the_answer_to_a_commit_waits_for_the_disk(remote: DependentWorld) -> None:
    client = remote.dependent()
    handle = client.enlist().phIntXact
    assert client.send(client.opened(access=2), sent(b"one", pUow=UOW)).result == 0
    run, remote.world.run = remote.world.run, lambda: None  # type: ignore[method-assign]
    call = client.qmcomm.begin("commit_transaction", phIntXact=handle)
    remote.world.manager.before_submit()
    assert not call.done
    run()
    assert call.results.result == 0


@pytest.mark.rule("MP-101", "MP-193")
@pytest.mark.parametrize("commit", [True, False])
def test_what_is_received_is_gone_with_the_commit(remote: DependentWorld, commit: bool) -> None:
    client = remote.dependent()
    fill(client, b"one", b"two")
    queue = client.opened()
    handle = client.enlist().phIntXact
    assert client.body(queue, pUow=UOW) == b"one"
    results = client.receive(queue, wanted(pUow=UOW))
    assert results.ptb.old.pUow == UOW
    assert client.receive(queue).result == 0xC00E001B
    ended = client.call("commit_transaction" if commit else "abort_transaction", phIntXact=handle)
    assert (ended.result, ended.phIntXact) == (0, None)
    assert remote.world.bodies() == ([] if commit else [b"one", b"two"])
    remote.world.crash()
    assert remote.world.bodies() == ([] if commit else [b"one", b"two"])


@pytest.mark.rule("MP-176", "MP-193")
def test_without_a_transaction_that_was_enlisted(remote: DependentWorld) -> None:
    client = remote.dependent()
    fill(client, b"one")
    assert client.send(client.opened(access=2), sent(pUow=UOW)).result == TRANSACTION_SEQUENCE
    for action in (0, 0x80000000):
        assert client.receive(client.opened(), wanted(action, pUow=UOW)).result == TRANSACTION_SEQUENCE
    assert client.send(client.opened(access=2), sent()).result == TRANSACTION_USAGE
    remote.dependent().enlist()  # by another client under the same identifier
    assert client.send(client.opened(access=2), sent(pUow=UOW)).result == TRANSACTION_SEQUENCE
    assert client.receive(client.opened(), wanted(pUow=UOW)).result == TRANSACTION_SEQUENCE
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("MP-176", "MP-193")
def test_queues_that_take_part_in_no_transaction() -> None:
    remote = DependentWorld()
    client = remote.dependent()
    client.enlist()
    remote.world.send(b"one")
    assert client.send(client.opened(access=2), sent(pUow=UOW)).result == TRANSACTION_USAGE
    assert client.receive(client.opened(), wanted(pUow=UOW)).result == TRANSACTION_USAGE


@pytest.mark.rule("MP-193")
def test_a_peek_leaves_the_transaction_alone(remote: DependentWorld) -> None:
    client = remote.dependent()
    fill(client, b"one")
    handle = client.enlist().phIntXact
    assert client.body(client.opened(), 0x80000000, pUow=UOW) == b"one"
    assert client.call("commit_transaction", phIntXact=handle).result == 0
    assert remote.world.bodies() == [b"one"]


@pytest.mark.rule("MP-096", "MP-097")
def test_an_identifier_is_enlisted_once_and_used_by_its_client(remote: DependentWorld) -> None:
    client, other = remote.dependent(), remote.dependent()
    handle = client.enlist().phIntXact
    for again in (client, other):
        results = again.enlist()
        assert (results.result, results.phIntXact) == (TRANSACTION_SEQUENCE, None)
    assert other.send(other.opened(access=2), sent(pUow=UOW)).result == TRANSACTION_SEQUENCE
    with pytest.raises(RpcFault) as fault:
        other.call("commit_transaction", phIntXact=handle)
    assert fault.value.status == CONTEXT_MISMATCH
    assert client.call("commit_transaction", phIntXact=handle).result == 0
    assert other.enlist().result == 0


@pytest.mark.rule("MP-102")
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_a_handle_ends_once(remote: DependentWorld, end: str) -> None:
    client = remote.dependent()
    handle = client.enlist().phIntXact
    client.call(end, phIntXact=handle)
    with pytest.raises(RpcFault) as fault:
        client.call(end, phIntXact=handle)
    assert fault.value.status == CONTEXT_MISMATCH
    assert client.call(end, phIntXact=None).result == INVALID_HANDLE
    queue = client.opened()
    with pytest.raises(RpcFault) as fault:
        client.call(end, phIntXact=queue.phQueue)
    assert fault.value.status == CONTEXT_MISMATCH


@pytest.mark.rule("MP-102")
def test_a_transaction_that_was_idle_for_too_long(remote: DependentWorld) -> None:
    client = remote.dependent()
    fill(client, b"one")
    handle = client.enlist().phIntXact
    assert client.body(client.opened(), pUow=UOW) == b"one"
    remote.world.advance(601)
    assert remote.world.bodies() == [b"one"]
    assert client.send(client.opened(access=2), sent(pUow=UOW)).result == TRANSACTION_SEQUENCE
    again = client.enlist()
    assert again.result == 0
    ended = client.call("commit_transaction", phIntXact=handle)
    assert (ended.result, ended.phIntXact) == (TRANSACTION_SEQUENCE, None)
    assert client.send(client.opened(access=2), sent(pUow=UOW)).result == 0
    assert client.call("abort_transaction", phIntXact=again.phIntXact).result == 0


@pytest.mark.rule("MP-212")
def test_a_client_that_is_lost_aborts(remote: DependentWorld) -> None:
    client = remote.dependent()
    fill(client, b"one", b"two")
    client.enlist()
    client.enlist(OTHER)
    assert client.body(client.opened(), pUow=UOW) == b"one"
    client.send(client.opened(access=2), sent(b"three", pUow=OTHER))
    client.lose()
    assert remote.world.bodies() == [b"one", b"two"]
    assert len(remote.world.manager.transactions) == 0
    assert len(remote.server.transactions) == 0
    assert remote.dependent().enlist().result == 0


@pytest.mark.rule("MP-101", "MP-197")
def test_a_read_that_waits_ends_with_the_transaction(remote: DependentWorld) -> None:
    client = remote.dependent()
    handle = client.enlist().phIntXact
    waiting = client.begin_receive(client.opened(), wanted(timeout=0xFFFFFFFF, pUow=UOW))
    client.call("abort_transaction", phIntXact=handle)
    assert waiting.results.result == OPERATION_CANCELLED


@pytest.mark.rule("MP-007", "MP-090", "MP-091")
def test_there_is_no_coordinator(remote: DependentWorld) -> None:
    client = remote.dependent()
    where = client.call("get_tm_whereabouts", cbBufSize=100)
    assert (where.result, where.pbWhereabouts, where.pcbWhereabouts) == (DTC_CONNECT, bytes(100), 0)

    def join(client: Dependent, uow: bytes) -> int:
        return int(client.call("enlist_transaction", pUow=uow, cbCookie=4, pbCookie=b"cook").result)

    client.enlist()
    assert join(client, UOW) == 0
    assert join(client, OTHER) == DTC_CONNECT
    assert join(remote.dependent(), UOW) == DTC_CONNECT
    assert len(remote.world.manager.transactions) == 1


@pytest.mark.rule("MP-003")
def test_nothing_of_this_without_dependent_clients() -> None:
    client = DependentWorld(policy=DependentPolicy(enabled=False)).dependent()
    assert client.enlist().result == ILLEGAL_OPERATION
    assert client.call("get_tm_whereabouts", cbBufSize=0).result == ILLEGAL_OPERATION
    for name in ("commit_transaction", "abort_transaction"):
        assert client.call(name, phIntXact=None).result == ILLEGAL_OPERATION
    cookie = {"pUow": UOW, "cbCookie": 0, "pbCookie": b""}
    assert client.call("enlist_transaction", **cookie).result == ILLEGAL_OPERATION
