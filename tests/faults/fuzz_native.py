"""Compiles copies of native modules for fuzzing: with a passage changed, with coverage and address checks."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "_native"
PACKAGE = "msmq_fast._native"
INSTRUMENTED = ("-fsanitize=address,fuzzer-no-link", "-g", "-O1")
BUILD = """
import sys
from Cython.Build import cythonize
from setuptools import Extension, setup
name, *flags = sys.argv[1:]
options = {"include_dirs": ["."], "extra_compile_args": flags, "extra_link_args": flags}
copy = Extension("msmq_fast._native." + name, [name + ".pyx"], **options)
modules = cythonize([copy], quiet=True, compiler_directives={"language_level": 3})
setup(script_args=["-q", "build_ext", "--inplace"], packages=[], ext_modules=modules)
"""


def build(
    name: str,
    directory: Path,
    change: tuple[str, str, str] | None = None,
    *,
    flags: tuple[str, ...] = (),
    compiler: str | None = None,
) -> Path:
    """The module `name` made in `directory`; `change`: a file, what stands in it, what replaces that."""
    package = directory / "msmq_fast" / "_native"
    package.mkdir(parents=True, exist_ok=True)
    for place in (package, package.parent):
        (place / "__init__.pxd").touch()
    for source in [*SOURCES.glob("*.p*"), *SOURCES.glob("*.h")]:
        shutil.copy(source, directory)
        if source.suffix == ".pxd":
            shutil.copy(source, package)
    if change is not None:
        file, right, wrong = change
        text = (directory / file).read_text()
        assert text.count(right) == 1
        (directory / file).write_text(text.replace(right, wrong))
    environment = dict(os.environ)
    if compiler is not None:
        environment |= {"CC": compiler, "LDSHARED": f"{compiler} -shared"}
    subprocess.run(
        [sys.executable, "-c", BUILD, name, *flags],
        cwd=directory,
        check=True,
        capture_output=True,
        timeout=300,
        env=environment,
    )
    (module,) = package.glob(f"{name}.*.so")
    return module


def load(name: str, path: str) -> ModuleType:
    """The extension module of this file under the name of the installed one, for all that import it later."""
    full = f"{PACKAGE}.{name}"
    loader = importlib.machinery.ExtensionFileLoader(full, path)
    spec = importlib.util.spec_from_file_location(full, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module
    loader.exec_module(module)
    return module


def sanitized() -> dict[str, str]:
    """The environment in which Python can load a module that was built with INSTRUMENTED."""
    import atheris

    return os.environ | {
        "LD_PRELOAD": str(Path(atheris.path()) / "asan_with_fuzzer.so"),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }


def instrumented(name: str, directory: Path) -> Path | None:
    """A copy with coverage counters and address checks, None where there is no clang."""
    if shutil.which("clang") is None:
        return None
    directory.mkdir()
    return build(name, directory, flags=INSTRUMENTED, compiler="clang")


def run(fuzzer: Path, duration: int, work: Path, native: Path | None) -> subprocess.CompletedProcess[str]:
    """A fuzzer as a process of its own; a finding is exit code 77, a touched byte outside 1.

    `native`: a module to fuzz instead of the installed one, or a directory of several.
    """
    environment = dict(os.environ)
    command = [sys.executable, str(fuzzer), "--seconds", str(duration), "--work", str(work)]
    if native is not None:
        command += ["--native", str(native)]
        modules = native.glob("*.so") if native.is_dir() else [native]
        if any(b"__asan_init" in module.read_bytes() for module in modules):
            environment = sanitized()
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=duration + 300,
        env=environment,
    )
