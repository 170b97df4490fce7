"""The transfer syntaxes of stubs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NDR", "NDR64", "NDR_BIG_ENDIAN", "SYNTAXES", "Syntax"]


@dataclass(frozen=True, eq=False)  # one object for each syntax: every stub looks it up by identity
class Syntax:
    """The properties in which the syntaxes differ. Sizes are in bytes; `order` is a prefix of the `struct`
    module.
    """

    order: str
    wide: bool
    """True for NDR64: pointers and counts have 8 bytes, enumerations 4, and the ends of unions and structures
    are aligned.
    """

    @property
    def pointer(self) -> int:
        """Size and alignment of a pointer and of a count, in bytes."""
        return 8 if self.wide else 4

    @property
    def pointer_code(self) -> str:
        """The format character of a pointer or a count in the `struct` module."""
        return "Q" if self.wide else "I"

    @property
    def big_endian(self) -> bool:
        """Whether the most significant byte of an integer comes first."""
        return self.order == ">"


NDR = Syntax("<", False)
NDR_BIG_ENDIAN = Syntax(">", False)
NDR64 = Syntax("<", True)
SYNTAXES = (NDR, NDR_BIG_ENDIAN, NDR64)
"""All syntaxes. NDR64 exists only in little-endian order (MS-RPCE 2.2.5)."""
