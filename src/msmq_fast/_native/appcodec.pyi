"""Types of packets built from application frames; see src/_native/appcodec.pyx."""

from collections.abc import Callable

class PacketBuilder:
    refusal: int
    dead_letters: dict[int, str]
    signatures: dict[int, tuple[int, int, bytes]]
    def __init__(
        self,
        source: bytes,
        address: bytes,
        dest_type: int,
        destination: bytes,
        resolve: Callable[[str], tuple[int, bytes]],
        long_lived: int = 345_600,
        sender: bytes = b"",
    ) -> None: ...
    def packets(
        self,
        payload: bytes | memoryview,
        first_ordinal: int,
        now_s: int,
        transaction: int | None = None,
        following: int = 0,
        step: int = 0,
    ) -> list[bytes | int]: ...
