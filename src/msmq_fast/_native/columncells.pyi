"""Types of finished columns; see src/_native/columncells.pyx."""

class Segment:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Encoded:
    rows: int
    columns: list[tuple[int, list[Segment | None]]]
    bytes: int
    gone: int
    damaged: int
    next: int
    first: int
    finished: bool
