class Pdu:
    data: bytes
    fault: int
    type: int
    flags: int
    minor: int
    big_endian: bool
    length: int
    auth_length: int
    call_id: int
    alloc_hint: int
    context_id: int
    opnum: int
    stub_offset: int
    trailer_offset: int
    auth_type: int
    auth_level: int
    auth_pad: int
    auth_context_id: int
    @property
    def body(self) -> bytes: ...
    @property
    def header(self) -> bytes: ...
    @property
    def stub(self) -> bytes: ...
    @property
    def padded_stub(self) -> bytes: ...
    @property
    def trailer(self) -> bytes: ...
    @property
    def token(self) -> bytes: ...
    @property
    def object_uuid(self) -> bytes | None: ...

class PduScanner:
    max_fragment: int
    def __init__(self, max_fragment: int) -> None: ...
    def buffer(self, hint: int) -> memoryview: ...
    def commit(self, count: int) -> None: ...
    def feed(self, data: bytes | bytearray | memoryview) -> int: ...
    def take(self) -> Pdu | None: ...
    @property
    def held(self) -> int: ...
    @property
    def capacity(self) -> int: ...

def fragments(
    ptype: int,
    stub: bytes | bytearray | memoryview,
    offset: int,
    budget: int,
    flags: int,
    call_id: int,
    context_id: int,
    opnum: int,
    max_fragment: int,
    trailer: bytes | None = None,
    overhead: int = 0,
) -> tuple[bytes | bytearray, int, int]: ...
