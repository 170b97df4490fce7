"""Locks of a lake: small files that name a process, and whether that process still runs."""

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
    """The part of a lake that a claim uses."""

    @property
    def directory(self) -> Path | None:
        """The root, None unless it is on the local file system."""

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
    """Holds a lock while the context is open: the file `path` names this process and `what` it does.

    A killed process leaves the file behind. The next process takes it over once that process has ended; for a
    process on another host, this is known only of claims that are `renewed`. Two processes that claim at the
    same moment exclude each other only if files can be locked, that is on local disks.

    Raises CommandError IN_USE if another process holds the lock; `refusal` makes the line from `what` that
    process does and its name.
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
    """Excludes other processes between the check for a claim and its creation."""
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
    """Returns when a process started, with the id of the boot: process ids are reused. None if that is
    unknown, or the process is a zombie.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"
    except (OSError, IndexError):
        return None
