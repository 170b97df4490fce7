"""What PGM packets a network namespace saw, and the server's figures."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from msmq_fast.client import sync
from tests.srmp.pgm.namespaces import Host, run
from tests.support.processes.servers import Server

WRONG = "_ws.malformed || _ws.expert.severity >= 6291456"  # warnings and errors, bad checksums among them
SPM, ODATA, RDATA, NAK, NCF = "0x00", "0x04", "0x05", "0x08", "0x0a"
_GET = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())"


def drain(server: Server, name: str, count: int, seconds: float) -> list[int]:
    """The numbers in the messages of a queue in their order, when there are so many."""
    deadline = time.monotonic() + seconds
    with sync.connect(server.endpoint) as connection:
        while (waiting := int(connection.admin.queues.get(name).messages)) < count:
            assert time.monotonic() < deadline, f"{waiting} of {count} messages"
            time.sleep(0.2)
        with (
            connection.open(name, sync.Access.RECEIVE) as queue,
            queue.subscribe(4096, acknowledge=False) as messages,
        ):
            return [int(message.body) for message in islice(messages, waiting)]


def figures(host: Host, server: Server, name: str) -> dict[str, int]:
    """A metric of PGM by its label."""
    text = host.run(sys.executable, "-c", _GET, f"http://127.0.0.1:{server.port('admin')}/metrics")
    found = re.findall(rf'^\w*{name}\w*{{\w+="(\w+)"}} (\S+)$', text, re.MULTILINE)
    return {label: int(float(value)) for label, value in found}


def kinds(capture: Path) -> Counter[str]:
    """How many packets of each type tshark found."""
    return Counter(run("tshark", "-r", str(capture), "-T", "fields", "-e", "pgm.hdr.type").split())


def complaints(capture: Path) -> list[str]:
    """What tshark finds wrong."""
    shown = ("-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info", "-e", "_ws.expert.message")
    check = ("-o", "pgm.check_checksum:true")
    return run("tshark", "-r", str(capture), *check, "-Y", WRONG, *shown).splitlines()
