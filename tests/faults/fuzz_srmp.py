"""Feeds damaged bytes to SRMP, from the connection to the packet and the queues:
`python tests/faults/fuzz_srmp.py --seconds N`.

Coverage-guided with atheris where it is installed, else by mutation alone. What must hold of each input says
`srmp_inputs`.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    chosen = options.parse_args()
    logging.disable(logging.CRITICAL)
    try:
        import atheris
    except ImportError:
        from tests.faults import srmp_inputs

        inputs, packets = srmp_inputs.run_random(chosen.seconds, chosen.seed)
        print(f"{inputs} inputs, {packets} packets, no finding")
        return
    with atheris.instrument_imports(include=["msmq_fast.srmp", "msmq_fast.packet"]):
        from tests.faults import srmp_inputs
    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-srmp-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, good in enumerate(srmp_inputs.SEEDS):
        (corpus / f"seed-{index}").write_bytes(good)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.85:
            return srmp_inputs.mutate(rng, data)[:most]
        return bytes(atheris.Mutate(data, most))

    limits = [f"-max_len={srmp_inputs.MOST}", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=2048"]
    flags = [*limits, f"-seed={chosen.seed + 1}", f"-artifact_prefix={work}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], srmp_inputs.one_input, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
