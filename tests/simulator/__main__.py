"""`python -m tests.simulator --seed N`: one run again, with a trace if it is wanted."""

from __future__ import annotations

import argparse
import logging
import sys
import traceback
from time import process_time

from .simulation import LONG, Simulation, Size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1, help="so many, from --seed on")
    parser.add_argument("--long", action="store_true", help="thousands of messages, ten minutes of trouble")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--no-transactions", action="store_true")
    parser.add_argument("--http", action="store_true", help="messages go by SRMP over HTTP")
    parser.add_argument("--trace", action="store_true", help="what happens, line by line, and the log")
    options = parser.parse_args()
    size = LONG if options.long else Size()
    if options.messages:
        size = Size(options.messages, size.trouble)
    if options.trace:
        logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="           %(name)s %(message)s")
    else:
        logging.disable(logging.CRITICAL)
    failed = 0
    for seed in range(options.seed, options.seed + options.seeds):
        started = process_time()
        simulation = Simulation(
            seed,
            size,
            transactional=not options.no_transactions,
            http=options.http,
            trace=_print if options.trace else None,
        )
        try:
            simulation.run()
            outcome = "ok"
        except Exception as error:
            failed += 1
            outcome = f"FAILED at {simulation.timeline.now:.3f} s: {error!r}"
            if options.seeds == 1:
                traceback.print_exc(file=sys.stdout)
        cpu = process_time() - started
        print(f"seed {seed}: {outcome}; {cpu:.2f} s CPU; {simulation.summary()}")
    return 1 if failed else 0


def _print(now: float, who: str, what: str) -> None:
    print(f"{now:10.4f} {who:8} {what}")


if __name__ == "__main__":
    sys.exit(main())
