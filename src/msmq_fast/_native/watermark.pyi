"""Types of the watermark of bulk readers; see src/_native/watermark.pyx."""

from collections.abc import Callable

from msmq_fast._native.batch import CommitListener
from msmq_fast._native.ledger import Ledger

class VisibilityWatermark(CommitListener):
    def __init__(self, ledger: Ledger) -> None: ...
    def look(self, sink: Callable[[], object] | None = None) -> int: ...
