"""Types of the event feed as columns; see src/_native/columnevents.pyx."""

from collections.abc import Callable, Iterable, Mapping

from msmq_fast._native.columncells import Encoded
from msmq_fast._native.columnencoder import Encoder
from msmq_fast._native.columnstore import Contents

class EventEncoder(Encoder):
    def __init__(
        self,
        contents: Contents,
        columns: Iterable[tuple[str, str]],
        constants: Mapping[str, str | int | None],
        classes: Mapping[int, str],
        kinds: Mapping[int, str],
        transports: Mapping[int, str],
        resolve: Callable[[int], tuple[str | None, str | None, str | None] | None],
    ) -> None: ...
    def encode(self, start: int, stop: int, max_rows: int) -> Encoded: ...
