"""What can be seen of a message and of a call, in a form that the queue manager and the model share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from msmq_fast._native.queuebase import Received
from msmq_fast.packet.message import Message as Sent
from msmq_fast.store.completion import Completion

from .model import Ident, Message


class Disagreement(AssertionError):
    """The queue manager and the model do not say the same."""


def path(name: str) -> str:
    if name in ("journal", "deadletter", "deadxact"):
        return rf".\system$;{name}"
    return rf".\private$\{name}"


def ident(received: Received) -> Ident:
    """By which both sides know a message."""
    return _ident(received.packet)


@lru_cache(maxsize=4096)
def _ident(packet: bytes) -> Ident:
    message = Sent.from_packet(packet)
    if message.message_class:
        return (int(message.message_class), int.from_bytes(message.correlation_id[16:], "little"))
    number, size = message.body.split(b":", 2)[:2]
    if message.body != body_of(int(number), int(size)):
        raise Disagreement(f"the body of message {int(number)} changed")
    return (0, int(number))


def body_of(number: int, size: int) -> bytes:
    return b"%d:%d:" % (number, size) + bytes(size)


def outcome(completion: Completion[Any]) -> object:
    """What a caller got."""
    if not completion.done:
        return "nothing yet"
    error = completion.exception()
    if error is not None:
        return type(error).__name__
    result = completion.result()
    if isinstance(result, Received):
        return (ident(result), result.lookup_id, result.abort_count, result.move_count)
    return result


def keyed(sent: Completion[Any], message: Message) -> Completion[Any]:
    """Resolved with True when the message is kept; it learns its key."""
    done: Completion[Any] = Completion()

    def kept(sent: Completion[Any]) -> None:
        error = sent.exception()
        if error is not None:
            done.fail(error)
            return
        message.key = sent.result().lookup_id
        done.resolve(message.key >> 56 == 7 - message.priority)

    sent.add_done_callback(kept)
    return done
