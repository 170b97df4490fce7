"""Section [srmp] of the configuration: messages over HTTP and HTTPS."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.server.srmpreceivingconfig import SrmpReceivingConfig

__all__ = ["SrmpConfig"]


@dataclass(slots=True)
class SrmpConfig(SrmpReceivingConfig):
    """Section [srmp]: how messages come and leave over HTTP; the ports are in [server]."""
