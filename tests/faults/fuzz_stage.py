"""Feeds damaged Arrow streams to the decoder of stages: `python tests/faults/fuzz_stage.py --seconds N`.

Whatever a caller stages, there are packets that another decoder takes, or one line that says why not.
Coverage-guided with atheris where it is installed, else by random mutation. `--native DIRECTORY` fuzzes the
builds of `arrowcolumn` and `stagecodec` that stand there.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults import fuzz_native


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    options.add_argument("--native", type=Path, help="a directory with extension modules to test")
    chosen = options.parse_args()
    if chosen.native:  # before anything imports the installed ones
        for name in ("arrowcolumn", "stagecodec"):
            for module in chosen.native.glob(f"{name}.*.so"):
                fuzz_native.load(name, str(module))
    try:
        import atheris
    except ImportError:
        from tests.faults import stage_inputs

        print(f"{stage_inputs.run_random(chosen.seconds, chosen.seed)} inputs without a finding")
        return
    with atheris.instrument_imports(include=["msmq_fast.bulk"]):
        from tests.faults import stage_inputs
    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-stage-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    plain = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "ASAN_OPTIONS")}
    command = [sys.executable, "-m", "tests.faults.stage_inputs", str(corpus)]
    subprocess.run(command, cwd=fuzz_native.ROOT, env=plain, check=True, timeout=120)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        """Half of the inputs have other lengths and offsets, which random bytes hardly ever hit."""
        rng = random.Random(seed)
        if len(data) >= 8 and rng.random() < 0.5:
            return stage_inputs.lie(rng, data)[:most]
        return bytes(atheris.Mutate(data, most))

    limits = ["-max_len=6000", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=3000"]
    flags = [*limits, f"-seed={chosen.seed + 1}", f"-artifact_prefix={work}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], stage_inputs.one_input, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
