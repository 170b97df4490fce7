"""The random operations on queues, each done on both sides."""

from __future__ import annotations

from msmq_fast.packet.message import Message as Sent
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.reading.lookup import Lookup

from .model import Cursor, Message, Queue, Refused, Waiter
from .sides import DERIVED, SUB, USER, Sides
from .visible import body_of, keyed, path

MOVED = (*USER[:4], *SUB)
SENT_TO = ("plain", "plain", "jour", "tx", "txj")
ADMIN = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
MOST = 40  # messages of a queue before it is emptied rather than filled


class Operations(Sides):
    """Operations outside transactions."""

    def _queue(self) -> tuple[str, Queue]:
        names = list(self.model.queues)
        if self._dirty():
            names = [name for name in names if name not in DERIVED]
        name = self.random.choice(names)
        return name, self.model.queues[name]

    def _dirty(self) -> bool:
        """Whether a derived queue got something whose key is not known yet."""
        return any(queue.name in DERIVED for queue in self.model.news)

    def _message(self) -> tuple[Sent, int | None]:
        random = self.random
        self.bodies += 1
        lifetime = random.choice([None, None, None, 4, 30])
        message = Sent(
            body=body_of(self.bodies, random.choice([0, 0, 10, 300, 1500])),
            priority=random.randrange(8),
            delivery=Delivery(random.randrange(2)),
            journal=Journal(random.choice([0, 0, 0, 1, 2, 3])),
        )
        if random.random() < 0.2:
            message.acknowledge = Acknowledge(random.choice([1, 2, 8, 15]))
            message.admin_queue = ADMIN
        if lifetime is not None:
            message.time_to_be_received = lifetime
        return message, lifetime

    def _as_model(self, sent: Sent, lifetime: int | None, transactional: bool) -> Message:
        return Message(
            (0, int(sent.body.split(b":")[0])),
            0 if transactional else sent.priority,
            0,
            bool(sent.delivery) or transactional,
            transactional,
            len(sent.to_packet()),
            sent.message_id,
            deadline=None if lifetime is None else self.model.now + lifetime,
            acknowledge=int(sent.acknowledge),
            journal=int(sent.journal),
        )

    def _do_send(self) -> None:
        name = self.random.choice(SENT_TO)
        queue = self.model.queues[name]
        if len(queue.messages) > MOST:
            self._do_receive(name)
            return
        sent, lifetime = self._message()
        self.note(f"send to {name}: {sent.body[:8]!r} p{sent.priority} {sent.delivery!s} ttl {lifetime}")
        try:
            completion = self.senders[name].send(sent)
        except MSMQError as error:
            self.same("send", type(error).__name__, self._refused(queue, sent, lifetime))
            return
        message = self._as_model(sent, lifetime, False)
        try:
            self.model.send(queue, message)
        except Refused as refused:
            self.fail(f"send to {name} was taken instead of {refused}")
        self.open.append(("send", keyed(completion, message), True))

    def _refused(self, queue: Queue, sent: Sent, lifetime: int | None) -> str:
        try:
            self.model.send(queue, self._as_model(sent, lifetime, False))
        except Refused as refused:
            return str(refused)
        return "taken"

    def _do_receive(self, name: str | None = None) -> None:
        if name is None or (name in DERIVED and self._dirty()):
            name, queue = self._queue()
        else:
            queue = self.model.queues[name]
        handle = self.random.choice(self.readers[name])
        if self._waited(queue):
            return
        self.both(f"receive {name}", lambda: handle.receive(0), lambda: self.model.receive(queue))

    def _waited(self, queue: Queue) -> bool:
        return bool(queue.waiters)

    def _do_peek(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        self.both(
            f"peek {name}",
            lambda: handle.receive(0, peek=True),
            lambda: self.model.receive(queue, peek=True),
        )

    def _do_wait(self) -> None:
        name = self.random.choice(MOVED)
        queue = self.model.queues[name]
        peek, timeout = self.random.random() < 0.3, self.random.choice([None, 1500, 20500])
        due = None if timeout is None else int(self.world.clock.seconds * 1000) + timeout + 1
        self.note(f"wait on {name} peek={peek} timeout={timeout}")
        waiter = self.model.wait(queue, Waiter(peek, due=due))
        request = self.random.choice(self.readers[name]).receive(timeout, peek=peek)
        self.requests.append((name, request, waiter))

    def _do_lookup(self) -> None:
        name, queue = self._queue()
        key = self._key(queue)
        operation, peek = self.random.choice(list(Lookup)), self.random.random() < 0.6
        handle = self.random.choice(self.readers[name])
        self.both(
            f"lookup {name} {key:#x} {operation.name} peek={peek}",
            lambda: handle.lookup(key, operation, peek=peek),
            lambda: self.model.lookup(queue, key, operation.name, peek=peek),
        )

    def _key(self, queue: Queue) -> int:
        keys = [message.key for message in queue.messages if message.key is not None]
        if not keys or self.random.random() < 0.1:
            return self.random.choice([0, 5, (4 << 56) + self.random.randrange(1, 200), (1 << 64) - 1])
        return self.random.choice(keys)

    def _do_begin(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        owner = handle
        if self._waited(queue):
            return
        got: list[int | None] = []

        def begin() -> Message:
            message = self.model.receive(queue, owner=owner)
            got.append(message.key)
            return message

        self.both(f"begin {name}", lambda: handle.begin(0), begin)
        if got and got[0] is not None:
            self.holds.append((name, handle, got[0], owner))

    def _do_end(self) -> None:
        if not self.holds:
            return
        name, handle, key, owner = self.random.choice(self.holds)
        queue = self.model.queues[name]
        other = self.random.random() < 0.1
        if other:
            handle = next(reader for reader in self.readers[name] if reader is not handle)
            owner = handle
        if name in DERIVED and self._dirty():
            return
        delete = self.random.random() < 0.5
        if not other and self.random.random() < 0.8:
            self.holds.remove((name, handle, key, owner))
        self.both(
            f"end {name} {key:#x} delete={delete}",
            lambda: handle.end(key, delete=delete),
            lambda: self.model.finish(queue, key, owner, delete=delete),
        )

    def _do_cursor(self) -> None:
        if len(self.cursors) < 6 and self.random.random() < 0.2:
            name, queue = self._queue()
            cursor = Cursor()
            self.note(f"open cursor {name}")
            self.cursors.append((name, self.random.choice(self.readers[name]).open_cursor(), cursor))
            self.model.cursors.setdefault(queue, []).append(cursor)
            return
        if not self.cursors:
            return
        name, real, cursor = self.random.choice(self.cursors)
        queue = self.model.queues[name]
        if name in DERIVED and self._dirty():
            return
        kind = self.random.choice(["peek", "next", "next", "next", "receive", "close"])
        what = f"cursor {real.number} of {name}: {kind}"
        if kind == "peek":
            self.both(what, lambda: real.peek(0), lambda: self.model.cursor_peek(queue, cursor))
        elif kind == "next":
            self.both(what, lambda: real.peek_next(0), lambda: self.model.cursor_next(queue, cursor))
        elif kind == "receive":
            active = [each for each in self.transactions if each[1].state == "active"]
            if queue.transactional and active and self.random.random() < 0.5:
                hold, tx = self.random.choice(active)
                self.both(
                    f"{what} in transaction {tx.number}",
                    lambda: real.receive(0, hold=hold),
                    lambda: self.model.cursor_receive(queue, cursor, tx),
                )
                return
            self.both(what, lambda: real.receive(0), lambda: self.model.cursor_receive(queue, cursor))
        elif self.random.random() < 0.5:
            self.note(what)
            real.close()
            self.cursors.remove((name, real, cursor))
            self.model.cursors[queue].remove(cursor)

    def _do_close(self) -> None:
        """A reader goes: its cursors close, its waiting reads end, what it has locked is back."""
        name, queue = self._queue()
        at = self.random.randrange(2)
        handle = self.readers[name][at]
        self.note(f"close a reader of {name}")
        mine = [request for request in self.requests if request[1] in handle._requests]
        if any(not completion.done for _, completion, _ in self.open) or any(w.result for _, _, w in mine):
            return  # a read that is under way would have to be given back
        for _, _, waiter in mine:
            self.model.end(queue, waiter, "OperationCancelled")
        for entry in [entry for entry in self.cursors if entry[1].number in handle.cursors]:
            self.cursors.remove(entry)
            self.model.cursors[queue].remove(entry[2])
        for hold in [hold for hold in self.holds if hold[1] is handle]:
            self.holds.remove(hold)
            message = queue.find(hold[2])
            if message is not None and message.owner is hold[3]:
                self.model.unlock(queue, message)
        handle.close()
        self.readers[name][at] = self.world.manager.open(path(name), Access.RECEIVE)

    def _do_move(self) -> None:
        name = self.random.choice(MOVED)
        target = self.random.choice(MOVED)
        if self.random.random() < 0.8:
            family = [other for other in MOVED if other.split(";")[0] == name.split(";")[0]]
            target = self.random.choice(family)
        queue, goal = self.model.queues[name], self.model.queues[target]
        key = self._key(queue)
        handle = self.random.choice(self.readers[name])
        self.both(
            f"move {key:#x} from {name} to {target}",
            lambda: handle.move(key, self.movers[target]),
            lambda: self.model.move(queue, key, goal),
        )

    def _do_purge(self) -> None:
        name, queue = self._queue()
        handle = self.random.choice(self.readers[name])
        self.both(f"purge {name}", handle.purge, lambda: self.model.purge(queue))

    def _do_time(self) -> None:
        if self._doomed:
            return
        self.settle()
        seconds = self.random.choice([1, 3, 11])
        self.note(f"{seconds} s pass")
        self.world.advance(seconds)
        self.model.pass_time(seconds)
        self.model.settle()
        self.model.time_out(int(self.world.clock.seconds * 1000))
        self.settle()
