"""Sound packets and requests with hostile content, each against a server process with the witness beside it:
Arrow columns that lie, senders that claim to be somebody, signatures that are expensive to verify."""

from __future__ import annotations

import struct
import time
from base64 import b64encode
from uuid import UUID

import pyarrow as pa
import pytest
import uvloop

from msmq_fast.packet.user import SecurityHeader
from msmq_fast.security.principals import SenderType
from msmq_fast.security.sid import sid
from tests.support.hostile.attacked import Resources, attacked
from tests.support.hostile.hostile_sessions import Raw
from tests.support.http import bulk as api
from tests.support.mqqb import wire
from tests.support.srmp.independent import post
from tests.support.srmp.partner import request
from tests.support.srmp.signing import NS, expensive, reference

MIB = 1 << 20
STRANGER = "127.0.56.66"


# ---- Arrow


def lying(kind: pa.DataType, size: int) -> bytes:
    """A stream with a null row whose view has a negative length; pyarrow itself calls it valid."""
    text = b"Y" * 40
    good = struct.pack("<i4sii", len(text), text[:4], 0, 0)
    views = good + struct.pack("<i12s", size, bytes(12)) + good * 100
    validity = ((1 << 102) - 1 & ~2).to_bytes(16, "little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(views), pa.py_buffer(text)]
    column = pa.Array.from_buffers(kind, 102, buffers, null_count=1)
    batch = pa.record_batch({"body": column})
    batch.validate(full=True)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(out.getvalue())


def test_staged_views_of_negative_length_harm_nothing() -> None:
    with attacked('[bulk]\naccess = "loopback"\n', queues=("q",)) as scene:
        number = 0
        for kind in (pa.string_view(), pa.binary_view()):
            for size in (-1, -3000, -4096, -(1 << 20), -(1 << 31)):
                path = f"/stage?writer=w&batch=0&part={number}&attempt=0&queue=q"
                headers = {"Content-Type": api.ARROW}
                answer = api.ask(scene.server, "POST", path, headers=headers, body=lying(kind, size))
                assert answer.status == 200, answer
                number += 1
        report = scene.check()
        print(report)
        assert report.grown < 40 * MIB


# ---- senders


CLAIMS = {
    "no sender": SecurityHeader(),
    "the GUID of a queue manager": SecurityHeader(
        sender_id_type=SenderType.QUEUE_MANAGER, sender_id=bytes(range(16))
    ),
    **{
        name: SecurityHeader(sender_id_type=SenderType.SID, sender_id=sid(name).data)
        for name in ("S-1-1-0", "S-1-5-18", "S-1-5-32-544", "S-1-22-1-0", "S-1-5-21-1-2-3-500")
    },
    # Signed, it says, by a certificate that is none; encrypted, too: the list is asked before any key.
    "a signature": SecurityHeader(
        sender_id_type=SenderType.SID,
        sender_id=sid("S-1-5-32-544").data,
        signature=bytes(256),
        certificate=bytes(100),
    ),
    "a signature, encrypted": SecurityHeader(
        sender_id_type=SenderType.SID,
        sender_id=sid("S-1-5-32-544").data,
        signature=bytes(256),
        certificate=bytes(100),
        encrypted=True,
        encryption_key=bytes(268),
    ),
}


def test_a_claimed_sender_opens_no_queue_that_is_for_administrators() -> None:
    with attacked('[interop]\nunsigned_sender_id = "use"\n', queues=("payments",)) as scene:
        server = scene.server
        server.ok("acl", "set", "payments", "--sddl", "O:BAD:(A;;KA;;;BA)(A;;KA;;;S-1-22-1-0)(A;;KA;;;SY)")

        async def claim() -> None:
            peer = await Raw.open(server.host, server.port("mqqb"), client=UUID(int=0x515D), source=STRANGER)
            for number, header in enumerate(CLAIMS.values(), 1):
                peer.writer.write(
                    wire.message(
                        number,
                        queue="OS:host\\private$\\payments",
                        recoverable=True,
                        body=b"forged" * 10,
                        sent_time=int(time.time()),
                        source=UUID(int=number),
                        security=b"" if header == SecurityHeader() else header.encode(),
                    )
                )
                await peer.reader.readexactly(36)  # each one is acknowledged, and dropped
            peer.writer.close()

        uvloop.run(claim())
        print(scene.check())
        assert server.messages("payments") == []
        refused = scene.stats()["refusals"]
        assert sum(refused.values()) >= len(CLAIMS)


# ---- signatures over HTTP


@pytest.mark.parametrize(("bits", "certificates"), [(8192, 30), (4096, 1)])
def test_signatures_that_are_expensive_to_verify_cost_little(bits: int, certificates: int) -> None:
    """As many certificates as there is room for, and the largest key that is taken, where every signature is
    verified and certificates count that nobody registered.
    """
    config = "[srmp]\nverify_signatures = true\nunregistered_certificates = true\n"
    with attacked(config, "--http-port", "0", queues=("q",)) as scene:
        server = scene.server
        to = f"http://{server.host}/msmq/private$/q"
        requests, sender = 20, UUID(int=0x5E)
        tail = signed(f"body@{sender}", b"hello", bits, certificates)
        before = Resources.of(server).cpu
        for number in range(1, requests + 1):
            packet = request(to, b"hello", number=number, sender=sender, tail=tail)
            status, _ = post(server.port("http"), packet)
            assert status == 400
        cost = (Resources.of(server).cpu - before) / requests
        report = scene.check()
        refusals = scene.stats()["refusals"]
        print(f"{len(tail)} bytes, {cost * 1000:.0f} ms a request, {refusals};", report)
        assert sum(refusals.values()) >= requests
        assert cost < 0.05


def signed(name: str, content: bytes, bits: int, certificates: int) -> str:
    """A Signature element with the right digest, and a value that fits the key but not what is signed."""
    certificate = b64encode(expensive(bits, 65537 if bits <= 4096 else 0xFFFFFFFF)).decode()
    one = f"<X509Certificate>{certificate}</X509Certificate>"
    value = b64encode(b"\1" + bytes(bits // 8 - 2) + b"\1").decode()
    info = (
        f'<SignedInfo><SignatureMethod Algorithm="{NS}dsa"></SignatureMethod>'
        f"{reference(name, content, 'sha256')}</SignedInfo>"
    )
    return (
        f'<Signature xmlns="{NS}">{info}<SignatureValue>{value}</SignatureValue>'
        f"<KeyInfo><X509Data>{one * certificates}</X509Data></KeyInfo></Signature>"
    )
