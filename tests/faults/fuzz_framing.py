"""Coverage-guided fuzzing of packet framing: the native parser against the pure-Python reference.

    python tests/faults/fuzz_framing.py --seconds 600

Inputs are guided by the branches of the reference. A difference in what is accepted, in any offset or in the
fault code ends the run with exit code 77; so does an exception. `--native` fuzzes another build.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import atheris

from tests.faults.fuzz_framing_build import load_copy


def whole(data: bytes) -> bytes:
    """The input with a sound BaseHeader in front, so that most inputs reach the other headers."""
    base = struct.pack(
        "<BBH4sI", 0x10, 0, int.from_bytes(data[2:4], "little") & 0xFFF7, b"LIOR", max(len(data), 20)
    )
    return base + data[12:] + bytes(max(0, 20 - len(data)))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    options.add_argument("--native", type=Path, help="a directory with extension modules to test")
    chosen = options.parse_args()

    with atheris.instrument_imports(include=["tests.support.packet.reference"]):
        from tests.support.packet import reference
    if chosen.native:  # before anything imports the installed ones
        load_copy(chosen.native)
    from msmq_fast._native import framing
    from msmq_fast._native import scanner as stream
    from msmq_fast.protocol.errors import PacketFaultCode
    from tests.support.packet.samples import seeds

    def native(data: bytes) -> object:
        try:
            fields = framing.parse(data).fields()
        except framing.BadPacket as fault:
            return PacketFaultCode(fault.code).name
        return {name: value for name, value in fields.items() if value}

    def expected(data: bytes) -> object:
        try:
            fields = reference.reference(data)
        except reference.Refused as refused:
            return refused.args[0]
        return {name: value for name, value in fields.items() if value}

    def scanned(data: bytes) -> object:
        scanner = stream.PacketScanner()
        scanner.feed(data[: len(data) // 2])
        taken = scanner.take()
        if taken is None:
            scanner.feed(data[len(data) // 2 :])
            taken = scanner.take()
        if taken is None:
            return "TRUNCATED"
        return PacketFaultCode(scanner.fault).name if taken[0] == -1 else len(taken[1])

    def check(data: bytes) -> None:
        want = expected(data)
        if native(data) != want:
            raise AssertionError(f"native {native(data)!r}, reference {want!r}, packet {data.hex()}")
        if want != "INTERNAL":
            stream = want["wire_size"] if isinstance(want, dict) else want
            if scanned(data) != stream:
                raise AssertionError(f"scanner {scanned(data)!r}, reference {stream!r}, packet {data.hex()}")

    def one_input(data: bytes) -> None:
        check(data)
        check(whole(data))

    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-framing-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, (_, packet) in enumerate(seeds()):
        (corpus / f"seed-{index}").write_bytes(packet)
    limits = ["-max_len=2600", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=1024"]
    flags = [*limits, f"-seed={chosen.seed}", f"-artifact_prefix={work}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
