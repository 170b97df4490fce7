"""Types of the counters of many queues, see src/_native/tally.pyx."""

from msmq_fast._native.queue import QueueCore

COUNTERS: tuple[str, ...]

def sums(cores: list[QueueCore]) -> tuple[int, int]: ...
def first(cores: list[QueueCore], counter: str, descending: bool, most: int) -> list[int]: ...
