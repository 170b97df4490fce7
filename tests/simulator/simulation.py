"""One run: computers, links, programs and trouble, all drawn from a seed; then calm, and the account is
checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from msmq_fast._native.queuebase import Received
from msmq_fast.config.sections import RouteDeclaration
from msmq_fast.packet.message import Message
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.outgoing.stalls import stall_of
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.store.schema import Table

from . import programs
from .account import EXPIRED, Account, Kind, Stream, Wrong
from .computer import Computer
from .network import HTTP_PORT, Network, Weather
from .programs import READERS, Program
from .timeline import Timeline

IDLE_EVENTS, EVENTS = 300_000, 150  # a run, and for each message: more, and something goes round in circles
START = 3.0  # all computers have their queues
SESSIONS_END = (
    "handshake timeout",
    "acknowledgment timeout",
    "refused by the peer",
    "superseded",
    "queue manager quota",
    "store failed",
    "peer reads too slowly",
    "peer writes too slowly",
    "slow request",
    "slow reader",
)
SAID_LATER = ("computer quota", "not stored", "stopping")  # the sender tries again
LONGEST = 40 * 3600.0  # seconds after which what is not there will never come
Trace = Callable[[float, str, str], None]


@dataclass(frozen=True)
class Size:
    """How much happens: messages of all streams together, seconds of trouble."""

    messages: int = 900
    trouble: float = 120.0


LONG = Size(messages=4_000, trouble=500.0)


@dataclass
class Place:
    """A queue of programs."""

    computer: Computer
    name: str
    transactional: bool
    reader: str
    quota_kb: int
    journaling: bool
    purged: bool
    number: int = 0  # by which private names know it

    @property
    def where(self) -> str:
        return f"{self.computer.name}/{self.name}"


def identifier_of(description: str) -> str:
    """`uuid:7@guid to …`, as MS-MQQB shows it."""
    ordinal, _, rest = description.removeprefix("uuid:").partition("@")
    return f"{{{rest[:36]}}}\\{ordinal}"


def unlimited(computer: Computer) -> bool:
    """Whether a computer has no quota of its own."""
    return computer.config.queue_manager.quota == 2**32 - 1


def reachable(places: list[Place], sender: Computer) -> list[Place]:
    """The queues that a computer may send to: those of others, if there are some, else its own. Of two that
    are full of messages for each other neither would ever take one.
    """
    free = [place for place in places if unlimited(sender) or unlimited(place.computer)]
    elsewhere = [place for place in free if place.computer is not sender]
    home = [place for place in places if place.computer is sender]
    if sender.config.listen.http.port is not None and not unlimited(sender):
        home = []  # by HTTP, messages for itself need room twice
    return elsewhere or home


class Simulation:
    """`run` raises Wrong, or what the servers raise."""

    def __init__(
        self,
        seed: int,
        size: Size | None = None,
        *,
        transactional: bool = True,
        http: bool = False,
        trace: Trace | None = None,
    ) -> None:
        """`http`: messages go by SRMP over HTTP, not by MS-MQQB."""
        self.seed = seed
        self._http = http
        self.size = size or Size()
        self._trace = trace
        self._transactional = transactional
        self.random = Random(f"{seed}")
        self.timeline = Timeline()
        self.network = Network(self.timeline, Random(f"{seed}network"))
        self.computers = [self._computer(number) for number in range(self.random.choice([2, 2, 3, 4, 5]))]
        self.account = Account({computer.name: computer.crashes for computer in self.computers}, self.tell)
        self.places: list[Place] = []
        self.jobs: list[tuple[Computer, Callable[[], programs.Steps]]] = []
        self.running: dict[str, list[Program]] = {computer.name: [] for computer in self.computers}
        self.readers: dict[str, list[programs.Reader]] = {computer.name: [] for computer in self.computers}
        self.streams_of: dict[str, list[Callable[[Computer], programs.Steps]]] = {
            computer.name: [] for computer in self.computers
        }
        self._most = IDLE_EVENTS + EVENTS * self.size.messages
        self.cuts = self.stalls = self.severed = self.full = self.relayed = 0
        self._last_crashes = 0

    def tell(self, who: str, what: str) -> None:
        if self._trace is not None:
            self._trace(self.timeline.now, who, what)

    # ------------------------------------------------------------------------------------------- the world

    def _computer(self, number: int) -> Computer:
        name = ("ALPHA", "BETA", "GAMMA", "DELTA", "EPSILON")[number]
        computer = Computer(name, f"10.0.0.{number + 1}", self.timeline, self.network, f"{self.seed}")
        config, random = computer.config, self.random
        if self._http:
            self._web(computer)
        config.mqqb.window = random.choice([1, 4, 64, 64, 200])
        config.mqqb.retry_interval = random.choice([0.5, 5.0])
        config.mqqb.ping = random.random() < 0.2
        config.queue_manager.cache = random.choice([0, 20_000, 64 << 20])
        config.mqqb.resend_short = random.choice([5.0, 30.0])
        config.mqqb.order_ack_delay = random.choice([0.05, 0.5, 0.5, 2.0])
        if number and random.random() < 0.25:
            config.queue_manager.quota = 120
        return computer

    def _web(self, computer: Computer) -> None:
        """Speaks SRMP."""
        config, random = computer.config, self.random
        config.listen.http.port = HTTP_PORT
        config.srmp.public_host = computer.address
        config.srmp.retry_interval = random.choice([1.0, 5.0, 20.0])
        config.srmp.response_timeout = random.choice([5.0, 60.0])
        config.srmp.idle_timeout = random.choice([2.0, 30.0, 300.0])
        config.srmp.connections_per_host = random.choice([1, 2, 8])
        config.srmp.receipt_delay = random.choice([0.05, 0.5, 2.0])
        config.srmp.check_expiry = random.random() < 0.5
        web = computer.web
        web.unheard = random.choice([0.0, 0.0, 0.03, 0.2])
        web.unsaid = random.choice([0.0, 0.0, 0.03, 0.2])
        web.slow = random.choice([0.0, 0.0, 0.01, 0.1])

    def _route(self) -> None:
        """The ways of private names: straight, or through the last computer, which may be a router."""
        router = self.computers[-1] if len(self.computers) > 2 and self.random.random() < 0.6 else None
        if router is not None:
            router.config.mqqb.router = True
            self.account.routers.append(router.name)
            router.config.queue_manager.quota = 2**32 - 1
        for computer in self.computers:
            for other in self.computers:
                if other is not computer:
                    straight = router in (None, computer, other)
                    hop = other if straight or router is None else router
                    route = RouteDeclaration(str(other.guid), (hop.address,))
                    computer.config.routes.append(route)

    def _lay_out(self) -> None:
        """Queues, readers and senders."""
        random = self.random
        for computer in self.computers:
            for number in range(random.choice([1, 1, 2])):
                transactional = self._transactional and random.random() < 0.5
                quota = random.choice([2**32 - 1] * 4 + [20]) if not transactional else 2**32 - 1
                reader = random.choice(list(READERS) if transactional else list(READERS)[:3])
                # Copies would use up a small quota for good.
                journaling = random.random() < 0.3 and unlimited(computer)
                purged = random.random() < 0.1
                place = Place(computer, f"q{number}", transactional, reader, quota, journaling, purged)
                self.places.append(place)
                if journaling:
                    self.account.journaling.add(place.where)
        plain = [place for place in self.places if not place.transactional]
        bound = [place for place in self.places if place.transactional]
        senders = max(2, random.randint(1, 2) * len(self.computers))
        each = max(1, self.size.messages // senders)
        for number in range(senders):
            computer = self.computers[number % len(self.computers)]
            span = random.uniform(0.2, 0.9) * self.size.trouble
            others = reachable(plain, computer)
            targets = reachable(bound, computer)
            if targets and (not others or random.random() < 0.5):
                self._transactional_sender(computer, random.sample(targets, min(len(targets), 2)), each, span)
            elif others:
                kind = random.choice([Kind.EXPRESS, Kind.RECOVERABLE, Kind.RECOVERABLE])
                self._sender(computer, random.choice(others), kind, each, span)

    def _name(self, place: Place, style: int) -> str:
        """A format name of a queue, which exists."""
        computer = place.computer
        if self._http:
            host = computer.address if style % 2 else computer.name
            return f"DIRECT=HTTP://{host}/msmq/private$/{place.name}"
        if style == 0:
            return rf"DIRECT=TCP:{computer.address}\private$\{place.name}"
        if style == 1:
            return rf"DIRECT=OS:{computer.name}\private$\{place.name}"
        return rf"PRIVATE={computer.guid}\{place.number:08x}"

    def _may_expire(self, kind: Kind, place: Place, computer: Computer) -> bool:
        """A receiver that drops what has expired by its own clock answers 200; a stream whose beginning it
        dropped so never gets there before it has expired as a whole. Messages of a computer to itself have no
        final receipts.
        """
        if not self._http:
            return True
        checked = place.computer.config.srmp.check_expiry
        if kind is not Kind.TRANSACTIONAL:
            return checked  # else the queue drops it, without a dead letter
        return not checked and place.computer is not computer

    def _stream(self, kind: Kind, computer: Computer, place: Place) -> Stream:
        random = self.random
        journal = random.choice([Journal.NONE, Journal.NONE, Journal.JOURNAL])
        if not unlimited(computer):
            journal = Journal.NONE  # copies would use up its quota for good
        reach = receive = None
        if (
            random.random() < 0.15
            and all(map(unlimited, self.computers))
            and self._may_expire(kind, place, computer)
        ):
            journal |= Journal.DEADLETTER
            reach, receive = random.choice([(3, None), (20, None), (None, 8), (60, 90)])
        return self.account.stream(
            kind,
            computer.name,
            place.computer.name,
            place.name,
            journal=journal,
            reach=reach,
            receive=receive,
            counted=not place.purged,
        )

    def _sender(self, computer: Computer, place: Place, kind: Kind, count: int, span: float) -> None:
        stream = self._stream(kind, computer, place)
        style = self.random.randrange(4)
        random = Random(f"{self.seed}stream{stream.number}")
        self.streams_of[computer.name].append(
            lambda computer: programs.sender(
                computer, self.account, stream, self._name(place, style), count, span, random
            )
        )

    def _transactional_sender(self, computer: Computer, places: list[Place], count: int, span: float) -> None:
        streams: list[tuple[Stream, Place, int]] = []
        for place in places:
            stream = self._stream(Kind.TRANSACTIONAL, computer, place)
            streams.append((stream, place, self.random.randrange(4)))
        random = Random(f"{self.seed}stream{streams[0][0].number}")
        each = max(1, count // len(streams))
        self.streams_of[computer.name].append(
            lambda computer: programs.transactional_sender(
                computer,
                self.account,
                [(stream, self._name(place, style)) for stream, place, style in streams],
                each,
                span,
                random,
            )
        )

    # ----------------------------------------------------------------------------------------- programs

    def _started(self, computer: Computer) -> None:
        manager = computer.manager
        self.tell(computer.name, f"start {computer.starts}, {manager.guid}")
        for place in self.places:
            if place.computer is computer and f"private$\\{place.name}" not in manager.registry:
                manager.create_queue(
                    place.name,
                    transactional=place.transactional,
                    quota_kb=place.quota_kb,
                    journaling=place.journaling,
                )
        for place in self.places:
            if place.computer is computer:
                place.number = manager.find(rf".\private$\{place.name}").private_number
        computer.touch()
        if computer.starts > 1:
            self._begin(computer)

    def _begin(self, computer: Computer) -> None:
        for place in self.places:
            if place.computer is computer:
                self._read(computer, place)
        for begin in self.streams_of[computer.name]:
            self.running[computer.name].append(Program(computer, begin(computer)))

    def _refused(self, computer: Computer, what: str, reason: str, detail: str) -> None:
        self.tell(computer.name, f"refused {what}: {reason} {detail}")
        if what == "message" and self._http:
            if reason not in SAID_LATER:
                self.account.refuse(identifier_of(detail), EXPIRED if reason == "expired" else reason)
        elif what == "message":
            self.account.refuse(detail, reason)
        elif what != "sent message" and reason not in SESSIONS_END:  # its receiver has told of that one
            raise Wrong(f"{computer.name} ended a session: {reason} {detail}")

    def _read(self, computer: Computer, place: Place) -> None:
        for number in range(self.random.choice([1, 1, 3])):
            random = Random(f"{self.seed}{place.where}{computer.starts}{number}")
            reader = READERS[place.reader](computer, self.account, place.name, random)
            self.readers[computer.name].append(reader)
            self.running[computer.name].append(Program(computer, reader.steps()))

    def _crashed(self, computer: Computer) -> None:
        self.relayed += computer.relayed
        self.account.repeated += computer.repeated
        for reader in self.readers[computer.name]:
            reader.crashed()
        for program in self.running[computer.name]:
            program.end()
        self.readers[computer.name].clear()
        self.running[computer.name].clear()

    # ------------------------------------------------------------------------------------------ trouble

    def _trouble(self) -> None:
        """Draw all of it ahead: it does not depend on what the servers do."""
        random, span = self.random, self.size.trouble
        for first in range(len(self.computers)):
            for second in range(first + 1, len(self.computers)):
                self._link(self.computers[first], self.computers[second])
        for computer in self.computers:
            for _ in range(random.choice([0, 0, 1, 2, 3])):
                at = random.uniform(START, span)
                self.timeline.at(at, self._crash, computer, random.random())
            for _ in range(random.choice([0, 0, 1])):
                self.timeline.at(random.uniform(START, span), self._full, computer, random.uniform(0.1, 8.0))
            for _ in range(random.choice([0, 0, 1])):
                self.timeline.at(random.uniform(START, span), self._step, computer, random.uniform(-40, 40))
            for _ in range(random.choice([0, 1, 3])):
                self.timeline.at(random.uniform(START, span), self._pause, computer, random.uniform(0.1, 30))

        for place in self.places:
            if place.purged:
                for _ in range(3):
                    self.timeline.at(random.uniform(START, span), self._purge, place)

    def _purge(self, place: Place) -> None:
        if place.computer.ready:
            self.tell(place.computer.name, f"purge {place.name}")
            place.computer.manager.purge(place.computer.manager.find(rf".\private$\{place.name}"))
            place.computer.touch()

    def _link(self, first: Computer, second: Computer) -> None:
        random, span = self.random, self.size.trouble
        pair = (first.address, second.address)
        weather = self.network.weather(*pair)
        weather.latency = random.choice([0.0002, 0.002, 0.03, 0.3])
        weather.jitter = weather.latency * random.choice([0.1, 1.0, 3.0])
        weather.splits = random.choice([0.05, 0.3, 0.9])
        weather.refusals = random.choice([0.0, 0.0, 0.1, 0.4])
        weather.orphans = random.choice([0.0, 0.0, 0.1, 0.3])
        weather.losses = random.choice([0.0, 0.2, 0.5])
        every = random.choice([2.0, 8.0, 40.0, 1e9])
        at = START + random.expovariate(1 / every)
        while at < span:
            kind = random.random()
            if kind < 0.6:
                self.timeline.at(at, self._cut, pair, random.random() < 0.3)
            elif kind < 0.85:
                self.timeline.at(at, self._stall, weather, random.choice([0.5, 5.0, 30.0, 90.0]))
            else:
                self.timeline.at(at, self._sever, weather, random.choice([1.0, 10.0, 60.0]))
            at += random.expovariate(1 / every)

    def _cut(self, pair: tuple[str, str], silent: bool) -> None:
        for connection in self.network.between(pair):
            self.cuts += 1
            self.tell("network", f"cut {pair}{', nobody is told' if silent else ''}")
            connection.cut(silent=silent)

    def _stall(self, weather: Weather, seconds: float) -> None:
        self.stalls += 1
        weather.stalled_until = max(weather.stalled_until, self.timeline.now + seconds)

    def _sever(self, weather: Weather, seconds: float) -> None:
        self.severed += 1
        weather.severed_until = max(weather.severed_until, self.timeline.now + seconds)

    def _crash(self, computer: Computer, how: float) -> None:
        if not computer.ready:
            return
        down = self.random.choice([0.1, 3.0, 20.0])
        if how < 0.1:
            self.tell(computer.name, "stop")
            computer.stop()
            down += 12.0
        else:
            silent, landed = how > 0.8, 0.3 < how < 0.7
            self.tell(computer.name, f"crash{', silent' * silent}{', after a commit' * landed}")
            computer.crash(silent=silent, landed=landed)
        self.timeline.after(down, self._start, computer)

    def _start(self, computer: Computer) -> None:
        if computer.up:
            self.timeline.after(1.0, self._start, computer)
        else:
            computer.start()

    def _full(self, computer: Computer, seconds: float) -> None:
        self.full += 1
        self.tell(computer.name, f"the disk is full for {seconds:.1f} s")
        computer.disk.full_until = self.timeline.now + seconds

    def _step(self, computer: Computer, seconds: float) -> None:
        self.tell(computer.name, f"the wall clock is set by {seconds:.1f} s")
        computer.clock.step(seconds)

    def _pause(self, computer: Computer, seconds: float) -> None:
        queues = list(computer.manager.outgoing()) if computer.ready else []
        if queues:
            queue = self.random.choice(queues)
            self.tell(computer.name, f"pause {queue.name}")
            computer.manager.pause(queue)
            computer.touch()
            self.timeline.after(seconds, self._resume, computer, queue.name)

    def _resume(self, computer: Computer, name: str) -> None:
        if computer.ready:
            self._release(computer, name)
        else:
            self.timeline.after(1.0, self._resume, computer, name)

    def _release(self, computer: Computer, name: str = "") -> None:
        """Resume an outgoing queue, or all of a computer."""
        for queue in computer.manager.outgoing() if computer.ready else ():
            if name in ("", queue.name) and not queue.may_send:
                self.tell(computer.name, f"resume {queue.name}")
                computer.manager.resume(queue)
                computer.touch()

    # ---------------------------------------------------------------------------------------------- run

    def run(self) -> None:
        self._route()
        self._lay_out()
        for computer in self.computers:
            computer.on_refusal = partial(self._refused, computer)
            computer.on_start.append(partial(self._started, computer))
            computer.on_crash.append(partial(self._crashed, computer))
            computer.start()
        self.timeline.run(START)
        self._trouble()
        for computer in self.computers:
            self._begin(computer)
        self.timeline.run(self.size.trouble)
        self.tell("network", "calm")
        for _, weather in self.network.everywhere():
            weather.calm()
        for computer in self.computers:
            computer.web.calm()
        self._drain()
        self._restart()
        self._collect()
        self.account.check()
        self._at_rest()

    def _drain(self) -> None:
        """Until nothing is left anywhere; it may take hours of simulated time, as the longest timers do."""
        step = 1.0
        deadline = self.timeline.now + LONGEST
        quiet = 0
        while quiet < 2:
            for computer in self.computers:
                self._release(computer)  # a crash may have undone it
            self.timeline.run(self.timeline.now + step, self._most)
            quiet = quiet + 1 if self._empty() else 0
            if not quiet:
                step = min(step * 1.3, 600.0)
            if self.timeline.now > deadline or self.timeline.events > self._most * 3 // 4:
                hours = (self.timeline.now - deadline + LONGEST) / 3600
                raise Wrong(f"after {hours:.1f} h of calm: {'; '.join(self._left())}")

    def _empty(self) -> bool:
        if not all(computer.ready for computer in self.computers):
            return False
        if any(self._unfinished()):
            return False
        return not any(True for computer in self.computers for _ in self._full_queues(computer))

    def _unfinished(self) -> list[str]:
        senders = []
        for computer in self.computers:
            count = len(self.streams_of[computer.name])
            programs_ = self.running[computer.name]
            senders += [computer.name for program in programs_[-count:] if count and not program.ended]
        return senders

    def _full_queues(self, computer: Computer) -> list[Queue]:
        kinds = (QueueKind.PRIVATE, QueueKind.PUBLIC, QueueKind.OUTGOING)
        return [queue for queue in computer.manager.queues() if queue.kind in kinds and queue.core.messages]

    def _left(self) -> list[str]:
        left = [f"{name} is still sending" for name in self._unfinished()]
        for computer in self.computers:
            if not computer.ready:
                left.append(f"{computer.name} does not run")
                continue
            for queue in self._full_queues(computer):
                states = [queue.core.positions.state(key) for key in list(queue.core.positions.keys())[:5]]
                text = f"{computer.name} has {queue.core.messages} messages in {queue.name}, states {states}"
                if isinstance(queue, OutgoingQueue):
                    text += f", {queue.outgoing_state.name} {stall_of(queue).reason}"
                left.append(text)
        return left

    def _restart(self) -> None:
        """Everybody crashes once more: nothing comes back that was gone."""
        for computer in self.computers:
            computer.crash()
            self._last_crashes += 1
            computer.start()
        self.timeline.run(self.timeline.now + 30.0)
        if not self._empty():
            self._drain()

    def _collect(self) -> None:
        """What journals and dead-letter queues hold."""
        for computer in self.computers:
            for queue in computer.manager.registry.local():
                if queue.part is None or queue.kind not in (QueueKind.JOURNAL, QueueKind.SYSTEM):
                    continue
                for key in list(queue.core.positions.keys()):
                    queue.core.peek(key, partial(self._found, computer.name, queue.part.queue))
                    computer.store.reader.complete()

    def _found(self, computer: str, queue: str, message: Received | None, status: int) -> None:
        if message is None:
            raise Wrong(f"{computer}: a message of {queue} cannot be read, status {status}")
        self.account.copied(computer, queue, Message.from_packet(message.packet).body)

    def _at_rest(self) -> None:
        """Nothing is locked, counted or stored that is not there."""
        for computer in self.computers:
            ledger = computer.manager.ledger
            stored = computer.store.tables.count(Table.POSITION)
            contents = computer.store.tables.count(Table.CONTENT)
            left = sum(queue.core.messages for queue in computer.manager.queues())
            if ledger.bytes and not left:
                raise Wrong(f"{computer.name} counts {ledger.bytes} bytes in empty queues")
            if stored > left or contents > left * 100:
                raise Wrong(
                    f"{computer.name} stores {stored} positions, {contents} contents, of {left} messages"
                )
            if computer.manager.damage:
                raise Wrong(f"{computer.name} set aside {computer.manager.damage}")

    @property
    def crashes(self) -> int:
        """Without those after the calm."""
        return sum(len(computer.crashes) for computer in self.computers) - self._last_crashes

    def summary(self) -> str:
        return (
            f"{len(self.computers)} computers, {self.network.opened} connections, {self.cuts} cut, "
            f"{self.stalls} stalls, {self.severed} severed, {self.crashes} crashes, "
            f"{self.full} full disks, {self.relayed} relayed, {self.timeline.events} events; "
            f"{self.account.summary()}"
        )
