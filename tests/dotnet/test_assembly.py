"""What the assemblies are and write: identities, golden bodies, and what only .NET Framework has."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import dotnet
from tests.support.processes.servers import Server

GOLDENS = Path(__file__).parents[1] / "bodies" / "goldens"
FRAMEWORK = Path(__file__).parent / "programs" / "framework" / "Framework.cs"
ALL = ("System.Messaging", "MSMQ.Messaging", "Experimental.System.Messaging", "Particular.Msmq")

pytestmark = [pytest.mark.long(seconds=4), pytest.mark.needs("mcs", "mono")]

Bodies = dict[tuple[str, str], tuple[int, bytes]]


def bodies(lines: str) -> Bodies:
    """The bodies of a golden file by formatter and name, with their types; lines of XML end with LF."""
    found = {}
    for line in lines.splitlines():
        entry = json.loads(line)
        body = bytes.fromhex(entry["body"])
        if entry["formatter"] == "xml":
            body = body.replace(b"\r\n", b"\n")
        found[entry["formatter"], entry["name"]] = entry["body_type"], body
    return found


@pytest.fixture(scope="module")
def writer(assembly: Callable[[str], Path]) -> Path:
    """The program that writes golden bodies, with our formatters. Streams contain its name, `mono`."""
    built = assembly("System.Messaging")
    sources = [GOLDENS / "Goldens.cs"]
    return dotnet.compile_program(built, sources, built.parent / "mono.exe", "-define:MESSAGING")


@pytest.mark.parametrize("runtime", [dotnet.MONO, dotnet.NET])
def test_formatters_write_the_bytes_of_those_that_they_replace(
    server: Server, writer: Path, runtime: str
) -> None:
    written = bodies(dotnet.finish(dotnet.start(server, dotnet.command_for(runtime, writer))))
    golden = bodies((GOLDENS / "mono.jsonl").read_text())
    if runtime == dotnet.NET:  # its XmlSerializer declares name spaces in the order of .NET Framework
        written = {key: value for key, value in written.items() if key[0] == "binary"}
        golden = {key: value for key, value in golden.items() if key[0] == "binary"}
    assert len(golden) > 50
    assert written == golden


@pytest.mark.parametrize("name", ALL)
def test_each_name_has_its_assembly_and_name_space(
    assembly: Callable[[str], Path], name: str, tmp_path: Path
) -> None:
    built = assembly(name)
    source = tmp_path / "Identity.cs"
    source.write_text(
        "class Identity { static void Main() { System.Type type = typeof(global::"
        + name
        + '.MessageQueue); System.Console.WriteLine(type.FullName + ", " + type.Assembly.FullName); } }'
    )
    program = dotnet.compile_program(built, [source], built.parent / "identity.exe")
    shown = subprocess.run(["mono", program], capture_output=True, text=True, check=True).stdout
    assert shown.startswith(f"{name}.MessageQueue, {name}, Version=")
    if name == "System.Messaging":
        assert "Version=4.0.0.0, Culture=neutral, PublicKeyToken=b03f5f7f11d50a3a" in shown


def test_an_installer_and_permissions_of_the_framework(
    server: Server, assembly: Callable[[str], Path]
) -> None:
    built = assembly("System.Messaging")
    program = dotnet.compile_program(
        built,
        [FRAMEWORK],
        built.parent / "framework.exe",
        "-r:System.Configuration.Install.dll",
        "-nowarn:618",  # the attribute for an assembly is obsolete, and old programs have it
    )
    shown = dotnet.finish(dotnet.start(server, dotnet.command_for(dotnet.MONO, program), "installed"))
    assert shown.splitlines()[1:] == ["installed True", "installed True", "False", "True False", "True True"]
