"""The fuzzer runs clean on the parser, and finds each of three bounds bugs planted in a copy of it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "_native"
FUZZER = ROOT / "tests" / "faults" / "fuzz_framing.py"
FOUND = 77
BUILD = """
from Cython.Build import cythonize
from setuptools import Extension, setup
copy = Extension("framing", ["framing.pyx"])
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


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=300)


def build_with_bug(directory: Path, right: str, wrong: str) -> Path:
    """Compile a copy of the extension in which `right` reads `wrong`."""
    for source in SOURCES.glob("framing*"):
        (directory / source.name).write_bytes(source.read_bytes())
    walk = directory / "framing_walk.pxi"
    text = walk.read_text()
    assert text.count(right) == 1
    walk.write_text(text.replace(right, wrong))
    package = directory / "msmq_fast" / "_native"
    package.mkdir(parents=True)
    for name in (package, package.parent):
        (name / "__init__.pxd").touch()
    (package / "framing.pxd").write_bytes((directory / "framing.pxd").read_bytes())
    command = [sys.executable, "-c", BUILD]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=200)
    (module,) = directory.glob("framing.*.so")
    return module


@pytest.mark.long(seconds=40)
def test_no_difference_between_the_native_parser_and_the_reference(tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    result = fuzz("--seconds", "30", "--work", str(tmp_path))
    assert result.returncode == 0, result.stderr[-4000:]


@pytest.mark.long(seconds=60)
@pytest.mark.timeout(400)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bounds_bug_is_found(bug: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    module = build_with_bug(tmp_path, *BUGS[bug])
    result = fuzz("--seconds", "120", "--work", str(tmp_path / "work"), "--native", str(module))
    assert result.returncode == FOUND, result.stderr[-4000:]
    assert "AssertionError: native" in result.stdout


@pytest.mark.long(seconds=30)
def test_a_copy_without_a_bug_is_clean(tmp_path: Path) -> None:
    """So that what the fuzzer finds in the other copies is the bug and not the copying."""
    pytest.importorskip("atheris")
    right, _ = next(iter(BUGS.values()))
    module = build_with_bug(tmp_path, right, right)
    result = fuzz("--seconds", "5", "--work", str(tmp_path / "work"), "--native", str(module))
    assert result.returncode == 0, result.stderr[-4000:]
