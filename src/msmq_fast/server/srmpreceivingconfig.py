"""The part of section [srmp] of the configuration that is about messages that arrive."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.server import kinds
from msmq_fast.server.kinds import key
from msmq_fast.server.srmpnamesconfig import SrmpNamesConfig

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
