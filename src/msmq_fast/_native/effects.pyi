"""Types of the side effects of arrivals and removals; see src/_native/effects.pyx."""

import builtins

from msmq_fast._native.queue import QueueCore

def dead_letter(target: QueueCore, packet: builtins.bytes, reason: int) -> bool: ...
