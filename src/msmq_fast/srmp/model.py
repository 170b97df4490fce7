"""The content of an SRMP envelope as plain data ([MC-MQSRM] 2.2).

Texts are unchanged except for white space around them, which is removed. Dates are Unix seconds UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from msmq_fast.packet.base import NULL_GUID
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.srmp.values import Nonconforming, read_message_id

__all__ = [
    "CommitmentReceipt",
    "DeliveryReceipt",
    "Envelope",
    "Eod",
    "MsmqPart",
    "Nonconforming",
    "Provider",
    "Reference",
    "SignaturePart",
    "StreamPart",
    "StreamReceipt",
]

LABEL_PREFIX = "MSMQ:"
MULTICAST_PREFIX = "MSMQ:MULTICAST="
ORDERING_ACTION = "MSMQ:QM Ordering Ack"
NO_IDENTIFIER = (NULL_GUID, 1)  # of a message whose envelope has no Msmq element; never a duplicate


@dataclass(frozen=True, slots=True)
class StreamPart:
    """The place of a message in a stream (2.2.5.3)."""

    sender: UUID
    sequence: int  # 64 bits: time stamp << 32 | ordinal
    current: int  # from 1
    previous: int | None = None  # None: current - 1
    receipts_to: str | None = None  # URL; in message 1 only
    start: bool = False

    @property
    def before(self) -> int:
        """The number of the message that must have arrived before this one; 0: none (A-12)."""
        return self.current - 1 if self.previous is None else self.previous


@dataclass(frozen=True, slots=True)
class DeliveryReceipt:
    """The receipt for a message that was put into its queue (2.2.5.4)."""

    received_at: int
    id: str  # of the original, as written


@dataclass(frozen=True, slots=True)
class CommitmentReceipt:
    """The receipt for a message that was received from its queue, or will never be received (2.2.5.5)."""

    decided_at: int
    positive: bool
    id: str  # of the original, as written


@dataclass(frozen=True, slots=True)
class StreamReceipt:
    """The receipt for all messages of a stream up to a number (2.2.5.6)."""

    sender: UUID
    sequence: int
    last_ordinal: int


@dataclass(frozen=True, slots=True)
class Eod:
    """The place of a message in its transaction (2.2.6.11)."""

    first: bool = False
    last: bool = False
    connector: UUID | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """A cryptographic provider (2.2.6.12)."""

    type: int
    name: str


@dataclass(frozen=True, slots=True)
class MsmqPart:
    """The Msmq element: attributes of a message that are specific to MSMQ (2.2.6).

    An attribute that is None is absent from the Msmq element.
    """

    source_qm: UUID
    ttrq: int
    message_class: int = MessageClass.NORMAL
    priority: int = 3
    journal: bool = False
    deadletter: bool = False
    correlation: bytes | None = None
    trace: bool = False
    connector_type: UUID | None = None
    app: int | None = None
    body_type: int = 0
    hash_algorithm: int | None = None
    eod: Eod | None = None
    provider: Provider | None = None
    destination_mqf: tuple[str, ...] = ()
    admin_mqf: tuple[str, ...] = ()
    response_mqf: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """The digest of one part of a message (2.2.7.1.2). A field that is None is absent from the envelope."""

    uri: str
    digest_method: str | None
    digest_value: str | None


@dataclass(frozen=True, slots=True)
class SignaturePart:
    """A signature over the digests of body and extension (2.2.7)."""

    method: str
    references: tuple[Reference, ...]
    value: bytes
    signed_info: bytes  # the octets of the SignedInfo element as they came, or as they are to be sent
    certificates: tuple[bytes, ...] = ()  # DER, from KeyInfo


@dataclass(slots=True)
class Envelope:
    """One SOAP envelope of SRMP."""

    action: str
    to: str
    id: str
    expires_at: int
    sent_at: int | None = None
    via: str | None = None  # None: no rev element, or an empty one
    durable: bool = False
    services: bool = False  # the element is there, with or without anything in it
    delivery_to: str | None = None
    commitment_to: str | None = None
    positive_only: bool = False
    negative_only: bool = False
    stream: StreamPart | None = None
    delivery_receipt: DeliveryReceipt | None = None
    commitment_receipt: CommitmentReceipt | None = None
    stream_receipt: StreamReceipt | None = None
    msmq: MsmqPart | None = None
    signature: SignaturePart | None = None

    @property
    def label(self) -> str:
        """The label of the message; empty if the action does not begin with the prefix MSMQ: (2.2.4.1)."""
        return self.action[len(LABEL_PREFIX) :] if self.action.startswith(LABEL_PREFIX) else ""

    @property
    def identifier(self) -> tuple[UUID, int]:
        """The GUID of the source and the ordinal; without the Msmq element, the NULL GUID and 1.

        Raises Nonconforming if the envelope has Msmq and the identifier is malformed; `read_envelope` refuses
        such envelopes. SourceQmGuid takes precedence over the GUID in the identifier (3.1.5.1.1, footnote 7).
        """
        if self.msmq is None:
            return NO_IDENTIFIER
        return self.msmq.source_qm, read_message_id(self.id)[1]

    @property
    def message_class(self) -> int:
        """The message class; NORMAL if the envelope has no Msmq element."""
        return MessageClass.NORMAL if self.msmq is None else self.msmq.message_class

    @property
    def is_receipt(self) -> bool:
        """Whether the envelope holds a receipt element of any kind."""
        receipts = (self.delivery_receipt, self.commitment_receipt, self.stream_receipt)
        return any(receipt is not None for receipt in receipts)

    @property
    def multicast(self) -> str | None:
        """`address:port` of a multicast destination, None for a URL."""
        is_multicast = self.to[: len(MULTICAST_PREFIX)].upper() == MULTICAST_PREFIX
        return self.to[len(MULTICAST_PREFIX) :] if is_multicast else None

    @property
    def recoverable(self) -> bool:
        """Whether the message must be on disk before it is acknowledged; always for a stream (A-83)."""
        return self.durable or self.stream is not None

    @property
    def destination_name(self) -> str:
        """The text of the destination's format name, `DIRECT=http://…` or `MULTICAST=…` (3.1.5.1.1)."""
        group = self.multicast
        return f"DIRECT={self.to}" if group is None else f"MULTICAST={group}"
