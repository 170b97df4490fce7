"""The grammar of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from msmq_fast.cli.directoryarguments import add_directory
from msmq_fast.cli.exchangearguments import add_exchange, add_transfer
from msmq_fast.cli.keyarguments import add_certificate, add_key, add_protection
from msmq_fast.cli.securityarguments import add_acl, add_user
from msmq_fast.protocol.units import UnitError, parse_rate
from msmq_fast.terminal.parser import Parser

__all__ = ["build_parser"]


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text, 10)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
        return value

    return parse


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 4294967295 seconds")
    return value


def _rate(text: str) -> int:
    try:
        return parse_rate(text)
    except UnitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not hexadecimal") from None


def _correlation_id(text: str) -> bytes:
    value = _hex(text)
    if len(value) != 20:
        raise argparse.ArgumentTypeError(
            f"a correlation id has 20 bytes (40 hexadecimal digits), not {len(value)}"
        )
    return value


PRIVACY = ("none", "optional", "body")
ACKNOWLEDGMENTS = ("reach", "receive", "nack-reach", "nack-receive")


def _acknowledgments(text: str) -> frozenset[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in ACKNOWLEDGMENTS:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(ACKNOWLEDGMENTS)}")
    return frozenset(words)


def build_parser() -> Parser:
    """The parser of `msmq-fast`."""
    parser = Parser(prog="msmq-fast", description="A queue manager that speaks MSMQ, and its tools.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    output = Parser(add_help=False)
    output.add_argument("--json", action="store_true", help="JSON on stdout, one object a line")
    client = Parser(add_help=False, parents=[output])
    client.add_argument(
        "--endpoint",
        metavar="ADDR",
        help="unix:PATH, tcp://HOST:PORT or tls://HOST:PORT; else --data, else MSMQ_FAST_ENDPOINT, else the "
        "socket of the configured data directory",
    )
    client.add_argument("--data", metavar="DIR", help="connect to the server of this data directory")
    client.add_argument("--ca-file", metavar="FILE", help="certificates to trust for tls:// (PEM)")
    client.add_argument("--token-file", metavar="FILE", help="file with the token; else MSMQ_FAST_TOKEN")
    _add_serve(verbs, output)
    _add_queue(verbs, client)
    _add_send(verbs, client)
    _add_receive(verbs, client)
    _add_outgoing(verbs, client)
    add_acl(verbs, client)
    add_certificate(verbs, client)
    add_key(verbs, client)
    _add_transaction(verbs, client)
    add_user(verbs, output, _number)
    ping = verbs.add_parser(
        "ping", parents=[output], help="ask a queue manager whether it takes sessions (UDP)"
    )
    ping.add_argument("target", metavar="HOST[:PORT]")
    ping.add_argument("--timeout", type=_seconds, default=2.0, metavar="S")
    _add_security(verbs, output)
    health = verbs.add_parser(
        "health", parents=[output], help="ask the server of this machine whether it takes messages"
    )
    health.add_argument("--config", metavar="FILE", help="TOML file; default: MSMQ_FAST_CONFIG")
    health.add_argument("--data", metavar="DIR", help="data directory")
    health.add_argument("--timeout", type=_seconds, default=3.0, metavar="S")
    verbs.add_parser("stats", parents=[client], help="counts of the running server")
    check = verbs.add_parser(
        "check-config", parents=[output], help="read a configuration and explain its mistakes"
    )
    check.add_argument("config", nargs="?", metavar="FILE")
    check.add_argument("--config", dest="config_flag", metavar="FILE")
    add_directory(verbs, client, Parser)
    add_exchange(verbs, client, _number, _seconds, Parser)
    snapshot = verbs.add_parser("snapshot", parents=[client], help="have the server copy its store")
    snapshot.add_argument("target", metavar="DIR", help="directory on the server's machine; must not exist")
    snapshot.add_argument(
        "--rate", type=_rate, metavar="BYTES", help='bytes a second at most, such as "50 MiB"'
    )
    _add_store(verbs, output)
    return parser


def _add_serve(verbs: argparse._SubParsersAction[Parser], output: Parser) -> None:
    serve = verbs.add_parser("serve", parents=[output], help="run the queue manager")
    serve.add_argument("--config", metavar="FILE", help="TOML file; default: MSMQ_FAST_CONFIG")
    serve.add_argument("--data", metavar="DIR", help="data directory")
    serve.add_argument("--host", metavar="ADDR", help="address to listen on; several separated by commas")
    serve.add_argument("--port", metavar="N", help="TCP port of MS-MQQB (1801)")
    serve.add_argument("--ping-port", metavar="N", help="UDP port of the ping (3527)")
    serve.add_argument("--name", metavar="COMPUTER", help="computer name")
    serve.add_argument("--admin-port", metavar="N|off", help="HTTP port of health, metrics and API (1802)")
    serve.add_argument("--admin-host", metavar="ADDR", help="address of that port (127.0.0.1)")
    serve.add_argument("--app-socket", metavar="PATH", help="Unix socket for programs")
    serve.add_argument("--app-port", metavar="N|off", help="TCP port for programs (off)")
    serve.add_argument("--peer-port", metavar="N", help="TCP port of other queue managers (the own one)")
    serve.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error")
    serve.add_argument("--log-format", metavar="FORMAT", help="text or json")
    serve.add_argument("--rpc-port", metavar="N|off", help="TCP port of remote readers (2103)")
    serve.add_argument("--qm2qm-port", metavar="N|off", help="TCP port of older remote readers (2105)")
    serve.add_argument("--epm-port", metavar="N|off", help="TCP port of the RPC endpoint mapper (135)")
    serve.add_argument("--http-port", metavar="N|off", help="TCP port for messages over HTTP (80)")
    serve.add_argument("--https-port", metavar="N|off", help="the same for HTTPS (443, with a certificate)")


def _add_security(verbs: argparse._SubParsersAction[Parser], output: Parser) -> None:
    security = verbs.add_parser("security", help="show what the configuration opens to whom")
    actions = security.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    review = actions.add_parser(
        "review",
        parents=[output],
        help="each listener, right, quota and algorithm, and the key that closes it",
    )
    review.add_argument("--config", metavar="FILE", help="TOML file; default: MSMQ_FAST_CONFIG")
    review.add_argument("--data", metavar="DIR", help="data directory")


def _add_queue(verbs: argparse._SubParsersAction[Parser], client: Parser) -> None:
    queue = verbs.add_parser("queue", help="create, list, show, set, delete, purge queues")
    actions = queue.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    create = actions.add_parser("create", parents=[client], help="create a queue")
    create.add_argument("name", metavar="NAME")
    create.add_argument("--transactional", action="store_true")
    create.add_argument("--journal", action="store_true", help="keep copies of received messages")
    create.add_argument("--quota", type=_number(0, 2**32 - 1), metavar="KB")
    _add_poison_after(create)
    _add_multicast(create)
    create.add_argument("--authenticated", action="store_true", help="take signed messages only")
    create.add_argument("--privacy", choices=PRIVACY, help="take clear, any, or encrypted messages")
    create.add_argument("--label", metavar="TEXT")
    actions.add_parser("list", parents=[client], help="all queues")
    actions.add_parser("show", parents=[client], help="one queue").add_argument("name", metavar="NAME")
    change = actions.add_parser("set", parents=[client], help="change properties of a queue")
    change.add_argument("name", metavar="NAME")
    change.add_argument("--label", metavar="TEXT")
    change.add_argument("--quota", type=_number(0, 2**32 - 1), metavar="KB")
    change.add_argument("--journal", action=argparse.BooleanOptionalAction, default=None)
    _add_poison_after(change)
    _add_multicast(change)
    change.add_argument("--authenticated", action=argparse.BooleanOptionalAction, default=None)
    change.add_argument("--privacy", choices=PRIVACY, help="take clear, any, or encrypted messages")
    add_transfer(actions, client, _number, _seconds)
    definitions = actions.add_parser("import", parents=[client], help="queues as Get-MsmqQueue exports them")
    definitions.add_argument("file", metavar="FILE", help="CSV or JSON; - for stdin")
    definitions.add_argument("--dry-run", action="store_true", help="only say what would be done")
    actions.add_parser("delete", parents=[client], help="delete a queue and its messages").add_argument(
        "name"
    )
    actions.add_parser("purge", parents=[client], help="delete the messages of a queue").add_argument("name")


def _add_poison_after(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--poison-after",
        type=_number(0, 0xFFFE),
        metavar="N",
        help="aborts of transactions after which a message goes to the subqueue `poison`; 0: never",
    )


def _add_multicast(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--multicast",
        metavar="ADDR:PORT",
        help="also take the messages of a multicast group such as 234.1.1.1:8001; empty: of none",
    )


def _add_send(verbs: argparse._SubParsersAction[Parser], client: Parser) -> None:
    send = verbs.add_parser("send", parents=[client], help="send a message, or many")
    send.add_argument("name", metavar="FORMATNAME", help="a queue, or several with commas between them")
    body = send.add_mutually_exclusive_group()
    body.add_argument("--body", metavar="TEXT", help="the body, as UTF-8")
    body.add_argument("--file", metavar="PATH", help="file that holds the body")
    body.add_argument("stdin", nargs="?", choices=["-"], help="read the body from stdin")
    send.add_argument("--label", default="", metavar="TEXT")
    send.add_argument("--priority", type=_number(0, 7), metavar="0-7")
    send.add_argument("--recoverable", action="store_true", help="keep the message on disk")
    send.add_argument("--xact", action="store_true", help="send all in one transaction")
    send.add_argument("--count", type=_number(1, 100_000_000), default=1, metavar="N", help="send it N times")
    send.add_argument("--ttrq", type=_seconds, metavar="S", help="seconds to reach the queue")
    send.add_argument("--ttbr", type=_seconds, metavar="S", help="seconds to be received")
    send.add_argument("--journal", action="store_true", help="keep a copy at the source")
    send.add_argument("--deadletter", action="store_true", help="keep the message if it is not delivered")
    send.add_argument(
        "--dead-letter-queue",
        metavar="NAME",
        help="local queue for the message instead of the dead-letter queue",
    )
    send.add_argument("--admin-queue", metavar="F", help="format name for acknowledgments")
    send.add_argument(
        "--ack", type=_acknowledgments, default=frozenset(), metavar="A,…", help=", ".join(ACKNOWLEDGMENTS)
    )
    send.add_argument("--response-queue", metavar="F", help="queue for answers, or several with commas")
    send.add_argument("--correlation-id", type=_correlation_id, metavar="HEX")
    send.add_argument("--app-specific", type=_number(0, 2**32 - 1), default=0, metavar="N")
    send.add_argument("--body-type", type=_number(0, 2**32 - 1), default=0, metavar="N")
    send.add_argument("--extension", type=_hex, default=b"", metavar="HEX")
    add_protection(send)


def _add_receive(verbs: argparse._SubParsersAction[Parser], client: Parser) -> None:
    receive = verbs.add_parser("receive", parents=[client], help="receive messages")
    receive.add_argument("name", metavar="NAME")
    receive.add_argument("--peek", action="store_true", help="leave the message in the queue")
    receive.add_argument("--count", type=_number(1, 100_000_000), default=1, metavar="N")
    receive.add_argument("--timeout", type=_seconds, default=0.0, metavar="S", help="seconds to wait (0)")
    receive.add_argument("--lookup-id", type=_number(0, 2**64 - 1), metavar="N")
    neighbour = receive.add_mutually_exclusive_group()
    neighbour.add_argument("--next", action="store_true", help="the message after --lookup-id")
    neighbour.add_argument("--prev", action="store_true", help="the message before --lookup-id")
    receive.add_argument(
        "--xact",
        action="store_true",
        help="receive all in one transaction, which commits when they are printed",
    )
    receive.add_argument(
        "--reject",
        action="store_true",
        help="give them up, in one transaction: their senders hear of it and have them as dead letters",
    )


def _add_transaction(verbs: argparse._SubParsersAction[Parser], client: Parser) -> None:
    transaction = verbs.add_parser("transaction", help="what is open or in doubt")
    actions = transaction.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    actions.add_parser("list", parents=[client], help="transactions that are open or prepared")
    for action, text in (
        ("commit", "commit a prepared one whose coordinator is lost"),
        ("abort", "abort one: its messages are back"),
    ):
        decide = actions.add_parser(action, parents=[client], help=text)
        decide.add_argument("identifier", metavar="GUID")


def _add_outgoing(verbs: argparse._SubParsersAction[Parser], client: Parser) -> None:
    outgoing = verbs.add_parser("outgoing", help="queues of messages on their way to other computers")
    actions = outgoing.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    actions.add_parser("list", parents=[client], help="all outgoing queues")
    for action, what in (
        ("show", "one outgoing queue"),
        ("pause", "stop sending"),
        ("resume", "send again"),
        ("purge", "delete its messages"),
        ("delete", "delete one that is empty; the next message makes it anew"),
    ):
        actions.add_parser(action, parents=[client], help=what).add_argument("name", metavar="FORMATNAME")


def _add_store(verbs: argparse._SubParsersAction[Parser], output: Parser) -> None:
    backup = verbs.add_parser("backup", parents=[output], help="copy the store, also of a running server")
    backup.add_argument("target", metavar="DIR")
    backup.add_argument("--data", metavar="DIR", help="data directory")
    restore = verbs.add_parser("restore", parents=[output], help="make a data directory from a backup")
    restore.add_argument("source", metavar="DIR")
    restore.add_argument("--data", metavar="DIR", help="data directory to create")
    compact = verbs.add_parser(
        "compact", parents=[output], help="give free pages back to the disk; server stopped"
    )
    compact.add_argument("--data", metavar="DIR", help="data directory")
