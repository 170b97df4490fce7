from collections.abc import Callable

from msmq_fast._native.arrowcolumn import Column
from msmq_fast._native.packetblock import PacketBlock

REPLAY_TAG: bytes

class RowError(Exception):
    row: int
    code: int | str
    problem: str
    def __init__(self, row: int, code: int | str, problem: str) -> None: ...

class Destination:
    transactional: bool
    keeps: bool
    def __init__(
        self,
        address: bytes,
        dest_type: int,
        field: bytes,
        transactional: bool,
        resolve: Callable[[str], tuple[int, bytes]],
        keeps: bool,
    ) -> None: ...

class RowBuilder:
    def __init__(
        self,
        source: bytes,
        long_lived: int,
        defaults: dict[str, int | str | bytes],
        replay: str = "extension",
    ) -> None: ...
    def build(
        self,
        rows: int,
        columns: dict[str, Column],
        now_s: int,
        destinations: list[Destination],
        targets: Column | None,
        responses: Column | None = None,
        response_names: list[str | None] | None = None,
        admins: Column | None = None,
        admin_names: list[str | None] | None = None,
    ) -> PacketBlock: ...
