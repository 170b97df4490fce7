"""Messages as Windows and others write them: every name, every header, every odd but legal bit."""

from __future__ import annotations

import base64
import itertools
import time
from typing import Any
from uuid import UUID

import pytest

from tests.support.mqqb import frames, wire
from tests.support.mqqb.frames import direct, private, public
from tests.support.mqqb.peer import Peer
from tests.support.processes.servers import Server

REPORTS = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")

pytestmark = pytest.mark.long(seconds=1)


def deliver(server: Server, peer: Peer, *packets: bytes) -> list[dict[str, Any]]:
    """Sends them on one session; what was in the queue when all were acknowledged."""
    line = peer.dial(server.host, server.port("mqqb"))
    for packet in packets:
        line.say(packet)
    line.acked(len(packets))
    line.close()
    return server.messages("q")


@pytest.mark.rule("QB-247", "QB-383")
def test_a_message_as_windows_writes_it(server: Server, peer: Peer) -> None:
    """Line 2: a SID and no signature, algorithms and acknowledgments for nothing, nowhere to answer."""
    line = peer.dial(server.host, server.port("mqqb"))
    line.say(peer.message("q", secure=frames.security(), acks=15, label="mqsender label", body=b"a\0" * 1000))
    line.acked(1)
    (found,) = server.messages("q")
    assert (found["label"], found["body_size"], found["authenticated"]) == ("mqsender label", 2000, False)
    line.silent(0.3)


@pytest.mark.rule("QB-235", "QB-263")
def test_the_host_part_of_a_name_says_nothing(server: Server, peer: Peer) -> None:
    """Line 3."""
    names = [
        r"OS:server\private$\q",
        r"OS:some.alias.example\PRIVATE$\Q",
        r"TCP:127.0.0.1\private$\q",
        r"TCP:192.0.2.77\Private$\q",
        r"tcp:[2001:db8::1]\private$\q",
    ]
    found = deliver(server, peer, *(peer.message(direct(name)) for name in names))
    assert [message["destination_queue"] for message in found] == [f"DIRECT={name}" for name in names]


@pytest.mark.rule("QB-263")
def test_a_private_queue_by_its_number(server: Server, peer: Peer) -> None:
    own = UUID(server.ready["guid"])
    name = server.ok("queue", "show", "q")[0]["format_name"]
    assert name.upper().startswith(f"PRIVATE={own}\\".upper())
    number = int(name.rpartition("\\")[2], 16)
    (found,) = deliver(server, peer, peer.message(private(number), address=own))
    assert found["destination_queue"].lower() == name.lower()


NAMES = {
    0: frames.Name(),
    1: frames.Name(1),
    2: private(10, 2),
    3: private(11, 3),
    4: private(12, 4),
    5: public(REPORTS),
    6: private(13, 6, REPORTS),
    7: direct(r"OS:x\private$\odd"),
}


@pytest.mark.rule("QB-281")
def test_every_type_of_the_other_names(server: Server, peer: Peer) -> None:
    """Short cut "only the happy header set": all types of the other names, lengths of all residues."""
    packets = [
        peer.message("q", admin=NAMES[admin], response=NAMES[response], connector=REPORTS if admin else None)
        for admin, response in itertools.product((0, 2, 3, 5, 6, 7), range(8))
    ]
    packets += [peer.message(direct("OS:" + "h" * count + r"\private$\q")) for count in range(1, 5)]
    assert len(deliver(server, peer, *packets)) == len(packets)


@pytest.mark.rule("QB-281")
def test_every_combination_of_headers(server: Server, peer: Peer) -> None:
    parts: dict[str, bytes] = {
        "secure": frames.security(),
        "traced": frames.debug(REPORTS),
        "envelope": frames.soap(),
        "lists": frames.multi(r"OS:server\private$\q", r"OS:other\private$\q"),
        "extension": b"ext",
        "session": b"",
    }
    bodies = []
    line = peer.dial(server.host, server.port("mqqb"))
    for chosen in itertools.product((False, True), repeat=len(parts)):
        names = [name for name, wanted in zip(parts, chosen, strict=True) if wanted]
        fields: dict[str, Any] = {name: parts[name] for name in names}
        if "session" in names:
            fields["session"] = wire.header(sent=line.sent + 1)
        bodies.append("+".join(names).encode())
        line.say(peer.message("q", body=bodies[-1], label="l" * (len(names) % 3), **fields))
    line.acked(len(bodies))
    assert [base64.b64decode(found["body_b64"]) for found in server.messages("q")] == bodies


@pytest.mark.rule("QB-018", "QB-023", "QB-027", "QB-039")
def test_bits_and_bytes_without_meaning_are_ignored(server: Server, peer: Peer) -> None:
    line = peer.connect(server.host, server.port("mqqb"))
    request = bytearray(wire.establish(peer.guid, system=0xFF10, padding=b"\xee" * 512))
    request[1], request[16:18], request[19], request[58:60] = 0xAA, b"\xff\xff", 0xFF, b"\xff\xff"
    line.send(bytes(request))
    line.expect("EC")
    parameters = bytearray(wire.parameters(reserved=0xFFFF))
    parameters[16:18], parameters[19] = b"\xff\xff", 0xFF
    line.send(bytes(parameters))
    line.expect("CP")
    line.say(peer.message("q", base_bits=0xFEC0, user_bits=0xED000080, padding=0xEE, body=b"x"))
    line.acked(1)
    assert len(server.messages("q")) == 1


@pytest.mark.rule("QB-009")
def test_guids_are_read_in_their_own_byte_order(server: Server, peer: Peer) -> None:
    (found,) = deliver(server, peer, peer.message("q"))
    assert found["source_machine"] == str(peer.guid)
    assert found["message_id"] == f"{{{peer.guid}}}\\1"


@pytest.mark.rule("QB-160", "QB-300")
@pytest.mark.parametrize("kind", [0x0001, 0x0002, 0x4000, 0x8002, 0xC001, 0x01FF])
def test_a_message_of_another_class_is_a_message(server: Server, peer: Peer, kind: int) -> None:
    (found,) = deliver(server, peer, peer.message("q", kind=kind, correlation=b"c" * 20))
    assert (found["class"], found["correlation_id"]) == (kind, (b"c" * 20).hex())


@pytest.mark.rule("QB-265")
def test_a_message_that_took_too_long_is_dropped(server: Server, peer: Peer) -> None:
    now = int(time.time())
    packets = [peer.message("q", reach=reach, sent=now - 60) for reach in (59, 3600, frames.NEVER)]
    assert len(deliver(server, peer, *packets)) == 2


@pytest.mark.rule("QB-011")
def test_packets_in_one_write_and_byte_by_byte(server: Server, peer: Peer) -> None:
    packets = [
        peer.message("q", session=wire.header(sent=1)),
        peer.message("q"),
        peer.message("q", session=wire.header(sent=3), header_inside=True),
        peer.message("q"),
    ]
    line = peer.dial(server.host, server.port("mqqb"))
    line.send(b"".join(packets))
    line.acked(4)
    other = peer.dial(server.host, server.port("mqqb"))
    peer.numbers = 100
    for at in peer.message("q", session=wire.header(sent=1)) + peer.message("q"):
        other.send(bytes([at]))
    other.acked(2)
    assert len(server.messages("q")) == 6
