"""Switches for behaviour that only a capture from a Windows peer can settle.

docs/reference/interop-switches.md explains each switch.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """The switches and their defaults. Each switch has the name of the open question in the MS-MQQB rule
    inventory that it answers.
    """

    amb18_reuse_accepted: bool = True
    """Messages for a peer use a session that the peer opened, if there is one."""
    amb19_prompt_ack: bool = True
    """A SessionAck is sent as soon as received recoverable messages are durable, not only by timer or
    count.
    """
    amb19_count_ack: bool = True
    """A SessionAck is sent as soon as half a window is unacknowledged, and after a short time for less."""
    amb60_clamp_parameters: bool = False
    """Time-outs outside their range are clamped; otherwise they close the session."""
    piggyback: bool = True
    """SessionHeaders are added to UserMessages once three quarters of the ack timer have passed
    (3.1.7.11).
    """
