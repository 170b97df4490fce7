"""Other brokers in turns with this server: rates, times, and their ratios with the spread over the rounds.

Each round has one run of each, in an order that turns from round to round, every run on a fresh server and a
fresh store of the same disk. A ratio is this server's figure by the broker's of the same round: of messages a
second more is better, of times less. The clients are native: `peer_load` speaks the protocols of the brokers
and writes as many messages at once as the window has room for, as `mqqb_load` and `app_load` do for this
server. A broker that is not installed is left out.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import appload, disk, mqqb
from bench.appload import AppLoad
from bench.brokers import BROKERS, Broker, BrokerError
from bench.generators import GeneratorError, run_generator
from bench.measure import Figures
from bench.mqqb import Group, Load
from bench.report import grid
from bench.server import Server

__all__ = ["MEASURES", "Comparison", "Measure", "as_json", "compare", "installed", "table"]

OWN = "msmq-fast"
_CLIENTS = (
    "clients, all native with pipelined writes: of msmq-fast mqqb_load (MS-MQQB over TCP) and app_load (Unix "
    "socket), of the others peer_load (TCP, or their Unix socket where app_load has one)"
)


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the comparison: what each side runs, and which figures count, by name and unit."""

    title: str
    own: Callable[[float], Callable[[Server], Figures]]
    peer: tuple[str, ...]  # arguments of peer_load
    figures: tuple[tuple[str, str], ...] = (("rate", "messages/s"),)
    express: bool = False
    unix: bool = False  # this server's client comes by a Unix socket: so do those of the others


def _senders(sessions: int, *, recoverable: bool = True) -> Callable[[float], Callable[[Server], Figures]]:
    def run(seconds: float) -> Callable[[Server], Figures]:
        return mqqb.on_server(Load((Group(1024, recoverable, sessions=sessions),), seconds=seconds))

    return run


def _programs(load: AppLoad) -> Callable[[float], Callable[[Server], Figures]]:
    def run(seconds: float) -> Callable[[Server], Figures]:
        return appload.on_server(
            AppLoad(produce=load.produce, consume=load.consume, lockstep=load.lockstep, seconds=seconds)
        )

    return run


MEASURES = {
    "in-8": Measure("durable in, 8 senders", _senders(8), ("--produce", "8")),
    "in-1": Measure("durable in, 1 sender", _senders(1), ("--produce", "1")),
    "in-and-out": Measure(
        "durable in and out at once, 1 producer and 1 consumer",
        _programs(AppLoad()),
        ("--consume", "1"),
        unix=True,
    ),
    "one-at-a-time": Measure(
        "durable, one at a time, from the send to a waiting receiver",
        _programs(AppLoad(lockstep=True)),
        ("--consume", "1", "--lockstep"),
        (("p50", "µs at p50"), ("p99", "µs at p99")),
        unix=True,
    ),
    "express-8": Measure(
        "express in, 8 senders", _senders(8, recoverable=False), ("--produce", "8"), express=True
    ),
}


@dataclass(slots=True)
class Comparison:
    """The figures of every round, by measure and broker; brokers that failed, and why."""

    seconds: float
    rounds: int
    versions: Mapping[str, str]
    found: dict[str, dict[str, list[Figures]]] = field(default_factory=dict)
    floors: list[Figures] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def installed(names: Sequence[str]) -> tuple[dict[str, type[Broker]], list[str]]:
    """Those of the named brokers that are here, and a line for each that is not."""
    here = {name: BROKERS[name] for name in names if BROKERS[name].program() is not None}
    lines = [
        f"{BROKERS[name].name} is left out: not installed ({BROKERS[name].install})"
        for name in names
        if name not in here
    ]
    return here, lines


def _figures(in_per_s: float, out_per_s: float | None, end_to_end: Mapping[str, float]) -> Figures:
    """The rate of a run is that of the slower direction."""
    rate = in_per_s if out_per_s is None else min(in_per_s, out_per_s)
    return {"rate": rate, **end_to_end}


def _own(measure: Measure, directory: Path, seconds: float, settings: str) -> Figures:
    with Server(directory, settings=settings) as server:
        found = measure.own(seconds)(server)
    times = {name: found[f"end_to_end_{name}_us"] for name in ("p50", "p99") if "end_to_end_p50_us" in found}
    return _figures(found["in_per_s"], found.get("out_per_s"), times)


def _peer(kind: type[Broker], measure: Measure, directory: Path, seconds: float) -> Figures:
    with kind(directory, memory=measure.express) as broker:
        arguments = [*broker.arguments(unix=measure.unix), "--queue", "bench", "--seconds", f"{seconds:g}"]
        found = run_generator("peer_load", [*arguments, "--window", "64", *measure.peer])
    delivered = found["end_to_end_time"]
    times = {name: delivered[f"{name}_us"] for name in ("p50", "p99") if delivered["count"]}
    out = found["out_per_s"] if "--consume" in measure.peer else None
    return _figures(found["in_per_s"], out, times)


def compare(
    measures: Sequence[str],
    brokers: Mapping[str, type[Broker]],
    directory: Path,
    *,
    rounds: int,
    seconds: float,
    settings: str = "",
) -> Comparison:
    """Runs everything, this server with `settings`.

    A broker that fails once is left out from then on, for all measures.
    """
    versions = {name: kind.version() for name, kind in brokers.items()}
    result = Comparison(seconds, rounds, versions)
    for name in measures:
        measure = MEASURES[name]
        sides = [OWN, *(key for key, kind in brokers.items() if kind.express or not measure.express)]
        found: dict[str, list[Figures]] = {side: [] for side in sides}
        for number in range(rounds):
            result.floors.append(disk.floor(directory))
            for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
                if side in result.failed:
                    continue
                try:
                    found[side].append(
                        _own(measure, directory, seconds, settings)
                        if side == OWN
                        else _peer(brokers[side], measure, directory, seconds)
                    )
                except (BrokerError, GeneratorError) as error:
                    if side == OWN:
                        raise
                    result.failed[side] = str(error).strip().replace("\n", " ")
            print(f"  {measure.title}: round {number + 1} of {rounds}", file=sys.stderr)
        result.found[name] = {side: runs for side, runs in found.items() if len(runs) == rounds}
    return result


def _spread(values: Sequence[float], form: str) -> list[str]:
    return [format(found, form) for found in (statistics.median(values), min(values), max(values))]


def _rows(runs: Mapping[str, list[Figures]], figure: str, unit: str, result: Comparison) -> str:
    own = [run[figure] for run in runs[OWN]]
    rows = [[unit, "median", "least", "most", "ratio", "least", "most"]]
    rows.append([OWN, *_spread(own, ",.0f"), "", "", ""])
    for side, figures in runs.items():
        if side == OWN:
            continue
        values = [run[figure] for run in figures]
        ratios = [mine / other for mine, other in zip(own, values, strict=True) if other]
        rows.append(
            [
                _label(side, result),
                *_spread(values, ",.0f"),
                *(_spread(ratios, ".2f") if ratios else [""] * 3),
            ]
        )
    return grid(rows)


def _label(side: str, result: Comparison) -> str:
    return f"{BROKERS[side].name} {result.versions[side]}"


def _legend(result: Comparison) -> list[str]:
    lines = []
    for side in result.versions:
        kind = BROKERS[side]
        express = f"; express: {kind.express}" if kind.express else ""
        lines.append(f"{_label(side, result)}: {kind.durable}{express}")
    return lines


def table(result: Comparison) -> str:
    """A block for each measure and figure; ratios are this server's figure by the broker's."""
    parts = []
    for name, runs in result.found.items():
        measure = MEASURES[name]
        blocks = [_rows(runs, figure, unit, result) for figure, unit in measure.figures]
        parts.append("\n".join([f"{measure.title}, 1 KiB, window 64", *blocks]))
    lone, batch = (
        statistics.median(floor[name] for floor in result.floors)
        for name in ("disk_lone_p50_us", "disk_batch_p50_us")
    )
    lines = [
        f"rounds: {result.rounds}, of {result.seconds:g} s each",
        _CLIENTS,
        f"the disk alone meanwhile: append and fdatasync of 1.3 KB {lone:,.0f} µs, of 306 KB {batch:,.0f} µs",
        *(f"{_label(side, result)} is left out: {why}" for side, why in result.failed.items()),
    ]
    return "\n\n".join([*parts, "\n".join([*_legend(result), *lines])])


def as_json(result: Comparison) -> dict[str, Any]:
    """Every figure of every round, in plain types."""
    return {
        "seconds": result.seconds,
        "versions": dict(result.versions),
        "measures": result.found,
        "disk": result.floors,
        "failed": result.failed,
    }
