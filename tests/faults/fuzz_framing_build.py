"""Copies of the parser of packets, with one passage changed, and of the scanner."""

from __future__ import annotations

from pathlib import Path

from tests.faults.fuzz_native import build, load

NATIVE = ("framing", "scanner")
"""In the order in which they import one another."""

# what stands in framing.pyx, and what a careless author might have written
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


def build_copy(
    directory: Path,
    right: str = "",
    wrong: str = "",
    *,
    flags: tuple[str, ...] = (),
    compiler: str | None = None,
) -> Path:
    """The directory of both, made in `directory` from sources in whose framing.pyx `right` reads `wrong`."""
    change = ("framing.pyx", right, wrong) if right else None
    for name in NATIVE:
        own = change if name == "framing" else None
        module = build(name, directory, own, flags=flags, compiler=compiler)
    return module.parent


def load_copy(directory: Path) -> None:
    """Use these modules in place of the installed ones. Call this before anything imports those."""
    for name in NATIVE:
        (module,) = directory.glob(f"{name}.*.so")
        load(name, str(module))
