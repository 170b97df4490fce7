"""Transactional streams that the server sends to a scripted receiver: numbers, answers, reconnects."""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.support.mqqb import frames
from tests.support.mqqb.frames import Message, direct, private
from tests.support.mqqb.peer import Line, Peer
from tests.support.processes.servers import Server, until

pytestmark = pytest.mark.long(seconds=6)

RECEIVED, PURGED = 0x4000, 0xC001
FINAL, FIRST, LAST = 2, 4, 8


def far(peer: Peer, queue: str = "far") -> str:
    return rf"DIRECT=TCP:{peer.address}\private$\{queue}"


def order_queue(server: Server) -> frames.Name:
    return direct(rf"TCP:{server.host}\PRIVATE$\order_queue$")


def send(server: Server, peer: Peer, *bodies: str, more: tuple[str, ...] = (), queue: str = "far") -> None:
    """One transaction for each body."""
    for body in bodies:
        server.ok("send", far(peer, queue), "--xact", "--body", body, *more)


def numbers(found: Message) -> tuple[int, int]:
    """TxSequenceNumber and PreviousTxSequenceNumber."""
    assert found.tx is not None
    return found.tx[3], found.tx[4]


def identifier(found: Message) -> tuple[int, int]:
    """TxSequenceID as it is compared: time stamp, ordinal."""
    assert found.tx is not None
    return found.tx[2], found.tx[1]


def order_ack(line: Line, peer: Peer, server: Server, found: Message, **fields: Any) -> None:
    """Everything up to a message has arrived."""
    assert found.tx is not None
    queue = fields.pop("queue", order_queue(server))
    line.say(
        frames.order_ack(peer.number(), peer.guid, queue, found.tx[1], found.tx[2], found.tx[3], **fields)
    )


def final_ack(
    line: Line, peer: Peer, server: Server, found: Message, kind: int, source: UUID | None = None
) -> None:
    """What became of a message."""
    assert found.tx is not None
    line.say(
        frames.final_ack(
            peer.number(),
            peer.guid,
            order_queue(server),
            kind,
            (found.tx[1], found.tx[2], found.tx[3], found.tx[4]),
            (source or found.source, found.number),
        )
    )


def waiting(server: Server, peer: Peer, queue: str = "far") -> int:
    count: int = server.ok("outgoing", "show", far(peer, queue))[0]["messages"]
    return count


def gone(server: Server, peer: Peer) -> None:
    until(lambda: not waiting(server, peer), what="the end of the stream")


@pytest.fixture
def pair(peer: Peer, start: Callable[..., Server]) -> tuple[Server, Peer]:
    """A server that dials a listening peer."""
    return start(peer_port=peer.listen(), retry_interval=0.3), peer


@pytest.mark.rule("QB-110", "QB-332", "QB-335")
def test_numbers_and_flags_of_a_transaction(pair: tuple[Server, Peer]) -> None:
    server, peer = pair
    server.ok("send", far(peer), "--xact", "--body", "x", "--count", "3", "--priority", "0")
    send(server, peer, "y")
    line = peer.answer()
    found = [line.message() for _ in range(4)]
    assert [numbers(one) for one in found] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert len({identifier(one) for one in found}) == 1
    assert identifier(found[0])[1] >= 1
    assert identifier(found[0])[0] > 1_600_000_000
    flags = [one.tx[0] for one in found if one.tx is not None]
    assert [flag & (FIRST | LAST) for flag in flags] == [FIRST, 0, LAST, FIRST | LAST]
    transactions = [flag >> 4 & 0xFFFFF for flag in flags]
    assert transactions[0] == transactions[1] == transactions[2] != transactions[3]
    assert {one.delivery for one in found} == {1}
    assert {one.base_flags & 7 for one in found} == {0}
    assert {one.source for one in found} == {UUID(server.ready["guid"])}


@pytest.mark.rule("QB-105", "QB-125", "QB-140", "QB-204", "QB-354")
def test_the_same_numbers_after_a_reconnect_and_after_a_kill(pair: tuple[Server, Peer]) -> None:
    """Short cut "renumber on reconnect": SessionAcks alone discard nothing."""
    server, peer = pair
    send(server, peer, "1", "2", "3")
    line = peer.answer()
    first = [line.message() for _ in range(3)]
    line.acknowledge()
    line.no_message(0.3)
    assert waiting(server, peer) == 3
    line.close()
    line = peer.answer()
    again = [line.message() for _ in range(3)]
    assert [one.packet for one in again] == [one.packet for one in first]
    server.kill()
    server.start()
    line = peer.answer()
    third = [line.message() for _ in range(3)]
    assert [one.packet for one in third] == [one.packet for one in first]
    line.acknowledge()
    order_ack(line, peer, server, third[2])
    gone(server, peer)


@pytest.mark.rule("QB-124", "QB-200", "QB-211", "QB-220")
@pytest.mark.parametrize("order_first", [False, True])
def test_a_message_goes_with_both_acknowledgments(pair: tuple[Server, Peer], order_first: bool) -> None:
    """OrderAcks are counted and acknowledged as any message of the session, and no application sees them."""
    server, peer = pair
    send(server, peer, "1", "2")
    line = peer.answer()
    found = [line.message() for _ in range(2)]
    if order_first:
        order_ack(line, peer, server, found[1])
        line.acked(1)
        assert waiting(server, peer) == 2
        line.acknowledge()
    else:
        line.acknowledge()
        line.no_message(0.2)
        assert waiting(server, peer) == 2
        order_ack(line, peer, server, found[1])
        line.acked(1)
    gone(server, peer)
    assert [queue["messages"] for queue in server.ok("queue", "list") if queue["messages"]] == []


@pytest.mark.rule("QB-092", "QB-094")
def test_the_first_stream_of_all(pair: tuple[Server, Peer]) -> None:
    """The ordinal begins at 1; the time stamp is that of the installation."""
    server, peer = pair
    send(server, peer, "x")
    found = peer.answer().message()
    assert numbers(found) == (1, 0)
    stamp, ordinal = identifier(found)
    assert ordinal == 1
    assert abs(stamp - time.time()) < 120


@pytest.mark.rule("QB-092", "QB-112", "QB-208", "QB-213")
def test_a_drained_stream_is_followed_by_a_greater_one(pair: tuple[Server, Peer]) -> None:
    server, peer = pair
    seen = []
    for round_ in range(3):
        send(server, peer, "x")
        line = peer.answer() if not peer.lines or round_ == 2 else peer.lines[-1]
        found = line.message()
        assert numbers(found) == (1, 0)
        seen.append(found)
        line.acknowledge()
        order_ack(line, peer, server, found)
        gone(server, peer)
        if round_ == 1:
            server.kill()
            server.start()
    assert sorted(identifier(one) for one in seen) == [identifier(one) for one in seen]
    assert len({identifier(one) for one in seen}) == 3
    send(server, peer, "y")
    line.message()
    line.acknowledge()
    order_ack(line, peer, server, seen[0])  # of a sequence that is over
    order_ack(line, peer, server, seen[2])
    line.acked(line.sent)
    assert waiting(server, peer) == 1


@pytest.mark.rule("QB-158", "QB-208")
@pytest.mark.parametrize("form", ["number", "folded", "header"])
def test_an_order_ack_in_every_form_that_is_one(pair: tuple[Server, Peer], form: str) -> None:
    """By number or direct name, of any case, with a SessionHeader at its end (AMB-31)."""
    server, peer = pair
    send(server, peer, "1")
    line = peer.answer()
    found = line.message()
    line.acknowledge()
    if form == "number":
        order_ack(line, peer, server, found, queue=private(4), address=UUID(server.ready["guid"]))
    elif form == "folded":
        order_ack(line, peer, server, found, queue=direct(r"OS:Whoever\Private$\ORDER_queue$"))
    else:
        line.sent += 1
        header = line.header()
        line.sent -= 1
        order_ack(line, peer, server, found, session=header)
    gone(server, peer)


@pytest.mark.rule("QB-126", "QB-159", "QB-212", "QB-216", "QB-217", "QB-218", "QB-219")
@pytest.mark.parametrize(
    ("wish", "kind", "journal", "dead"),
    [
        ("--journal", RECEIVED, 1, 0),
        ("--journal", PURGED, 0, 0),
        ("--deadletter", RECEIVED, 0, 0),
        ("--deadletter", PURGED, 0, 1),
    ],
)
def test_the_final_ack_decides_what_is_kept(
    pair: tuple[Server, Peer], wish: str, kind: int, journal: int, dead: int
) -> None:
    """Line 8 the other way round."""
    server, peer = pair
    send(server, peer, "1", more=(wish,))
    line = peer.answer()
    found = line.message()
    assert found.flags >> 8 & 3 == (2 if wish == "--journal" else 1)
    line.acknowledge()
    order_ack(line, peer, server, found)
    line.acked(1)
    foreign = UUID("00000000-1111-2222-3333-444444444444")
    final_ack(line, peer, server, found, kind, source=foreign)
    line.acked(2)
    assert waiting(server, peer) == 1
    final_ack(line, peer, server, found, kind)
    gone(server, peer)
    assert len(server.messages(r".\system$;journal")) == journal
    dead_letters = server.messages(r".\system$;deadxact")
    assert [base64.b64decode(one["body_b64"]) for one in dead_letters] == [b"1"] * dead


@pytest.mark.rule("QB-100", "QB-220")
def test_a_final_ack_is_awaited_across_a_kill(pair: tuple[Server, Peer]) -> None:
    server, peer = pair
    send(server, peer, "1", more=("--deadletter",))
    line = peer.answer()
    found = line.message()
    line.acknowledge()
    order_ack(line, peer, server, found)
    line.acked(1)
    until(lambda: server.ok("outgoing", "show", far(peer))[0]["messages"] == 1)
    server.kill()
    server.start()
    again = peer.dial(server.host, server.port("mqqb"))
    again.no_message(0.5)
    final_ack(again, peer, server, found, PURGED)
    named: set[int] = set()
    while named != {1}:
        named |= again.acked(1)[0]
    server.kill()
    server.start()
    (dead,) = server.messages(r".\system$;deadxact")
    assert base64.b64decode(dead["body_b64"]) == b"1"


@pytest.mark.rule("QB-113", "QB-331", "QB-333")
def test_a_message_that_expires_leaves_a_gap_that_is_bridged(pair: tuple[Server, Peer]) -> None:
    server, peer = pair
    send(server, peer, "1")
    send(server, peer, "2", more=("--ttrq", "2"))
    send(server, peer, "3")
    line = peer.answer()
    first = [line.message() for _ in range(3)]
    assert [numbers(one) for one in first] == [(1, 0), (2, 1), (3, 2)]
    until(lambda: waiting(server, peer) == 2, what="the expiry")
    line.close()
    line = peer.answer()
    assert [numbers(line.message()) for _ in range(2)] == [(1, 0), (3, 1)]
    line.no_message(0.2)


@pytest.mark.rule("QB-093", "QB-111")
def test_each_destination_has_a_stream_of_its_own(pair: tuple[Server, Peer]) -> None:
    server, peer = pair
    for queue in ("far", "near", "far", "near"):
        send(server, peer, queue, queue=queue)
    line = peer.answer()
    found = [line.message() for _ in range(4)]
    by_queue: dict[str, list[Message]] = {}
    for one in found:
        by_queue.setdefault(frames.text_of(one.destination), []).append(one)
    assert [[numbers(one) for one in stream] for stream in by_queue.values()] == [[(1, 0), (2, 1)]] * 2
    ids = [{identifier(one) for one in stream} for stream in by_queue.values()]
    assert len(ids[0] | ids[1]) == 2
    assert len(ids[0]) == 1
    line.acknowledge()
    order_ack(line, peer, server, by_queue[frames.text_of(peer.queue("far"))][1])
    gone(server, peer)
    assert waiting(server, peer, "near") == 2


@pytest.mark.rule("QB-206", "QB-210", "QB-214", "QB-287")
def test_management_shows_what_the_script_did(pair: tuple[Server, Peer]) -> None:
    """Short cut "management counters invented"."""
    server, peer = pair
    send(server, peer, "1", "2", "3", more=("--deadletter",))
    line = peer.answer()
    found = [line.message() for _ in range(3)]
    line.acknowledge()
    order_ack(line, peer, server, found[0])
    order_ack(line, peer, server, found[0])
    line.acked(2)

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = server.ok("outgoing", "show", far(peer))[0]
        return found

    until(lambda: shown()["no_read_count"] == 1, what="the message that waits to be read")
    state = shown()
    stamp, ordinal = identifier(found[0])
    assert state["last_ack"] == f"{stamp}.{ordinal}:1 after 0"
    assert state["first_non_ack"] == f"{stamp}.{ordinal}:2 after 1"
    assert state["last_non_ack"] == f"{stamp}.{ordinal}:3 after 2"
    assert state["next_sequence"] == f"{stamp}.{ordinal}:4 after 3"
    assert (state["last_ack_count"], state["no_ack_count"], state["no_read_count"]) == (2, 2, 1)
    assert (state["resend_count"], state["resend_interval"]) == (0, 30)
    final_ack(line, peer, server, found[0], RECEIVED)
    until(lambda: shown()["no_read_count"] == 0, what="the FinalAck")


@pytest.mark.rule("QB-085", "QB-086", "QB-207", "QB-312", "QB-313")
def test_what_nobody_orders_is_sent_again_on_the_ladder(peer: Peer, start: Callable[..., Server]) -> None:
    """On the same session, with the same numbers; three short waits, then longer ones."""
    server = start(peer_port=peer.listen(), resend_short=0.5, resend_medium=2, idle_timeout=60)
    send(server, peer, "1", "2")
    line = peer.answer()
    first = [line.message() for _ in range(2)]
    times = [time.monotonic()]
    for _ in range(4):
        line.acknowledge()
        again = [line.message() for _ in range(2)]
        times.append(time.monotonic())
        assert [numbers(one) for one in again] == [numbers(one) for one in first]
        assert {identifier(one) for one in again} == {identifier(first[0])}
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert all(0.3 < wait < 1.6 for wait in waits[:3])
    assert 1.7 < waits[3] < 3.5
    line.acknowledge()
    order_ack(line, peer, server, first[1])
    gone(server, peer)
    line.no_message(1)
