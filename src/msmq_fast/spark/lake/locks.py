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
        """The root, if it is of the local file system."""

    def read_json(self, path: str) -> Any:
        """The value of a small file, None if it is not there."""

    def write_json(self, path: str, value: Any) -> None:
        """Replaces a small file as a whole."""

    def delete_file(self, path: str) -> None:
        """Nothing happens if there is none."""


@contextmanager
def claim(
    lake: Store, path: str, what: str, refusal: Callable[[str, str], str], *, renewed: bool = False
) -> Iterator[None]:
    """Holds the file `path`, which names this process and `what` it does; no other process gets it.

    A killed process leaves the file behind: the next one takes it over when the process has ended; on
    another host that is known only of claims that are `renewed`. Two that come at the same moment exclude
    each other where files can be locked, that is on local disks.

    CommandError IN_USE: another process has it; `refusal` makes the line from `what` it does and its name.
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
    """Excludes other processes between looking for a claim and making one."""
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
    """When a process began, in ticks since boot; None where that is not told. Numbers of processes are used
    again. A process that ended, and whose parent has not asked for it yet, has none.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else f"{boot} {fields[19]}"
    except (OSError, IndexError):
        return None
