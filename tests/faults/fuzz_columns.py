"""Makes columns of damaged packets and events: `python tests/faults/fuzz_columns.py --seconds N`.

Whatever a store holds, nothing is read outside of it: a packet that the codec of packet/ takes gives the
columns that the model says, any other one is counted as damaged; a record of the feed gives what the decoder
says. Coverage-guided with atheris where it is installed, else by random mutation. `--native` fuzzes another
build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults import columns_build, fuzz_native


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    options.add_argument("--native", type=Path, help="a directory with extension modules to test")
    chosen = options.parse_args()
    if chosen.native:  # before anything imports the installed ones
        for name in columns_build.NATIVE:
            for module in chosen.native.glob(f"{name}.*.so"):
                fuzz_native.load(name, str(module))
    from tests.faults import columns_inputs

    try:
        import atheris
    except ImportError:
        print(f"{columns_inputs.run_random(chosen.seconds, chosen.seed)} inputs without a finding")
        return
    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-columns-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, good in enumerate(columns_inputs.seeds()):
        (corpus / f"seed-{index}").write_bytes(good)
    limits = ["-max_len=2600", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=2048"]
    flags = [*limits, f"-seed={chosen.seed + 1}", f"-artifact_prefix={work}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], columns_inputs.one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
