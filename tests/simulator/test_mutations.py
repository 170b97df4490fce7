"""The simulator finds what it is there to find: each of these bugs, planted on purpose, fails a seed."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from msmq_fast._native.history import DuplicateHistory
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.outbound import order_ack as native_order_ack
from msmq_fast._native.queue import QueueCore
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.transfer import Transfer
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.outgoing import resending
from msmq_fast.qm.reading.readers import Subscription
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.server.mqqb import listener as mqqblistener
from msmq_fast.server.mqqb.listener import MqqbListener
from msmq_fast.srmp import channel, transfer
from msmq_fast.srmp.outgoing import Request, Requests
from msmq_fast.srmp.sending import StreamReceipts
from msmq_fast.srmp.streams import IncomingStreams
from msmq_fast.srmp.urls import Url
from msmq_fast.store.completion import Completion
from tests.support.mqqb.wire import ordinal

from .account import Wrong
from .computer import Computer
from .simulation import Simulation

SEEDS = range(40)
LIE = 5  # commits that a lying disk keeps in its memory

Patch = pytest.MonkeyPatch


def acknowledged_before_durable(patch: Patch) -> None:
    """The disk says that it has what it has not: the last commits are lost in a crash."""
    committed, crash = Computer._committed, Computer.crash
    kept: dict[str, list[list[dict[bytes, bytes]]]] = {}

    def commit(computer: Computer) -> None:
        committed(computer)
        kept.setdefault(computer.name, []).append([dict(table) for table in computer.tables.tables])

    def lose(computer: Computer, **how: bool) -> None:
        crash(computer, **how)
        images = kept.pop(computer.name, [])
        if len(images) > LIE:
            computer.tables.tables[:] = images[-LIE]

    patch.setattr(Computer, "_committed", commit)
    patch.setattr(Computer, "crash", lose)


def history_not_persisted(patch: Patch) -> None:
    """A restart forgets which messages were taken in."""
    patch.setattr(mqqblistener, "load_history", lambda *_: DuplicateHistory())


def history_forgets_early(patch: Patch) -> None:
    """A computer knows the last message only that it took in."""
    patch.setattr(mqqblistener, "load_history", lambda *_: DuplicateHistory(1))


def incoming_streams_not_loaded(patch: Patch) -> None:
    """A restart forgets where the streams that arrive stand."""
    patch.setattr(mqqblistener, "load_streams", lambda *_: None)


def release_lost_at_close(patch: Patch) -> None:
    """What was in flight when a session ended stays locked."""
    patch.setattr(OutgoingChannel, "released", lambda *_: None)


def in_flight_taken_for_delivered(patch: Patch) -> None:
    """What was in flight when a session ended is removed."""

    def released(source: OutgoingChannel, owner: int, lookup_ids: array[int]) -> None:
        source.acknowledged(owner, lookup_ids)

    patch.setattr(OutgoingChannel, "released", released)


def order_ack_covers_too_much(patch: Patch) -> None:
    """An OrderAck removes one message more than it states, if there is one."""

    def order_ack(ledger: Ledger, identifier: int, number: int) -> QueueCore | None:
        more = native_order_ack(ledger, identifier, number + 1)
        return more if more is not None else native_order_ack(ledger, identifier, number)

    patch.setattr(resending, "order_ack", order_ack)


def renumbered_on_reconnect(patch: Patch) -> None:
    """What no OrderAck covers gets new numbers when a session ends."""
    ended = OutgoingChannel.ended

    def renumber(source: OutgoingChannel, owner: int, *, idle: bool) -> None:
        ended(source, owner, idle=idle)
        sequence = source.sequence
        if sequence is None or sequence.sent:
            return
        places: list[tuple[int, int]] = []
        for key in sequence.keys():  # noqa: SIM118 - no mapping
            source.core.peek(key, lambda message, _, key=key: places.append((key, ordinal(message.packet))))
        if len(places) != len(sequence.keys()):
            return  # some are not in memory
        for key, _ in places:
            sequence.remove(key)
        for key, number in places:
            sequence.assign(key, number)

    patch.setattr(OutgoingChannel, "ended", renumber)


def commit_answered_early(patch: Patch) -> None:
    """A program hears of its commit before that is durable."""
    commit = Transaction.commit

    def early(transaction: Transaction) -> Completion[None]:
        commit(transaction)
        return Completion.of(None)

    patch.setattr(Transaction, "commit", early)


def abort_sends(patch: Patch) -> None:
    """An aborted transaction is committed."""
    patch.setattr(Transaction, "abort", Transaction.commit)


def no_reconnect(patch: Patch) -> None:
    """A failed connection is not tried again."""
    patch.setattr(Transfer, "_wait", lambda *_: None)


def streams_end_with_sessions(patch: Patch) -> None:
    """Where the streams that arrive stand is forgotten when a session ends."""
    closed = MqqbListener._session_closed

    def forget(listener: MqqbListener, session: Session) -> None:
        closed(listener, session)
        listener.session_context.streams.forget(1 << 31)

    patch.setattr(MqqbListener, "_session_closed", forget)


def nobody_waits_for_order_acks(patch: Patch) -> None:
    """A session acknowledgment is enough for a transactional message to be removed."""

    def acknowledged(source: OutgoingChannel, owner: int, lookup_ids: array[int]) -> None:
        for key in lookup_ids:
            source.queue.core.remove(key, owner)

    patch.setattr(OutgoingChannel, "acknowledged", acknowledged)


def given_back_stays_locked(patch: Patch) -> None:
    """What a reader gives back is not available again."""
    patch.setattr(Subscription, "release", lambda *_: 0)


MUTATIONS = [
    acknowledged_before_durable,
    history_not_persisted,
    history_forgets_early,
    incoming_streams_not_loaded,
    release_lost_at_close,
    in_flight_taken_for_delivered,
    order_ack_covers_too_much,
    renumbered_on_reconnect,
    commit_answered_early,
    abort_sends,
    no_reconnect,
    streams_end_with_sessions,
    nobody_waits_for_order_acks,
    given_back_stays_locked,
]


# ---- over HTTP


def every_answer_is_good(patch: Patch) -> None:
    """A message that was answered with 500 counts as delivered."""
    patch.setattr(transfer, "judge", lambda status: True)


def nobody_waits_for_stream_receipts(patch: Patch) -> None:
    """Messages of streams leave when they are answered."""

    def removed(core: QueueCore, key: int, owner: int, keeper: int) -> bool:
        core.remove(key, owner)
        return False

    patch.setattr(channel, "answered", removed)


def begins_again_though_answered(patch: Patch) -> None:
    """A stream begins again under a new identifier when a request of it has failed."""
    returned = channel.HttpChannel.returned

    def begin(source: Any) -> None:
        returned(source)
        sequence = source._core.sequence
        sequence.answered = False
        if sequence.first_unordered is not None:
            native_order_ack(source._core.ledger, sequence.identifier, sequence.first_unordered[0])

    patch.setattr(channel.HttpChannel, "returned", begin)


def a_new_identifier_for_each_attempt(patch: Patch) -> None:
    """What is sent again is a new message for its receiver."""
    call = Requests.__call__
    ordinals = count(1 << 30)

    def renamed(requests: Requests, packet: bytes, url: Url, place: Any) -> Request:
        return call(requests, packet[:56] + next(ordinals).to_bytes(4, "little") + packet[60:], url, place)

    patch.setattr(Requests, "__call__", renamed)


def no_retransmission(patch: Patch) -> None:
    """A failed message is not tried again."""
    patch.setattr(Deadlines, "set", lambda deadlines, key, deadline: None)


def arriving_http_streams_are_forgotten(patch: Patch) -> None:
    """A restart forgets where streams stand that arrive by HTTP."""
    patch.setattr(IncomingStreams, "load", lambda *_: None)


def stream_receipts_cover_too_much(patch: Patch) -> None:
    """A stream receipt says more than was taken."""
    receipt = StreamReceipts.stream_receipt

    def more(receipts: StreamReceipts, sender: UUID, sequence: int, last: int, now: float) -> None:
        receipt(receipts, sender, sequence, last + 1, now)
        receipt(receipts, sender, sequence, last, now)

    patch.setattr(StreamReceipts, "stream_receipt", more)


HTTP_MUTATIONS = [
    acknowledged_before_durable,
    history_not_persisted,
    every_answer_is_good,
    nobody_waits_for_stream_receipts,
    begins_again_though_answered,
    a_new_identifier_for_each_attempt,
    no_retransmission,
    arriving_http_streams_are_forgotten,
    stream_receipts_cover_too_much,
]


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("plant", MUTATIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    _find(plant, monkeypatch, http=False)


@pytest.mark.long(seconds=25)
@pytest.mark.parametrize("plant", HTTP_MUTATIONS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found_over_http(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    _find(plant, monkeypatch, http=True)


def _find(plant: Callable[[Patch], None], monkeypatch: Patch, *, http: bool) -> None:
    plant(monkeypatch)
    for seed in SEEDS:
        simulation = Simulation(seed, http=http)
        try:
            simulation.run()
        except (Wrong, RuntimeError) as error:
            print(f"seed {seed}: {error!r}")
            return
    pytest.fail(f"{len(SEEDS)} seeds, and nobody noticed")
