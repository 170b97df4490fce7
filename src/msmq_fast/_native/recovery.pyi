"""Types of the start of a store; see src/_native/recovery.pyx."""

import builtins
from collections.abc import Iterable

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.tables import PositionVisitor, Tables

class Loader(PositionVisitor):
    highest_sequence: int
    orphans: dict[int, int]
    damaged: list[builtins.bytes]
    def __init__(
        self,
        ledger: Ledger,
        purges: dict[int, int],
        deleting: Iterable[int] = (),
        silent: Iterable[int] = (),
        held: Iterable[tuple[int, int]] = (),
    ) -> None: ...
    def run(self, tables: Tables) -> int: ...
