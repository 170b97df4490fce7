"""A well-behaved remote reader, in a process of its own, while others attack.

    python -m tests.faults.rpc_witness HOST RPC-PORT QM2QM-PORT QUEUE

It reads the queue in two phases by qm2qm, puts every message back once, and takes it the second time. It
prints `ready`, runs until its input ends, and prints what it saw as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.processes.servers import Server
from tests.support.rpc.socketreader import ACK, NACK, RemoteQueue


class Ports:
    """What a RemoteQueue asks of a server."""

    def __init__(self, host: str, rpc: int, qm2qm: int) -> None:
        self.host = host
        self._ports = {"rpc": rpc, "qm2qm": qm2qm}

    def port(self, listener: str) -> int:
        return self._ports[listener]


def main() -> None:
    host, rpc, qm2qm, name = sys.argv[1:]
    queue = RemoteQueue(cast(Server, Ports(host, int(rpc), int(qm2qm))), name)
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    print("ready", flush=True)
    taken, slowest, last = 0, 0.0, 0
    trouble: list[str] = []
    while not stop.is_set():
        began = time.monotonic()
        seen = []
        for ack in (NACK, ACK):
            queue.start()
            read = queue.reader.receive()
            if read.result or queue.end(read, ack):
                trouble.append(f"0x{read.result:08X}")
                break
            seen.append(read.lpRemoteReadDesc2.SequentialId)
        else:
            taken += 1
            if seen[0] != seen[1] or seen[0] <= last:
                trouble.append(f"{last} {seen}")
            last = seen[0]
        slowest = max(slowest, time.monotonic() - began)
        stop.wait(0.01)
    queue.close()
    print(json.dumps({"taken": taken, "slowest": slowest, "trouble": trouble[:10]}), flush=True)


if __name__ == "__main__":
    main()
