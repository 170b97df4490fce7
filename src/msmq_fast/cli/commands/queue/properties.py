"""The queue properties that `queue create` and `queue set` accept."""

from __future__ import annotations

import argparse
from typing import Any

from msmq_fast.cli.queueinfo import PRIVACY, UNLIMITED
from msmq_fast.protocol.units import UnitError, parse_size
from msmq_fast.terminal.parser import Parser
from msmq_fast.terminal.values import number

__all__ = ["add_properties", "given_properties"]

_NAMES = {  # argument -> property
    "label": "label",
    "quota": "quota_kb",
    "transactional": "transactional",
    "journal": "journal",
    "authenticated": "authenticated",
    "poison_after": "poison_after",
    "multicast": "multicast_address",
    "privacy": "privacy_level",
}


def _quota(text: str) -> int:
    """Return a quota in KB, rounded up. A number without a unit is in KB, as in MSMQ."""
    word = text.strip()
    if word.lower() == "unlimited":
        return UNLIMITED
    try:
        kilobytes = int(word) if word.isascii() and word.isdecimal() else -(-parse_size(word) // 1024)
    except UnitError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if kilobytes > UNLIMITED:
        raise argparse.ArgumentTypeError(f'{text} is larger than 4 TiB: write "unlimited"')
    return kilobytes


def add_properties(parser: Parser) -> None:
    """Add an option for each property that can be changed. An option that is not given is None."""
    group = parser.add_argument_group("properties")
    group.add_argument("--label", metavar="TEXT", help="description of the queue")
    group.add_argument(
        "--journal",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="keep copies of received messages in the queue's journal",
    )
    group.add_argument(
        "--quota",
        type=_quota,
        metavar="SIZE",
        help="maximum size of all messages of the queue: 10GiB, a number of KB, or unlimited",
    )
    group.add_argument(
        "--poison-after",
        type=number(0, 0xFFFE),
        metavar="N",
        help="move a message to the subqueue ;poison after N aborted receives; 0: never",
    )
    group.add_argument(
        "--multicast",
        metavar="ADDRESS:PORT",
        help="multicast address and port from which the queue receives; empty: none",
    )
    group.add_argument(
        "--authenticated",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="accept signed messages only",
    )
    group.add_argument(
        "--privacy",
        choices=PRIVACY,
        help='messages that the queue accepts: only unencrypted ("none"), any ("optional"), or only '
        'encrypted ("body")',
    )


def given_properties(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the properties that the command line sets, by their names in the protocol."""
    values = {name: getattr(arguments, argument, None) for argument, name in _NAMES.items()}
    if values["privacy_level"] is not None:
        values["privacy_level"] = PRIVACY.index(values["privacy_level"])
    return {name: value for name, value in values.items() if value is not None}
