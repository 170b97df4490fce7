"""Fault injection: what remains after an exception at any call inside a unit of work is the same in memory
and in the store.
"""

from __future__ import annotations

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.operator.importing import Import
from msmq_fast.qm.operator.jobs import Progress
from msmq_fast.qm.operator.relocation import Outcome, relocate
from msmq_fast.qm.queues.browse import Selection, Stretch
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.support.worlds.injection import Operation, failing, lines
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import staged

FAR = "DIRECT=OS:far\\private$\\q"
ALIAS = "DIRECT=OS:Alias\\private$\\orders"
ADMIN = parse_format_name("DIRECT=OS:HOST\\private$\\admin")
ALL = Stretch(Selection())


def world(**settings: object) -> World:
    return World(faults=Faults, transaction_idle=60, **settings)


def orders(**properties: object) -> World:
    return filled(world(), **properties)


def filled(made: World, **properties: object) -> World:
    made.create("admin")
    made.create(**properties)
    for number in range(3):
        made.send(
            b"%d" % number,
            journal=Journal.DEADLETTER,
            time_to_be_received=60,
            acknowledge=Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
            admin_queue=ADMIN,
        )
    return made


def transactional() -> World:
    made = world()
    made.create("admin")
    made.create(transactional=True, journaling=True)
    made.create("target", transactional=True)
    transaction = made.manager.transactions.begin()
    for number in range(2):
        handle = made.sender()
        TransactedQueue(handle, transaction).send(Message(body=b"%d" % number))
    made.finish(transaction.commit())
    return made


def begun(made: World) -> object:
    transaction = made.manager.transactions.begin()
    reader = TransactedQueue(made.reader(), transaction)
    received = reader.receive(0)
    made.run()
    received.completion.result()
    TransactedQueue(made.sender("target"), transaction).send(Message(body=b"new"))
    TransactedQueue(made.sender(FAR), transaction).send(Message(body=b"far"))
    return transaction


def commit(made: World) -> object:
    return begun(made).commit()  # type: ignore[attr-defined]


def abort(made: World) -> object:
    return begun(made).abort()  # type: ignore[attr-defined]


def prepare(made: World) -> object:
    transaction = begun(made)
    made.finish(transaction.prepare())  # type: ignore[attr-defined]
    return transaction.abort()  # type: ignore[attr-defined]


def several(made: World) -> None:
    names = "DIRECT=OS:HOST\\private$\\orders,DIRECT=OS:HOST\\private$\\admin"
    asking = {"acknowledge": Acknowledge.POSITIVE_ARRIVAL, "admin_queue": ADMIN}
    handle = made.manager.open_destinations(names, Access.SEND)
    handle.send(Message(body=b"x", delivery=1, **asking))  # type: ignore[arg-type]


def receive(made: World) -> None:
    handle = made.reader()
    taken: list[object] = []
    try:
        handle.subscribe(taken.extend, 2, acknowledge=False)
        made.run()
    finally:
        handle.close()


def acknowledge(made: World) -> None:
    handle = made.reader()
    taken: list[object] = []
    try:
        subscription = handle.subscribe(taken.extend, 2, acknowledge=True)
        made.run()
        subscription.ack([each.lookup_id for each in taken[:1]])  # type: ignore[attr-defined]
    finally:
        handle.close()


def give_back(made: World) -> None:
    core = made.manager.find("orders").core
    core.receive_bulk(3, 1 << 20, lambda *_: None, wanted=lambda: False)


def move(made: World) -> None:
    handle, target = made.reader(), made.manager.open(".\\private$\\orders;sub", Access.MOVE)
    try:
        handle.move(next(iter(made.manager.find("orders").core.positions.keys())), target)
        made.run()
    finally:
        target.close()
        handle.close()


def home(made: World) -> None:
    queue = made.manager.find(ALIAS)
    assert isinstance(queue, OutgoingQueue)
    queue.deliver_locally()


def aliased() -> World:
    made = world()
    made.create("admin")
    made.create()
    for number in range(2):
        made.send(b"%d" % number, ALIAS, acknowledge=Acknowledge.POSITIVE_ARRIVAL, admin_queue=ADMIN)
    return made


def two() -> World:
    made = orders()
    made.create("target")
    return made


def lease(made: World) -> None:
    manager = made.manager
    done = manager.leases.lease("spark", manager.find("orders"), 2, 1 << 20)
    made.run()
    done.result()
    made.advance(3600)


def dead_letters() -> World:
    made = orders()
    made.advance(61)
    return made


def again(made: World) -> None:
    manager = made.manager
    manager.resubmission.resubmit(manager.find(".\\system$;DEADLETTER"), ALL, None)


def express() -> World:
    made = world()
    made.create("target")
    made.create()
    for number in range(3):
        made.send(b"%d" % number, delivery=0)
    return made


def shift(made: World, *, keep: bool = False) -> None:
    manager, job = made.manager, bytes(16)
    target = manager.find("target")

    def noted(outcome: Outcome) -> None:
        manager.jobs.advance(job, Progress(outcome.count, outcome.next, target.guid.bytes_le))

    relocate(manager.store, manager.find("orders"), target, ALL, keep=keep, also=noted)


def restore(made: World) -> None:
    manager = made.manager
    queue = manager.find("orders")
    entries = []
    queue.core.peek(
        next(iter(queue.core.positions.keys())),
        lambda message, _: entries.append((message.packet, message.arrived_us, 0, 0, 0)),
    )
    running = Import(manager.services, manager.jobs, bytes(16))
    try:
        made.finish(running.begin(anew=True))
        running.put(manager.find("target"), 0, entries, skip=False, last=False)
        made.run()
    finally:
        running.close()


def staged_batch(made: World) -> None:
    manager = made.manager
    rows = [("orders", b"new"), (FAR, b"far")]
    names = [staged(made, rows, number=number) for number in range(2)]
    manager.staging.publish("w", 0, 0, names[:1], owner="")
    made.run()
    manager.staging.publish("w", 0, 1, names[1:], owner="")
    made.run()
    made.advance(601)


def vote(made: World) -> None:
    transaction = begun(made)
    made.finish(transaction.prepare())  # type: ignore[attr-defined]
    made.finish(transaction.commit())  # type: ignore[attr-defined]


def poisoned() -> World:
    made = world()
    made.create(transactional=True, poison_after=1)
    transaction = made.manager.transactions.begin()
    for number in range(2):
        TransactedQueue(made.sender(), transaction).send(Message(body=b"%d" % number))
    made.finish(transaction.commit())
    return made


def poison(made: World) -> None:
    for _ in range(2):
        transaction = made.manager.transactions.begin()
        reader = made.reader()
        try:
            made.finish(TransactedQueue(reader, transaction).receive(0).completion)
            made.finish(transaction.abort())
        finally:
            reader.close()


def settle_lease(made: World) -> None:
    manager = made.manager
    queue = manager.find("orders")
    made.finish(manager.leases.lease("spark", queue, 2, 1 << 20))
    made.finish(manager.leases.ack("spark", queue, 1))
    made.finish(manager.leases.release("spark", queue, 2))


def outgoing() -> World:
    made = world()
    made.finish(made.sender(FAR).send(Message(body=b"x", delivery=1)))
    queue = made.manager.find(FAR)
    made.manager.purge(queue)
    made.run()
    return made


def retire(made: World) -> None:
    queue = made.manager.find(FAR)
    assert isinstance(queue, OutgoingQueue)
    made.manager.outgoing_queues.discard(queue)


def subscribed() -> World:
    made = orders()
    made.finish(made.manager.events.subscriptions.create("before"))
    return made


def subscribe(made: World) -> None:
    subscriptions = made.manager.events.subscriptions
    made.finish(subscriptions.create("lake"))
    made.finish(subscriptions.commit("lake", made.manager.events.feed.bounds()[1]))
    made.finish(subscriptions.drop("before"))


def trim(made: World) -> None:
    made.manager.events.trim(0, 0, 100)


OPERATIONS = (
    Operation("create private", world, lambda made: made.manager.create_queue("new", journaling=True)),
    Operation("create public", world, lambda made: made.manager.create_queue("HOST\\new")),
    Operation("delete", orders, lambda made: made.manager.delete_queue("orders")),
    Operation(
        "set properties",
        orders,
        lambda made: made.manager.set_properties(made.manager.find("orders"), label="x", quota_kb=9),
    ),
    Operation(
        "send",
        lambda: orders(journaling=True),
        lambda made: made.send(b"x", acknowledge=Acknowledge.POSITIVE_ARRIVAL, admin_queue=ADMIN),
    ),
    Operation("send elsewhere", world, lambda made: made.send(b"x", FAR)),
    Operation("send to several", orders, several),
    Operation("commit", transactional, commit),
    Operation("abort", transactional, abort, once=True),
    Operation("prepare", transactional, prepare),
    Operation("receive", lambda: orders(journaling=True), receive),
    Operation("receive and acknowledge", lambda: orders(journaling=True), acknowledge),
    Operation("receive and give back", lambda: orders(journaling=True), give_back, once=True),
    Operation("move to a subqueue", orders, move, once=True),
    Operation("move by an operator", two, shift, once=True),
    Operation("move express messages by an operator", express, shift, once=True, stored=False),
    Operation("copy by an operator", two, lambda made: shift(made, keep=True)),
    Operation("import", two, restore),
    Operation("messages for this computer", aliased, home, once=True),
    Operation("lease", orders, lease),
    Operation("settle a lease", orders, settle_lease),
    Operation("poison", poisoned, poison, once=True),
    Operation("prepare and commit", transactional, vote),
    Operation("stage and publish", lambda: filled(world(stage_lifetime=600.0)), staged_batch),
    Operation("delete an outgoing queue", outgoing, retire),
    Operation("subscriptions of the feed", subscribed, subscribe),
    Operation("trim the feed", orders, trim),
    Operation("expiry", orders, lambda made: made.advance(61)),
    Operation("purge", orders, lambda made: made.manager.purge(made.manager.find("orders"))),
    Operation("dead letters again", dead_letters, again, once=True),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_at_each_site(operation: Operation) -> None:
    found = failing(operation, everywhere=False)
    assert not found, lines(found)


@pytest.mark.long(seconds=15)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_at_every_call(operation: Operation) -> None:
    found = failing(operation, everywhere=True)
    assert not found, lines(found)
