"""Types of the base of a Receiver; see src/_native/receivebase.pyx."""

class ReceiverBase:
    open: bool
    plain: bool
    lingering: bool
    hop_limit: int
    peer: bytes | None
    @property
    def result(self) -> int: ...
    @property
    def header_result(self) -> int: ...
    @property
    def packets(self) -> int: ...
    @property
    def headers(self) -> int: ...
    @property
    def delivered(self) -> int: ...
    @property
    def relayed(self) -> int: ...
