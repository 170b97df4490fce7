"""Channels of outgoing queues without a server around them."""

from __future__ import annotations

from typing import Any

from msmq_fast.mqqb.channel import ChannelContext, OutgoingChannel
from msmq_fast.qm.queues.stall import FLOWING, Stall

UNIX_TIME = 2_000


class NoCarrier:
    """For channels that the test submits itself."""

    def submit(self, channel: OutgoingChannel, now: float) -> None:
        raise AssertionError("nothing is connected")

    def hold(self, channel: OutgoingChannel) -> None:
        raise AssertionError("nothing is connected")

    def release(self, channel: OutgoingChannel, now: float) -> None:
        raise AssertionError("nothing is connected")

    def kick(self, channel: OutgoingChannel, now: float) -> None:
        raise AssertionError("nothing is connected")

    def obstacle(self, channel: OutgoingChannel, now: float) -> Stall:
        return FLOWING


def context(**values: Any) -> ChannelContext:
    default: dict[str, Any] = {
        "carrier": NoCarrier(),
        "unix_time": lambda: UNIX_TIME,
        "monotonic": lambda: 0.0,
        "touch": lambda: None,
    }
    return ChannelContext(**(default | values))
