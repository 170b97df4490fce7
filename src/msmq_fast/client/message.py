"""Messages as applications see them, with the names that MSMQ gives their properties.

A program sends a `Message` and receives a `ReceivedMessage`. Their `value` is the body as plain data,
converted by the formatters of .NET and COM: see `msmq_fast.bodies`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from msmq_fast.protocol.classes import MessageClass, message_class
from msmq_fast.protocol.errors import InsufficientResources
from msmq_fast.protocol.frames import (
    CORRELATION_ID_SIZE,
    IN_DEFAULTS,
    IN_FIELDS,
    INFINITE,
    LONG_LIVED,
    InFlag,
)
from msmq_fast.protocol.properties import (
    Acknowledge,
    Authentication,
    Delivery,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journal,
    PrivacyLevel,
)
from msmq_fast.protocol.text import counted

if TYPE_CHECKING:
    from msmq_fast.bodies import Decoded
    from msmq_fast.protocol.resources import MessageInfo

VT_BSTR = 8  # UTF-16 text
VT_LPSTR = 30  # 8-bit text
VT_LPWSTR = 31  # UTF-16 text with a NUL
VT_ARRAY_UI1 = 0x2011  # bytes

EXPRESS = Delivery.EXPRESS
RECOVERABLE = Delivery.RECOVERABLE

_NO_CORRELATION = bytes(CORRELATION_ID_SIZE)
_IDENTIFIER = re.compile(r"\{?([0-9A-Fa-f-]{36})\}?\\([0-9]{1,10})")
_DIGITS = re.compile("[0-9A-Fa-f]{40}")

Named = TypeVar("Named", bound=IntEnum)


class _Content:
    """The properties that both kinds of messages derive from the body and the body type."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def body(self) -> bytes: ...

        @property
        def body_type(self) -> int: ...

    @property
    def text(self) -> str:
        """The body as text, decoded by its body type; as UTF-8 if the type does not name an encoding.

        Raises UnicodeDecodeError.
        """
        if self.body_type in (VT_BSTR, VT_LPWSTR):
            return bytes(self.body).decode("utf-16-le").rstrip("\0")
        if self.body_type == VT_LPSTR:
            return bytes(self.body).decode("latin-1").rstrip("\0")
        return bytes(self.body).decode()

    @property
    def decoded(self) -> Decoded:
        """The body, decoded by `msmq_fast.bodies.decode` according to the body type and the first bytes.
        Never raises: see `Decoded.error`.

        Each access decodes the body again.
        """
        from msmq_fast.bodies import decode  # late: not every program decodes bodies

        return decode(self.body, self.body_type)

    @property
    def value(self) -> Any:
        """The body as plain data: see `msmq_fast.bodies.Decoded`.

        Raises BodyError, a ValueError, if the bytes are not valid for the body type, or for the format that
        the first bytes indicate.
        """
        found = self.decoded
        if found.error is not None:
            from msmq_fast.bodies import BodyError

            raise BodyError(f"the body ({found.kind}, body type {self.body_type}): {found.error}")
        return found.value


@dataclass(slots=True)
class Message(_Content):
    """A message to be sent. Time-outs are in seconds.

    The response, admin and dead-letter queues are paths or format names. `certificate` is the MD5 digest of
    the caller's certificate with which the message is signed; empty: the internal certificate.
    `privacy_level` is the lowest acceptable level of encryption; 0 in `hash_algorithm` or
    `encryption_algorithm` selects the default. `attach_sender` adds the caller's SID to the message.
    """

    body: bytes = b""
    label: str = ""
    delivery: Delivery | int = Delivery.EXPRESS
    priority: int = 3
    body_type: int = 0
    app_specific: int = 0
    correlation_id: bytes = _NO_CORRELATION
    extension: bytes = b""
    response_queue: str | None = None
    admin_queue: str | None = None
    acknowledge: Acknowledge | int = Acknowledge.NONE
    journal: Journal | int = Journal.NONE
    message_class: MessageClass | int = MessageClass.NORMAL
    time_to_reach_queue: int = LONG_LIVED
    time_to_be_received: int = INFINITE
    dead_letter_queue: str | None = None
    authentication: Authentication | int = Authentication.NONE
    privacy_level: PrivacyLevel | int = PrivacyLevel.NONE
    hash_algorithm: HashAlgorithm | int = 0
    encryption_algorithm: EncryptionAlgorithm | int = 0
    certificate: bytes = b""
    attach_sender: bool = False

    @classmethod
    def of(cls, value: Any, formatter: str = "xml", *, type: str | None = None, **properties: Any) -> Self:
        """Make a message whose body holds `value` in the format of a .NET or COM formatter: `xml`, `binary`,
        `activex` or `json`.

        `type` names the .NET type if the Python value does not determine it (`int16`, `single[]`). Raises
        BodyError, a ValueError, if the formatter cannot represent the value.
        """
        from msmq_fast.bodies import encode  # late: not every program encodes bodies

        body, body_type = encode(value, formatter, type=type)
        return cls(body=body, body_type=body_type, **properties)

    @classmethod
    def of_text(cls, text: str, **properties: Any) -> Self:
        """Make a message whose body is UTF-16 text (VT_BSTR), as the ActiveX formatter and COM write it."""
        return cls(body=text.encode("utf-16-le"), body_type=VT_BSTR, **properties)

    @property
    def recoverable(self) -> bool:
        """Whether each queue manager on the message's route keeps it on disk."""
        return self.delivery == RECOVERABLE

    @property
    def use_journal_queue(self) -> bool:
        """Whether a copy goes into the journal of the sending computer when the message has left that
        computer. The property can be set.
        """
        return bool(self.journal & Journal.JOURNAL)

    @use_journal_queue.setter
    def use_journal_queue(self, wanted: bool) -> None:
        self.journal = self.journal & ~Journal.JOURNAL | (Journal.JOURNAL if wanted else 0)

    @property
    def use_dead_letter_queue(self) -> bool:
        """Whether the message goes into a dead-letter queue if it cannot be delivered. The property can be
        set.
        """
        return bool(self.journal & Journal.DEADLETTER)

    @use_dead_letter_queue.setter
    def use_dead_letter_queue(self, wanted: bool) -> None:
        self.journal = self.journal & ~Journal.DEADLETTER | (Journal.DEADLETTER if wanted else 0)


class ReceivedMessage(_Content):
    """A message that a queue delivered; immutable. Times are seconds since 1970, time-outs are in seconds.

    Values of enumerations that this version of the client does not know are plain integers.
    """

    # Fields are converted on access: a program that reads many messages looks at few fields of each.
    __slots__ = ("_fields", "tag")

    def __init__(self, fields: list[Any], tag: int = 0) -> None:
        """`fields` are those of a MESSAGE or DELIVERY frame: positions of later versions are ignored;
        positions that an earlier version does not send get their defaults. `tag` is the number of the
        delivery in its subscription.
        """
        if len(fields) < IN_FIELDS:
            fields = [*fields, *IN_DEFAULTS[len(fields) :]]
        self._fields = fields
        self.tag = tag

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReceivedMessage):
            return NotImplemented
        return self.tag == other.tag and self._fields[:IN_FIELDS] == other._fields[:IN_FIELDS]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"<ReceivedMessage {self.message_id} label={self.label!r} body_type={self.body_type} "
            f"{counted(len(self.body), 'byte')}>"
        )

    def to_message(self) -> Message:
        """Return a message to be sent with the same body, label, priority, correlation id and response queue.

        Properties of this delivery are not copied: the identifier, the class, the sender, the times and the
        requested acknowledgments.
        """
        return Message(
            body=self.body,
            label=self.label,
            delivery=self.delivery,
            priority=self.priority,
            body_type=self.body_type,
            app_specific=self.app_specific,
            correlation_id=self.correlation_id,
            extension=self.extension,
            response_queue=self.response_queue,
        )

    @property
    def lookup_id(self) -> int:
        """The lookup id of the message in its queue; see `Queue.lookup`."""
        return self._fields[0]  # type: ignore[no-any-return]

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self._fields[1]  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """The label: a title that the sender gave the message."""
        return self._fields[2]  # type: ignore[no-any-return]

    @property
    def delivery(self) -> Delivery | int:
        """Express or recoverable."""
        return _named(Delivery, self._fields[3])

    @property
    def priority(self) -> int:
        """The priority, from 0 to 7 (highest)."""
        return self._fields[4]  # type: ignore[no-any-return]

    @property
    def body_type(self) -> int:
        """PROPID_M_BODY_TYPE: the type of the body; 0 if the sender does not state it."""
        return self._fields[5]  # type: ignore[no-any-return]

    @property
    def app_specific(self) -> int:
        """A number whose meaning the applications define."""
        return self._fields[6]  # type: ignore[no-any-return]

    @property
    def correlation_id(self) -> bytes:
        """20 bytes; in an answer, usually the identifier of the message that it answers."""
        return self._fields[7]  # type: ignore[no-any-return]

    @property
    def extension(self) -> bytes:
        """Bytes that applications transfer in addition to the body."""
        return self._fields[8]  # type: ignore[no-any-return]

    @property
    def response_queue(self) -> str | None:
        """The queue for answers; None without one."""
        return self._fields[9]  # type: ignore[no-any-return]

    @property
    def admin_queue(self) -> str | None:
        """The queue for acknowledgments; None without one."""
        return self._fields[10]  # type: ignore[no-any-return]

    @property
    def acknowledge(self) -> Acknowledge:
        """The acknowledgments that the sender requested."""
        return Acknowledge(self._fields[11])

    @property
    def journal(self) -> Journal:
        """The copies that the sender requested: in its computer's journal, in a dead-letter queue."""
        return Journal(self._fields[12])

    @property
    def message_class(self) -> MessageClass | int:
        """The kind of message: normal, or an acknowledgment and its kind."""
        return message_class(self._fields[13])

    @property
    def id(self) -> bytes:
        """The message identifier as 20 bytes; `message_id` is the same as text."""
        return self._fields[14]  # type: ignore[no-any-return]

    @property
    def sent_time(self) -> int:
        """The time at which the sender's queue manager accepted the message."""
        return self._fields[15]  # type: ignore[no-any-return]

    @property
    def arrived_time(self) -> int:
        """The time at which the message arrived in this queue."""
        return self._fields[16]  # type: ignore[no-any-return]

    @property
    def arrival_seq(self) -> int:
        """The message's arrival sequence number in the queue."""
        return self._fields[17]  # type: ignore[no-any-return]

    @property
    def destination_queue(self) -> str | None:
        """The queue name to which the message was sent."""
        return self._fields[18]  # type: ignore[no-any-return]

    @property
    def flags(self) -> InFlag:
        """What the queue manager determined about the message, such as whether its signature is valid."""
        return InFlag(self._fields[19])

    @property
    def sender_id(self) -> bytes | None:
        """The SID of the sender."""
        return self._fields[20]  # type: ignore[no-any-return]

    @property
    def abort_count(self) -> int:
        """The number of aborted transactions that had received the message."""
        return self._fields[21]  # type: ignore[no-any-return]

    @property
    def move_count(self) -> int:
        """The number of moves of the message between subqueues."""
        return self._fields[22]  # type: ignore[no-any-return]

    @property
    def time_to_reach_queue(self) -> int:
        """The seconds after sending within which the message had to arrive in its queue."""
        return self._fields[23]  # type: ignore[no-any-return]

    @property
    def time_to_be_received(self) -> int:
        """The seconds after sending within which the message must be received."""
        return self._fields[24]  # type: ignore[no-any-return]

    @property
    def reason(self) -> int:
        """For a dead letter, the message class that states why it became a dead letter; `message_class` has
        the same value.
        """
        return self._fields[25]  # type: ignore[no-any-return]

    @property
    def transaction(self) -> int:
        """For a transactional message, the sum of 1 (the first message of its transaction to this queue), 2
        (the last one) and 4 times the number of the transaction at its source; else 0.
        """
        return self._fields[26]  # type: ignore[no-any-return]

    @property
    def recoverable(self) -> bool:
        """Whether each queue manager on the message's route kept it on disk."""
        return bool(self._fields[3] == RECOVERABLE)

    @property
    def transactional(self) -> bool:
        """Whether the message was sent in a transaction."""
        return bool(self._fields[19] & InFlag.TRANSACTIONAL)

    @property
    def authenticated(self) -> bool:
        """Whether the receiving queue manager verified the signature with a certificate that is registered
        for the sender.
        """
        return bool(self._fields[19] & InFlag.AUTHENTICATED)

    @property
    def signature_state(self) -> str:
        """The state of the signature: `verified`, `unknown_signer` or `none`.

        `verified`: `authenticated` is true. `unknown_signer`: the message is signed, or has a certificate,
        but the certificate is not registered for the sender: anyone could have made the signature. `none`:
        the message has neither.
        """
        if self.authenticated:
            return "verified"
        return "unknown_signer" if self._fields[19] & InFlag.UNKNOWN_SIGNER else "none"

    @property
    def source_machine(self) -> UUID | None:
        """GUID of the queue manager that first sent the message."""
        return UUID(bytes_le=self.id[:16]) if self.id else None

    @property
    def message_id(self) -> str:
        """The message identifier as `{guid}\\ordinal`; empty if the server did not send it."""
        return format_message_id(self.id) if self.id else ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that NServiceBus or Rebus stored in the extension; {} without any.

        Raises BodyError, a ValueError, if the extension holds the headers of neither framework.
        """
        from msmq_fast.bodies.headers import extension_headers  # late: few programs need it

        return extension_headers(self.extension)

    def to_json(self) -> MessageInfo:
        """Return the message as a dict with the keys of the JSON output of the command line."""
        return {
            "lookup_id": self.lookup_id,
            "arrival_seq": self.arrival_seq,
            "message_id": self.message_id,
            "label": self.label,
            "body_b64": b64encode(self.body).decode(),
            "body_size": len(self.body),
            "body_type": self.body_type,
            "priority": self.priority,
            "class": int(self.message_class),
            "correlation_id": self.correlation_id.hex(),
            "app_specific": self.app_specific,
            "extension_b64": b64encode(self.extension).decode(),
            "delivery": "recoverable" if self.recoverable else "express",
            "transactional": self.transactional,
            "sent_time": self.sent_time,
            "arrived_time": self.arrived_time,
            "time_to_reach_queue": self.time_to_reach_queue,
            "time_to_be_received": self.time_to_be_received,
            "response_queue": self.response_queue,
            "admin_queue": self.admin_queue,
            "destination_queue": self.destination_queue,
            "source_machine": str(self.source_machine) if self.id else None,
            "sender_id_b64": b64encode(self.sender_id).decode() if self.sender_id else None,
            "authenticated": self.authenticated,
            "signature_state": self.signature_state,
            "acknowledge": int(self.acknowledge),
            "journal": int(self.journal),
            "abort_count": self.abort_count,
            "move_count": self.move_count,
            "reason": self.reason,
        }


def _named(kind: type[Named], value: int) -> Named | int:
    """Return the member of an enumeration, or the number itself if there is no such member."""
    try:
        return kind(value)
    except ValueError:
        return value


def format_message_id(raw: bytes) -> str:
    """Return `{guid}\\ordinal` for the 20 bytes of a message identifier."""
    return f"{{{UUID(bytes_le=raw[:16])}}}\\{int.from_bytes(raw[16:20], 'little')}"


def parse_message_id(text: str) -> bytes:
    """Return the 20 bytes of a message identifier: `{guid}\\ordinal`, or 40 hexadecimal digits. Raises
    ValueError.
    """
    if _DIGITS.fullmatch(text.strip()):
        return bytes.fromhex(text)
    matched = _IDENTIFIER.fullmatch(text.strip())
    try:
        if matched is not None and int(matched[2]) < 1 << 32:
            return UUID(matched[1]).bytes_le + int(matched[2]).to_bytes(4, "little")
    except ValueError:
        pass  # digits and hyphens, but not a GUID
    raise ValueError(
        rf"{text!r} is not a message id: write it as `send` prints it, {{GUID}}\12, or as 40 digits"
    )


def bulk(message: Message, limit: int) -> int:
    """Return the approximate size of the message in a frame, in bytes.

    Raises InsufficientResources if body and extension together exceed `limit`: the server would close the
    connection because of such a frame.
    """
    content = len(message.body) + len(message.extension)
    if content > limit:
        raise InsufficientResources(
            f"the message is too large: body and extension have {content} bytes; the limit is {limit}"
        )
    return content + 4 * len(message.label) + 64


def to_wire(message: Message) -> tuple[Any, ...]:
    """Return the message array of a SEND frame, without trailing default values."""
    m = message
    head = (m.body, m.label, m.delivery, m.priority, m.body_type, m.app_specific)
    tail = (
        m.correlation_id,
        m.extension,
        m.response_queue,
        m.admin_queue,
        m.acknowledge,
        m.journal,
        m.time_to_reach_queue,
        m.time_to_be_received,
        m.message_class,
        m.dead_letter_queue,
    )
    protection = (
        m.authentication,
        m.privacy_level,
        m.hash_algorithm,
        m.encryption_algorithm,
        m.certificate,
        m.attach_sender,
    )
    if protection != _UNPROTECTED:
        return head + tail + protection
    return head if tail == _PLAIN_TAIL else head + tail


_PLAIN_TAIL = (_NO_CORRELATION, b"", None, None, 0, 0, LONG_LIVED, INFINITE, 0, None)

_UNPROTECTED = (0, 0, 0, 0, b"", False)
