"""Random RPC sessions, spoiled on their way, against the runtime and all services on a store in memory.

    python tests/faults/fuzz_rpc.py --seconds 600

Time is virtual. After each session nothing may be open, locked or waiting, and nothing may have surprised the
code. The first finding ends the run with exit code 77 and the seed that makes it again; `--scene` and
`--session` do that.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.rpc_scene import Complaints, Scene
from tests.faults.rpc_sessions import session

FOUND = 77
_SESSIONS = 100  # with one scene; it is made anew then, so that findings can be repeated soon


@dataclass
class Tally:
    """What was done."""

    sessions: int = 0
    sent: int = 0
    heard: int = 0


class Finding(Exception):
    """Something that must not be; the cause says what."""

    def __init__(self, scene: int, number: int) -> None:
        super().__init__(f"--scene {scene} --session {number}")


@contextmanager
def complaints() -> Iterator[Complaints]:
    """What the code complains of, and nobody sees."""
    logger = logging.getLogger("msmq_fast")
    handler = Complaints()
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def scenes(seed: int, heard: Complaints, tally: Tally, ends: float, sessions: int = _SESSIONS) -> None:
    """The sessions of one scene, until a monotonic time. Raises Finding."""
    scene = Scene(seed, strict=seed % 8 == 0)
    for number in range(sessions):
        if time.monotonic() >= ends:
            return
        try:
            sent, answered = session(scene, Random(seed * _SESSIONS + number))
            left = scene.left_behind()
            assert not left, left
            assert not heard.records, heard.format(heard.records[0])
            scene.refill()
        except Exception as error:
            raise Finding(seed, number) from error
        tally.sessions += 1
        tally.sent += sent
        tally.heard += answered


def fuzz(seconds: float, seed: int) -> Tally:
    """Sessions for so long. Raises Finding."""
    tally = Tally()
    ends = time.monotonic() + seconds
    with complaints() as heard:
        while time.monotonic() < ends:
            scenes(seed, heard, tally, ends)
            seed += 1
    return tally


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--work", help="not used: findings are seeds")
    options.add_argument("--scene", type=int, help="repeat this scene")
    options.add_argument("--session", type=int, default=_SESSIONS - 1, help="up to this session")
    chosen = options.parse_args()
    try:
        if chosen.scene is not None:
            with complaints() as heard:
                scenes(chosen.scene, heard, Tally(), float("inf"), chosen.session + 1)
            return 0
        print(fuzz(chosen.seconds, chosen.seed))
    except Finding as finding:
        traceback.print_exception(finding)
        print(f"found: {finding}")
        return FOUND
    return 0


if __name__ == "__main__":
    sys.exit(main())
