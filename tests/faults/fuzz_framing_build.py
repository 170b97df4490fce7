"""Compiles a copy of the framing extension: with one passage changed, or with the address sanitizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "_native"
BUILD = """
import sys
from Cython.Build import cythonize
from setuptools import Extension, setup
flags = sys.argv[1:]
copy = Extension("framing", ["framing.pyx"], extra_compile_args=flags, extra_link_args=flags)
modules = cythonize([copy], quiet=True, compiler_directives={"language_level": 3})
setup(script_args=["-q", "build_ext", "--inplace"], packages=[], ext_modules=modules)
"""

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
    for source in SOURCES.glob("framing*"):
        (directory / source.name).write_bytes(source.read_bytes())
    if right:
        walk = directory / "framing_walk.pxi"
        text = walk.read_text()
        assert text.count(right) == 1
        walk.write_text(text.replace(right, wrong))
    package = directory / "msmq_fast" / "_native"
    package.mkdir(parents=True)
    for name in (package, package.parent):
        (name / "__init__.pxd").touch()
    (package / "framing.pxd").write_bytes((directory / "framing.pxd").read_bytes())
    command = [sys.executable, "-c", BUILD, *flags]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)
    (module,) = directory.glob("framing.*.so")
    return module
