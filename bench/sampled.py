"""A server that looks at itself: `python -m bench.sampled FILE serve …`, for `bench.srmp`.

Every millisecond of processor time a signal notes in which part of the server the event loop is. A part is
where the innermost Python function stands that belongs to one; native code counts for its caller. When the
loop itself waits, the time is that of another thread, which writes to the disk. Counting begins and ends with
SIGUSR1, and the counts go to FILE.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

from msmq_fast.cli.main import main as msmq_fast

__all__ = ["PARTS", "main"]

PARTS: Final = (
    ("XML and multipart", ("srmp/reading.py", "srmp/compound.py", "srmp/multipart.py", "srmp/values.py",
                           "srmp/model.py", "srmp/xmlbounds.py", "srmp/classify.py", "srmp/patterns.py",
                           "xml/", "lxml/")),
    ("packet", ("srmp/incoming.py", "packet/")),
    ("HTTP", ("srmp/http/", "h11/")),
    ("store and queue", ("qm/", "store/", "srmp/receive.py", "srmp/destinations.py", "srmp/")),
    ("loop", ("server/", "uvloop/", "asyncio/")),
)  # fmt: skip
_INTERVAL: Final = 0.001


def _part(frame: FrameType | None) -> str:
    innermost = frame
    while frame is not None:
        name = frame.f_code.co_filename
        for part, places in PARTS:
            if any(f"/{place}" in name for place in places):
                return part if part != "loop" or frame is not innermost else "loop, or writer thread"
        frame = frame.f_back
    return "other"


class Sampler:
    """SIGUSR1 starts and stops it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._counts: Counter[str] = Counter()
        self._running = False
        signal.signal(signal.SIGPROF, self._sample)
        signal.signal(signal.SIGUSR1, self._toggle)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        self._counts[_part(frame)] += 1

    def _toggle(self, _: int, __: FrameType | None) -> None:
        self._running = not self._running
        interval = _INTERVAL if self._running else 0
        signal.setitimer(signal.ITIMER_PROF, interval, interval)
        if not self._running:
            self._file.write_text(json.dumps(self._counts))


def main(arguments: list[str]) -> int:
    """The exit code of the server."""
    Sampler(Path(arguments[0]))
    return msmq_fast(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
