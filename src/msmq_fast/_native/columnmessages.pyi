"""Types of messages as columns; see src/_native/columnmessages.pyx."""

from collections.abc import Iterable, Mapping

from msmq_fast._native.columncells import Encoded
from msmq_fast._native.columnencoder import Encoder
from msmq_fast._native.columnrows import Rows
from msmq_fast._native.columnstore import Contents

class MessageEncoder(Encoder):
    def __init__(
        self,
        contents: Contents,
        columns: Iterable[tuple[str, str]],
        constants: Mapping[str, str | int | None],
        classes: Mapping[int, str],
    ) -> None: ...
    def encode(self, rows: Rows, holders: Mapping[int, str] | None = None) -> Encoded: ...
