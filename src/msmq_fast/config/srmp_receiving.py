"""The part of section [srmp] of the configuration that is about messages that arrive."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key
from msmq_fast.config.srmp_names import SrmpNamesConfig

__all__ = ["SrmpReceivingConfig"]


@dataclass(slots=True)
class SrmpReceivingConfig(SrmpNamesConfig):
    """How messages are taken in, and how streams are acknowledged."""

    check_expiry: bool = key(
        kinds.FLAG,
        True,
        "messages whose time is over when they arrive are dropped, and answered with 200; "
        "else they are kept, without that limit",
    )
    expired_dead_letters: int = key(
        kinds.size(0, 1 << 40),
        16 << 20,
        "bytes of dead letters in an hour that messages of one address (IPv6: of one /64) which have expired "
        "on arrival leave here; beyond it the answer is 400, and their senders keep them",
    )
    receipts_to: tuple[str, ...] = key(
        name_kinds.HOSTS,
        (),
        "hosts (*.example.org stands for all below it) and networks that receipts go to, besides the address "
        "that their message came from; acknowledgments of messages over MS-MQQB to HTTP names go only there",
    )
    receipt_delay: float = key(
        kinds.duration(0.05, 60), 0.5, "how long a stream pauses before it is acknowledged"
    )
    receipt_delay_max: float = key(
        kinds.duration(0.05, 600), 10.0, "a stream that does not pause is acknowledged that often"
    )
    stream_lifetime: float = key(
        kinds.duration(86_400, 10 * 365 * 86_400.0),
        90 * 86_400.0,
        "a stream of which nothing came for so long is forgotten",
    )
