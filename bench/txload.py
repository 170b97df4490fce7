"""Transactions over the application protocol: send and receive, of one or many messages, by many clients."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.generators import run_generator
from bench.measure import Figures, ServerWatch
from bench.server import Server, ServerError

__all__ = ["TxLoad", "arrived", "on_server", "send_across", "to_another_server"]

_QUEUE = "ledger"  # transactional
_ARRIVED = "msmq_fast_messages_in_total"
_WAITING = "msmq_fast_outgoing_messages"


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
        found = self._what(socket, _QUEUE)
        found += ["--seconds", f"{self.seconds:g}", "--warmup", f"{self.warmup:g}"]
        return [*found, "--explicit"] if self.explicit else found

    def sending(self, socket: str, queue: str, count: int) -> list[str]:
        """The same for a run that sends `count` messages to a queue and receives none."""
        return [*self._what(socket, queue), "--send-only", "--count", str(count)]

    def _what(self, socket: str, queue: str) -> list[str]:
        found = ["--socket", socket, "--queue", queue]
        for name in ("clients", "size", "body"):
            found += [f"--{name}", str(getattr(self, name))]
        return found


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


def to_another_server(load: TxLoad, count: int) -> Callable[[Server], Figures]:
    """Transactions of a program, for a queue of a second server: both keep each message on disk.

    The rate is that of `count` messages from the first SEND until the second server has taken the last one.
    The run ends when the OrderAcks have emptied the outgoing queue. Raises ServerError if a message is
    missing or came twice.
    """

    def run(server: Server) -> Figures:
        with Server(server.parent, queues=(), beside=server) as target:
            send_across(server, target, load, 1)  # connects the servers
            _wait_for(target, _ARRIVED, lambda found: found > 0)
            before, watch, watch_target = _settled(server, target), ServerWatch(server), ServerWatch(target)
            watch.on_event("start")
            watch_target.on_event("start")
            begin = time.perf_counter()
            sent = send_across(server, target, load, count)
            sending = time.perf_counter() - begin
            messages = -(-count // load.size) * load.size
            _wait_for(target, _ARRIVED, lambda found: found >= before + messages)
            elapsed = time.perf_counter() - begin
            watch.on_event("stop")
            watch_target.on_event("stop")
            came = _settled(server, target) - before
            if came != messages:
                raise ServerError(f"{messages} messages were sent, {came:.0f} arrived")
        per_s = messages / elapsed
        figures, at_target = watch.figures(per_s), watch_target.figures(per_s)
        return figures | {
            "elapsed_s": elapsed,
            "messages": messages,
            "in_per_s": messages / sending,
            "out_per_s": per_s,
            "ack_p50_us": sent["send_time"]["p50_us"],
            "ack_p99_us": sent["send_time"]["p99_us"],
            "target_cpu_us_per_message": at_target["server_cpu_us_per_message"],
            "target_cores": at_target["server_cores"],
        }

    return run


def send_across(server: Server, target: Server, load: TxLoad, count: int) -> dict[str, Any]:
    """Sends `count` messages for the queue of a second server; returns when the first one keeps them."""
    target.create_transactional(_QUEUE)
    name = f"DIRECT=TCP:{target.host}\\private$\\{_QUEUE}"
    return run_generator("tx_load", load.sending(str(server.socket), name, count))


def arrived(target: Server) -> float:
    """Messages that a server has taken so far."""
    return target.metrics()[_ARRIVED]


def _settled(server: Server, target: Server) -> float:
    """What arrived at the second server when nothing is left in the first."""
    _wait_for(server, _WAITING, lambda waiting: waiting == 0)
    return arrived(target)


def _wait_for(server: Server, metric: str, enough: Callable[[float], bool], timeout: float = 60) -> None:
    deadline = time.perf_counter() + timeout
    while not enough(server.metrics()[metric]):
        if time.perf_counter() > deadline:
            raise ServerError(f"{metric} is {server.metrics()[metric]:g} after {timeout:g} s")
        time.sleep(0.02)
