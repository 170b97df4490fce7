"""What a process of its own for staged Arrow streams would cost: `python -m bench.stageworker [--rows N]`.

The server decodes them itself. A worker process would get each stream over a socket and send the packets
back, so that a crash of the decoder would cost the worker only. Both figures are processor time of all
processes for a row: of the decoder as it is, and of the transfer both ways in pieces of 1 MiB, with the
packets cut apart again.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import socket
import time

from tests.faults.stage_inputs import packets

_PIECE = 1 << 20
_BODY = 1024
_BATCH = 1000


def stream(rows: int) -> bytes:
    """An Arrow stream of `rows` rows with bodies of 1 KiB and labels."""
    import pyarrow as pa

    bodies = pa.array([os.urandom(_BODY) for _ in range(rows)], pa.binary())
    table = pa.RecordBatch.from_pydict({"body": bodies, "label": pa.array([f"row {i}" for i in range(rows)])})
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        for first in range(0, rows, _BATCH):
            writer.write_batch(table.slice(first, _BATCH))
    return out.getvalue()


def decode(data: bytes) -> tuple[float, list[bytes]]:
    """Seconds of processor time, and the packets."""
    began = time.process_time()
    found = packets(data)
    return time.process_time() - began, found


def transfer(data: bytes, found: list[bytes]) -> float:
    """Seconds of processor time to bring a stream to a worker and its packets back."""
    joined, began = b"".join(found), _used()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = os.fork()
        if not worker:
            _work(theirs, len(data), joined)
        _send(ours, data)
        received = memoryview(bytearray(len(joined)))
        at = 0
        while at < len(received):
            at += ours.recv_into(received[at:])
        at = 0
        for packet in found:
            assert bytes(received[at : at + len(packet)]) == packet
            at += len(packet)
        os.waitpid(worker, 0)
    return _used() - began


def _work(connection: socket.socket, size: int, answer: bytes) -> None:
    """The worker: takes a stream, gives packets; decoding is not part of this figure."""
    try:
        piece = bytearray(_PIECE)
        while size:
            size -= connection.recv_into(piece)
        _send(connection, answer)
    finally:
        os._exit(0)


def _send(connection: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    for first in range(0, len(view), _PIECE):
        connection.sendall(view[first : first + _PIECE])


def _used() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def main() -> None:
    """Print the figures, the best of five turns."""
    parser = argparse.ArgumentParser(prog="python -m bench.stageworker", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    rows = parser.parse_args().rows
    data = stream(rows)
    _, found = decode(data)
    inside = min(decode(data)[0] for _ in range(5))
    besides = min(transfer(data, found) for _ in range(5))
    print(f"decode in the server: {inside / rows * 1e6:.2f} µs a row")
    print(f"to a worker process and back, besides: {besides / rows * 1e6:.2f} µs a row")


if __name__ == "__main__":
    main()
