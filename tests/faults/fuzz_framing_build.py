"""Copies of the framing extension with one passage changed."""

from __future__ import annotations

from pathlib import Path

from tests.faults.fuzz_native import build

# what stands in framing_walk.pxi, and what a careless author might have written
BUGS = {
    "a count of WCHARs is doubled in 32 bits": (
        "length = 8 + 2 * <uint64_t>get_u32(data + pos[0] + 4)",
        "length = <uint32_t>(8 + 2 * get_u32(data + pos[0] + 4))",
    ),
    "an item is checked without its padding": (
        "    if align4(length) > size - pos[0]:\n        return FAULT_SECURITY_SIZE",
        "    if length > size - pos[0]:\n        return FAULT_SECURITY_SIZE",
    ),
    "list elements may run past their header": (
        "            if at > end:\n                return FAULT_MQF_ELEMENT\n",
        "",
    ),
}


def build_copy(directory: Path, right: str = "", wrong: str = "", flags: tuple[str, ...] = ()) -> Path:
    """The extension made in `directory` from sources in whose framing_walk.pxi `right` reads `wrong`."""
    change = ("framing_walk.pxi", right, wrong) if right else None
    return build("framing", directory, change, flags=flags)
