"""Protocol towers, which encode an interface and its address for the endpoint mapper (C706 Appendix L)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from uuid import UUID

from msmq_fast.rpc.syntaxes import SyntaxId

__all__ = ["MOST_FLOORS", "Floor", "TcpTower", "TowerError", "decode_floors"]

MOST_FLOORS = 6  # MS-RPCE 3.1.3.5.3: towers with more should be rejected

_UUID, _CONNECTION_ORIENTED, _TCP, _IP = 0x0D, 0x0B, 0x07, 0x09  # protocol identifiers
_COUNT = struct.Struct("<H")
_VERSION = struct.Struct("<H")
_SYNTAX = struct.Struct("<B16sH")  # identifier, UUID, major version
_PORT = struct.Struct(">H")  # addresses are big-endian, the rest of a tower is little-endian
_ANY_ADDRESS = bytes(4)


class TowerError(ValueError):
    """Raised if octets are not a valid tower."""


@dataclass(frozen=True, slots=True)
class Floor:
    """One floor: `left` has at least the protocol identifier, `right` the address data."""

    left: bytes
    right: bytes

    @property
    def protocol(self) -> int:
        """The protocol identifier."""
        return self.left[0]


def decode_floors(octets: bytes | memoryview) -> tuple[Floor, ...]:
    """Returns the floors of a tower. Raises TowerError unless the octets are exactly one tower."""
    data = bytes(octets)
    count, at = _half(data, 0)
    if count > MOST_FLOORS:
        raise TowerError(f"a tower has {count} floors: at most {MOST_FLOORS} are allowed")
    floors = []
    for _ in range(count):
        left, at = _piece(data, at)
        right, at = _piece(data, at)
        if not left:
            raise TowerError("a floor has no protocol identifier")
        floors.append(Floor(left, right))
    if at != len(data):
        raise TowerError(f"{len(data) - at} octets follow the last floor")
    return tuple(floors)


def _half(data: bytes, at: int) -> tuple[int, int]:
    if at + 2 > len(data):
        raise TowerError(f"the tower is truncated at octet {at}")
    return _COUNT.unpack_from(data, at)[0], at + 2


def _piece(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _half(data, at)
    if at + size > len(data):
        raise TowerError(f"a floor reaches {at + size - len(data)} octets beyond the end")
    return data[at : at + size], at + size


@dataclass(frozen=True, slots=True)
class TcpTower:
    """A tower of the protocol sequence ncacn_ip_tcp, which has five floors."""

    interface: SyntaxId
    syntax: SyntaxId
    port: int
    address: bytes = _ANY_ADDRESS
    """IPv4, four octets. Clients ignore it (MS-RPCE 3.1.3.5.3)."""

    @classmethod
    def of_floors(cls, floors: tuple[Floor, ...]) -> TcpTower | None:
        """Returns the tower of these floors; None if they are of another protocol sequence. Raises TowerError
        if they are malformed.
        """
        if len(floors) < 2:
            raise TowerError(f"a tower has {len(floors)} floors: at least 2 are needed")
        interface, syntax = _syntax(floors[0]), _syntax(floors[1])
        rest = floors[2:]
        if tuple(floor.protocol for floor in rest) != (_CONNECTION_ORIENTED, _TCP, _IP):
            return None
        port, address = rest[1].right, rest[2].right
        if len(port) != 2 or len(address) != 4:
            raise TowerError(
                f"a port of {len(port)} octets and an address of {len(address)}: expected 2 and 4"
            )
        return cls(interface, syntax, _PORT.unpack(port)[0], address)

    def encode(self) -> bytes:
        """Returns the octets of the tower."""
        pieces = [
            (_SYNTAX.pack(_UUID, syntax.uuid.bytes_le, syntax.major), _VERSION.pack(syntax.minor))
            for syntax in (self.interface, self.syntax)
        ]
        pieces += [
            (bytes((_CONNECTION_ORIENTED,)), _VERSION.pack(0)),
            (bytes((_TCP,)), _PORT.pack(self.port)),
            (bytes((_IP,)), self.address),
        ]
        parts = [_COUNT.pack(len(pieces))]
        for left, right in pieces:
            parts += (_COUNT.pack(len(left)), left, _COUNT.pack(len(right)), right)
        return b"".join(parts)


def _syntax(floor: Floor) -> SyntaxId:
    if floor.protocol != _UUID or len(floor.left) != _SYNTAX.size or len(floor.right) != _VERSION.size:
        raise TowerError("the first two floors must name an interface and a transfer syntax")
    _, uuid, major = _SYNTAX.unpack(floor.left)
    return SyntaxId(UUID(bytes_le=uuid), major, _VERSION.unpack(floor.right)[0])
