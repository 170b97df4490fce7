"""Types of an operator's operations on messages; see src/_native/operations.pyx."""

import builtins

from msmq_fast._native.batch import CommitListener
from msmq_fast._native.queue import QueueCore

class Identifiers:
    def __init__(self, core: QueueCore) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, packet: builtins.bytes) -> bool: ...
    def add(self, packet: builtins.bytes) -> bool: ...

class Withdrawal(CommitListener): ...

def survey(
    core: QueueCore,
    after: int,
    upto: int,
    count: int,
    *,
    priority: int = -1,
    message_class: int = -1,
    since: int = 0,
    until: int = 0xFFFF_FFFF_FFFF_FFFF,
    identifier: builtins.bytes | None = None,
    keys: list[int] | None = None,
) -> tuple[list[tuple[int, int]], int, bool]: ...
def is_transactional(packet: builtins.bytes) -> bool: ...
def place(core: QueueCore, entries: list[tuple[builtins.bytes, int, int, int, int]]) -> list[int]: ...
def withdraw(core: QueueCore, keys: list[int], event: int) -> int: ...
