"""Load by MS-MQQB: what a remote queue manager sends, and how soon it is acknowledged."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.generators import mqqb_null_sink, run_generator
from bench.measure import Figures, ServerWatch
from bench.packets import user_message
from bench.server import Server

_HEADER = bytes(20)  # TransactionHeader; the generator fills it in

__all__ = ["Group", "Load", "mix_on_server", "on_null_sink", "on_server"]


@dataclass(frozen=True, slots=True)
class Group:
    """Sessions that send the same: `rate` in messages a second and session, 0 for no schedule.

    `transactional`: each session is one stream, to queues that the run creates.
    """

    body: int
    recoverable: bool
    sessions: int = 1
    window: int = 64
    rate: float = 0
    transactional: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """Groups of sessions, how long they are measured, and what ends a run early."""

    groups: tuple[Group, ...]
    seconds: float = 3
    warmup: float = 1
    count: int = 0
    max_bytes: int = 2 << 30
    receipt_window: bool = False
    queues: tuple[str, ...] = ("bench",)


def _arguments(load: Load, address: str, directory: Path) -> list[str]:
    found = ["--connect", address, "--warmup", f"{load.warmup:g}"]
    if load.count:
        found += ["--count", str(load.count)]
    else:
        found += ["--seconds", f"{load.seconds:g}", "--max-bytes", str(load.max_bytes)]
    if load.receipt_window:
        found.append("--receipt-window")
    host = address.rpartition(":")[0]
    for number, group in enumerate(load.groups):
        files = []
        for queue in load.queues:
            path = directory / f"{number}-{queue}.packet"
            name = f"TCP:{host}\\private$\\{_queue(group, queue)}"
            header = _HEADER if group.transactional else b""
            recoverable = group.recoverable or group.transactional
            path.write_bytes(
                user_message(name, bytes(group.body), recoverable=recoverable, transaction=header)
            )
            files.append(str(path))
        found += [
            "--group",
            f"sessions={group.sessions},window={group.window},rate={group.rate:g},packet={'+'.join(files)}",
        ]
    return found


def _queue(group: Group, queue: str) -> str:
    return f"{queue}-stream" if group.transactional else queue


def _prepare(load: Load, server: Server) -> None:
    streams = [group for group in load.groups if group.transactional]
    for name in {_queue(group, queue) for group in streams for queue in load.queues}:
        server.create_transactional(name)


def _run(load: Load, address: str, on_event: Callable[[str], None]) -> list[Figures]:
    """One dictionary of figures for each group."""
    with tempfile.TemporaryDirectory(prefix="msmq-bench-packets-") as directory:
        result = run_generator("mqqb_load", _arguments(load, address, Path(directory)), on_event)
    found = []
    for group in result["groups"]:
        times = group["ack_time"]
        found.append(
            {
                "in_per_s": group["per_s"],
                "in_mb_per_s": group["bytes"] / result["elapsed_s"] / 1e6,
                "messages": group["messages"],
                "ack_p50_us": times["p50_us"],
                "ack_p99_us": times["p99_us"],
                "ack_p999_us": times["p999_us"],
                "ack_max_us": times["max_us"],
                "session_acks": group["session_acks"],
                "order_acks": group["order_acks"],
                "generator_cores": result["generator_cpu_s"] / result["elapsed_s"],
                "elapsed_s": result["elapsed_s"],
            }
        )
    return found


def on_server(load: Load) -> Callable[[Server], Figures]:
    """Runs a load of one group on a server."""

    def run(server: Server) -> Figures:
        _prepare(load, server)
        watch = ServerWatch(server)
        (figures,) = _run(load, server.address, watch.on_event)
        return figures | watch.figures(figures["in_per_s"])

    return run


def mix_on_server(load: Load) -> Callable[[Server], Figures]:
    """Runs a load of two groups: the figures of the first, and the throughput of the second as `large_…`."""

    def run(server: Server) -> Figures:
        watch = ServerWatch(server)
        small, large = _run(load, server.address, watch.on_event)
        mixed = small | watch.figures(small["in_per_s"] + large["in_per_s"])
        shown = ("in_per_s", "in_mb_per_s", "ack_p50_us", "ack_p99_us")
        return mixed | {f"large_{key}": large[key] for key in shown}

    return run


def on_null_sink(load: Load, runs: int) -> list[Figures]:
    """The same load against the null sink; a store is not involved, so no directory is needed."""
    with mqqb_null_sink() as port:
        return [_run(load, f"127.0.0.1:{port}", lambda event: None)[0] for _ in range(runs)]
