"""A message as applications see it, with the names that MSMQ gives its properties.

`Message` is what a program sends, `ReceivedMessage` what it receives. Their `value` is the body as plain
data, by the formatters of .NET and COM: see `msmq_fast.bodies`.
"""

from __future__ import annotations

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

Named = TypeVar("Named", bound=IntEnum)


class _Content:
    """What follows from the body and the body type, of both kinds of messages."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def body(self) -> bytes: ...

        @property
        def body_type(self) -> int: ...

    @property
    def text(self) -> str:
        """The body as text, by its body type; UTF-8 where the type says nothing.

        Raises UnicodeDecodeError.
        """
        if self.body_type in (VT_BSTR, VT_LPWSTR):
            return bytes(self.body).decode("utf-16-le").rstrip("\0")
        if self.body_type == VT_LPSTR:
            return bytes(self.body).decode("latin-1").rstrip("\0")
        return bytes(self.body).decode()

    @property
    def decoded(self) -> Decoded:
        """The body read by the formatter that its type and bytes show, with notes; it never raises.

        Each access reads it anew.
        """
        from msmq_fast.bodies import decode  # late: not every program decodes bodies

        return decode(self.body, self.body_type)

    @property
    def value(self) -> Any:
        """The body as plain data: see `msmq_fast.bodies.Decoded`.

        Raises BodyError, a ValueError, if the bytes are not what the body type or their beginning promises.
        """
        found = self.decoded
        if found.error is not None:
            from msmq_fast.bodies import BodyError

            raise BodyError(f"the body ({found.kind}, body type {self.body_type}): {found.error}")
        return found.value


@dataclass(slots=True)
class Message(_Content):
    """A message to be sent. Time-outs are seconds.

    Its queues take paths and format names. `certificate` is the MD5 of the certificate of the caller to sign
    with, empty for the internal one; `privacy_level` asks for at least this encryption, 0 as `hash_algorithm`
    and `encryption_algorithm` for the default; `attach_sender` puts the caller's SID into the message.
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
        """A message with a value that a .NET or COM program reads with its formatter: `xml`, `binary`,
        `activex` or `json`. `type` names the .NET type where the Python value leaves it open (`int16`,
        `single[]`).

        Raises BodyError, a ValueError, for a value that the formatter has no form for.
        """
        from msmq_fast.bodies import encode  # late: not every program encodes bodies

        body, body_type = encode(value, formatter, type=type)
        return cls(body=body, body_type=body_type, **properties)

    @classmethod
    def of_text(cls, text: str, **properties: Any) -> Self:
        """A message whose body is UTF-16 text (VT_BSTR), as the ActiveX formatter and COM write it."""
        return cls(body=text.encode("utf-16-le"), body_type=VT_BSTR, **properties)

    @property
    def recoverable(self) -> bool:
        """Kept on disk by every queue manager on its way."""
        return self.delivery == RECOVERABLE

    @property
    def use_journal_queue(self) -> bool:
        """A copy goes into the journal of the computer when the message has left it; may be set."""
        return bool(self.journal & Journal.JOURNAL)

    @use_journal_queue.setter
    def use_journal_queue(self, wanted: bool) -> None:
        self.journal = self.journal & ~Journal.JOURNAL | (Journal.JOURNAL if wanted else 0)

    @property
    def use_dead_letter_queue(self) -> bool:
        """The message goes into a dead-letter queue if it cannot be delivered; may be set."""
        return bool(self.journal & Journal.DEADLETTER)

    @use_dead_letter_queue.setter
    def use_dead_letter_queue(self, wanted: bool) -> None:
        self.journal = self.journal & ~Journal.DEADLETTER | (Journal.DEADLETTER if wanted else 0)


class ReceivedMessage(_Content):
    """A message that a queue delivered; it does not change. Times are seconds since 1970, time-outs seconds.

    Numbers that this version does not know, of a later server, stay plain integers.
    """

    # Fields are converted on access: a program that reads many messages looks at few fields of each.
    __slots__ = ("_fields", "tag")

    def __init__(self, fields: list[Any], tag: int = 0) -> None:
        """`fields` are those of a MESSAGE or DELIVERY frame: positions of later versions are ignored, those
        that an earlier version lacks get their defaults. `tag` counts deliveries of a subscription.
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
            f"{len(self.body)} bytes>"
        )

    def to_message(self) -> Message:
        """A message to be sent with the same content: body, label, priority, correlation, queues for
        answers.

        What belongs to this delivery stays behind: identifier, class, sender, times, acknowledgments asked
        for.
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
        """Where the message is in its queue; see `Queue.lookup`."""
        return self._fields[0]  # type: ignore[no-any-return]

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self._fields[1]  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """The title that the sender gave it."""
        return self._fields[2]  # type: ignore[no-any-return]

    @property
    def delivery(self) -> Delivery | int:
        """Express or recoverable."""
        return _named(Delivery, self._fields[3])

    @property
    def priority(self) -> int:
        """0 to 7, the highest."""
        return self._fields[4]  # type: ignore[no-any-return]

    @property
    def body_type(self) -> int:
        """PROPID_M_BODY_TYPE: what the body is; 0 if the sender does not say."""
        return self._fields[5]  # type: ignore[no-any-return]

    @property
    def app_specific(self) -> int:
        """A number of the application."""
        return self._fields[6]  # type: ignore[no-any-return]

    @property
    def correlation_id(self) -> bytes:
        """20 bytes, as a rule the identifier of the message that this one answers."""
        return self._fields[7]  # type: ignore[no-any-return]

    @property
    def extension(self) -> bytes:
        """Bytes of the application beside the body."""
        return self._fields[8]  # type: ignore[no-any-return]

    @property
    def response_queue(self) -> str | None:
        """Where an answer goes."""
        return self._fields[9]  # type: ignore[no-any-return]

    @property
    def admin_queue(self) -> str | None:
        """Where acknowledgments go."""
        return self._fields[10]  # type: ignore[no-any-return]

    @property
    def acknowledge(self) -> Acknowledge:
        """Which acknowledgments the sender asked for."""
        return Acknowledge(self._fields[11])

    @property
    def journal(self) -> Journal:
        """Which copies the sender asked for."""
        return Journal(self._fields[12])

    @property
    def message_class(self) -> MessageClass | int:
        """What the message is: normal, or an acknowledgment and of what."""
        return message_class(self._fields[13])

    @property
    def id(self) -> bytes:
        """The 20 bytes of the identifier; `message_id` is its text."""
        return self._fields[14]  # type: ignore[no-any-return]

    @property
    def sent_time(self) -> int:
        """When the sender's queue manager took it."""
        return self._fields[15]  # type: ignore[no-any-return]

    @property
    def arrived_time(self) -> int:
        """When it arrived in this queue."""
        return self._fields[16]  # type: ignore[no-any-return]

    @property
    def arrival_seq(self) -> int:
        """The arrival sequence number of the queue."""
        return self._fields[17]  # type: ignore[no-any-return]

    @property
    def destination_queue(self) -> str | None:
        """The name to which it was sent."""
        return self._fields[18]  # type: ignore[no-any-return]

    @property
    def flags(self) -> InFlag:
        """What the queue manager found out about it."""
        return InFlag(self._fields[19])

    @property
    def sender_id(self) -> bytes | None:
        """The SID of the sender."""
        return self._fields[20]  # type: ignore[no-any-return]

    @property
    def abort_count(self) -> int:
        """How often a transaction that received it was aborted."""
        return self._fields[21]  # type: ignore[no-any-return]

    @property
    def move_count(self) -> int:
        """How often it was moved between subqueues."""
        return self._fields[22]  # type: ignore[no-any-return]

    @property
    def time_to_reach_queue(self) -> int:
        """Seconds that it had to arrive."""
        return self._fields[23]  # type: ignore[no-any-return]

    @property
    def time_to_be_received(self) -> int:
        """Seconds that it has to be received, from sending."""
        return self._fields[24]  # type: ignore[no-any-return]

    @property
    def reason(self) -> int:
        """Of a dead letter: the class that says why it is one; `message_class` is the same then."""
        return self._fields[25]  # type: ignore[no-any-return]

    @property
    def recoverable(self) -> bool:
        """Kept on disk by every queue manager on its way."""
        return bool(self._fields[3] == RECOVERABLE)

    @property
    def transactional(self) -> bool:
        """Sent within a transaction."""
        return bool(self._fields[19] & InFlag.TRANSACTIONAL)

    @property
    def authenticated(self) -> bool:
        """The receiving queue manager verified its signature, by a certificate that is registered for its
        sender.
        """
        return bool(self._fields[19] & InFlag.AUTHENTICATED)

    @property
    def signature_state(self) -> str:
        """`verified`: as `authenticated`; `unknown_signer`: it carries a signature or a certificate, but none
        that is registered for its sender, and anybody can make one; `none`: it carries none.
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
        """The identifier as `{guid}\\ordinal`; empty if the server sent none."""
        return format_message_id(self.id) if self.id else ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that NServiceBus or Rebus put into the extension; {} without any.

        Raises BodyError, a ValueError, if the extension is neither form.
        """
        from msmq_fast.bodies.headers import extension_headers  # late: few programs need it

        return extension_headers(self.extension)

    def to_json(self) -> MessageInfo:
        """The message with the keys of the command line's JSON."""
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
    """The member of an enumeration, or the number itself if it has none."""
    try:
        return kind(value)
    except ValueError:
        return value


def format_message_id(raw: bytes) -> str:
    """`{guid}\\ordinal` of the 20 bytes of a message identifier."""
    return f"{{{UUID(bytes_le=raw[:16])}}}\\{int.from_bytes(raw[16:20], 'little')}"


def bulk(message: Message, limit: int) -> int:
    """About what the message takes in a frame, in bytes.

    Raises InsufficientResources where body and extension pass `limit`: such a frame would end the
    connection.
    """
    content = len(message.body) + len(message.extension)
    if content > limit:
        raise InsufficientResources(
            f"the message is too large: {content} bytes, and a packet has {limit} at most"
        )
    return content + 4 * len(message.label) + 64


def to_wire(message: Message) -> tuple[Any, ...]:
    """The message array of a SEND frame; trailing defaults are left out."""
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
