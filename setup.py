"""Builds the Cython extensions: the sources stand in src/_native, the modules are msmq_fast._native.*"""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).parent
SOURCES = Path("src/_native")
STAGED = Path("build/cython/msmq_fast/_native")
# Cython's code for memoryviews, once. With a copy in each module the build took 2.5 times the processor time.
SHARED = "msmq_fast._native._cyutility"
SHARED_SOURCE = Path("build/c/_cyutility.c")
# Undefined first: some distributions' compilers define a lower level themselves, and would warn.
HARDENED = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong")
# What each message passes gets all optimizations; elsewhere they cost compile time and gain little.
HOT = ("framing", "receive", "scanner")
# Lists and counts behind the parsers: they copy what was measured before. With these flags, too, a
# recoverable message would cost 2.7 % more instructions than without any, instead of 0.5 %.
INTERNAL = frozenset(
    (
        "batch",
        "counter",
        "effects",
        "history",
        "lease",
        "ledger",
        "ledgerbase",
        "lmdbstore",
        "lmdbthreads",
        "memorystore",
        "moving",
        "numbering",
        "operations",
        "outbound",
        "outsequence",
        "positions",
        "queue",
        "queuebase",
        "reading",
        "recovery",
        "removal",
        "seek",
        "series",
        "sources",
        "staging",
        "tables",
        "tally",
        "transaction",
        "transactionahead",
        "transactionbase",
        "transactionend",
        "transactionrecovery",
        "undo",
        "watermark",
        "wheel",
        "window",
    )
)


def stage_declarations() -> None:
    """Lay the .pxd files out as the package they describe, so that modules can cimport one another."""
    target = HERE / STAGED
    target.mkdir(parents=True, exist_ok=True)
    for package in (target, target.parent):
        (package / "__init__.pxd").touch()
    for declaration in (HERE / SOURCES).glob("*.pxd"):
        copy = target / declaration.name
        if not copy.exists() or copy.read_bytes() != declaration.read_bytes():
            shutil.copy2(declaration, copy)


def write_numbers() -> None:
    """Make feedkinds.pxd and tablenumbers.pxd of the enums of the decoder, a module without native ones."""
    decoder = runpy.run_path(str(HERE / "src/msmq_fast/store/decode.py"))
    lines = ["# `kind` and `flags` of a feed entry. Made by setup.py of store/decode.py: do not edit."]
    for prefix, enum in (("EVENT", "EventKind"), ("TRANSPORT", "Transport")):
        lines += ["", f"cdef enum:  # {enum}"]
        lines += [f"    {prefix}_{kind.name} = {int(kind)}" for kind in decoder[enum]]
    for name, kinds in (("about_queue", "ABOUT_QUEUES"), ("not_taken", "NOT_TAKEN")):
        cases = " or ".join(f"kind == EVENT_{kind.name}" for kind in sorted(decoder[kinds]))
        lines += ["", f"cdef inline bint {name}(int kind) noexcept nogil:  # {kinds}", f"    return {cases}"]
    write_declaration("feedkinds.pxd", lines)
    lines = ["# The tables of the store. Made by setup.py of store/decode.py: do not edit."]
    lines += ["", "cdef enum:  # Table"]
    lines += [f"    TABLE_{table.name} = {int(table)}" for table in decoder["Table"]]
    write_declaration("tablenumbers.pxd", [*lines, f"    TABLE_COUNT = {len(decoder['Table'])}"])


def write_declaration(name: str, lines: list[str]) -> None:
    """Write a .pxd file. One that would not change keeps its date."""
    target = HERE / SOURCES / name
    text = "\n".join(lines) + "\n"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)


def write_shared_source() -> None:
    """Generate the C code that the modules share. A file that would not change keeps its date."""
    target = HERE / SHARED_SOURCE
    fresh = target.parent / "fresh" / target.name  # Cython makes the name of the module of that of the file
    fresh.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(  # noqa: S603 - our own arguments
        [sys.executable, "-m", "cython", f"--generate-shared={fresh}"], check=True
    )
    if not target.exists() or target.read_bytes() != fresh.read_bytes():
        fresh.replace(target)


def extension(module: str, source: Path, flags: tuple[str, ...]) -> Extension:
    return Extension(
        module,
        [str(source)],
        include_dirs=[str(SOURCES)],
        depends=sorted(str(SOURCES / header.name) for header in (HERE / SOURCES).glob("*.h")),
        extra_compile_args=[
            *flags,
            "-fno-strict-aliasing",
            "-g0",
            "-Wno-unused-function",
            "-Wno-sign-compare",
            "-pthread",
        ],
        extra_link_args=["-pthread", "-Wl,-z,relro,-z,now"],
    )


def extensions() -> list[Extension]:
    """The modules to build: all of them, or those that a developer names in MSMQ_FAST_ONLY."""
    names = sorted(source.stem for source in (HERE / SOURCES).glob("*.pyx"))
    only = os.environ.get("MSMQ_FAST_ONLY", "").split()
    if only:
        names = [name for name in names if name in only]
    return [extension(f"msmq_fast._native.{name}", SOURCES / f"{name}.pyx", flags_of(name)) for name in names]


def flags_of(name: str) -> tuple[str, ...]:
    """The optimization of a module, and whether it is hardened."""
    level = "-O3" if name in INTERNAL or name.startswith(HOT) else "-O2"
    return (level,) if name in INTERNAL else (level, *HARDENED)


def shared_extension() -> list[Extension]:
    if os.environ.get("MSMQ_FAST_ONLY"):
        return []
    write_shared_source()
    return [extension(SHARED, SHARED_SOURCE, ("-O1", *HARDENED))]


class Build(build_ext):
    """Compiles the modules and writes a line for each, since the whole takes minutes on a slow machine."""

    def build_extension(self, ext: Extension) -> None:
        module = Path(self.get_ext_fullpath(ext.name))
        before = module.stat().st_mtime_ns if module.exists() else None
        super().build_extension(ext)
        if module.stat().st_mtime_ns != before:
            place = f"{self.extensions.index(ext) + 1} of {len(self.extensions)}"
            print(f"native module {place}: {ext.name}", file=sys.stderr, flush=True)


os.chdir(HERE)
write_numbers()
stage_declarations()
setup(
    cmdclass={"build_ext": Build},
    ext_modules=shared_extension()
    + cythonize(
        extensions(),
        include_path=["build/cython"],
        build_dir="build/c",
        nthreads=int(os.environ.get("MSMQ_FAST_BUILD_JOBS", "2")),
        compiler_directives={
            "language_level": 3,
            "embedsignature": True,
            "freethreading_compatible": False,
            "auto_pickle": False,
        },
        shared_utility_qualified_name=SHARED,
    ),
    options={"build_ext": {"parallel": int(os.environ.get("MSMQ_FAST_BUILD_JOBS", "2"))}},
)
