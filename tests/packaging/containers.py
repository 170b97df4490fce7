"""The image, built from the Dockerfile with buildah, and containers of it, run by podman with runc.

Images, containers and volumes are in a storage of their own (`roots.BUILT`), apart from those of the machine.
Base images are made with debootstrap: a Debian with Python, as the slim images of Python are.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.packaging.roots import BUILT, debian
from tests.support.processes.servers import until

__all__ = ["IMAGE", "ROOT", "Container", "Engine"]

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "msmq-fast"
_PYTHON = ("exec", "--interactive", "--env", "MSMQ_FAST_ENDPOINT=unix:/var/lib/msmq-fast/app.sock")
_PROCESSES = 4096
_SLIM, _BUILD = "localhost/base/slim", "localhost/base/build"
_BUILD_BASE = f"""FROM {_SLIM}
RUN apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev python3-dev python3-venv
"""
# How the machine reaches the package index, if it has settings for that.
_MOUNTED = ("/etc/ssl/certs", "/etc/pip.conf")
# In every container: keys are made quickly, and a connection is tried again at once.
_QUICK = ("MSMQ_FAST_PROTECTION__RSA_BITS=1024", "MSMQ_FAST_MQQB__RETRY_INTERVAL=0.3")


def _of_the_program(line: str) -> bool:
    """Whether podman did not write the line itself: without systemd it misses timers and a system log."""
    return "level=" not in line and not line.startswith("failed to connect to syslog")


class Engine:
    """podman and buildah on a storage of their own."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes the configuration, and a program `podman` for scripts."""
        storage = ["--root", str(BUILT / "storage"), "--runroot", str(BUILT / "run")]
        self._buildah = ["buildah", *storage]
        podman = shutil.which("podman") or "podman"  # with its path, since scripts find the wrapper first
        self._podman = [podman, *storage, "--runtime", "runc", "--network-config-dir", str(folder)]
        _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
        settings = folder / "containers.conf"
        # podman asks for more than the machine may give.
        limits = [f"nofile={descriptors}:{descriptors}", f"nproc={_PROCESSES}:{_PROCESSES}"]
        settings.write_text(
            f"[containers]\ndefault_ulimits = {json.dumps(limits)}\nenv = {json.dumps(_QUICK)}\n"
        )
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
        self.programs = folder / "bin"
        self.programs.mkdir()
        wrapper = self.programs / "podman"
        wrapper.write_text(f'#!/bin/sh\nexec {" ".join(self._podman)} "$@"\n')
        wrapper.chmod(0o755)

    def run(self, *arguments: str, code: int = 0, timeout: float = 60, stdin: str = "") -> str:
        """Run podman to its end and return stdout and stderr. AssertionError: another exit code."""
        return self._ran([*self._podman, *arguments], code, timeout, stdin)

    def code(self, *arguments: str) -> int:
        """Run podman to its end and return its exit code."""
        command = [*self._podman, *arguments]
        done = subprocess.run(command, capture_output=True, check=False, timeout=60, env=self.environment)
        return done.returncode

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start podman in the background; stdout and stderr in one pipe."""
        return subprocess.Popen(
            [*self._podman, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )

    def _ran(self, command: list[str], code: int, timeout: float, stdin: str = "") -> str:
        done = subprocess.run(
            command,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout,
            env=self.environment,
        )
        assert done.returncode == code, (
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}"
        )
        return "".join(line for line in done.stdout.splitlines(True) if _of_the_program(line))

    def build(self) -> None:
        """Build the image, as far as the sources have changed since the last time. Takes minutes at first."""
        if not self._has(_SLIM):
            self.run("import", "--quiet", str(debian()), _SLIM, timeout=300)
        isolation = ["--runtime", "runc", "--isolation", "chroot", "--network", "host", "--layers"]
        volumes = [f"--volume={path}:{path}:ro" for path in _MOUNTED if Path(path).exists()]
        build = [*self._buildah, "bud", *isolation, *volumes, "--format", "docker"]
        if not self._has(_BUILD):
            context = BUILT / "base"
            context.mkdir(exist_ok=True)
            (context / "Dockerfile").write_text(_BUILD_BASE)
            self._ran([*build, "--tag", _BUILD, str(context)], 0, 600)
        bases = ["--build-arg", f"BUILD_IMAGE={_BUILD}", "--build-arg", f"RUNTIME_IMAGE={_SLIM}"]
        self._ran([*build, *bases, "--tag", IMAGE, str(ROOT)], 0, 1500)
        self._ran([*self._buildah, "rm", "--all"], 0, 60)  # of builds that were interrupted
        self.run("image", "prune", "--force", "--filter", "until=72h", timeout=120)

    def _has(self, image: str) -> bool:
        return bool(self.run("images", "--quiet", image))

    def size(self, image: str) -> int:
        """Bytes of an image, not compressed."""
        return int(json.loads(self.run("image", "inspect", image))[0]["Size"])

    def remove_all(self) -> None:
        """Remove every container, network and volume of this storage; images stay."""
        self.run("rm", "--all", "--force", "--time", "0", timeout=120)
        self.run("network", "prune", "--force")
        self.run("volume", "prune", "--force")

    def process(self, name: str) -> int:
        """The number of the first process of a container, as the machine sees it."""
        return int(self.run("container", "inspect", "--format", "{{.State.Pid}}", name))

    def lines(self, name: str) -> list[str]:
        """What the container has written to stdout and stderr."""
        return self.run("logs", name).splitlines()


class Container:
    """A server in a container."""

    def __init__(self, engine: Engine, name: str, *options: str) -> None:
        self.engine = engine
        self.name = name
        self._options = ("--hostname", name, *options)

    def start(self) -> Container:
        """Create and start it, and return when the server is ready."""
        self.engine.run("run", "--detach", "--name", self.name, *self._options, IMAGE)
        return self.await_ready(1)

    def await_ready(self, times: int) -> Container:
        """Wait until the server has become ready that many times since the container was created."""
        until(lambda: self._ready(times), 40, f"the ready line of {self.name}")
        return self

    def _ready(self, times: int) -> bool:
        lines = self.engine.lines(self.name)
        assert self._state("Status") == "running", "\n".join(lines)
        return sum(line.startswith("ready ") for line in lines) >= times

    def refused(self) -> tuple[int, list[str]]:
        """Start it where it must end by itself; exit code and output."""
        process = self.engine.start("run", "--name", self.name, *self._options, IMAGE)
        with process:
            shown, _ = process.communicate(timeout=60)
        return process.returncode, [line for line in shown.splitlines() if _of_the_program(line)]

    def stop(self) -> tuple[float, int]:
        """Stop it with SIGTERM; the seconds that it took, and the exit code."""
        before = time.monotonic()
        self.engine.run("stop", "--time", "30", self.name)
        took = time.monotonic() - before
        return took, int(self._state("ExitCode"))

    def _state(self, field: str) -> str:
        return self.engine.run("inspect", "--format", f"{{{{.State.{field}}}}}", self.name).strip()

    def msmq(self, *arguments: str, code: int = 0) -> str:
        """Run a command of the image in the container."""
        return self.engine.run("exec", self.name, "msmq-fast", *arguments, code=code)

    def ok(self, *arguments: str) -> list[Any]:
        """The JSON lines of a command that must succeed."""
        return [json.loads(line) for line in self.msmq(*arguments, "--json").splitlines()]

    def python(self, script: str, *arguments: str) -> list[str]:
        """The lines of a program that runs in the container to its end."""
        shown = self.engine.run(*_PYTHON, self.name, "python3", "-", *arguments, stdin=script, timeout=300)
        return shown.splitlines()

    @contextlib.contextmanager
    def program(self, script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A program that runs in the container meanwhile; its end is awaited."""
        process = self.engine.start(*_PYTHON, self.name, "python3", "-", *arguments)
        assert process.stdin is not None
        process.stdin.write(script)
        process.stdin.close()
        process.stdin = None
        with process:
            try:
                yield process
            except BaseException:
                process.kill()  # the container ends with the test
                raise
