"""Builds the Cython extensions: the sources stand in src/_native, the modules are msmq_fast._native.*"""

import os
import runpy
import shutil
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

HERE = Path(__file__).parent
SOURCES = Path("src/_native")
STAGED = Path("build/cython/msmq_fast/_native")
# Undefined first: some distributions' compilers define a lower level themselves, and would warn.
HARDENED = ("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong")
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
        "sources",
        "staging",
        "tables",
        "transaction",
        "transactionahead",
        "transactionbase",
        "transactionend",
        "transactionrecovery",
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


def write_feed_kinds() -> None:
    """Make feedkinds.pxd of the enums of the decoder, which works without native modules."""
    decoder = runpy.run_path(str(HERE / "src/msmq_fast/store/decode.py"))
    lines = ["# `kind` and `flags` of a feed entry. Made by setup.py of store/decode.py: do not edit."]
    for prefix, enum in (("EVENT", "EventKind"), ("TRANSPORT", "Transport")):
        lines += ["", f"cdef enum:  # {enum}"]
        lines += [f"    {prefix}_{kind.name} = {int(kind)}" for kind in decoder[enum]]
    target = HERE / SOURCES / "feedkinds.pxd"
    text = "\n".join(lines) + "\n"
    if not target.exists() or target.read_text() != text:
        target.write_text(text)


def extensions() -> list[Extension]:
    names = sorted(source.stem for source in (HERE / SOURCES).glob("*.pyx"))
    only = os.environ.get("MSMQ_FAST_ONLY", "").split()
    if only:  # a developer who rebuilds one module
        names = [name for name in names if name in only]
    return [
        Extension(
            f"msmq_fast._native.{name}",
            [f"{SOURCES}/{name}.pyx"],
            include_dirs=[str(SOURCES)],
            depends=sorted(str(SOURCES / header.name) for header in (HERE / SOURCES).glob("*.h")),
            extra_compile_args=[
                "-O3",
                "-fno-strict-aliasing",
                "-g0",
                "-Wno-unused-function",
                "-Wno-sign-compare",
                "-pthread",
                *(() if name in INTERNAL else HARDENED),
            ],
            extra_link_args=["-pthread", "-Wl,-z,relro,-z,now"],
        )
        for name in names
    ]


os.chdir(HERE)
write_feed_kinds()
stage_declarations()
setup(
    ext_modules=cythonize(
        extensions(),
        include_path=["build/cython"],
        build_dir="build/c",
        nthreads=int(os.environ.get("MSMQ_FAST_BUILD_JOBS", "2")),
        compiler_directives={
            "language_level": 3,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    ),
    options={"build_ext": {"parallel": int(os.environ.get("MSMQ_FAST_BUILD_JOBS", "2"))}},
)
