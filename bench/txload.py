"""Transactions over the application protocol: send and receive, of one or many messages, by many clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.generators import run_generator
from bench.measure import Figures, ServerWatch
from bench.server import Server

__all__ = ["TxLoad", "on_server"]

_QUEUE = "ledger"  # made by the generator: transactional


@dataclass(frozen=True, slots=True)
class TxLoad:
    """Every client has one sending and one receiving transaction of `size` messages under way."""

    clients: int = 1
    size: int = 1
    explicit: bool = False  # BEGIN … COMMIT also for one message
    body: int = 1024
    seconds: float = 3
    warmup: float = 1

    def arguments(self, socket: str) -> list[str]:
        """Command-line arguments of the generator."""
        found = ["--socket", socket, "--queue", _QUEUE]
        for name in ("clients", "size", "body", "seconds", "warmup"):
            found += [f"--{name}", f"{getattr(self, name):g}"]
        return [*found, "--explicit"] if self.explicit else found


def on_server(load: TxLoad) -> Callable[[Server], Figures]:
    """Runs a load on a server."""

    def run(server: Server) -> Figures:
        watch = ServerWatch(server)
        result = run_generator("tx_load", load.arguments(str(server.socket)), watch.on_event)
        sending, receiving = result["send_time"], result["receive_time"]
        found: Figures = {
            "elapsed_s": result["elapsed_s"],
            "generator_cores": result["generator_cpu_s"] / result["elapsed_s"],
            "transactions_per_s": result["sent_per_s"] + result["received_per_s"],
            "sent_per_s": result["sent_per_s"],
            "received_per_s": result["received_per_s"],
            "in_per_s": result["in_per_s"],
            "out_per_s": result["out_per_s"],
            "ack_p50_us": sending["p50_us"],
            "ack_p99_us": sending["p99_us"],
            "ack_p999_us": sending["p999_us"],
            "end_to_end_p50_us": receiving["p50_us"],
            "end_to_end_p99_us": receiving["p99_us"],
            "end_to_end_p999_us": receiving["p999_us"],
        }
        return found | watch.figures(max(found["in_per_s"], found["out_per_s"]))

    return run
