"""Load over the application protocol: producers, consumers, both at once, one message at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.generators import app_null_sink, run_generator
from bench.measure import Figures, ServerWatch
from bench.server import Server

__all__ = ["AppLoad", "fill", "on_null_sink", "on_server", "receive", "unwatched"]


@dataclass(frozen=True, slots=True)
class AppLoad:
    """What app_load is to do; `window` and `batch` hold for each producer, `credit` for each consumer.

    `level`: consumers take one message for each that was taken in. `rate`: messages a second of all
    producers together, on a schedule from which times count; 0: as fast as it goes.
    """

    produce: int = 1
    consume: int = 1
    recoverable: bool = True
    body: int = 1024
    batch: int = 1
    window: int = 64
    credit: int = 1024
    acknowledge: bool = False
    receive: bool = False
    lockstep: bool = False
    backlog: int = 0
    rate: float = 0
    level: bool = False
    seconds: float = 3
    warmup: float = 1
    count: int = 0
    max_bytes: int = 2 << 30

    def arguments(self, socket: str, queue: str) -> list[str]:
        """Command-line arguments of the generator."""
        found = ["--socket", socket, "--queue", queue, "--warmup", f"{self.warmup:g}"]
        for name in ("produce", "consume", "body", "batch", "window", "credit", "backlog"):
            found += [f"--{name}", str(getattr(self, name))]
        if self.rate:
            found += ["--rate", f"{self.rate:g}"]
        if self.count:
            found += ["--count", str(self.count)]
        else:
            found += ["--seconds", f"{self.seconds:g}", "--max-bytes", str(self.max_bytes)]
        found += [
            f"--{name}" for name in ("acknowledge", "receive", "lockstep", "level") if getattr(self, name)
        ]
        return found if self.recoverable else [*found, "--express"]


def _run(load: AppLoad, socket: Path, queue: str, on_event: Callable[[str], None]) -> Figures:
    result = run_generator("app_load", load.arguments(str(socket), queue), on_event)
    found: Figures = {
        "elapsed_s": result["elapsed_s"],
        "generator_cores": result["generator_cpu_s"] / result["elapsed_s"],
        "messages": max(result["in_messages"], result["out_messages"]),
        "out_of_order": result["out_of_order"],
    }
    if load.produce:
        times = result["confirm_time"]
        found |= {
            "answered": result["answered"],
            "in_per_s": result["in_per_s"],
            "ack_p50_us": times["p50_us"],
            "ack_p99_us": times["p99_us"],
            "ack_p999_us": times["p999_us"],
        }
    if load.consume:
        found["out_per_s"] = result["out_per_s"]
        times = result["end_to_end_time"]
        if times["count"] and load.produce:
            found |= {
                "end_to_end_p50_us": times["p50_us"],
                "end_to_end_p99_us": times["p99_us"],
                "end_to_end_p999_us": times["p999_us"],
            }
    return found


def on_server(load: AppLoad, queue: str = "bench") -> Callable[[Server], Figures]:
    """Runs a load on a server."""

    def run(server: Server) -> Figures:
        watch = ServerWatch(server)
        figures = _run(load, server.socket, queue, watch.on_event)
        return figures | watch.figures(max(figures.get("in_per_s", 0.0), figures.get("out_per_s", 0.0)))

    return run


def unwatched(server: Server, load: AppLoad, queue: str = "bench") -> Figures:
    """Runs a load on a server without a look at its process and metrics, which cost time with many queues."""
    return _run(load, server.socket, queue, lambda event: None)


def on_null_sink(load: AppLoad, runs: int) -> list[Figures]:
    """The same load against the null sink: what the generator can do."""
    results: list[Figures] = []
    for _ in range(runs):
        with app_null_sink() as socket:
            results.append(_run(load, socket, "bench", lambda event: None))
    return results


def fill(server: Server, queue: str, count: int, body: int) -> Figures:
    """Puts `count` recoverable messages into a queue."""
    load = AppLoad(produce=1, consume=0, body=body, batch=64, window=1024, count=count, warmup=0)
    return _run(load, server.socket, queue, lambda event: None)


def receive(server: Server, queue: str, count: int) -> Figures:
    """Receives `count` messages with a stream."""
    return _run(
        AppLoad(produce=0, consume=1, count=count, warmup=0), server.socket, queue, lambda event: None
    )
