"""The transfer syntaxes of stubs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NDR", "NDR64", "NDR_BIG_ENDIAN", "SYNTAXES", "Syntax"]


@dataclass(frozen=True, eq=False)  # each is one object, looked up by identity for every stub
class Syntax:
    """Differences between the syntaxes: sizes in bytes, `order` as in the `struct` module."""

    order: str
    wide: bool
    """NDR64: pointers and counts have 8 bytes, enumerations 4, unions and the ends of structures are
    aligned."""

    @property
    def pointer(self) -> int:
        """Size and alignment of the representation of a pointer, and of a count."""
        return 8 if self.wide else 4

    @property
    def pointer_code(self) -> str:
        """The code of a pointer or a count in the `struct` module."""
        return "Q" if self.wide else "I"

    @property
    def big_endian(self) -> bool:
        """Whether integers have their most significant byte first."""
        return self.order == ">"


NDR = Syntax("<", False)
NDR_BIG_ENDIAN = Syntax(">", False)
NDR64 = Syntax("<", True)
SYNTAXES = (NDR, NDR_BIG_ENDIAN, NDR64)
"""NDR64 is little-endian only (MS-RPCE 2.2.5)."""
