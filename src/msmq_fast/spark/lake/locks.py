"""Locks of a lake: small files that name the process that holds the lock, so that others can check whether it
still runs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from msmq_fast.protocol.exits import CommandError, Exit

_RENEWED_S: Final = 60.0
_STALE_S: Final = 600.0
"""Seconds without a renewal after which a process on another host counts as ended."""


class Store(Protocol):
    """The methods of a lake that `claim` uses."""

    @property
    def directory(self) -> Path | None:
        """The root of the lake if it is on the local file system, otherwise None."""

    def read_json(self, path: str) -> Any:
        """Returns the value in a small JSON file, None if there is no file."""

    def write_json(self, path: str, value: Any) -> None:
        """Replaces a small JSON file atomically."""

    def delete_file(self, path: str) -> None:
        """Deletes a file; no effect if there is none."""


@contextmanager
def claim(
    lake: Store, path: str, what: str, refusal: Callable[[str, str], str], *, renewed: bool = False
) -> Iterator[None]:
    """Holds a lock while the context is open. The lock is the file `path`, which contains the id and host of
    this process and the name `what` of its command.

    A process that is killed leaves the file behind. Another process replaces the file if the process that it
    names has ended. Whether a process on another host has ended is known only if the lock is `renewed`: the
    holder of the lock then writes the time into the file every minute. Two processes that take the lock at
    the same moment exclude each other only on a local disk, where files can be locked.

    Raises CommandError IN_USE if another process holds the lock. The text of this error is `refusal(what,
    holder)`, where `what` is the command of the other process, and `holder` its id and host.
    """
    mine = {"what": what, "pid": os.getpid(), "host": socket.gethostname(), "began": _began(os.getpid())}

    def note() -> None:
        lake.write_json(path, mine | ({"seen": time.time()} if renewed else {}))

    with _alone(lake.directory):
        holder = lake.read_json(path)
        if holder is not None and _alive(holder):
            name = f"process {holder['pid']} on {holder['host']}"
            raise CommandError(Exit.IN_USE, refusal(str(holder["what"]), name))
        note()
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(note, ended), daemon=True)
    if renewed:
        renewing.start()
    try:
        yield
    finally:
        ended.set()
        if renewed:
            renewing.join()
        lake.delete_file(path)


def _renew(note: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(_RENEWED_S):
        with contextlib.suppress(OSError):  # a full disk ends the job elsewhere
            note()


@contextmanager
def _alone(directory: Path | None) -> Iterator[None]:
    """While the context is open, keeps other processes from checking or taking any lock of the lake. Has no
    effect if `directory` is None.
    """
    if directory is None:
        yield
        return
    import fcntl

    (directory / "_state").mkdir(parents=True, exist_ok=True)
    with (directory / "_state" / ".guard").open("wb") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield


def _alive(holder: dict[str, Any]) -> bool:
    if holder["host"] != socket.gethostname():
        seen = holder.get("seen")
        return seen is None or time.time() - seen < _STALE_S
    if holder["pid"] == os.getpid():
        return False
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    began = _began(holder["pid"])
    return None in (began, holder.get("began")) or began == holder["began"]


def _began(pid: int) -> str | None:
    """Returns the boot id of the system and the start time of a process, because process ids are reused; ""
    for a zombie; None if they are unknown.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"
    except (OSError, IndexError):
        return None
