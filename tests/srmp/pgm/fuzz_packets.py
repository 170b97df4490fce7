"""Coverage-guided fuzzing of the PGM codec and of the engines behind it.

    python tests/srmp/pgm/fuzz_packets.py --seconds 600

Each input is a packet, sealed with a right checksum. An exception ends the run with exit code 77; so does a
packet that is not the same after it has been read, written and read again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[3]))

import atheris

with atheris.instrument_imports(include=["msmq_fast.srmp.pgm"]):
    from msmq_fast.srmp.pgm.options import Malformed
    from msmq_fast.srmp.pgm.packets import Data, Nak, Spm, decode, encode_data, encode_nak, encode_spm
    from msmq_fast.srmp.pgm.receiver import Receiver
    from msmq_fast.srmp.pgm.settings import PgmSettings
    from msmq_fast.srmp.pgm.source import Source

from tests.srmp.pgm.sealing import VECTORS, sealed
from tests.srmp.pgm.stage import GROUP, SOURCE_IP, TSI


def again(message: Spm | Data | Nak) -> None:
    """Options that are read and never written do not count."""
    if isinstance(message, Spm):
        plain = message._replace(join=None, fin=message.fin and message.rst is None)
        assert decode(encode_spm(plain)) == plain
    elif isinstance(message, Data):
        bare = message._replace(join=None, fin=False)
        assert decode(encode_data(bare)) == bare
    else:
        assert decode(encode_nak(message)) == message


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    chosen = options.parse_args()
    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-pgm-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, packet in VECTORS.items():
        (corpus / name).write_bytes(packet)

    settings = PgmSettings(receive_memory=1 << 20, receive_memory_of_source=1 << 18, max_missing=200)
    receiver = Receiver(settings, GROUP, Random(1), lambda apdu, tsi, ip: None)
    source = Source(settings, TSI, GROUP, SOURCE_IP, Random(1), lambda handle: None, first=1)
    clock = [0.0]

    def check(data: bytes) -> None:
        if len(data) < 16:
            return
        packet = sealed(data)
        try:
            message = decode(packet)
        except Malformed:
            return
        if message is None:
            return
        again(message)
        clock[0] += 0.01
        receiver.on_packet(packet, f"192.0.2.{int(clock[0]) % 100}", clock[0])  # sessions end, others begin
        source.on_packet(packet, SOURCE_IP, clock[0])
        if source.backlog < 1000:
            source.send(b"x" * 100)
        receiver.packets(clock[0])
        source.packets(clock[0])

    arguments = ["-max_len=400", f"-max_total_time={chosen.seconds}", f"-artifact_prefix={work}/", "-seed=1"]
    atheris.Setup([sys.argv[0], *arguments, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
