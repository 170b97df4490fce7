"""Feeds damaged bytes to a decoder of bodies: `python tests/faults/fuzz_bodies.py DECODER --seconds N`.

Coverage-guided with atheris where it is installed, else by mutation alone. `bodies_inputs` says what must
hold of each input.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

DECODERS = ("xml", "binary", "activex", "json", "framing", "headers")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("decoder", choices=DECODERS)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    chosen = options.parse_args()
    try:
        import atheris
    except ImportError:
        from tests.faults import bodies_inputs

        print(f"{bodies_inputs.run_random(chosen.decoder, chosen.seconds, chosen.seed)} inputs, no finding")
        return
    with atheris.instrument_imports(include=["msmq_fast.bodies"]):
        from tests.faults import bodies_inputs
    seeds = bodies_inputs.SEEDS[chosen.decoder]
    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-bodies-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, good in enumerate(seeds):
        (corpus / f"seed-{index}").write_bytes(good)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return bodies_inputs.mutate(rng, data, seeds)[:most]
        return bytes(atheris.Mutate(data, most))

    limits = [f"-max_len={bodies_inputs.MOST}", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=2048"]
    flags = [*limits, f"-seed={chosen.seed + 1}", f"-artifact_prefix={work}/", "-print_final_stats=1"]
    one_input = partial(bodies_inputs.one_input, chosen.decoder)
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
