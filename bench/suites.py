"""Named sets of measurements, and the bounds that the targets must keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench import appload, mqqb, txload
from bench.appload import AppLoad
from bench.measure import Figures, Measurement
from bench.mqqb import Group, Load
from bench.report import Check
from bench.server import Server
from bench.txload import TxLoad

__all__ = ["SUITES", "Case", "target_checks"]

_KIB, _MIB = 1 << 10, 1 << 20
LARGE_BODY = 4_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement: its name, the arguments that repeat it alone, and what to do on a server."""

    name: str
    arguments: tuple[str, ...]
    run: Callable[[Server], Figures]


def mqqb_case(group: Group, *, receipt_window: bool = False, seconds: float = 3) -> Case:
    """Messages of one size from a number of sending peers."""
    kind = "transactional" if group.transactional else "recoverable" if group.recoverable else "express"
    arguments = ["mqqb", f"--{kind}", "--body", str(group.body), "--sessions", str(group.sessions)]
    arguments += ["--window", str(group.window)]
    if receipt_window:
        arguments.append("--receipt-window")
    load = Load((group,), seconds=seconds, receipt_window=receipt_window)
    name = f"{kind} {_size(group.body)} × {group.sessions} sessions" + (
        ", window on receipt" if receipt_window else ""
    )
    return Case(name, tuple(arguments), mqqb.on_server(load))


def app_case(load: AppLoad, name: str) -> Case:
    """Producers and consumers over the application protocol."""
    arguments = ["app", "--produce", str(load.produce), "--consume", str(load.consume)]
    arguments += ["--recoverable" if load.recoverable else "--express", "--body", str(load.body)]
    for option in ("batch", "window", "credit", "backlog"):
        if getattr(load, option) != getattr(AppLoad(), option):
            arguments += [f"--{option}", str(getattr(load, option))]
    arguments += [f"--{option}" for option in ("acknowledge", "receive", "lockstep") if getattr(load, option)]
    return Case(name, tuple(arguments), appload.on_server(load))


def mix_case(*, seconds: float = 5) -> Case:
    """Small messages on a schedule beside a stream of very large ones."""
    small = Group(body=_KIB, recoverable=True, window=64, rate=500)
    large = Group(body=LARGE_BODY, recoverable=True, window=64)
    load = Load((small, large), seconds=seconds, max_bytes=8 << 30)
    return Case("1 KiB at 500/s beside 4 MB", ("mix",), mqqb.mix_on_server(load))


def two_servers_case(load: TxLoad, count: int) -> Case:
    """Transactions of programs for a queue of a second server."""
    arguments = ["tx", "--clients", str(load.clients), "--size", str(load.size)]
    arguments += ["--to-another-server", str(count)]
    name = f"to another server, transactions of {load.size} × {load.clients} clients"
    return Case(name, tuple(arguments), txload.to_another_server(load, count))


def _size(body: int) -> str:
    if body and not body % _MIB:
        return f"{body // _MIB} MiB"
    return f"{body // _KIB} KiB" if body and not body % _KIB else f"{body} B"


EXPRESS_8 = mqqb_case(Group(_KIB, recoverable=False, sessions=8))
RECOVERABLE_8 = mqqb_case(Group(_KIB, recoverable=True, sessions=8))
STREAMS_8 = mqqb_case(Group(_KIB, recoverable=True, sessions=8, transactional=True))
IN_AND_OUT = app_case(AppLoad(), "in and out, recoverable 1 KiB")
ONE_AT_A_TIME = app_case(AppLoad(lockstep=True), "one at a time, recoverable 1 KiB")
ONE_BY_RECEIVE = app_case(AppLoad(lockstep=True, receive=True), "one at a time, waiting RECEIVE")
MIX = mix_case()
TWO_SERVERS = two_servers_case(TxLoad(clients=8, size=100), 100_000)


def _targets() -> Iterator[Case]:
    yield from (EXPRESS_8, RECOVERABLE_8, STREAMS_8, TWO_SERVERS, IN_AND_OUT, ONE_AT_A_TIME, MIX)


def _streams() -> Iterator[Case]:
    """Exactly once, in order, between queue managers."""
    for sessions in (1, 8, 64):
        yield mqqb_case(Group(_KIB, recoverable=True, sessions=sessions, transactional=True))
    yield TWO_SERVERS
    yield two_servers_case(TxLoad(clients=8), 20_000)


def _matrix() -> Iterator[Case]:
    for recoverable in (False, True):
        for body in (0, 256, _KIB, 4 * _KIB, 64 * _KIB, _MIB):
            for sessions in (1, 8, 64):
                window = 64 if body <= 64 * _KIB else 8
                yield mqqb_case(Group(body, recoverable, sessions, window), seconds=2)


def _peers() -> Iterator[Case]:
    """The rows of the comparison with other brokers."""
    for recoverable in (True, False):
        for sessions in (1, 8, 64):
            yield mqqb_case(Group(_KIB, recoverable, sessions))
    yield mqqb_case(Group(_KIB, True, 1, window=1))
    kinds = ((True, "recoverable"), (False, "express"))
    for recoverable, kind in kinds:
        yield app_case(AppLoad(consume=0, recoverable=recoverable), f"produce, {kind}")
        yield app_case(AppLoad(produce=8, consume=0, recoverable=recoverable), f"produce × 8, {kind}")
        yield app_case(AppLoad(recoverable=recoverable), f"in and out, {kind}")
        yield app_case(AppLoad(recoverable=recoverable, lockstep=True), f"one at a time, {kind}")
    yield app_case(AppLoad(batch=16), "in and out, recoverable, 16 a frame")
    yield ONE_BY_RECEIVE


def tx_case(load: TxLoad) -> Case:
    """Transactions of some size by some clients."""
    arguments = ["tx", "--clients", str(load.clients), "--size", str(load.size)]
    arguments += ["--explicit"] if load.explicit else []
    name = f"transactions of {load.size} × {load.clients} clients" + (", explicit" if load.explicit else "")
    return Case(name, tuple(arguments), txload.on_server(load))


TX_SINGLE = tx_case(TxLoad(clients=64))
TX_BATCHES = tx_case(TxLoad(clients=64, size=100))


def _transactions() -> Iterator[Case]:
    for clients in (1, 8):
        yield tx_case(TxLoad(clients=clients))
    yield TX_SINGLE
    yield tx_case(TxLoad(clients=64, explicit=True))
    for clients in (1, 8):
        yield tx_case(TxLoad(clients=clients, size=100))
    yield TX_BATCHES


SUITES: dict[str, Callable[[], Iterator[Case]]] = {
    "targets": _targets,
    "matrix": _matrix,
    "peers": _peers,
    "transactions": _transactions,
    "streams": _streams,
}


def target_checks(measurements: list[Measurement]) -> list[Check]:
    """The speed targets: pass or miss for each figure of the suite `targets`."""
    figures = {m.name: m.figures for m in measurements}
    both = figures[IN_AND_OUT.name]
    single = figures[ONE_AT_A_TIME.name]
    return [
        Check("express in, 8 sessions", figures[EXPRESS_8.name]["in_per_s"], 150_000, "msgs/s"),
        Check("recoverable in, 8 sessions", figures[RECOVERABLE_8.name]["in_per_s"], 100_000, "msgs/s"),
        Check("exactly once in order, 8 streams", figures[STREAMS_8.name]["in_per_s"], 40_000, "msgs/s"),
        Check("exactly once to another server", figures[TWO_SERVERS.name]["out_per_s"], 15_000, "msgs/s"),
        Check(
            "recoverable in and out at once", min(both["in_per_s"], both["out_per_s"]), 40_000, "msgs/s each"
        ),
        Check("to a waiting receiver, p50", single["end_to_end_p50_us"] / 1e3, 0.35, "ms", upper=True),
        Check("to a waiting receiver, p99", single["end_to_end_p99_us"] / 1e3, 0.8, "ms", upper=True),
        Check("small beside 4 MB messages, p99", figures[MIX.name]["ack_p99_us"] / 1e3, 30, "ms", upper=True),
    ]
