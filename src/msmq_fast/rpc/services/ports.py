"""The ports of the interfaces, as the port methods of qm2qm, qmcomm and RemoteRead return them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["PortType", "RpcPorts"]


class PortType(IntEnum):
    """The protocol and the purpose for which a port is requested: dwPortType of the port methods (MS-MQMP
    3.1.4.24, MS-MQQP 3.1.4.8).
    """

    IP_HANDSHAKE = 0
    IP_READ = 1
    IPX_HANDSHAKE = 2
    IPX_READ = 3


@dataclass(slots=True)
class RpcPorts:
    """TCP ports of the interfaces; the port methods return 0 for an interface that is not served.

    The ports are set once, before the first call is accepted, because clients remember the answers.
    """

    qmcomm: int = 0
    """The port of qmcomm and qmcomm2."""
    qm2qm: int = 0
    remote_read: int = 0

    def of_type(self, port_type: int) -> int:
        """Returns the answer to a port method: 0 for IPX, which is not served, and for an unknown type."""
        if port_type == PortType.IP_HANDSHAKE:
            return self.qmcomm
        if port_type == PortType.IP_READ:
            return self.qm2qm
        return 0
