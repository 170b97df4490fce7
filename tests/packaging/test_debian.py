"""The Debian package: built, installed, upgraded and purged in a Debian that debootstrap made."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.roots import BUILT, debian

ROOT = Path(__file__).resolve().parents[2]
FIRST, SECOND, LIBRARY = "0.1.0", "0.1.1~test", "libmqrt"
DATA = "/var/lib/msmq-fast"
CONFIG = "etc/msmq-fast/msmq.toml"

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.needs(
        "dpkg-buildpackage",
        "dh",
        "lintian",
        "debootstrap",
        "unshare",
        "setpriv",
        "nsenter",
        "ip",
        "pkg-config",
        rights=["root"],
    ),
]


def run(*command: str, code: int = 0, timeout: float = 300, **variables: str) -> str:
    """Stdout and stderr of a program."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root", **variables},
        cwd=ROOT,
    )
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The package as it is built, the same with a higher version, and the package of the library."""
    target = tmp_path_factory.mktemp("packages")
    command = (sys.executable, "-m", "tools.deb", "--target", str(target), "--version", FIRST)
    library, package = map(Path, run(*command, timeout=1500).splitlines()[-2:])
    opened, higher = target / "opened", target / f"msmq-fast_{SECOND}.deb"
    run("dpkg-deb", "--raw-extract", str(package), str(opened))
    control = opened / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(f"Version: {FIRST}\n", f"Version: {SECOND}\n"))
    run("dpkg-deb", "--build", "-Znone", str(opened), str(higher))
    return {FIRST: package, SECOND: higher, LIBRARY: library}


class System:
    """A Debian in a directory, and a server in it whose network is a namespace of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.server: subprocess.Popen[str] | None = None

    def run(self, *command: str, code: int = 0, **variables: str) -> str:
        return run("chroot", str(self.root), *command, code=code, **variables)

    def install(self, package: Path) -> str:
        """Install a file with what it depends on."""
        (self.root / "tmp" / package.name).write_bytes(package.read_bytes())
        options = ("-o", "Dpkg::Options::=--force-confold", "-o", "APT::Sandbox::User=root")
        command = ("apt-get", "install", "--yes", "--no-install-recommends", *options, f"/tmp/{package.name}")
        return self.run(*command, DEBIAN_FRONTEND="noninteractive")

    def start(self) -> None:
        """Start what the unit starts, as its user and in a network without any other host."""
        unit = (self.root / "lib/systemd/system/msmq-fast.service").read_text()
        (started,) = re.findall(r"(?m)^ExecStart=(.*)$", unit)
        assert re.findall(r"(?m)^User=(.*)$", unit) == ["msmq-fast"]
        as_user = "setpriv --reuid msmq-fast --regid msmq-fast --clear-groups --no-new-privs"
        inside = f"ip link set lo up && exec chroot {shlex.quote(str(self.root))} {as_user} {started}"
        command = [
            "unshare",
            "--net",
            "--mount",
            "sh",
            "-c",
            f"mount -t proc proc {self.root}/proc && {inside}",
        ]
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        line = self.server.stdout.readline()
        assert line.startswith("ready name="), line
        self.ready = dict(word.split("=", 1) for word in line.split()[1:])

    def stop(self) -> int:
        assert self.server is not None
        self.server.terminate()
        code = self.server.wait(30)
        assert self.server.stdout is not None
        self.server.stdout.close()
        self.server = None
        return code

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.wait(10)

    def ok(self, *arguments: str) -> list[Any]:
        """The JSON lines of a command of the package."""
        shown = self.run(
            "/usr/bin/msmq-fast", *arguments, "--json", MSMQ_FAST_ENDPOINT=f"unix:{DATA}/app.sock"
        )
        return [json.loads(line) for line in shown.splitlines()]

    def health(self) -> str:
        """What the command says that a program in the same network asks."""
        assert self.server is not None
        inside = ("nsenter", "--net", "--target", str(self.server.pid))
        return run(*inside, "chroot", str(self.root), "msmq-fast", "health").strip()


@pytest.fixture
def system() -> Iterator[System]:
    root = BUILT / "root"
    run("rm", "-rf", str(root))
    root.mkdir()
    run("tar", "-C", str(root), "-xf", str(debian()))
    installed = System(root)
    # Nothing starts services in a directory.
    (root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
    (root / "usr/sbin/policy-rc.d").chmod(0o755)
    for name in ("etc/resolv.conf", "etc/hosts"):
        with contextlib.suppress(FileNotFoundError):
            (root / name).write_bytes(Path("/", name).read_bytes())
    try:
        yield installed
    finally:
        installed.kill()
        run("rm", "-rf", str(root))


@pytest.mark.long(seconds=150)
def test_lintian_finds_no_error(packages: dict[str, Path]) -> None:
    built = (str(packages[FIRST]), str(packages[LIBRARY]))
    shown = run("lintian", "--tag-display-limit", "0", "--fail-on", "error", *built)
    assert "E: " not in shown
    assert "W: libmqrt" not in shown


@pytest.mark.long(seconds=60)
def test_it_is_installed_used_upgraded_with_messages_inside_and_purged(
    packages: dict[str, Path], system: System
) -> None:
    system.run("apt-get", "update", "-o", "APT::Sandbox::User=root")
    system.install(packages[FIRST])
    assert system.run("/usr/bin/msmq-fast", "--version").strip() == "msmq-fast 0.1.0"
    for document in (
        "usr/share/man/man1/msmq-fast-queue-create.1.gz",
        "usr/share/bash-completion/completions/msmq-fast",
        "usr/share/zsh/vendor-completions/_msmq-fast",
        "usr/share/fish/vendor_completions.d/msmq-fast.fish",
        "etc/default/msmq-fast",
        "etc/systemd/system/multi-user.target.wants/msmq-fast.service",
    ):
        # A unit is enabled by a link that leads out of the directory.
        assert (system.root / document).is_symlink() or (system.root / document).is_file(), document
    assert system.run("stat", "--format", "%U:%G %a", DATA).strip() == "msmq-fast:msmq-fast 750"

    configuration = system.root / CONFIG
    configuration.write_text(configuration.read_text().replace('#name = "ORDERS01"', 'name = "ORDERS01"'))
    system.start()
    assert system.ready["name"] == "ORDERS01"
    assert system.health() == "127.0.0.1:1802: ready"
    guid = system.ready["guid"]
    system.ok("queue", "create", "orders", "--transactional")
    system.ok("send", "orders", "--body", "before", "--count", "50", "--transaction")
    assert system.stop() == 0

    system.install(packages[SECOND])
    assert SECOND in system.run("dpkg-query", "--show", "msmq-fast")
    assert 'name = "ORDERS01"' in configuration.read_text()
    system.start()
    assert (system.ready["name"], system.ready["guid"]) == ("ORDERS01", guid)
    assert len(system.ok("receive", "orders", "--count", "100")) == 50
    system.ok("send", "orders", "--body", "after", "--transaction")
    assert system.stop() == 0

    configuration.write_text("[server]\nnam = 1\n")
    shown = system.run("dpkg-reconfigure", "msmq-fast")
    assert f"msmq-fast is not started, since /{CONFIG} has mistakes" in shown
    assert "nam" in shown

    shown = system.run("apt-get", "purge", "--yes", "msmq-fast")
    assert f"Messages and keys are kept in {DATA}" in shown
    assert (system.root / DATA[1:] / "data.mdb").exists()
    left = ("usr/lib/msmq-fast", "etc/msmq-fast", "etc/default/msmq-fast", "usr/bin/msmq-fast")
    assert [name for name in left if (system.root / name).exists()] == []


@pytest.mark.long(seconds=30)
def test_the_library_reaches_the_server(packages: dict[str, Path], system: System) -> None:
    system.run("apt-get", "update", "-o", "APT::Sandbox::User=root")
    system.install(packages[FIRST])
    system.install(packages[LIBRARY])
    assert (system.root / "usr/include/msmq-fast/mq.h").is_file()
    program = """import ctypes
mqrt = ctypes.CDLL("libmqrt.so")
name = "DIRECT=OS:.\\\\private$\\\\orders\\0".encode("utf-16-le")
queue = ctypes.c_void_p()
print(hex(mqrt.MQOpenQueue(name, 2, 0, ctypes.byref(queue)) & 0xFFFFFFFF))"""
    server = {"MSMQ_FAST_ENDPOINT": f"unix:{DATA}/app.sock"}
    assert system.run("python3", "-c", program, **server).strip() == "0xc00e000b"  # there is no server
    system.start()
    system.ok("queue", "create", "orders")
    assert system.run("python3", "-c", program, **server).strip() == "0x0"
    assert system.stop() == 0


@pytest.mark.long(seconds=20)
def test_purge_removes_messages_if_that_is_asked_for(packages: dict[str, Path], system: System) -> None:
    system.run("apt-get", "update", "-o", "APT::Sandbox::User=root")
    system.install(packages[FIRST])
    (system.root / DATA[1:] / "data.mdb").touch()
    system.run("dpkg", "--purge", "msmq-fast", MSMQ_FAST_PURGE_DATA="yes")
    assert not (system.root / DATA[1:]).exists()
