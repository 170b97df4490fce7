"""Types of messages that are handed out; see src/_native/queuebase.pyx."""

import builtins

class Received:
    lookup_id: int
    arrival_seq: int
    content_id: int
    arrived_us: int
    packet: builtins.bytes
    abort_count: int
    move_count: int
    reason: int
    dead_letter: int
    @property
    def arrived_time(self) -> int: ...
    @property
    def priority(self) -> int: ...
