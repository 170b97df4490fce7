"""RemoteRead as a client: removals and purges that are refused, and what a queue is closed by."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.protocol.errors import AccessDenied, MSMQError
from msmq_fast.qm.access import Access
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.rpc.fake_computers import CONTEXT, Reader, RemoteReadComputer
from tests.support.rpc.fakes import Network

INVALID_HANDLE = 0xC00E0007


@pytest.fixture
def network() -> Network:
    return Network()


def refuse(computer: RemoteReadComputer, name: str) -> None:
    """Have an operation fail with INVALID_HANDLE."""

    def refused(args: Any) -> Any:
        return REMOTE_READ.op(name).results(args, result=INVALID_HANDLE)

    computer.server.handlers[name] = refused


@pytest.mark.rule("RR-095")
def test_a_message_whose_removal_is_refused_is_not_given(network: Network) -> None:
    computer = RemoteReadComputer(network, b"first")
    refuse(computer, "end_receive")
    read = Reader(network).open().receive(0)
    network.run()
    failure = read.completion.exception()
    assert isinstance(failure, MSMQError)
    assert failure.code == INVALID_HANDLE


@pytest.mark.rule("RR-097")
def test_a_purge_that_is_refused(network: Network) -> None:
    computer = RemoteReadComputer(network)
    refuse(computer, "purge_queue")
    done = Reader(network).open().purge()
    network.run()
    failure = done.exception()
    assert isinstance(failure, MSMQError)
    assert failure.code == INVALID_HANDLE
    assert computer.server.asked("purge_queue")[0].args.phContext == CONTEXT


@pytest.mark.rule("RR-097")
def test_a_queue_that_is_open_for_peeking_is_not_purged(network: Network) -> None:
    computer = RemoteReadComputer(network)
    queue = Reader(network).open(Access.PEEK)
    with pytest.raises(AccessDenied):
        queue.purge()
    network.run()
    assert "purge_queue" not in computer.server.names()


@pytest.mark.rule("RR-100")
def test_a_queue_is_closed_by_its_context(network: Network) -> None:
    computer = RemoteReadComputer(network)
    Reader(network).open().close()
    network.run()
    assert computer.server.asked("close_queue")[0].args.pphContext == CONTEXT
