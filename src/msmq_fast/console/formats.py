"""Values as text for people: numbers, sizes, times, and the reasons of dead letters in plain sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup

from msmq_fast.protocol.classes import MessageClass, name_of
from msmq_fast.protocol.text import noun_of

__all__ = [
    "REASONS",
    "RIGHTS",
    "account",
    "caller",
    "class_name",
    "code",
    "count",
    "duration",
    "in_words",
    "kind_of_queue",
    "literal",
    "moment",
    "path",
    "plural",
    "rate",
    "reason",
    "sentence",
    "size",
    "utc",
]

REASONS: Final[dict[int, str]] = {
    MessageClass.NACK_BAD_DST_Q: "The destination queue does not exist. Create it, then send again.",
    MessageClass.NACK_DELETED: "An administrator deleted the message before it arrived.",
    MessageClass.NACK_REACH_QUEUE_TIMEOUT: "The message did not arrive within its time to reach the queue.",
    MessageClass.NACK_Q_EXCEED_QUOTA: "The destination queue is full. Raise its quota or receive from it.",
    MessageClass.NACK_ACCESS_DENIED: "The sender has no right to send to the destination queue.",
    MessageClass.NACK_HOP_COUNT_EXCEEDED: "The message passed too many routers; do routes form a loop?",
    MessageClass.NACK_BAD_SIGNATURE: "The queue takes authenticated messages only; the signature is wrong or "
    "missing.",
    MessageClass.NACK_BAD_ENCRYPTION: "The destination could not decrypt the message, or takes encrypted "
    "messages only.",
    MessageClass.NACK_COULD_NOT_ENCRYPT: "The message could not be encrypted for its destination.",
    MessageClass.NACK_NOT_TRANSACTIONAL_Q: "The message was sent in a transaction, but the queue is not "
    "transactional.",
    MessageClass.NACK_NOT_TRANSACTIONAL_MSG: "The queue is transactional, but the message was sent outside "
    "of a transaction.",
    MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER: "The destination lacks the cryptographic provider.",
    MessageClass.NACK_SOURCE_COMPUTER_GUID_CHANGED: "The GUID of the sending computer has changed.",
    MessageClass.NACK_Q_DELETED: "The queue was deleted while the message was in it.",
    MessageClass.NACK_Q_PURGED: "The queue was purged while the message was in it.",
    MessageClass.NACK_RECEIVE_TIMEOUT: "No program received the message within its time to be received.",
    MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER: "The destination did not report a receipt in time; the "
    "message may have been received.",
    MessageClass.NACK_RECEIVE_REJECTED: "The receiving program rejected the message.",
}
"""What happened to a dead letter, by the message class that gives the reason."""

RIGHTS: Final[dict[str, str]] = {
    "WRITE_MESSAGE": "send messages",
    "DELETE_MESSAGE": "receive messages",
    "PEEK_MESSAGE": "peek at messages",
    "DELETE_JOURNAL_MESSAGE": "receive messages of the journal",
    "CREATE_QUEUE": "create queues",
    "DELETE_DEADLETTER_MESSAGE": "receive dead letters",
    "PEEK_DEADLETTER_MESSAGE": "peek at dead letters",
    "DELETE_JOURNAL_QUEUE_MESSAGE": "receive messages of the machine journal",
    "PEEK_JOURNAL_QUEUE_MESSAGE": "peek at the machine journal",
    "SET_MACHINE_PROPERTIES": "administer the queue manager",
    "GET_MACHINE_PROPERTIES": "read the settings",
    "DELETE_MACHINE": "delete the queue manager",
    "SET_QUEUE_PROPERTIES": "change the settings",
    "GET_QUEUE_PROPERTIES": "read the settings",
    "DELETE_QUEUE": "delete the queue",
    "GET_QUEUE_PERMISSIONS": "read the access list",
    "GET_MACHINE_PERMISSIONS": "read the access list",
    "CHANGE_QUEUE_PERMISSIONS": "change the access list",
    "CHANGE_MACHINE_PERMISSIONS": "change the access list",
    "TAKE_QUEUE_OWNERSHIP": "take the ownership",
    "TAKE_MACHINE_OWNERSHIP": "take the ownership",
}
"""What a right allows, by its name without MQSEC_."""

_RIGHT: Final = re.compile(r"MQSEC_(\w+)")
_SYSTEM: Final = "S-1-5-18"
_UNIX_USER: Final = "S-1-22-1-"  # and the number of a user of the server's computer
_KINDS: Final = {
    "subqueue": "subqueue",
    "journal": "journal",
    "deadletter": "dead letters",
    "xact_deadletter": "transactional dead letters",
}
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def reason(value: int) -> str:
    """Return a sentence for the reason of a dead letter."""
    return REASONS.get(value, f"Message class {class_name(value)}.")


def class_name(value: int) -> str:
    """Return the name of a message class."""
    return name_of(value)


def account(value: Mapping[str, str]) -> str:
    """Return the name of an account; without one, the number of a user of the computer, or the SID. `value`
    has its `name` and `sid`.
    """
    name, sid = value["name"], value["sid"]
    if name or not sid:
        return name or "–"
    if sid.startswith(_UNIX_USER):
        return f"uid:{sid.removeprefix(_UNIX_USER)}"
    return "Local System" if sid == _SYSTEM else sid


def code(text: str) -> Markup:
    """Return a text in which the parts between backticks are set as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup('<span class="mono">{}</span>').format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def count(value: int) -> str:
    """Return a number with a thin space between groups of three digits."""
    return f"{value:,}".replace(",", "\u202f")


def plural(value: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 message`, `2 messages`. `many` is the plural if it is not regular."""
    return f"{count(value)} {noun_of(value, one, many)}"


def literal(value: object) -> str:
    """Return a value of the configuration: a list with commas, true or false, a number."""
    if isinstance(value, list | tuple):
        return ", ".join(map(literal, value)) or "(empty)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def path(name: str) -> Markup:
    """Return the name of a queue, which a browser may break after each backslash."""
    return Markup("\\<wbr>").join(name.split("\\"))


def utc(seconds: int) -> str:
    """Return a time in seconds since 1970 for a place without a heading that says UTC."""
    shown = moment(seconds)
    return shown if shown == "–" else f"{shown} UTC"


def in_words(text: str) -> str:
    """Return a text with words in place of the names of rights, such as MQSEC_PEEK_MESSAGE."""
    return _RIGHT.sub(
        lambda found: f"the right to {RIGHTS[found[1]]}" if found[1] in RIGHTS else found[0], text
    )


def kind_of_queue(queue: Mapping[str, Any]) -> str:
    """Return the kind of a queue in words."""
    if queue["kind"] != "queue":
        return _KINDS.get(queue["kind"], f"{queue['kind']} queue")
    return "private queue" if "\\private$\\" in queue["name"].casefold() else "public queue"


def caller(entry: Mapping[str, Any]) -> str:
    """Return the caller of an entry of the audit without its SID, which the page shows beside it: `root`
    with the number of a user of the computer, so that a user of the users file is not taken for it.
    """
    name, sid = entry["caller"], entry["sid"]
    if not sid or not name.endswith(f" ({sid})"):
        return name or "–"
    number = f" (uid:{sid.removeprefix(_UNIX_USER)})" if sid.startswith(_UNIX_USER) else ""
    return f"{name.removesuffix(f' ({sid})')}{number}"


def sentence(text: str) -> str:
    """Return an error text, which begins with a small letter and has no full stop, as a sentence."""
    end = "" if text.endswith((".", "?", "!")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def size(value: int) -> str:
    """Return a number of bytes with a unit."""
    amount, unit = float(value), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{value} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def rate(value: float) -> str:
    """Return a number of messages per second."""
    return f"{value:.1f}/s" if value < 100 else f"{count(round(value))}/s"


def duration(seconds: float) -> str:
    """Return a span of time in its two largest units: `3 d 4 h`, `5 min 6 s`."""
    rest = max(0, int(seconds))
    parts: list[tuple[int, str]] = []
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if rest >= length or parts or unit == "s":
            parts.append((rest // length, unit))
            rest %= length
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number or len(parts) == 1)


def moment(seconds: int) -> str:
    """Return a time in seconds since 1970 as UTC; a dash for 0 or a time that no calendar has."""
    if seconds <= 0:
        return "–"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "–"
