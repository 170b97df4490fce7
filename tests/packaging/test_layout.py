"""Shared helpers of the tests are in tests/support, no module imports a test module, tests have tiers, and
files stay short.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.statements import statements

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in ROOT.glob("tests/**/*.py")}
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in SOURCES}

pytestmark = pytest.mark.smoke

WITHOUT_SMOKE = {"faults"}
"""Crashes and attacks take longer than the tier has."""

LINES = 600
CODE = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".c", ".h"}
LONGER: set[str] = set()
"""Files that may have more lines. Split a file by subject instead of adding it here."""


def _imported(path: Path, text: str) -> Iterator[Path]:
    """The test modules and helpers that one of them imports, at its top or in a function."""
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = path.parts[: len(path.parts) - node.level] if node.level else ()
            module = ".".join((*package, *filter(None, [node.module])))
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found = (MODULES[name] for name in names if name in MODULES)
        yield from (other for other in found if other.name != "__init__.py")


def _room(path: Path) -> str:
    """The folder below tests; empty for the settings of the whole run: conftest, rights, rotation."""
    return path.parts[1] if len(path.parts) > 2 else ""


def _complaints(sources: dict[Path, str]) -> list[str]:
    found = []
    for path, text in sources.items():
        for other in _imported(path, text):
            if other.name.startswith("test_"):
                found.append(f"{path} imports the test module {other}: move what both use into a helper")
            elif _room(other) not in ("", "support", _room(path)):
                found.append(f"{path} imports {other}: move it to tests/support")
    return found


def test_helpers_of_several_folders_are_in_support_and_no_test_module_is_imported():
    assert _complaints(SOURCES) == []


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("from tests.packaging import test_layout", "imports the test module"),
        ("from tests.packaging.test_layout import ROOT", "imports the test module"),
        ("def late():\n    import tests.packaging.test_layout", "imports the test module"),
        ("from ..packaging.test_layout import ROOT", "imports the test module"),
        ("from tests.srmp.envelopes import x", "move it to tests/support"),
        ("from ..srmp import envelopes", "move it to tests/support"),
    ],
)
def test_what_is_in_the_wrong_place_is_named(statement: str, complaint: str):
    for path in (Path("tests/qm/test_new.py"), Path("tests/support/new.py")):
        if not (path.parts[1] == "support" and ".." in statement):
            (found,) = set(_complaints({path: statement}))
            assert complaint in found


def test_each_folder_has_a_smoke_test_and_no_smoke_test_is_long():
    """`make smoke` finds the modules by this line. A test that is not long is in the tier `ci`."""
    tests = {path: text for path, text in SOURCES.items() if path.name.startswith("test_")}
    smoke = {path for path, text in tests.items() if "\npytestmark = pytest.mark.smoke\n" in text}
    assert {_room(path) for path in tests} - {_room(path) for path in smoke} == WITHOUT_SMOKE
    assert [path for path in smoke if "\n@pytest.mark.long" in tests[path]] == []


def _long_files(root: Path) -> set[str]:
    """The files of code below the four folders that have more than LINES lines."""
    files = (path for folder in ("src", "tests", "tools", "bench") for path in (root / folder).rglob("*"))
    code = (path for path in files if path.suffix in CODE and path.is_file())
    return {path.relative_to(root).as_posix() for path in code if len(path.read_bytes().splitlines()) > LINES}


def test_no_file_of_code_has_more_than_600_lines():
    """The exceptions are exact: a file that has become short leaves the list."""
    assert _long_files(ROOT) == LONGER


def test_a_file_that_is_too_long_is_named(tmp_path: Path):
    for folder, suffix, lines in (
        ("tests/mqqb", ".py", LINES),
        ("tests/qm", ".py", LINES + 1),
        ("src/_native", ".pyx", LINES + 1),
        ("bench/native", ".h", LINES + 1),
        ("tests/srmp", ".json", LINES + 1),
    ):
        file = tmp_path / folder / f"file{suffix}"
        file.parent.mkdir(parents=True)
        file.write_text("x\n" * lines)
    assert _long_files(tmp_path) == {"tests/qm/file.py", "src/_native/file.pyx", "bench/native/file.h"}
