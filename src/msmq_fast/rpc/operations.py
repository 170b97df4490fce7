"""The part of the tables of interfaces (`rpc.idl`) that the runtime uses."""

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
        """True: the number is reserved, there is nothing to call."""

    def decode_request(self, stub: bytes | bytearray | memoryview, *, ndr64: bool, big_endian: bool) -> Any:
        """The [in] parameters. Raises RpcFault(RPC_X_BAD_STUB_DATA)."""

    def results(self, args: Any, **outs: Any) -> Any:
        """Results for a request, zero where `outs` does not say otherwise."""

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
