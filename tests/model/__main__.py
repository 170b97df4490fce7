"""`python -m tests.model SEED [OPERATIONS]`: one run, with its last operations if the two sides disagree."""

import sys
import time

from .driver import Driver
from .visible import Disagreement


def main(seed: int, operations: int) -> int:
    """The exit status."""
    started = time.perf_counter()
    driver = Driver(seed)
    try:
        driver.run(operations)
    except Disagreement as error:
        print(*driver.log, sep="\n")
        print(f"seed {seed}, operation {driver.count}: {error}")
        return 1
    taken = time.perf_counter() - started
    print(f"seed {seed}: {driver.count} operations in {taken:.1f} s: {dict(driver.done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000))
