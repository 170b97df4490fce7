"""Coverage-guided fuzzing of RPC framing: the native scanner and fragments against plain Python.

    python tests/faults/fuzz_rpcframing.py --seconds 600

Inputs are guided by the branches of the reference. A difference in any attribute of any PDU ends the run with
exit code 77; so does an exception. `--native` fuzzes another build.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import atheris

from tests.faults import fuzz_native

LIMIT = 400  # bytes of requests and responses: so small that inputs reach beyond it


def seeds() -> list[bytes]:
    """PDUs of most kinds."""
    from tests.support.rpc import wire

    auth = wire.Auth(10, 6, 1, bytes(16))
    syntax = ("12345678-1234-abcd-ef00-0123456789ab", 1, 0)
    return [
        wire.bind([(0, syntax, [wire.NDR])], auth=auth),
        wire.request(1, 2, b"stub", auth=auth),
        wire.request(1, 2, b"stub", big=True, object_uuid=syntax[0]),
        wire.auth3(auth) + wire.request(2, 3) + wire.cancel(2),
        wire.request(1, 2, bytes(LIMIT)),
        wire.pdu(wire.RESPONSE, 1, bytes(40), auth=auth),
        wire.pdu(wire.FAULT, 1, bytes(16), minor=1),
    ]


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--work", help="directory of the corpus and of findings (default: a new one)")
    options.add_argument("--native", help="an extension module file to test instead of the installed one")
    chosen = options.parse_args()

    with atheris.instrument_imports(include=["tests.support.rpc.reference"]):
        from tests.support.rpc import reference
    from msmq_fast._native import rpcframing as installed

    framing = fuzz_native.load("rpcframing", chosen.native) if chosen.native else installed

    def native(stream: bytes, piece: int) -> list[dict[str, object]]:
        scanner, found = framing.PduScanner(LIMIT), []
        while stream:
            stream = stream[scanner.feed(stream[:piece]) :]
            while (pdu := scanner.take()) is not None:
                names = reference.ALWAYS if pdu.fault else reference.ATTRIBUTES
                found.append({name: getattr(pdu, name) for name in names})
                if pdu.fault and pdu.length != len(pdu.data):
                    return found
        return found

    def check_scanner(data: bytes) -> None:
        want = [
            {name: pdu[name] for name in (reference.ALWAYS if pdu["fault"] else reference.ATTRIBUTES)}
            for pdu in reference.cut(data, LIMIT)
        ]
        piece = 1 + data[0] if data else 1
        if native(data, piece) != want:
            raise AssertionError(f"native {native(data, piece)!r}, reference {want!r}, stream {data.hex()}")

    def check_fragments(data: bytes) -> None:
        if len(data) < 6:
            return
        size, budget, overhead, secure = 24 + 2 * data[0], 4 * data[1], data[2], data[3] & 1
        trailer = bytes(8) if secure else None
        try:
            stream, end, count = framing.fragments(
                2, data[6:], 0, budget, 0, 1, 2, 3, size, trailer, overhead
            )
        except ValueError:
            return
        pdus = reference.cut(bytes(stream), 65535)
        stub = b"".join(pdu["stub"] for pdu in pdus)
        sizes = [pdu["length"] for pdu in pdus]
        if len(pdus) != count or sum(sizes) != len(stream) or max(sizes) > size or stub != data[6 : 6 + end]:
            raise AssertionError(f"native fragments {bytes(stream).hex()}, input {data.hex()}")

    def one_input(data: bytes) -> None:
        check_scanner(data)
        check_fragments(data)

    work = Path(chosen.work or tempfile.mkdtemp(prefix="fuzz-rpcframing-"))
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for index, stream in enumerate(seeds()):
        (corpus / f"seed-{index}").write_bytes(stream)
    limits = ["-max_len=1200", f"-max_total_time={chosen.seconds}", "-rss_limit_mb=1024"]
    flags = [*limits, f"-seed={chosen.seed}", f"-artifact_prefix={work}/"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
