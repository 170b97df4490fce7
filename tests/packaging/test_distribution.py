"""What people install: sdist → wheel → clean environment, and the editable install, on each CPython found."""

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environments import make_environment, run
from tools.wheels import interpreters

ROOT = Path(__file__).resolve().parents[2]

# Imports every module of the package, the compiled ones included; those of the extras [spark] and
# [kerberos] need PySpark and python-gssapi.
IMPORT_ALL = """
import importlib, pkgutil, msmq_fast, msmq_fast._native
found = [module.name for module in pkgutil.walk_packages(msmq_fast.__path__, "msmq_fast.")]
extras = ("msmq_fast.spark", "msmq_fast.rpc.auth.kerberos", "msmq_fast.client.telemetry")
names = [name for name in found if not name.endswith(".__main__") and not name.startswith(extras)]
for name in names:
    importlib.import_module(name)
native = [name for name in names if name.startswith("msmq_fast._native.") and "._native._" not in name]
print(len(names), len(native), msmq_fast.__file__)
"""


def native_modules() -> set[str]:
    return {source.stem for source in (ROOT / "src" / "_native").glob("*.pyx")}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the working tree that git knows, without anything built."""
    target = tmp_path_factory.mktemp("checkout")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@pytest.fixture(scope="module")
def sdist(checkout: Path) -> Path:
    run(sys.executable, "-m", "build", "--sdist", "--outdir", "dist", cwd=checkout)
    (archive,) = (checkout / "dist").glob("*.tar.gz")
    return archive


@pytest.mark.long(seconds=20)
@pytest.mark.timeout(900)
def test_the_sdist_holds_what_a_build_needs_and_no_tests(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "src/msmq_fast/py.typed"} <= names
    sources = {
        f"src/_native/{path.name}" for path in (ROOT / "src" / "_native").iterdir() if path.suffix != ".c"
    }
    assert sources <= names
    assert not [
        name for name in names if name.startswith(("tests/", "bench/")) or name.endswith((".so", ".c"))
    ]


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", interpreters())
def test_the_sdist_builds_a_wheel_that_works_alone(sdist, tmp_path, version):
    binaries = make_environment(interpreters()[version], tmp_path / "clean")
    run(binaries / "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, sdist, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "msmq_fast/py.typed" in names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert {f"msmq_fast/_native/{name}.pyi" for name in native_modules()} <= set(names)
    top = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert top == {"msmq_fast"} | {path.name for path in (ROOT / "src").glob("*.py")}
    assert not [name for name in names if name.endswith((".pyx", ".pxd", ".c", ".h")) or "test" in name]

    run(binaries / "pip", "install", "--quiet", wheel, cwd=tmp_path)
    modules, native, where = run(binaries / "python", "-c", IMPORT_ALL, cwd=tmp_path).split()
    assert int(native) == len(native_modules())
    assert int(modules) > int(native)
    assert Path(where).is_relative_to(tmp_path)
    assert run(binaries / "msmq-fast", "--version", cwd=tmp_path).strip()


@pytest.mark.long(seconds=120)
@pytest.mark.timeout(900)
def test_an_editable_install_follows_the_sources(checkout, tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(checkout, tree)
    binaries = make_environment(sys.executable, tmp_path / "editable")
    run(binaries / "pip", "install", "--quiet", "--editable", tree, cwd=tmp_path)
    _, native, where = run(binaries / "python", "-c", IMPORT_ALL, cwd=tmp_path).split()
    assert int(native) == len(native_modules())
    assert Path(where).is_relative_to(tree)
    (tree / "src" / "msmq_fast" / "__init__.py").write_text("MARK = 42\n")
    assert run(binaries / "python", "-c", "import msmq_fast; print(msmq_fast.MARK)", cwd=tmp_path) == "42\n"
