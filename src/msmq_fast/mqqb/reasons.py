"""The reasons why a session ended and why a message was refused; the server counts and logs each occurrence.

mqqb/receive.py describes how to add a reason for refusing a message.
"""

from enum import StrEnum


class CloseReason(StrEnum):
    """The reason why a session ended."""

    STOPPED = "stopped"
    DISCONNECTED = "disconnected"
    IDLE = "idle"
    HANDSHAKE_TIMEOUT = "handshake timeout"
    ACK_TIMEOUT = "acknowledgment timeout"
    MALFORMED = "malformed packet"
    OUT_OF_STATE = "packet out of state"
    BAD_PARAMETERS = "connection parameters out of range"
    WRONG_SERVER = "addressed to another queue manager"
    WRONG_RESPONSE = "response does not match the request"
    REFUSED = "refused by the peer"
    SESSION_LIMIT = "session limit"
    ADDRESS_LIMIT = "session limit of the address"
    OWN_GUID = "peer presents our own GUID"
    PINNED_GUID = "peer presents a GUID that [[peers]] gives to other addresses"
    SUPERSEDED = "the peer connected again from another address"
    ACK_UNSENT = "acknowledges what was never sent"
    COUNT_MISMATCH = "message counts differ"
    QUOTA = "queue manager quota"
    STORE_FAILED = "store failed"
    NOT_LOCAL = "message for another queue manager, but routing is off here (mqqb.router)"
    STREAM_LIMIT = "too many transactional streams of one address"
    UNROUTED = "too many destinations without a route"
    SLOW_READER = "peer reads too slowly"
    SLOW_WRITER = "peer writes too slowly"
    KEYS = "too many messages wait for key operations"
    UNFINISHED = "too many bytes of incomplete packets"
    EVICTED = "closed to make room, or by an administrator"

    @property
    def is_refusal(self) -> bool:
        """Whether the session ended because of an error of the peer or a limit."""
        return self not in (
            CloseReason.STOPPED,
            CloseReason.DISCONNECTED,
            CloseReason.IDLE,
            CloseReason.EVICTED,  # which the table of connections has counted
        )


class Contest(StrEnum):
    """A conflict between sessions that does not end the session."""

    ANOTHER_ADDRESS = "peer presents the GUID of another live peer"


class Refusal(StrEnum):
    """The reason why a message was dropped although it was counted and acknowledged."""

    DUPLICATE = "duplicate"
    EXPIRED = "time to reach queue passed"
    UNKNOWN_QUEUE = "unknown queue"
    BAD_NAME = "the name of the destination queue breaks the rules for names"
    OUT_OF_ORDER = "out of order"
    NOT_TRANSACTIONAL = "not transactional"
    TRANSACTIONAL = "transactional"
    ENCRYPTED = "encrypted"
    UNDECIPHERED = "encrypted, and its session key, body or signature is wrong"
    SIGNED = "signed"
    UNSUPPORTED_PROVIDER = "cryptographic provider not supported"
    ACCESS_DENIED = "access denied"
    QUARANTINED = "access denied, quarantined"
    QUEUE_QUOTA = "queue quota"
    MALFORMED_ACK = "malformed acknowledgment"
    HOP_COUNT = "too many hops"
    LOOP = "routing loop"
