"""The protocols (typing) of the interface tables in `rpc.idl`, as the runtime uses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

__all__ = ["InterfaceTable", "OperationCodec"]


class OperationCodec(Protocol):
    """One operation of an interface's table (`rpc.ndr`)."""

    @property
    def opnum(self) -> int:
        """The number of the operation."""

    @property
    def name(self) -> str:
        """The name of the service's method."""

    @property
    def obsolete(self) -> bool:
        """True if the number is only reserved and cannot be called."""

    def decode_request(self, stub: bytes | bytearray | memoryview, *, ndr64: bool, big_endian: bool) -> Any:
        """Returns the [in] parameters of a request from its stub. Raises RpcFault(RPC_X_BAD_STUB_DATA)."""

    def results(self, args: Any, **outs: Any) -> Any:
        """Returns the response to the request `args`. [out] parameters that are not in `outs` are zero."""

    def encode_response(
        self, values: Any, *, ndr64: bool, big_endian: bool = False
    ) -> bytes | bytearray | memoryview:
        """Returns the stub of a response, with the [out] parameters."""


class InterfaceTable(Protocol):
    """An interface as its IDL describes it (`rpc.idl`)."""

    @property
    def name(self) -> str:
        """The name of the interface in the IDL."""

    @property
    def uuid(self) -> UUID:
        """The UUID of the interface."""

    @property
    def version(self) -> tuple[int, int]:
        """The major and the minor version of the interface."""

    @property
    def ops(self) -> Sequence[OperationCodec]:
        """The operations of the interface."""
