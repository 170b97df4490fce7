"""Answers that are not those of the server: what becomes of the calls under way."""

from __future__ import annotations

from typing import Any

from msmq_fast._native.rpcframing import fragments
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType
from msmq_fast.rpc.client.connection import ClientCall, ClientConnection
from msmq_fast.rpc.client.errors import CallLost, LogonRefused
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.pdu import BindAck, ContextResult, Flag, SecTrailer, build_bind_ack
from msmq_fast.rpc.syntaxes import NDR, SyntaxId
from tests.support.rpc.fakes import at_once

GOOD, BAD = b"\1" * 16, b"\0" * 16
TRAILER = SecTrailer(AuthType.NTLM, AuthLevel.INTEGRITY, 0)
RESPONSE = 2


class Protection:
    """A security context of one leg; the token of a PDU is GOOD, or it is a wrong one."""

    complete = False
    blocking = False
    caller: Any = None

    def step(self, token: bytes) -> bytes:
        self.complete = True
        return b"hello"

    def overhead(self) -> int:
        return len(GOOD)

    def protect(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    def unprotect(self, header: Any, stub: Any, trailer: Any, token: Any, **options: Any) -> bytes:
        if token != GOOD:
            raise AuthError(AuthFailure.SIGNATURE, "changed on its way")
        return bytes(stub)

    def protect_pdus(self, *args: Any, **options: Any) -> None:
        """Nobody looks at what the client sends."""

    def unprotect_pdus(self, *args: Any, **options: Any) -> None:
        raise NotImplementedError


class Someone:
    auth_type = AuthType.NTLM
    level = AuthLevel.INTEGRITY

    def initiate(self, host: str) -> Protection:
        return Protection()


class Line:
    """A connection that is bound, and what the server says on it."""

    def __init__(self) -> None:
        table = REMOTE_READ
        self.ended: list[Exception] = []
        self.connection = ClientConnection(
            "host",
            SyntaxId(table.uuid, *table.version),
            Someone(),
            at_once,
            opened=lambda: None,
            ended=self.ended.append,
        )
        self.connection.connected()
        accepted = (ContextResult(0, 0, NDR), ContextResult(2, 2), ContextResult(3, 3))
        flags = Flag.FIRST | Flag.LAST | Flag.CONC_MPX
        self._feed(build_bind_ack(1, BindAck(5840, 5840, 7, "", accepted), flags))
        assert self.connection.open

    def call(self, name: str, **arguments: Any) -> ClientCall:
        op = REMOTE_READ.op(name)
        call = ClientCall(op, op.Args(**arguments))
        self.connection.send(call)
        self.connection.take_output()
        return call

    def answer(self, call: ClientCall, token: bytes, **outs: Any) -> None:
        stub = call.op.encode_response(call.op.results(call.args, **outs), ndr64=False)
        pdu, _, _ = fragments(RESPONSE, stub, 0, 9999, 0, call.call_id, 0, 0, 5840, TRAILER.encode(), 16)
        self._feed(bytes(pdu[:-16]) + token)

    def _feed(self, data: bytes) -> None:
        room = self.connection.buffer(len(data))
        room[: len(data)] = data
        self.connection.received(len(data))


def test_who_answers_with_a_wrong_token_at_first_is_not_believed() -> None:
    line = Line()
    call = line.call("get_server_port")
    line.answer(call, BAD, result=2103)
    assert isinstance(call.completion.exception(), LogonRefused)


def test_a_call_whose_answer_was_changed_may_have_been_carried_out() -> None:
    line = Line()
    first, second, third = (line.call("get_server_port") for _ in range(3))
    line.answer(first, GOOD, result=2103)
    assert first.completion.result().result == 2103
    line.answer(second, BAD, result=2103)
    for call in (second, third):
        lost = call.completion.exception()
        assert isinstance(lost, CallLost)
        assert lost.sent, "so an acknowledgment is settled, not given up"
