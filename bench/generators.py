"""The native generators: compiled on first use into a directory of their own, run as processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["GeneratorError", "app_null_sink", "compile_generator", "mqqb_null_sink", "run_generator"]

_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-pthread")


class GeneratorError(Exception):
    """A generator could not be built, or ended with an error; the text is its own line."""


def _build_directory() -> Path:
    chosen = os.environ.get("MSMQ_FAST_BENCH_BUILD")
    return Path(chosen) if chosen else Path(__file__).parent.parent / "build" / "bench"


def compile_generator(name: str) -> Path:
    """The executable of `native/<name>.c`, built with the C compiler when the sources have changed."""
    digest = hashlib.sha256(" ".join(_FLAGS).encode())
    for source in (*sorted(_SOURCES.glob("*.h")), _SOURCES / f"{name}.c"):
        digest.update(source.read_bytes())
    target = _build_directory() / f"{name}-{digest.hexdigest()[:16]}"
    if target.exists():
        return target
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = compiler.split()
    if shutil.which(command[0]) is None:
        command = ["cc"]
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}")
    built = subprocess.run(
        [*command, *_FLAGS, "-o", str(unfinished), str(_SOURCES / f"{name}.c")],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        raise GeneratorError(f"{name}.c does not compile:\n{built.stderr}")
    unfinished.rename(target)
    return target


def run_generator(
    name: str,
    arguments: Sequence[str],
    on_event: Callable[[str], None] = lambda event: None,
) -> dict[str, Any]:
    """Runs a generator and returns its result. `on_event` hears "start" and "stop", around the measured time.

    Raises GeneratorError when the generator fails or does not print a result.
    """
    with subprocess.Popen(
        [str(compile_generator(name)), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        result: dict[str, Any] | None = None
        try:
            for line in process.stdout:
                message = json.loads(line)
                if message["event"] == "result":
                    result = message
                else:
                    on_event(message["event"])
            errors = process.stderr.read().strip()
            code = process.wait()
        except BaseException:
            process.kill()
            raise
    if code == 2 and result is not None:
        raise GeneratorError(f"not everything was acknowledged: {result}")
    if code or result is None:
        raise GeneratorError(errors or f"{name} ended with code {code}")
    del result["event"]
    return result


@contextmanager
def _sink(name: str, argument: str) -> Iterator[list[str]]:
    with subprocess.Popen(
        [str(compile_generator(name)), argument], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            ready, *rest = process.stdout.readline().split() or [""]
            if ready != "ready":
                raise GeneratorError(f"{name} did not start")
            yield rest
        finally:
            process.kill()


@contextmanager
def mqqb_null_sink() -> Iterator[int]:
    """An MS-MQQB sink that acknowledges everything and keeps nothing; yields its port on 127.0.0.1."""
    with _sink("mqqb_sink", "0") as (port,):
        yield int(port)


@contextmanager
def app_null_sink() -> Iterator[Path]:
    """A sink for the application protocol; yields its Unix socket."""
    with tempfile.TemporaryDirectory(prefix="msmq-bench-sink-") as directory:
        path = Path(directory) / "sock"
        with _sink("app_sink", str(path)):
            yield path
