"""The kinds of configuration keys that hold names of computers, queues, groups and proxies."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from msmq_fast.config.kinds import TEXT, TEXTS, TEXTS_SCHEMA, Kind
from msmq_fast.packet.names import multicast_group, parse_path
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.text import quoted

__all__ = [
    "ADDRESSES",
    "COMPUTER",
    "COMPUTERS",
    "COMPUTER_NAME",
    "GROUP",
    "GUID",
    "HOPS",
    "HOSTS",
    "HTTP_URL",
    "PEERS",
    "PROXY",
    "QUEUE",
]

LONGEST_COMPUTER_NAME: Final = 15  # as Windows has it: the directory and other hosts rely on it


def _text(described: str, good: Callable[[str], bool]) -> Kind:
    """Return the kind of keys whose value is a text that is empty or satisfies `good`; `described` completes
    the sentence "expected …".
    """

    def check(value: object) -> str:
        text = str(TEXT.check(value))
        if text and not good(text):
            raise ValueError(f"expected {described}, got {quoted(text)}")
        return text

    return Kind(described, check, check, {"type": "string"})


def _texts(described: str, good: Callable[[str], bool]) -> Kind:
    """Return the kind of keys whose value is a text or a list of texts, each of which satisfies `good`;
    `described` completes the sentence "expected …".
    """

    def check(value: object) -> tuple[str, ...]:
        for text in TEXTS.check(value):
            if not good(text):
                raise ValueError(f"expected {described}, got {quoted(text)}")
        return tuple(TEXTS.check(value))

    return Kind(described, check, lambda text: check(list(TEXTS.from_text(text))), TEXTS_SCHEMA, list)


def _is_path(text: str) -> bool:
    try:
        parse_path(text, "X")
    except MSMQError:
        return False
    return True


def _is_computer(text: str) -> bool:
    return "\\" not in text and _is_path(rf"{text}\q")


def _is_computer_name(text: str) -> bool:
    return len(text) <= LONGEST_COMPUTER_NAME and _is_computer(text)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_guid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _is_hop(text: str) -> bool:
    """Whether the text is a host name, an address or a GUID. A text with exactly one colon is invalid: the
    part after the colon would be a port.
    """
    return _is_computer(text) and text.count(":") != 1


def _is_receiver(text: str) -> bool:
    """Whether the text is a host, a host pattern, an address or a network to which receipts may be sent."""
    # Imported late: this loads the queue manager, and a command needs the configuration for the socket only.
    from msmq_fast.srmp.returnpath import is_allowed_text

    return is_allowed_text(text)


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - raises for an invalid one
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username


def _is_proxy(text: str) -> bool:
    name, _, port = text.rpartition(":")
    return bool(name) and port.isascii() and port.isdecimal() and 0 < int(port) <= 0xFFFF


COMPUTER_NAME: Final = _text(
    f"a name of at most {LONGEST_COMPUTER_NAME} characters without blanks and backslashes",
    _is_computer_name,
)
COMPUTER: Final = _text("a name without blanks and backslashes", _is_computer)
COMPUTERS: Final = _texts("a name or a list of names without blanks and backslashes", _is_computer)
HOPS: Final = _texts("a text or a list of texts: host names, addresses or GUIDs without a port", _is_hop)
ADDRESSES: Final = _texts("a text or a list of texts: IP addresses", _is_address)
PEERS: Final = _texts(
    "a text or a list of texts: IP addresses or GUIDs", lambda text: _is_address(text) or _is_guid(text)
)
GUID: Final = _text("a GUID", _is_guid)
QUEUE: Final = _text(r"the path of a queue, such as orders or .\private$\orders", _is_path)
GROUP: Final = _text(
    "a multicast group and its port, such as 234.1.1.1:8001", lambda text: bool(multicast_group(text))
)
HTTP_URL: Final = _text("an http or https URL without user name and password", _is_http_url)
PROXY: Final = _text("a text such as proxy:3128", _is_proxy)
HOSTS: Final = _texts(
    "a text or a list of texts: host names, *.example.org, addresses or networks such as 10.0.0.0/8",
    _is_receiver,
)
