"""Another queue manager to which a host of the matrix sends transactional messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmq_fast._native.outbound import final_ack, order_ack
from msmq_fast.packet import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import PositionFlag
from tests.faults.matrix.account import Stored, stored
from tests.faults.matrix.host import Host

Act = Callable[[Host], Completion[Any]]

REMOTE = r"DIRECT=OS:THERE\private$\far"
ASKED = Journal.JOURNAL | Journal.DEADLETTER


def commit(*bodies: str, journal: Journal = Journal.NONE) -> Act:
    """Send messages in one transaction."""

    def act(host: Host) -> Completion[Any]:
        transaction = host.manager.transactions.begin()
        handle = host.sender(REMOTE)
        for body in bodies:
            TransactedQueue(handle, transaction).send(Message(body=body.encode(), journal=journal))
        handle.close()
        return transaction.commit()

    return act


def _queue(host: Host) -> OutgoingQueue:
    queue = host.manager.find(REMOTE)
    assert isinstance(queue, OutgoingQueue)
    return queue


def _message(host: Host, body: str) -> Stored:
    found = [one for one in stored(host) if one.message.body == body.encode()]
    return found[0]


def order(body: str) -> Act:
    """Everything is transmitted and kept by the session; then comes the OrderAck up to a message."""

    def act(host: Host) -> Completion[Any]:
        core, owner = _queue(host).core, host.manager.ledger.new_owner()
        assert core.sequence is not None
        keys = core.sequence.keys()
        for key in keys:
            core.claim(key, owner)
            core.sequence.transmit(key)
        core.acked(keys, owner)
        place = _message(host, body).record
        ledger = host.manager.ledger

        def fill() -> None:
            order_ack(ledger, place.sequence_id, place.sequence_number)

        done = host.manager.records.unit(fill)
        core.release(keys, owner)
        return done

    return act


def final(body: str, kind: MessageClass) -> Act:
    """The FinalAck for a message."""

    def act(host: Host) -> Completion[Any]:
        place = _message(host, body).record

        def fill() -> None:
            final_ack(host.manager.ledger, place.ordinal, place.sequence_id, place.sequence_number, int(kind))

        return host.manager.records.unit(fill)

    return act


def places(host: Host) -> list[str]:
    """The bodies of the messages that wait for a FinalAck. Every other one has a number, which never changes,
    and the list in memory knows it."""
    queue = _queue(host)
    sequence = queue.core.sequence
    assert sequence is not None
    known: dict[bytes, tuple[int, int]] = host.__dict__.setdefault("places", {})
    numbered: list[Stored] = []
    waiting: list[str] = []
    for one in stored(host):
        if one.queue != queue.ordinal:
            continue
        place = one.record.sequence_id, one.record.sequence_number
        assert place[1], "a message without a number"
        assert known.setdefault(one.message.message_id.to_bytes(4), place) == place, "a new number"
        if one.record.flags & PositionFlag.ORDERED:
            waiting.append(one.message.body.decode())
        else:
            numbered.append(one)
    numbers = [(one.record.sequence_id, one.record.sequence_number) for one in numbered]
    assert numbers == sorted(set(numbers)), f"the order of numbers: {numbers}"
    assert {identifier for identifier, _ in numbers} <= {sequence.identifier}
    assert not numbers or sequence.next_number > numbers[-1][1]
    assert len(set(known.values())) == len(known), "a number was given twice"
    return waiting
