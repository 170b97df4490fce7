"""The interfaces of the tables in `rpc.idl` that the runtime uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

__all__ = ["InterfaceTable", "OperationCodec"]


class OperationCodec(Protocol):
    """One operation of an interface's table (`rpc.ndr`)."""

    @property
    def opnum(self) -> int:
        """Its number."""

    @property
    def name(self) -> str:
        """The name of the service's method."""

    @property
    def obsolete(self) -> bool:
        """True if the number is only reserved and cannot be called."""

    def decode_request(self, stub: bytes | bytearray | memoryview, *, ndr64: bool, big_endian: bool) -> Any:
        """The [in] parameters. Raises RpcFault(RPC_X_BAD_STUB_DATA)."""

    def results(self, args: Any, **outs: Any) -> Any:
        """Returns the response to a request. Parameters that are not in `outs` are zero."""

    def encode_response(
        self, values: Any, *, ndr64: bool, big_endian: bool = False
    ) -> bytes | bytearray | memoryview:
        """The [out] parameters."""


class InterfaceTable(Protocol):
    """An interface as its IDL describes it (`rpc.idl`)."""

    @property
    def name(self) -> str:
        """Its name in the IDL."""

    @property
    def uuid(self) -> UUID:
        """Its UUID."""

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version."""

    @property
    def ops(self) -> Sequence[OperationCodec]:
        """Its operations."""
