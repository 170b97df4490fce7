"""Processes of `msmq-fast` that are forked from one which has imported everything already.

Nine tenths of what the start of a server or of a verb costs is importing, and the tests start thousands. What
is forked is a process like any other: it has its own arguments, environment, streams and signals, and runs
`main()`. With MSMQ_FAST_TESTS_EXEC=1 every process is started from its program file instead; so is always one
whose environment means something to the loader or to Python.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, Any

__all__ = ["PROGRAM", "start"]

PROGRAM = (sys.executable, "-m", "msmq_fast")
_REQUEST = 1 << 18  # bytes of the arguments and the environment of one process
_SET_CHILD_SUBREAPER = 36
_BEFORE_PYTHON = ("LD_", "PYTHON", "MALLOC_")  # variables that are read before `main()` runs


def start(
    *arguments: str,
    environment: dict[str, str],
    stdin: int | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    cwd: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start `msmq-fast` with exactly this environment; the rest is as for subprocess.Popen."""
    changed = any(
        name.startswith(_BEFORE_PYTHON) and os.environ.get(name) != value
        for name, value in environment.items()
    )
    kind = subprocess.Popen if changed or os.environ.get("MSMQ_FAST_TESTS_EXEC") else _Forked
    return kind([*PROGRAM, *arguments], env=environment, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr)


class _Forked(subprocess.Popen[bytes]):
    """A process that the nursery forks; pipes and waiting are those of any other process."""

    def _execute_child(self, args: list[str], *how: Any) -> None:
        """The hook of Popen between making the pipes and closing the child's ends of them."""
        directory, environment, pipes = how[4] or os.getcwd(), how[5], how[9:15]
        streams = [own if given == -1 else given for own, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = _nursery().fork(args[len(PROGRAM) :], environment, directory, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class _Nursery:
    """The process that forks, as its starter sees it."""

    def __init__(self) -> None:
        # A forked process loses its parent at once; it is then a child of the nearest process that says this.
        if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            theirs.set_inheritable(True)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def fork(
        self, arguments: list[str], environment: dict[str, str], directory: str, descriptors: list[int]
    ) -> int:
        """Fork a process that runs these arguments with these three streams; its id."""
        request = json.dumps([arguments, environment, directory]).encode()
        with self._lock:
            socket.send_fds(self._control, [request], descriptors)
            answer = self._control.recv(64)
        if not answer:
            raise AssertionError(f"the nursery ended with {self._process.wait(10)}")
        return int(answer)

    def close(self) -> None:
        """Let it end."""
        self._control.close()
        self._process.wait(10)


_only: _Nursery | None = None
_making = threading.Lock()


def _nursery() -> _Nursery:
    global _only
    with _making:
        if _only is None:
            _only = _Nursery()
            atexit.register(_only.close)
        return _only


# ---- inside the nursery


def _import_everything() -> None:
    for package in ("msmq_fast.cli", "msmq_fast.server", "msmq_fast.client"):
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    for name in ("uvloop", "encodings.idna", "ssl", "stringprep"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a forked process shall not copy every page


def _serve(control: socket.socket) -> None:
    """Fork for each request; returns in the forked processes only, and when the starter has gone."""
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, _REQUEST, 3)
        if not request:
            sys.exit()
        arguments, environment, directory = json.loads(request)
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            own = os.fork()
            if own:
                os.write(writing, str(own).encode())
                os._exit(0)
            for descriptor in (reading, writing, control.detach()):
                os.close(descriptor)
            _become(arguments, environment, directory, descriptors)
            return
        os.waitpid(between, 0)  # from here on the starter is the parent
        control.send(os.read(reading, 64))
        for descriptor in (reading, writing, *descriptors):
            os.close(descriptor)


def _become(
    arguments: list[str], environment: dict[str, str], directory: str, descriptors: list[int]
) -> None:
    """Take over what a process is given at its start."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = arguments
    sys.stdin = _stream(0, "r")
    sys.stdout = _stream(1, "w")
    sys.stderr = _stream(2, "w", buffering=1, errors="backslashreplace")


def _stream(number: int, mode: str, **how: Any) -> IO[str]:
    return open(number, mode, closefd=False, **how)  # as long as the process lives


def _run(verb: str) -> int:
    """Run `main()`; ends a verb here, since taking a whole interpreter apart would cost most of its time."""
    from msmq_fast.cli.main import main

    code = main()
    if verb != "serve":
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # it goes to the whole group; the starter ends, and this follows
    sys.path.pop(0)  # the directory of this file
    _import_everything()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(_run(sys.argv[1]))
