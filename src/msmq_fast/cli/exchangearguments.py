"""The grammar of `export`, `import`, `dlq`, `queue move` and `queue copy`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msmq_fast.cli.classes import parse_class

__all__ = ["add_exchange", "add_transfer"]

Number = Callable[[int, int], Callable[[str], int]]
if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]  # not subscriptable at run time


def _class(text: str) -> int:
    try:
        return parse_class(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no message class (NACK_Q_PURGED, 0xC001, …)") from None


def _add_filter(parser: argparse.ArgumentParser, number: Number, seconds: Callable[[str], float]) -> None:
    parser.add_argument("--label", metavar="GLOB", help="labels like this, with * ? and []")
    parser.add_argument("--class", dest="message_class", type=_class, metavar="NAME", help="of this class")
    parser.add_argument("--older", type=seconds, metavar="S", help="arrived at least S seconds ago")
    parser.add_argument("--newer", type=seconds, metavar="S", help="arrived at most S seconds ago")
    parser.add_argument("--limit", type=number(1, 2**63), metavar="N", help="at most N messages")


def add_transfer(
    actions: Verbs, client: argparse.ArgumentParser, number: Number, seconds: Callable[[str], float]
) -> None:
    """`queue move` and `queue copy`."""
    for action, what in (("move", "move messages to another queue"), ("copy", "copy messages")):
        parser = actions.add_parser(action, parents=[client], help=what)
        parser.add_argument("source", metavar="SOURCE")
        parser.add_argument("target", metavar="TARGET")
        _add_filter(parser, number, seconds)
        if action == "copy":
            parser.add_argument("--anew", action="store_true", help="do not go on with an interrupted copy")


def add_exchange(
    verbs: Verbs,
    client: argparse.ArgumentParser,
    number: Number,
    seconds: Callable[[str], float],
    kind: type[argparse.ArgumentParser],
) -> None:
    """`export`, `import` and `dlq`."""
    export = verbs.add_parser("export", parents=[client], help="messages into a file; they stay")
    export.add_argument("names", nargs="*", metavar="QUEUE")
    export.add_argument("--all", action="store_true", help="all user and system queues")
    export.add_argument("--format", choices=("msgpack", "jsonl"), default="msgpack")
    export.add_argument("--output", default="-", metavar="FILE", help="- for stdout, the default")
    bring = verbs.add_parser("import", parents=[client], help="messages of an export into queues")
    bring.add_argument("file", metavar="FILE", help="- for stdin")
    bring.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="[OLD=]NEW",
        help="into another queue than the one of the same name",
    )
    bring.add_argument("--skip-existing", action="store_true", help="pass over messages that are there")
    bring.add_argument("--anew", action="store_true", help="do not go on with an interrupted import")
    dlq = verbs.add_parser("dlq", help="dead letters")
    actions = dlq.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=kind)
    for action, what in (("list", "why they are dead"), ("resubmit", "send them to their queues again")):
        parser = actions.add_parser(action, parents=[client], help=what)
        parser.add_argument("--queue", metavar="NAME", help="instead of the two system queues")
        _add_filter(parser, number, seconds)
