"""Switches for what only a capture from a Windows peer can settle.

docs/reference/interop-switches.md explains each.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """Named after the open question of the MS-MQQB rule inventory that each one answers."""

    amb18_reuse_accepted: bool = True
    """Messages for a peer travel over a session that the peer opened, if there is one."""
    amb19_prompt_ack: bool = True
    """A SessionAck follows as soon as received recoverable messages are durable, not only by timer
    or count."""
    amb19_count_ack: bool = True
    """A SessionAck follows as soon as half a window is unacknowledged, and soon for less."""
    amb60_clamp_parameters: bool = False
    """Time-outs outside their range are clamped; otherwise they close the session."""
    piggyback: bool = True
    """SessionHeaders ride on UserMessages when three quarters of the ack timer are over (3.1.7.11)."""
