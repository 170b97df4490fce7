"""The Java of the lake's commands: which one is taken, and where its output goes.

Cron and systemd give a program neither JAVA_HOME nor the PATH of a shell, so Java is looked for in the
directories in which systems install it. Its output is read by a thread, which keeps the end of it, and shown
only if Java does not start.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from msmq_fast.protocol.exits import CommandError, Exit

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["LogTail", "java_home", "launch"]

OLDEST: Final = 17
"""The oldest release of Java on which Spark 4 runs."""
ROOTS: Final = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/*jdk*",
    "/usr/local/*jdk*",
    "~/.sdkman/candidates/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)
"""Where Java is looked for: patterns of its home directories."""
_RELEASE: Final = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_NOISE: Final = re.compile(r"\s*$|NOTE: |WARNING: |Picked up |.*/spark-class: line ")
"""Lines that do not say why Java did not start."""
_KEPT_BYTES: Final = 64 << 10
_READ_BYTES: Final = 4 << 10
_OPTIONS: Final = "-Xss4m -XX:-UsePerfData -Djava.io.tmpdir={temporary}"
"""Spark plans long queries recursively, and must keep its files where TMPDIR says."""


def java_home(environment: Mapping[str, str], roots: tuple[str, ...] = ROOTS) -> Path | None:
    """Return the home directory of the Java to use, None if that of `environment` is the right one: JAVA_HOME
    if it is set, otherwise the `java` of PATH unless it is too old.

    Raises CommandError if there is no Java that is recent enough.
    """
    if named := environment.get("JAVA_HOME"):
        if (version := _version(Path(named))) is not None and version < OLDEST:
            raise CommandError(
                Exit.FAILURE, f"JAVA_HOME={named} is Java {version}: Spark needs Java {OLDEST} or newer"
            )
        return None
    program = shutil.which("java", path=environment.get("PATH", os.defpath))
    on_path = None if program is None else Path(program).resolve().parents[1]
    if on_path is not None and (_version(on_path) or OLDEST) >= OLDEST:
        return None
    found = sorted(
        (version, home) for home in _homes(roots) if (version := _version(home) or 0) >= OLDEST
    )  # the oldest of them is the one that Spark knows best
    if found:
        return found[0][1]
    what = "no Java was found" if on_path is None else f"the Java in {on_path} is too old"
    raise CommandError(
        Exit.FAILURE, f"{what}: Spark needs Java {OLDEST} or newer; install it, or set JAVA_HOME"
    )


def _homes(roots: tuple[str, ...]) -> Iterator[Path]:
    for root in roots:
        pattern = os.path.expanduser(root)
        if os.path.isabs(pattern):
            for home in sorted(Path("/").glob(pattern[1:])):
                if os.access(home / "bin" / "java", os.X_OK):
                    yield home


def _version(home: Path) -> int | None:
    """Return the major version of the Java in `home`, None if its file `release` is missing or has none."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = _RELEASE.search(text)
    return None if found is None else int(found[1])


class LogTail:
    """The last 64 KiB that a program has written to a pipe, which a thread reads until all its writers have
    closed it. The context closes the writing end in this process: end it when the program has it.
    """

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._lock = threading.Lock()
        self._kept = b""
        stream = os.fdopen(reading, "rb", buffering=0)
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return the descriptor that the program gets as its output."""
        return self._writing

    def __enter__(self) -> LogTail:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._writing)

    def text(self) -> str:
        """Return what was read so far. If the program has ended, wait until all of it was read, for at most
        1 s: a process that it started may still hold the pipe.
        """
        self._thread.join(1.0)
        with self._lock:
            return self._kept.decode(errors="replace")

    def _read(self, stream: BinaryIO) -> None:
        with stream:
            while chunk := stream.read(_READ_BYTES):
                with self._lock:
                    self._kept = (self._kept + chunk)[-_KEPT_BYTES:]


def launch(environment: MutableMapping[str, str], *, verbose: bool, options: str = "") -> JavaGateway:
    """Start the Java of a Spark driver, or connect to that of `spark-submit`, and return the gateway to it.
    Sets the variables in `environment`, which is that of this process, that are missing for this.

    `options` are further options of Java. `verbose`: its output goes to stderr; otherwise it is dropped.
    Raises CommandError if Java does not start.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if "PYSPARK_GATEWAY_PORT" in environment:
        return launch_gateway()
    if (home := java_home(environment)) is not None:
        environment["JAVA_HOME"] = str(home)
    given = f"{_OPTIONS.format(temporary=tempfile.gettempdir())} {options}".strip()
    environment["JDK_JAVA_OPTIONS"] = f"{given} {environment.get('JDK_JAVA_OPTIONS', '')}".strip()
    if verbose:
        return launch_gateway()
    log = LogTail()
    try:
        with log:
            return launch_gateway(popen_kwargs={"stdout": log.fileno(), "stderr": log.fileno()})
    except PySparkRuntimeError as error:
        lines = [line.strip() for line in log.text().splitlines() if not _NOISE.match(line)]
        raise CommandError(
            Exit.FAILURE,
            f"Spark's Java ({_named(environment)}) did not start: {lines[0] if lines else 'no output'}; "
            "-v shows all that it writes",
        ) from error


def _named(environment: Mapping[str, str]) -> str:
    return environment.get("JAVA_HOME") or "the one in PATH"
