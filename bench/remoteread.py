"""Remote readers: `python -m bench.remoteread [--runs 3]`.

Messages of 1 KiB are read over RemoteRead by one and by 16 clients, one read of two phases after the other
(R_StartReceive, R_EndReceive), and in the same way over the application protocol (RECEIVE). Messages of 4 MB
are read by one client, unauthenticated and sealed (NTLM, privacy). Each on a fresh server.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from bench import appload, machine, report
from bench.appload import AppLoad
from bench.generators import GeneratorError, run_generator
from bench.measure import Figures, ServerWatch, medians
from bench.report import Check
from bench.server import Server, ServerError
from msmq_fast._native.rpcframing import Pdu, PduScanner, fragments
from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.auth.context import AuthLevel, AuthType
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.pdu import (
    Bind,
    ContextElement,
    Flag,
    PduType,
    SecTrailer,
    build_auth3,
    build_bind,
)
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.rpc.syntaxes import NDR, SyntaxId

__all__ = ["main"]

QUEUE: Final = "bench"
SMALL: Final = 1024
LARGE: Final = 4_000_000
_FRAGMENT: Final = 5840
_HEADER: Final = 24
_HANDLE: Final = bytes(20)
_BUFFER: Final = 1 << 23
_EMPTY: Final = 0xC00E001B
_USER, _PASSWORD = "reader", "bench"
SETTINGS: Final = "[rpc]\nallow_unauthenticated = true\n"


# ------------------------------------------------------------------------------------------------- requests


def _open(host: str) -> bytes:
    op = REMOTE_READ.op("open_queue")
    name = parse_format_name(rf"DIRECT=TCP:{host}\private$\{QUEUE}")
    return op.encode_request(
        op.Args(
            pQueueFormat=queue_format(name), dwAccess=1, pClientId=UUID(int=1), fNonRoutingServer=1, Major=6
        ),
        ndr64=False,
    )


def _start(handle: bytes = _HANDLE) -> bytes:
    op = REMOTE_READ.op("start_receive")
    return op.encode_request(
        op.Args(phContext=handle, dwRequestId=1, dwMaxBodySize=1 << 22, dwMaxCompoundMessageSize=1 << 22),
        ndr64=False,
    )


def _end(handle: bytes = _HANDLE) -> bytes:
    op = REMOTE_READ.op("end_receive")
    return op.encode_request(op.Args(phContext=handle, dwAck=2, dwRequestId=1), ndr64=False)


def _bind(auth: SecTrailer | None = None) -> bytes:
    interface = SyntaxId(REMOTE_READ.uuid, *REMOTE_READ.version)
    proposal = Bind(_FRAGMENT, _FRAGMENT, 0, (ContextElement(0, interface, (NDR,)),))
    flags = Flag.FIRST | Flag.LAST | Flag.CONC_MPX
    return build_bind(1, proposal, flags=flags | (Flag.SUPPORT_HEADER_SIGN if auth else 0), auth=auth)


def _request(opnum: int, stub: bytes) -> bytes:
    return bytes(fragments(PduType.REQUEST, stub, 0, len(stub), 0, 0, 0, opnum, _FRAGMENT)[0])


# ---- small messages


@dataclass(frozen=True, slots=True)
class Load:
    """Reads of messages of one size."""

    clients: int = 1
    count: int = 40_000
    body: int = SMALL
    recoverable: bool = True

    @property
    def name(self) -> str:
        kind = "recoverable" if self.recoverable else "express"
        return f"{kind} {self.body:,} B × {self.clients}"


def _fill(server: Server, load: Load) -> None:
    large = load.body > 1 << 16
    filling = AppLoad(
        produce=1,
        consume=0,
        recoverable=load.recoverable,
        body=load.body,
        batch=1 if large else 64,
        window=4 if large else 1024,
        count=load.count,
        warmup=0,
    )
    appload.on_server(filling, QUEUE)(server)


def by_rpc(load: Load) -> Callable[[Server], Figures]:
    """Over RemoteRead, unauthenticated, with the native generator."""

    def run(server: Server) -> Figures:
        server.run("acl", "grant", QUEUE, "--user", "anonymous", "--right", "MQSEC_RECEIVE_MESSAGE")
        _fill(server, load)
        address = server.listening["rpc"].partition(",")[0]
        watch = ServerWatch(server)
        with tempfile.NamedTemporaryFile(prefix="msmq-bench-pdus-") as pdus:
            pdus.write(
                _bind() + _request(2, _open(server.host)) + _request(7, _start()) + _request(9, _end())
            )
            pdus.flush()
            arguments = ["--connect", address, "--pdus", pdus.name, "--count", str(load.count)]
            arguments += ["--clients", str(load.clients), "--warmup", str(load.count // 10)]
            result = run_generator("rpc_load", [*arguments, "--body", str(load.body)], watch.on_event)
        times = result["read_time"]
        figures: Figures = {
            "out_per_s": result["per_s"],
            "mb_per_s": result["mb_per_s"],
            "read_p50_us": times["p50_us"],
            "read_p99_us": times["p99_us"],
            "generator_cores": result["generator_cpu_s"] / result["elapsed_s"],
        }
        return figures | watch.figures(result["per_s"])

    return run


def by_app(load: Load) -> Callable[[Server], Figures]:
    """Over the application protocol: each consumer has one RECEIVE under way."""

    def run(server: Server) -> Figures:
        _fill(server, load)
        reading = AppLoad(
            produce=0,
            consume=load.clients,
            receive=True,
            recoverable=load.recoverable,
            warmup=0.2,
            count=load.count * 9 // 10,
        )
        return appload.on_server(reading, QUEUE)(server)

    return run


# ------------------------------------------------------------------------------------------------- sealed


class SealedReader:
    """One client by NTLM at the level privacy: as little Python around the native code as can be."""

    def __init__(self, address: str, host: str) -> None:
        name, _, port = address.rpartition(":")
        self._socket = socket.create_connection((name, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._security = initiate(
            AuthType.NTLM,
            AuthLevel.PRIVACY,
            f"host/{host}",
            Credentials(_USER, password=_PASSWORD),
            AuthCounters(),
            time.time,
            os.urandom,
        )
        self._auth = SecTrailer(AuthType.NTLM, AuthLevel.PRIVACY, 0)
        self._buffer = bytearray(_BUFFER)
        self._call = 1
        self._socket.sendall(_bind(self._auth._replace(token=self._security.step(b""))))
        token = self._security.step(self._whole().token)
        self._socket.sendall(build_auth3(1, self._auth._replace(token=token)))
        self.handle = bytes(self.ask(2, _open(host))[:20])

    def _whole(self) -> Pdu:
        scanner = PduScanner(65535)
        while True:
            scanner.feed(self._socket.recv(4096))
            if (pdu := scanner.take()) is not None:
                return pdu

    def ask(self, opnum: int, stub: bytes) -> memoryview:
        """A request; the stub of the answer's last fragment, without its padding."""
        self._call += 1
        trailer, overhead = self._auth.encode(), self._security.overhead()
        request = fragments(
            PduType.REQUEST, stub, 0, 1 << 16, 0, self._call, 0, opnum, _FRAGMENT, trailer, overhead
        )[0]
        assert isinstance(request, bytearray)
        self._security.protect_pdus(request, _HEADER, privacy=True, sign_header=True)
        self._socket.sendall(request)
        view = memoryview(self._buffer)
        have = at = 0
        while True:
            have += self._socket.recv_into(view[have:])
            begin, last, ended = at, 0, False
            while have - at >= 16:
                size = view[at + 8] | view[at + 9] << 8
                if have - at < size:
                    break
                last, ended = at, bool(view[at + 3] & Flag.LAST)
                at += size
            if at > begin:
                self._security.unprotect_pdus(view[begin:at], _HEADER, privacy=True, sign_header=True)
            if ended:
                end = at - overhead - 8
                return view[last + _HEADER : end - view[end + 2]]

    def read(self) -> bool:
        """One read of two phases; False: there was no message."""
        result = int.from_bytes(self.ask(7, _start(self.handle))[-4:], "little")
        if result == _EMPTY:
            return False
        if result or int.from_bytes(self.ask(9, _end(self.handle))[-4:], "little"):
            raise GeneratorError(f"a sealed read failed: 0x{result:08X}")
        return True


def sealed(load: Load) -> Callable[[Server], Figures]:
    """One client, NTLM, privacy."""

    def run(server: Server) -> Figures:
        subprocess.run(
            [sys.executable, "-m", "msmq_fast", "user", "add", _USER, "--data", str(server.data)],
            input=f"{_PASSWORD}\n".encode(),
            check=True,
            capture_output=True,
        )
        server.run("acl", "grant", QUEUE, "--user", _USER, "--right", "receive")
        _fill(server, load)
        reader = SealedReader(server.listening["rpc"].partition(",")[0], server.host)
        reader.read()
        watch = ServerWatch(server)
        watch.on_event("start")
        begin, cpu, count = time.perf_counter(), time.process_time(), 0
        while reader.read():
            count += 1
        elapsed = time.perf_counter() - begin
        watch.on_event("stop")
        figures: Figures = {
            "out_per_s": count / elapsed,
            "mb_per_s": count * load.body / elapsed / 1e6,
            "generator_cores": (time.process_time() - cpu) / elapsed,
        }
        return figures | watch.figures(count / elapsed)

    return run


# ------------------------------------------------------------------------------------------------- all of it

_FEW, _MANY = Load(count=4_096), Load(clients=16, count=40_960)
_EXPRESS = Load(clients=16, count=40_960, recoverable=False)
_LARGE = Load(count=80, body=LARGE, recoverable=False)
CASES: Final = {
    "RemoteRead, 1 client": by_rpc(_FEW),
    "RemoteRead, 16 clients": by_rpc(_MANY),
    "RemoteRead, 16 clients, express": by_rpc(_EXPRESS),
    "RECEIVE, 1 client": by_app(_FEW),
    "RECEIVE, 16 clients": by_app(_MANY),
    "RemoteRead, 4 MB": by_rpc(_LARGE),
    "RemoteRead, 4 MB, sealed": sealed(_LARGE),
}
_SHOWN: Final = (
    ("out_per_s", "reads/s", ",.0f", 1.0),
    ("mb_per_s", "MB/s", ",.0f", 1.0),
    ("read_p50_us", "p50 ms", ",.2f", 1e-3),
    ("read_p99_us", "p99 ms", ",.2f", 1e-3),
    ("server_cores", "server cores", ".2f", 1.0),
    ("server_cpu_us_per_message", "µs/read", ",.0f", 1.0),
    ("generator_cores", "client cores", ".2f", 1.0),
    ("fsyncs_per_s", "fsync/s", ",.0f", 1.0),
)


def checks(found: dict[str, Figures]) -> list[Check]:
    """What is wanted of those that were measured."""
    wanted = (
        ("RemoteRead, 16 clients", "out_per_s", 8_000.0, "reads/s"),
        ("RemoteRead, 4 MB", "mb_per_s", 400.0, "MB/s"),
        ("RemoteRead, 4 MB, sealed", "mb_per_s", 150.0, "MB/s"),
    )
    return [
        Check(name, found[name][figure], bound, unit) for name, figure, bound, unit in wanted if name in found
    ]


def _line(figures: Figures) -> str:
    shown = ((key, heading, form, factor) for key, heading, form, factor in _SHOWN if key in figures)
    return ", ".join(
        f"{format(figures[key] * factor, form)} {heading}" for key, heading, form, factor in shown
    )


def _table(found: dict[str, Figures]) -> str:
    rows = [["", *(heading for _, heading, _, _ in _SHOWN)]]
    for name, figures in found.items():
        rows.append(
            [
                name,
                *(
                    format(figures[key] * factor, form) if key in figures else ""
                    for key, _, form, factor in _SHOWN
                ),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main(arguments: Sequence[str]) -> int:
    """0, or 1 where a figure misses what is wanted, or something failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.remoteread", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs, each on a fresh server and store (3)")
    parser.add_argument("--only", choices=[*CASES], action="append", help="this measurement; may be repeated")
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()), help="a real disk")
    options = parser.parse_args(arguments)
    found: dict[str, Figures] = {}
    try:
        for name in options.only or CASES:
            runs = []
            for number in range(1, options.runs + 1):
                with Server(options.dir, queues=(QUEUE,), settings=SETTINGS) as server:
                    runs.append(CASES[name](server))
                print(f"  {name}: run {number} of {options.runs}: {_line(runs[-1])}", file=sys.stderr)
            found[name] = medians(runs)
    except (GeneratorError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(report.facts_line(machine.facts(options.dir)))
    print(_table(found))
    judged = checks(found)
    print(report.verdicts(judged))
    return int(not all(check.passed for check in judged))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
