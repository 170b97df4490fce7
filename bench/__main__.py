"""The command line of the benchmarks; every printed figure comes with the command that repeats it."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import appload, clientload, deep, disk, machine, mqqb, peers, report, suites, txload
from bench.appload import AppLoad
from bench.brokers import BROKERS
from bench.generators import GeneratorError
from bench.measure import Figures, Measurement, command_line, measure
from bench.mqqb import Group, Load
from bench.server import ServerError
from bench.suites import Case
from bench.txload import TxLoad

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    common = _common(argparse.SUPPRESS)
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, parents=[_common(None)])
    parser.add_argument(
        "--suite", choices=[*suites.SUITES], default="targets", help="named set of measurements (targets)"
    )
    verbs = parser.add_subparsers(dest="verb", metavar="MEASUREMENT")

    one = verbs.add_parser("mqqb", parents=[common], help="load from sending MS-MQQB peers")
    _delivery(one)
    one.add_argument("--transactional", action="store_true", help="each session is a transactional stream")
    one.add_argument("--body", type=int, default=1024, help="bytes of the body (1024)")
    one.add_argument("--sessions", type=int, default=8)
    one.add_argument("--window", type=int, default=64, help="unacknowledged messages of a session (64)")
    one.add_argument("--rate", type=float, default=0, help="messages a second and session (0: no schedule)")
    one.add_argument("--queues", type=int, default=1, help="queues that the sessions are spread over")
    one.add_argument(
        "--receipt-window",
        action="store_true",
        help="the window counts messages not yet received (as the protocol has it), not durable ones",
    )
    one.add_argument("--null", action="store_true", help="against a sink that does nothing")
    one.add_argument("--max-bytes", type=int, default=2 << 30, help="ends a run early (2 GiB)")
    _length(one)

    mix = verbs.add_parser("mix", parents=[common], help="small messages beside a stream of large ones")
    mix.add_argument("--seconds", type=float, default=5)

    app = verbs.add_parser("app", parents=[common], help="load over the application protocol")
    _delivery(app)
    app.add_argument("--produce", type=int, default=1, help="producing connections")
    app.add_argument("--consume", type=int, default=1, help="consuming connections")
    app.add_argument("--body", type=int, default=1024)
    app.add_argument("--batch", type=int, default=1, help="messages in a SEND frame")
    app.add_argument("--window", type=int, default=64, help="unanswered messages of a producer")
    app.add_argument("--credit", type=int, default=1024)
    app.add_argument("--backlog", type=int, default=0, help="undelivered messages at which producers pause")
    app.add_argument("--acknowledge", action="store_true", help="consumers acknowledge what they get")
    app.add_argument("--receive", action="store_true", help="RECEIVE requests instead of a subscription")
    app.add_argument("--lockstep", action="store_true", help="one message at a time")
    app.add_argument("--null", action="store_true", help="against a sink that does nothing")
    _length(app)

    tx = verbs.add_parser("tx", parents=[common], help="transactions: send and receive")
    tx.add_argument("--clients", type=int, default=1)
    tx.add_argument("--size", type=int, default=1, help="messages of a transaction (1)")
    tx.add_argument(
        "--to-another-server", type=int, default=0, metavar="COUNT", help="COUNT messages to a second server"
    )
    tx.add_argument("--explicit", action="store_true", help="BEGIN … COMMIT also for one message")
    tx.add_argument("--body", type=int, default=1024)
    tx.add_argument("--seconds", type=float, default=3)
    tx.add_argument("--warmup", type=float, default=1)

    client = verbs.add_parser("client", parents=[common], help="the Python client, as programs use it")
    _delivery(client)
    client.add_argument("--body", type=int, default=1024)
    client.add_argument("--count", type=int, default=20_000)
    client.add_argument("--window", type=int, default=64)

    full = verbs.add_parser("deep", parents=[common], help="a deep queue: memory, start-up, receive, disk")
    full.add_argument("--messages", type=int, default=1_000_000)
    full.add_argument("--body", type=int, default=1024)

    alone = verbs.add_parser("disk", parents=[common], help="the disk alone: appends, pages, threads")
    alone.add_argument("--rounds", type=int, default=500, help="of each mode and run (500)")

    others = verbs.add_parser("peers", parents=[common], help="other brokers in turns with this server")
    others.add_argument("--rounds", type=int, default=5, help="runs of each side (5)")
    others.add_argument("--seconds", type=float, default=2, help="of a run (2)")
    others.add_argument("--brokers", nargs="+", choices=BROKERS, default=list(BROKERS))
    others.add_argument("--only", nargs="+", choices=peers.MEASURES, default=list(peers.MEASURES))

    verbs.add_parser("machine", parents=[common], help="what the machine can do")
    return parser


def _common(default: str | None) -> argparse.ArgumentParser:
    """Options of every measurement; a verb takes over what stands before it."""

    def or_default(value: object) -> object:
        return default or value

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--runs", type=int, default=or_default(3), help="runs, each on a fresh server and store (3)"
    )
    common.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        default=or_default(None),
        help="also write everything as JSON; - for stdout",
    )
    common.add_argument(
        "--dir",
        type=Path,
        default=or_default(Path(tempfile.gettempdir())),
        help="where the stores are made: a real disk",
    )
    common.add_argument(
        "--settings",
        type=Path,
        metavar="TOML",
        default=or_default(None),
        help="configuration added to the server's",
    )
    return common


def _delivery(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--recoverable", action="store_true", default=True)
    kind.add_argument("--express", dest="recoverable", action="store_false")


def _length(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--warmup", type=float, default=1)
    parser.add_argument("--count", type=int, default=0, help="messages instead of seconds")


def _mqqb_load(options: argparse.Namespace) -> Load:
    group = Group(
        options.body,
        options.recoverable,
        options.sessions,
        options.window,
        options.rate,
        options.transactional,
    )
    queues = ("bench", *(f"bench{i}" for i in range(2, options.queues + 1)))
    return Load(
        (group,),
        seconds=options.seconds,
        warmup=options.warmup,
        count=options.count,
        max_bytes=options.max_bytes,
        receipt_window=options.receipt_window,
        queues=queues,
    )


def _app_load(options: argparse.Namespace) -> AppLoad:
    names = AppLoad.__dataclass_fields__.keys() & vars(options).keys()
    return AppLoad(**{name: getattr(options, name) for name in names})


def _no_limits(directory: Path) -> Figures:
    return {}


def _settings(options: argparse.Namespace) -> str:
    return options.settings.read_text() if options.settings else ""


def _measure(cases: Sequence[Case], options: argparse.Namespace, queues: Sequence[str]) -> list[Measurement]:
    settings = _settings(options)
    return [
        measure(
            case.name,
            case.arguments,
            case.run,
            directory=options.dir,
            runs=options.runs,
            settings=settings,
            queues=queues,
            before_run=_no_limits if "--express" in case.arguments else disk.floor,
        )
        for case in cases
    ]


def _null(found: list[Figures], arguments: Sequence[str]) -> list[Measurement]:
    return [Measurement("generator against a null sink", command_line(arguments), found)]


def _run(
    options: argparse.Namespace, arguments: Sequence[str]
) -> tuple[list[Measurement], list[report.Check]]:
    queues: Sequence[str] = ("bench",)
    if options.verb is None:
        measurements = _measure(list(suites.SUITES[options.suite]()), options, queues)
        checks = suites.target_checks(measurements) if options.suite == "targets" else []
        return measurements, checks
    if options.verb == "disk":
        return disk.run(arguments, options.dir, runs=options.runs, rounds=options.rounds), []
    if options.verb == "deep":
        measurement = deep.run(arguments, options.dir, messages=options.messages, body=options.body)
        return [measurement], deep.checks(measurement)
    if options.verb == "mqqb":
        load = _mqqb_load(options)
        if options.null:
            return _null(mqqb.on_null_sink(load, options.runs), arguments), []
        case, queues = Case("mqqb", tuple(arguments), mqqb.on_server(load)), load.queues
    elif options.verb == "tx":
        names = TxLoad.__dataclass_fields__.keys() & vars(options).keys()
        load_tx = TxLoad(**{name: getattr(options, name) for name in names})
        count = options.to_another_server
        run = txload.to_another_server(load_tx, count) if count else txload.on_server(load_tx)
        case = Case("transactions", tuple(arguments), run)
    elif options.verb == "mix":
        case = suites.mix_case(seconds=options.seconds)
    elif options.verb == "client":
        load_client = clientload.on_server(
            recoverable=options.recoverable, body=options.body, count=options.count, window=options.window
        )
        case = Case("Python client", tuple(arguments), load_client)
    else:
        app_load = _app_load(options)
        if options.null:
            return _null(appload.on_null_sink(app_load, options.runs), arguments), []
        case = Case("app", tuple(arguments), appload.on_server(app_load))
    return _measure([case], options, queues), []


def _compare_peers(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The comparison as JSON and as text."""
    brokers, left_out = peers.installed(options.brokers)
    found = peers.compare(
        options.only,
        brokers,
        options.dir,
        rounds=options.rounds,
        seconds=options.seconds,
        settings=_settings(options),
    )
    return {"peers": peers.as_json(found)}, "\n".join([peers.table(found), *left_out])


def _shown(verb: str | None, measurements: list[Measurement], checks: list[report.Check]) -> str:
    parts = []
    if verb == "deep":
        parts.append(report.details(measurements[0]))
    elif measurements:
        parts.append(disk.table(measurements) if verb == "disk" else report.table(measurements))
    if checks:
        parts.append(report.verdicts(checks))
    return "\n".join(parts)


def main(arguments: Sequence[str]) -> int:
    """Runs what the arguments name; 0, or 1 if a bound is missed or something failed."""
    options = _parser().parse_args(arguments)
    facts = machine.facts(options.dir)
    measurements: list[Measurement] = []
    checks: list[report.Check] = []
    more: dict[str, Any] = {}
    try:
        if options.verb == "peers":
            more, shown = _compare_peers(options)
        else:
            if options.verb != "machine":
                measurements, checks = _run(options, arguments)
            shown = _shown(options.verb, measurements, checks)
    except (GeneratorError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    document = report.as_json(facts, measurements, checks) | more
    if options.json == Path("-"):
        print(json.dumps(document, indent=1))
    else:
        print(report.facts_line(facts))
        if shown:
            print(shown)
        if options.json:
            report.write_json(options.json, document)
    return int(not all(check.passed for check in checks))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
