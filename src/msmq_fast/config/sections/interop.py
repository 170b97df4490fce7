"""Section [interop]: answers to questions that the protocol documents leave open."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds
from msmq_fast.config.kinds import key

__all__ = ["InteropConfig"]


@dataclass(slots=True)
class InteropConfig:
    """Section [interop]: answers to questions that the protocol documents leave open.

    The defaults suit every known peer. Change a key only if a peer refuses the packets of this server, or
    this server refuses those of the peer. The number at the end of each description names the question.
    """

    unsigned_sender_id: str = key(
        kinds.choice("use", "anonymous"),
        "anonymous",
        "meaning of the sender id in an unsigned message. use: it identifies the sender, as on "
        "Windows; anonymous: it is ignored (AMB-23)",
    )
    copy_message_ids: str = key(
        kinds.choice("own", "same"),
        "own",
        "message ids of the copies of a message that is sent to several queues. own: each copy has "
        "its own; same: all have the same (DA-028)",
    )
    signature_queue_names: str = key(
        kinds.choice("field", "content", "text", "text-nul"),
        "field",
        "form in which queue names are hashed for a signature. field: the bytes of the UserHeader; "
        "content: the same without count and padding of direct names; text: the format name in "
        "UTF-16; text-nul: the same with its NUL (AMB-82)",
    )
    signature_label_includes_nul: bool = key(
        kinds.FLAG, True, "hash the label with its terminating NUL for a signature (AMB-82)"
    )
    signature_absent_connector_is_zeros: bool = key(
        kinds.FLAG, False, "hash an absent connector type as 16 zero bytes for a signature (AMB-82)"
    )
    signature_covers_all_queue_lists: bool = key(
        kinds.FLAG, False, "hash all three lists of queues for an MSMQ 3.0 signature (AMB-82)"
    )
    signature_bytes_reversed: bool = key(
        kinds.FLAG, True, "store signatures in reversed byte order, as CryptoAPI does (AMB-82)"
    )
    short_keys_are_padded: bool = key(
        kinds.FLAG, True, "append 11 zero bytes to the 40-bit keys of the base provider (AMB-83)"
    )
    encrypted_size_is_plain_size: bool = key(
        kinds.FLAG,
        True,
        "MessageSize of a message that is encrypted here is the length before encryption (AMB-29)",
    )
    provider_follows_privacy_level: bool = key(
        kinds.FLAG,
        False,
        "encrypt with the provider of the privacy level, not with the best one that the destination "
        "supports (AMB-27)",
    )
    sign_to_direct_names: bool = key(kinds.FLAG, True, "sign messages to direct format names too (QB-402)")
    srmp_stream_element_is_lowercase: bool = key(
        kinds.FLAG, False, 'send the stream element as "stream", not as "Stream" (A-05)'
    )
    srmp_expiry_is_time_to_reach_queue: bool = key(
        kinds.FLAG, False, "expiresAt is the time to reach the queue, not the time to be received (A-07)"
    )
