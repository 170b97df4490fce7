"""Initiator and acceptor of an authentication, until both are done."""

from __future__ import annotations

import spnego
from spnego.iov import BufferType

from msmq_fast.rpc.auth.mechanism import Context


def converse(client: Context, server: spnego.ContextProxy) -> None:
    """PDUs with header signing, both ways."""
    for _ in range(3):
        stub, token = client.protect(b"head", b"request", b"tail", privacy=True, sign_header=True)
        clear = server.unwrap_iov(
            [
                (BufferType.header, token),
                (BufferType.sign_only, b"head"),
                stub,
                (BufferType.sign_only, b"tail"),
            ]
        )
        assert clear.buffers[2].data == b"request"
        sealed = server.wrap_iov(
            [BufferType.header, (BufferType.sign_only, b"HEAD"), b"answer", (BufferType.sign_only, b"TAIL")]
        )
        token, _, stub, _ = (buffer.data for buffer in sealed.buffers)
        assert client.unprotect(b"HEAD", stub, b"TAIL", token, privacy=True, sign_header=True) == b"answer"
