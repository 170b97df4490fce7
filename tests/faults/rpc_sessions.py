"""Sessions of RPC clients that are real until they are spoiled: binds, logons, calls with handles that they
were given; PDUs and bytes on their way are changed, lost, doubled, cut, or put in another order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random
from typing import Any

from msmq_fast.rpc.auth.context import AuthError, AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters
from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.idl.epm import EPM
from msmq_fast.rpc.idl.mgmt import MGMT
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.ndr.operations import InterfaceTable, Op
from msmq_fast.rpc.ndr.types import ContextHandle
from tests.faults.rpc_scene import Scene
from tests.faults.rpc_values import Known, Plausible
from tests.support.clocks import WALL
from tests.support.rpc import wire
from tests.support.rpc.parties import PASSWORD

SERVED = ((QMCOMM, QMCOMM2, REMOTE_READ, MGMT), (QM2QM, EPM, MGMT))
"""By endpoint."""
_BOUND = (
    ((QMCOMM, QMCOMM2), (QMCOMM, QMCOMM2, REMOTE_READ), (REMOTE_READ,), (QMCOMM,), (REMOTE_READ, MGMT)),
    ((QM2QM,), (QM2QM,), (QM2QM, EPM, MGMT), (EPM,)),
)
"""What is bound to together."""
_OPENING = (
    *("open_remote_queue", "create_remote_cursor", "open_queue_internal", "enlist_internal_transaction"),
    *("open_queue", "open_queue_for_move", "create_cursor", "create_cursor_ex", "start_receive"),
    *("start_receive2", "start_transactional_receive", "send_message_ex", "receive_message_ex", "ept_lookup"),
)
_ENDING = (
    *("end_receive", "end_receive", "end_transactional_receive", "cancel_receive", "move_message"),
    *("commit_transaction", "abort_transaction", "ept_lookup_handle_free"),
)


def _named(names: Sequence[str]) -> dict[str, list[Op]]:
    """Operations of each interface, or all of one that has none of them."""
    tables = QMCOMM, QMCOMM2, REMOTE_READ, QM2QM, EPM, MGMT
    return {
        table.name: [op for name in names for op in table.ops if op.name == name] or list(table.ops)
        for table in tables
    }


_OPENERS, _ENDERS = _named(_OPENING), _named(_ENDING)
"""Operations after which there is more to be done, and those that end something."""
ANSWERS = {wire.BIND_ACK, wire.ALTER_RESPONSE, wire.BIND_NAK, wire.RESPONSE, wire.FAULT}
WHO = (
    Credentials("alice", "", PASSWORD),
    Credentials("alice", "", PASSWORD),
    Credentials(),
    Credentials("x"),
)
WORDS = (0, 1, 2, 3, 4, 0x7F, 0xFF, 0x100, 0x7FFF, 0xFFFF, 0x420000, 0x420001, 0x7FFFFFFF, 0x80000000)
WORDS += (0x80000001, 0xC0000000, 0xFFFFFFFE, 0xFFFFFFFF)
_SIGNATURE = 16
_CONNECTIONS = 3
_MORE = 12  # the last presentation context that an alter_context asks for
_MAGIC = bytes.fromhex("8ae3137102f43671")


def wire_trailer(table: InterfaceTable, opnum: int, *, ndr64: bool) -> bytes:
    """A verification trailer (MS-RPCE 2.2.2.13) with the interface and its transfer syntax."""
    syntaxes = wire.syntax((str(table.uuid), *table.version)) + wire.syntax(wire.NDR64 if ndr64 else wire.NDR)
    return _MAGIC + struct.pack("<HH", 0x4002, len(syntaxes)) + syntaxes


def spoiled_bytes(random: Random, data: bytes) -> bytes:
    """A few bytes or words changed, cut out, put in or cut off."""
    raw = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 5))):
        if not raw:
            break
        at = random.randrange(len(raw))
        kind = random.randrange(7)
        if kind == 0:
            raw[at] = random.randrange(256)
        elif kind == 1:
            raw[at] ^= 1 << random.randrange(8)
        elif kind in (2, 3):
            at &= ~3
            raw[at : at + 4] = struct.pack("<I", random.choice(WORDS))
        elif kind == 4:
            del raw[at : at + random.choice((1, 4, 8, 40))]
        elif kind == 5:
            raw[at:at] = random.randbytes(random.choice((1, 4, 8, 40)))
        else:
            del raw[at:]
    return bytes(raw)


def spoiled_header(random: Random, pdu: bytes) -> bytes:
    """One of the fields that every PDU has, or that requests have."""
    raw = bytearray(pdu)
    at, form, values = random.choice(
        (
            (0, "B", (4, 5, 6)),
            (1, "B", (0, 1, 2)),
            (2, "B", tuple(range(21))),
            (3, "B", (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 0xFF)),
            (4, "B", (0, 0x10, 0x11, 0x20)),
            (8, "<H", (0, 15, 16, 23, 24, 25, len(pdu) - 1, len(pdu) + 1, 5840, 5841, 0xFFFF)),
            (10, "<H", (0, 1, 4, 7, 8, 16, len(pdu) - 24, len(pdu), 0xFFFF)),
            (12, "<I", WORDS),
            (16, "<I", WORDS),
            (20, "<H", WORDS),
            (22, "<H", (*range(40), 0xFFFF)),
        )
    )
    if len(raw) >= at + struct.calcsize(form):
        value = random.choice(values) & (1 << 8 * struct.calcsize(form)) - 1
        struct.pack_into(form, raw, at, value)
    return bytes(raw)


class Client:
    """One connection. `spoil` is how likely a PDU is changed; `trusting`: no PDU of this one was."""

    def __init__(self, scene: Scene, endpoint: int, random: Random, known: Known, spoil: float) -> None:
        self.scene = scene
        self.endpoint = endpoint
        self.random = random
        self.known = known
        self.spoil = spoil
        self.trusting = True
        self.group = 0
        self.sent = 0
        self.answered = 0
        connection = scene.servers[endpoint].open_connection("192.0.2.1", scene.now)
        assert connection is not None
        self.engine: ServerConnection = connection
        self._values = Plausible(random, known)
        self._calls: dict[int, tuple[Op, Any, bool]] = {}
        self._interfaces: dict[int, tuple[InterfaceTable, bool]] = {}
        self._call_id = 0
        self._security: Any = None
        self._type = AuthType.NONE
        self._level = AuthLevel.NONE
        self._signs_header = False
        self._held: list[bytes] = []  # PDUs that come later than they should
        self._more = 7

    # ---- what it says

    def bind(self, group: int = 0) -> None:
        """Bind to everything, with a logon or without one."""
        random = self.random
        contexts: list[wire.Context] = []
        for identifier, table in enumerate(random.choice(_BOUND[self.endpoint])):
            ndr64 = random.random() < 0.4
            self._interfaces[identifier] = table, ndr64
            syntax = (str(table.uuid), *table.version)
            contexts.append((identifier, syntax, [wire.NDR64 if ndr64 else wire.NDR]))
        flags = wire.WHOLE | (wire.MPX if random.random() < 0.7 else 0)
        auth = None
        if random.random() < 0.4:
            self._level = random.choice(list(AuthLevel)[2:])
            self._type = random.choice((AuthType.NTLM, AuthType.NTLM, AuthType.SPNEGO))
            self._security = initiate(
                self._type,
                self._level,
                "host/queues",
                random.choice(WHO),
                AuthCounters(),
                lambda: float(WALL),
                random.randbytes,
            )
            auth = wire.Auth(self._type, self._level, 1, self._security.step(b""))
            self._signs_header = random.random() < 0.5
            flags |= wire.HEADER_SIGN if self._signs_header else 0
        self._send(wire.bind(contexts, 1, flags=flags, auth=auth, group=group))
        self._call_id = 1

    def step(self) -> None:
        """The next PDU, or what belongs together."""
        random = self.random
        kind = random.random()
        if kind < 0.95 and random.random() < self.spoil:
            kind += 0.05
        if kind < 0.91:
            self._call()
        elif kind < 0.93:
            number = random.randint(max(self._call_id - 5, 0), self._call_id + 1)
            self._send(random.choice((wire.cancel, wire.orphaned))(number))
        elif kind < 0.95:
            table = random.choice(SERVED[self.endpoint])
            syntax = (str(table.uuid), *table.version)
            self._more = self._more + 1 if self._more < _MORE else 7
            self._interfaces[self._more] = table, False
            self._send(wire.alter([(self._more, syntax, [wire.NDR])], self._call_id))
        elif self.spoil == 0:
            self._call()
        elif kind < 0.96:
            auth = wire.Auth(random.choice((0, 9, 10, 16)), random.randint(0, 7), random.randint(0, 4), b"x")
            self._send(random.choice((wire.auth3(auth), wire.alter([], auth=auth), wire.bind([], auth=auth))))
        elif kind < 0.97:
            self._send(wire.pdu(random.randrange(256), self._call_id, random.randbytes(random.randrange(80))))
        elif self._held:
            self._out(self._held.pop(random.randrange(len(self._held))))

    def _call(self) -> None:
        random = self.random
        identifier = random.choice(list(self._interfaces))
        table, ndr64 = self._interfaces[identifier]
        which = random.random()
        ops = _OPENERS if which < 0.4 else _ENDERS
        op = random.choice(ops[table.name] if which < 0.65 else table.ops)
        if random.random() < 0.8 and (op.obsolete or self._lacks(op)):
            op = random.choice(_OPENERS[table.name])
        args: Any = None
        stub = b""
        big = not ndr64 and random.random() < 0.1
        if not op.obsolete:
            args = self._values.arguments(op)
            stub = op.encode_request(args, ndr64=ndr64, big_endian=big)
        self._call_id += 1
        if random.random() < 0.05:
            stub += bytes(-len(stub) % 4) + wire_trailer(table, op.opnum, ndr64=ndr64)
        if random.random() < self.spoil:
            stub = spoiled_bytes(random, stub)
            args = None
        self._calls[self._call_id] = op, args, ndr64
        size = random.choice((1, 8, 100, 2000)) if random.random() < 0.15 else 4000
        pieces = [stub[at : at + size] for at in range(0, len(stub), size)] or [b""]
        pdus = [
            self._request(op.opnum, identifier, piece, len(stub) - at * size, big, at, len(pieces) - 1)
            for at, piece in enumerate(pieces[:40])
        ]
        if len(pdus) > 1 and random.random() < self.spoil:
            self._disorder(pdus)
        for pdu in pdus:
            self._send(pdu)

    def _lacks(self, op: Op) -> bool:
        """Whether there is no handle for it."""
        kinds = [kind.kind for kind in op.inputs.values() if isinstance(kind, ContextHandle)]
        return any(not self.known.handles[kind] for kind in kinds)

    def _request(
        self, opnum: int, context: int, stub: bytes, hint: int, big: bool, at: int, last: int
    ) -> bytes:
        flags = (wire.FIRST if at == 0 else 0) | (wire.LAST if at == last else 0)
        options: dict[str, Any] = {"flags": flags, "alloc_hint": hint, "big": big}
        if self._security is None or not self._security.complete:
            return wire.request(self._call_id, opnum, stub, context, **options)
        if self._level < AuthLevel.CALL:
            auth = wire.Auth(self._type, self._level, 1, bytes(_SIGNATURE))
            return wire.request(self._call_id, opnum, stub, context, auth=auth, **options)
        padded = stub + bytes(-len(stub) % 16)
        auth = wire.Auth(self._type, self._level, 1, bytes(_SIGNATURE), pad=len(padded) - len(stub))
        raw = wire.request(self._call_id, opnum, padded, context, auth=auth, **options)
        end = len(raw) - _SIGNATURE
        sealed, token = self._security.protect(
            raw[:24],
            raw[24 : end - 8],
            raw[end - 8 : end],
            privacy=self._level == AuthLevel.PRIVACY,
            sign_header=self._signs_header,
        )
        return raw[:24] + bytes(sealed) + raw[end - 8 : end] + bytes(token)

    def _disorder(self, pdus: list[bytes]) -> None:
        random = self.random
        self.trusting = False
        at = random.randrange(len(pdus))
        kind = random.randrange(4)
        if kind == 0:
            del pdus[at]
        elif kind == 1:
            pdus.insert(at, pdus[at])
        elif kind == 2:
            pdus.append(pdus.pop(at))
        else:
            pdus.insert(at, wire.request(self._call_id + 1, 0, b"between", 0))

    def _send(self, pdu: bytes) -> None:
        random = self.random
        if random.random() >= self.spoil:
            self._out(pdu)
            return
        self.trusting = False
        kind = random.randrange(6)
        if kind == 0:
            self._out(spoiled_bytes(random, pdu))
        elif kind in (1, 2):
            self._out(spoiled_header(random, pdu))
        elif kind == 3:
            self._out(pdu)
            self._out(pdu)
        elif kind == 4:
            self._held.append(pdu)
        # else it is lost

    def _out(self, data: bytes) -> None:
        self.sent += 1
        random = self.random
        if random.random() < 0.1 and len(data) > 1:
            at = random.randrange(1, len(data))
            self._in(data[:at])
            data = data[at:]
        self._in(data)

    def _in(self, data: bytes) -> None:
        """As the transport hands it on: who leaves its replies, or is being authenticated, is not read."""
        if not self.engine.reading:
            self.hear()
        if self.engine.reading:
            self.engine.receive(data, self.scene.now)

    # ---- what it hears

    def hear(self) -> None:
        """Take what there is, and learn from it."""
        stream = b""
        while data := self.engine.data_to_send():
            stream += b"".join(bytes(piece) for piece in data)
        stubs: dict[int, bytes] = {}
        for raw in wire.split(stream):
            answer = wire.read(raw)
            self.answered += 1
            assert answer.type in ANSWERS, raw.hex()
            if answer.type in (wire.BIND_ACK, wire.ALTER_RESPONSE):
                self.group = answer.group
                self._logon(answer)
            elif answer.type == wire.RESPONSE:
                stub = self._opened(answer)
                stubs[answer.call_id] = stubs.get(answer.call_id, b"") + stub
                if answer.flags & wire.LAST:
                    self._learn(answer.call_id, stubs.pop(answer.call_id))
        self.engine.go_on()

    def _logon(self, answer: wire.Answer) -> None:
        if answer.auth is None or self._security is None or self._security.complete:
            return
        try:
            token = self._security.step(answer.auth.token)
        except AuthError:
            assert not self.trusting
            return
        auth = wire.Auth(self._type, self._level, 1, token)
        if self._security.complete and self._type == AuthType.NTLM:
            self._send(wire.auth3(auth, 1))
        elif token:
            self._send(wire.alter([], 1, auth=auth))

    def _opened(self, answer: wire.Answer) -> bytes:
        """The stub of a response in clear."""
        auth = answer.auth
        if auth is None or self._security is None or self._level < AuthLevel.CALL:
            return answer.stub
        end = len(answer.raw) - _SIGNATURE
        try:
            stub: bytes = self._security.unprotect(
                answer.raw[:24],
                answer.raw[24 : end - 8],
                answer.raw[end - 8 : end],
                answer.raw[end:],
                privacy=self._level == AuthLevel.PRIVACY,
                sign_header=self._signs_header,
            )
        except AuthError:
            assert not self.trusting, "a response whose signature is wrong"
            return b""
        return stub[: len(stub) - (auth.pad or 0)]

    def _learn(self, call_id: int, stub: bytes) -> None:
        op, args, ndr64 = self._calls.pop(call_id, (None, None, False))
        if op is None or op.obsolete:
            assert not self.trusting, "a response that nobody asked for"
            return
        try:
            results = op.decode_response(stub, args, ndr64=ndr64)
            self.known.learn(results, op.outputs)
        except Exception:
            if self.trusting:
                raise

    def lose(self) -> None:
        """The connection breaks."""
        self.engine.connection_lost()


def session(scene: Scene, random: Random) -> tuple[int, int]:
    """A client process with one to three connections, from its first bind to its end; how many PDUs it sent
    and heard."""
    known = Known()
    spoil = random.choice((0.0, 0.005, 0.02, 0.1, 0.3))
    steps = random.choice((30, 80, 250))
    endpoint = random.choice((0, 0, 0, 1))
    everybody: list[Client] = []
    clients: list[Client] = []

    def connect() -> None:
        same = not everybody or random.random() < 0.3
        client = Client(scene, endpoint if same else 1 - endpoint, random, known, spoil)
        client.bind(clients[0].group if clients and clients[0].endpoint == client.endpoint else 0)
        client.hear()
        everybody.append(client)
        clients.append(client)

    for _ in range(random.randint(1, 3)):
        connect()
    deaf = random.random() < 0.1  # takes no replies
    slow = random.random() < 0.2  # the disk is
    for _ in range(steps):
        if not clients or (len(clients) < _CONNECTIONS and random.random() < 0.05):
            connect()
        client = random.choice(clients)
        if client.endpoint and not known.numbers["queue"] and random.random() < 0.8:
            client = clients[0]  # queues are opened at the other endpoint
        client.step()
        if not slow or random.random() < 0.2:
            scene.world.run()
        if not deaf:
            for listener in clients:
                listener.hear()
        if client.engine.closing or random.random() < 0.005:
            client.lose()
            clients.remove(client)
        if random.random() < 0.02:
            scene.advance(random.choice((0.1, 6.0, 40.0, 400.0)))
    for client in clients:
        client.lose()
    scene.world.run()
    return sum(client.sent for client in everybody), sum(client.answered for client in everybody)
